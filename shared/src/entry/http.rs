//! HTTP on Lambda: serving, access, bodies and replies.

mod accept;
pub mod access;
mod addresses;
mod bearer;
mod body;
mod events;
mod filters;
mod idempotency_key;
mod not_modified;
mod openapi;
mod operation;
mod paging;
mod reply;
mod request_ids;
mod route;
mod sent;
mod serve;
mod token;

pub use accept::accepted_text;
pub use access::{Access, Person};
pub use addresses::{called_addresses, gateway_host};
pub use bearer::bearer;
pub use body::{body, json_body};
pub use declare::operation;
pub use events::{Frames, ServerSentEvents};
pub use filters::{DryRun, History, Newest, Number, OfAllTools, YesNo};
use idempotency_key::idempotency_key;
pub use lambda_http::Request;
pub use not_modified::is_known;
pub use openapi::{Document, Operation};
pub use operation::{
    Accepted, Answers, Asked, Asks, Begun, Caller, Created, Deleted, Found, Gone, Id, Ids, Made, Named, Paged, Part,
    Repeated, Route, Shown, Wanted,
};
pub use paging::{page, query};
pub use reply::{Afterwards, Reply, ReplyBody};
use route::{id, route};
pub use sent::{MaySend, Sent};
use serve::deadline;
pub use serve::{answer, answer_streaming, serve, serve_streaming};
pub use token::{NoToken, TokenVerifier, VerifiedToken};
