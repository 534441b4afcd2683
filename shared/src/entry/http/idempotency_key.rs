//! The header that identifies a repeated request.

use lambda_http::Request;

use crate::{Error, Result};

const LONGEST_KEY: usize = 200;

/// # Errors
/// [`Error::Invalid`] if empty, too long or not plain text.
pub(super) fn idempotency_key(request: &Request) -> Result<Option<String>> {
    let Some(value) = request.headers().get("idempotency-key") else { return Ok(None) };
    let key = value.to_str().ok().map(str::trim).filter(|key| (1..=LONGEST_KEY).contains(&key.len()));
    key.map(|key| Some(key.to_owned()))
        .ok_or_else(|| Error::invalid("Idempotency-Key", format!("must have 1 to {LONGEST_KEY} plain characters")))
}
