//! Hints name the field or value that the author meant.

use serde_json::{Value, json};

use super::{base, known, report, with};

/// `message hint` of each diagnostic of a changed definition.
fn said(places: &[(&str, Value)]) -> String {
    let report = report(&with(base(), places), &known());
    let each = report.diagnostics.iter().map(|one| format!("{} {}", one.message, one.hint));
    each.collect::<Vec<_>>().join("\n")
}

fn scheduled(kind: &str, config: Value) -> String {
    let actions = json!([{"id": "a", "tool": "read_rows", "parameters": {"sheet": "s"}}]);
    said(&[
        ("/trigger_type", json!(kind)),
        ("/trigger_config", config),
        ("/actions", actions),
        ("/fingerprints", json!({"read_rows": "v3"})),
    ])
}

#[test]
fn a_hint_names_the_nearest_value() {
    let daily = |name: &str, value: Value| {
        let mut config = json!({"interval": "daily", "time_of_day": "09:00", "timezone": "UTC"});
        config[name] = value;
        scheduled("schedule_recurring", config)
    };
    let once = |at: &str| scheduled("schedule_once", json!({"run_at": at, "timezone": "Europe/Berlin"}));
    let filter = |clause: Value| said(&[("/trigger_config/filters", clause)]);
    for (said, expected, not) in [
        (daily("time", json!("08:00")), "Write time_of_day if you meant that", "Write timezone"),
        (daily("cron", json!("0 9 * * *")), "cron says when it runs", "a tool's arguments"),
        (scheduled("schedule_recurring", json!({"cron": "0 9 * *"})), "MON-FRI", "Shorten it"),
        (scheduled("schedule_recurring", json!({"cron": "* * * * * *"})), "The finest step is a minute", "is required"),
        (scheduled("schedule_recurring", json!({"schedule": "0 9 * * *"})), "Write cron if you meant that", "Move it"),
        (daily("time_of_day", json!("08:00:30")), "not a time from 00:00 to 23:59", "Shorten it"),
        (once("9999-12-31T23:59:59Z"), "too far in the future", "ISO 8601"),
        (once("2027-03-28T02:30:00"), "skip 2027-03-28T02:30:00, so it runs at 2027-03-28T03:30:00", "is required"),
        (once("2027-03-28T03:30:00"), "", "skip"),
        (
            filter(json!({"path": "event.text", "op": "contains_any", "value": []})),
            "The list that contains_any compares with is empty",
            "not a list",
        ),
        (said(&[("/actions/0/retries", json!(-1))]), "retries must be from 0 to 3", "Expected a whole number"),
        (
            said(&[("/actions/1/parameters/text", json!("[[\"{{event.text}}\"]]"))]),
            "Give the list or object itself",
            "is required",
        ),
        (
            said(&[
                ("/trigger_type", json!("polling")),
                ("/trigger_config", json!({"source_tool": "list_orders", "items": "{{data.orders}}"})),
            ]),
            "Write for example \"data.orders\", without braces",
            "is required",
        ),
    ] {
        assert!(said.contains(expected) && !said.contains(not), "{expected}: {said}");
    }
}
