//! The event of a request: payload format 1.0, as a REST API sends it.

use std::collections::BTreeMap;

use axum::{
    body::Bytes,
    http::{HeaderMap, request::Parts},
};
use serde_json::{Map, Value, json};
use shared::models::Timestamp;

use super::{STAGE, routes::Matched};
use crate::{aws::REGION, http_api::end_to_end};

/// Lambda's limit of an event, in bytes.
pub(super) const LARGEST_EVENT: usize = 6 * 1024 * 1024;

/// The API stage of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Stage {
    /// Id of its API.
    pub(super) api: String,
    pub(super) variables: BTreeMap<String, String>,
}

impl Stage {
    /// The API's host name on AWS, regardless of the request's own host.
    fn domain(&self) -> String {
        format!("{}.execute-api.{REGION}.amazonaws.com", self.api)
    }
}

/// The event of a request for `path` (without the stage); `request_id` is the gateway's.
pub(super) fn event(
    request: &Parts,
    (path, matched): (&str, &Matched),
    body: &Bytes,
    stage: &Stage,
    request_id: &str,
    trace: &str,
) -> Value {
    let now = Timestamp::now().as_millis();
    let time = jiff::Timestamp::from_millisecond(now).unwrap_or_default();
    let domain = stage.domain();
    let mut headers = fields(&request.headers);
    for (name, value) in [
        ("Host", domain.as_str()),
        ("X-Amzn-Trace-Id", trace),
        // Only this machine can reach this API.
        ("X-Forwarded-For", "127.0.0.1"),
        ("X-Forwarded-Port", "443"),
        ("X-Forwarded-Proto", "https"),
    ] {
        headers.insert(name.to_owned(), vec![value.to_owned()]);
    }
    let user_agent = headers.get("user-agent").and_then(|values| values.last()).cloned();
    let query = parameters(request.uri.query().unwrap_or_default());
    let pairs = |values: &BTreeMap<String, String>| if values.is_empty() { Value::Null } else { json!(values) };
    json!({
        "resource": matched.resource,
        "path": path,
        "httpMethod": request.method.as_str(),
        "headers": single(&headers),
        "multiValueHeaders": headers,
        // API Gateway sends null for an empty collection.
        "queryStringParameters": if query.is_empty() { Value::Null } else { single(&query) },
        "multiValueQueryStringParameters": if query.is_empty() { Value::Null } else { json!(query) },
        "pathParameters": pairs(&matched.parameters),
        "stageVariables": pairs(&stage.variables),
        "requestContext": {
            "accountId": "000000000000",
            "apiId": stage.api,
            "domainName": domain,
            "domainPrefix": stage.api,
            "extendedRequestId": request_id.get(..8).unwrap_or_default(),
            "httpMethod": request.method.as_str(),
            "identity": {"sourceIp": "127.0.0.1", "userAgent": user_agent},
            "path": format!("/{STAGE}{path}"),
            "protocol": "HTTP/1.1",
            "requestId": request_id,
            "requestTime": time.strftime("%d/%b/%Y:%H:%M:%S +0000").to_string(),
            "requestTimeEpoch": now,
            "resourceId": "local",
            "resourcePath": matched.resource,
            "stage": STAGE,
        },
        // The API declares no binary media types, so API Gateway treats every body as text.
        "body": if body.is_empty() { Value::Null } else { String::from_utf8_lossy(body).into() },
        "isBase64Encoded": false,
    })
}

/// Headers as written, with all their values.
fn fields(headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
    let mut fields = BTreeMap::<String, Vec<String>>::new();
    for (name, value) in &end_to_end(headers) {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        fields.entry(name.as_str().to_owned()).or_default().push(value);
    }
    fields
}

/// Decoded query parameters, with all values of each name.
fn parameters(query: &str) -> BTreeMap<String, Vec<String>> {
    let mut parameters = BTreeMap::<String, Vec<String>>::new();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        parameters.entry(name.into_owned()).or_default().push(value.into_owned());
    }
    parameters
}

fn single(all: &BTreeMap<String, Vec<String>>) -> Value {
    let last = |(name, values): (&String, &Vec<String>)| Some((name.clone(), values.last()?.clone().into()));
    Value::Object(all.iter().filter_map(last).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn of(request: axum::http::request::Builder, body: &[u8]) -> Value {
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let stage = Stage { api: "abc".to_owned(), ..Stage::default() };
        let parameters = BTreeMap::from([("id".to_owned(), "a b".to_owned())]);
        let matched = Matched { resource: "/agent/{id}".to_owned(), parameters };
        event(&parts, ("/agent/a%20b", &matched), &Bytes::copy_from_slice(body), &stage, "id-1", "Root=1-2")
    }

    #[test]
    fn a_request_has_the_form_of_a_rest_api() {
        let request = Request::post("/live/agent/a%20b?x=1&y=a%20b&x=2")
            .header("Content-Type", "application/json; charset=utf-8")
            .header("Cookie", "a=1; b=2")
            .header("X-Many", "one")
            .header("X-Many", "two")
            .header("Authorization", "Bearer t")
            .header("Connection", "keep-alive");
        let event = of(request, br#"{"a": 1}"#);
        assert_eq!((&event["resource"], &event["path"]), (&json!("/agent/{id}"), &json!("/agent/a%20b")));
        assert_eq!((&event["httpMethod"], &event["pathParameters"]), (&json!("POST"), &json!({"id": "a b"})));
        assert_eq!(event["queryStringParameters"], json!({"x": "2", "y": "a b"}));
        assert_eq!(event["multiValueQueryStringParameters"], json!({"x": ["1", "2"], "y": ["a b"]}));
        assert_eq!((&event["body"], &event["isBase64Encoded"]), (&json!(r#"{"a": 1}"#), &json!(false)));
        let headers = &event["headers"];
        assert_eq!((&headers["x-many"], &headers["authorization"]), (&json!("two"), &json!("Bearer t")));
        assert_eq!(
            (&headers["Host"], &headers["cookie"]),
            (&json!("abc.execute-api.us-east-1.amazonaws.com"), &json!("a=1; b=2"))
        );
        assert_eq!(event["multiValueHeaders"]["x-many"], json!(["one", "two"]));
        assert!(headers.get("connection").is_none() && headers.get("host").is_none(), "{headers}");
        let context = &event["requestContext"];
        assert_eq!((&context["stage"], &context["path"]), (&json!("live"), &json!("/live/agent/a%20b")));
        assert_eq!((&context["requestId"], &context["apiId"]), (&json!("id-1"), &json!("abc")));
        assert_eq!(
            (&context["resourcePath"], &context["identity"]["sourceIp"]),
            (&event["resource"], &json!("127.0.0.1"))
        );
    }

    #[test]
    fn absent_parts_of_an_event_are_null() {
        let event = of(Request::get("/"), b"");
        for absent in ["body", "queryStringParameters", "multiValueQueryStringParameters", "stageVariables"] {
            assert_eq!(event[absent], Value::Null, "{absent}");
        }
        assert_eq!(event["isBase64Encoded"], false);
        let bytes = of(Request::post("/").header("content-type", "application/octet-stream"), b"\xff");
        assert_eq!((&bytes["body"], &bytes["isBase64Encoded"]), (&json!("\u{fffd}"), &json!(false)));
    }
}
