//! Cron expressions: minute, hour, day of the month, month, weekday.
//!
//! The crate `croner` reads them and walks civil time; clock changes are treated here, as for the other schedules.

use croner::{
    Cron,
    parser::{CronParser, Seconds, Year},
};
use jiff::{
    civil,
    tz::{AmbiguousOffset, TimeZone},
};

/// Clock changes passed in a search. The rarest day, February 29 on a given weekday, comes within 40 years.
const MOST_CHANGES: u32 = 400;

/// Each field with its allowed values, for messages.
const FIELDS: [(&str, &str); 5] = [
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day of the month", "1 to 31, L for the last day, or 15W for the weekday nearest to the 15th"),
    ("month", "1 to 12, or JAN to DEC"),
    ("weekday", "0 to 7 where 0 and 7 are Sunday, MON to SUN, FRI#2 for the second Friday, or FRIL for the last one"),
];

#[derive(Debug, Clone, PartialEq)]
pub struct CronExpression {
    cron: Cron,
    /// Runs at every hour, so also in both of a repeated hour.
    hourly: bool,
}

impl CronExpression {
    /// # Errors
    /// A sentence about the mistake, and the next step.
    pub(in crate::automation) fn parse(text: &str) -> Result<Self, (String, String)> {
        const EXAMPLE: &str =
            "Write minute, hour, day of the month, month and weekday, for example \"0 9 * * MON-FRI\".";
        let fields: Vec<&str> = text.split_whitespace().collect();
        match fields.len() {
            5 => {}
            6 | 7 => {
                let message =
                    format!("cron has {} fields, but schedules have neither seconds nor years.", fields.len());
                return Err((message, format!("The finest step is a minute. {EXAMPLE}")));
            }
            count => return Err((format!("cron has {count} of the five fields."), EXAMPLE.to_owned())),
        }
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        for (index, (name, allowed)) in FIELDS.iter().enumerate() {
            let field = fields.get(index).copied().unwrap_or_default();
            let alone: Vec<&str> = (0..FIELDS.len()).map(|other| if other == index { field } else { "*" }).collect();
            if parser.parse(&alone.join(" ")).is_err() {
                let field = crate::cut::cut(field.to_owned(), 60);
                let message = format!("The {name} of cron, {field}, cannot be read.");
                return Err((
                    message,
                    format!("It can be {allowed}, and lists (1,15), ranges (1-5) and steps (*/2) of these."),
                ));
            }
        }
        let cron = parser
            .parse(&fields.join(" "))
            .map_err(|_unreadable| ("cron cannot be read.".to_owned(), EXAMPLE.to_owned()))?;
        let hourly = cron.pattern.hours.values().len() == 24;
        Ok(Self { cron, hourly })
    }

