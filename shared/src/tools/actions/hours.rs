//! Hours of the day in which a tool may act: `{"from": "09:00", "until": "20:00", "days"?: ["mon", …]}`.

use std::{fmt, str::FromStr, time::Duration};

use jiff::{ToSpan, Zoned, civil::Weekday, tz::TimeZone};
use serde::{Deserialize, Serialize};

use crate::{fields::Fields, models::Timestamp};

const DAYS: [(&str, Weekday); 7] = [
    ("mon", Weekday::Monday),
    ("tue", Weekday::Tuesday),
    ("wed", Weekday::Wednesday),
    ("thu", Weekday::Thursday),
    ("fri", Weekday::Friday),
    ("sat", Weekday::Saturday),
    ("sun", Weekday::Sunday),
];

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hours {
    from: ClockTime,
    /// Exclusive, after `from`.
    until: ClockTime,
    /// Empty for every day.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    days: Vec<String>,
}

/// Minutes since midnight, at most those of 24:00.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(super) struct ClockTime(u16);

#[derive(Debug, thiserror::Error)]
#[error("must be a time such as 09:00, at most 24:00")]
pub(super) struct NotAClockTime;

impl FromStr for ClockTime {
    type Err = NotAClockTime;

    fn from_str(text: &str) -> Result<Self, NotAClockTime> {
        let part = |digits: &str| -> Option<u16> {
            (digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_digit())).then(|| digits.parse().ok())?
        };
        let (hour, minute) = text.split_once(':').ok_or(NotAClockTime)?;
        let (hour, minute) = part(hour).zip(part(minute)).ok_or(NotAClockTime)?;
        let minutes = hour * 60 + minute;
        if minute < 60 && minutes <= 24 * 60 { Ok(Self(minutes)) } else { Err(NotAClockTime) }
    }
}

impl fmt::Display for ClockTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.0 / 60, self.0 % 60)
    }
}

impl From<ClockTime> for String {
    fn from(time: ClockTime) -> Self {
        time.to_string()
    }
}

impl TryFrom<String> for ClockTime {
    type Error = NotAClockTime;

    fn try_from(text: String) -> Result<Self, NotAClockTime> {
        text.parse()
    }
}

impl Default for Hours {
    fn default() -> Self {
        Self { from: ClockTime(9 * 60), until: ClockTime(20 * 60), days: Vec::new() }
    }
}

impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "from {} to {}", self.from, self.until)?;
        if self.days.is_empty() { Ok(()) } else { write!(f, " on {}", self.days.join(", ")) }
    }
}

impl Hours {
    /// `None` if the field is absent or wrong.
    pub(super) fn read(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        let mut hours = fields.object(name)?;
        let (from, until) = (hours.required_parse::<ClockTime>("from"), hours.required_parse::<ClockTime>("until"));
        if from.zip(until).is_some_and(|(from, until)| from >= until) {
            hours.problem("until", "must be later than from");
        }
        let days = Self::read_days(&mut hours);
        hours.finish();
        Some(Self { from: from?, until: until?, days })
    }

    fn read_days(hours: &mut Fields<'_>) -> Vec<String> {
        let known = || DAYS.map(|(day, _)| day).join(", ");
        let Some(listed) = hours.list("days", "days") else { return Vec::new() };
        if listed.is_empty() {
            hours.problem("days", format!("must name days: {}", known()));
        }
        let mut days = Vec::new();
        for (index, day) in listed.iter().enumerate() {
            match DAYS.iter().find(|(name, _)| day == name) {
                Some((name, _)) if !days.contains(&(*name).to_owned()) => days.push((*name).to_owned()),
                Some(_) => {}
                None => hours.problem(&format!("days[{index}]"), format!("must be one of {}", known())),
            }
        }
        days
    }

    /// Whether the moment is within the hours in this zone.
    pub(super) fn hold(&self, at: Timestamp, zone: &TimeZone) -> bool {
        let Some((local, minutes)) = by_the_clock(at, zone) else { return false };
        self.hold_on(local.weekday()) && (self.from.0..self.until.0).contains(&minutes)
    }

    /// The next time after this moment at which the hours begin in this zone.
    pub(super) fn next_beginning(&self, after: Timestamp, zone: &TimeZone) -> Option<Zoned> {
        let (local, minutes) = by_the_clock(after, zone)?;
        let from = i8::try_from(self.from.0 / 60).ok().zip(i8::try_from(self.from.0 % 60).ok());
        (0..=7).find_map(|days| {
            let date = local.date().checked_add(days.days()).ok()?;
            let later = days > 0 || self.from.0 > minutes;
            let (hour, minute) = from.filter(|_| later && self.hold_on(date.weekday()))?;
            let begins = zone.to_ambiguous_zoned(date.at(hour, minute, 0, 0));
            let first = begins.clone().compatible().ok()?;
            // The clock may show the time twice.
            if first > local { Some(first) } else { begins.later().ok() }
        })
    }

