//! The log of requests that a stand-in received.

use std::{collections::BTreeMap, sync::Mutex};

use serde::Serialize;
use serde_json::{Value, json};

use super::{clock, exchange::Request, locked};

/// One request as it arrived.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recorded {
    pub method: String,
    /// Without the query.
    pub path: String,
    pub query: Vec<(String, String)>,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The value if it is JSON, a list of `[name, value]` if it is a form, else the text; null if there is none.
    pub body: Value,
    /// Time of arrival, ISO 8601.
    pub at: String,
    /// The status of the answer; absent while it is pending and if the connection was dropped.
    pub status: Option<u16>,
}

#[derive(Debug, Default)]
pub(super) struct Log(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    last: u64,
    by_number: BTreeMap<u64, Recorded>,
}

impl Log {
    /// Logs a request and returns its number for [`Log::answered`].
    pub(super) fn received(&self, request: &Request) -> u64 {
        let recorded = Recorded {
            method: request.method.clone(),
            path: request.path.clone(),
            query: request.query.clone(),
            headers: request.headers.clone(),
            body: readable(request),
            at: clock::iso(clock::now()),
            status: None,
        };
        let mut entries = locked(&self.0);
        entries.last += 1;
        let number = entries.last;
        entries.by_number.insert(number, recorded);
        number
    }

    pub(super) fn answered(&self, number: u64, status: u16) {
        if let Some(recorded) = locked(&self.0).by_number.get_mut(&number) {
            recorded.status = Some(status);
        }
    }

    pub(super) fn all(&self) -> Vec<Recorded> {
        locked(&self.0).by_number.values().cloned().collect()
    }

    pub(super) fn clear(&self) {
        locked(&self.0).by_number.clear();
    }
}

fn readable(request: &Request) -> Value {
    if request.body.is_empty() {
        return Value::Null;
    }
    if request.is_form() {
        return json!(request.form());
    }
    request.json().unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&request.body).into_owned()))
}
