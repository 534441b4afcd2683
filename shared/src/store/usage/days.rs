//! Use by day: one item per budget and month, such as `<organization>#days#runs_per_hour#2026-11`, with an attribute per day
//! (`day_20`). A period of 90 days is at most 16 items in one read.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Number;

use super::{
    super::{
        database::{Item, id, number, text},
        write::Write,
    },
    Budgets, amount,
};
use crate::{
    Deadline, Error, Result,
    models::{Budget, OrganizationId, Timestamp},
};

/// After its day; longer than the longest period, for items are dropped by months.
const KEPT: Duration = Duration::from_secs(130 * 24 * 60 * 60);
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// An organization's use on one day, UTC.
#[derive(Debug, Clone, PartialEq)]
pub struct DayUse {
    /// `2026-11-20`
    pub date: String,
    /// `None` before anything was counted.
    pub used: Option<BTreeMap<Budget, Number>>,
}

impl Budgets {
    /// Adds to the use of the day of `now`. `since` is the first day that was counted in the month.
    pub(super) fn add_to_day(
        &self,
        organization: OrganizationId,
        budget: Budget,
        more: &Number,
        now: Timestamp,
    ) -> Write {
        let date = now.day();
        let (month, day) = (date.get(..7).unwrap_or_default(), date.get(8..).unwrap_or_default());
        let change = format!(
            "SET #day_{day} = if_not_exists(#day_{day}, :zero) + :more, #expires_at = :expires, #since = if_not_exists(#since, :date)"
        );
        self.table.update(id(key(organization, budget, month)), change).with([
            (":zero", number(0)),
            (":more", amount(more)),
            (":date", text(&date)),
            (":expires", number(now.plus(KEPT).as_seconds())),
        ])
    }

    /// The use on each of the last `days` days, oldest first; today is the last one.
    pub async fn days(&self, organization: OrganizationId, days: u32, deadline: Deadline) -> Result<Vec<DayUse>> {
        let now = Timestamp::now();
        let dates: Vec<String> = (0..days).rev().map(|ago| day_before(now, ago)).collect();
        let mut months: Vec<&str> = dates.iter().filter_map(|date| date.get(..7)).collect();
        months.dedup();
        let keys = months.iter().flat_map(|month| Budget::ALL.map(|budget| id(key(organization, budget, month))));
        let found = self.table.batch_get(keys.collect(), None, deadline).await?;
        let text_of = |item: &Item, name: &str| item.get(name).and_then(|value| value.as_s().ok()).cloned();
        let since = found.iter().filter_map(|item| text_of(item, "since")).min();
        let used = |date: &str, budget: Budget| {
            let key = key(organization, budget, date.get(..7)?);
            let item = found.iter().find(|item| text_of(item, "id").as_ref() == Some(&key))?;
            item.get(&format!("day_{}", date.get(8..)?))?.as_n().ok()
        };
        let of_day = |date: String| {
            let known = since.as_ref().is_some_and(|since| *since <= date);
            let number = |budget: Budget| match used(&date, budget) {
                None => Ok((budget, 0.into())),
                Some(number) => number.parse().map(|number: Number| (budget, number)).map_err(Error::internal),
            };
            let used = known.then(|| Budget::ALL.into_iter().map(number).collect::<Result<_>>()).transpose()?;
            Ok(DayUse { date, used })
        };
        dates.into_iter().map(of_day).collect()
    }
}

fn day_before(now: Timestamp, days: u32) -> String {
    Timestamp::from_millis(now.as_millis() - i64::from(days) * DAY_MS).day()
}

fn key(organization: OrganizationId, budget: Budget, month: &str) -> String {
    format!("{organization}#days#{}#{month}", budget.as_str())
}
