//! Conversations with the planner.

use serde_json::{Value, json};

use super::World;
use crate::{Answer, Event};

impl World {
    /// `POST /agent/chat` with this message, in the default thread.
    pub async fn chat(&self, message: &str) -> Answer {
        self.chat_with(&json!({"message": message})).await
    }

    /// Like [`World::chat`], with a complete body.
    pub async fn chat_with(&self, body: &Value) -> Answer {
        self.chat_as(&self.home.user_id, body).await
    }

    pub async fn chat_as(&self, user: &str, body: &Value) -> Answer {
        self.send("chat", &Event::post("/agent/chat", body).user(user)).await
    }

    /// A request below `/agent/threads`: `threads(user, "GET", "/default?limit=2")`.
    pub async fn threads(&self, user: &str, method: &str, path: &str) -> Answer {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let mut event = Event::new(method, &format!("/agent/threads{path}")).user(user);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            event = event.query(name, value);
        }
        self.send("chat", &event).await
    }

    /// The bodies of the requests to the model, in order.
    pub fn asked_of_model(&self) -> Vec<Value> {
        self.llm.requests().into_iter().map(|request| request.body).collect()
    }
}
