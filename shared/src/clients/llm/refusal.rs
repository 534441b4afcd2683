//! Parses the errors of LLM gateways.
//!
//! | gateway | body |
//! |---|---|
//! | OpenRouter | `{"error": {"code": 429, "message", "metadata"?: {"error_type"?, "provider_code"?, "limit_source"?, …}}}` |
//! | OpenAI | `{"error": {"message", "type", "param", "code": "context_length_exceeded" \| null}}` |
//! | vLLM | `{"object": "error", "message", "type", "code": 400}` |
//! | Google | OpenAI's form, in a list |
//! | Mistral | vLLM's form; or `message` is `{"detail": [{"type", "loc": ["body", …], "msg"}]}` |
//! | CDN or proxy | HTML |

use reqwest::header::HeaderMap;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::{
    super::{
        Error, Failure, ModelParameter, Reason, UpstreamService,
        http_client::{excerpt, retry_after},
    },
    Message,
};

const TOO_LONG: [&str; 4] = ["context_length_exceeded", "token_limit_exceeded", "string_too_long", "payload_too_large"];
const NO_CREDIT: [&str; 4] =
    ["payment_required", "insufficient_quota", "insufficient_credits", "billing_hard_limit_reached"];
const MODERATED: [&str; 4] = ["content_policy_violation", "content_filter", "moderation", "refusal"];
const RATE_LIMITED: [&str; 3] = ["rate_limit_exceeded", "rate_limited", "too_many_requests"];
const CREDENTIALS: [&str; 4] = ["authentication", "authentication_error", "invalid_api_key", "permission_denied"];
const UNKNOWN: [&str; 2] = ["model_not_found", "not_found"];
const TOO_LONG_IN_WORDS: [&str; 4] = [
    // OpenAI and vLLM.
    "maximum context length",
    // Anthropic.
    "prompt is too long",
    // Google.
    "exceeds the maximum number of tokens",
    // Bedrock.
    "input is too long",
];
const UNSUPPORTED: [&str; 2] = ["unsupported_parameter", "unsupported_value"];
const INVALID: [&str; 6] = [
    "invalid_request",
    "invalid_request_error",
    "invalid_prompt",
    "invalid_image",
    "unprocessable",
    "precondition_failed",
];

/// OpenRouter's mark that running requests hold the remaining budget.
const IN_FLIGHT: &str = "openrouter_in_flight_budget";

/// Consecutive characters of the conversation that count as a quotation.
const QUOTATION: usize = 16;

pub(super) struct Private<'a> {
    pub(super) messages: &'a [Message],
    pub(super) secret: &'a SecretString,
}

#[derive(Default)]
struct ErrorBody {
    /// A numeric `code`, also as text.
    number: Option<u16>,
    words: Vec<String>,
    message: String,
    parameter: Option<String>,
    in_flight: bool,
    /// With status 403: a spent budget.
    limited: bool,
    flagged: bool,
}

pub(super) fn of(status: u16, headers: &HeaderMap, body: &[u8], private: &Private<'_>) -> Error {
    let said = match serde_json::from_slice(body) {
        Ok(body) => ErrorBody::by(&body),
        Err(_no_json) => ErrorBody { message: String::from_utf8_lossy(body).into_owned(), ..ErrorBody::default() },
    };
    let error = said.error(status, Some(private));
    let wait = if error.transient() { retry_after(headers) } else { None };
    Error { retry_after: wait, ..error }
}

/// The error inside a success: the value of `error`, or a whole body of vLLM's. Its message is kept only with `private`, against
/// which it is checked.
pub(super) fn inside(error: &Value, private: Option<&Private<'_>>) -> Error {
    let said = ErrorBody::by(error);
    let known = |words: &[&str]| said.is_any(words);
    let status = match said.number {
        Some(number @ 400..=599) => number,
        _ if known(&RATE_LIMITED) => 429,
        _ if known(&CREDENTIALS) => 401,
        _ if known(&UNKNOWN) => 404,
        _ if known(&INVALID) => 400,
        _ => 502,
    };
    said.error(status, private)
}

