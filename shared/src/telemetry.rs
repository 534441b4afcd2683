//! Logs and metrics, both as JSON lines on stdout.
//!
//! A log line reads by itself and has dotted fields to search by (`tool.id`, `call.id`, `upstream.service`,
//! `duration_ms`). Never in it: bodies, arguments, results, phone numbers, tokens. Metrics are CloudWatch's embedded
//! metric format; dimensions are few and enumerable, never ids.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use serde_json::{Value, json};
use tracing_subscriber::filter::LevelFilter;

use crate::models::Timestamp;

const NAMESPACE: &str = "Switchboard";

/// Starts logging; once per process.
pub fn init(level: tracing::Level) {
    let subscriber = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_span_list(false)
        .with_target(false)
        .with_max_level(LevelFilter::from_level(level))
        .finish();
    // A second subscriber in the same process (tests) is no fault.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// One finished request: its outcome and how long it took.
pub fn request(function: &str, outcome: &str, duration: Duration) {
    static WARM: AtomicBool = AtomicBool::new(false);
    let cold_start = u8::from(!WARM.swap(true, Ordering::Relaxed));
    emit(
        &[("Function", function), ("Outcome", outcome)],
        &[("Requests", 1.into()), ("Latency", milliseconds(duration)), ("ColdStart", cold_start.into())],
    );
}

/// One run of a tool: what became of it and how long it took.
pub fn execution(kind: &str, status: &str, duration: Duration) {
    let metrics = [("ToolRuns", 1.into()), ("ToolLatency", milliseconds(duration))];
    emit(&[("ToolType", kind), ("Status", status)], &metrics);
}

/// One run of an automation: how it ended, and how long after it was asked for.
pub fn automation_run(status: &str, duration: Duration) {
    emit(&[("Status", status)], &[("AutomationRuns", 1.into()), ("AutomationRunTime", milliseconds(duration))]);
}

/// A run that one of its tool's limits (`per_call`, `per_hour`) did not let happen.
pub fn execution_limited(kind: &str, limit: &str) {
    emit(&[("ToolType", kind), ("Limit", limit)], &[("ToolLimited", 1.into())]);
}

/// A row that this version cannot read.
pub fn unreadable_row(row: &str) {
    emit(&[("Row", row)], &[("UnreadableRows", 1.into())]);
}

/// Whole milliseconds with three decimals.
fn milliseconds(duration: Duration) -> Value {
    ((duration.as_secs_f64() * 1_000_000.0).round() / 1_000.0).into()
}

#[expect(clippy::print_stdout, reason = "CloudWatch reads metrics from stdout")]
fn emit(dimensions: &[(&str, &str)], metrics: &[(&str, Value)]) {
    println!("{}", line(dimensions, metrics));
}

/// Counts, and times in milliseconds. Every name stands beside its declaration, or CloudWatch drops the metric.
fn line(dimensions: &[(&str, &str)], metrics: &[(&str, Value)]) -> Value {
    let unit = |value: &Value| if value.is_f64() { "Milliseconds" } else { "Count" };
    let declared: Vec<Value> = metrics.iter().map(|(name, value)| json!({"Name": name, "Unit": unit(value)})).collect();
    let names: Vec<&str> = dimensions.iter().map(|(name, _)| *name).collect();
    let declaration = json!({
        "Timestamp": Timestamp::now().as_millis(),
        "CloudWatchMetrics": [{"Namespace": NAMESPACE, "Dimensions": [names], "Metrics": declared}],
    });
    let values = metrics.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    let dimensions = dimensions.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value)));
    dimensions.chain(values).chain([("_aws".to_owned(), declaration)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_declared_with_its_unit_and_dimensions() {
        let duration = Duration::from_micros(2_500);
        let line = line(
            &[("ToolType", "sms"), ("Limit", "per_call")],
            &[("Runs", 1.into()), ("Time", milliseconds(duration))],
        );
        let declared = &line["_aws"]["CloudWatchMetrics"][0];
        assert_eq!(declared["Dimensions"], json!([["ToolType", "Limit"]]));
        let metrics = json!([{"Name": "Runs", "Unit": "Count"}, {"Name": "Time", "Unit": "Milliseconds"}]);
        assert_eq!(declared["Metrics"], metrics);
        assert_eq!((&line["ToolType"], &line["Limit"]), (&json!("sms"), &json!("per_call")));
        assert_eq!((&line["Runs"], &line["Time"]), (&json!(1), &json!(2.5)));
    }
}
