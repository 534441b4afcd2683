//! Use by day.

use std::collections::BTreeMap;

use serde_json::Number;

use super::{super::database::id, Budgets, Place, count_in, is_item, unused};
use crate::{
    Deadline, Result,
    models::{Budget, OrganizationId, Timestamp},
};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// An organization's use on one day, UTC.
#[derive(Debug, Clone, PartialEq)]
pub struct DayUse {
    /// `2026-11-20`
    pub date: String,
    /// `None` before the first count in the period: nothing was used, or it was not counted by day yet.
    pub used: Option<BTreeMap<Budget, Number>>,
}

impl Budgets {
    /// The use on each of the last `days` days, oldest first; today is the last one.
    pub async fn days(&self, organization: OrganizationId, days: u32, deadline: Deadline) -> Result<Vec<DayUse>> {
        let (limits, now) = (self.limits(organization).await?, Timestamp::now());
        let day_before = |ago: u32| Timestamp::from_millis(now.as_millis() - i64::from(ago) * DAY_MS);
        let of_day = |day: Timestamp| {
            let places =
                Budget::ALL.map(|budget| (budget, Place::on(organization, &unused(budget, &limits, day), day)));
            (day.day(), places)
        };
        let places: Vec<_> = (0..days).rev().map(|ago| of_day(day_before(ago))).collect();
        let keys = places.iter().flat_map(|(_, places)| places.iter().map(|(_, place)| id(&place.key))).collect();
        let found = self.table.batch_get(keys, None, deadline).await?;
        let since = found.iter().filter_map(|item| item.get("since")?.as_s().ok()).min();
        let shown = places.into_iter().map(|(date, places)| {
            let used = |place: &Place| {
                let item = found.iter().find(|item| is_item(item, &place.key))?;
                count_in(item, &place.day)
            };
            let is_known = since.is_some_and(|since| *since <= date);
            let of = |(budget, place): (Budget, Place)| (budget, used(&place).unwrap_or_else(|| 0.into()));
            DayUse { used: is_known.then(|| places.into_iter().map(of).collect()), date }
        });
        Ok(shown.collect())
    }
}
