//! Streamed answers: server-sent events written while the work is in progress.
//!
//! After the head only events can report a failure, and the Lambda runtime prints a body's error into the stream and ends a
//! panicking body as if complete. So the body never fails: a failure or panic of the work becomes the last event.

use std::{
    convert::Infallible,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http_body::{Body, Frame};
use serde::Serialize;
use tokio::time::{Sleep, sleep};
use tracing::Instrument;

use super::{reply, request_ids::RequestIds};
use crate::{Error, Result, invocation, telemetry};

/// Maximum silence before a keep-alive: proxies close silent streams.
const SILENCE: Duration = Duration::from_secs(15);
const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";
/// Sent in an empty stream: callers of Lambda have hung on bodies without a byte.
const NOTHING: &[u8] = b":\n\n";

/// The buffer of a stream, shared by clones.
#[derive(Debug, Clone, Default)]
pub struct Frames(Arc<Mutex<Vec<u8>>>);

impl Frames {
    /// Writes one event: `data: {json}` and a blank line.
    pub fn data(&self, event: &impl Serialize) {
        let mut buffer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = buffer.len();
        buffer.extend_from_slice(b"data: ");
        if let Err(error) = serde_json::to_writer(&mut *buffer, event) {
            tracing::error!("an event cannot be written: {error}");
            buffer.truncate(before);
            return;
        }
        buffer.extend_from_slice(b"\n\n");
    }

    pub fn written(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

type Work = Pin<Box<dyn Future<Output = Result<()>> + Send>>;
type LastWords = Box<dyn FnOnce(&Frames, &Error) + Send>;

/// A body that runs the work: polling the body polls the work.
pub struct ServerSentEvents {
    frames: Frames,
    work: Option<Work>,
    last_words: Option<LastWords>,
    silence: Option<Pin<Box<Sleep>>>,
    silent_for: Duration,
    said: bool,
    request: Option<RequestOfStream>,
}

#[derive(Debug)]
pub(super) struct RequestOfStream {
    pub(super) function: &'static str,
    pub(super) ids: RequestIds,
    pub(super) started: Instant,
}

impl ServerSentEvents {
    /// `work` writes into `frames`, including the last event. If it fails or panics, `last_words` writes the last event.
    pub(super) fn new(
        frames: Frames,
        work: impl Future<Output = Result<()>> + Send + 'static,
        last_words: impl FnOnce(&Frames, &Error) + Send + 'static,
    ) -> Self {
        Self {
            frames,
            work: Some(Box::pin(invocation::rejoin(invocation::began(), work))),
            last_words: Some(Box::new(last_words)),
            silence: None,
            silent_for: SILENCE,
            said: false,
            request: None,
        }
    }

    pub(super) fn answers(&mut self, request: RequestOfStream) {
        let span = request.ids.span();
        self.work = self.work.take().map(|work| -> Work { Box::pin(work.instrument(span)) });
        self.request = Some(request);
    }

    fn finish(&mut self, outcome: Result<()>) {
        let work = self.work.take();
        // Dropping the work may panic too.
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(work)));
        let outcome = outcome.and(dropped.map_err(|_panic| panicked()));
        if let (Err(error), Some(last_words)) = (&outcome, self.last_words.take())
            && catch_unwind(AssertUnwindSafe(|| last_words(&self.frames, error))).is_err()
        {
            tracing::error!("the last event of a stream could not be written");
        }
        if let Some(RequestOfStream { function, ids, started }) = self.request.take() {
            let outcome = match &outcome {
                Ok(()) => "ok",
                Err(error) => {
                    reply::log(function, &ids, error);
                    error.code()
                }
            };
            telemetry::request(function, outcome, started.elapsed());
        }
    }
}

fn panicked() -> Error {
    Error::internal("the work behind a stream panicked")
}

impl Body for ServerSentEvents {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        if let Some(work) = &mut this.work {
            match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
                Ok(Poll::Pending) => {}
                Ok(Poll::Ready(outcome)) => this.finish(outcome),
                Err(_panic) => this.finish(Err(panicked())),
            }
        }
        let mut written = this.frames.take();
        if written.is_empty() {
            match (&this.work, this.said) {
                (None, true) => return Poll::Ready(None),
                (None, false) => written = NOTHING.to_vec(),
                (Some(_), _) => {
                    let silence = this.silence.get_or_insert_with(|| Box::pin(sleep(this.silent_for)));
                    ready!(silence.as_mut().poll(context));
                    written = KEEP_ALIVE.to_vec();
                }
            }
        }
        this.said = true;
        this.silence = None;
        Poll::Ready(Some(Ok(Frame::data(written.into()))))
    }
}

