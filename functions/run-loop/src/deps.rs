//! The parts of `run-loop`, and a run under its lease.

use std::time::Duration;

use shared::{
    Deadline,
    accounts::Accounts,
    automation::{FailurePause, RunStarter},
    catalogue::Catalogue,
    clients::{Llm, Queue, Scheduler},
    execution::Executor,
    idempotency::Idempotency,
    models::{AutomationRun, QueuedRun, RunCeilings},
    platform::Parts,
    store::{Approvals, AutomationRuns, Automations, Budgets, Lease},
};

/// The least time left for a step to begin: enough for most answers of a model. A longer answer is asked for again, with the
/// whole time of an invocation.
const STEP_NEEDS: Duration = Duration::from_secs(130);

/// The pause before the first retry of an action's tool.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// A run may be continued long after an effect, and must still find its claim: longer than any run may take.
const EFFECTS_COUNT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Parts)]
pub struct Deps {
    pub runs: AutomationRuns,
    pub queue: Queue<QueuedRun>,
    #[part(platform.catalogue_for_runs()?)]
    pub catalogue: Catalogue,
    #[part(platform.executor(Idempotency::new(platform.database()?, EFFECTS_COUNT_FOR))?)]
    pub executor: Executor,
    #[part(platform.accounts_with_llm()?)]
    pub accounts: Accounts,
    pub llm: Llm,
    pub budgets: Budgets,
    /// Ceilings of a run on the platform's key.
    pub ceilings: RunCeilings,
    /// Counts failed runs of automations.
    pub watch: FailurePause,
    pub approvals: Approvals,
    pub automations: Automations,
    /// Starts runs of other automations.
    pub starter: RunStarter,
    /// Wakes runs after long pauses.
    pub scheduler: Scheduler,
    /// The least time left for a step to begin; tests need less.
    #[part(STEP_NEEDS)]
    pub step_needs: Duration,
    /// The pause before an action's first retry; it doubles each time. Tests need none.
    #[part(RETRY_PAUSE)]
    pub retry_pause: Duration,
}

/// A run whose lease this invocation holds.
#[derive(Clone, Copy)]
pub(crate) struct Held<'a> {
    pub(crate) deps: &'a Deps,
    pub(crate) run: &'a AutomationRun,
    pub(crate) lease: &'a Lease,
    /// When the run must be left to a later invocation.
    pub(crate) deadline: Deadline,
}
