//! A request as the function gets it: payload format 2.0, as a function URL sends it.

use std::collections::BTreeMap;

use axum::{
    body::Bytes,
    http::{HeaderMap, header, request::Parts},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};
use shared::models::Timestamp;

use crate::front_door::end_to_end;

/// The most that an invocation takes, in bytes of the event.
pub(super) const LARGEST_EVENT: usize = 6 * 1024 * 1024;

/// The event of a request. `domain` is the host of the function's URL on AWS, whatever it was reached by.
pub(super) fn event(request: &Parts, body: &Bytes, domain: &str, request_id: &str, trace: &str) -> Value {
    let now = Timestamp::now().as_millis();
    let time = jiff::Timestamp::from_millisecond(now).unwrap_or_default();
    let (path, query) = (request.uri.path(), request.uri.query().unwrap_or_default());
    let (mut headers, cookies) = fields(&request.headers);
    let user_agent = headers.get("user-agent").cloned().unwrap_or_default();
    for (name, value) in [
        ("host", domain),
        ("x-amzn-tls-cipher-suite", "TLS_AES_128_GCM_SHA256"),
        ("x-amzn-tls-version", "TLSv1.3"),
        ("x-amzn-trace-id", trace),
        // Only this machine reaches the door.
        ("x-forwarded-for", "127.0.0.1"),
        ("x-forwarded-port", "443"),
        ("x-forwarded-proto", "https"),
    ] {
        headers.insert(name.to_owned(), value.to_owned());
    }
    if !body.is_empty() {
        headers.insert("content-length".to_owned(), body.len().to_string());
    }
    let id = domain.split('.').next().unwrap_or_default();
    let mut event = json!({
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": query,
        "headers": headers,
        "requestContext": {
            // Nobody has to sign.
            "accountId": "anonymous",
            "apiId": id,
            "domainName": domain,
            "domainPrefix": id,
            "http": {
                "method": request.method.as_str(),
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "127.0.0.1",
                "userAgent": user_agent,
            },
            "requestId": request_id,
            "routeKey": "$default",
            "stage": "$default",
            "time": time.strftime("%d/%b/%Y:%H:%M:%S +0000").to_string(),
            "timeEpoch": now,
        },
        "isBase64Encoded": false,
    });
    // Fields without a value are left out, not null.
    if let Some(event) = event.as_object_mut() {
        if !cookies.is_empty() {
            event.insert("cookies".to_owned(), cookies.into());
        }
        if !query.is_empty() {
            event.insert("queryStringParameters".to_owned(), parameters(query));
        }
        put_body(event, body, &request.headers);
    }
    event
}

/// Headers by their names in lower case, repeated ones joined by commas, and the cookies, which have a place of their own.
fn fields(headers: &HeaderMap) -> (BTreeMap<String, String>, Vec<String>) {
    let mut fields = BTreeMap::<String, String>::new();
    let mut cookies = Vec::new();
    for (name, value) in &end_to_end(headers) {
        let value = String::from_utf8_lossy(value.as_bytes());
        if name == header::COOKIE {
            cookies.extend(value.split(';').map(|cookie| cookie.trim().to_owned()).filter(|cookie| !cookie.is_empty()));
            continue;
        }
        fields
            .entry(name.as_str().to_owned())
            .and_modify(|joined| {
                joined.push(',');
                joined.push_str(&value);
            })
            .or_insert_with(|| value.clone().into_owned());
    }
    (fields, cookies)
}

/// Decoded; the values of one name joined by commas.
fn parameters(query: &str) -> Value {
    let mut parameters = Map::new();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        let joined = match parameters.get(name.as_ref()).and_then(Value::as_str) {
            Some(before) => format!("{before},{value}"),
            None => value.into_owned(),
        };
        parameters.insert(name.into_owned(), Value::String(joined));
    }
    Value::Object(parameters)
}

/// Text as text, by its type alone; everything else, forms too, in base64.
fn put_body(event: &mut Map<String, Value>, body: &Bytes, headers: &HeaderMap) {
    if body.is_empty() {
        return;
    }
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let content_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_text = content_type.starts_with("text/")
        || matches!(content_type.as_str(), "application/json" | "application/xml" | "application/javascript");
    let text = std::str::from_utf8(body).ok().filter(|_text| is_text);
    event.insert("isBase64Encoded".to_owned(), text.is_none().into());
    event.insert("body".to_owned(), text.map_or_else(|| BASE64_STANDARD.encode(body), str::to_owned).into());
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn of(request: axum::http::request::Builder, body: &[u8]) -> Value {
        let (parts, ()) = request.body(()).unwrap().into_parts();
        event(&parts, &Bytes::copy_from_slice(body), "abc.lambda-url.us-east-1.on.aws", "id-1", "Root=1-2")
    }

    #[test]
    fn a_request_is_what_a_function_url_makes_of_it() {
        let request = Request::post("/agent/a%20b?x=1&y=a%20b&x=2")
            .header("Content-Type", "application/json; charset=utf-8")
            .header("Cookie", "a=1; b=2")
            .header("X-Many", "one")
            .header("X-Many", "two")
            .header("Authorization", "Bearer t")
            .header("Connection", "keep-alive");
        let event = of(request, br#"{"a": 1}"#);
        assert_eq!((&event["version"], &event["routeKey"]), (&json!("2.0"), &json!("$default")));
        assert_eq!((&event["rawPath"], &event["rawQueryString"]), (&json!("/agent/a%20b"), &json!("x=1&y=a%20b&x=2")));
        assert_eq!(event["queryStringParameters"], json!({"x": "1,2", "y": "a b"}));
        assert_eq!(event["cookies"], json!(["a=1", "b=2"]));
        assert_eq!((&event["body"], &event["isBase64Encoded"]), (&json!(r#"{"a": 1}"#), &json!(false)));
        let headers = &event["headers"];
        assert_eq!((&headers["x-many"], &headers["authorization"]), (&json!("one,two"), &json!("Bearer t")));
        assert_eq!(headers["host"], "abc.lambda-url.us-east-1.on.aws");
        assert!(headers.get("cookie").is_none() && headers.get("connection").is_none(), "{headers}");
        let context = &event["requestContext"];
        assert_eq!((&context["stage"], &context["accountId"]), (&json!("$default"), &json!("anonymous")));
        assert_eq!((&context["requestId"], &context["apiId"]), (&json!("id-1"), &json!("abc")));
        assert_eq!((&context["http"]["method"], &context["http"]["path"]), (&json!("POST"), &json!("/agent/a%20b")));
    }

    #[test]
    fn only_text_travels_as_text() {
        for (content_type, body, encoded) in [
            ("text/plain", "ä".as_bytes(), false),
            ("application/xml", b"<a/>", false),
            ("application/x-www-form-urlencoded", b"a=1", true),
            ("application/problem+json", b"{}", true),
            ("text/plain", b"\xff", true),
        ] {
            let event = of(Request::post("/").header("content-type", content_type), body);
            assert_eq!(event["isBase64Encoded"], encoded, "{content_type}");
            let expected =
                if encoded { BASE64_STANDARD.encode(body) } else { String::from_utf8(body.to_vec()).unwrap() };
            assert_eq!(event["body"], expected);
        }
        let empty = of(Request::get("/"), b"");
        for absent in ["body", "cookies", "queryStringParameters"] {
            assert!(empty.get(absent).is_none(), "{absent}");
        }
        assert_eq!(empty["isBase64Encoded"], false);
    }
}
