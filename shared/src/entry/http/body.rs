//! Request bodies.

use lambda_http::{Body, Request};
use serde_json::Value;

use crate::{Error, Result};

pub fn body(request: &Request) -> &[u8] {
    match request.body() {
        Body::Text(text) => text.as_bytes(),
        Body::Binary(bytes) => bytes,
        _ => &[],
    }
}

/// # Errors
/// [`Error::Malformed`], with line and column, for invalid JSON.
pub fn json_body(request: &Request) -> Result<Value> {
    let bytes = body(request);
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Error::Malformed("the body is empty; send a JSON object".into()));
    }
    serde_json::from_slice(bytes).map_err(|error| Error::Malformed(format!("the body is not valid JSON: {error}")))
}
