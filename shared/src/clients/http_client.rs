//! HTTP clients, and requests to vendors.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use jiff::fmt::rfc2822;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{
    RequestBuilder, Response,
    header::{HeaderMap, RETRY_AFTER},
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Error, Failure, UpstreamService};
use crate::{
    Deadline,
    backoff::Backoff,
    error,
    models::Timestamp,
    redaction::{HiddenTexts, vendor_text},
    telemetry,
};

/// Bytes of an error body kept for the log.
const EXCERPT: usize = 300;

/// Unescaped in path segments, so that ids and keys stay readable.
const WRITTEN_OUT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_');

/// Bytes of a vendor's answer.
const LARGEST_ANSWER: usize = 4 * 1024 * 1024;

/// The client for vendors. It follows no redirects: no vendor's API uses them, and a bearer token must not follow one. Clones
/// share connections.
///
/// # Errors
/// If TLS cannot be set up, independent of input.
pub fn http_client() -> Result<reqwest::Client, crate::Error> {
    builder()?.build().map_err(crate::Error::internal)
}

/// The base of all clients: ring, Mozilla's roots compiled in (no bundle to parse at cold start), no proxy, no redirects, 2 s to
/// connect.
#[expect(clippy::disallowed_methods, reason = "this is the place the rule points to")]
pub(super) fn builder() -> Result<reqwest::ClientBuilder, crate::Error> {
    let tls = tls_config().map_err(crate::Error::internal)?;
    Ok(reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .connect_timeout(Duration::from_secs(2))
        .pool_idle_timeout(Duration::from_secs(60)))
}

/// Built once; clones share its parts.
fn tls_config() -> Result<rustls::ClientConfig, rustls::Error> {
    static TLS: OnceLock<rustls::ClientConfig> = OnceLock::new();
    if let Some(config) = TLS.get() {
        return Ok(config.clone());
    }
    let roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TLS.get_or_init(|| config).clone())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retry {
    /// The request is idempotent: retry on any transient failure.
    Harmless,
    /// The request has an effect: retry only if the service cannot have processed it.
    NeverProcessed,
}

/// Sends a request until success, a permanent failure, or the deadline; honours `Retry-After`. Returns the body of a 2xx answer.
pub(super) async fn send(
    service: UpstreamService,
    request: RequestBuilder,
    retry: Retry,
    deadline: Deadline,
) -> Result<Vec<u8>, Error> {
    let attempt = async |request: Option<RequestBuilder>| {
        let request = request
            .ok_or_else(|| Error::new(service, Failure::Undecodable("a streamed request cannot be sent".into())))?;
        once(service, request.timeout(deadline.remaining())).await
    };
    retrying(retry, deadline, || attempt(request.try_clone())).await
}

/// Repeats attempts until success, a permanent failure, or the deadline. If the service requests a longer wait than the remaining
/// time, the error is returned at once.
pub(super) async fn retrying<T, F: Future<Output = Result<T, Error>>>(
    retry: Retry,
    deadline: Deadline,
    mut attempt: impl FnMut() -> F,
) -> Result<T, Error> {
    let mut backoff = Backoff::at_most(3, Duration::from_millis(200), Duration::from_secs(2), deadline);
    let mut acted_before = false;
    loop {
        let error = match attempt().await {
            Ok(done) => return Ok(done),
            Err(error) => Error { acted_before, ..error },
        };
        acted_before = error.effect_possible();
        let again = match retry {
            Retry::Harmless => error.transient(),
            Retry::NeverProcessed => error.never_processed(),
        };
        if !again || !backoff.pause_for(error.retry_after()).await {
            return Err(error);
        }
    }
}

pub(super) async fn send_json<T: DeserializeOwned>(
    service: UpstreamService,
    request: RequestBuilder,
    retry: Retry,
    deadline: Deadline,
) -> Result<T, Error> {
    read_json(service, &send(service, request, retry, deadline).await?)
}

pub(super) fn read_json<T: DeserializeOwned>(service: UpstreamService, body: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(body).map_err(|error| Error::new(service, Failure::Undecodable(misread(&error))))
}

