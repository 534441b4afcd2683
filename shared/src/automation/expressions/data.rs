//! The data that paths of templates and conditions resolve against.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use jiff::{SignedDuration, Zoned, civil::Weekday, tz::TimeZone};
use serde_json::{Map, Value};

use super::path::{Path, PathStep};
use crate::models::Timestamp;

/// The name of an item in a condition about the items of a list.
pub(in crate::automation) const ITEM: &str = "item";

/// Built-in dates and times, without the suffixes `_utc` and `_local`: days from today, days from Monday, and hours ago.
const DAYS: [(&str, i64); 4] = [("today", 0), ("tomorrow", 1), ("yesterday", -1), ("two_days_ago", -2)];
const DAYS_OF_WEEK: [(&str, i64); 2] = [("this_week_start", 0), ("this_week_end", 6)];
const HOURS_AGO: [(&str, i64); 5] =
    [("now", 0), ("now_minus_1h", 1), ("now_minus_6h", 6), ("now_minus_12h", 12), ("now_minus_24h", 24)];

fn dates() -> impl Iterator<Item = &'static str> {
    DAYS.iter().chain(&DAYS_OF_WEEK).chain(&HOURS_AGO).map(|(name, _)| *name)
}

/// All built-in names: `today`, `today_utc`, `today_local`, …
pub(in crate::automation) fn date_names() -> impl Iterator<Item = String> {
    dates().flat_map(|name| ["", "_utc", "_local"].map(|zone| format!("{name}{zone}")))
}

pub(in crate::automation) fn is_date(name: &str) -> bool {
    dates().any(|date| date == in_which_zone(name).0)
}

fn in_which_zone(name: &str) -> (&str, bool) {
    match name.strip_suffix("_utc") {
        Some(name) => (name, true),
        None => (name.strip_suffix("_local").unwrap_or(name), false),
    }
}

/// A value and its lower-case copy, made once for all case-insensitive clauses.
#[derive(Debug, Clone)]
pub struct Lowered<'v> {
    value: Cow<'v, Value>,
    lowered: OnceLock<Value>,
}

impl<'v> Lowered<'v> {
    pub const fn of(value: &'v Value) -> Self {
        Self { value: Cow::Borrowed(value), lowered: OnceLock::new() }
    }

    pub fn value(&self) -> &Value {
        &self.value
    }

    fn lowered(&self) -> &Value {
        self.lowered.get_or_init(|| lowered(&self.value))
    }
}

impl From<Value> for Lowered<'_> {
    fn from(value: Value) -> Self {
        Self { value: Cow::Owned(value), lowered: OnceLock::new() }
    }
}

impl Default for Lowered<'_> {
    fn default() -> Self {
        Value::Null.into()
    }
}

/// Lower-cases texts. Member names stay as they are, because paths name them.
pub(super) fn lowered(value: &Value) -> Value {
    match value {
        Value::String(text) => text.to_lowercase().into(),
        Value::Array(items) => items.iter().map(lowered).collect(),
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), lowered(value))).collect(),
        other => other.clone(),
    }
}

/// Outputs of a run's actions, by `output_as`. A copy shares the values.
#[derive(Debug, Clone, Default)]
pub struct Outputs {
    given: BTreeMap<String, Arc<Lowered<'static>>>,
    lacking: BTreeMap<String, Lacking>,
}

/// An output that its action did not give.
#[derive(Debug, Clone)]
pub(in crate::automation) struct Lacking {
    action: String,
    became: &'static str,
}

/// Outcomes in words that an author wanted, unlike a failure.
pub(in crate::automation) const SKIPPED: &str = "was skipped";
pub(in crate::automation) const NOT_TAKEN: &str = "is in a branch that was not taken";

impl Lacking {
    /// Whether the author wanted the action not to run.
    pub(in crate::automation) fn is_wanted(&self) -> bool {
        [SKIPPED, NOT_TAKEN].contains(&self.became)
    }

    pub(in crate::automation) fn in_words(&self) -> String {
        format!("the action {} {}, so its output proves nothing", self.action, self.became)
    }
}

impl Outputs {
    pub fn give(&mut self, name: &str, output: Value) {
        self.lacking.remove(name);
        self.given.insert(name.to_owned(), Arc::new(output.into()));
    }

    pub(in crate::automation) fn given(&self, name: &str) -> Option<&Value> {
        self.given.get(name).map(|output| output.value())
    }

    pub(in crate::automation) fn all_given(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.given.iter().map(|(name, output)| (name.as_str(), output.value()))
    }

    pub(in crate::automation) fn forget(&mut self, name: &str) {
        self.given.remove(name);
        self.lacking.remove(name);
    }

    /// Records that an action gave no output. `became`: its outcome in words, such as `failed`.
    pub fn lack(&mut self, name: &str, action: &str, became: &'static str) {
        if !self.given.contains_key(name) {
            self.lacking.insert(name.to_owned(), Lacking { action: action.to_owned(), became });
        }
    }
}

#[derive(Debug, Clone)]
pub struct Data<'a> {
    /// Take precedence over everything else.
    pub variables: &'a Map<String, Value>,
    pub outputs: &'a Outputs,
    /// Its members are also reachable at the root.
    pub trigger_data: &'a Lowered<'a>,
    pub user: &'a Value,
    pub now: Timestamp,
    /// The trigger's zone, or the user's.
    pub zone: TimeZone,
    /// An item of a list and its name, which hides every other meaning of the name.
    pub item: Option<(&'a str, &'a Value)>,
}