impl Drop for ServerSentEvents {
    fn drop(&mut self) {
        if let Some(RequestOfStream { function, ids, started }) = self.request.take() {
            // Lambda reads a stream to its end even without a client.
            tracing::warn!(
                function,
                request.id = ids.request,
                lambda.request_id = ids.invocation,
                "a stream was not read to its end"
            );
            telemetry::request(function, "dropped", started.elapsed());
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use serde_json::json;
    use tokio::task::yield_now;

    use super::*;

    fn events(frames: &Frames, work: impl Future<Output = Result<()>> + Send + 'static) -> ServerSentEvents {
        let last_words = |frames: &Frames, error: &Error| frames.data(&json!({"error": error.code()}));
        ServerSentEvents::new(frames.clone(), work, last_words)
    }

    async fn chunks(mut events: ServerSentEvents) -> Vec<String> {
        let mut chunks = Vec::new();
        while let Some(frame) = events.frame().await {
            let Ok(frame) = frame;
            chunks.push(String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap());
        }
        chunks
    }

    #[tokio::test]
    async fn written_events_are_sent_as_soon_as_the_work_waits() {
        let frames = Frames::default();
        let writer = frames.clone();
        let work = async move {
            writer.data(&1);
            writer.data(&"two\r\nlines");
            yield_now().await;
            writer.data(&3);
            Ok(())
        };
        assert_eq!(chunks(events(&frames, work)).await, ["data: 1\n\ndata: \"two\\r\\nlines\"\n\n", "data: 3\n\n"]);
    }

    #[tokio::test]
    async fn a_stream_always_ends_with_its_final_event() {
        for panics in [false, true] {
            let frames = Frames::default();
            let writer = frames.clone();
            let work = async move {
                writer.data(&1);
                yield_now().await;
                writer.data(&2);
                assert!(!panics, "a fault of ours");
                Err(Error::NotFound("thread"))
            };
            let code = if panics { "internal" } else { "not_found" };
            let last = format!("data: 2\n\ndata: {{\"error\":\"{code}\"}}\n\n");
            assert_eq!(chunks(events(&frames, work)).await, ["data: 1\n\n", &last]);
        }
    }

    struct PanicsWhenDropped;

    impl Drop for PanicsWhenDropped {
        fn drop(&mut self) {
            assert!(std::thread::panicking(), "a fault of ours");
        }
    }

    #[tokio::test]
    async fn a_panic_in_dropped_work_is_contained() {
        let work = async {
            let _left = PanicsWhenDropped;
            yield_now().await;
            Ok(())
        };
        assert_eq!(chunks(events(&Frames::default(), work)).await, ["data: {\"error\":\"internal\"}\n\n"]);
        let last_words = |_: &Frames, _: &Error| panic!("a fault of ours");
        let events = ServerSentEvents::new(Frames::default(), async { Err(Error::Unauthenticated) }, last_words);
        assert_eq!(chunks(events).await, [":\n\n"]);
    }

    #[tokio::test]
    async fn silence_is_broken_and_an_empty_stream_has_a_byte() {
        let frames = Frames::default();
        let writer = frames.clone();
        let work = async move {
            sleep(Duration::from_secs(1)).await;
            writer.data(&1);
            Ok(())
        };
        let mut slow = events(&frames, work);
        slow.silent_for = Duration::from_millis(20);
        let sent = chunks(slow).await;
        assert_eq!(
            (sent.first().unwrap().as_str(), sent.last().unwrap().as_str()),
            (": keep-alive\n\n", "data: 1\n\n")
        );
        assert_eq!(chunks(events(&Frames::default(), async { Ok(()) })).await, [":\n\n"]);
    }
}
