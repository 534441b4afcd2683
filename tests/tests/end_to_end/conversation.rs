//! The chat of a running system, and its model's script.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

pub(crate) struct Chat {
    /// The contents of `stack.json`.
    pub(crate) about: Value,
    pub(crate) http: reqwest::Client,
    /// Name of a tool with an effect that needs consent; takes a `text`.
    pub(crate) reminder: String,
    /// Name of a tool with an effect that needs no consent; takes a `text`.
    pub(crate) directions: String,
    /// Name of a tool whose result has a table widget.
    pub(crate) sales: String,
}

impl Chat {
    pub(crate) async fn with_tools(about: Value) -> Self {
        let http = shared::clients::http_client().unwrap();
        let mut chat = Self { about, http, reminder: String::new(), directions: String::new(), sales: String::new() };
        let (number, crm) = (chat.at("/phone_number_id"), chat.at("/standins/crm"));
        let reminder = json!({
            "type": "sms", "label": "Send reminder", "description": "Sends a text message that reminds of the appointment.",
            "from": {"type": "specific_number", "phone_number_id": number},
            "text": {"mode": "ai", "prompt": "The reminder"},
            "recipients": {"mode": "array_extendable", "fixedValues": ["+14155550123"], "aiExtension": {"enabled": false}},
            "chat": {"consent": true},
        });
        let mut directions = reminder.clone();
        directions["label"] = json!("Text the way");
        directions["description"] = json!("Sends a text message with the way to the practice.");
        directions["chat"] = json!({"consent": false});
        let sales =
            json!({"type": "api_request", "label": "Look up sales", "method": "GET", "url": format!("{crm}/sales")});
        // The CRM's permanent answer at this path.
        let widget = json!({"type": "table", "title": "Sales", "columns": ["Year", "Millions"], "rows": [["2024", 7.5], ["2025", 9.1]]});
        let answer =
            json!({"method": "GET", "path": "/sales", "status": 200, "body": {"widget": widget}, "times": 1000});
        let told = chat.http.put(format!("{crm}/faults")).json(&answer).send().await.unwrap();
        assert_eq!(told.status(), 200);
        chat.reminder = chat.create(&reminder).await;
        chat.directions = chat.create(&directions).await;
        chat.sales = chat.create(&sales).await;
        chat
    }

    /// Creates a tool; returns its name.
    async fn create(&self, tool: &Value) -> String {
        let address = format!("{}/api/{}/tools", self.at("/api_url"), self.at("/slug"));
        let answer = self.http.post(address).bearer_auth(self.at("/token")).json(tool).send().await.unwrap();
        let (status, tool) = (answer.status(), answer.json::<Value>().await.unwrap());
        assert_eq!(status, 201, "{tool}");
        tool["name"].as_str().unwrap().to_owned()
    }

    /// A text field of `stack.json`.
    pub(crate) fn at(&self, pointer: &str) -> &str {
        let text = self.about.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_else(|| panic!("stack.json has no text at {pointer}: {}", self.about))
    }

    /// Sets the model's next answers, one per request.
    pub(crate) async fn script(&self, turns: &[Value]) {
        let answer = self.http.put(format!("{}/script", self.at("/standins/llm"))).json(turns).send().await.unwrap();
        assert_eq!(answer.status(), 204);
    }

    /// The number of text messages sent so far.
    pub(crate) async fn sent(&self) -> usize {
        let answer = self.http.get(format!("{}/messages", self.at("/standins/twilio"))).send().await.unwrap();
        answer.json::<Vec<Value>>().await.unwrap().len()
    }
}

pub(crate) fn plan(tool: &str, arguments: &Value) -> Value {
    json!({"content": json!({"tool": tool, "reason": "They asked for it.", "arguments": arguments}).to_string()})
}

pub(crate) fn no_tool() -> Value {
    plan("none", &json!({}))
}

/// The model answers with this text, one word every `pause` milliseconds.
pub(crate) fn says(text: &str, pause: u16) -> Value {
    json!({"content": text, "pause_ms": pause})
}

/// This many distinct words.
pub(crate) fn words(count: usize) -> String {
    (0..count).map(|number| format!("word{number}")).collect::<Vec<_>>().join(" ")
}

/// The directory of the other projects' front ends; `None`, with a message, if they are not installed.
pub(crate) fn installed() -> Option<PathBuf> {
    let directory = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/chat_clients")).to_owned();
    if !directory.join("node_modules/made-from").is_file() {
        println!("skipped: the front ends of others are not there; tests/chat_clients/install installs them");
        return None;
    }
    if std::process::Command::new("node").arg("--version").output().is_err() {
        println!("skipped: there is no Node to run the front ends of others with");
        return None;
    }
    Some(directory)
}
