//! Changes across VAPI or Secrets Manager and our tables, which no transaction spans.
//!
//! Every change records an intent, changes VAPI, then writes the rows and closes the intent in one transaction. If a step fails,
//! the change is settled at once under the leases it holds, with the code that [`Lifecycle::settle`] runs after a crash: it
//! compares both sides and makes VAPI follow our tables; deletions are completed. The user gets the first error. An intent that
//! cannot be settled stays open, and `settle` retries it.
//!
//! Secrets of rows follow a similar protocol: see [`StoredSecrets`].
//!
//! Leases: the agent's for its assistant's `toolIds`, the tool's for the tool, the knowledge base's for its query tool. They are
//! acquired in the order base, tool, agent.

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
mod settle_waker;
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
pub use settle_waker::{SettleWaker, Unfinished};
pub use stored_secrets::StoredSecrets;
pub use sync::Synced;
pub use tools::{Lifecycle, ToolDeletion, Updated, shown, unsaved};

use std::time::Duration;

use self::edit::Edit;
use crate::{Deadline, Error, Result, error};

/// Reserved to settle a change that fails.
const SETTLING: Duration = Duration::from_secs(5);

/// How long after its deadline an operation may still have effects.
const GRACE: Duration = Duration::from_secs(10);

/// How long an operation owns its intent.
pub(crate) fn ownership(deadline: Deadline) -> Duration {
    deadline.remaining() + GRACE
}

/// Logs a failed repair, which `settle` will retry.
fn left_open(what: &str, error: &Error) {
    tracing::error!("{what} could not be repaired and is left to settle: {}", error::chain(error));
}

/// A lease that cannot be released expires.
async fn release(releasing: impl Future<Output = Result<()>>) {
    if let Err(error) = releasing.await {
        tracing::warn!("a lease could not be released: {}", error::chain(&error));
    }
}
