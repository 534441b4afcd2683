//! `api_request`: calls an HTTP address through the guarded client.
//!
//! ```json
//! {"type": "api_request", "method": "GET", "url": Parameter, "headers": {"x-api-key": Parameter}, "body": {"name": Parameter},
//!  "allowed_hosts": ["api.example.com"], "signing_secret"?: Parameter}
//! ```
//!
//! The model sees `url`, `header_<name>` and `body_<name>` where their mode allows. A GET or DELETE has no body: the members of
//! `body` become the query. Another body is JSON, or a form if its header says so (`content_type.rs`). `allowed_hosts` also
//! restricts redirects; it is required if the model chooses the address and the tool has a secret.

use std::collections::BTreeMap;

use reqwest::{
    Method,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    ActionCall, Parameter, content_type,
    no_request::{NoRequest, NotRun},
    parameters::{Place, all_hidden, argument_name, fixed_text, object, parameter, parameters},
    refusal,
    secret_values::{FixedValue, SentAs, end_of_host, first_secret},
    signed,
    variables::{self, Encoding},
};
use crate::{
    clients::{
        self, Failure, StatusEffect,
        outbound::{Answer, DecodedBody, Request, RequestBody, compressed, field_text},
    },
    fields::Fields,
    models::{AllowedHosts, ExecutionId, Fault},
    placeholder::Placeholder,
    redaction::{HiddenTexts, SECRET},
    tool::{CallContext, Conversation, Effect, ToolOutcome},
};

/// Bytes.
pub(super) const LARGEST_ANSWER: usize = 1024 * 1024;
/// Headers that change the destination, the framing or the answer's encoding; older rows may have them.
const FORBIDDEN_HEADERS: [&str; 7] =
    ["accept-encoding", "connection", "content-length", "host", "proxy-authorization", "transfer-encoding", "upgrade"];

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApiRequest {
    #[serde(with = "http_serde::method")]
    method: Method,
    url: Parameter,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<String, Parameter>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    body: BTreeMap<String, Parameter>,
    #[serde(default, skip_serializing_if = "AllowedHosts::is_empty")]
    allowed_hosts: AllowedHosts,
    /// Signs the body (`signed.rs`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signing_secret: Option<Parameter>,
}

