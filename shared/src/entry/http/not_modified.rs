//! 304 for an answer that the client has (`ETag`, `If-None-Match`; RFC 9110, sections 8.8.3 and 13.1.2).

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use lambda_http::Request;
use ring::digest::{SHA256, digest};

use super::{Caller, Reply, Route};

/// Bytes of the hash in a tag.
const TAG: usize = 12;

impl Route {
    /// Whether an answer of 200 has a tag of its content: every route that a member reads.
    pub const fn is_tagged(&self) -> bool {
        matches!((self.method.as_bytes(), self.caller), (b"GET", Caller::Member(_)))
    }
}

impl Reply {
    /// The answer with the tag of its content, or 304 without content if the request names this tag.
    ///
    /// An answer with a tag of its own, such as a revision for `If-Match`, stays as it is: more than that revision may have
    /// changed in it.
    #[must_use]
    pub fn unless_known(self, route: &Route, request: &Request) -> Self {
        let content = if route.is_tagged() { self.content_to_tag() } else { None };
        let Some(content) = content else { return self };
        let hash = digest(&SHA256, content);
        let tag = format!("\"{}\"", URL_SAFE_NO_PAD.encode(hash.as_ref().get(..TAG).unwrap_or_default()));
        let reply = if is_known(request, &tag) { self.without_content() } else { self };
        reply.with_headers([("etag", tag)])
    }
}

pub fn is_known(request: &Request, tag: &str) -> bool {
    let given = request.headers().get_all("if-none-match").iter().filter_map(|value| value.to_str().ok());
    given.flat_map(|value| value.split(',')).map(str::trim).any(|given| {
        // A proxy that compresses the content makes the tag a weak one.
        given == "*" || given.strip_prefix("W/").unwrap_or(given) == tag
    })
}
