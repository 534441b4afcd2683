//! Hours of the day in which a tool may act: `{"from": "09:00", "until": "20:00", "days"?: ["mon", …]}`.

use std::{fmt, str::FromStr};

use jiff::{civil::Weekday, tz::TimeZone};
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
        let value = fields.get(name)?;
        let path = fields.path(name);
        let mut hours = Fields::of(value, path, fields.problems())?;
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
        let listed = match hours.get("days") {
            None => return Vec::new(),
            Some(Value::Array(listed)) if !listed.is_empty() => listed,
            Some(_) => {
                hours.problem("days", format!("must be a list of days: {}", known()));
                return Vec::new();
            }
        };
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
        let Ok(at) = jiff::Timestamp::from_millisecond(at.as_millis()) else { return false };
        let local = at.to_zoned(zone.clone());
        let minutes = u16::try_from(i32::from(local.hour()) * 60 + i32::from(local.minute())).unwrap_or(u16::MAX);
        let day = DAYS.iter().find(|(_, day)| *day == local.weekday()).map(|(name, _)| *name);
        let day_holds = self.days.is_empty() || self.days.iter().any(|listed| Some(listed.as_str()) == day);
        day_holds && (self.from.0..self.until.0).contains(&minutes)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
}
