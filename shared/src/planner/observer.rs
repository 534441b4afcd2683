//! Who is told of a turn while it happens: a stream, or nobody.

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

use super::{AgentState, Step, Widget};
use crate::{
    Result,
    error::OverBudget,
    models::{PendingCall, ToolResult},
};

/// Something that has just happened.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    Progress {
        node: &'static str,
        step: Step,
    },
    /// A part of the answer. The parts since the last step together are how the message begins.
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
    /// A call that the front end carries out. Nothing more happens in this turn until its result comes.
    FrontEndCall {
        id: &'a str,
        tool: &'a str,
        arguments: &'a Map<String, Value>,
    },
    Widget(&'a Widget),
    /// Nothing more happens in this turn until the person has decided.
    Consent(&'a PendingCall),
    /// The answer, whole.
    Message(&'a str),
}

/// Why a turn is to end.
#[derive(Debug, Clone)]
pub enum Stop {
    /// Somebody wants it to.
    Requested,
    OverBudget(OverBudget),
}

/// Says that somebody wants a turn to end. It is heard between the steps of a turn and while a model answers; a tool that was called is
/// not broken off.
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

    /// Ends when it is given.
    pub async fn given(&self) {
        let mut waiting = std::pin::pin!(self.0.waiting.notified());
        // Before it is looked at, so that none is missed in between.
        waiting.as_mut().enable();
        if !self.is_given() {
            waiting.await;
        }
    }
}

/// Is told of a turn.
pub trait Observer: Send {
    /// Whether the answer is wanted word by word.
    fn wants_tokens(&self) -> bool {
        false
    }

    fn event(&mut self, event: Event<'_>);

    /// Writes down what has been done so far: before each call that acts, and when it has.
    ///
    /// # Errors
    /// If it is not written down: then nothing more may be done.
    fn record(&mut self, _state: &AgentState) -> impl Future<Output = Result<()>> + Send {
        ready(Ok(()))
    }

    /// Counts what an answer of the model cost, in the gateway's credits. `Break`: there is no money for another.
    fn spent(&mut self, _cost: f64) -> impl Future<Output = ControlFlow<Stop>> + Send {
        ready(ControlFlow::Continue(()))
    }
}
