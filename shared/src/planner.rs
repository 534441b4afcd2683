//! The planner: a person's message, a tool chosen by a model, the tool run, an answer made of what it gave.
//!
//! ```text
//!  query_execution                           validate
//!  plan ─► no tool ───────────────► answer ──► answer and receipt ─► done
//!    │  ─► tools ─► execute ─► answer ─┘
//!    │                 ▲          └─ asks for another tool ─┐
//!    │                 └────────────────────────────────────┘  bounded
//!    └──► cannot be read, or asks for too much: one repair question
//! ```
//!
//! A question that needs no tool, and one that needs one, cost two requests to the model each, and there is one answer. The graph
//! ([`Planner::run`]) works on an [`AgentState`] and tells an [`Observer`] what happens as it happens; so an answer that comes whole
//! and one that comes word by word are the same turn. Where the model calls functions by itself, its calls are the plan
//! ([`Planner::function_calling`]); the state is the same either way.
//!
//! What is an answer is decided in one place (`answer_text.rs`): no plan is ever shown as one. What was done is told by a [`Receipt`]
//! that is made from the record, whatever the model says.
//!
//! Tools are those of a [`crate::tool::Toolbox`], and nothing else can be called. An effect happens once for thread, turn and
//! arguments ([`crate::tool::Subject::Turn`]). What a tool wants seen to first is in [`crate::models::ChatRules`].

mod answer_text;
mod consent;
mod model;
mod nodes;
mod observer;
mod offer;
mod plan;
mod prompt;
mod receipt;
mod state;
mod summary;
#[cfg(test)]
mod tests;
mod widget;

pub use self::{
    consent::shown,
    model::{PlannerModel, Tokens},
    nodes::{Decided, Ended, Planner, TurnLimits},
    observer::{Event, Observer, Stop, StopSignal},
    offer::Offer,
    receipt::{Entry, EntryState, Receipt},
    state::{AgentState, ChatMessage, Step, UserContext},
    summary::{is_long, summarize},
    widget::Widget,
};
