//! Logs and metrics, both as JSON lines on stdout.
//!
//! A log line reads by itself and has dotted fields to search by (`tool.id`, `call.id`, `upstream.service`,
//! `duration_ms`). Never in it: bodies, arguments, results, phone numbers, tokens. Metrics are CloudWatch's embedded
//! metric format; dimensions are few and enumerable, never ids.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use serde_json::json;
use tracing_subscriber::filter::LevelFilter;

use crate::{config, models::Timestamp};

const NAMESPACE: &str = "Switchboard";

/// Starts logging; once, first thing in `main`.
///
/// # Errors
/// When `AWS_LAMBDA_LOG_LEVEL` is no level.
pub fn init() -> Result<(), config::Error> {
    let level = LevelFilter::from_level(config::log_level()?);
    let subscriber = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_span_list(false)
        .with_target(false)
        .with_max_level(level)
        .finish();
    // A second subscriber in the same process (tests) is no fault.
    let _ = tracing::subscriber::set_global_default(subscriber);
    Ok(())
}

/// One finished request: its outcome and how long it took.
pub fn request(function: &str, outcome: &str, duration: Duration) {
    static WARM: AtomicBool = AtomicBool::new(false);
    let cold_start = u8::from(!WARM.swap(true, Ordering::Relaxed));
    emit(&json!({
        "_aws": {
            "Timestamp": Timestamp::now().as_millis(),
            "CloudWatchMetrics": [{
                "Namespace": NAMESPACE,
                "Dimensions": [["Function", "Outcome"]],
                "Metrics": [
                    {"Name": "Requests", "Unit": "Count"},
                    {"Name": "Latency", "Unit": "Milliseconds"},
                    {"Name": "ColdStart", "Unit": "Count"},
                ],
            }],
        },
        "Function": function,
        "Outcome": outcome,
        "Requests": 1,
        "Latency": milliseconds(duration),
        "ColdStart": cold_start,
    }));
}

/// One run of a tool: what became of it and how long it took.
pub fn tool_run(kind: &str, status: &str, duration: Duration) {
    emit(&json!({
        "_aws": {
            "Timestamp": Timestamp::now().as_millis(),
            "CloudWatchMetrics": [{
                "Namespace": NAMESPACE,
                "Dimensions": [["ToolType", "Status"]],
                "Metrics": [{"Name": "ToolRuns", "Unit": "Count"}, {"Name": "ToolLatency", "Unit": "Milliseconds"}],
            }],
        },
        "ToolType": kind,
        "Status": status,
        "ToolRuns": 1,
        "ToolLatency": milliseconds(duration),
    }));
}

/// One run of an automation: how it ended, and how long after it was asked for.
pub fn automation_run(status: &str, duration: Duration) {
    emit(&json!({
        "_aws": {
            "Timestamp": Timestamp::now().as_millis(),
            "CloudWatchMetrics": [{
                "Namespace": NAMESPACE,
                "Dimensions": [["Status"]],
                "Metrics": [{"Name": "AutomationRuns", "Unit": "Count"}, {"Name": "AutomationRunTime", "Unit": "Milliseconds"}],
            }],
        },
        "Status": status,
        "AutomationRuns": 1,
        "AutomationRunTime": milliseconds(duration),
    }));
}

/// A row that this version cannot read.
pub fn unreadable_row(row: &str) {
    emit(&json!({
        "_aws": {
            "Timestamp": Timestamp::now().as_millis(),
            "CloudWatchMetrics": [{
                "Namespace": NAMESPACE,
                "Dimensions": [["Row"]],
                "Metrics": [{"Name": "UnreadableRows", "Unit": "Count"}],
            }],
        },
        "Row": row,
        "UnreadableRows": 1,
    }));
}

/// A run that one of its tool's limits (`per_call`, `per_hour`) did not let happen.
pub fn tool_limited(kind: &str, limit: &str) {
    emit(&limited(kind, limit));
}

fn limited(kind: &str, limit: &str) -> serde_json::Value {
    json!({
        "_aws": {
            "Timestamp": Timestamp::now().as_millis(),
            "CloudWatchMetrics": [{
                "Namespace": NAMESPACE,
                "Dimensions": [["ToolType", "Limit"]],
                "Metrics": [{"Name": "ToolLimited", "Unit": "Count"}],
            }],
        },
        "ToolType": kind,
        "Limit": limit,
        "ToolLimited": 1,
    })
}

/// Whole milliseconds with three decimals.
fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1_000_000.0).round() / 1_000.0
}

#[expect(clippy::print_stdout, reason = "CloudWatch reads metrics from stdout")]
fn emit(line: &serde_json::Value) {
    println!("{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CloudWatch drops a metric whose names do not stand beside its declaration.
    #[test]
    fn a_limited_run_is_a_metric_by_type_and_limit() {
        let line = limited("sms", "per_call");
        let declared = &line["_aws"]["CloudWatchMetrics"][0];
        assert_eq!(declared["Metrics"][0]["Name"], "ToolLimited");
        for name in ["ToolType", "Limit"] {
            assert!(declared["Dimensions"][0].as_array().unwrap().contains(&json!(name)));
        }
        assert_eq!(
            (&line["ToolType"], &line["Limit"], &line["ToolLimited"]),
            (&json!("sms"), &json!("per_call"), &json!(1))
        );
    }
}
