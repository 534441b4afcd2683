//! `RunAgentInput`, as `@ag-ui/client` 0.0.59 and 1.0 send it. It is read tolerantly: fields that are not known, not
//! needed or null are nobody's fault. Fields that decide the effect are read strictly; errors name the field.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use shared::{
    Result,
    chat::{Awaited, ChatInput, Consent, FrontEndResult, FrontEndTool, LONGEST_THREAD, message_content, message_text},
    error::Problems,
    fields::{Fields, kind},
};
use uuid::Uuid;

/// In characters; the client chooses the ids.
const LONGEST_ID: usize = 200;
const MOST_TOOLS: usize = 64;
/// The characters of a model's function names.
const LONGEST_NAME: usize = 64;
const LONGEST_DESCRIPTION: usize = 4_000;
/// Of a tool's parameters, in bytes of JSON.
const LARGEST_SCHEMA: usize = 32 * 1024;
/// The result of a front end's tool, in characters.
const LONGEST_RESULT: usize = 100_000;

/// A run that a client asks for.
#[derive(Debug)]
pub(crate) struct RunInput {
    pub(crate) run: String,
    pub(crate) asked: ChatInput,
}

/// The thread and the run that a client names, and nothing else of its request.
///
/// # Errors
/// [`shared::Error::Invalid`] with every wrong field.
pub(crate) fn thread_and_run(body: &Value, path: &str) -> Result<(String, String)> {
    let mut problems = Problems::default();
    let named = Fields::of(body, path, &mut problems).and_then(|mut fields| names(&mut fields));
    problems.into_result(named)
}

fn names(fields: &mut Fields<'_>) -> Option<(String, String)> {
    let thread = fields.required_name("threadId", LONGEST_THREAD);
    let run = fields.text("runId", LONGEST_ID).unwrap_or_else(|| Uuid::now_v7().to_string());
    Some((thread?, run))
}

impl RunInput {
    /// Reads the body, which stands at `path` of the request.
    ///
    /// # Errors
    /// [`shared::Error::Invalid`] with every wrong field.
    pub(crate) fn read(body: &Value, path: &str) -> Result<Self> {
        let mut problems = Problems::default();
        let input = Fields::of(body, path, &mut problems).and_then(|mut fields| {
            let named = names(&mut fields);
            let tools = tools(&mut fields);
            let resumes = fields.list("resume", "answers").is_some_and(|answers| !answers.is_empty());
            let consent = if resumes { consent(&mut fields) } else { None };
            let said = if resumes { None } else { said(&mut fields, &tools) };
            let (thread, run) = named?;
            let thread_field = fields.path("threadId");
            let asked = match consent {
                Some(consent) => ChatInput { tools, thread_field, ..consent.asked(thread) },
                None => ChatInput { thread, tools, thread_field, ..said? },
            };
            Some(Self { run, asked })
        });
        problems.into_result(input)
    }
}

/// The person's decision.
fn consent(fields: &mut Fields<'_>) -> Option<Consent> {
    let Some([answer]) = fields.list("resume", "answers") else {
        fields.problem("resume", "must answer one interrupt: there is never more than one open");
        return None;
    };
    let path = fields.path("resume[0]");
    let mut answer = Fields::of(answer, path, fields.problems())?;
    decision(&mut answer)
}

fn decision(answer: &mut Fields<'_>) -> Option<Consent> {
    let id = answer.required_text("interruptId", LONGEST_ID);
    let approved = match answer.required_text("status", 20)?.as_str() {
        "cancelled" => Some(false),
        "resolved" => {
            let approved = answer.get("payload").and_then(|payload| payload.get("approved")).and_then(Value::as_bool);
            if approved.is_none() {
                answer.problem("payload.approved", "must be true or false");
            }
            approved
        }
        _ => {
            answer.problem("status", "must be resolved or cancelled");
            None
        }
    };
    Some(Consent { id: id?, approved: approved? })
}

/// The person's last message, or the results of the front end's tools since.
fn said(fields: &mut Fields<'_>, tools: &[FrontEndTool]) -> Option<ChatInput> {
    let messages = fields.list("messages", "messages").unwrap_or_default();
    let role = |message: &Value| message.get("role").and_then(Value::as_str).unwrap_or_default().to_owned();
    let Some(last) = messages.iter().rposition(|message| role(message) == "user") else {
        fields.problem("messages", "must have a message of role user");
        return None;
    };
    // Results of our own tools are told to clients, and come back with the rest.
    let called = |id: &Value| {
        calls(messages).find(|call| call.get("id") == Some(id)).and_then(|call| call.pointer("/function/name"))
    };
    let is_of_front_end = |result: &Value| {
        let name = result.get("toolCallId").and_then(called);
        name.is_none_or(|name| tools.iter().any(|tool| *name == tool.name))
    };
    let since = messages.iter().enumerate().skip(last + 1);
    let results: Vec<(usize, &Value)> =
        since.filter(|(_, message)| role(message) == "tool" && is_of_front_end(message)).collect();
    if results.is_empty() {
        let path = fields.path(&format!("messages[{last}]"));
        let mut message = Fields::of(messages.get(last)?, path, fields.problems())?;
        let id = message.text("id", LONGEST_ID);
        let text = message_text(&mut message)?;
        // A repeated message is the same request, in any run.
        return Some(ChatInput {
            message: text,
            name: id.as_deref().map(ChatInput::name_of_message),
            ..ChatInput::default()
        });
    }
    let mut read = Vec::new();
    for (at, result) in results {
        let path = fields.path(&format!("messages[{at}]"));
        let mut result = Fields::of(result, path, fields.problems())?;
        let id = result.required_text("toolCallId", LONGEST_ID);
        let failed = result.get("error").is_some();
        let content = message_content(&mut result, LONGEST_RESULT);
        read.push(FrontEndResult { id: id?, content: content?, failed });
    }
    let ids: Vec<&str> = read.iter().map(|result| result.id.as_str()).collect();
    let name = Some(format!("results {}", ids.join(" ")));
    Some(ChatInput { name, awaited: Some(Awaited::Results(read)), ..ChatInput::default() })
}