impl ErrorBody {
    fn by(body: &Value) -> Self {
        let body = body.get(0).unwrap_or(body);
        let error = match body.get("error") {
            None | Some(Value::Null) => body,
            Some(error) => error,
        };
        let metadata = error.get("metadata").unwrap_or(&Value::Null);
        let text = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).map(str::to_owned);
        let code = error.get("code").unwrap_or(&Value::Null);
        let number = match code {
            Value::String(text) => text.parse().ok(),
            other => other.as_u64().and_then(|number| u16::try_from(number).ok()),
        };
        let words = [
            text(error, "code").filter(|_| number.is_none()),
            text(error, "type"),
            text(metadata, "error_type"),
            text(metadata, "provider_code"),
        ];
        let message = ["message", "detail"].iter().find_map(|name| sentence(error.get(*name)?));
        Self {
            number,
            words: words
                .into_iter()
                .flatten()
                .filter(|word| is_word(word))
                .map(|word| word.to_ascii_lowercase())
                .collect(),
            message: message.or_else(|| error.as_str().map(str::to_owned)).unwrap_or_default(),
            parameter: text(error, "param"),
            in_flight: text(metadata, "limit_source").is_some_and(|source| source == IN_FLIGHT),
            limited: metadata.get("limit_source").is_some(),
            flagged: ["patterns", "reasons", "flagged_input"].iter().any(|name| metadata.get(*name).is_some()),
        }
    }

    fn is_any(&self, words: &[&str]) -> bool {
        self.words.iter().any(|word| words.contains(&word.as_str()))
    }

    fn error(&self, status: u16, private: Option<&Private<'_>>) -> Error {
        if status == 402 && self.in_flight {
            return Error::new(UpstreamService::Llm, Failure::RateLimited);
        }
        let reason = self.reason(status);
        let excerpt = || self.shown(private);
        let failure = match status {
            _ if reason.is_some() => Failure::Rejected { status, excerpt: excerpt() },
            429 => Failure::RateLimited,
            // OpenAI's libraries retry 408 and 409 beside server errors.
            408 | 409 | 500.. => Failure::Broken { status, excerpt: excerpt() },
            _ => Failure::Rejected { status, excerpt: excerpt() },
        };
        Error { reason, ..Error::new(UpstreamService::Llm, failure) }
    }

    fn reason(&self, status: u16) -> Option<Reason> {
        let message = self.message.to_ascii_lowercase();
        let declined = (400..=499).contains(&status);
        // A rate may be exceeded in the same words.
        let says = |words: &str| declined && status != 429 && message.contains(words);
        if self.is_any(&TOO_LONG) || status == 413 || TOO_LONG_IN_WORDS.into_iter().any(says) {
            Some(Reason::TooLong)
        } else if status == 402
            || self.is_any(&NO_CREDIT)
            || (status == 403 && self.limited)
            || says("credit balance is too low")
        {
            Some(Reason::NoCredit)
        } else if self.is_any(&MODERATED) || (status == 403 && self.flagged) {
            Some(Reason::Moderated)
        } else if matches!(status, 401 | 403) {
            Some(Reason::Credentials)
        } else if status == 404 || self.is_any(&["model_not_found"]) || message.contains("is not a valid model") {
            declined.then_some(Reason::UnknownModel)
        } else if matches!(status, 400 | 422) {
            self.unsupported(&message).map(Reason::Unsupported)
        } else {
            None
        }
    }

    /// The rejected parameter. OpenAI names it in `param`; gateways often pass on only the sentence.
    fn unsupported(&self, message: &str) -> Option<ModelParameter> {
        let says = ["unsupported", "not supported", "does not support", "not permitted", "deprecated"];
        let says = says.iter().any(|words| message.contains(words)) || self.is_any(&UNSUPPORTED);
        let is = |name: &str| self.parameter.as_deref().map_or_else(|| message.contains(name), |named| named == name);
        if says && is("temperature") {
            return Some(ModelParameter::Temperature);
        }
        if says && is("max_tokens") && message.contains("max_completion_tokens") {
            return Some(ModelParameter::MaxTokensByThatName);
        }
        if says && (is("max_tokens") || is("max_completion_tokens")) {
            return Some(ModelParameter::MaxTokens);
        }
        let options = match &self.parameter {
            Some(named) => named.starts_with("stream_options"),
            // A sentence may quote the request.
            None if message.contains("'input'") => false,
            None if says || message.contains("unrecognized") => message.contains("stream_options"),
            None => message.contains("body.stream_options"),
        };
        options.then_some(ModelParameter::StreamOptions)
    }

    fn shown(&self, private: Option<&Private<'_>>) -> String {
        let words = self.words.join(" ");
        let message = private.map_or("", |_| &self.message);
        let separator = if words.is_empty() || message.is_empty() { "" } else { ": " };
        let text = format!("{words}{separator}{message}");
        let shown = excerpt(text.as_bytes());
        // `text` is compared only up to a length. Removing texts shortens it, so the excerpt may reach beyond and is compared
        // too.
        let quotes = private.is_some_and(|private| private.is_in(&text) || private.is_in(&shown));
        if quotes { words } else { shown }
    }
}

impl Private<'_> {
    pub(super) fn bytes(&self) -> usize {
        self.messages.iter().map(|message| message.content.len()).sum()
    }

    /// Whether the text quotes private texts. Some gateways quote the rejected request.
    fn is_in(&self, text: &str) -> bool {
        let secret = self.secret.expose_secret();
        if !secret.is_empty() && text.contains(secret) {
            return true;
        }
        let characters: Vec<char> = text.chars().take(LONGEST_COMPARED).collect();
        // Any quotation of one and a half times this length contains a compared window.
        characters.windows(QUOTATION).step_by(QUOTATION / 2).any(|window| {
            let part: String = window.iter().collect();
            self.messages.iter().any(|message| message.content.contains(&part))
        })
    }
}