/// A message without data: serde quotes the value found, except for a missing field.
fn misread(error: &serde_json::Error) -> String {
    let text = error.to_string();
    if text.starts_with("missing field") || !error.is_data() {
        return text;
    }
    format!("a value of another kind was expected at line {} column {}", error.line(), error.column())
}

/// A failure of a request with the platform's account; a refusal of that account is reported to the operator.
pub(super) fn of_platform(error: Error) -> Error {
    let error = Error { of_platform: true, ..error };
    if error.refuses_platform() {
        let (service, chain) = (error.service, error::chain(&error));
        tracing::error!(upstream.service = %service, "the platform's account was refused: {chain}");
        telemetry::platform_refused();
    }
    error
}

/// `None` after a 404.
pub(super) fn unless_404<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.status() == Some(404) => Ok(None),
        Err(error) => Err(error),
    }
}

pub fn segment(id: &str) -> String {
    utf8_percent_encode(id, WRITTEN_OUT).to_string()
}

pub(super) async fn once(service: UpstreamService, request: RequestBuilder) -> Result<Vec<u8>, Error> {
    let sent = request.try_clone();
    let response = request.send().await.map_err(|error| not_sent(service, error))?;
    let status = response.status().as_u16();
    let retry_after = retry_after(response.headers());
    let body = read(response, LARGEST_ANSWER).await;
    match status {
        200..=299 => body.map_err(|error| error.of(service)),
        429 => Err(Error { retry_after, ..Error::new(service, Failure::RateLimited) }),
        _ => {
            let sent = sent.map(texts_of_request).unwrap_or_default();
            let excerpt = excerpt_without(&body.unwrap_or_default(), &sent);
            let broken = status >= 500;
            Err(Error::new(
                service,
                if broken { Failure::Broken { status, excerpt } } else { Failure::Rejected { status, excerpt } },
            ))
        }
    }
}

pub(super) fn not_sent(service: UpstreamService, error: reqwest::Error) -> Error {
    // The URL may contain a token or a phone number.
    let error = error.without_url();
    let failure = if error.is_connect() || error.is_builder() { Failure::Unreachable } else { Failure::NoAnswer };
    Error::because(service, failure, error)
}

/// The requested wait: `Retry-After` in seconds or as a date, or OpenAI's finer `retry-after-ms`.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let finer =
        text("retry-after-ms").and_then(|text| text.parse::<f64>().ok()).map(|milliseconds| milliseconds / 1000.0);
    if let Some(wait) = finer.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) {
        return Some(wait);
    }
    let text = text(RETRY_AFTER.as_str())?;
    match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_perhaps_a_date) => {
            let at = rfc2822::DateTimeParser::new().relaxed_weekday(true).parse_timestamp(text).ok()?;
            let wait = at.as_millisecond().saturating_sub(Timestamp::now().as_millis());
            Some(Duration::from_millis(u64::try_from(wait).unwrap_or(0)))
        }
    }
}

pub(super) enum BodyError {
    TooLarge(usize),
    Broken(reqwest::Error),
}

impl BodyError {
    pub(super) fn of(self, service: UpstreamService) -> Error {
        match self {
            Self::TooLarge(limit) => Error::new(service, Failure::TooLarge(limit)),
            Self::Broken(error) => Error::because(service, Failure::NoAnswer, error.without_url()),
        }
    }
}

