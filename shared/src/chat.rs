//! Conversations of people with the planner.
//!
//! Whole and streamed answers are the same turn: [`Turns::open`] makes every refusal before the first event; [`Turns::answer`]
//! answers and reports each event to an [`crate::planner::Observer`]. A turn that cannot continue alone waits
//! ([`crate::models::PendingCall`]) for the person's consent or for a result of the front end, which the next request brings
//! ([`Awaited`]). A repeated request is the same turn, during the answer and later (`running.rs`).

mod asked;
mod front_end;
mod opening;
pub mod planner;
mod request;
mod running;
mod turn;

pub use self::{
    asked::{
        Awaited, ChatInput, Consent, FrontEndResult, LONGEST_MESSAGE, LONGEST_THREAD, message_content, message_text,
    },
    front_end::FrontEndTool,
    running::{Followed, RunningTurnView, running_view, unanswered},
    turn::{CalledTool, OpenTurn, PendingAction, TurnAnswer, TurnMetadata, TurnSettings, Turns},
};
