//! Readers that are private otherwise, for `tests/fuzz`.

use secrecy::SecretString;

use super::{Completion, answer, events::Events, refusal::Private};

/// Reads the body of a success; `None` if it is unusable.
pub fn answer(body: &[u8]) -> Option<Completion> {
    let secret = SecretString::from("a-key");
    answer::whole(body, None, "a-model", &Private { messages: &[], secret: &secret }).ok()
}

/// The data of a stream's events, received in pieces of this many bytes. `None`: an event is too large.
pub fn events(stream: &[u8], piece: usize) -> Option<Vec<Vec<u8>>> {
    let mut events = Events::default();
    for piece in stream.chunks(piece.max(1)) {
        events.take(piece).ok()?;
    }
    events.end();
    Some(std::iter::from_fn(|| events.next()).collect())
}
