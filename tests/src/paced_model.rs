//! A model that streams its words on a test's command, so that tests see partial answers.

use std::{collections::VecDeque, io, sync::Arc};

use axum::{
    Json, Router,
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
    routing::post,
};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::{
    Mutex,
    mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
};

use crate::http_server::Server;

enum Piece {
    Words(String),
    End,
    Cut,
}

/// A running model. Requests for a whole answer get the initial answers in order; requests for a stream get the words
/// that the test sends meanwhile.
pub struct PacedModel {
    pub url: String,
    pieces: UnboundedSender<Piece>,
    server: Server,
}

struct Script {
    whole: Mutex<VecDeque<String>>,
    pieces: Arc<Mutex<UnboundedReceiver<Piece>>>,
}

impl PacedModel {
    pub async fn start(whole: &[&str]) -> Self {
        let (pieces, receiver) = unbounded_channel();
        let whole = Mutex::new(whole.iter().map(|text| (*text).to_owned()).collect());
        let script = Arc::new(Script { whole, pieces: Arc::new(Mutex::new(receiver)) });
        let server = Server::start(Router::new().route("/chat/completions", post(answer)).with_state(script)).await;
        Self { url: server.url.clone(), pieces, server }
    }

    pub fn says(&self, words: &str) {
        let _nobody_may_listen = self.pieces.send(Piece::Words(words.to_owned()));
    }

    /// Ends the answer.
    pub fn ends(&self) {
        let _nobody_may_listen = self.pieces.send(Piece::End);
    }

    /// Breaks the connection in the middle of the answer.
    pub fn breaks(&self) {
        let _nobody_may_listen = self.pieces.send(Piece::Cut);
    }

    /// How often the model was asked.
    pub fn asked(&self) -> usize {
        self.server.seen().len()
    }
}

async fn answer(State(script): State<Arc<Script>>, Json(request): Json<Value>) -> Response {
    if request["stream"] != true {
        let text = script.whole.lock().await.pop_front().expect("the script has an answer left");
        return Json(json!({
            "id": "gen-1", "object": "chat.completion", "model": "paced",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }))
        .into_response();
    }
    let pieces = Arc::clone(&script.pieces).lock_owned().await;
    let frames = stream::unfold(Some(pieces), |pieces| async move {
        let mut pieces = pieces?;
        match pieces.recv().await? {
            Piece::Words(words) => Some((Ok(chunk(&json!({"content": words}), &Value::Null)), Some(pieces))),
            Piece::End => {
                let usage =
                    json!({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}});
                let end = format!("{}data: {usage}\n\ndata: [DONE]\n\n", chunk(&json!({}), &json!("stop")));
                Some((Ok(end), None))
            }
            Piece::Cut => Some((Err(io::Error::from(io::ErrorKind::ConnectionReset)), None)),
        }
    });
    ([("content-type", "text/event-stream")], Body::from_stream(frames)).into_response()
}

fn chunk(delta: &Value, finish_reason: &Value) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish_reason});
    let chunk = json!({"id": "gen-1", "object": "chat.completion.chunk", "model": "paced", "choices": [choice]});
    format!("data: {chunk}\n\n")
}