    /// Whether a moment of the next days is within the hours in all zones.
    pub(super) fn can_hold(&self, after: Timestamp, zones: &[TimeZone]) -> bool {
        zones.iter().any(|zone| {
            let next = |after: &Timestamp| self.next_beginning(*after, zone).map(|begins| moment(&begins));
            std::iter::successors(next(&after), next)
                .take(8)
                .any(|begins| zones.iter().all(|zone| self.hold(begins, zone)))
        })
    }

    fn hold_on(&self, weekday: Weekday) -> bool {
        let named = DAYS.iter().find(|(_, day)| *day == weekday).map(|(name, _)| *name);
        self.days.is_empty() || self.days.iter().any(|listed| Some(listed.as_str()) == named)
    }
}

fn moment(zoned: &Zoned) -> Timestamp {
    Timestamp::from_millis(zoned.timestamp().as_millisecond())
}

/// Whether the clocks of two zones agree for a year, as those of Sydney and Melbourne do.
pub(super) fn have_the_same_clock(from: Timestamp, one: &TimeZone, other: &TimeZone) -> bool {
    const MONTH: Duration = Duration::from_secs(30 * 24 * 60 * 60);
    let offset = |at, zone| by_the_clock(at, zone).map(|(local, _)| local.offset());
    (0..12).map(|months| from.plus(MONTH * months)).all(|at| offset(at, one) == offset(at, other))
}

/// The moment in the zone, and its minutes since midnight as the clock shows them.
fn by_the_clock(at: Timestamp, zone: &TimeZone) -> Option<(Zoned, u16)> {
    let local = jiff::Timestamp::from_millisecond(at.as_millis()).ok()?.to_zoned(zone.clone());
    let minutes = u16::try_from(i32::from(local.hour()) * 60 + i32::from(local.minute())).ok()?;
    Some((local, minutes))
}

