//! Triggers of automations: `trigger_type` and `trigger_config`.

use jiff::{
    Zoned, civil,
    tz::{AmbiguousOffset, TimeZone},
};
use serde_json::{Map, Value, json};

use super::{
    diagnostics::{Code, Diagnostic, Diagnostics, child},
    fields::{Members, wrong_type},
    schedule::{ScheduleRule, cron::CronExpression, excluded_days::ExcludedDay},
};
use crate::{
    automation::{
        expressions::{conditions::Condition, filters::local_time, path::Path},
        nearest,
    },
    models::{Timestamp, folded_name},
    names::Names,
    webhooks::{ANY_EVENT, own_name, own_service},
};

pub const TRIGGER_TYPES: [&str; 5] = ["webhook", "polling", "schedule_once", "schedule_recurring", "manual"];
pub const INTERVALS: [&str; 7] = ["5min", "15min", "30min", "1hr", "6hr", "daily", "weekly"];
pub const AGGREGATION_MODES: [&str; 4] = ["per_item", "latest", "batch", "summary"];
pub const MISSED: [&str; 2] = ["run_once", "skip"];
/// Sunday is 0.
pub const DAYS: [&str; 7] = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

const USUAL_POLLING_MINUTES: u64 = 15;
const LONGEST_POLLING_MINUTES: u64 = 7 * 24 * 60;
const LONGEST_NAME: usize = 200;
pub const MOST_CRON_EXPRESSIONS: usize = 10;
pub const MOST_EXCLUDED_DAYS: usize = 100;

#[derive(Debug, Clone, PartialEq, Names)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    Webhook {
        service: String,
        event_type: String,
        /// Configuration of the event's deployed trigger, if it has one.
        params: Map<String, Value>,
        filters: Option<Condition>,
    },
    Polling(Polling),
    ScheduleOnce {
        run_at: Timestamp,
        missed: Missed,
    },
    ScheduleRecurring {
        rule: ScheduleRule,
        missed: Missed,
    },
    Manual,
}

/// The treatment of occurrences missed during a pause, after reactivation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Missed {
    /// Run once for all of them; for a source, take the items that are new by then.
    #[default]
    RunOnce,
    /// Continue from now.
    Skip,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Polling {
    /// Empty for a tool of no service.
    pub service: String,
    pub source_tool: String,
    pub event_type: Option<String>,
    pub tool_params: Map<String, Value>,
    /// Path of the list in the answer; empty for the whole answer.
    pub items: Option<String>,
    pub id: Option<String>,
    pub polling_interval_minutes: u64,
    pub filter: Option<Condition>,
    /// `per_item`, `latest`, `batch` or `summary`.
    pub aggregation_mode: &'static str,
    pub missed: Missed,
}

impl Trigger {
    /// The event and the params of its deployed trigger, as JSON text: `["slack","message",{…}]`. `None` for other triggers.
    pub fn deployed_for(&self) -> Option<String> {
        let Self::Webhook { service, event_type, params, .. } = self else { return None };
        Some(json!([folded_name(service), event_type.trim().to_lowercase(), params]).to_string())
    }

    pub fn missed(&self) -> Missed {
        match self {
            Self::Polling(Polling { missed, .. })
            | Self::ScheduleOnce { missed, .. }
            | Self::ScheduleRecurring { missed, .. } => *missed,
            Self::Webhook { .. } | Self::Manual => Missed::default(),
        }
    }

    pub fn service(&self) -> Option<&str> {
        match self {
            Self::Webhook { service, .. } => Some(service),
            Self::Polling(Polling { service, .. }) => Some(service.as_str()).filter(|service| !service.is_empty()),
            _ => None,
        }
    }

    pub fn filter(&self) -> Option<&Condition> {
        match self {
            Self::Webhook { filters, .. } => filters.as_ref(),
            Self::Polling(Polling { filter, .. }) => filter.as_ref(),
            _ => None,
        }
    }

    /// The trigger of a saved definition; `None` if any part of it is unknown.
    pub fn stored(definition: &Value) -> Option<Self> {
        let mut diagnostics = Diagnostics::default();
        let trigger = Self::read(&mut Members::of(definition, "", &mut diagnostics)?);
        trigger.filter(|_| !diagnostics.has_errors())
    }

