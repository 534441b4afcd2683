//! Parses a model's answer.
//!
//! Parsed by hand: serde's type errors quote the value, and answers are private.

use serde_json::Value;

use super::{
    super::{Error, Failure, UpstreamService},
    refusal::{self, Private},
    unusable,
};
use crate::models::Spent;

#[derive(Debug, Clone, PartialEq)]
pub struct Completion {
    /// May be empty: such an answer was billed too, and [`Completion::finish`] may tell the reason. A model's `refusal` is here
    /// with [`Finish::Refusal`].
    pub text: String,
    pub tool_calls: Vec<ToolCall>,
    pub finish: Finish,
    pub usage: Usage,
    pub model: String,
    pub id: Option<String>,
}

impl Completion {
    /// The text; `None` if it is empty, cut off or a refusal.
    pub fn usable_text(&self) -> Option<&str> {
        let unusable = matches!(self.finish, Finish::Length | Finish::ContentFilter | Finish::Refusal);
        Some(self.text.trim()).filter(|text| !unusable && !text.is_empty())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    Stop,
    /// The text is cut at `max_tokens` or at the model's own limit.
    Length,
    ContentFilter,
    ToolCalls,
    /// The model declined, in its own words.
    Refusal,
    Other,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub total_tokens: u64,
    /// Prompt tokens read from the provider's cache.
    pub cached_tokens: u64,
    /// In the gateway's credits, US dollars at OpenRouter; absent if not reported. Includes the provider's price when the account
    /// uses its own key there.
    pub cost: Option<f64>,
    /// The gateway reported no tokens; estimated by length, so that limits still apply.
    pub estimated: bool,
}

impl From<Usage> for Spent {
    fn from(usage: Usage) -> Self {
        let Usage { prompt_tokens, completion_tokens, cached_tokens, cost, .. } = usage;
        Self { prompt_tokens, completion_tokens, cached_tokens, cost: cost.unwrap_or_default(), ..Self::default() }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// JSON text, unchecked.
    pub arguments: String,
}

/// Parses the body of a success. `id` and `model` are the defaults if the gateway omits them.
pub(super) fn whole(body: &[u8], id: Option<String>, model: &str, private: &Private<'_>) -> Result<Completion, Error> {
    let answer: Value = serde_json::from_slice(body).map_err(|error| {
        unusable(format!("the body is not JSON (line {}, column {})", error.line(), error.column()))
    })?;
    if let Some(error) = error_in(&answer) {
        return Err(refusal::inside(error, Some(private)));
    }
    let choices = answer.get("choices").and_then(Value::as_array).ok_or_else(|| unusable("choices is missing"))?;
    let choice = choices.first().ok_or_else(|| unusable("choices[0] is missing"))?;
    if let Some(error) = error_in(choice) {
        return Err(refusal::inside(error, Some(private)));
    }
    let finish = finish_in(choice)?;
    let message = choice.get("message").filter(|message| message.is_object());
    let message = message.ok_or_else(|| unusable("choices[0].message is missing"))?;
    let said = content_of(message).ok_or_else(|| unusable("choices[0].message.content is not text"))?;
    let (text, finish) = match message.get("refusal").and_then(Value::as_str) {
        Some(refusal) if said.is_empty() && !refusal.is_empty() => (refusal.to_owned(), Finish::Refusal),
        _ => (said, finish.unwrap_or(Finish::Other)),
    };
    let tool_calls = tool_calls(message)?;
    let usage = Usage::read(answer.get("usage")).unwrap_or_else(|| Usage::guess(private.bytes(), &text, &tool_calls));
    let told = |name: &str| text_at(&answer, name).filter(|text| !text.is_empty());
    Ok(Completion {
        text,
        tool_calls,
        finish,
        usage,
        model: told("model").unwrap_or(model.to_owned()),
        id: told("id").or(id),
    })
}

pub(super) fn error_in(value: &Value) -> Option<&Value> {
    if value.get("object").and_then(Value::as_str) == Some("error") {
        return Some(value);
    }
    value.get("error").filter(|error| !error.is_null())
}

/// `None`: not finished yet.
pub(super) fn finish_in(choice: &Value) -> Result<Option<Finish>, Error> {
    let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) else { return Ok(None) };
    Ok(Some(match reason {
        "stop" => Finish::Stop,
        "length" => Finish::Length,
        "content_filter" => Finish::ContentFilter,
        "tool_calls" | "function_call" => Finish::ToolCalls,
        "error" => {
            let failure = Failure::Broken { status: 502, excerpt: "finish_reason: error".into() };
            return Err(Error::new(UpstreamService::Llm, failure));
        }
        _ => Finish::Other,
    }))
}

/// Text, nothing, or a list of parts, as from some reasoning models. `None`: any other form.
pub(super) fn content_of(message: &Value) -> Option<String> {
    match message.get("content") {
        None | Some(Value::Null) => Some(String::new()),
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Array(parts)) => {
            let texts = parts.iter().filter(|part| part.get("type").and_then(Value::as_str) == Some("text"));
            Some(texts.filter_map(|part| text_at(part, "text")).collect())
        }
        Some(_) => None,
    }
}