impl ApiRequest {
    pub(super) fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let method = fields.required_text("method", 10).and_then(|method| match method.to_ascii_uppercase().as_str() {
            "GET" => Some(Method::GET),
            "POST" => Some(Method::POST),
            "PUT" => Some(Method::PUT),
            "PATCH" => Some(Method::PATCH),
            "DELETE" => Some(Method::DELETE),
            _ => {
                fields.problem("method", "must be one of GET, POST, PUT, PATCH, DELETE");
                None
            }
        });
        let url = parameter(fields, "url");
        if let Some(url) = url.as_ref().and_then(|url| fixed_text(url, "url", fields)) {
            // Variables may appear in the path or query, but must not choose the host.
            let no_host = (!names_host(url)).then(|| "must be an https address whose host is written out".to_owned());
            if let Some(mistake) = no_host.or_else(|| variables::unknown_in(url)) {
                fields.problem("url.value", mistake);
            }
        }
        let headers = parameters(fields, "headers", |name| {
            argument_name(name) && HeaderName::from_bytes(name.as_bytes()).is_ok()
        });
        for (name, header) in &headers {
            let is_forbidden = is_forbidden(name);
            let name = format!("headers.{name}");
            if is_forbidden {
                fields.problem(&name, "is set with each request and cannot be chosen; leave it out");
            } else if fixed_text(header, &name, fields).is_some_and(|text| header_value(text).is_none()) {
                fields.problem(&format!("{name}.value"), "has a line break or control character");
            }
        }
        let body = parameters(fields, "body", argument_name);
        if method.as_ref().is_some_and(|method| !has_query_only(method)) {
            content_type::check(fields, &headers, &body);
        }
        let allowed_hosts = AllowedHosts::read(fields);
        let signing_secret = signed::read_secret(fields, method.as_ref(), &headers);
        let request = Self { method: method?, url: url?, headers, body, allowed_hosts, signing_secret };
        if matches!(request.url, Parameter::Ai { .. })
            && let Some(secret) = request.secret_for_any_host()
        {
            fields.problem(
                "allowed_hosts",
                format!(
                    "is required: the model fills in url, and {secret} is a secret that would go wherever it says; list the \
                     hosts that may have it, or make url fixed, or say \"secret\": false of {secret}"
                ),
            );
        }
        Some(request)
    }

    /// All addresses with their fields: the fixed one, and one for each allowed host.
    pub fn addresses(&self) -> Vec<(&'static str, String)> {
        let own = match &self.url {
            Parameter::Fixed { value: Value::String(url), .. } => Some(("url.value", url.clone())),
            _ => None,
        };
        let hosts = self.allowed_hosts.hosts().map(|host| ("allowed_hosts", format!("https://{host}/")));
        own.into_iter().chain(hosts).collect()
    }

    /// The field of a secret that the model could send to any host, if any.
    fn secret_for_any_host(&self) -> Option<String> {
        let host_is_fixed = matches!(&self.url, Parameter::Fixed { value: Value::String(url), .. } if names_host(url));
        if host_is_fixed || !self.allowed_hosts.is_empty() {
            return None;
        }
        first_secret(self.clone().fixed_values())
    }

    pub(super) fn fixed_values(&mut self) -> Vec<FixedValue<'_>> {
        let url = FixedValue::of_parameter("url".into(), "url", SentAs::Address, &mut self.url);
        let headers = self.headers.iter_mut().filter_map(|(name, parameter)| {
            FixedValue::of_parameter(format!("headers.{name}"), name, SentAs::Header, parameter)
        });
        let body = self.body.iter_mut().filter_map(|(name, parameter)| {
            FixedValue::of_parameter(format!("body.{name}"), name, SentAs::Member, parameter)
        });
        let signing = self
            .signing_secret
            .as_mut()
            .and_then(|secret| FixedValue::of_parameter(signed::FIELD.into(), signed::FIELD, SentAs::Header, secret));
        url.into_iter().chain(headers).chain(body).chain(signing).collect()
    }

    pub(super) fn parameters(&self) -> Vec<(Place, &Parameter)> {
        let within = |object: &str, prefix: &str, name: &String| Place {
            field: format!("{object}.{name}"),
            argument: format!("{prefix}_{name}"),
        };
        let mut all = vec![(Place::named("url"), &self.url)];
        all.extend(self.headers.iter().map(|(name, parameter)| (within("headers", "header", name), parameter)));
        all.extend(self.body.iter().map(|(name, parameter)| (within("body", "body", name), parameter)));
        all
    }

    pub(super) fn static_config(&self) -> Value {
        Value::Object(object([
            ("method", Some(self.method.as_str().into())),
            ("url", self.url.hidden()),
            ("headers", Some(all_hidden(&self.headers))),
            ("body", Some(all_hidden(&self.body))),
            (signed::FIELD, self.signing_secret.as_ref().and_then(Parameter::hidden)),
        ]))
    }

    pub(super) fn has_effect(&self) -> bool {
        self.method != Method::GET
    }

    pub(super) async fn run(
        &self,
        call: ActionCall<'_>,
        id: ExecutionId,
        hidden: &HiddenTexts,
    ) -> Result<ToolOutcome, NotRun> {
        let mut request = self.request(call)?;
        let ActionCall { services, context, .. } = call;
        let mut must_be_once = self.has_effect();
        if let Some(secret) = &self.signing_secret {
            let id = signed::message_id(context, id);
            if let Err(sentence) = signed::sign(&mut request, secret, &id) {
                return Err(NoRequest::of(Fault::Configuration, sentence).into());
            }
            must_be_once &= !signed::may_repeat(context);
        }
        let poll = context.source_poll();
        if let Some(poll) = poll {
            poll.ask_for_changes(&mut request.headers);
        }
        let outcome = match services.outbound.send(request, context.deadline).await {
            Ok(answer) if poll.is_some_and(|poll| poll.took(answer.status, &answer.headers)) => {
                ToolOutcome::succeeded(Value::Null)
            }
            Ok(answer) => report(&answer, self.has_effect(), must_be_once, &[], hidden),
            Err(error) => unanswered(error, must_be_once, |why| self.not_sent(why)),
        };
        let done = self.has_effect() && !outcome.is_failed();
        Ok(if done { outcome.with(Effect::Done) } else { outcome })
    }

    /// The request of [`ApiRequest::run`]: `{"method", "url", "headers", "body"?}`. The author's headers are masked, except those
    /// that are only a variable.
    pub(super) fn preview(&self, call: ActionCall<'_>) -> Result<Value, NotRun> {
        let request = self.request(call)?;
        let is_hidden = |name: &HeaderName| {
            self.headers.iter().any(|(own, parameter)| {
                name.as_str().eq_ignore_ascii_case(own)
                    && matches!(parameter, Parameter::Fixed { value, .. }
                        if value.as_str().and_then(Placeholder::only_placeholder_in).is_none())
            })
        };
        let signature = self.signing_secret.iter().map(|_| (signed::SIGNATURE.to_owned(), Value::from(SECRET)));
        Ok(shown(request, is_hidden, signature))
    }

    fn request(&self, call: ActionCall<'_>) -> Result<Request, NoRequest> {
        let ActionCall { services, context: CallContext { conversation, .. }, arguments } = call;
        let url = self.url.value(arguments.get("url"), conversation, Encoding::Url)?;
        let Some(Value::String(url)) = url else {
            return Err("The tool has no address to call; call it again with the address as url.".into());
        };
        let chosen_by = if self.is_address_of_model() { Fault::Model } else { Fault::Configuration };
        let refused = |why: &str| NoRequest::of(chosen_by, self.not_sent(why));
        let mut url = services.outbound.parse(&url).map_err(|why| refused(&why))?;
        self.allowed_hosts.check(&url).map_err(|why| refused(&why))?;
        // Validation rejects such tools now, but older rows may contain them.
        if self.secret_for_any_host().is_some() {
            return Err(NoRequest::of(
                Fault::Configuration,
                "The request was not sent: the tool has a secret and does not say to which hosts it may go. \
                 Its author must list them in allowed_hosts.",
            ));
        }
        let headers = self.header_map(conversation, arguments)?;
        let mut body = Map::new();
        for (name, parameter) in &self.body {
            let value = parameter.value(arguments.get(&format!("body_{name}")), conversation, Encoding::Plain)?;
            body.extend(value.map(|value| (name.clone(), value)));
        }
        let in_query = has_query_only(&self.method);
        if in_query && !body.is_empty() {
            let mut query = url.query_pairs_mut();
            for (name, value) in &body {
                query.append_pair(name, &field_text(value));
            }
        }
        let body = (!in_query && !self.body.is_empty()).then(|| {
            if content_type::is_form(&headers) {
                RequestBody::form(&body)
            } else {
                RequestBody::Json(Value::Object(body))
            }
        });
        let (method, allowed_hosts) = (self.method.clone(), self.allowed_hosts.clone());
        Ok(Request { method, url, headers, body, limit: LARGEST_ANSWER, allowed_hosts })
    }

    fn header_map(&self, conversation: &Conversation, arguments: &Map<String, Value>) -> Result<HeaderMap, NoRequest> {
        let mut headers = HeaderMap::new();
        for (name, parameter) in self.headers.iter().filter(|(name, _)| !is_forbidden(name)) {
            let value = parameter.value(arguments.get(&format!("header_{name}")), conversation, Encoding::Plain)?;
            let header = match value {
                None | Some(Value::Null) => continue,
                Some(Value::String(text)) => header_value(&text),
                // Validation admits text only, but older rows may have other types.
                Some(Value::Array(_) | Value::Object(_)) => None,
                Some(value) => header_value(&value.to_string()),
            };
            let (Ok(own), Some(header)) = (HeaderName::from_bytes(name.as_bytes()), header) else {
                return Err(unusable_header(name, parameter));
            };
            headers.insert(own, header);
        }
        Ok(headers)
    }

    const fn is_address_of_model(&self) -> bool {
        matches!(self.url, Parameter::Ai { .. })
    }

    /// The error for a refused address. The author's address goes to the log, not to the model.
    fn not_sent(&self, why: &str) -> String {
        if self.is_address_of_model() {
            return format!("The request was not sent: {why}.");
        }
        tracing::warn!("an api_request tool was refused its address: {why}");
        "The request was not sent: the tool's address, or one it redirects to, is not allowed.".into()
    }
}