    /// Parses type and configuration, and reports all mistakes.
    pub(super) fn read(definition: &mut Members<'_, '_>) -> Option<Self> {
        let kind = trigger_type(definition);
        let config = definition.get("trigger_config");
        let kind = kind?;
        let empty = Value::Object(Map::new());
        let config = match (config, kind) {
            (Some(config), _) => config,
            (None, "manual") => &empty,
            (None, _) => {
                definition.missing("trigger_config", example(kind));
                return None;
            }
        };
        let mut config = Members::of(config, &definition.path("trigger_config"), definition.report)?;
        let trigger = match kind {
            "webhook" => webhook(&mut config),
            "polling" => polling(&mut config),
            "schedule_once" => schedule_once(&mut config),
            "schedule_recurring" => schedule_recurring(&mut config),
            _ => Some(Self::Manual),
        };
        config.finish();
        trigger
    }
}

fn trigger_type(definition: &mut Members<'_, '_>) -> Option<&'static str> {
    definition.required("trigger_type", "\"webhook\"")?;
    definition.one_of("trigger_type", &TRIGGER_TYPES)
}

fn example(trigger_type: &str) -> &'static str {
    match trigger_type {
        "webhook" => r#"{"service": "Slack", "event_type": "message"}"#,
        "polling" => r#"{"service": "Gmail", "source_tool": "gmail_find_email", "polling_interval_minutes": 15}"#,
        "schedule_once" => r#"{"run_at": "2027-01-31T09:00:00+01:00"}"#,
        _ => r#"{"interval": "daily", "time_of_day": "09:00", "timezone": "Europe/Berlin"}"#,
    }
}

pub(super) fn webhook(config: &mut Members<'_, '_>) -> Option<Trigger> {
    if config.get("hook").is_some() {
        return own_hook(config);
    }
    let service = config.required_text("service", LONGEST_NAME, "\"Slack\"");
    let event_type = config.required_text("event_type", LONGEST_NAME, "\"message\"");
    let params = config.object("params", "{\"labels\": [\"INBOX\"]}").cloned().unwrap_or_default();
    let filters = condition(config, "filters");
    Some(Trigger::Webhook { service: service?, event_type: event_type?, params, filters })
}

/// The events of an organization's own hook; all of them without `event_type`.
fn own_hook(config: &mut Members<'_, '_>) -> Option<Trigger> {
    let name = config.text("hook", LONGEST_NAME, "\"acme\"");
    config.refuse(&["service"], "the hook says where the events come from");
    config.refuse(&["params"], "an own hook takes none");
    let event_type = match config.get("event_type") {
        None => Some(ANY_EVENT.to_owned()),
        Some(_) => config.text("event_type", LONGEST_NAME, "\"order.paid\""),
    };
    let filters = condition(config, "filters");
    let name = folded_name(&name?);
    let service = own_service(own_name(&name).unwrap_or(&name));
    Some(Trigger::Webhook { service, event_type: event_type?, params: Map::new(), filters })
}

/// `None` also for an empty object or list.
fn condition(config: &mut Members<'_, '_>, name: &'static str) -> Option<Condition> {
    let value = config.get(name)?;
    let nothing = value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty);
    if nothing { None } else { Condition::read(value, &config.path(name), config.report) }
}

fn polling(config: &mut Members<'_, '_>) -> Option<Trigger> {
    let service = match config.get("service") {
        Some(_) => config.text("service", LONGEST_NAME, "\"the service whose tool the source_tool is\""),
        None => Some(String::new()),
    };
    let source_tool = config.required_text("source_tool", LONGEST_NAME, "\"gmail_find_email\"");
    let event_type = config.text("event_type", LONGEST_NAME, "\"new_email\"");
    let tool_params = config.object("tool_params", "{\"q\": \"is:unread\"}").cloned().unwrap_or_default();
    let items = path(config, "items", "\"data.orders\"");
    let id = path(config, "id", "\"id\"");
    let minutes = config.whole("polling_interval_minutes", &(5..=LONGEST_POLLING_MINUTES), "15");
    let filter = condition(config, "filter");
    let aggregation_mode = config.one_of("aggregation_mode", &AGGREGATION_MODES).unwrap_or("per_item");
    let missed = missed(config);
    Some(Trigger::Polling(Polling {
        service: service?,
        source_tool: source_tool?,
        event_type,
        tool_params,
        items,
        id,
        polling_interval_minutes: minutes.unwrap_or(USUAL_POLLING_MINUTES),
        filter,
        aggregation_mode,
        missed,
    }))
}