    /// The first occurrence after `after`. `None` for a day that no calendar has.
    pub(super) fn next_after(&self, zone: &TimeZone, after: jiff::Timestamp) -> Option<jiff::Timestamp> {
        let (mut from, mut inclusive) = (after, false);
        for _ in 0..MOST_CHANGES {
            let offset = zone.to_offset(from);
            let found: civil::DateTime = self.cron.find_next_occurrence(&offset.to_datetime(from), inclusive).ok()?;
            let instant = offset.to_timestamp(found).ok()?;
            // The offset is valid until the next clock change; there the search restarts.
            if let Some(change) = zone.following(from).next().filter(|change| change.timestamp() <= instant) {
                (from, inclusive) = (change.timestamp(), true);
                continue;
            }
            let there = zone.to_ambiguous_timestamp(found);
            let repeated = matches!(there.offset(), AmbiguousOffset::Fold { .. }) && there.earlier().ok()? < instant;
            if !repeated || self.hourly {
                return Some(instant);
            }
            (from, inclusive) = (instant, false);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str) -> TimeZone {
        TimeZone::get(name).unwrap()
    }

    fn shown(cron: &str, name: &str, after: &str, count: usize) -> Vec<String> {
        let cron = CronExpression::parse(cron).unwrap();
        let mut at: jiff::Timestamp = after.parse().unwrap();
        let mut all = Vec::new();
        for _ in 0..count {
            at = cron.next_after(&zone(name), at).unwrap();
            all.push(at.to_zoned(zone(name)).strftime("%Y-%m-%dT%H:%M%:z").to_string());
        }
        all
    }

    fn days(cron: &str, count: usize) -> Vec<String> {
        let all = shown(cron, "UTC", "2026-11-24T12:00:00Z", count);
        all.into_iter().map(|at| at.split('T').next().unwrap().to_owned()).collect()
    }

    #[test]
    fn weekdays_months_last_days_and_nth_weekdays() {
        for (cron, expected) in [
            ("0 9 * * MON-FRI", ["2026-11-25", "2026-11-26", "2026-11-27", "2026-11-30"]),
            ("0 9 L * *", ["2026-11-30", "2026-12-31", "2027-01-31", "2027-02-28"]),
            ("0 9 * * FRI#2", ["2026-12-11", "2027-01-08", "2027-02-12", "2027-03-12"]),
            ("0 9 * * FRIL", ["2026-11-27", "2026-12-25", "2027-01-29", "2027-02-26"]),
            ("0 9 1 JAN,APR,JUL,OCT *", ["2027-01-01", "2027-04-01", "2027-07-01", "2027-10-01"]),
            // The 15th of August 2027 is a Sunday.
            ("0 9 15W 5-8 *", ["2027-05-14", "2027-06-15", "2027-07-15", "2027-08-16"]),
            ("0 9 31 * *", ["2026-12-31", "2027-01-31", "2027-03-31", "2027-05-31"]),
            ("0 9 29 2 *", ["2028-02-29", "2032-02-29", "2036-02-29", "2040-02-29"]),
            ("0 9 29 2 +MON", ["2044-02-29", "2072-02-29", "2112-02-29", "2140-02-29"]),
            // Both days: either is enough, unless the weekday begins with a plus.
            ("0 9 1 * MON", ["2026-11-30", "2026-12-01", "2026-12-07", "2026-12-14"]),
            ("0 9 1 * +MON", ["2027-02-01", "2027-03-01", "2027-11-01", "2028-05-01"]),
            ("0 9 ? * 7", ["2026-11-29", "2026-12-06", "2026-12-13", "2026-12-20"]),
        ] {
            assert_eq!(days(cron, 4), expected, "{cron}");
        }
        let expected = ["2026-11-24T14:00+00:00", "2026-11-25T08:00+00:00"];
        assert_eq!(shown("0 8,14 * * *", "UTC", "2026-11-24T12:00:00Z", 2), expected);
        assert_eq!(shown("*/30 16-17 * * *", "UTC", "2026-11-24T16:00:00Z", 1), ["2026-11-24T16:30+00:00"]);
    }

    #[test]
    fn a_skipped_time_does_not_occur_and_a_repeated_one_occurs_once_unless_every_hour_does() {
        let berlin = "Europe/Berlin";
        let expected = ["2027-03-27T02:30+01:00", "2027-03-29T02:30+02:00"];
        assert_eq!(shown("30 2 * * *", berlin, "2027-03-27T00:00:00Z", 2), expected);
        let expected = ["2027-03-28T03:00+02:00", "2027-03-29T03:00+02:00"];
        assert_eq!(shown("0 3 * * *", berlin, "2027-03-27T12:00:00Z", 2), expected);
        let expected = ["2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00"];
        assert_eq!(shown("30 2 * * *", berlin, "2026-10-24T12:00:00Z", 2), expected);
        // From within the repeated hour, before and after the change.
        assert_eq!(shown("30 2 * * *", berlin, "2026-10-25T00:30:00Z", 1), ["2026-10-26T02:30+01:00"]);
        assert_eq!(shown("30 2 * * *", berlin, "2026-10-25T01:10:00Z", 1), ["2026-10-26T02:30+01:00"]);
        let expected =
            ["02:30+02:00", "02:00+01:00", "02:30+01:00", "03:00+01:00"].map(|at| format!("2026-10-25T{at}"));
        assert_eq!(shown("*/30 * * * *", berlin, "2026-10-25T00:15:00Z", 4), expected);
        let expected = ["2027-03-28T01:30+01:00", "2027-03-28T03:00+02:00"];
        assert_eq!(shown("*/30 * * * *", berlin, "2027-03-28T00:20:00Z", 2), expected);
        // Samoa skipped December 30, 2011.
        let expected = ["2011-12-29T09:00-10:00", "2011-12-31T09:00+14:00"];
        assert_eq!(shown("0 9 * * *", "Pacific/Apia", "2011-12-29T10:00:00Z", 2), expected);
        // Casablanca changes its clock four times a year.
        let rare = shown("0 9 29 2 +MON", "Africa/Casablanca", "2026-11-24T12:00:00Z", 1);
        assert!(rare[0].starts_with("2044-02-29T09:00"), "{rare:?}");
    }

    #[test]
    fn a_day_that_no_calendar_has_never_occurs() {
        for cron in ["0 9 30 2 *", "0 9 31 4,6,9,11 *", "0 9 30-31 FEB *"] {
            let after = "2026-11-24T12:00:00Z".parse().unwrap();
            assert_eq!(CronExpression::parse(cron).unwrap().next_after(&zone("Europe/Berlin"), after), None, "{cron}");
        }
    }

    #[test]
    fn a_mistake_names_its_field() {
        for (cron, told) in [
            ("0 25 * * *", "The hour of cron, 25, cannot be read."),
            ("60 9 * * *", "The minute of cron, 60, cannot be read."),
            ("0 9 32 * *", "The day of the month of cron, 32, cannot be read."),
            ("0 9 * 13 *", "The month of cron, 13, cannot be read."),
            ("0 9 * * FRO", "The weekday of cron, FRO, cannot be read."),
            ("0 9 * * 8", "The weekday of cron, 8, cannot be read."),
            ("*/10 * * * * *", "cron has 6 fields, but schedules have neither seconds nor years."),
            ("0 9 * *", "cron has 4 of the five fields."),
            ("@daily", "cron has 1 of the five fields."),
            ("0 9 * * \u{1f980}", "The weekday of cron, \u{1f980}, cannot be read."),
            ("5-1 9 * * *", "The minute of cron, 5-1, cannot be read."),
            ("*/0 9 * * *", "The minute of cron, */0, cannot be read."),
        ] {
            assert_eq!(CronExpression::parse(cron).unwrap_err().0, told);
        }
    }
}
