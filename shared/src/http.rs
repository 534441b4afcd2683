//! HTTP on Lambda: one way to serve, to let in, to read a body and to answer.

mod accept;
pub mod access;
mod bearer;
mod body;
mod events;
mod idempotency_key;
mod page;
mod reply;
mod request_ids;
mod roles;
mod route;
mod serve;
mod token;

pub use accept::accepted_text;
pub use access::{Access, Person};
pub use bearer::bearer;
pub use body::{body, id_body, json_body};
pub use events::{Events, Frames};
pub use idempotency_key::idempotency_key;
pub use lambda_http::Request;
pub use page::{history, page, page_by, query};
pub use reply::{Afterwards, Reply, ReplyBody};
pub use roles::{LEAST_ROLES, OWN_QUERIES, QUERIES};
pub use route::{id, route};
pub use serve::{answer, answer_streaming, deadline, serve, serve_streaming};
pub use token::{NoToken, TokenVerifier, VerifiedToken};