/// The calls of all messages.
fn calls(messages: &[Value]) -> impl Iterator<Item = &Value> {
    messages.iter().filter_map(|message| message.get("toolCalls")?.as_array()).flatten()
}

/// The front end's tools that can be read.
fn tools(fields: &mut Fields<'_>) -> Vec<FrontEndTool> {
    let tools = fields.list("tools", "tools").unwrap_or_default();
    if tools.len() > MOST_TOOLS {
        fields.problem("tools", format!("must be at most {MOST_TOOLS}"));
        return Vec::new();
    }
    let mut names = BTreeSet::new();
    let read = tools.iter().enumerate().filter_map(|(at, tool)| {
        let path = fields.path(&format!("tools[{at}]"));
        let mut tool = Fields::of(tool, path, fields.problems())?;
        let name = tool.required_text("name", LONGEST_NAME)?;
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-') {
            tool.problem("name", "may have letters, digits, _ and - only");
        } else if !names.insert(name.clone()) {
            tool.problem("name", "is another tool's name, too");
        }
        let description = tool.text("description", LONGEST_DESCRIPTION).unwrap_or_default();
        let parameters = parameters(&mut tool)?;
        Some(FrontEndTool { name, description, parameters })
    });
    read.collect()
}

fn parameters(tool: &mut Fields<'_>) -> Option<Value> {
    match tool.get("parameters") {
        None => Some(json!({"type": "object", "properties": {}})),
        Some(Value::Object(schema)) if json_length(schema) <= LARGEST_SCHEMA => Some(Value::Object(schema.clone())),
        Some(Value::Object(_)) => {
            tool.problem("parameters", format!("must have at most {LARGEST_SCHEMA} bytes of JSON"));
            None
        }
        Some(other) => {
            tool.problem("parameters", format!("must be a JSON Schema, not {}", kind(other)));
            None
        }
    }
}

fn json_length(schema: &Map<String, Value>) -> usize {
    serde_json::to_string(schema).map_or(usize::MAX, |text| text.len())
}

#[cfg(test)]
mod tests {
    use shared::{Error, chat::LONGEST_MESSAGE};

    use super::*;

    fn input(changes: &Value) -> Value {
        let mut input = json!({
            "threadId": "ck-1", "runId": "r-1", "tools": [], "context": [{"description": "page", "value": "home"}],
            "forwardedProps": {"user_id": "somebody else"}, "state": {},
            "messages": [{"id": "u1", "role": "user", "content": " Hello "}],
        });
        for (name, value) in changes.as_object().unwrap() {
            input[name.as_str()] = value.clone();
        }
        input
    }

    fn read(changes: &Value) -> ChatInput {
        RunInput::read(&input(changes), "").unwrap().asked
    }

