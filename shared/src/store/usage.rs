//! `usage`: organizations' use of their budgets. Key: id. TTL on `expires_at`.
//!
//! One item a day for a budget of an hour (`<organization>#runs_per_hour#2026-11-20`: `hour_16`, `day`), one a month for a budget
//! of a month (`<organization>#own_cost_per_month#2026-11`: `used`, `day_20`). One update counts the window and the day. Items
//! contain no personal data. `usage/days.rs` reads the use by day.
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
use serde_json::Number;
use uuid::Uuid;

use super::{
    Organizations,
    database::{Database, Item, id, number, text},
    table::Table,
    write::{Write, WriteResult},
};
use crate::{
    Deadline, Error, Result,
    error::OverBudget,
    models::{Budget, BudgetLimits, BudgetUse, OrganizationId, Timestamp},
    telemetry,
};

/// After the end of the window. The use of the last 90 days is shown.
const KEPT: Duration = Duration::from_secs(100 * 24 * 60 * 60);

#[derive(Clone)]
pub struct Budgets {
    table: Table,
    organizations: Organizations,
    /// The deployment's defaults.
    deployed: BudgetLimits,
    executions: Arc<Mutex<HashMap<OrganizationId, BudgetUse>>>,
}

pub(super) struct RunCount {
    pub(super) count: Write,
    pub(super) check: Write,
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
        let keys = usage.iter().map(|usage| id(Place::of(organization, usage).key)).collect();
        let found = self.table.batch_get(keys, None, deadline).await?;
        for usage in &mut usage {
            let place = Place::of(organization, usage);
            let used = found.iter().find(|item| is_item(item, &place.key)).and_then(|item| count_in(item, &place.used));
            usage.used = used.unwrap_or_else(|| 0.into());
        }
        if let Some(executions) = usage.iter().find(|usage| usage.budget == Budget::ExecutionsPerHour) {
            self.remember(organization, executions.clone());
        }
        Ok(usage.into())
    }

    fn remember(&self, organization: OrganizationId, mut usage: BudgetUse) {
        let mut seen = self.executions.lock().unwrap_or_else(PoisonError::into_inner);
        seen.retain(|_, other| other.window == usage.window);
        // A read that began before a count may end after it.
        if let Some(known) = seen.get(&organization)
            && known.used.as_u64() > usage.used.as_u64()
        {
            usage.used.clone_from(&known.used);
        }
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
        let room = |place: &Place| format!("attribute_not_exists(#{0}) OR #{0} < :limit", place.used);
        let [counted, checked] = [&runs, &cost].map(|usage| Place::of(organization, usage));
        let count = self.add(organization, &runs, &1.into()).when(room(&counted));
        let count = count.with([(":limit", amount(&runs.limit))]);
        let check = self.table.check(id(&checked.key)).when(room(&checked)).with([(":limit", amount(&cost.limit))]);
        Ok(RunCount { count, check, runs, cost })
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
    pub fn check_execution_budget(&self, organization: OrganizationId) -> Result<()> {
        let seen = self.executions.lock().unwrap_or_else(PoisonError::into_inner);
        match seen.get(&organization).filter(|usage| usage.is_used_up(Timestamp::now())) {
            Some(used_up) => Err(over(used_up).into()),
            None => Ok(()),
        }
    }

    async fn count(&self, organization: OrganizationId, unused: BudgetUse, more: &Number) -> Result<BudgetUse> {
        let token = Uuid::new_v4().to_string();
        // `last` is the last counted update: when the SDK resends it after a lost answer, it must not count twice.
        let counted = self
            .add(organization, &unused, more)
            .and(", #last = :token")
            .when("attribute_not_exists(#last) OR #last <> :token")
            .with([(":token", text(token))]);
        let (WriteResult::Done(row) | WriteResult::Refused(row)) = counted.attempt().await?;
        let used = count_in(&row, &Place::of(organization, &unused).used);
        let used = used.ok_or_else(|| Error::internal("a count is no number"))?;
        Ok(BudgetUse { used, ..unused })
    }

    fn add(&self, organization: OrganizationId, usage: &BudgetUse, more: &Number) -> Write {
        let Place { key, used, day } = Place::of(organization, usage);
        let change = format!(
            "SET #{used} = if_not_exists(#{used}, :zero) + :more, #{day} = if_not_exists(#{day}, :zero) + :more, \
             #since = if_not_exists(#since, :today), #expires_at = :expires"
        );
        self.table.update(id(key), change).with([
            (":zero", number(0)),
            (":more", amount(more)),
            (":today", text(Timestamp::now().day())),
            (":expires", number(usage.window.until.plus(KEPT).as_seconds())),
        ])
    }
}

struct Place {
    key: String,
    used: String,
    day: String,
}

impl Place {
    fn of(organization: OrganizationId, usage: &BudgetUse) -> Self {
        Self::on(organization, usage, Timestamp::now())
    }

    fn on(organization: OrganizationId, usage: &BudgetUse, now: Timestamp) -> Self {
        let (budget, window) = (usage.budget.as_str(), &usage.window.name);
        match window.split_once('T') {
            Some((day, hour)) => Self {
                key: format!("{organization}#{budget}#{day}"),
                used: format!("hour_{hour}"),
                day: "day".to_owned(),
            },
            None => Self {
                key: format!("{organization}#{budget}#{window}"),
                used: "used".to_owned(),
                day: format!("day_{}", now.day().chars().skip(8).collect::<String>()),
            },
        }
    }
}

fn is_item(item: &Item, key: &str) -> bool {
    item.get("id").and_then(|id| id.as_s().ok()).is_some_and(|id| id == key)
}

fn count_in(item: &Item, name: &str) -> Option<Number> {
    item.get(name)?.as_n().ok()?.parse().ok()
}

fn unused(budget: Budget, limits: &BudgetLimits, now: Timestamp) -> BudgetUse {
    BudgetUse { budget, used: 0.into(), limit: limits.of(budget), window: budget.window(now) }
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
