//! The life of tools and attachments in two systems, VAPI and our tables, which no transaction spans.
//!
//! Every change goes the same way: an intent is recorded, VAPI is changed, and one transaction writes the rows and closes
//! the intent. If that fails, VAPI is put back and the intent closed. If even that fails, or the process dies, the intent
//! stays open, and [`Lifecycle::settle`] brings both sides together, with our tables as the truth; deletions are finished.
//!
//! A secret that belongs to a row goes a similar way: see [`StoredSecrets`].
//!
//! Who may change what, meanwhile: an assistant's `toolIds` change under the lease on the agent's row, a tool under the lease
//! on its own row, which tool belongs to a knowledge base under the lease on the base's. A base's lease is taken before a
//! tool's, a tool's before an agent's, never after.

mod assistants;
mod attachments;
mod edit;
mod external_tools;
mod query_tools;
mod references;
mod settle;
mod settling;
mod stored_secrets;
mod sync;
mod tools;

pub use assistants::Assistants;
pub use attachments::{Attached, Attachments};
pub use external_tools::ExternalTools;
pub use query_tools::{DetachedBase, QueryTool};
pub use references::References;
pub use settle::{Report, Settled};
pub use settling::{Settling, Unfinished};
pub use stored_secrets::StoredSecrets;
pub use sync::Synced;
pub use tools::{Deleted, Lifecycle, Updated, unsaved};

use std::time::Duration;

use self::edit::Edit;
use crate::{Deadline, error};

/// Kept back for putting VAPI right when a row cannot be written.
const UNDO: Duration = Duration::from_secs(5);

/// How long after its deadline an operation certainly does nothing more.
const GRACE: Duration = Duration::from_secs(10);

/// For how long an operation owns its intent.
fn ownership(deadline: Deadline) -> Duration {
    deadline.remaining() + GRACE
}

/// A log line for what could not be put right at once; `settle` will.
fn left_open(what: &str, error: &crate::Error) {
    tracing::error!("{what} could not be put right and is left to settle: {}", error::chain(error));
}
