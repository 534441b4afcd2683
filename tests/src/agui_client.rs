//! A strict AG-UI client that rejects every event that a real client rejects.
//!
//! Follows `@ag-ui/client` 0.0.59 and 1.0.0; their observed behaviour is in `fixtures/agui_streams.json`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// Members that may be absent but not null.
const NEVER_NULL: [&str; 9] =
    ["name", "code", "timestamp", "role", "messageId", "toolCallId", "delta", "message", "parentMessageId"];

/// A client's view of a run.
#[derive(Debug, Default)]
pub struct Client {
    /// The `messages` of the client's agent.
    pub messages: Vec<Value>,
    /// The message of a `RUN_ERROR`.
    pub error: Option<String>,
    /// The interrupts of `RUN_FINISHED`.
    pub interrupts: Vec<Value>,
    started: bool,
    finished: bool,
    texts: BTreeSet<String>,
    calls: BTreeSet<String>,
    steps: BTreeSet<String>,
}

impl Client {
    /// Reads a whole body.
    ///
    /// # Errors
    /// The clients' error.
    pub fn read(body: &str) -> Result<Self, String> {
        Self::read_after(Vec::new(), body)
    }

    /// Reads a whole body with the messages of earlier runs.
    ///
    /// # Errors
    /// The clients' error.
    pub fn read_after(messages: Vec<Value>, body: &str) -> Result<Self, String> {
        let mut client = Self { messages, ..Self::default() };
        for frame in body.split("\n\n") {
            let data: Vec<&str> = frame.split('\n').filter_map(|line| line.strip_prefix("data: ")).collect();
            if !data.is_empty() {
                let event = serde_json::from_str(&data.join("\n")).map_err(|error| format!("{error}: {frame}"))?;
                client.take(&event)?;
            }
        }
        Ok(client)
    }

    /// Whether the run has ended explicitly; clients do not notice a missing end.
    pub fn is_over(&self) -> bool {
        self.finished || self.error.is_some()
    }

    /// Takes one event.
    ///
    /// # Errors
    /// The clients' error.
    pub fn take(&mut self, event: &Value) -> Result<(), String> {
        let kind = event["type"].as_str().ok_or("an event without a type")?;
        self.is_its_turn(kind)?;
        if let Some(name) = NEVER_NULL.iter().find(|name| event.get(**name).is_some_and(Value::is_null)) {
            return Err(format!("{kind}: {name} is null"));
        }
        if event.get("timestamp").is_some_and(|at| !at.is_i64()) {
            return Err(format!("{kind}: the timestamp is no integer"));
        }
        match kind {
            "RUN_STARTED" | "RUN_FINISHED" | "RUN_ERROR" => self.run(kind, event),
            "STEP_STARTED" => opened(&mut self.steps, &text(event, "stepName")?),
            "STEP_FINISHED" => closed(&mut self.steps, &text(event, "stepName")?),
            kind if kind.starts_with("TEXT_MESSAGE_") => self.text(kind, event),
            kind if kind.starts_with("TOOL_CALL_") => self.call(kind, event),
            "ACTIVITY_SNAPSHOT" => {
                let (id, of) = (text(event, "messageId")?, text(event, "activityType")?);
                let content = event["content"].as_object().ok_or("the content of an activity is an object")?;
                self.messages.push(json!({"id": id, "role": "activity", "activityType": of, "content": content}));
                Ok(())
            }
            "MESSAGES_SNAPSHOT" => {
                self.messages.clone_from(event["messages"].as_array().ok_or("messages is a list")?);
                Ok(())
            }
            "CUSTOM" => text(event, "name").map(drop),
            "STATE_SNAPSHOT" | "STATE_DELTA" | "RAW" => Ok(()),
            other => Err(format!("unknown type {other}")),
        }
    }

    fn is_its_turn(&self, kind: &str) -> Result<(), String> {
        let begins = ["RUN_STARTED", "RUN_ERROR"].contains(&kind);
        match (self.error.is_some(), self.finished, self.started) {
            (true, ..) => Err(format!("{kind} after RUN_ERROR")),
            (_, true, _) if !begins => Err(format!("{kind} after RUN_FINISHED")),
            (_, _, false) if !begins => Err(format!("{kind} before RUN_STARTED")),
            _ => Ok(()),
        }
    }

