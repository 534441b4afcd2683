//! The bearer token of a service without a JWT.

use lambda_http::Request;

/// From `Authorization`, else `X-Vapi-Secret`.
pub fn bearer(request: &Request) -> Option<&str> {
    let secret = request.headers().get("x-vapi-secret").and_then(|value| value.to_str().ok());
    authorization(request).or(secret).filter(|bearer| !bearer.is_empty())
}

/// From `Authorization`; may be empty.
pub(super) fn authorization(request: &Request) -> Option<&str> {
    let value = request.headers().get("authorization").and_then(|value| value.to_str().ok())?;
    let (scheme, bearer) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| bearer.trim())
}
