//! Observers of a running turn, such as a stream.

use std::{
    future::ready,
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use serde_json::{Map, Value};
use tokio::sync::Notify;

use super::{AgentState, TurnStep, Widget};
use crate::{
    Result,
    error::OverBudget,
    models::{PendingCall, ToolResult},
};

#[derive(Debug, Clone, Copy)]
pub enum TurnEvent<'a> {
    Progress {
        node: &'static str,
        step: TurnStep,
    },
    /// A part of the answer. All parts since the last step are the beginning of the message.
    Token(&'a str),
    ToolCall {
        id: &'a str,
        tool: &'a str,
        arguments: &'a Map<String, Value>,
    },
    ToolResult {
        id: &'a str,
        result: &'a ToolResult,
    },
    /// A call for the front end. The turn does nothing more until its result arrives.
    FrontEndCall {
        id: &'a str,
        tool: &'a str,
        arguments: &'a Map<String, Value>,
    },
    Widget(&'a Widget),
    /// The turn does nothing more until the person decides.
    Consent(&'a PendingCall),
    Message(&'a str),
}

#[derive(Debug, Clone)]
pub enum Stop {
    Requested,
    OverBudget(OverBudget),
}

/// The request to end a turn. The turn checks it between steps and while a model answers; a running tool call is not
/// broken off.
#[derive(Debug, Clone, Default)]
pub struct StopSignal(Arc<Signal>);

#[derive(Debug, Default)]
struct Signal {
    given: AtomicBool,
    waiting: Notify,
}

impl StopSignal {
    pub fn give(&self) {
        self.0.given.store(true, Ordering::Release);
        self.0.waiting.notify_waiters();
    }

    pub fn is_given(&self) -> bool {
        self.0.given.load(Ordering::Acquire)
    }

    pub async fn given(&self) {
        let mut waiting = std::pin::pin!(self.0.waiting.notified());
        // Enabled before the check, so that no signal in between is missed.
        waiting.as_mut().enable();
        if !self.is_given() {
            waiting.await;
        }
    }
}

pub trait Observer: Send {
    fn wants_tokens(&self) -> bool {
        false
    }

    fn event(&mut self, event: TurnEvent<'_>);

    /// Records the state: before each call that acts, and after it.
    ///
    /// # Errors
    /// When it is not recorded: the turn must do nothing more.
    fn record(&mut self, _state: &AgentState) -> impl Future<Output = Result<()>> + Send {
        ready(Ok(()))
    }

    /// Counts the cost of a model's answer, in the gateway's credits. `Break` when the budget is used up.
    fn spent(&mut self, _cost: f64) -> impl Future<Output = ControlFlow<Stop>> + Send {
        ready(ControlFlow::Continue(()))
    }
}
