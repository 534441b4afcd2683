//! VAPI's two kinds of requests, and the answer to each.
//!
//! - `apiRequest`: the raw object of the model's arguments with the tool's static parameters merged in, here one called
//!   `metadata`. Earlier clients put the arguments under `parameters`.
//! - `tool-calls`: `{"message": {"type": "tool-calls", "toolCallList": [...], "call", "customer", "phoneNumber"}}`, where a
//!   list item is `{id, function: {name, arguments}}`, `{id, name, arguments}` or `{id, name, parameters}`, the arguments an
//!   object or JSON text. A `metadata` among the arguments is the model's word, unless it holds the tool's token, which no
//!   model knows.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use shared::{
    Error, Result,
    actions::sms,
    described::Described,
    http::Reply,
    models::{CALL_METADATA, CallId, E164, ExecutionId},
    tool::{Subject, arguments},
};

/// A request of VAPI's to run a tool. Without `Debug`, because of its token.
pub(crate) struct Invocation {
    pub(crate) metadata: Metadata,
    pub(crate) requested: Vec<Requested>,
    kind: MessageKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageKind {
    ApiRequest,
    ToolCalls,
}

/// About the call, as VAPI says; none of it is believed before `numbers::verify`.
#[derive(Default)]
pub(crate) struct Metadata {
    pub(crate) token: Option<String>,
    pub(crate) call_id: Option<CallId>,
    pub(crate) caller: Option<String>,
    pub(crate) called: Option<E164>,
    /// Hints of our own, from when the tool was made: it has no effect that would need a claim; these are its arguments, which
    /// older tools without an effect do not have.
    pub(crate) read_only: bool,
    arguments: Option<Vec<String>>,
}

/// One execution that is asked for.
#[derive(Debug)]
pub(crate) struct Requested {
    pub(crate) id: ExecutionId,
    /// Names the request where neither the call nor the caller is known: VAPI's id of the tool call, else `id`.
    pub(crate) name: String,
    /// VAPI's id and the function's name, which the answer repeats.
    call: Option<(String, String)>,
    pub(crate) arguments: Map<String, Value>,
    /// Why the arguments could not be read; the model is told so, because VAPI shows it no status but 200.
    pub(crate) unreadable: Option<String>,
}

/// The answer to a `tool-calls` message.
#[derive(Serialize, Described)]
pub(crate) struct ToolCallResults {
    results: Vec<ToolCallResult>,
}

#[derive(Serialize, Described)]
#[serde(rename_all = "camelCase")]
struct ToolCallResult {
    tool_call_id: String,
    name: String,
    #[serde(flatten)]
    outcome: Outcome,
}

/// VAPI takes strings only, without line breaks.
#[derive(Serialize, Described)]
#[serde(untagged)]
enum Outcome {
    Error {
        #[schema(pattern = r"^[^\r\n]*$")]
        error: String,
    },
    Result {
        /// JSON of the answer that the other shape has.
        #[schema(pattern = r"^[^\r\n]*$")]
        result: String,
    },
}

impl Invocation {
    /// # Errors
    /// [`Error::Malformed`] for a body of another kind.
    pub(crate) fn read(body: Value) -> Result<Self> {
        let Value::Object(mut body) = body else {
            return Err(Error::Malformed("the body must be a JSON object".into()));
        };
        match body.get_mut("message").filter(|message| message.get("type").is_some_and(|kind| kind == "tool-calls")) {
            Some(message) => Self::tool_calls(&message.take()),
            None => Ok(Self::api_request(body)),
        }
    }

    fn api_request(mut body: Map<String, Value>) -> Self {
        let metadata = Metadata::read(&body.remove(CALL_METADATA).unwrap_or_default());
        let is_argument = metadata.arguments.iter().flatten().any(|name| name == "parameters");
        let nested = body.len() == 1 && !is_argument;
        let arguments = match body.remove("parameters") {
            Some(Value::Object(arguments)) if nested => arguments,
            Some(own) => {
                body.insert("parameters".into(), own);
                body
            }
            None => body,
        };
        Self { metadata, requested: vec![Requested::new(None, arguments, None)], kind: MessageKind::ApiRequest }
    }

