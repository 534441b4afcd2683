//! The planner: a model chooses tools for a person's message, then answers with their results.
//!
//! ```text
//!  query_execution                           validate
//!  plan ─► no tool ───────────────► answer ──► answer and receipt ─► done
//!    │  ─► tools ─► execute ─► answer ─┘
//!    │                 ▲          └─ requests another tool ─┐
//!    │                 └────────────────────────────────────┘  bounded
//!    └──► unreadable, or too many calls: one repair question
//! ```
//!
//! A question costs two model requests, with or without a tool. The graph ([`Planner::run`]) works on an [`AgentState`] and
//! reports each event to an [`Observer`], so a streamed answer and a whole one are the same turn.
//!
//! `answer_text.rs` alone separates answers from plans, so no plan is shown as an answer. The [`Receipt`] is made from the
//! record, not from the model's words.
//!
//! Only tools of the [`crate::tool::Toolbox`] can be called. An effect happens once per thread, turn and arguments
//! ([`crate::tool::Subject::Turn`]).

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
    nodes::{PendingResolution, Planner, TurnEnd, TurnLimits},
    observer::{Observer, Stop, StopSignal, TurnEvent},
    offer::Offer,
    receipt::{Entry, EntryState, Receipt},
    state::{AgentState, ChatMessage, TurnStep, UserContext},
    summary::{is_long, summarize},
    widget::Widget,
};
