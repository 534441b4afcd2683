//! Who is told of a turn while it happens: a stream, or nobody.

use std::{future::ready, ops::ControlFlow};

use serde_json::{Map, Value};

use super::{Step, Widget};
use crate::{
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
    /// A part of the answer. The parts together are the message, unless it is corrected.
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
    Widget(&'a Widget),
    /// Nothing more happens in this turn until the person has decided.
    Consent(&'a PendingCall),
    /// The answer, whole; what it says in the place of tokens that claimed too much.
    Message(&'a str),
}

/// Why a turn is to end.
#[derive(Debug, Clone)]
pub enum Stop {
    /// Somebody wants it to.
    Requested,
    OverBudget(OverBudget),
}

/// Is told of a turn, and may end it.
pub trait Observer: Send {
    /// Whether the answer is wanted word by word.
    fn wants_tokens(&self) -> bool {
        false
    }

    fn event(&mut self, event: Event<'_>);

    /// Counts what an answer of the model cost, in the gateway's credits. `Break`: there is no money for another.
    fn spent(&mut self, cost: f64) -> impl Future<Output = ControlFlow<Stop>> + Send;

    /// Asked between steps. `Break`: the turn is to end.
    fn may_go_on(&mut self) -> impl Future<Output = ControlFlow<Stop>> + Send {
        ready(ControlFlow::Continue(()))
    }
}
