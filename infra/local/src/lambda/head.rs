//! The head that a streaming function sends before its body: a JSON object and eight NULs.

use std::collections::BTreeMap;

use axum::{
    body::Bytes,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
};
use serde::Deserialize;
use serde_json::Value;

use crate::http_api::end_to_end;

const END: [u8; 8] = [0; 8];

/// API Gateway's name for `WWW-Authenticate`.
const REMAPPED_CHALLENGE: HeaderName = HeaderName::from_static("x-amzn-remapped-www-authenticate");

/// In bytes. A longer head has lost its terminator.
const LONGEST: usize = 1024 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub struct Head {
    pub status: StatusCode,
    pub headers: HeaderMap,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Prelude {
    #[serde(default = "ok")]
    status_code: u16,
    #[serde(default)]
    headers: BTreeMap<String, Value>,
    #[serde(default)]
    multi_value_headers: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    cookies: Vec<String>,
}

fn ok() -> u16 {
    200
}

/// Collects a head, which may arrive in any number of pieces, the last with the start of the body.
#[derive(Default)]
pub(super) struct HeadReader {
    read: Vec<u8>,
}

impl HeadReader {
    /// The head and the start of the body, once the head is complete.
    ///
    /// # Errors
    /// With the reason why the head is invalid.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Option<(Head, Bytes)>, String> {
        let seen = self.read.len().saturating_sub(END.len());
        self.read.extend_from_slice(bytes);
        let found = self.read.get(seen..).unwrap_or_default().windows(END.len()).position(|window| window == END);
        let Some(found) = found else {
            let too_long = self.read.len() > LONGEST;
            return if too_long { Err("has no eight NULs after its head".to_owned()) } else { Ok(None) };
        };
        let mut head = std::mem::take(&mut self.read);
        let body = head.split_off(seen + found + END.len());
        head.truncate(seen + found);
        Ok(Some((Head::parse(&head)?, Bytes::from(body))))
    }
}

impl Head {
    /// Of an answer that is not streamed.
    pub(super) fn none() -> Self {
        Self { status: StatusCode::OK, headers: HeaderMap::new() }
    }

    fn parse(text: &[u8]) -> Result<Self, String> {
        let prelude: Prelude =
            serde_json::from_slice(text).map_err(|error| format!("has a head that cannot be read: {error}"))?;
        let status = StatusCode::from_u16(prelude.status_code)
            .map_err(|_invalid| format!("has the status {}", prelude.status_code))?;
        let mut headers = HeaderMap::new();
        for (name, value) in prelude.headers {
            // AWS's treatment of a list is unknown, so no function may send one.
            let Value::String(value) = value else { return Err(format!("has the header {name} more than once")) };
            append(&mut headers, &name, &value)?;
        }
        for (name, values) in prelude.multi_value_headers {
            for value in values {
                append(&mut headers, &name, &value)?;
            }
        }
        for cookie in prelude.cookies {
            let cookie = HeaderValue::from_str(&cookie)
                .map_err(|_invalid| "has a cookie that HTTP does not allow".to_owned())?;
            headers.append(header::SET_COOKIE, cookie);
        }
        headers.entry(header::CONTENT_TYPE).or_insert(HeaderValue::from_static("application/octet-stream"));
        Ok(Self { status, headers: end_to_end(&headers) })
    }
}

/// Adds a header of the function, under API Gateway's name for it.
fn append(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), String> {
    let (Ok(mut name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value)) else {
        return Err(format!("has a header {name} that HTTP does not allow"));
    };
    if name == header::WWW_AUTHENTICATE {
        name = REMAPPED_CHALLENGE;
    }
    headers.append(name, value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_found_however_it_is_cut() {
        let text = b"{\"statusCode\":201,\"headers\":{\"x-a\":\"1\",\"www-authenticate\":\"Bearer\"},\
            \"multiValueHeaders\":{\"x-b\":[\"2\",\"3\"]},\"cookies\":[\"c=1\",\"d=2\"]}\0\0\0\0\0\0\0\0data: 1\n\n";
        for size in 1..text.len() {
            let mut reader = HeadReader::default();
            let mut body = Vec::new();
            let mut found = None;
            for piece in text.chunks(size) {
                if found.is_some() {
                    body.extend_from_slice(piece);
                } else if let Some((head, rest)) = reader.push(piece).unwrap() {
                    body.extend_from_slice(&rest);
                    found = Some(head);
                }
            }
            let head = found.unwrap();
            assert_eq!((head.status.as_u16(), &head.headers["x-a"]), (201, &HeaderValue::from_static("1")));
            assert_eq!(head.headers.get_all("set-cookie").iter().collect::<Vec<_>>(), ["c=1", "d=2"]);
            assert_eq!(head.headers.get_all("x-b").iter().collect::<Vec<_>>(), ["2", "3"]);
            assert_eq!(head.headers["x-amzn-remapped-www-authenticate"], "Bearer");
            assert!(!head.headers.contains_key("www-authenticate"));
            assert_eq!(head.headers["content-type"], "application/octet-stream");
            assert_eq!(body, b"data: 1\n\n");
        }
    }

    #[test]
    fn a_head_that_lambda_does_not_accept_is_refused() {
        for (head, named) in [
            (r#"{"headers":{"x-multi":["1","2"]}}"#, "x-multi"),
            (r#"{"headers":{"a b":"1"}}"#, "a b"),
            (r#"{"statusCode":99}"#, "99"),
            ("data: 1", "cannot be read"),
        ] {
            let whole = [head.as_bytes(), &END].concat();
            let refused = HeadReader::default().push(&whole).unwrap_err();
            assert!(refused.contains(named), "{head}: {refused}");
        }
    }
}
