//! `usage`: organizations' use of their budgets. Key: id. TTL on `expires_at`.
//!
//! One item per budget and window, such as `<organization>#runs_per_hour#2026-11-20T16` or
//! `<organization>#own_cost_per_month#2026-11`. Items contain no personal data. `usage/days.rs` has the use by day.
//!
//! The transaction that writes a run counts it and checks the month's cost, without an extra read. Cost is added once known.
//! Executions are counted after their answer, for which a caller waits; the check uses the count this process last saw
//! (docs/adr/0013-budgets-are-counted-after-the-answer.md).

mod days;

pub use days::DayUse;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use aws_sdk_dynamodb::types::AttributeValue;
use serde::Deserialize;
use serde_json::Number;
use uuid::Uuid;

use super::{
    Organizations,
    database::{Database, Item, from_item, id, number, rows, text},
    table::Table,
    write::{Write, WriteResult},
};
use crate::{
    Deadline, Error, Result,
    error::{self, OverBudget},
    models::{Budget, BudgetLimits, BudgetUse, OrganizationId, Timestamp},
    telemetry,
};

/// After the end of the window, for inspection.
const KEPT: Duration = Duration::from_secs(31 * 24 * 60 * 60);

/// Clones share the known counts of executions.
#[derive(Clone)]
pub struct Budgets {
    table: Table,
    organizations: Organizations,
    /// The deployment's defaults.
    deployed: BudgetLimits,
    executions: Arc<Mutex<HashMap<OrganizationId, BudgetUse>>>,
}

#[derive(Deserialize)]
struct Used {
    id: String,
    used: Number,
}

pub(super) struct RunCount {
    pub(super) count: Write,
    pub(super) check: Write,
    /// Adds it to the day's use.
    pub(super) day: Write,
    runs: BudgetUse,
    cost: BudgetUse,
}

impl RunCount {
    /// The error for a refusal of `count` (`place` 0) or `check` (1).
    pub(super) fn refused(&self, place: usize) -> Error {
        over(if place == 0 { &self.runs } else { &self.cost }).into()
    }
}

impl Budgets {
    pub fn new(database: &Database, organizations: Organizations, deployed: BudgetLimits) -> Self {
        Self { table: database.table("usage"), organizations, deployed, executions: Arc::default() }
    }

    async fn limits(&self, organization: OrganizationId) -> Result<BudgetLimits> {
        Ok(self.deployed.with(self.organizations.budgets(organization).await?))
    }

    /// The current use of each budget. Caches the count of executions.
    pub async fn usage(&self, organization: OrganizationId, deadline: Deadline) -> Result<Vec<BudgetUse>> {
        let (limits, now) = (self.limits(organization).await?, Timestamp::now());
        let mut usage = Budget::ALL.map(|budget| unused(budget, &limits, now));
        let keys = usage.iter().map(|usage| id(key(organization, usage))).collect();
        let found: Vec<Used> = rows(self.table.batch_get(keys, Some("#id, #used"), deadline).await?);
        for usage in &mut usage {
            if let Some(found) = found.iter().find(|found| found.id == key(organization, usage)) {
                usage.used = found.used.clone();
            }
        }
        if let Some(executions) = usage.iter().find(|usage| usage.budget == Budget::ExecutionsPerHour) {
            self.remember(organization, executions.clone());
        }
        Ok(usage.into())
    }

    fn remember(&self, organization: OrganizationId, usage: BudgetUse) {
        let mut seen = self.executions.lock().unwrap_or_else(PoisonError::into_inner);
        seen.retain(|_, other| other.window == usage.window);
        seen.insert(organization, usage);
    }

    /// For the transaction that writes a new run.
    ///
    /// # Errors
    /// [`Error::OverBudget`] if a budget's limit is zero.
    pub(super) async fn run_in_transaction(&self, organization: OrganizationId, on_own_key: bool) -> Result<RunCount> {
        let (limits, now) = (self.limits(organization).await?, Timestamp::now());
        let [runs, cost] =
            [Budget::RunsPerHour, Budget::of_cost(on_own_key)].map(|budget| unused(budget, &limits, now));
        if let Some(nothing) = [&runs, &cost].into_iter().find(|budget| budget.is_used_up(now)) {
            return Err(over(nothing).into());
        }
        let room = "attribute_not_exists(#used) OR #used < :limit";
        let count = self.add(organization, &runs, &1.into()).when(room).with([(":limit", amount(&runs.limit))]);
        let check = self.table.check(id(key(organization, &cost))).when(room).with([(":limit", amount(&cost.limit))]);
        let day = self.add_to_day(organization, Budget::RunsPerHour, &1.into(), now);
        Ok(RunCount { count, check, day, runs, cost })
    }

