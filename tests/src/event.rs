//! API Gateway's events (HTTP API 2.0, REST API 1.0), and a function's answer.

use std::{
    collections::BTreeMap,
    io::Read as _,
    time::{Duration, Instant},
};

use lambda_http::{Body, Context, Request, RequestExt, Response, http::HeaderValue};
use serde_json::{Value, json};
use shared::models::Timestamp;

/// A request to a function.
#[derive(Debug, Clone)]
pub struct Event {
    pub method: String,
    pub path: String,
    pub query: Vec<(String, String)>,
    pub headers: BTreeMap<String, String>,
    pub body: Option<String>,
    /// The `sub` of the JWT, if the authorizer accepted one.
    pub user: Option<String>,
    /// The sender's address.
    pub source: String,
    /// The function's remaining time.
    pub time: Duration,
    /// The stage variables of a REST API.
    pub stage: BTreeMap<String, String>,
}

/// A sample of an API's own request id.
const REQUEST_ID: &str = "JKJaXmPLvHcESHA=";

impl Event {
    pub fn new(method: &str, path: &str) -> Self {
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            query: Vec::new(),
            headers: BTreeMap::from([("host".to_owned(), "api.switchboard.example".to_owned())]),
            body: None,
            user: None,
            source: "192.0.2.7".to_owned(),
            time: Duration::from_secs(28),
            stage: BTreeMap::new(),
        }
    }

    pub fn get(path: &str) -> Self {
        Self::new("GET", path)
    }

    pub fn post(path: &str, body: &Value) -> Self {
        Self::new("POST", path).header("content-type", "application/json").text(body.to_string())
    }

    #[must_use]
    pub fn text(mut self, body: impl Into<String>) -> Self {
        self.body = Some(body.into());
        self
    }

    #[must_use]
    pub fn user(mut self, subject: &str) -> Self {
        self.user = Some(subject.to_owned());
        self
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.to_ascii_lowercase(), value.to_owned());
        self
    }

    #[must_use]
    pub fn query(mut self, name: &str, value: &str) -> Self {
        self.query.push((name.to_owned(), value.to_owned()));
        self
    }

    #[must_use]
    pub fn from_address(mut self, source: &str) -> Self {
        source.clone_into(&mut self.source);
        self
    }

    /// Sets the function's remaining time.
    #[must_use]
    pub fn within(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// The event of an HTTP API.
    pub fn to_json(&self) -> Value {
        let raw_query: Vec<String> = self.query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut event = json!({
            "version": "2.0",
            "routeKey": "$default",
            "rawPath": self.path,
            "rawQueryString": raw_query.join("&"),
            "headers": self.headers,
            "requestContext": {
                "accountId": "123456789012",
                "apiId": "abcdefghij",
                "domainName": "api.switchboard.example",
                "domainPrefix": "api",
                "http": {
                    "method": self.method,
                    "path": self.path,
                    "protocol": "HTTP/1.1",
                    "sourceIp": self.source,
                    "userAgent": "tests",
                },
                "requestId": REQUEST_ID,
                "routeKey": "$default",
                "stage": "$default",
                "time": "20/Nov/2026:16:20:52 +0000",
                "timeEpoch": 1_795_191_652_123_i64,
            },
            "isBase64Encoded": false,
        });
        if !self.query.is_empty() {
            event["queryStringParameters"] = self.query.iter().map(|(n, v)| (n.clone(), json!(v))).collect();
        }
        if let Some(body) = &self.body {
            event["body"] = json!(body);
        }
        if let Some(user) = &self.user {
            let claims =
                json!({"sub": user, "iss": "https://issuer.example", "aud": "switchboard", "exp": "1795195252"});
            event["requestContext"]["authorizer"] = json!({"jwt": {"claims": claims, "scopes": null}});
        }
        event
    }

    /// The event of a REST API.
    pub fn to_rest_json(&self) -> Value {
        let all = |pairs: &mut dyn Iterator<Item = (&String, &String)>| {
            let mut all = BTreeMap::<String, Vec<String>>::new();
            for (name, value) in pairs {
                all.entry(name.clone()).or_default().push(value.clone());
            }
            all
        };
        let last = |all: &BTreeMap<String, Vec<String>>| -> Value {
            all.iter().map(|(name, values)| (name.clone(), json!(values.last()))).collect()
        };
        let headers = all(&mut self.headers.iter());
        let query = all(&mut self.query.iter().map(|(name, value)| (name, value)));
        let some =
            |value: Value| if value.as_object().is_some_and(serde_json::Map::is_empty) { Value::Null } else { value };
        json!({
            "resource": "/{proxy+}",
            "path": self.path,
            "httpMethod": self.method,
            "headers": last(&headers),
            "multiValueHeaders": headers,
            "queryStringParameters": some(last(&query)),
            "multiValueQueryStringParameters": some(json!(query)),
            "pathParameters": null,
            "stageVariables": some(json!(self.stage)),
            "requestContext": {
                "accountId": "123456789012",
                "apiId": "abcdefghij",
                "domainName": "stream.switchboard.example",
                "domainPrefix": "stream",
                "httpMethod": self.method,
                "identity": {"sourceIp": "192.0.2.7", "userAgent": "tests"},
                "path": format!("/live{}", self.path),
                "protocol": "HTTP/1.1",
                "requestId": REQUEST_ID,
                "requestTimeEpoch": 1_795_191_652_123_i64,
                "resourcePath": "/{proxy+}",
                "stage": "live",
            },
            "body": self.body,
            "isBase64Encoded": false,
        })
    }

    /// The request as the runtime passes it to the function's handler: a REST API's for `stream`.
    pub fn to_request(&self, function: &str) -> Request {
        let event = if function == "stream" { self.to_rest_json() } else { self.to_json() };
        request(&event, self.time)
    }
}

