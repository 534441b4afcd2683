//! The HTTP server of every stand-in: request log, faults, and cut connections.

use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    thread::JoinHandle,
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::{ConnectInfo, State, connect_info::Connected},
    http,
    serve::{IncomingStream, Listener},
};
use futures_util::{StreamExt as _, stream};
use serde_json::json;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{oneshot, watch},
};

use super::{
    exchange::{Answer, Payload, Request, refused},
    fault::{DropAt, Effect, Fault, Faults},
    request_log::{Log, Recorded},
};

/// The largest body that is read; VAPI's messages carry a whole assistant and its history.
const LARGEST_BODY: usize = 16 * 1024 * 1024;

/// The behaviour of one stand-in.
pub(super) trait Service: Send + Sync + 'static {
    /// Carries a request out and answers it as the real service would.
    fn answer(&self, request: &Request) -> impl Future<Output = Answer> + Send;

    /// The service's own error answer for a fault's status.
    fn failure(&self, status: u16) -> Answer;

    /// The real service's typical delay.
    fn pause(&self, _: &Request) -> Duration {
        Duration::ZERO
    }

    /// Answers a control request of the stand-in; `None` for requests of the real service.
    fn control(&self, request: &Request) -> impl Future<Output = Option<Answer>> + Send;
}

/// A running stand-in. Dropping it closes its port and every connection.
#[derive(Debug)]
pub struct Standin<S> {
    /// `http://127.0.0.1:<port>`, without a trailing slash.
    pub url: String,
    address: SocketAddr,
    pub(super) service: Arc<S>,
    log: Arc<Log>,
    faults: Arc<Faults>,
    released: watch::Sender<()>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl<S> Standin<S> {
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Every request so far in order of arrival, without control routes.
    pub fn requests(&self) -> Vec<Recorded> {
        self.log.all()
    }

    pub fn clear_requests(&self) {
        self.log.clear();
    }

    /// Appends a fault to the pending ones.
    pub fn inject(&self, fault: Fault) {
        self.faults.add(fault);
    }

    /// The pending faults.
    pub fn faults(&self) -> Vec<Fault> {
        self.faults.left()
    }

    pub fn clear_faults(&self) {
        self.faults.clear();
    }

    /// Ends the delays of all requests so far, and of the pending faults.
    pub fn release(&self) {
        self.faults.end_delays();
        self.released.send_replace(());
    }
}

impl<S> Drop for Standin<S> {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread's panic was printed there; nothing is left to stop.
            drop(thread.join());
        }
    }
}

struct Shared<S> {
    service: Arc<S>,
    log: Arc<Log>,
    faults: Arc<Faults>,
    released: watch::Sender<()>,
}

impl<S> Clone for Shared<S> {
    fn clone(&self) -> Self {
        Self {
            service: Arc::clone(&self.service),
            log: Arc::clone(&self.log),
            faults: Arc::clone(&self.faults),
            released: self.released.clone(),
        }
    }
}

/// Binds and serves on a separate thread, out of reach of a test's paused clock or blocked runtime.
pub(super) fn serve<S: Service>(address: SocketAddr, service: S) -> io::Result<Standin<S>> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = {
        let _entered = runtime.enter();
        TcpListener::from_std(listener)?
    };
    let released = watch::Sender::default();
    let shared =
        Shared { service: Arc::new(service), log: Arc::default(), faults: Arc::default(), released: released.clone() };
    let standin_service = Arc::clone(&shared.service);
    let (log, faults) = (Arc::clone(&shared.log), Arc::clone(&shared.faults));
    let (stop, stopped) = oneshot::channel();
    let thread = std::thread::Builder::new().name(format!("standin-{}", address.port())).spawn(move || {
        runtime.block_on(async {
            let router = Router::new().fallback(receive::<S>).with_state(shared);
            let served = axum::serve(Doors(listener), router.into_make_service_with_connect_info::<Door>());
            tokio::select! {
                _ = served => {}
                _ = stopped => {}
            }
        });
        // Does not wait for a pending name look-up.
        runtime.shutdown_background();
    })?;
    Ok(Standin {
        url: format!("http://{address}"),
        address,
        service: standin_service,
        log,
        faults,
        released,
        stop: Some(stop),
        thread: Some(thread),
    })
}

async fn receive<S: Service>(
    State(shared): State<Shared<S>>,
    ConnectInfo(door): ConnectInfo<Door>,
    request: http::Request<Body>,
) -> http::Response<Body> {
    let request = match read(request).await {
        Ok(request) => request,
        Err(error) => return response(refused(error)),
    };
    if let Some(answer) = shared.control(&request).await {
        return response(answer);
    }
    // Before the log shows the request: nothing releases it earlier.
    let released = shared.released.subscribe();
    let number = shared.log.received(&request);
    // On a separate task, because a service carries on when the caller hangs up.
    let handled = tokio::spawn(async move {
        let fault = shared.faults.meet(&request).unwrap_or_default();
        let answer = shared.handle(&request, &fault, released).await;
        if let Some(answer) = &answer {
            shared.log.answered(number, answer.status);
        }
        answer
    });
    match handled.await {
        Ok(Some(answer)) => response(answer),
        Ok(None) => {
            door.slam();
            response(Answer::empty(500))
        }
        Err(error) => response(Answer::json(500, &json!({ "error": format!("the stand-in itself failed: {error}") }))),
    }
}

