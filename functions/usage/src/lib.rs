//! The organization's use of its budgets.

use std::str::FromStr;

use futures_util::try_join;
use serde::Serialize;
use serde_json::Number;
use shared::{
    Error, Result,
    described::Described,
    http::{Access, Asked, Asks, Shown, Wanted, operation},
    models::{Budget, BudgetUse, Timestamp},
    platform::Parts,
    store::{Budgets, DayUse},
};

shared::routes!(Deps, "budgets": get_usage);

#[derive(Parts)]
pub struct Deps {
    pub access: Access,
    pub budgets: Budgets,
}

#[derive(Serialize, Described)]
struct UsageView {
    /// Runs that `POST /api/{slug}/runs` started.
    runs_per_hour: BudgetUseView,
    /// Executions of tools that were begun.
    executions_per_hour: BudgetUseView,
    /// The cost of runs on the platform's LLM key, in its credits.
    platform_cost_per_month: BudgetUseView,
    /// The same on the organization's own key.
    own_cost_per_month: BudgetUseView,
    /// With `days`: the use on each day, oldest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    days: Option<Vec<DayView>>,
}

/// The use on a day; null before anything was counted.
#[derive(Serialize, Described)]
struct DayView {
    /// The day, UTC: `2026-11-20`.
    date: String,
    /// Runs that `POST /api/{slug}/runs` started.
    runs: Option<Number>,
    /// Executions of tools that were begun.
    executions: Option<Number>,
    /// The cost of runs on the platform's LLM key.
    platform_cost: Option<Number>,
    /// The cost of runs on the organization's own key.
    own_cost: Option<Number>,
}

impl From<DayUse> for DayView {
    fn from(DayUse { date, used }: DayUse) -> Self {
        let of = |budget: Budget| used.as_ref().and_then(|used| used.get(&budget).cloned());
        Self {
            runs: of(Budget::RunsPerHour),
            executions: of(Budget::ExecutionsPerHour),
            platform_cost: of(Budget::PlatformCostPerMonth),
            own_cost: of(Budget::OwnCostPerMonth),
            date,
        }
    }
}

/// `?days=30`
struct Days(u32);

shared::described!(Days => {"type": "integer", "minimum": 1, "maximum": 90});

impl FromStr for Days {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let days = text.parse().ok().filter(|days| (1..=90).contains(days));
        days.map(Self).ok_or("must be a whole number from 1 to 90")
    }
}

impl Asks for Days {
    const NAME: &'static str = "days";
    const DOC: &'static str = "Also the use on each of the last days, today included.";
}

#[derive(Serialize, Described)]
struct BudgetUseView {
    #[schema(minimum = 0)]
    used: Number,
    #[schema(minimum = 0)]
    limit: Number,
    /// When the present hour or month began.
    from: Timestamp,
    /// When it ends.
    until: Timestamp,
}

/// Get the usage of budgets
///
/// Hours and months are those of the clock, UTC. `runs_per_hour` counts runs that `POST /api/{slug}/runs` starts; runs of
/// automations have quotas of their own. Over it, or over the month's cost on the key that would be used, a run is refused
/// with a 429; a run that brings the month's cost over its budget ends before the next request to the model, with the
/// status `cost_limit`. Executions of tools are counted after their answer: over `executions_per_hour` a model is told so in
/// a sentence, and each process that runs tools may let a few more through until it has counted.
///
/// - 200: Each budget.
///
/// ```json,200
/// {"runs_per_hour": {"used": 3, "limit": 100, "from": "2026-02-27T10:00:00.000Z", "until": "2026-02-27T11:00:00.000Z"},
///  "executions_per_hour": {"used": 41, "limit": 3000, "from": "2026-02-27T10:00:00.000Z", "until": "2026-02-27T11:00:00.000Z"},
///  "platform_cost_per_month": {"used": 1.25, "limit": 50.0, "from": "2026-02-01T00:00:00.000Z", "until": "2026-03-01T00:00:00.000Z"},
///  "own_cost_per_month": {"used": 0, "limit": 1000.0, "from": "2026-02-01T00:00:00.000Z", "until": "2026-03-01T00:00:00.000Z"}}
/// ```
#[operation(GET "/api/{slug}/usage", Viewer, resource(Usage))]
async fn get_usage(deps: &Deps, asked: &Asked<'_>, days: Wanted<Days>) -> Result<Shown<UsageView>> {
    let (organization, deadline) = (asked.organization(), asked.deadline);
    let days = async {
        match days.0 {
            Some(Days(days)) => deps.budgets.days(organization, days, deadline).await.map(Some),
            None => Ok(None),
        }
    };
    let (usage, days) = try_join!(deps.budgets.usage(organization, deadline), days)?;
    let of = |budget: Budget| {
        let found = usage.iter().find(|usage| usage.budget == budget);
        let BudgetUse { used, limit, window, .. } =
            found.cloned().ok_or_else(|| Error::internal(format!("no use of {} was read", budget.as_str())))?;
        Ok::<_, Error>(BudgetUseView { used, limit, from: window.from, until: window.until })
    };
    Ok(Shown(UsageView {
        runs_per_hour: of(Budget::RunsPerHour)?,
        executions_per_hour: of(Budget::ExecutionsPerHour)?,
        platform_cost_per_month: of(Budget::PlatformCostPerMonth)?,
        own_cost_per_month: of(Budget::OwnCostPerMonth)?,
        days: days.map(|days| days.into_iter().map(DayView::from).collect()),
    }))
}
