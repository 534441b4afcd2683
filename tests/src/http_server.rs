//! An HTTP server that a test defines, with a log of its requests.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    middleware::{Next, from_fn_with_state},
    response::Response,
};
use tokio::{net::TcpListener, task::JoinHandle};

use crate::clients::anywhere;

/// A running server; it ends on drop.
pub struct Server {
    /// `http://127.0.0.1:<port>`, without a trailing slash.
    pub url: String,
    pub address: SocketAddr,
    seen: Log,
    task: JoinHandle<()>,
}

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct Seen {
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

type Log = Arc<Mutex<Vec<Seen>>>;

impl Server {
    pub async fn start(routes: Router) -> Self {
        let listener = TcpListener::bind(anywhere()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Log::default();
        let app = routes.layer(from_fn_with_state(seen.clone(), record));
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { url: format!("http://{address}"), address, seen, task }
    }

    /// Every request so far, in order of arrival.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn record(State(log): State<Log>, request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1024 * 1024).await.unwrap();
    let headers = head.headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
    log.lock().unwrap().push(Seen {
        method: head.method.to_string(),
        target: head.uri.to_string(),
        headers: headers.collect(),
        body: String::from_utf8(body.to_vec()).unwrap(),
    });
    next.run(Request::from_parts(head, Body::from(body))).await
}