fn tool_calls(message: &Value) -> Result<Vec<ToolCall>, Error> {
    let calls = message.get("tool_calls").and_then(Value::as_array).into_iter().flatten().enumerate();
    calls
        .map(|(index, call)| {
            let function = call.get("function").unwrap_or(&Value::Null);
            let missing = || unusable(format!("choices[0].message.tool_calls[{index}].function.name is missing"));
            Ok(ToolCall {
                id: text_at(call, "id").unwrap_or_else(|| format!("call_{index}")),
                name: text_at(function, "name").ok_or_else(missing)?,
                arguments: match function.get("arguments") {
                    None | Some(Value::Null) => String::new(),
                    Some(Value::String(text)) => text.clone(),
                    Some(object) => object.to_string(),
                },
            })
        })
        .collect()
}

pub(super) fn text_at(value: &Value, name: &str) -> Option<String> {
    value.get(name).and_then(Value::as_str).map(str::to_owned)
}

impl Usage {
    /// `None`: not reported.
    pub(super) fn read(usage: Option<&Value>) -> Option<Self> {
        let usage = usage?.as_object()?;
        let number = |value: Option<&Value>| value.and_then(Value::as_u64);
        let (prompt, completion) = (number(usage.get("prompt_tokens")), number(usage.get("completion_tokens")));
        if prompt.is_none() && completion.is_none() {
            return None;
        }
        let (prompt_tokens, completion_tokens) = (prompt.unwrap_or(0), completion.unwrap_or(0));
        let cached = usage.get("prompt_tokens_details").and_then(|details| details.get("cached_tokens"));
        let amount = |value: Option<&Value>| value.and_then(Value::as_f64).filter(|amount| *amount >= 0.0);
        let upstream = usage.get("cost_details").and_then(|details| details.get("upstream_inference_cost"));
        let own_key = usage.get("is_byok").and_then(Value::as_bool) == Some(true);
        let upstream = amount(upstream).filter(|_| own_key).unwrap_or(0.0);
        Some(Self {
            prompt_tokens,
            completion_tokens,
            total_tokens: number(usage.get("total_tokens")).unwrap_or(prompt_tokens.saturating_add(completion_tokens)),
            cached_tokens: number(cached).unwrap_or(0),
            cost: amount(usage.get("cost")).map(|cost| cost + upstream),
            estimated: false,
        })
    }