    fn tool_calls(message: &Value) -> Result<Self> {
        let list = message.get("toolCallList").or_else(|| message.get("toolCalls")).and_then(Value::as_array);
        let list = list.ok_or_else(|| Error::Malformed("message.toolCallList must be a list".into()))?;
        let mut with_token = None;
        let requested = list
            .iter()
            .map(|item| {
                let function = item.get("function").unwrap_or(item);
                let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
                let arguments = function.get("arguments").or_else(|| function.get("parameters"));
                let (mut arguments, unreadable) = match read_arguments(arguments) {
                    Ok(arguments) => (arguments, None),
                    Err(sentence) => (Map::new(), Some(sentence)),
                };
                if let Some(own) = arguments.remove(CALL_METADATA) {
                    with_token = with_token.take().or(Some(Metadata::read(&own)).filter(|own| own.token.is_some()));
                }
                let call = Some((text(item.get("id")), text(function.get("name"))));
                Requested::new(call, arguments, unreadable)
            })
            .collect();
        let metadata = Metadata::of_message(message).or(with_token.unwrap_or_default());
        Ok(Self { metadata, requested, kind: MessageKind::ToolCalls })
    }

    /// Whether a request is for another tool than the one at this address: it names one, or names none beside others that do.
    pub(crate) fn names_another_tool(&self, requested: &Requested, tool: &str) -> bool {
        let Some((_, name)) = &requested.call else { return false };
        let alone = self.requested.len() == 1;
        name != tool && !(alone && name.is_empty())
    }

    /// Whose effect an execution is, as far as VAPI's word goes.
    pub(crate) fn subject<'a>(&'a self, requested: &'a Requested) -> Subject<'a> {
        Subject::of(self.metadata.call_id.as_ref(), self.metadata.caller.as_deref(), &requested.name)
    }

    /// The arguments under which the effect of the execution at `index` can be claimed before the tool is known: the
    /// tool's arguments at the time of its registration at VAPI. None when an earlier execution of the same message
    /// has the same: the claim would wait for an execution that waits for the claim.
    pub(crate) fn claimable(&self, index: usize) -> Option<Map<String, Value>> {
        let significant = |requested: &Requested| {
            let mut arguments = arguments::significant(&requested.arguments);
            if let Some(names) = &self.metadata.arguments {
                arguments.retain(|name, _| names.contains(name));
            }
            sms::as_only_recipients(&mut arguments);
            arguments
        };
        let (this, earlier) = self.requested.get(..=index)?.split_last()?;
        let arguments = significant(this);
        let again = earlier.iter().any(|earlier| significant(earlier) == arguments);
        (this.unreadable.is_none() && !self.metadata.read_only && !again).then_some(arguments)
    }

    /// The answers, in the order they were asked for.
    pub(crate) fn answer(&self, answers: Vec<Map<String, Value>>) -> Result<Reply> {
        if self.kind == MessageKind::ApiRequest {
            return Reply::ok(&answers.into_iter().next().unwrap_or_default());
        }
        let results = self.requested.iter().zip(answers).map(|(requested, answer)| {
            let (tool_call_id, name) = requested.call.clone().unwrap_or_default();
            let outcome = match answer.get("error").and_then(Value::as_str) {
                Some(sentence) => Outcome::Error { error: sentence.replace(['\r', '\n'], " ") },
                None => Outcome::Result { result: Value::Object(answer).to_string() },
            };
            ToolCallResult { tool_call_id, name, outcome }
        });
        Reply::ok(&ToolCallResults { results: results.collect() })
    }
}

impl Metadata {
    /// What the message itself says of the call.
    fn of_message(message: &Value) -> Self {
        let at = |path: &str| message.pointer(path).and_then(Value::as_str).and_then(present);
        Self {
            call_id: at("/call/id").and_then(|id| id.parse().ok()),
            caller: at("/customer/number").or_else(|| at("/call/customer/number")).map(str::to_owned),
            called: at("/phoneNumber/number").and_then(|number| number.parse().ok()),
            ..Self::default()
        }
    }