impl<S: Service> Shared<S> {
    async fn control(&self, request: &Request) -> Option<Answer> {
        let answer = match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/requests") => Answer::json(200, &json!(self.log.all())),
            ("DELETE", "/requests") => {
                self.log.clear();
                Answer::empty(204)
            }
            ("GET", "/faults") => Answer::json(200, &json!(self.faults.left())),
            ("PUT", "/faults") => match request.json() {
                Ok(faults) => match self.faults.replace(faults) {
                    Ok(()) => Answer::json(200, &json!(self.faults.left())),
                    Err(problem) => refused(problem),
                },
                Err(error) => refused(error),
            },
            ("DELETE", "/faults") => {
                self.faults.clear();
                Answer::empty(204)
            }
            _ => return self.service.control(request).await,
        };
        Some(answer)
    }

    /// The answer; `None` if the connection must be cut.
    async fn handle(&self, request: &Request, fault: &Fault, mut released: watch::Receiver<()>) -> Option<Answer> {
        let delay = Duration::from_millis(fault.delay_ms) + self.service.pause(request);
        let delayed = async { drop(tokio::time::timeout(delay, released.changed()).await) };
        let carried_out = match fault.effect() {
            Effect::First => {
                let answer = self.service.answer(request).await;
                delayed.await;
                Some(answer)
            }
            Effect::Last => {
                delayed.await;
                Some(self.service.answer(request).await)
            }
            Effect::None => {
                delayed.await;
                None
            }
        };
        if matches!(fault.drop, Some(DropAt::Before | DropAt::After)) {
            return None;
        }
        let answer = match (&fault.body, fault.status, carried_out) {
            (Some(body), status, _) => Answer::chosen(status.unwrap_or(200), body),
            (None, Some(status), _) => self.service.failure(status),
            (None, None, Some(answer)) => answer,
            (None, None, None) => self.service.failure(503),
        };
        Some(answer.with_headers(&fault.headers))
    }
}

async fn read(request: http::Request<Body>) -> Result<Request, axum::Error> {
    let (head, body) = request.into_parts();
    let mut headers = BTreeMap::<String, String>::new();
    for (name, value) in &head.headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        headers
            .entry(name.as_str().to_owned())
            .and_modify(|joined| {
                joined.push_str(", ");
                joined.push_str(&value);
            })
            .or_insert_with(|| value.clone().into_owned());
    }
    let query = url::form_urlencoded::parse(head.uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
    let body = axum::body::to_bytes(body, LARGEST_BODY).await?.to_vec();
    Ok(Request { method: head.method.to_string(), path: head.uri.path().to_owned(), query, headers, body })
}

fn response(answer: Answer) -> http::Response<Body> {
    let body = match answer.payload {
        Payload::Whole(bytes) => Body::from(bytes),
        Payload::Frames(frames, pause) => {
            let frames = stream::iter(frames.into_iter().enumerate());
            Body::from_stream(frames.then(move |(number, frame)| async move {
                if number > 0 && !pause.is_zero() {
                    tokio::time::sleep(pause).await;
                }
                Ok::<_, io::Error>(frame)
            }))
        }
    };
    let mut builder = http::Response::builder().status(answer.status);
    for (name, value) in &answer.headers {
        builder = builder.header(name, value);
    }
    builder.body(body).unwrap_or_else(|error| {
        let mut broken = http::Response::new(Body::from(error.to_string()));
        *broken.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
        broken
    })
}

/// Whether a connection is cut instead of answering.
#[derive(Clone, Debug, Default)]
struct Door(Arc<AtomicBool>);

impl Door {
    fn slam(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn slammed(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Connected<IncomingStream<'_, Doors>> for Door {
    fn connect_info(stream: IncomingStream<'_, Doors>) -> Self {
        stream.io().door.clone()
    }
}

struct Doors(TcpListener);

impl Listener for Doors {
    type Io = Doorway;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Doorway, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.0).await;
        // A socket that refuses the option is slower, not wrong.
        drop(stream.set_nodelay(true));
        (Doorway { stream, door: Door::default() }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

/// A connection that writes nothing after its door is slammed, so the server gives it up and closes it.
struct Doorway {
    stream: TcpStream,
    door: Door,
}

impl AsyncRead for Doorway {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Doorway {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.door.slammed() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