/// The IANA name in `time_zone`.
pub(super) fn read_time_zone(fields: &mut Fields<'_>) -> Option<String> {
    let time_zone = fields.text("time_zone", 60);
    if time_zone.as_ref().is_some_and(|zone| TimeZone::get(zone).is_err()) {
        fields.problem("time_zone", "must be the IANA name of a time zone, such as Europe/Lisbon");
    }
    time_zone
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::error::Problems;

    fn read(hours: &Value) -> Result<Hours, Vec<String>> {
        let (body, mut problems) = (json!({"hours": hours}), Problems::default());
        let mut fields = Fields::of(&body, "", &mut problems).unwrap();
        let read = Hours::read(&mut fields, "hours");
        match read {
            Some(read) if problems.is_empty() => Ok(read),
            _ => Err(problems.iter().map(|problem| problem.field.clone()).collect()),
        }
    }

    #[test]
    fn wrong_hours_name_their_fields() {
        for (hours, wrong) in [
            (json!({}), vec!["hours.from", "hours.until"]),
            (json!({"from": "20:00", "until": "09:00"}), vec!["hours.until"]),
            (json!({"from": "9:00", "until": "24:01"}), vec!["hours.from", "hours.until"]),
            (json!({"from": "09:00", "until": "10:00", "days": []}), vec!["hours.days"]),
            (json!({"from": "09:00", "until": "10:00", "days": ["mon", "Tuesday"]}), vec!["hours.days[1]"]),
            (json!({"from": "09:00", "until": "10:00", "zone": "UTC"}), vec!["hours.zone"]),
            (json!("09:00"), vec!["hours"]),
        ] {
            assert_eq!(read(&hours).unwrap_err(), wrong, "{hours}");
        }
    }

    #[test]
    fn hours_hold_by_the_clock_and_the_day_of_the_zone() {
        let hours = read(&json!({"from": "09:00", "until": "20:00", "days": ["mon", "fri", "mon"]})).unwrap();
        assert_eq!(json!(hours), json!({"from": "09:00", "until": "20:00", "days": ["mon", "fri"]}));
        assert_eq!(serde_json::from_value::<Hours>(json!(hours)).unwrap(), hours);
        // A Friday.
        for (at, zone, held) in [
            ("2026-11-20T08:00:00Z", "Europe/Berlin", true),
            ("2026-11-20T07:59:59Z", "Europe/Berlin", false),
            ("2026-11-20T18:59:00Z", "Europe/Berlin", true),
            ("2026-11-20T19:00:00Z", "Europe/Berlin", false),
            ("2026-11-20T23:30:00Z", "Asia/Tokyo", false),
            ("2026-11-19T23:59:00Z", "Asia/Tokyo", false),
            ("2026-11-20T00:00:00Z", "Asia/Tokyo", true),
        ] {
            let zone = TimeZone::get(zone).unwrap();
            assert_eq!(hours.hold(at.parse().unwrap(), &zone), held, "{at} {zone:?}");
        }
        let whole = read(&json!({"from": "00:00", "until": "24:00"})).unwrap();
        assert!(whole.hold("2026-11-20T23:59:59Z".parse().unwrap(), &TimeZone::UTC));
    }

    #[test]
    fn hours_follow_the_clock_when_daylight_saving_begins_and_ends() {
        let hours = read(&json!({"from": "09:00", "until": "17:00"})).unwrap();
        let night = read(&json!({"from": "02:30", "until": "04:00"})).unwrap();
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        for (hours, at, held) in [
            // Berlin is at +01:00 on Saturday, and at +02:00 from 03:00 on Sunday.
            (&hours, "2026-03-28T07:59:59Z", false),
            (&hours, "2026-03-28T08:00:00Z", true),
            (&hours, "2026-03-29T06:59:59Z", false),
            (&hours, "2026-03-29T07:00:00Z", true),
            (&hours, "2026-03-29T15:00:00Z", false),
            // 02:30 is skipped.
            (&night, "2026-03-29T00:59:59Z", false),
            (&night, "2026-03-29T01:00:00Z", true),
            // In October the hour from 02:00 comes twice.
            (&night, "2026-10-25T00:30:00Z", true),
            (&night, "2026-10-25T01:00:00Z", false),
            (&night, "2026-10-25T01:30:00Z", true),
            (&hours, "2026-10-25T07:59:59Z", false),
            (&hours, "2026-10-25T08:00:00Z", true),
        ] {
            assert_eq!(hours.hold(at.parse().unwrap(), &zone), held, "{at}");
        }
    }

    #[test]
    fn distant_zones_share_hours_that_are_long_enough() {
        let zones = |names: &[&str]| names.iter().map(|name| TimeZone::get(name).unwrap()).collect::<Vec<_>>();
        let (coasts, pacific) = (["America/New_York", "America/Los_Angeles"], ["Asia/Sakhalin", "America/New_York"]);
        for (hours, zones, shared) in [
            (json!({"from": "09:00", "until": "20:00"}), zones(&coasts), true),
            (json!({"from": "09:00", "until": "11:00"}), zones(&coasts), false),
            (json!({"from": "09:00", "until": "20:00"}), zones(&["Europe/Berlin", "Pacific/Honolulu"]), false),
            // Sunday evening in New York is Monday morning there.
            (json!({"from": "09:00", "until": "20:00", "days": ["mon", "tue"]}), zones(&pacific), true),
            (json!({"from": "09:00", "until": "20:00", "days": ["mon"]}), zones(&pacific), false),
            (json!({"from": "09:00", "until": "09:01", "days": ["sun"]}), zones(&["Europe/Berlin"]), true),
        ] {
            let can = read(&hours).unwrap().can_hold("2026-11-27T12:00:00Z".parse().unwrap(), &zones);
            assert_eq!(can, shared, "{hours} {zones:?}");
        }
    }

    #[test]
    fn clocks_are_the_same_only_if_daylight_saving_is() {
        let winter = "2026-11-27T12:00:00Z".parse().unwrap();
        for (one, other, same) in [
            ("Australia/Sydney", "Australia/Melbourne", true),
            ("Australia/Brisbane", "Australia/Sydney", false),
            ("Europe/Madrid", "Africa/Lagos", false),
        ] {
            let [one, other] = [one, other].map(|zone| TimeZone::get(zone).unwrap());
            assert_eq!(have_the_same_clock(winter, &one, &other), same, "{one:?} {other:?}");
        }
    }

    #[test]
    fn hours_begin_next_on_a_day_of_theirs() {
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        let daily = json!({"from": "09:00", "until": "17:00"});
        let mondays = json!({"from": "09:00", "until": "17:00", "days": ["mon"]});
        let night = json!({"from": "02:30", "until": "04:00"});
        // November 23, 2026 is a Monday.
        for (hours, after, begins) in [
            (&daily, "2026-11-23T07:59:59Z", "2026-11-23T08:00:00Z"),
            (&daily, "2026-11-23T16:00:00Z", "2026-11-24T08:00:00Z"),
            (&mondays, "2026-11-23T07:00:00Z", "2026-11-23T08:00:00Z"),
            (&mondays, "2026-11-23T16:00:00Z", "2026-11-30T08:00:00Z"),
            (&mondays, "2026-11-22T23:30:00Z", "2026-11-23T08:00:00Z"),
            // Over the change of the clock.
            (&daily, "2026-03-28T16:00:00Z", "2026-03-29T07:00:00Z"),
            (&daily, "2026-10-24T15:00:00Z", "2026-10-25T08:00:00Z"),
            (&night, "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z"),
        ] {
            let next = read(hours).unwrap().next_beginning(after.parse().unwrap(), &berlin).unwrap();
            assert_eq!(next.timestamp(), begins.parse().unwrap(), "{hours} after {after}");
        }
    }
}