/// A path into the source's answer, without braces.
fn path(config: &mut Members<'_, '_>, name: &'static str, example: &str) -> Option<String> {
    let path = config.text(name, LONGEST_NAME, example)?;
    if !path.is_empty() && Path::parse(&path).is_err() {
        let hint = format!("Write for example {example}, without braces.");
        config.error(Code::InvalidValue, name, format!("{name} is not a path."), hint);
        return None;
    }
    Some(path)
}

fn missed(config: &mut Members<'_, '_>) -> Missed {
    match config.one_of("missed", &MISSED) {
        Some("skip") => Missed::Skip,
        _ => Missed::RunOnce,
    }
}

fn schedule_once(config: &mut Members<'_, '_>) -> Option<Trigger> {
    const EXAMPLE: &str = "\"2027-01-31T09:00:00+01:00\"";
    let run_at = config.required_text("run_at", 100, EXAMPLE);
    let zone = zone(config);
    let missed = missed(config);
    let text = run_at?;
    let at = if let Ok(moment) = text.parse::<Timestamp>() {
        moment
    } else if let Some((day, Some(time), own)) = local_time(&text) {
        let (local, zone) = (day.to_datetime(time), own.or(zone));
        if zone.is_none() {
            assume_utc(config, "run_at");
        }
        let zone = zone.unwrap_or(TimeZone::UTC);
        let there = zone.to_ambiguous_zoned(local);
        let skipped = matches!(there.offset(), AmbiguousOffset::Gap { .. });
        let Ok(zoned) = there.compatible() else {
            too_far(config);
            return None;
        };
        if skipped {
            let message = format!("The clocks of this time zone skip {local}, so it runs at {}.", zoned.datetime());
            let hint = "Write a time that exists on that day.";
            let place = config.path("run_at");
            config.report.push(Diagnostic::warning(Code::InvalidValue, place, message, hint));
        }
        Timestamp::from_millis(Zoned::timestamp(&zoned).as_millisecond())
    } else if text.starts_with("9999-") || text.starts_with('+') {
        too_far(config);
        return None;
    } else {
        let message = "run_at is not an ISO 8601 time.";
        config.error(Code::InvalidValue, "run_at", message, format!("Write for example {EXAMPLE}."));
        return None;
    };
    Some(Trigger::ScheduleOnce { run_at: at, missed })
}

fn too_far(config: &mut Members<'_, '_>) {
    let message = "run_at is too far in the future.";
    config.error(Code::InvalidValue, "run_at", message, "Write a year before 9999.");
}

fn schedule_recurring(config: &mut Members<'_, '_>) -> Option<Trigger> {
    let by_cron = config.get("cron").is_some();
    let zone = zone(config);
    let missed = missed(config);
    let days = excluded_days(config);
    let rule = if by_cron { cron(config, zone.clone()) } else { interval(config, zone.clone()) }?;
    let days = days?;
    let zone = zone.unwrap_or(TimeZone::UTC);
    let rule = if days.is_empty() { rule } else { ScheduleRule::Except { rule: Box::new(rule), days, zone } };
    Some(Trigger::ScheduleRecurring { rule, missed })
}