/// `{"method", "url", "headers", "body"?}`, with further headers.
pub(super) fn shown(
    Request { method, url, headers, body, .. }: Request,
    is_hidden: impl Fn(&HeaderName) -> bool,
    further: impl Iterator<Item = (String, Value)>,
) -> Value {
    let headers = headers.iter().map(|(name, value)| {
        let shown = if is_hidden(name) { SECRET.into() } else { String::from_utf8_lossy(value.as_bytes()) };
        (name.as_str().to_owned(), Value::from(shown))
    });
    Value::Object(object([
        ("method", Some(method.as_str().into())),
        ("url", Some(url.as_str().into())),
        ("headers", Some(headers.chain(further).collect())),
        ("body", body.map(RequestBody::shown)),
    ]))
}

fn is_forbidden(name: &str) -> bool {
    FORBIDDEN_HEADERS.iter().any(|forbidden| name.eq_ignore_ascii_case(forbidden))
}

const fn has_query_only(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::DELETE)
}

/// `None` for text with a line break or control character.
fn header_value(text: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(text.trim()).ok()
}

fn unusable_header(name: &str, parameter: &Parameter) -> NoRequest {
    if matches!(parameter, Parameter::Fixed { .. }) {
        let sentence = format!(
            "The request was not sent: the tool's header {name} is not one line of text. Its author must correct it."
        );
        return NoRequest::of(Fault::Configuration, sentence);
    }
    format!("The argument \"header_{name}\" cannot be used as a header; give one line of text.").into()
}