/// Characters; longer than an excerpt.
const LONGEST_COMPARED: usize = 400;

/// A text, or the list of `FastAPI`'s problems without the `input` that each may quote.
fn sentence(said: &Value) -> Option<String> {
    let problems = match said {
        Value::String(text) => return Some(text.clone()),
        Value::Array(problems) => problems,
        other => other.get("detail")?.as_array()?,
    };
    let problems = problems.iter().filter_map(|problem| {
        let place = problem.get("loc").and_then(Value::as_array).into_iter().flatten();
        let place: Vec<_> = place.map(|part| part.as_str().map_or_else(|| part.to_string(), str::to_owned)).collect();
        Some(format!("{}: {}", place.join("."), problem.get("msg")?.as_str()?))
    });
    Some(problems.collect::<Vec<_>>().join("; ")).filter(|text| !text.is_empty())
}

/// An identifier, not a sentence.
fn is_word(text: &str) -> bool {
    text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(status: u16, body: &Value) -> Error {
        let private = Private { messages: &[], secret: &"".into() };
        of(status, &HeaderMap::new(), body.to_string().as_bytes(), &private)
    }

    #[test]
    fn refusals_are_told_apart_by_their_next_step() {
        let openrouter =
            |code: u16, metadata: Value| json!({"error": {"code": code, "message": "x", "metadata": metadata}});
        let openai =
            |code: Value, kind: &str| json!({"error": {"message": "x", "type": kind, "param": null, "code": code}});
        let anthropic =
            |message: &str| json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}});
        for (status, body, reason) in [
            (401, openrouter(401, json!({})), Some(Reason::Credentials)),
            (401, openai(json!("invalid_api_key"), "invalid_request_error"), Some(Reason::Credentials)),
            (402, openrouter(402, json!({})), Some(Reason::NoCredit)),
            (403, openrouter(403, json!({"limit_source": "key", "resets_at": "x"})), Some(Reason::NoCredit)),
            (429, openai(json!("insufficient_quota"), "insufficient_quota"), Some(Reason::NoCredit)),
            (403, openrouter(403, json!({"patterns": ["p"]})), Some(Reason::Moderated)),
            (403, openrouter(403, json!({"reasons": ["r"], "flagged_input": "f"})), Some(Reason::Moderated)),
            (400, openrouter(400, json!({"error_type": "content_policy_violation"})), Some(Reason::Moderated)),
            (400, openai(json!("content_filter"), "x"), Some(Reason::Moderated)),
            (403, openrouter(403, json!({"error_type": "permission_denied"})), Some(Reason::Credentials)),
            (400, openrouter(400, json!({"error_type": "context_length_exceeded"})), Some(Reason::TooLong)),
            (400, openai(json!("context_length_exceeded"), "invalid_request_error"), Some(Reason::TooLong)),
            (502, openrouter(502, json!({"error_type": "context_length_exceeded"})), Some(Reason::TooLong)),
            (413, json!("<html>"), Some(Reason::TooLong)),
            (
                400,
                json!({"object": "error", "message": "This model's maximum context length is 4096 tokens.", "code": 400}),
                Some(Reason::TooLong),
            ),
            (400, anthropic("prompt is too long: 208310 tokens > 200000 maximum"), Some(Reason::TooLong)),
            (
                400,
                json!([{"error": {"code": 400, "status": "INVALID_ARGUMENT",
                    "message": "The input token count (134123) exceeds the maximum number of tokens allowed (131072)."}}]),
                Some(Reason::TooLong),
            ),
            (400, json!({"message": "Input is too long for requested model."}), Some(Reason::TooLong)),
            (500, json!({"message": "Input is too long for requested model."}), None),
            (
                400,
                anthropic("Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing."),
                Some(Reason::NoCredit),
            ),
            (404, openai(json!("model_not_found"), "invalid_request_error"), Some(Reason::UnknownModel)),
            (
                400,
                json!({"error": {"code": 400, "message": "x/y is not a valid model ID"}}),
                Some(Reason::UnknownModel),
            ),
            (400, openai(Value::Null, "invalid_request_error"), None),
            (
                400,
                json!([{"error": {"code": 400, "message": "API key not valid", "status": "INVALID_ARGUMENT"}}]),
                None,
            ),
            (500, json!({"detail": "boom"}), None),
            (
                400,
                json!({"error": {"message": "Unsupported value: 'temperature' does not support 0.3 with this model.",
                    "type": "invalid_request_error", "param": "temperature", "code": "unsupported_value"}}),
                Some(Reason::Unsupported(ModelParameter::Temperature)),
            ),
            (
                400,
                json!({"error": {"message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                    "type": "invalid_request_error", "param": "max_tokens", "code": "unsupported_parameter"}}),
                Some(Reason::Unsupported(ModelParameter::MaxTokensByThatName)),
            ),
            (
                400,
                json!({"error": {"code": 400, "message": "Unsupported parameter: max_tokens"}}),
                Some(Reason::Unsupported(ModelParameter::MaxTokens)),
            ),
            (400, json!({"error": {"code": 400, "message": "temperature must be at most 2"}}), None),
            (400, json!({"error": {"code": 400, "message": "images are not supported"}}), None),
        ] {
            let error = read(status, &body);
            assert_eq!(error.reason, reason, "{status} {body}");
            assert_eq!(error.transient(), status == 500, "{status} {body}");
            assert_eq!(error.status(), Some(status), "{status} {body}");
        }
    }

    #[test]
    fn stream_options_count_as_refused_only_where_they_are_named() {
        for (status, body, refused) in [
            (
                422,
                json!({"object": "error", "type": "invalid_request_error", "message": {"detail": [{
                    "type": "extra_forbidden", "loc": ["body", "stream_options", "include_usage"],
                    "msg": "Extra inputs are not permitted",
                }]}}),
                true,
            ),
            (
                422,
                json!({"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"], "msg": "x"}]}),
                true,
            ),
            (
                400,
                json!({"error": {"message": "Unrecognized request argument supplied: stream_options",
                    "type": "invalid_request_error", "param": null, "code": null}}),
                true,
            ),
            (422, json!({"detail": [{"loc": ["body", "messages", 0], "msg": "Field required"}]}), false),
            (400, json!({"error": {"message": "tools[0]: unknown name include_usage; see stream_options"}}), false),
            (
                400,
                json!({"message": "{'type': 'extra_forbidden', 'loc': ('body',), 'input': {'stream_options': {}}}"}),
                false,
            ),
        ] {
            let reason = refused.then_some(Reason::Unsupported(ModelParameter::StreamOptions));
            assert_eq!(read(status, &body).reason, reason, "{status} {body}");
        }
    }

    #[test]
    fn an_error_inside_a_success_counts_as_its_code() {
        let private = Private { messages: &[], secret: &"".into() };
        for (error, status, transient) in [
            (json!({"code": 502, "message": "x"}), 502, true),
            (json!({"code": "429", "message": "x"}), 429, true),
            (json!({"code": 402, "message": "x"}), 402, false),
            (json!({"code": "server_error", "message": "x"}), 502, true),
            (json!({"code": "rate_limit_exceeded"}), 429, true),
            (json!({"message": "x", "metadata": {"error_type": "authentication"}}), 401, false),
            (json!({"type": "invalid_request_error", "code": null}), 400, false),
            (json!({"code": 0}), 502, true),
            (json!("overloaded"), 502, true),
            (json!({"object": "error", "message": "x", "type": "BadRequestError", "code": 400}), 400, false),
        ] {
            let read = inside(&error, Some(&private));
            assert_eq!((read.status(), read.transient()), (Some(status), transient), "{error}");
        }
    }

    #[test]
    fn neither_the_conversation_nor_the_key_is_repeated() {
        let messages = [Message::user("My name is Ada Lovelace, and I was born on a Sunday.")];
        let private = Private { messages: &messages, secret: &"sk-12345".into() };
        let shown = |message: &str| {
            let body = json!({"error": {"message": message, "type": "t", "code": null}}).to_string();
            of(400, &HeaderMap::new(), body.as_bytes(), &private).to_string()
        };
        assert!(shown("messages[0] has no role").contains("t: messages[0] has no role"));
        for quoting in [
            "[{'type': 'string_type', 'loc': ('body', 'messages', 0), 'input': 'My name is Ada Lovelace, and I was born'}]",
            "cannot take \"My name is Ada Lovelace\"",
            "Incorrect API key provided: sk-12345",
        ] {
            let shown = shown(quoting);
            assert!(!shown.contains("Ada") && !shown.contains("sk-12345"), "{shown}");
        }
        let problems = json!({"message": {"detail": [{
            "loc": ["body", "messages", 0, "name"], "msg": "Extra inputs are not permitted",
            "input": "My name is Ada Lovelace, and I was born on a Sunday.",
        }]}});
        let problems = of(422, &HeaderMap::new(), problems.to_string().as_bytes(), &private).to_string();
        assert!(problems.contains("body.messages.0.name: Extra inputs") && !problems.contains("Ada"), "{problems}");
        let html = of(524, &HeaderMap::new(), b"<html>My name is Ada Lovelace, and", &private).to_string();
        assert!(!html.contains("Ada"), "{html}");
    }
}
