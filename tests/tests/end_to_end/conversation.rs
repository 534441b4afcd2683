//! The chat of a running system, and what its model is to say.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// Where the chat is.
pub(crate) struct Chat {
    /// What `stack.json` says.
    pub(crate) about: Value,
    pub(crate) http: reqwest::Client,
    /// The name of a tool that acts and asks the person first; it takes a `text`.
    pub(crate) reminder: String,
    /// The name of a tool that acts without asking; it takes a `text`.
    pub(crate) directions: String,
    /// The name of a tool whose result has a widget, a table.
    pub(crate) sales: String,
}

impl Chat {
    /// Makes the tools that are talked about.
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
        // The CRM answers so, whenever it is asked there.
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

    /// Makes a tool; gives its name.
    async fn create(&self, tool: &Value) -> String {
        let address = format!("{}/api/{}/tools", self.at("/api_url"), self.at("/slug"));
        let answer = self.http.post(address).bearer_auth(self.at("/token")).json(tool).send().await.unwrap();
        let (status, tool) = (answer.status(), answer.json::<Value>().await.unwrap());
        assert_eq!(status, 201, "{tool}");
        tool["name"].as_str().unwrap().to_owned()
    }

    /// A text of `stack.json`.
    pub(crate) fn at(&self, pointer: &str) -> &str {
        let text = self.about.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_else(|| panic!("stack.json has no text at {pointer}: {}", self.about))
    }

    /// What the model says next, request by request.
    pub(crate) async fn script(&self, turns: &[Value]) {
        let answer = self.http.put(format!("{}/script", self.at("/standins/llm"))).json(turns).send().await.unwrap();
        assert_eq!(answer.status(), 204);
    }

    /// Text messages that went out so far.
    pub(crate) async fn sent(&self) -> usize {
        let answer = self.http.get(format!("{}/messages", self.at("/standins/twilio"))).send().await.unwrap();
        answer.json::<Vec<Value>>().await.unwrap().len()
    }
}

/// The model chooses a tool.
pub(crate) fn plan(tool: &str, arguments: &Value) -> Value {
    json!({"content": json!({"tool": tool, "reason": "They asked for it.", "arguments": arguments}).to_string()})
}

/// The model chooses none.
pub(crate) fn no_tool() -> Value {
    plan("none", &json!({}))
}

/// The model says this, a word each `pause` milliseconds.
pub(crate) fn says(text: &str, pause: u16) -> Value {
    json!({"content": text, "pause_ms": pause})
}

/// So many words, each another one.
pub(crate) fn words(count: usize) -> String {
    (0..count).map(|number| format!("word{number}")).collect::<Vec<_>>().join(" ")
}

/// The directory of the front ends of others; nothing, which is said, where they are not installed.
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
