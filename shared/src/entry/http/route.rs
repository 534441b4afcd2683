//! Matches requests by method and path.

use std::str::FromStr;

use lambda_http::{Request, RequestExt};
use percent_encoding::percent_decode_str;

use crate::{Error, Result};

/// The method and the undecoded path segments: `GET /api/acme/tools` is `["GET", "api", "acme", "tools"]`. [`id`] decodes a
/// segment.
pub(super) fn route(request: &Request) -> Vec<&str> {
    let segments = path(request).split('/').filter(|segment| !segment.is_empty());
    [request.method().as_str()].into_iter().chain(segments).collect()
}

/// The undecoded path.
pub(super) fn path(request: &Request) -> &str {
    match request.raw_http_path() {
        "" => request.uri().path(),
        raw => raw,
    }
}

/// Decodes and parses a path segment; `noun` names the resource.
///
/// # Errors
/// [`Error::NotFound`] with the noun for an invalid id.
pub(super) fn id<T: FromStr>(segment: &str, noun: &'static str) -> Result<T> {
    percent_decode_str(segment).decode_utf8_lossy().parse().map_err(|_not_an_id| Error::NotFound(noun))
}

#[cfg(test)]
mod tests {
    use lambda_http::Body;

    use super::*;
    use crate::models::{EntryId, ToolId};

    #[test]
    fn method_and_path_are_matched_and_ids_are_decoded() {
        let get = |path: &str| Request::new(Body::Empty).with_raw_http_path(path);
        let request = get("//api/acme/entries/page%3A7/");
        assert_eq!(route(&request), ["GET", "api", "acme", "entries", "page%3A7"]);
        assert_eq!(id::<EntryId>("page%3A7", "entry").unwrap().as_str(), "page:7");
        assert_eq!(route(&get("/")), ["GET"]);
        assert!(matches!(id::<ToolId>("7", "tool"), Err(Error::NotFound("tool"))));
    }
}
