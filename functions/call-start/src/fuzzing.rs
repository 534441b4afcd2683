//! A reader that is private otherwise, for `tests/fuzz`.

use lambda_http::{Body, Request};

use crate::twilio_request::Incoming;

/// Reads the form of an incoming call. `None`: it is none. Else the lengths of the call's id and of the caller.
pub fn incoming(form: &[u8]) -> Option<(usize, usize)> {
    let incoming = Incoming::read(&Request::new(Body::Binary(form.to_vec()))).ok()?;
    Some((incoming.call_sid.len(), incoming.caller.chars().count()))
}