/// The runtime's request for an event; the handler has `time` to run.
pub fn request(event: &Value, time: Duration) -> Request {
    let request = lambda_http::request::from_str(&event.to_string()).expect("an event of API Gateway's");
    let mut context = Context::default();
    "8476a536-e9f4-11e8-9739-2dfe598c3fcd".clone_into(&mut context.request_id);
    context.deadline = u64::try_from(Timestamp::now().plus(time).as_millis()).expect("a time after 1970");
    request.with_lambda_context(context)
}

#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub content_type: String,
    /// JSON, or text for XML; null if empty.
    pub body: Value,
    /// The header `Retry-After`.
    pub retry_after: Option<String>,
    /// All headers; names in lower case.
    pub headers: BTreeMap<String, String>,
    /// When the answer was ready; later work follows it.
    pub at: Instant,
}

impl Answer {
    pub(crate) fn read(response: &Response<Body>) -> Self {
        let at = Instant::now();
        let text = |value: &HeaderValue| value.to_str().is_ok_and(|value| value.starts_with("text/"));
        let text = response.headers().get("content-type").is_some_and(text);
        let unzipped = response.headers().get("content-encoding").map(|coding| {
            let (mut text, bytes) = (String::new(), response.body().as_ref());
            let read = match coding.as_bytes() {
                b"br" => brotli::Decompressor::new(bytes, 4096).read_to_string(&mut text),
                _gzip => flate2::read::GzDecoder::new(bytes).read_to_string(&mut text),
            };
            read.expect("nothing else is compressed");
            Body::Text(text)
        });
        let body = match unzipped.as_ref().unwrap_or_else(|| response.body()) {
            Body::Text(body) if text => body.as_str().into(),
            Body::Binary(bytes) if text => String::from_utf8_lossy(bytes).into(),
            Body::Text(text) => serde_json::from_str(text).expect("an answer is JSON"),
            Body::Binary(bytes) if bytes.is_empty() => Value::Null,
            Body::Binary(bytes) => serde_json::from_slice(bytes).expect("an answer is JSON"),
            _ => Value::Null,
        };
        let header = |name: &str| response.headers().get(name)?.to_str().ok().map(str::to_owned);
        let (status, content_type) = (response.status().as_u16(), header("content-type").unwrap_or_default());
        let headers = response.headers().iter();
        let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().expect("plain text").to_owned()));
        Self { status, content_type, body, retry_after: header("retry-after"), headers: headers.collect(), at }
    }

    /// The body; panics unless the answer has this status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        self.body
    }

    /// The field names of a 422, in order.
    #[track_caller]
    pub fn wrong_fields(&self) -> Vec<String> {
        assert_eq!(self.status, 422, "{}", self.body);
        assert_eq!(self.content_type, "application/problem+json");
        let errors = self.body["errors"].as_array().expect("errors");
        let mut fields: Vec<String> =
            errors.iter().map(|error| error["field"].as_str().expect("field").to_owned()).collect();
        fields.sort();
        fields
    }

    /// The sentence for the model, from a failed execution.
    #[track_caller]
    pub fn sentence(&self) -> &str {
        assert_eq!(self.status, 200, "{}", self.body);
        assert_eq!(self.body["success"], false, "{}", self.body);
        self.body["error"].as_str().expect("a sentence")
    }

    /// The result of a successful execution.
    #[track_caller]
    pub fn result(&self) -> &Value {
        assert_eq!(self.status, 200, "{}", self.body);
        assert_eq!(self.body["success"], true, "{}", self.body);
        &self.body["result"]
    }
}