    /// Adds the cost of a run; returns the organization's total use.
    pub async fn spend(&self, organization: OrganizationId, on_own_key: bool, cost: f64) -> Result<BudgetUse> {
        let limits = self.limits(organization).await?;
        let (budget, now) = (Budget::of_cost(on_own_key), Timestamp::now());
        let more = Number::from_f64(cost).unwrap_or_else(|| 0.into());
        let usage = self.count(organization, unused(budget, &limits, now), &more).await?;
        telemetry::spent(budget.as_str(), cost);
        let before = usage.used.as_f64().unwrap_or_default() - cost;
        // Once per month and organization: only the spending that crosses the limit.
        if usage.is_used_up(now) && before < usage.limit.as_f64().unwrap_or_default() {
            let budget = budget.as_str();
            tracing::warn!(organization.id = %organization, budget, "an organization has used up a budget");
            telemetry::budget_used_up(budget);
        }
        Ok(usage)
    }

    pub async fn count_executions(&self, organization: OrganizationId, executions: usize) -> Result<()> {
        let limits = self.limits(organization).await?;
        let unused = unused(Budget::ExecutionsPerHour, &limits, Timestamp::now());
        let usage = self.count(organization, unused, &executions.into()).await?;
        self.remember(organization, usage);
        Ok(())
    }

    /// Whether another execution is within budget, by the count this process last wrote or read.
    ///
    /// # Errors
    /// [`Error::OverBudget`]
    pub fn has_executions(&self, organization: OrganizationId) -> Result<()> {
        let seen = self.executions.lock().unwrap_or_else(PoisonError::into_inner);
        match seen.get(&organization).filter(|usage| usage.is_used_up(Timestamp::now())) {
            Some(used_up) => Err(over(used_up).into()),
            None => Ok(()),
        }
    }

    async fn count(&self, organization: OrganizationId, unused: BudgetUse, more: &Number) -> Result<BudgetUse> {
        let (WriteResult::Done(row) | WriteResult::Refused(row)) =
            once(self.add(organization, &unused, more)).attempt().await?;
        // Afterwards: a caller whose count failed counts the same again.
        let day = once(self.add_to_day(organization, unused.budget, more, Timestamp::now()));
        if let Err(error) = day.unless_refused().await {
            tracing::error!(organization.id = %organization, "a day's use was not counted: {}", error::chain(&error));
        }
        let used: Used = from_item(row)?;
        Ok(BudgetUse { used: used.used, ..unused })
    }

    fn add(&self, organization: OrganizationId, usage: &BudgetUse, more: &Number) -> Write {
        let key: Item = id(key(organization, usage));
        let change = "SET #used = if_not_exists(#used, :zero) + :more, #expires_at = :expires";
        self.table.update(key, change).with([
            (":zero", number(0)),
            (":more", amount(more)),
            (":expires", number(usage.window.until.plus(KEPT).as_seconds())),
        ])
    }
}

/// Not twice when the SDK resends the update after a lost answer: `last` names the last counted one.
fn once(add: Write) -> Write {
    let token = [(":token", text(Uuid::new_v4().to_string()))];
    add.and(", #last = :token").when("attribute_not_exists(#last) OR #last <> :token").with(token)
}

fn unused(budget: Budget, limits: &BudgetLimits, now: Timestamp) -> BudgetUse {
    BudgetUse { budget, used: 0.into(), limit: limits.of(budget), window: budget.window(now) }
}

fn key(organization: OrganizationId, usage: &BudgetUse) -> String {
    format!("{organization}#{}#{}", usage.budget.as_str(), usage.window.name)
}

fn amount(number: &Number) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

pub fn over(usage: &BudgetUse) -> OverBudget {
    let left = usage.window.until.as_millis() - Timestamp::now().as_millis();
    OverBudget {
        budget: usage.budget.as_str(),
        limit: usage.limit.clone(),
        until: usage.window.until.to_string(),
        retry_after: u64::try_from(left).unwrap_or_default().div_ceil(1_000).max(1),
        next_step: match usage.budget {
            Budget::PlatformCostPerMonth => {
                "wait until then, or store a key of your own for an LLM (PUT /api/{slug}/keys/llm)"
            }
            _ => "wait until then, or have the budget raised",
        },
    }
}
