//! Schedules: times, zones, cron expressions and excluded days.

use serde_json::{Value, json};

use super::{base, known, report, told, with};

#[test]
fn schedules_have_times_that_mean_something() {
    let known = known();
    let schedule = |kind: &str, config: Value| {
        let mut definition = with(base(), &[("/trigger_type", json!(kind)), ("/trigger_config", config)]);
        definition["actions"] = json!([{"id": "a", "tool": "read_rows", "parameters": {"sheet": "s"}}]);
        definition["fingerprints"] = json!({"read_rows": "v3"});
        let told = told(&report(&definition, &known)).into_iter();
        told.map(|(place, code)| format!("{} {code}", place.trim_start_matches("/trigger_config/")))
            .collect::<Vec<_>>()
            .join(", ")
    };
    for (config, expected) in [
        (json!({"interval": "5min"}), ""),
        (json!({"interval": "hourly"}), "interval invalid_value"),
        (json!({}), "interval missing_field"),
        (json!({"interval": "daily", "time_of_day": "09:00", "timezone": "Europe/Berlin"}), ""),
        (json!({"interval": "daily", "time_of_day": "09:00"}), "time_of_day timezone_assumed"),
        (json!({"interval": "daily", "timezone": "UTC"}), "time_of_day missing_field"),
        (json!({"interval": "daily", "time_of_day": "25:00", "timezone": "UTC"}), "time_of_day invalid_value"),
        (json!({"interval": "daily", "time_of_day": "9am", "timezone": "UTC"}), "time_of_day invalid_value"),
        (json!({"interval": "daily", "time_of_day": "09:00", "timezone": "Europe/Berln"}), "timezone unknown_timezone"),
        (json!({"interval": "weekly", "time_of_day": "09:00", "timezone": "UTC", "day_of_week": "Monday"}), ""),
        (json!({"interval": "weekly", "time_of_day": "09:00", "timezone": "UTC", "day_of_week": 0}), ""),
        (
            json!({"interval": "weekly", "time_of_day": "09:00", "timezone": "UTC", "day_of_week": 7}),
            "day_of_week invalid_value",
        ),
        (json!({"interval": "weekly", "time_of_day": "09:00", "timezone": "UTC"}), "day_of_week missing_field"),
        (json!({"interval": "5min", "time_of_day": "09:00"}), "time_of_day unknown_field"),
        (json!({"cron": "0 9 * * MON-FRI", "timezone": "Europe/Berlin", "not_on": ["12-25", "2026-12-31"]}), ""),
        (json!({"cron": ["0 9 * * *", "30 13 L * *"], "timezone": "UTC"}), ""),
        (json!({"cron": "0 9 * * *"}), "cron timezone_assumed"),
        (json!({"cron": "0 9 * * *", "timezone": "Europe/Berln"}), "timezone unknown_timezone"),
        (json!({"cron": "*/5 * * * * *", "timezone": "UTC"}), "cron invalid_value"),
        (json!({"cron": ["0 9 * * *", "0 25 * * *"], "timezone": "UTC"}), "cron/1 invalid_value"),
        (json!({"cron": [], "timezone": "UTC"}), "cron invalid_value"),
        (json!({"cron": 5, "timezone": "UTC"}), "cron wrong_type"),
        (json!({"cron": "0 9 * * *", "interval": "daily", "timezone": "UTC"}), "interval unknown_field"),
        (json!({"interval": "1hr", "not_on": ["25.12."]}), "not_on/0 invalid_value"),
        (json!({"interval": "1hr", "not_on": [5]}), "not_on/0 wrong_type"),
        (json!({"cron": "0 9 30 2 *", "timezone": "UTC"}), "/trigger_config never_occurs"),
        (json!({"cron": "0 9 25 12 *", "timezone": "UTC", "not_on": ["12-25"]}), "/trigger_config never_occurs"),
        (json!({"cron": "0 9 25 12 *", "timezone": "UTC", "not_on": ["2026-12-25"]}), ""),
        (
            json!({"interval": "daily", "time_of_day": "09:00", "timezone": "UTC", "day_of_week": 1}),
            "day_of_week unknown_field",
        ),
    ] {
        assert_eq!(schedule("schedule_recurring", config.clone()), expected, "{config}");
    }
    for (config, expected) in [
        (json!({"run_at": "2026-11-22T12:00:01Z"}), ""),
        (json!({"run_at": "2027-01-31T09:00:00+01:00"}), ""),
        (json!({"run_at": "2027-01-31T09:00:00", "timezone": "Europe/Berlin"}), ""),
        (json!({"run_at": "2027-01-31T09:00:00"}), "run_at timezone_assumed"),
        (json!({"run_at": "2026-11-22T12:00:00Z"}), "run_at in_the_past"),
        // 12:30 in Berlin is in the past.
        (json!({"run_at": "2026-11-22T12:30:00", "timezone": "Europe/Berlin"}), "run_at in_the_past"),
        // In brackets: its own zone, in which 7:30 is still to come.
        (json!({"run_at": "2026-11-22T07:30:00[America/New_York]", "timezone": "Europe/Berlin"}), ""),
        (json!({"run_at": "2026-11-22T07:30:00[America/New_York]"}), ""),
        (json!({"run_at": "2026-11-22[America/New_York]"}), "run_at invalid_value"),
        (json!({"run_at": "2027-01-31T09:00[Mars/Base]"}), "run_at invalid_value"),
        (json!({"run_at": "tomorrow"}), "run_at invalid_value"),
        (json!({}), "run_at missing_field"),
    ] {
        assert_eq!(schedule("schedule_once", config.clone()), expected, "{config}");
    }
    assert_eq!(schedule("manual", json!({})), "");
    assert_eq!(schedule("manual", json!({"interval": "daily"})), "interval unknown_field");
    let asked = with(
        base(),
        &[("/trigger_type", json!("schedule_recurring")), ("/trigger_config", json!({"interval": "5min"}))],
    );
    assert!(told(&report(&asked, &known)).iter().all(|(_, code)| *code == "unknown_path"), "a schedule brings no data");
}
