//! The bearer that a service shows which has no JWT.

use lambda_http::Request;

/// The bearer of the request: of `Authorization`, else `X-Vapi-Secret`.
pub fn bearer(request: &Request) -> Option<&str> {
    let secret = request.headers().get("x-vapi-secret").and_then(|value| value.to_str().ok());
    authorization(request).or(secret).filter(|bearer| !bearer.is_empty())
}

/// The bearer of `Authorization`, which may be empty.
pub(super) fn authorization(request: &Request) -> Option<&str> {
    let value = request.headers().get("authorization").and_then(|value| value.to_str().ok())?;
    let (scheme, bearer) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| bearer.trim())
}
