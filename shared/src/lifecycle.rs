//! Changes of two systems that no transaction spans: VAPI and our tables, or Secrets Manager and our tables. That what starts an
//! automation agrees with our tables is settled above this layer ([`SettleAbove`]).
//!
//! Every change goes the same way: it records an intent, changes VAPI, and writes the rows and closes the intent in one
//! transaction. If a step fails, the change is settled at once, under the leases it holds: the same code that
//! [`Lifecycle::settle`] runs after a crash compares both sides and makes VAPI follow our tables; deletions are finished.
//! The user gets the first error. What cannot be settled now stays on record as an open intent, and `settle` tries again.
//!
//! A secret that belongs to a row goes a similar way: see [`StoredSecrets`].
//!
//! Who may change what, meanwhile: an assistant's `toolIds` change under the lease on the agent's row, a tool under the lease
//! on its own row, which tool belongs to a knowledge base under the lease on the base's. A base's lease is acquired before a
//! tool's, a tool's before an agent's, never after.

mod agent_removal;
mod assistants;
mod attachments;
mod edit;
mod external_tools;
mod hooks;
mod query_tools;
mod references;
mod reissue;
mod settle;
mod settling;
mod stored_secrets;
mod sync;
mod tools;

pub use assistants::Assistants;
pub use attachments::{Attached, Attachments};
pub use external_tools::ExternalTools;
pub use hooks::{HookRegistry, MOST_SECRETS, NewHook};
pub use query_tools::{DetachedBase, QueryToolStatus};
pub use references::References;
pub use settle::{Progress, Report, ReportLine, SettleAbove};
pub(crate) use settle::{close, open, settle_now};
pub use settling::{Settling, Unfinished};
pub use stored_secrets::StoredSecrets;
pub use sync::Synced;
pub use tools::{Deleted, Lifecycle, Updated, shown, unsaved};

use std::time::Duration;

use self::edit::Edit;
use crate::{Deadline, Error, Result, error};

/// Kept back from a change's time for settling it if it fails.
const SETTLING: Duration = Duration::from_secs(5);

/// How long after its deadline an operation certainly does nothing more.
const GRACE: Duration = Duration::from_secs(10);

/// For how long an operation owns its intent.
pub(crate) fn ownership(deadline: Deadline) -> Duration {
    deadline.remaining() + GRACE
}

/// What is there; `None` for what is gone.
pub(crate) fn found<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A log line for what could not be put right at once; `settle` will.
fn left_open(what: &str, error: &Error) {
    tracing::error!("{what} could not be put right and is left to settle: {}", error::chain(error));
}

/// A lease that cannot be released runs out by itself.
async fn release(releasing: impl Future<Output = Result<()>>) {
    if let Err(error) = releasing.await {
        tracing::warn!("a lease could not be released: {}", error::chain(&error));
    }
}
