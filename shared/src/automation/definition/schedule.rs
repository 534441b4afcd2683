//! Schedules: rules in civil time with a time zone.
//!
//! Each next occurrence is computed from civil time, never from the last instant, so 09:00 stays 09:00 across clock changes. A
//! time skipped when clocks go forward has no occurrence; a time repeated when they go back has one, the first. An interval also
//! runs during the repeated time if it is no longer than the repetition: 15 minutes stay 15 minutes. A cron expression does so if
//! its hours are `*`.

pub(super) mod cron;
pub(super) mod excluded_days;

use jiff::{
    civil,
    tz::{AmbiguousOffset, TimeZone},
};

use self::{cron::CronExpression, excluded_days::ExcludedDay};
use super::trigger::Trigger;
use crate::models::Timestamp;

/// Days searched for the next occurrence; more than any zone ever skipped, also for weekly rules.
const MOST_DAYS: u32 = 400;
/// Clock changes passed in the search for the next interval.
const MOST_STEPS: u32 = 100;
/// Excluded days passed one after the other. A definition lists fewer, so only yearly ones that cover the whole rule reach this.
const MOST_EXCLUDED: u32 = 1_000;

#[derive(Debug, Clone, PartialEq)]
pub enum ScheduleRule {
    Once {
        at: Timestamp,
    },
    /// At multiples of the interval from midnight: 00:00, 00:15, … The interval divides a day.
    Every {
        minutes: i64,
        zone: TimeZone,
    },
    /// Daily, or weekly on one day; Sunday is 0.
    Daily {
        time: civil::Time,
        day_of_week: Option<u8>,
        zone: TimeZone,
    },
    /// At the times of any of the expressions.
    Cron {
        expressions: Vec<CronExpression>,
        zone: TimeZone,
    },
    /// Without the occurrences on these days of the zone.
    Except {
        rule: Box<Self>,
        days: Vec<ExcludedDay>,
        zone: TimeZone,
    },
}

impl ScheduleRule {
    /// `None` for triggers without a schedule.
    pub fn of(trigger: &Trigger) -> Option<Self> {
        match trigger {
            Trigger::ScheduleOnce { run_at, .. } => Some(Self::Once { at: *run_at }),
            Trigger::ScheduleRecurring { rule, .. } => Some(rule.clone()),
            _ => None,
        }
    }

    /// The first occurrence after `after`, if any.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        let moment = jiff::Timestamp::from_millisecond(after.as_millis()).ok()?;
        let next = match self {
            Self::Once { at } => return (*at > after).then_some(*at),
            Self::Every { minutes, zone } => next_of_interval(minutes * 60, zone, moment)?,
            Self::Daily { time, day_of_week, zone } => next_of_day(*time, *day_of_week, zone, moment)?,
            Self::Cron { expressions, zone } => {
                expressions.iter().filter_map(|one| one.next_after(zone, moment)).min()?
            }
            Self::Except { rule, days, zone } => return next_except(rule, days, zone, after),
        };
        Some(Timestamp::from_millis(next.as_millisecond()))
    }

    /// Up to `most` occurrences after `after`, in the time of the rule's zone: `2026-11-25T09:00:00+01:00`.
    pub fn upcoming(&self, after: Timestamp, most: usize) -> Vec<String> {
        let next = |at: &Timestamp| self.next_after(*at);
        let all = std::iter::successors(self.next_after(after), next).take(most);
        all.filter_map(|at| Some(shown(self.zone(), jiff::Timestamp::from_millisecond(at.as_millis()).ok()?))).collect()
    }

    fn zone(&self) -> &TimeZone {
        static UTC: TimeZone = TimeZone::UTC;
        match self {
            Self::Once { .. } => &UTC,
            Self::Every { zone, .. }
            | Self::Daily { zone, .. }
            | Self::Cron { zone, .. }
            | Self::Except { zone, .. } => zone,
        }
    }
}