/// `acts`: the request has an effect; `once`: and must not be repeated. `refused_by`: see [`refusal::refused`].
pub(super) fn report(
    answer: &Answer,
    acts: bool,
    once: bool,
    refused_by: &[String],
    hidden: &HiddenTexts,
) -> ToolOutcome {
    let Answer { status, content_type, headers, body } = answer;
    if let (200..=299, false, Some(compressed)) = (*status, body.is_empty(), compressed(headers)) {
        return of_compressed(&compressed, acts, !refused_by.is_empty());
    }
    let decoded = answer.decoded();
    let text = hidden.replaced(&decoded.text);
    // Redacted after parsing: JSON escapes could hide a secret from the text search above.
    let json = serde_json::from_str(&decoded.text).ok().map(|json| hidden.replaced_in(json));
    match status {
        200..=299 => {
            if let Some(refused) = json.as_ref().and_then(|json| refusal::refused(json, refused_by, once)) {
                return refused;
            }
            let result = json.unwrap_or_else(|| match kind_of_file(content_type, &decoded) {
                Some(kind) => {
                    format!("The service answered with {kind} of {} bytes, which cannot be shown here.", body.len())
                        .into()
                }
                None if content_type.starts_with("text/") || !text.is_empty() => text.into(),
                None => Value::Null,
            });
            let ran = ToolOutcome::succeeded(result);
            if once { ran.with(Effect::Done) } else { ran }
        }
        302 | 303 if once => {
            let told = format!("The service took the request and answered with a redirect (status {status}).");
            ToolOutcome::succeeded(told).with(Effect::Done)
        }
        _ if once && StatusEffect::of(*status) == StatusEffect::Unknown => ToolOutcome::unknown(format!(
            "The service answered with status {status}; it is not known whether it was done. Do not try again."
        )),
        _ => {
            let reason = json.as_ref().map(refusal::reason_in).unwrap_or_default();
            let told = ToolOutcome::failed(if reason.is_empty() {
                format!("The service answered with status {status}.")
            } else {
                format!("The service answered with status {status}: {reason}")
            })
            .at_fault(Fault::of_status(*status));
            // The caller may retry.
            match status {
                429 => told.because(clients::Error::new(clients::UpstreamService::Outbound, Failure::RateLimited)),
                500.. => {
                    let failure = Failure::Broken { status: *status, excerpt: String::new() };
                    told.because(clients::Error::new(clients::UpstreamService::Outbound, failure))
                }
                _ => told,
            }
        }
    }
}

