//! Conversations of people with the planner: a thread is held, a turn is taken, and what it does is written down when it happens.
//!
//! Every door (whole answers, streams) is the same turn: [`Turns::open`] decides whatever can be refused, before anything is said;
//! [`Turns::answer`] answers and tells an [`crate::planner::Observer`] as it happens. A turn that can go no further by itself waits
//! ([`crate::models::PendingCall`]) for the person's consent or for what a tool of the front end gives, and the next request brings
//! it ([`Awaited`]). The same request again, while it is answered or later, is the same turn (`running.rs`).

mod asked;
mod front_end;
mod opening;
mod request;
mod running;
mod turn;

pub use self::{
    asked::{Asked, Awaited, Consent, FrontEndResult, LONGEST_MESSAGE, LONGEST_THREAD},
    front_end::FrontEndTool,
    running::{Followed, running_view, unanswered},
    turn::{Answer, OpenTurn, TurnSettings, Turns, waiting_view},
};