    #[track_caller]
    fn wrong(changes: &Value) -> Vec<String> {
        match RunInput::read(&input(changes), "") {
            Err(Error::Invalid(problems)) => problems.iter().map(|problem| problem.field.clone()).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_last_message_of_a_person_is_taken_and_its_id_names_the_request() {
        let asked = read(&json!({}));
        assert_eq!((asked.message.as_str(), asked.thread.as_str()), ("Hello", "ck-1"));
        assert_eq!(asked.name.as_deref(), Some("message u1"));
        let parts = json!([
            {"type": "text", "text": "What is"}, {"type": "image", "source": {"type": "url", "value": "https://x"}},
            {"type": "text", "text": "this?"},
        ]);
        let asked = read(&json!({"messages": [
            {"id": "u1", "role": "user", "content": "Before"}, {"id": "a1", "role": "assistant", "content": "Yes"},
            {"id": "u2", "role": "user", "content": parts}, {"id": "a2", "role": "assistant", "toolCalls": []},
            {"id": "w", "role": "activity", "activityType": "widget", "content": {}},
        ]}));
        assert_eq!((asked.message.as_str(), asked.name.as_deref()), ("What is\nthis?", Some("message u2")));
    }

    #[test]
    fn fields_that_the_protocol_makes_optional_may_be_absent() {
        let bare = json!({"threadId": "t", "messages": [{"role": "user", "content": "Hi"}], "protocolVersion": "1.0"});
        let read = RunInput::read(&bare, "").unwrap();
        assert_eq!((read.asked.name, read.run.len()), (None, 36));
        let nulls = json!({"threadId": "t", "runId": null, "tools": null, "resume": null, "state": null, "messages": [{"role": "user", "content": "Hi"}]});
        RunInput::read(&nulls, "").unwrap();
    }

    #[test]
    fn results_of_the_front_ends_tools_are_those_since_the_person_spoke() {
        let asked = read(&json!({"messages": [
            {"id": "t0", "role": "tool", "toolCallId": "c0", "content": "old"}, {"id": "u1", "role": "user", "content": "Show it"},
            {"id": "a1", "role": "assistant", "toolCalls": []}, {"id": "t1", "role": "tool", "toolCallId": "c1", "content": "ok"},
            {"id": "t2", "role": "tool", "toolCallId": "c2", "content": [{"type": "text", "text": "no"}], "error": "broken"},
        ]}));
        let result =
            |id: &str, content: &str, failed| FrontEndResult { id: id.into(), content: content.into(), failed };
        let results = vec![result("c1", "ok", false), result("c2", "no", true)];
        assert_eq!((asked.awaited, asked.name), (Some(Awaited::Results(results)), Some("results c1 c2".to_owned())));
    }

    #[test]
    fn results_of_our_own_tools_are_nothing_that_a_front_end_says() {
        let call =
            |name: &str| json!([{"id": "c1", "type": "function", "function": {"name": name, "arguments": "{}"}}]);
        for (called, message) in [("find", "Show it"), ("show", "")] {
            let asked = read(&json!({"tools": [{"name": "show"}], "messages": [
                {"id": "u1", "role": "user", "content": "Show it"}, {"id": "c1", "role": "assistant", "toolCalls": call(called)},
                {"id": "t1", "role": "tool", "toolCallId": "c1", "content": "ok"},
            ]}));
            assert_eq!((asked.message.as_str(), asked.awaited.is_some()), (message, called == "show"));
        }
    }

    #[test]
    fn a_decision_is_a_boolean_or_a_cancellation() {
        for (answer, approved) in [
            (json!({"status": "resolved", "payload": {"approved": true}}), true),
            (json!({"status": "resolved", "payload": {"approved": false, "note": "no"}}), false),
            (json!({"status": "cancelled"}), false),
        ] {
            let mut answer = answer;
            answer["interruptId"] = json!("c1");
            let asked = read(&json!({"resume": [answer], "messages": []}));
            assert_eq!(asked.awaited, Some(Awaited::Consent(Consent { id: "c1".to_owned(), approved })));
        }
        for payload in [json!(null), json!(true), json!({}), json!({"approved": "yes"}), json!({"approved": null})] {
            let answer = json!({"interruptId": "c1", "status": "resolved", "payload": payload});
            assert_eq!(wrong(&json!({"resume": [answer]})), ["resume[0].payload.approved"], "{payload}");
        }
        let two = json!([{"interruptId": "a", "status": "cancelled"}, {"interruptId": "b", "status": "cancelled"}]);
        assert_eq!(wrong(&json!({"resume": two})), ["resume"]);
        assert_eq!(wrong(&json!({"resume": [{"status": "done"}]})), ["resume[0].interruptId", "resume[0].status"]);
    }

    #[test]
    fn everything_wrong_is_named() {
        for (changes, fields) in [
            (json!({"threadId": ""}), vec!["threadId"]),
            (json!({"threadId": 7, "runId": 7}), vec!["threadId", "runId"]),
            (json!({"threadId": "x".repeat(201)}), vec!["threadId"]),
            (json!({"messages": []}), vec!["messages"]),
            (json!({"messages": {}}), vec!["messages", "messages"]),
            (json!({"messages": [{"role": "user", "content": " "}]}), vec!["messages[0].content"]),
            (json!({"messages": [{"role": "user", "content": 7}]}), vec!["messages[0].content"]),
            (
                json!({"messages": [{"role": "user", "content": "x".repeat(LONGEST_MESSAGE + 1)}]}),
                vec!["messages[0].content"],
            ),
            (
                json!({"tools": [{"name": "show"}, {"name": "a b"}, {"name": "show"}, 7]}),
                vec!["tools[1].name", "tools[2].name", "tools[3]"],
            ),
            (json!({"tools": [{"name": "show", "parameters": []}]}), vec!["tools[0].parameters"]),
            (
                json!({"tools": [{"name": "show", "parameters": {"x": "y".repeat(LARGEST_SCHEMA)}}]}),
                vec!["tools[0].parameters"],
            ),
            (json!({"tools": vec![json!({"name": "x"}); 65]}), vec!["tools"]),
        ] {
            assert_eq!(wrong(&changes), fields, "{changes}");
        }
        let Err(Error::Invalid(problems)) = RunInput::read(&json!({"messages": []}), "body") else {
            panic!("it was read")
        };
        let fields: Vec<_> = problems.iter().map(|problem| problem.field.as_str()).collect();
        assert_eq!(fields, ["body.threadId", "body.messages"]);
    }
}