fn of_compressed(compressed: &str, acts: bool, may_be_refusal: bool) -> ToolOutcome {
    let told = format!("The service answered with {compressed}.");
    match (acts, may_be_refusal) {
        (false, _) => ToolOutcome::failed(told).at_fault(Fault::Service),
        (true, false) => ToolOutcome::succeeded(told).with(Effect::Done),
        (true, true) => ToolOutcome::unknown(format!("{told} It is not known whether it was done. Do not try again.")),
    }
}

/// The kind of a binary body, in a word or two; `None` for text.
fn kind_of_file(content_type: &str, body: &DecodedBody<'_>) -> Option<String> {
    let named = content_type::media_type(content_type);
    let (kind, of) = named.split_once('/').unwrap_or_default();
    let text = kind == "text"
        || ["json", "xml", "yaml", "javascript", "x-www-form-urlencoded"].iter().any(|it| of.ends_with(it));
    let file = matches!(kind, "image" | "audio" | "video" | "font") && !text;
    // Bytes that cannot be decoded may be text in another charset; a NUL occurs only in binary data.
    let binary = body.text.contains('\0') || (!text && !body.is_whole);
    if body.text.is_empty() || !(file || binary) {
        return None;
    }
    let plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-+.".contains(&byte));
    let known = !of.is_empty() && of != "octet-stream" && named.len() <= 80 && plain(kind) && plain(of);
    Some(if known && !text { format!("a file ({named})") } else { "a binary file".to_owned() })
}

/// The outcome without an answer. `not_sent` words the refusal by the guard.
pub(super) fn unanswered(
    error: clients::Error,
    has_effect: bool,
    not_sent: impl FnOnce(&str) -> String,
) -> ToolOutcome {
    let told = match &error.failure {
        Failure::Refused(why) => ToolOutcome::failed(not_sent(why)),
        _ if has_effect && error.effect_possible() => {
            ToolOutcome::unknown("The service did not confirm; it is not known whether it was done. Do not try again.")
        }
        Failure::Unreachable => ToolOutcome::failed("The service cannot be reached just now; nothing was done."),
        Failure::TooLarge(_) => ToolOutcome::failed("The service's answer is too large to be read."),
        _ => ToolOutcome::failed("The service did not answer in time."),
    };
    told.because(error)
}

/// Whether the host is literal, without a variable.
fn names_host(url: &str) -> bool {
    let (origin, _) = url.split_at(end_of_host(url));
    let host = origin.split_once("://").filter(|(scheme, _)| matches!(*scheme, "https" | "http")).map(|(_, host)| host);
    host.is_some_and(|host| !host.is_empty() && !host.contains("{{"))
}
