//! Budgets of an organization per hour or month.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Number, Value};

use super::Timestamp;
use crate::names::Names;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Names)]
#[serde(rename_all = "snake_case")]
pub enum Budget {
    RunsPerHour,
    /// Executions of tools, by any caller.
    ExecutionsPerHour,
    /// The cost of runs on the platform's LLM key, in its credits.
    PlatformCostPerMonth,
    OwnCostPerMonth,
}

/// The hour or month of a budget, in UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetWindow {
    /// `2026-11-20T16` or `2026-11`.
    pub name: String,
    pub from: Timestamp,
    pub until: Timestamp,
}

impl Budget {
    pub const fn of_cost(on_own_key: bool) -> Self {
        if on_own_key { Self::OwnCostPerMonth } else { Self::PlatformCostPerMonth }
    }

    pub fn window(self, now: Timestamp) -> BudgetWindow {
        match self {
            Self::RunsPerHour | Self::ExecutionsPerHour => {
                let from = now.start_of_hour();
                BudgetWindow { name: now.hour(), from, until: from.plus(std::time::Duration::from_secs(60 * 60)) }
            }
            Self::PlatformCostPerMonth | Self::OwnCostPerMonth => {
                let from = now.start_of_month();
                // 32 days after the start of a month the next one has begun.
                let until = from.plus(std::time::Duration::from_secs(32 * 24 * 60 * 60)).start_of_month();
                BudgetWindow { name: from.to_string().chars().take(7).collect(), from, until }
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BudgetLimits {
    pub runs_per_hour: u32,
    pub executions_per_hour: u32,
    pub platform_cost_per_month: f64,
    pub own_cost_per_month: f64,
}

impl BudgetLimits {
    pub fn of(&self, budget: Budget) -> Number {
        let money = |amount: f64| Number::from_f64(amount).unwrap_or_else(|| 0.into());
        match budget {
            Budget::RunsPerHour => self.runs_per_hour.into(),
            Budget::ExecutionsPerHour => self.executions_per_hour.into(),
            Budget::PlatformCostPerMonth => money(self.platform_cost_per_month),
            Budget::OwnCostPerMonth => money(self.own_cost_per_month),
        }
    }

    #[must_use]
    pub fn with(self, own: OwnBudgets) -> Self {
        Self {
            runs_per_hour: own.runs_per_hour.unwrap_or(self.runs_per_hour),
            executions_per_hour: own.executions_per_hour.unwrap_or(self.executions_per_hour),
            platform_cost_per_month: own.platform_cost_per_month.unwrap_or(self.platform_cost_per_month),
            own_cost_per_month: own.own_cost_per_month.unwrap_or(self.own_cost_per_month),
        }
    }
}

/// `organizations.budgets`. An unreadable value falls back to the deployment's: a typing mistake must not close the
/// organization.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct OwnBudgets {
    pub runs_per_hour: Option<u32>,
    pub executions_per_hour: Option<u32>,
    pub platform_cost_per_month: Option<f64>,
    pub own_cost_per_month: Option<f64>,
}

impl<'de> Deserialize<'de> for OwnBudgets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = Value::deserialize(deserializer)?;
        let count = |budget: Budget| u32::try_from(given.get(budget.as_str())?.as_u64()?).ok();
        let money = |budget: Budget| given.get(budget.as_str())?.as_f64().filter(|amount| *amount >= 0.0);
        Ok(Self {
            runs_per_hour: count(Budget::RunsPerHour),
            executions_per_hour: count(Budget::ExecutionsPerHour),
            platform_cost_per_month: money(Budget::PlatformCostPerMonth),
            own_cost_per_month: money(Budget::OwnCostPerMonth),
        })
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct BudgetUse {
    pub budget: Budget,
    pub used: Number,
    pub limit: Number,
    pub window: BudgetWindow,
}

impl BudgetUse {
    pub fn is_used_up(&self, now: Timestamp) -> bool {
        let amount = |number: &Number| number.as_f64().unwrap_or_default();
        now < self.window.until && amount(&self.used) >= amount(&self.limit)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_window_is_an_hour_or_a_month_of_the_clock() {
        let window = |budget: Budget, now: &str| {
            let window = budget.window(now.parse().unwrap());
            (window.name, window.from.to_string(), window.until.to_string())
        };
        let of = |name: &str, from: &str, until: &str| (name.to_owned(), from.to_owned(), until.to_owned());
        assert_eq!(
            window(Budget::RunsPerHour, "2026-11-20T23:59:59.999Z"),
            of("2026-11-20T23", "2026-11-20T23:00:00.000Z", "2026-11-21T00:00:00.000Z"),
        );
        for now in ["2026-12-01T00:00:00.000Z", "2026-12-31T23:59:59.999Z"] {
            assert_eq!(
                window(Budget::OwnCostPerMonth, now),
                of("2026-12", "2026-12-01T00:00:00.000Z", "2027-01-01T00:00:00.000Z"),
            );
        }
        assert_eq!(window(Budget::PlatformCostPerMonth, "2028-02-29T12:00:00Z").2, "2028-03-01T00:00:00.000Z");
    }

    #[test]
    fn an_organizations_own_budget_counts_unless_it_is_unreadable() {
        let deployed = BudgetLimits {
            runs_per_hour: 1,
            executions_per_hour: 2,
            platform_cost_per_month: 3.0,
            own_cost_per_month: 4.0,
        };
        let read = |given: Value| deployed.with(serde_json::from_value(given).unwrap());
        assert_eq!(read(json!({})), deployed);
        assert_eq!(read(json!(null)), deployed);
        let odd = json!({"runs_per_hour": "many", "executions_per_hour": -1, "own_cost_per_month": -1, "newer": {}});
        assert_eq!(read(odd), deployed);
        let own = read(json!({"runs_per_hour": 0, "executions_per_hour": 20, "platform_cost_per_month": 0.5}));
        assert_eq!((own.runs_per_hour, own.executions_per_hour), (0, 20));
        assert_eq!(
            (own.of(Budget::PlatformCostPerMonth), own.own_cost_per_month),
            (json!(0.5).as_number().unwrap().clone(), 4.0)
        );
    }
}
