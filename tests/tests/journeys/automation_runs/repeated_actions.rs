//! Retries: only where nothing can have happened.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use axum::{Router, http::StatusCode, routing::any};
use serde_json::{Value, json};
use shared::models::RunStatus;
use tests::{Options, World, http_server::Server};

use super::{and, carried_out, post, shown, statuses};

/// Books that answer with these statuses one after the other, then with 200.
async fn books_answering(statuses: &[u16]) -> (World, Server) {
    let left = Arc::new(Mutex::new(statuses.iter().copied().collect::<VecDeque<u16>>()));
    let next = move || {
        let status = left.lock().unwrap().pop_front().unwrap_or(200);
        async move { (StatusCode::from_u16(status).unwrap(), "{}") }
    };
    let books = Server::start(Router::new().route("/ledger/{entry}", any(next))).await;
    let world = World::with(Options { open_hosts: vec![books.address.to_string()], ..Options::default() }).await;
    world.ledger_service(&books.url);
    (world, books)
}

fn read(id: &str) -> Value {
    json!({"id": id, "tool": "ledger_read", "parameters": {"entry": "x"}})
}

#[tokio::test]
async fn a_tool_that_reads_is_asked_again_as_often_as_was_said() {
    let (world, books) = books_answering(&[503, 429, 200]).await;
    let run = carried_out(&world, &json!([and(read("r"), json!({"retries": 2}))]), &json!({})).await;
    assert_eq!((run.status, books.seen().len()), (RunStatus::Completed, 3));
    assert_eq!(shown(&world, &run).await["actions"][0]["attempts"], json!(3));

    let (world, books) = books_answering(&[503, 503, 503]).await;
    let run = carried_out(&world, &json!([and(read("r"), json!({"retries": 1})), read("s")]), &json!({})).await;
    assert_eq!(statuses(&world, &run).await, ["r failed", "s failed"]);
    assert_eq!(books.seen().len(), 3, "none is tried again unasked");
}

#[tokio::test]
async fn an_effect_is_tried_again_only_if_it_certainly_did_not_happen() {
    let retried = |id: &str| and(post(id, id), json!({"retries": 3}));
    // It was not processed.
    let (world, books) = books_answering(&[429, 429, 200]).await;
    let run = carried_out(&world, &json!([retried("a")]), &json!({})).await;
    assert_eq!((run.status, books.seen().len()), (RunStatus::Completed, 3));
    // The outcome is unknown, or the refusal is final.
    for (status, outcome) in [(503, "a unknown"), (500, "a unknown"), (422, "a failed")] {
        let (world, books) = books_answering(&[status]).await;
        let run = carried_out(&world, &json!([retried("a")]), &json!({})).await;
        assert_eq!((statuses(&world, &run).await, books.seen().len()), (vec![outcome.to_owned()], 1), "{status}");
    }
}
