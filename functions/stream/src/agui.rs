//! AG-UI: the events that `@ag-ui/client` and CopilotKit read, in an order that they accept.
//!
//! Clients enforce rules and abort a run that breaks one: it begins with `RUN_STARTED`, says nothing after its end,
//! and leaves nothing open at it; no optional field is `null`, a tool's result is text. [`Run`] keeps these rules for
//! any sequence of a turn's events.

use std::collections::HashSet;

use serde::Serialize;
use serde_json::{Map, Value, json};
use shared::{
    Error,
    http::Frames,
    models::{PendingCall, ToolResult, TurnCall},
    planner::{Observer, TurnEvent, TurnStep, shown},
};

/// The question to the client when an effect waits for consent.
const CONSENT: &str = "tool_consent";

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
enum Written<'a> {
    RunStarted {
        thread_id: &'a str,
        run_id: &'a str,
    },
    RunFinished {
        thread_id: &'a str,
        run_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        outcome: Option<Outcome<'a>>,
    },
    RunError {
        message: &'a str,
        code: &'a str,
    },
    StepStarted {
        step_name: &'a str,
    },
    StepFinished {
        step_name: &'a str,
    },
    TextMessageStart {
        message_id: &'a str,
        role: &'a str,
    },
    TextMessageContent {
        message_id: &'a str,
        delta: &'a str,
    },
    TextMessageEnd {
        message_id: &'a str,
    },
    ToolCallStart {
        tool_call_id: &'a str,
        tool_call_name: &'a str,
    },
    ToolCallArgs {
        tool_call_id: &'a str,
        delta: &'a str,
    },
    ToolCallEnd {
        tool_call_id: &'a str,
    },
    ToolCallResult {
        message_id: &'a str,
        tool_call_id: &'a str,
        content: &'a str,
        role: &'a str,
    },
    ActivitySnapshot {
        message_id: &'a str,
        activity_type: &'a str,
        content: &'a Value,
    },
    MessagesSnapshot {
        messages: &'a [Value],
    },
    Custom {
        name: &'a str,
        value: Value,
    },
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Outcome<'a> {
    Interrupt { interrupts: [&'a Value; 1] },
}

pub struct Run {
    frames: Frames,
    thread: String,
    id: String,
    /// How many messages have begun.
    messages: u32,
    step: Option<&'static str>,
    /// The message whose words are coming.
    open: Option<Message>,
    /// Calls that the client has, and those with a result: it keeps them from run to run.
    calls: HashSet<String>,
    results: HashSet<String>,
    /// The question to the person.
    interrupt: Option<Value>,
    /// The part of the answer sent so far.
    told: Told,
    over: bool,
}

#[derive(Default)]
struct Told {
    message: bool,
    widget: bool,
}

struct Message {
    id: String,
    text: String,
}

impl Run {
    pub fn start(frames: Frames, thread: &str, id: &str) -> Self {
        frames.data(&Written::RunStarted { thread_id: thread, run_id: id });
        Self {
            frames,
            thread: thread.to_owned(),
            id: id.to_owned(),
            messages: 0,
            step: None,
            open: None,
            calls: HashSet::new(),
            results: HashSet::new(),
            interrupt: None,
            told: Told::default(),
            over: false,
        }
    }

    /// Calls and results of the client's own messages are not sent again: a client appends a call's arguments to the
    /// arguments of the same call.
    pub fn client_has(&mut self, messages: &[Value]) {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        for message in messages {
            let calls = message.get("toolCalls").and_then(Value::as_array).into_iter().flatten();
            self.calls.extend(calls.filter_map(|call| text(call.get("id"))));
            self.results.extend(text(message.get("toolCallId")));
        }
    }

    /// The thread so far. A client replaces its state with this.
    pub fn snapshot(&mut self, messages: &[Value]) {
        self.client_has(messages);
        self.frames.data(&Written::MessagesSnapshot { messages });
    }

    /// The person is asked when the run ends.
    pub fn waits(&mut self, pending: &PendingCall) {
        self.interrupt = Some(interrupt(pending));
    }

    /// Ends the run and sends the rest of the answer; the answer to a repeated request is sent as a whole.
    pub fn answered(&mut self, content: &str, widget: Option<&Value>, metadata: &Value) {
        if let Some(widget) = widget.filter(|_| !self.told.widget) {
            self.widget(widget);
        }
        // The question to the person is sent once, by the interrupt.
        if !self.told.message && !content.is_empty() && self.interrupt.is_none() {
            self.message(content);
        }
        if let Some(receipt) = metadata.get("receipt") {
            self.end_message();
            self.end_step();
            self.custom("receipt", receipt.clone());
        }
        self.finish();
    }

    /// Something of our own, which a client that does not know it passes over.
    pub fn custom(&mut self, name: &str, value: Value) {
        if !self.over {
            self.frames.data(&Written::Custom { name, value });
        }
    }

    pub fn finish(&mut self) {
        self.end_message();
        self.end_step();
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        let outcome = self.interrupt.as_ref().map(|interrupt| Outcome::Interrupt { interrupts: [interrupt] });
        self.frames.data(&Written::RunFinished { thread_id: &self.thread, run_id: &self.id, outcome });
    }

    fn next_id(&mut self) -> String {
        self.messages += 1;
        format!("{}-{}", self.id, self.messages)
    }

    fn begin_step(&mut self, step: &'static str) {
        self.end_step();
        self.step = Some(step);
        self.frames.data(&Written::StepStarted { step_name: step });
    }

    fn end_step(&mut self) {
        if let Some(step_name) = self.step.take() {
            self.frames.data(&Written::StepFinished { step_name });
        }
    }

    fn words(&mut self, delta: &str) {
        if delta.is_empty() {
            return;
        }
        if self.open.is_none() {
            let id = self.next_id();
            self.frames.data(&Written::TextMessageStart { message_id: &id, role: "assistant" });
            self.open = Some(Message { id, text: String::new() });
        }
        if let Some(Message { id, text }) = &mut self.open {
            text.push_str(delta);
            self.frames.data(&Written::TextMessageContent { message_id: id, delta });
        }
    }

    fn end_message(&mut self) {
        if let Some(Message { id, .. }) = self.open.take() {
            self.frames.data(&Written::TextMessageEnd { message_id: &id });
        }
    }

    /// The whole answer: its unsent part.
    fn message(&mut self, whole: &str) {
        self.told.message = true;
        let said = self.open.as_ref().map(|message| message.text.clone()).unwrap_or_default();
        // The whole is without blanks at its ends.
        let rest = whole.strip_prefix(said.as_str()).or_else(|| whole.strip_prefix(said.trim()));
        if rest.is_none() {
            self.end_message();
        }
        self.words(rest.unwrap_or(whole));
        self.end_message();
    }

    fn call(&mut self, id: &str, tool: &str, arguments: &Map<String, Value>) {
        // The earlier words are a message of their own.
        self.end_message();
        if !self.calls.insert(id.to_owned()) {
            return;
        }
        self.frames.data(&Written::ToolCallStart { tool_call_id: id, tool_call_name: tool });
        let arguments = serde_json::to_string(arguments).unwrap_or_else(|_| "{}".to_owned());
        self.frames.data(&Written::ToolCallArgs { tool_call_id: id, delta: &arguments });
        self.frames.data(&Written::ToolCallEnd { tool_call_id: id });
    }

    fn result(&mut self, id: &str, result: &ToolResult) {
        if !self.results.insert(id.to_owned()) {
            return;
        }
        let message_id = self.next_id();
        let content = result.result.to_string();
        self.frames.data(&Written::ToolCallResult {
            message_id: &message_id,
            tool_call_id: id,
            content: &content,
            role: "tool",
        });
        // The protocol has no field for a failed result.
        if result.outcome != TurnCall::Succeeded {
            let value = json!({"toolCallId": id, "outcome": result.outcome.as_str()});
            self.frames.data(&Written::Custom { name: "tool_outcome", value });
        }
    }

    fn widget(&mut self, widget: &Value) {
        self.told.widget = true;
        let id = self.next_id();
        self.frames.data(&Written::ActivitySnapshot { message_id: &id, activity_type: "widget", content: widget });
    }
}

impl Observer for Run {
    fn wants_tokens(&self) -> bool {
        true
    }

    fn event(&mut self, event: TurnEvent<'_>) {
        if self.over {
            return;
        }
        match event {
            TurnEvent::Progress { step, .. } => {
                // The words before another step are a message of their own; the last step ends with the answer.
                if step != TurnStep::Validate {
                    self.end_message();
                }
                self.begin_step(step.as_str());
            }
            TurnEvent::Token(words) => self.words(words),
            TurnEvent::ToolCall { id, tool, arguments } | TurnEvent::FrontEndCall { id, tool, arguments } => {
                self.call(id, tool, arguments);
            }
            TurnEvent::ToolResult { id, result } => {
                self.call(id, &result.tool, &result.arguments);
                self.result(id, result);
            }
            TurnEvent::Widget(widget) => self.widget(&json!(widget)),
            TurnEvent::Consent(pending) => self.waits(pending),
            TurnEvent::Message(whole) => self.message(whole),
        }
    }
}

/// The end of a failed run; a client keeps the received events.
pub fn failed(frames: &Frames, error: &Error) {
    frames.data(&Written::RunError { message: &error.to_string(), code: error.code() });
}

fn interrupt(pending: &PendingCall) -> Value {
    let PendingCall { id, tool, arguments, reason, expires_at, .. } = pending;
    json!({
        "id": id,
        "reason": CONSENT,
        // In fixed words, with the model's reason as a detail.
        "message": format!("May I call {}?", pending.label()),
        "responseSchema": {
            "type": "object", "properties": {"approved": {"type": "boolean"}}, "required": ["approved"],
        },
        "expiresAt": expires_at,
        "metadata": {
            "tool": tool.name, "label": pending.label(), "arguments": arguments, "shows": shown(pending),
            "reason": reason,
        },
    })
}