fn shown(zone: &TimeZone, moment: jiff::Timestamp) -> String {
    moment.to_zoned(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

fn next_except(rule: &ScheduleRule, days: &[ExcludedDay], zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    let mut after = after;
    for _ in 0..MOST_EXCLUDED {
        let next = rule.next_after(after)?;
        let day = jiff::Timestamp::from_millisecond(next.as_millis()).ok()?.to_zoned(zone.clone()).date();
        if !days.iter().any(|excluded| excluded.is(day)) {
            return Some(next);
        }
        let morning = day.tomorrow().ok()?.to_zoned(zone.clone()).ok()?.timestamp();
        after = next.max(Timestamp::from_millis(morning.as_millisecond() - 1));
    }
    None
}

fn next_of_day(
    time: civil::Time,
    day_of_week: Option<u8>,
    zone: &TimeZone,
    after: jiff::Timestamp,
) -> Option<jiff::Timestamp> {
    let mut day = after.to_zoned(zone.clone()).date();
    for _ in 0..MOST_DAYS {
        let wanted = day_of_week.is_none_or(|wanted| {
            i8::try_from(wanted).is_ok_and(|wanted| day.weekday().to_sunday_zero_offset() == wanted)
        });
        if wanted {
            let there = zone.to_ambiguous_timestamp(day.to_datetime(time));
            let skipped = matches!(there.offset(), AmbiguousOffset::Gap { .. });
            // The first of two repeated times.
            let instant = there.earlier().ok()?;
            if !skipped && instant > after {
                return Some(instant);
            }
        }
        day = day.tomorrow().ok()?;
    }
    None
}

fn next_of_interval(seconds: i64, zone: &TimeZone, after: jiff::Timestamp) -> Option<jiff::Timestamp> {
    let mut after = after;
    for _ in 0..MOST_STEPS {
        let next = next_on_the_clock(seconds, zone, after)?;
        let there = zone.to_ambiguous_timestamp(next.to_zoned(zone.clone()).datetime());
        // In repeated time an occurrence counts only if the interval fits into the repetition.
        let repeats = match there.offset() {
            AmbiguousOffset::Fold { before, after } => {
                let repeated = i64::from(before.seconds()) - i64::from(after.seconds());
                seconds > repeated && there.earlier().ok()? < next
            }
            _ => false,
        };
        if !repeats {
            return Some(next);
        }
        after = next;
    }
    None
}

/// The next instant after `after` at which the zone's clock shows a multiple of the interval since midnight.
fn next_on_the_clock(seconds: i64, zone: &TimeZone, after: jiff::Timestamp) -> Option<jiff::Timestamp> {
    // Rounds down: an instant within a second belongs to that second.
    let mut from = after.as_millisecond().div_euclid(1_000);
    let mut inclusive = false;
    for _ in 0..MOST_STEPS {
        let here = jiff::Timestamp::from_second(from).ok()?;
        let offset = i64::from(zone.to_offset(here).seconds());
        let local = from + offset;
        let behind = local.rem_euclid(seconds);
        let next = if inclusive && behind == 0 { local } else { local - behind + seconds };
        let next = jiff::Timestamp::from_second(next - offset).ok()?;
        // The offset is valid until the next clock change; there the search restarts.
        match zone.following(here).next().map(|change| change.timestamp()) {
            Some(change) if change <= next => {
                from = change.as_second();
                inclusive = true;
            }
            _ => return Some(next),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn zone(name: &str) -> TimeZone {
        TimeZone::get(name).unwrap()
    }

    fn daily(time: &str, name: &str) -> ScheduleRule {
        ScheduleRule::Daily { time: time.parse().unwrap(), day_of_week: None, zone: zone(name) }
    }

    fn every(minutes: i64, name: &str) -> ScheduleRule {
        ScheduleRule::Every { minutes, zone: zone(name) }
    }

    /// The next occurrences in the zone's time: `2027-03-27T02:30+01:00`.
    fn shown(rule: &ScheduleRule, name: &str, after: &str, count: usize) -> Vec<String> {
        let mut at: Timestamp = after.parse().unwrap();
        let mut all = Vec::new();
        for _ in 0..count {
            at = rule.next_after(at).unwrap();
            let moment = jiff::Timestamp::from_millisecond(at.as_millis()).unwrap().to_zoned(zone(name));
            all.push(moment.strftime("%Y-%m-%dT%H:%M%:z").to_string());
        }
        all
    }

    #[test]
    fn a_time_that_does_not_exist_is_skipped_and_one_that_comes_twice_counts_the_first_time() {
        for (name, time, after, expected) in [
            (
                "Europe/Berlin",
                "02:30",
                "2027-03-27T00:00:00Z",
                ["2027-03-27T02:30+01:00", "2027-03-29T02:30+02:00", "2027-03-30T02:30+02:00"],
            ),
            (
                "Europe/Berlin",
                "02:30",
                "2026-10-24T12:00:00Z",
                ["2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00", "2026-10-27T02:30+01:00"],
            ),
            (
                "America/New_York",
                "02:30",
                "2027-03-13T12:00:00Z",
                ["2027-03-15T02:30-04:00", "2027-03-16T02:30-04:00", "2027-03-17T02:30-04:00"],
            ),
            (
                "America/New_York",
                "01:30",
                "2026-10-31T12:00:00Z",
                ["2026-11-01T01:30-04:00", "2026-11-02T01:30-05:00", "2026-11-03T01:30-05:00"],
            ),
            (
                "Australia/Lord_Howe",
                "02:15",
                "2026-10-02T20:00:00Z",
                ["2026-10-05T02:15+11:00", "2026-10-06T02:15+11:00", "2026-10-07T02:15+11:00"],
            ),
            (
                "Australia/Lord_Howe",
                "01:45",
                "2027-04-03T10:00:00Z",
                ["2027-04-04T01:45+11:00", "2027-04-05T01:45+10:30", "2027-04-06T01:45+10:30"],
            ),
            // Samoa skipped December 30, 2011.
            (
                "Pacific/Apia",
                "09:00",
                "2011-12-29T10:00:00Z",
                ["2011-12-29T09:00-10:00", "2011-12-31T09:00+14:00", "2012-01-01T09:00+14:00"],
            ),
            // 09:00 stays 09:00 across the change.
            (
                "Europe/Berlin",
                "09:00",
                "2027-03-27T12:00:00Z",
                ["2027-03-28T09:00+02:00", "2027-03-29T09:00+02:00", "2027-03-30T09:00+02:00"],
            ),
        ] {
            assert_eq!(shown(&daily(time, name), name, after, 3), expected, "{name} {time}");
        }
    }

    #[test]
    fn a_day_of_the_week_in_a_gap_waits_a_week() {
        let rule =
            ScheduleRule::Daily { time: "02:30".parse().unwrap(), day_of_week: Some(0), zone: zone("Europe/Berlin") };
        let expected = ["2027-03-21T02:30+01:00", "2027-04-04T02:30+02:00"];
        assert_eq!(shown(&rule, "Europe/Berlin", "2027-03-20T00:00:00Z", 2), expected);
    }

    #[test]
    fn intervals_are_on_the_clock_and_steady_where_it_is_put_back() {
        let berlin = "Europe/Berlin";
        let expected = ["02:30+02:00", "02:45+02:00", "02:00+01:00", "02:15+01:00", "02:30+01:00", "02:45+01:00"];
        let expected = expected.map(|time| format!("2026-10-25T{time}"));
        assert_eq!(shown(&every(15, berlin), berlin, "2026-10-25T00:15:00Z", 6), expected);
        let expected = ["2027-03-28T01:30+01:00", "2027-03-28T03:00+02:00", "2027-03-28T03:30+02:00"];
        assert_eq!(shown(&every(30, berlin), berlin, "2027-03-28T00:20:00Z", 3), expected);
        // Six hours do not fit into the repeated hour.
        let expected = ["2026-10-25T00:00+02:00", "2026-10-25T06:00+01:00", "2026-10-25T12:00+01:00"];
        assert_eq!(shown(&every(360, berlin), berlin, "2026-10-24T18:00:00Z", 3), expected);
        // Havana repeats midnight; these rules run at its first occurrence only, or at both.
        let expected = ["2026-11-01T00:00-04:00", "2026-11-01T06:00-05:00"];
        assert_eq!(shown(&every(360, "America/Havana"), "America/Havana", "2026-11-01T03:00:00Z", 2), expected);
        let expected = ["2026-11-01T00:00-04:00", "2026-11-01T00:00-05:00", "2026-11-01T01:00-05:00"];
        assert_eq!(shown(&every(60, "America/Havana"), "America/Havana", "2026-11-01T03:00:00Z", 3), expected);
        let lord_howe = "Australia/Lord_Howe";
        let expected = ["2026-10-04T01:00+10:30", "2026-10-04T03:00+11:00", "2026-10-04T04:00+11:00"];
        assert_eq!(shown(&every(60, lord_howe), lord_howe, "2026-10-03T14:00:00Z", 3), expected);
        let kathmandu = "Asia/Kathmandu";
        let expected = ["2026-11-22T13:00+05:45", "2026-11-22T14:00+05:45"];
        assert_eq!(shown(&every(60, kathmandu), kathmandu, "2026-11-22T06:45:00Z", 2), expected);
    }

    #[test]
    fn excluded_days_have_no_occurrence_and_a_rule_of_excluded_days_only_never_occurs() {
        let except = |rule: ScheduleRule, days: &[&str]| ScheduleRule::Except {
            rule: Box::new(rule),
            days: days.iter().map(|day| ExcludedDay::parse(day).unwrap()).collect(),
            zone: zone("Europe/Berlin"),
        };
        let rule = except(daily("09:00", "Europe/Berlin"), &["12-25", "12-26", "2026-12-28"]);
        let expected = ["2026-12-24T09:00+01:00", "2026-12-27T09:00+01:00", "2026-12-29T09:00+01:00"];
        assert_eq!(shown(&rule, "Europe/Berlin", "2026-12-23T12:00:00Z", 3), expected);
        // The day is that of the zone: 23:30 UTC is the next day in Berlin.
        let rule = except(every(30, "Europe/Berlin"), &["2026-12-25"]);
        let expected = ["2026-12-24T23:30+01:00", "2026-12-26T00:00+01:00"];
        assert_eq!(shown(&rule, "Europe/Berlin", "2026-12-24T22:10:00Z", 2), expected);
        let christmas = |cron: &str| ScheduleRule::Cron {
            expressions: vec![CronExpression::parse(cron).unwrap()],
            zone: zone("Europe/Berlin"),
        };
        let never = except(christmas("0 9 25 12 *"), &["12-25"]);
        assert_eq!(never.next_after("2026-11-24T12:00:00Z".parse().unwrap()), None);
        let now: Timestamp = "2026-11-24T12:00:00Z".parse().unwrap();
        let expected = ["2027-12-25T09:00:00+01:00", "2028-12-25T09:00:00+01:00"];
        assert_eq!(except(christmas("0 9 25 12 *"), &["2026-12-25"]).upcoming(now, 2), expected);
    }

    #[test]
    fn several_expressions_are_one_schedule() {
        let expressions = ["0 9 * * MON-FRI", "30 13 * * *", "0 9 25 * *"];
        let expressions = expressions.map(|text| CronExpression::parse(text).unwrap()).into();
        let rule = ScheduleRule::Cron { expressions, zone: TimeZone::UTC };
        // Two expressions at one time are one occurrence.
        let expected = ["2026-11-24T13:30+00:00", "2026-11-25T09:00+00:00", "2026-11-25T13:30+00:00"];
        assert_eq!(shown(&rule, "UTC", "2026-11-24T12:00:00Z", 3), expected);
    }

    #[test]
    fn once_is_once() {
        let at: Timestamp = "2026-11-23T08:00:00Z".parse().unwrap();
        let rule = ScheduleRule::Once { at };
        assert_eq!(rule.next_after(Timestamp::from_millis(at.as_millis() - 1)), Some(at));
        assert_eq!(rule.next_after(at), None);
    }

    const ZONES: [&str; 9] = [
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "Australia/Lord_Howe",
        "Pacific/Apia",
        "America/Havana",
        "America/St_Johns",
        "Asia/Kathmandu",
        "Africa/Casablanca",
    ];

    proptest! {
        /// Occurrences strictly increase, at the rule's time, on exactly the civil days that have this time.
        #[test]
        fn each_day_has_its_time_once(
            start in 1_262_304_000i64..2_200_000_000,
            minute in 0i16..1_440,
            name in prop::sample::select(&ZONES),
        ) {
            let (hour, of_hour) = (i8::try_from(minute / 60).unwrap(), i8::try_from(minute % 60).unwrap());
            let time = civil::time(hour, of_hour, 0, 0);
            let rule = ScheduleRule::Daily { time, day_of_week: None, zone: zone(name) };
            let mut at = rule.next_after(Timestamp::from_millis(start * 1_000 + 7)).unwrap();
            prop_assert!(at.as_seconds() > start);
            for _ in 0..40 {
                let next = rule.next_after(at).unwrap();
                prop_assert!(next > at);
                // A query from any moment in between gives the same occurrence.
                let between = Timestamp::from_millis(at.as_millis().midpoint(next.as_millis()));
                prop_assert_eq!(rule.next_after(between).unwrap(), next);
                let civil = |moment: Timestamp| {
                    jiff::Timestamp::from_millisecond(moment.as_millis()).unwrap().to_zoned(zone(name)).datetime()
                };
                prop_assert_eq!(civil(next).time(), time);
                let mut day = civil(at).date().tomorrow().unwrap();
                while day < civil(next).date() {
                    let skipped = zone(name).to_ambiguous_timestamp(day.to_datetime(time));
                    let is_gap = matches!(skipped.offset(), AmbiguousOffset::Gap { .. });
                    prop_assert!(is_gap, "{} has {}", day, time);
                    day = day.tomorrow().unwrap();
                }
                prop_assert!(civil(next).date() > civil(at).date());
                at = next;
            }
        }

        #[test]
        fn intervals_only_go_on_and_are_on_the_clock(
            start in 1_262_304_000i64..2_200_000_000,
            minutes in prop::sample::select(&[5i64, 15, 30, 60, 360]),
            name in prop::sample::select(&ZONES),
        ) {
            let rule = every(minutes, name);
            let mut at = Timestamp::from_millis(start * 1_000);
            for _ in 0..60 {
                let next = rule.next_after(at).unwrap();
                prop_assert!(next > at);
                let shown = jiff::Timestamp::from_millisecond(next.as_millis()).unwrap().to_zoned(zone(name));
                let of_day = i64::from(shown.hour()) * 60 + i64::from(shown.minute());
                prop_assert_eq!((of_day % minutes, shown.second()), (0, 0));
                at = next;
            }
        }
    }
}