fn cron(config: &mut Members<'_, '_>, zone: Option<TimeZone>) -> Option<ScheduleRule> {
    config.refuse(&["interval", "time_of_day", "day_of_week"], "cron says when it runs");
    if zone.is_none() && config.get("timezone").is_none() {
        assume_utc(config, "cron");
    }
    let written = texts(config, "cron", MOST_CRON_EXPRESSIONS, "\"0 9 * * MON-FRI\"")?;
    let mut expressions = Vec::with_capacity(written.len());
    for (place, text) in &written {
        match CronExpression::parse(text) {
            Ok(expression) => expressions.push(expression),
            Err((message, hint)) => {
                let error = Diagnostic::error(Code::InvalidValue, place, message, hint);
                config.report.push(error.found(&text.as_str().into()));
            }
        }
    }
    let all = !expressions.is_empty() && expressions.len() == written.len();
    all.then(|| ScheduleRule::Cron { expressions, zone: zone.unwrap_or(TimeZone::UTC) })
}

/// `not_on`; empty if absent, `None` after a mistake.
fn excluded_days(config: &mut Members<'_, '_>) -> Option<Vec<ExcludedDay>> {
    if config.get("not_on").is_none() {
        return Some(Vec::new());
    }
    let written = texts(config, "not_on", MOST_EXCLUDED_DAYS, "[\"12-25\", \"2026-12-31\"]")?;
    let mut days = Vec::with_capacity(written.len());
    for (place, text) in &written {
        if let Some(day) = ExcludedDay::parse(text) {
            days.push(day);
            continue;
        }
        let message = "This is not a day of the calendar.";
        let hint = "Write \"2026-12-24\" for one day, or \"12-24\" for that day of every year.";
        config.report.push(Diagnostic::error(Code::InvalidValue, place, message, hint).found(&text.as_str().into()));
    }
    (days.len() == written.len()).then_some(days)
}

/// A text or a list of texts, each with its place.
fn texts(
    config: &mut Members<'_, '_>,
    name: &'static str,
    most: usize,
    example: &str,
) -> Option<Vec<(String, String)>> {
    let value = config.get(name)?;
    let place = config.path(name);
    let Some(list) = value.as_array() else {
        return config.as_text(name, value, LONGEST_NAME, example).map(|text| vec![(place, text)]);
    };
    if list.is_empty() || list.len() > most {
        let message = format!("{name} has {} entries; it can have 1 to {most}.", list.len());
        config.error(Code::InvalidValue, name, message, format!("Write for example {example}."));
        return None;
    }
    let read = list.iter().enumerate().map(|(index, value)| {
        let place = child(&place, index.to_string());
        if let Some(text) = value.as_str().filter(|text| text.len() <= LONGEST_NAME) {
            return Some((place, text.trim().to_owned()));
        }
        config.report.push(wrong_type(&place, value, "a short text", example));
        None
    });
    read.collect::<Vec<_>>().into_iter().collect()
}

fn interval(config: &mut Members<'_, '_>, zone: Option<TimeZone>) -> Option<ScheduleRule> {
    if config.get("interval").is_none() {
        config.missing("interval", "\"daily\", or \"cron\": \"0 9 * * MON-FRI\"");
    }
    let interval = config.one_of("interval", &INTERVALS);
    let by_the_day = matches!(interval, Some("daily" | "weekly") | None);
    let time_of_day = if by_the_day {
        let text = config.text("time_of_day", LONGEST_NAME, "\"09:00\"");
        text.and_then(|text| time_of_day(config, &text))
    } else {
        config.refuse(&["time_of_day"], "only daily and weekly automations run at a time of the day");
        None
    };
    if by_the_day && interval.is_some() && config.get("time_of_day").is_none() {
        config.missing("time_of_day", "\"09:00\"");
    }
    let day_of_week = if matches!(interval, Some("weekly") | None) {
        day_of_week(config, interval.is_some())
    } else {
        config.refuse(&["day_of_week"], "only weekly automations run on a day of the week");
        None
    };
    if time_of_day.is_some() && zone.is_none() && config.get("timezone").is_none() {
        assume_utc(config, "time_of_day");
    }
    let zone = zone.unwrap_or(TimeZone::UTC);
    let minutes = match interval? {
        "5min" => 5,
        "15min" => 15,
        "30min" => 30,
        "1hr" => 60,
        "6hr" => 360,
        _ => return Some(ScheduleRule::Daily { time: time_of_day?, day_of_week, zone }),
    };
    Some(ScheduleRule::Every { minutes, zone })
}