pub(in crate::automation) fn zone_named(name: Option<&Value>) -> Option<TimeZone> {
    TimeZone::get(name?.as_str()?).ok()
}

enum Root<'d> {
    Value(&'d Value),
    Lowered(&'d Lowered<'d>),
    Date(String),
}

impl<'a> Data<'a> {
    /// Without outputs, in the user's zone.
    pub fn of_trigger(
        variables: &'a Map<String, Value>,
        trigger_data: &'a Lowered<'a>,
        user: &'a Value,
        now: Timestamp,
    ) -> Self {
        static NO_OUTPUTS: Outputs = Outputs { given: BTreeMap::new(), lacking: BTreeMap::new() };
        let zone = zone_named(user.get("timezone")).unwrap_or(TimeZone::UTC);
        Self { variables, outputs: &NO_OUTPUTS, trigger_data, user, now, zone, item: None }
    }

    pub fn get(&self, path: &Path) -> Option<Cow<'_, Value>> {
        let (root, rest) = self.root(path)?;
        match root {
            Root::Value(value) => Path::follow(rest, value).map(Cow::Borrowed),
            Root::Lowered(lowered) => Path::follow(rest, &lowered.value).map(Cow::Borrowed),
            Root::Date(date) => Some(Cow::Owned(date.into())),
        }
    }

    /// Whether the value was cut from its output or event.
    pub(in crate::automation) fn is_cut_off(&self, path: &Path) -> bool {
        self.root(path).is_some_and(|(root, rest)| match root {
            Root::Value(value) => Path::is_cut_off(rest, value),
            Root::Lowered(lowered) => Path::is_cut_off(rest, &lowered.value),
            Root::Date(_) => false,
        })
    }

    /// As [`Data::get`], with texts in lower case.
    pub(super) fn get_lowered(&self, path: &Path) -> Option<Cow<'_, Value>> {
        let (root, rest) = self.root(path)?;
        match root {
            Root::Value(value) => Path::follow(rest, value).map(lowered).map(Cow::Owned),
            Root::Lowered(value) => Path::follow(rest, value.lowered()).map(Cow::Borrowed),
            Root::Date(date) => Some(Cow::Owned(date.to_lowercase().into())),
        }
    }

    /// Whether lower-case texts at the path are made once, and kept.
    pub(super) fn keeps_lowered(&self, path: &Path) -> bool {
        matches!(self.root(path), Some((Root::Lowered(_), _)))
    }

    /// The missing output at the start of a path, if the path begins with one.
    pub(in crate::automation) fn lacking(&self, path: &Path) -> Option<&'a Lacking> {
        let name = path.first();
        let is_item = self.item.is_some_and(|(item, _)| item == name);
        let outputs: &'a Outputs = self.outputs;
        outputs.lacking.get(name).filter(|_| !is_item && !self.variables.contains_key(name))
    }

    pub(super) fn lacks_outputs(&self) -> bool {
        !self.outputs.lacking.is_empty()
    }

    fn root<'p>(&self, path: &'p Path) -> Option<(Root<'_>, &'p [PathStep])> {
        let (first, rest) = path.steps().split_first()?;
        let name = first.name();
        if let Some((_, item)) = self.item.filter(|(item, _)| *item == name) {
            return Some((Root::Value(item), rest));
        }
        if let Some(value) = self.variables.get(name) {
            return Some((Root::Value(value), rest));
        }
        if let Some(output) = self.outputs.given.get(name) {
            return Some((Root::Lowered(output), rest));
        }
        if self.outputs.lacking.contains_key(name) {
            return None;
        }
        Some(match name {
            "trigger_data" => (Root::Lowered(self.trigger_data), rest),
            "user" => (Root::Value(self.user), rest),
            name if is_date(name) => (Root::Date(self.date(name).filter(|_| rest.is_empty())?), rest),
            _ => (Root::Lowered(self.trigger_data), path.steps()),
        })
    }

    fn date(&self, name: &str) -> Option<String> {
        let (name, utc) = in_which_zone(name);
        let zone = if utc { TimeZone::UTC } else { self.zone.clone() };
        let now = jiff::Timestamp::from_millisecond(self.now.as_millis()).ok()?.to_zoned(zone);
        let of = |dates: &[(&str, i64)]| dates.iter().find(|(date, _)| *date == name).map(|(_, number)| *number);
        if let Some(hours) = of(&HOURS_AGO) {
            return now.checked_sub(SignedDuration::from_hours(hours)).ok().map(|then| moment(&then, utc));
        }
        let since_monday = i64::from(now.date().weekday().since(Weekday::Monday));
        let days = of(&DAYS).or_else(|| Some(of(&DAYS_OF_WEEK)? - since_monday))?;
        let date = now.date().checked_add(jiff::Span::new().try_days(days).ok()?).ok()?;
        Some(date.to_string())
    }
}

fn moment(at: &Zoned, utc: bool) -> String {
    at.strftime(if utc { "%Y-%m-%dT%H:%M:%SZ" } else { "%Y-%m-%dT%H:%M:%S%:z" }).to_string()
}