    /// Missing fields come from `other`.
    fn or(self, other: Self) -> Self {
        Self {
            call_id: self.call_id.or(other.call_id),
            caller: self.caller.or(other.caller),
            called: self.called.or(other.called),
            ..other
        }
    }

    fn read(metadata: &Value) -> Self {
        let text = |name: &str| metadata.get(name).and_then(Value::as_str).and_then(present);
        Self {
            token: text("token").map(str::to_owned),
            call_id: text("callId").and_then(|id| id.parse().ok()),
            caller: text("callerPhoneNumber").map(str::to_owned),
            called: text("calledPhoneNumber").and_then(|number| number.parse().ok()),
            read_only: metadata.get("readOnly").and_then(Value::as_bool).unwrap_or(false),
            arguments: metadata.get("arguments").and_then(|names| Vec::deserialize(names).ok()),
        }
    }
}

impl Requested {
    fn new(call: Option<(String, String)>, arguments: Map<String, Value>, unreadable: Option<String>) -> Self {
        let id = ExecutionId::generate();
        let named = call.as_ref().map(|(id, _)| id.clone()).filter(|id| !id.is_empty());
        Self { id, name: named.unwrap_or_else(|| id.to_string()), call, arguments, unreadable }
    }

    /// VAPI's id of the tool call, which a redelivery of the message keeps.
    pub(crate) fn tool_call_id(&self) -> Option<&str> {
        self.call.as_ref().map(|(id, _)| id.as_str()).filter(|id| !id.is_empty())
    }
}

/// The arguments of a `tool-calls` item: an object, or the JSON text of one.
fn read_arguments(arguments: Option<&Value>) -> Result<Map<String, Value>, String> {
    let parsed = match arguments {
        Some(Value::String(text)) if text.trim().is_empty() => return Ok(Map::new()),
        Some(Value::String(text)) => serde_json::from_str(text)
            .map_err(|error| format!("The arguments are not valid JSON ({error}); call the tool again."))?,
        Some(value) => value.clone(),
        None => return Ok(Map::new()),
    };
    match parsed {
        Value::Object(arguments) => Ok(arguments),
        Value::Null => Ok(Map::new()),
        _ => Err("The arguments must be a JSON object; call the tool again.".into()),
    }
}

/// Liquid resolves an unknown name to nothing, and has been seen to leave a template unresolved.
fn present(text: &str) -> Option<&str> {
    let text = text.trim();
    (!text.is_empty() && !text.contains("{{")).then_some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments(body: Value) -> Value {
        Value::Object(Invocation::read(body).unwrap().requested.remove(0).arguments)
    }

    #[test]
    fn arguments_stand_beside_the_metadata_or_under_parameters() {
        assert_eq!(arguments(json!({"text": "hi", "metadata": {"token": "t"}})), json!({"text": "hi"}));
        assert_eq!(arguments(json!({"parameters": {"text": "hi"}, "metadata": {}})), json!({"text": "hi"}));
        // A tool of which an argument is called so.
        assert_eq!(
            arguments(json!({"parameters": {"a": 1}, "text": "hi"})),
            json!({"parameters": {"a": 1}, "text": "hi"})
        );
        assert_eq!(arguments(json!({"parameters": "all", "metadata": {}})), json!({"parameters": "all"}));
        let metadata = json!({"arguments": ["parameters"]});
        assert_eq!(
            arguments(json!({"parameters": {"a": 1}, "metadata": metadata})),
            json!({"parameters": {"a": 1}}),
            "the only argument is called so"
        );
    }

    #[test]
    fn the_four_spellings_of_a_tool_call() {
        for item in [
            json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}}),
            json!({"id": "c", "function": {"name": "f", "arguments": "{\"x\":1}"}}),
            json!({"id": "c", "name": "f", "arguments": {"x": 1}}),
            json!({"id": "c", "name": "f", "parameters": {"x": 1}}),
        ] {
            assert_eq!(arguments(json!({"message": {"type": "tool-calls", "toolCallList": [item]}})), json!({"x": 1}));
        }
    }

    #[test]
    fn unresolved_and_empty_liquid_is_absent() {
        let body = json!({"metadata": {"callId": "{{ call.id }}", "callerPhoneNumber": "", "calledPhoneNumber": "+15550100002"}});
        let metadata = Invocation::read(body).unwrap().metadata;
        assert!(metadata.call_id.is_none() && metadata.caller.is_none() && metadata.called.is_some());
    }

    #[test]
    fn metadata_among_the_models_arguments_counts_only_with_a_token() {
        let metadata = |token: Value| {
            json!({
                "callId": "call-of-another", "callerPhoneNumber": "+15550100009", "calledPhoneNumber": "+15550100002",
                "readOnly": true, "arguments": ["text"], "token": token,
            })
        };
        let read = |items: &[(&str, Value)], call: Value| {
            let arguments = |(text, own): &(&str, Value)| json!({"text": text, "metadata": own});
            let list: Vec<Value> =
                items.iter().map(arguments).map(|arguments| json!({"name": "f", "arguments": arguments})).collect();
            let mut message = json!({"type": "tool-calls", "toolCallList": list});
            message.as_object_mut().unwrap().extend(call.as_object().unwrap().clone());
            Invocation::read(json!({"message": message})).unwrap()
        };
        let said = |Metadata { call_id, caller, called, read_only, .. }: &Metadata| {
            (call_id.is_some(), caller.clone(), called.is_some(), *read_only)
        };
        for token in [Value::Null, json!(""), json!("{{ token }}"), json!(5)] {
            let invocation = read(&[("a", metadata(token.clone()))], json!({}));
            assert_eq!(said(&invocation.metadata), (false, None, false, false), "{token}");
            assert_eq!(invocation.claimable(0).unwrap(), *json!({"text": "a"}).as_object().unwrap());
        }
        let call = json!({"call": {"id": "call-1"}, "customer": {"number": "+15550100001"}});
        let invocation = read(&[("a", metadata(Value::Null))], call.clone());
        assert_eq!(said(&invocation.metadata), (true, Some("+15550100001".into()), false, false));

        let with_token = read(&[("a", metadata(json!("right")))], json!({}));
        assert_eq!(said(&with_token.metadata), (true, Some("+15550100009".into()), true, true));
        let both = read(&[("a", metadata(json!("right")))], call);
        assert_eq!(said(&both.metadata), (true, Some("+15550100001".into()), true, true), "the message comes first");
        assert_eq!(both.metadata.token.as_deref(), Some("right"));
        // Another call's metadata takes neither the token nor the caller away.
        let other = json!({"callerPhoneNumber": "+15550100008", "token": "wrong"});
        for second in [json!({"callerPhoneNumber": "+15550100008"}), json!("x"), Value::Null, other] {
            let several = read(&[("a", metadata(json!("right"))), ("b", second.clone())], json!({}));
            assert_eq!(several.metadata.token.as_deref(), Some("right"), "{second}");
            assert_eq!(said(&several.metadata).1.as_deref(), Some("+15550100009"), "{second}");
            let texts: Vec<&Value> = several.requested.iter().map(|requested| &requested.arguments["text"]).collect();
            assert_eq!(texts, ["a", "b"]);
        }
    }

    #[test]
    fn arguments_that_are_not_an_object_are_refused() {
        assert!(matches!(Invocation::read(json!([])), Err(Error::Malformed(_))));
        assert!(matches!(Invocation::read(json!({"message": {"type": "tool-calls"}})), Err(Error::Malformed(_))));
    }
}
