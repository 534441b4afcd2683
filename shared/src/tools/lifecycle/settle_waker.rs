//! Wakes `settle` before its schedule.

use serde::{Deserialize, Serialize};

use crate::{
    clients::{Queue, QueueMessage},
    error,
};

#[derive(Clone)]
pub struct SettleWaker(Queue<Unfinished>);

#[derive(Debug, Serialize, Deserialize)]
pub struct Unfinished {
    pub change: String,
}

impl QueueMessage for Unfinished {}

impl SettleWaker {
    pub fn new(queue: Queue<Unfinished>) -> Self {
        Self(queue)
    }

    /// Wakes `settle` to continue unfinished changes. If that fails, its schedule runs within five minutes.
    pub async fn wake(&self, change: &str) {
        if let Err(error) = self.0.send(&Unfinished { change: change.to_owned() }).await {
            tracing::warn!("settle could not be woken: {}", error::chain(&error));
        }
    }
}
