//! The bearer that a service shows which has no JWT.

use lambda_http::Request;

/// The bearer of the request: of `Authorization`, else `X-Vapi-Secret`.
pub fn bearer(request: &Request) -> Option<&str> {
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    let bearer = header("authorization")
        .and_then(|value| value.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")))
        .map(|(_, bearer)| bearer.trim());
    bearer.or_else(|| header("x-vapi-secret")).filter(|bearer| !bearer.is_empty())
}
