//! The streamed chat, as front ends use it.

use serde_json::{Value, json};
use shared::http::answer_streaming;

use super::{LLM_SECRET, World};
use crate::{Event, Streamed};

impl World {
    /// A request with a valid token of this user.
    pub fn stream_event(&self, user: &str, path: &str, body: &Value) -> Event {
        let event = if body.is_null() { Event::get(path) } else { Event::post(path, body) };
        event.header("authorization", &format!("Bearer {}", self.issuer.token(user)))
    }

    /// The answer's head, and its events as they come.
    pub async fn open_stream(&self, event: &Event) -> Streamed {
        let stream = self.process.stream;
        let request = event.to_request("stream");
        let (response, afterwards) =
            Box::pin(answer_streaming("stream", request, |request| stream::handle(stream, request))).await;
        assert!(afterwards.is_none(), "nothing follows a stream");
        Streamed::new(response)
    }

    /// `POST /agent/stream`.
    pub async fn chat_stream(&self, body: &Value) -> Streamed {
        self.open_stream(&self.stream_event(&self.home.user_id, "/agent/stream", body)).await
    }

    /// `POST /copilotkit/agent/default/run`.
    pub async fn run_agent(&self, input: &Value) -> Streamed {
        self.open_stream(&self.stream_event(&self.home.user_id, "/copilotkit/agent/default/run", input)).await
    }

    /// `POST /copilotkit/agent/default/connect`.
    pub async fn connect(&self, thread: &str) -> Streamed {
        let input = json!({"threadId": thread, "runId": "connect-1", "messages": []});
        self.open_stream(&self.stream_event(&self.home.user_id, "/copilotkit/agent/default/connect", &input)).await
    }

    /// `POST /copilotkit/agent/default/stop/{thread}`.
    pub async fn stop(&self, thread: &str) -> Value {
        let path = format!("/copilotkit/agent/default/stop/{thread}");
        self.send("stream", &self.stream_event(&self.home.user_id, &path, &json!({}))).await.expect(200)
    }

    /// Sets another model for the platform's account, at this address.
    pub fn model_at(&mut self, url: &str) {
        self.aws.put_secret(LLM_SECRET, &json!({"api_key": "paced", "base_url": url}));
        self.restart();
    }
}

/// A `RunAgentInput` with one message of the user.
pub fn run_input(thread: &str, message_id: &str, text: &str) -> Value {
    json!({
        "threadId": thread, "runId": format!("run-{message_id}"), "tools": [], "context": [], "forwardedProps": {}, "state": {},
        "messages": [{"id": message_id, "role": "user", "content": text}],
    })
}