pub(super) async fn read(mut response: Response, limit: usize) -> Result<Vec<u8>, BodyError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(BodyError::Broken)? {
        if body.len() + chunk.len() > limit {
            return Err(BodyError::TooLarge(limit));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The texts of a JSON or form body, for redaction: services quote them in errors.
fn texts_of_request(request: RequestBuilder) -> HiddenTexts {
    let request = request.build().ok();
    let body = request.as_ref().and_then(|request| request.body()?.as_bytes()).unwrap_or_default();
    let values = serde_json::from_slice(body).map_or_else(
        |_a_form| url::form_urlencoded::parse(body).map(|(_, value)| Value::from(value)).collect(),
        |json| vec![json],
    );
    HiddenTexts::of_request(&values)
}

/// The beginning of an error body for the log, cleaned; of a JSON error, its message.
pub(super) fn excerpt(body: &[u8]) -> String {
    excerpt_without(body, &HiddenTexts::default())
}

/// As [`excerpt`], without the request's texts. All error texts of services pass through here.
fn excerpt_without(body: &[u8], sent: &HiddenTexts) -> String {
    let (code, text) = match serde_json::from_slice::<Value>(body) {
        Ok(Value::Object(error)) => {
            // Twilio's code, which identifies its error.
            let code = error.get("code").map(|code| format!("{code}: ")).unwrap_or_default();
            let message = ["message", "error", "detail", "title"].iter().find_map(|name| error.get(*name));
            let text = message.map(|message| words(message) + &details(error.get("details")));
            match text {
                None => (String::new(), String::new()),
                Some(text) if error.get("code").is_some_and(Value::is_u64) => (code, text),
                Some(text) => (String::new(), code + &text),
            }
        }
        _ => (String::new(), String::from_utf8_lossy(body).into_owned()),
    };
    format!("{code}{}", vendor_text(&text, sent, EXCERPT))
}

fn words(message: &Value) -> String {
    let listed = || message.as_array()?.iter().map(Value::as_str).collect::<Option<Vec<_>>>();
    match (message.as_str(), listed()) {
        (Some(text), _) => text.to_owned(),
        (None, Some(texts)) => texts.join("; "),
        (None, None) => message.to_string(),
    }
}

/// Pipedream's messages per prop: an object of texts.
fn details(details: Option<&Value>) -> String {
    let members = details.and_then(Value::as_object).into_iter().flatten();
    let told: Vec<String> = members.filter_map(|(name, of)| Some(format!("{name} {}", of.as_str()?))).collect();
    if told.is_empty() { String::new() } else { format!(": {}", told.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_says_in_three_ways_how_long_to_wait() {
        let wait = |headers: &[(&'static str, &str)]| {
            let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            retry_after(&headers.collect())
        };
        assert_eq!(wait(&[("retry-after", " 60 ")]), Some(Duration::from_secs(60)));
        assert_eq!(wait(&[("retry-after", "0.5")]), Some(Duration::from_millis(500)));
        assert_eq!(wait(&[("retry-after", "7"), ("retry-after-ms", "250")]), Some(Duration::from_millis(250)));
        assert_eq!(wait(&[("retry-after", "7"), ("retry-after-ms", "soon")]), Some(Duration::from_secs(7)));
        assert_eq!(wait(&[("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")]), Some(Duration::ZERO));
        let far = wait(&[("retry-after", "Wed, 21 Oct 2122 07:28:00 GMT")]).unwrap();
        assert!(far > Duration::from_secs(60 * 60 * 24 * 365), "{far:?}");
        for nonsense in ["-1", "NaN", "inf", "1e300", "soon", ""] {
            assert_eq!(wait(&[("retry-after", nonsense)]), None, "{nonsense}");
        }
        assert_eq!(wait(&[]), None);
    }

    #[test]
    fn an_excerpt_keeps_the_code_and_hides_personal_data() {
        let body = br#"{"code":21211,"message":"The 'To' number 5551234567 is not valid.","status":400}"#;
        assert_eq!(excerpt(body), "21211: The 'To' number [number] is not valid.");
        assert_eq!(excerpt(br#"{"message":["property tools should not exist"]}"#), "property tools should not exist");
        assert_eq!(
            excerpt(br#"{"error":"props are not valid","details":{"to":"must be of type string[]","n":1}}"#),
            "props are not valid: to must be of type string[]"
        );
        assert_eq!(excerpt(b"<html>"), "<html>");
        let body = br#"{"message":"No ana@example.com for sk-live-abcdefghijkl, session_token=abc"}"#;
        assert_eq!(excerpt(body), "No [email] for [secret], session_token=[secret]");
        assert!(excerpt("word ".repeat(1_000).as_bytes()).ends_with(" of 5000 bytes)"));
    }
}