    fn run(&mut self, kind: &str, event: &Value) -> Result<(), String> {
        if kind == "RUN_ERROR" {
            self.error = Some(text(event, "message")?);
            return Ok(());
        }
        text(event, "threadId")?;
        text(event, "runId")?;
        if kind == "RUN_STARTED" {
            (self.started, self.finished) = (true, false);
            return Ok(());
        }
        for (what, open) in [("messages", &self.texts), ("calls", &self.calls), ("steps", &self.steps)] {
            if !open.is_empty() {
                return Err(format!("RUN_FINISHED while {what} are open: {open:?}"));
            }
        }
        self.finished = true;
        match event.get("outcome").filter(|outcome| !outcome.is_null()) {
            None => Ok(()),
            Some(outcome) if outcome["type"] == "success" => Ok(()),
            Some(outcome) if outcome["type"] == "interrupt" => {
                self.interrupts.clone_from(outcome["interrupts"].as_array().ok_or("interrupts is a list")?);
                let named = self.interrupts.iter().all(|it| it["id"].is_string() && it["reason"].is_string());
                if named { Ok(()) } else { Err("an interrupt has an id and a reason".to_owned()) }
            }
            Some(outcome) => Err(format!("unknown outcome {outcome}")),
        }
    }

    fn text(&mut self, kind: &str, event: &Value) -> Result<(), String> {
        let id = text(event, "messageId")?;
        match kind {
            "TEXT_MESSAGE_START" => {
                opened(&mut self.texts, &id)?;
                let role = event["role"].as_str().unwrap_or("assistant");
                self.messages.push(json!({"id": id, "role": role, "content": ""}));
                Ok(())
            }
            "TEXT_MESSAGE_CONTENT" if self.texts.contains(&id) => {
                let message =
                    self.messages.iter_mut().find(|message| message["id"] == id.as_str()).ok_or("no message")?;
                let content = format!("{}{}", message["content"].as_str().unwrap_or_default(), text(event, "delta")?);
                message["content"] = content.into();
                Ok(())
            }
            "TEXT_MESSAGE_END" => closed(&mut self.texts, &id),
            _ => Err(format!("{kind}: no open message {id}")),
        }
    }

    fn call(&mut self, kind: &str, event: &Value) -> Result<(), String> {
        let id = text(event, "toolCallId")?;
        match kind {
            "TOOL_CALL_START" => {
                opened(&mut self.calls, &id)?;
                let function = json!({"name": text(event, "toolCallName")?, "arguments": ""});
                let call = json!({"id": id, "type": "function", "function": function});
                self.messages.push(json!({"id": id, "role": "assistant", "toolCalls": [call]}));
                Ok(())
            }
            "TOOL_CALL_ARGS" if self.calls.contains(&id) => {
                let of_call = |message: &&mut Value| message["toolCalls"][0]["id"] == id.as_str();
                let message = self.messages.iter_mut().find(of_call).ok_or("no call")?;
                let arguments = &mut message["toolCalls"][0]["function"]["arguments"];
                *arguments = format!("{}{}", arguments.as_str().unwrap_or_default(), text(event, "delta")?).into();
                Ok(())
            }
            "TOOL_CALL_END" => closed(&mut self.calls, &id),
            "TOOL_CALL_RESULT" => {
                let (message, content) = (text(event, "messageId")?, text(event, "content")?);
                self.messages.push(json!({"id": message, "toolCallId": id, "role": "tool", "content": content}));
                Ok(())
            }
            _ => Err(format!("{kind}: no open call {id}")),
        }
    }
}

fn text(event: &Value, name: &str) -> Result<String, String> {
    event[name].as_str().map(str::to_owned).ok_or_else(|| format!("{}: {name} is not text", event["type"]))
}

fn opened(open: &mut BTreeSet<String>, id: &str) -> Result<(), String> {
    if open.insert(id.to_owned()) { Ok(()) } else { Err(format!("{id} is open already")) }
}

fn closed(open: &mut BTreeSet<String>, id: &str) -> Result<(), String> {
    if open.remove(id) { Ok(()) } else { Err(format!("{id} is not open")) }
}