    /// Estimates four bytes per token; `asked`: bytes of the conversation.
    pub(super) fn guess(asked: usize, text: &str, calls: &[ToolCall]) -> Self {
        let tokens = |bytes: usize| u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX);
        let prompt_tokens = tokens(asked);
        let called = calls.iter().map(|call| call.name.len() + call.arguments.len()).sum::<usize>();
        let completion_tokens = tokens(text.len() + called);
        let total_tokens = prompt_tokens.saturating_add(completion_tokens);
        Self { prompt_tokens, completion_tokens, total_tokens, cached_tokens: 0, cost: None, estimated: true }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::Message, *};

    fn read(body: &Value) -> Result<Completion, Error> {
        let messages = [Message::user("12345678")];
        let private = Private { messages: &messages, secret: &"".into() };
        whole(body.to_string().as_bytes(), None, "asked", &private)
    }

    fn answering(message: &Value) -> Value {
        json!({"id": "gen-1", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    }

    #[test]
    fn text_stands_in_several_places() {
        for (message, text, finish) in [
            (json!({"content": "Hello"}), "Hello", Finish::Stop),
            (json!({"content": null}), "", Finish::Stop),
            (json!({"content": ""}), "", Finish::Stop),
            (json!({}), "", Finish::Stop),
            (json!({"content": null, "refusal": "I will not."}), "I will not.", Finish::Refusal),
            (json!({"content": "Hello", "refusal": null}), "Hello", Finish::Stop),
            (
                json!({"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]}),
                "Hello",
                Finish::Stop,
            ),
        ] {
            let read = read(&answering(&message)).unwrap();
            assert_eq!((read.text.as_str(), read.finish), (text, finish), "{message}");
        }
    }

    #[test]
    fn the_end_has_a_name() {
        for (reason, finish) in [
            (json!("stop"), Finish::Stop),
            (json!("length"), Finish::Length),
            (json!("tool_calls"), Finish::ToolCalls),
            (json!("content_filter"), Finish::ContentFilter),
            (json!("eos"), Finish::Other),
            (Value::Null, Finish::Other),
        ] {
            let mut body = answering(&json!({"content": "x"}));
            body["choices"][0]["finish_reason"] = reason.clone();
            assert_eq!(read(&body).unwrap().finish, finish, "{reason}");
        }
        let mut body = answering(&json!({"content": "x"}));
        body["choices"][0]["finish_reason"] = json!("error");
        assert!(read(&body).unwrap_err().transient());
    }

    #[test]
    fn a_missing_field_is_named_without_quoting_the_answer() {
        for (body, path) in [
            (json!({"id": "gen-1"}), "choices is missing"),
            (json!({"choices": "private"}), "choices is missing"),
            (json!({"choices": []}), "choices[0] is missing"),
            (json!({"choices": [{"finish_reason": "stop"}]}), "choices[0].message is missing"),
            (json!({"choices": [{"message": "private"}]}), "choices[0].message is missing"),
            (answering(&json!({"content": {"private": 1}})), "choices[0].message.content is not text"),
            (
                answering(&json!({"tool_calls": [{"function": {"arguments": "private"}}]})),
                "choices[0].message.tool_calls[0].function.name is missing",
            ),
            (json!("private"), "choices is missing"),
        ] {
            let error = read(&body).unwrap_err();
            assert!(matches!(&error.failure, Failure::Undecodable(what) if what == path), "{body}: {error}");
        }
        let private = Private { messages: &[], secret: &"".into() };
        let error = whole(b"\n\nprivate", None, "m", &private).unwrap_err();
        assert!(error.to_string().ends_with("the body is not JSON (line 3, column 1)"), "{error}");
    }

    #[test]
    fn usage_is_kept_and_guessed_where_it_is_not_told() {
        let usage = |usage: Value| {
            let mut body = answering(&json!({"content": "abcde"}));
            body["usage"] = usage;
            read(&body).unwrap().usage
        };
        let told = json!({
            "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "cost": 0.25, "is_byok": false,
            "prompt_tokens_details": {"cached_tokens": 8}, "cost_details": {"upstream_inference_cost": 2.0},
        });
        let expected = Usage {
            prompt_tokens: 10,
            completion_tokens: 5,
            total_tokens: 15,
            cached_tokens: 8,
            cost: Some(0.25),
            estimated: false,
        };
        assert_eq!(usage(told.clone()), expected);
        let mut own_key = told;
        own_key["is_byok"] = json!(true);
        assert_eq!(usage(own_key).cost, Some(2.25));
        let sum = usage(json!({"prompt_tokens": 10, "completion_tokens": 5, "cost": null}));
        assert_eq!((sum.total_tokens, sum.cost, sum.estimated), (15, None, false));
        for none in [Value::Null, json!({}), json!({"total_tokens": "x"})] {
            let guessed = usage(none);
            assert_eq!((guessed.prompt_tokens, guessed.completion_tokens, guessed.total_tokens), (2, 2, 4));
            assert!(guessed.estimated && guessed.cost.is_none());
        }
    }

    #[test]
    fn calls_of_functions_are_kept_as_they_were_written() {
        let calls = json!({"content": null, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "send_sms", "arguments": "{\"to\":"}},
            {"type": "function", "function": {"name": "x", "arguments": {"a": 1}}},
        ]});
        let calls = read(&answering(&calls)).unwrap().tool_calls;
        let of = |id: &str, name: &str, arguments: &str| ToolCall {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
        };
        assert_eq!(calls, [of("call_1", "send_sms", "{\"to\":"), of("call_1", "x", "{\"a\":1}")]);
    }
}
