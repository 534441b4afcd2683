//! Waking `settle` before its schedule does.

use serde::{Deserialize, Serialize};

use crate::{
    clients::{Message, Queue},
    error,
};

/// The queue that runs `settle`.
#[derive(Clone)]
pub struct Settling(Queue<Unfinished>);

/// A message to `settle`, which looks at all intents whatever it says.
#[derive(Debug, Serialize, Deserialize)]
pub struct Unfinished {
    /// What was given up for lack of time, for whoever reads the queue.
    pub change: String,
}

impl Message for Unfinished {}

impl Settling {
    pub fn new(queue: Queue<Unfinished>) -> Self {
        Self(queue)
    }

    /// Has `settle` go on with what is left. If it cannot be woken, its schedule comes by within five minutes.
    pub async fn wake(&self, change: &str) {
        if let Err(error) = self.0.send(&Unfinished { change: change.to_owned() }).await {
            tracing::warn!("settle could not be woken: {}", error::chain(&error));
        }
    }
}