fn time_of_day(config: &mut Members<'_, '_>, text: &str) -> Option<civil::Time> {
    let time = text.split_once(':').and_then(|(hours, minutes)| {
        let digits = |text: &str| (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        let numbers = (digits(hours) && digits(minutes)).then_some((hours.parse().ok()?, minutes.parse().ok()?));
        numbers.and_then(|(hours, minutes)| civil::Time::new(hours, minutes, 0, 0).ok())
    });
    if time.is_none() {
        let message = "time_of_day is not a time from 00:00 to 23:59.";
        config.error(Code::InvalidValue, "time_of_day", message, "Write hours and minutes, for example \"09:00\".");
    }
    time
}

fn day_of_week(config: &mut Members<'_, '_>, required: bool) -> Option<u8> {
    let Some(value) = config.get("day_of_week") else {
        if required {
            config.missing("day_of_week", "\"monday\"");
        }
        return None;
    };
    let number = value.as_u64().or_else(|| value.as_str()?.trim().parse().ok()).filter(|day| *day < 7);
    let named = value.as_str().map(str::to_lowercase).and_then(|name| {
        let name = name.trim();
        DAYS.iter().position(|day| *day == name || (name.len() == 3 && day.starts_with(name)))
    });
    let day = number.and_then(|day| u8::try_from(day).ok()).or_else(|| named.and_then(|day| u8::try_from(day).ok()));
    if day.is_none() {
        let meant = value.as_str().and_then(|written| nearest(written, DAYS));
        let message = "day_of_week is not a day of the week.";
        let hint = "Write its name in English, or its number from 0 for Sunday to 6 for Saturday.";
        let error = Diagnostic::error(Code::InvalidValue, config.path("day_of_week"), message, hint);
        config.report.push(error.found(value).allowed(DAYS).meaning(meant));
    }
    day
}

/// `None` if absent or unknown; unknown zones are reported.
fn zone(config: &mut Members<'_, '_>) -> Option<TimeZone> {
    let name = config.text("timezone", 100, "\"Europe/Berlin\"")?;
    let zone = TimeZone::get(&name).ok();
    if zone.is_none() {
        let known: Vec<String> = jiff::tz::db().available().map(|name| name.to_string()).collect();
        let place = config.path("timezone");
        let hint =
            "Write a name of the IANA time zone database, for example \"Europe/Berlin\" or \"America/New_York\".";
        let error = Diagnostic::error(Code::UnknownTimezone, place, "There is no such time zone.", hint);
        let meant = nearest(&name, known.iter().map(String::as_str));
        config.report.push(error.found(&name.into()).meaning(meant));
    }
    zone
}

fn assume_utc(config: &mut Members<'_, '_>, name: &str) {
    let place = config.path(name);
    let message = format!("{name} is read as UTC, because no time zone is given.");
    let hint = "Add the user's time zone, for example \"timezone\": \"Europe/Berlin\".";
    config.report.push(Diagnostic::warning(Code::TimezoneAssumed, place, message, hint));
}

/// Reports a moment in the past, and a schedule without any occurrence.
pub(in crate::automation) fn check_time(trigger: &Trigger, now: Timestamp, diagnostics: &mut Diagnostics) {
    match trigger {
        Trigger::ScheduleOnce { run_at, .. } if *run_at <= now => {
            let message = format!("run_at is in the past: the time is {now}.");
            let hint = "Write a time in the future.";
            let place = child("/trigger_config", "run_at");
            let error = Diagnostic::error(Code::InThePast, place, message, hint);
            diagnostics.push(error.found(&run_at.to_string().into()));
        }
        Trigger::ScheduleRecurring { rule, .. } if rule.next_after(now).is_none() => {
            let message = "This schedule never occurs: no calendar has its days, or not_on excludes all of them.";
            let hint = "Write days that exist, for example \"0 9 L * *\" for the last day of each month.";
            diagnostics.push(Diagnostic::error(Code::NeverOccurs, "/trigger_config", message, hint));
        }
        _ => {}
    }
}
