//! Logs and metrics, both as JSON lines on stdout.
//!
//! A log line is a complete sentence with dotted fields for search (`tool.id`, `call.id`, `upstream.service`,
//! `duration_ms`). It never contains bodies, arguments, results, phone numbers or tokens. Metrics use CloudWatch's
//! embedded metric format; dimensions are few and enumerable, never ids.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tracing_subscriber::filter::LevelFilter;

use crate::models::Timestamp;

pub const NAMESPACE: &str = "Switchboard";

static NAMESPACE_OF_PROCESS: OnceLock<String> = OnceLock::new();
static SINK: OnceLock<fn(&Value)> = OnceLock::new();

/// Starts logging; once per process. `namespace` separates the metrics of two deployments in one account.
pub fn init(level: tracing::Level, namespace: String) {
    let subscriber = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        // `span` has `request.id`.
        .with_current_span(true)
        .with_span_list(false)
        .with_target(false)
        .with_max_level(LevelFilter::from_level(level))
        .finish();
    // Tests may install a second subscriber in one process.
    let _ = tracing::subscriber::set_global_default(subscriber);
    let _ = NAMESPACE_OF_PROCESS.set(namespace);
}

/// Sends metrics to `sink` instead of stdout; for tests, once per process.
pub fn metrics_to(sink: fn(&Value)) {
    let _ = SINK.set(sink);
}

pub fn request(function: &str, outcome: &str, duration: Duration) {
    static WARM: AtomicBool = AtomicBool::new(false);
    let cold_start = u8::from(!WARM.swap(true, Ordering::Relaxed));
    emit(
        &[("Function", function), ("Outcome", outcome)],
        &[count("Requests", 1), time("Latency", duration), count("ColdStart", cold_start)],
    );
}

/// A request answered with a 5xx: a fault of ours, or of a vendor.
pub fn fault(function: &str) {
    emit(&[("Function", function)], &[count("Faults", 1)]);
}

/// The answer to an incoming call: `agent`, `incomplete` (the agent without some tools or without a complete record)
/// or `fallback`. A repetition does not count. A call that was not told its tools' results counts as `incomplete` too.
pub fn call_answered(answer: &str) {
    emit(&[("Answer", answer)], &[count("Calls", 1)]);
}

pub fn execution(kind: &str, status: &str, duration: Duration) {
    emit(&[("ToolType", kind), ("Status", status)], &[count("ToolRuns", 1), time("ToolLatency", duration)]);
}

/// A tool not executed because of a fault of ours.
pub fn tool_fault(trigger: &str) {
    emit(&[("Trigger", trigger)], &[count("ToolFaults", 1)]);
}

/// A finished run of an automation: its status, and the time since its request.
pub fn automation_run(status: &str, duration: Duration) {
    emit(&[("Status", status)], &[count("AutomationRuns", 1), time("AutomationRunTime", duration)]);
}

pub fn automation_paused() {
    emit(&[], &[count("AutomationsPaused", 1)]);
}

/// A run that was given up because of an outage of ours, or of the platform's LLM.
pub fn run_given_up() {
    emit(&[], &[count("RunsGivenUp", 1)]);
}

/// A service that refused the platform's account.
pub fn platform_refused() {
    emit(&[], &[count("PlatformRefusals", 1)]);
}

/// A request of an organization's own hook that was refused because they were too many.
pub fn hook_throttled() {
    emit(&[], &[count("HooksThrottled", 1)]);
}

pub fn alert_not_sent() {
    emit(&[], &[count("AlertsNotSent", 1)]);
}

pub fn execution_limited(kind: &str, limit: &str) {
    emit(&[("ToolType", kind), ("Limit", limit)], &[count("ToolLimited", 1)]);
}

/// The cost of an LLM in its gateway's credits, and the budget that pays it.
pub fn spent(budget: &str, cost: f64) {
    emit(&[("Budget", budget)], &[("LlmCost", "None", cost.into())]);
}

/// Effects that an agent confirmed in a call and that no tool had.
pub fn unproven_claims(claims: usize) {
    emit(&[], &[count("UnprovenClaims", claims)]);
}

pub fn budget_used_up(budget: &str) {
    emit(&[("Budget", budget)], &[count("BudgetsUsedUp", 1)]);
}

/// A round of `settle`: the number of changes that are open for too long (if known), and of failed steps.
pub fn settled(open_for_long: Option<usize>, failures: usize) {
    let open = open_for_long.map(|open| count("OpenIntents", open));
    let metrics: Vec<Metric> = [count("SettleFailures", failures)].into_iter().chain(open).collect();
    emit(&[], &metrics);
}

/// A row that this version cannot read.
pub fn unreadable_row(row: &str) {
    emit(&[("Row", row)], &[count("UnreadableRows", 1)]);
    // Also without a dimension, for the alarm.
    emit(&[], &[count("UnreadableRows", 1)]);
}

/// Name, unit and value.
type Metric = (&'static str, &'static str, Value);

fn count(name: &'static str, value: impl Into<Value>) -> Metric {
    (name, "Count", value.into())
}

/// Milliseconds with three decimals.
fn time(name: &'static str, duration: Duration) -> Metric {
    (name, "Milliseconds", ((duration.as_secs_f64() * 1_000_000.0).round() / 1_000.0).into())
}

#[expect(clippy::print_stdout, reason = "CloudWatch reads metrics from stdout")]
fn emit(dimensions: &[(&str, &str)], metrics: &[Metric]) {
    let line = line(dimensions, metrics);
    match SINK.get() {
        Some(sink) => sink(&line),
        None => println!("{line}"),
    }
}

/// `CloudWatch` drops a metric whose name is not declared beside it.
fn line(dimensions: &[(&str, &str)], metrics: &[Metric]) -> Value {
    let declared: Vec<Value> = metrics.iter().map(|(name, unit, _)| json!({"Name": name, "Unit": unit})).collect();
    let names: Vec<&str> = dimensions.iter().map(|(name, _)| *name).collect();
    let namespace = NAMESPACE_OF_PROCESS.get().map_or(NAMESPACE, String::as_str);
    let declaration = json!({
        "Timestamp": Timestamp::now().as_millis(),
        "CloudWatchMetrics": [{"Namespace": namespace, "Dimensions": [names], "Metrics": declared}],
    });
    let values = metrics.iter().map(|(name, _, value)| ((*name).to_owned(), value.clone()));
    let dimensions = dimensions.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value)));
    dimensions.chain(values).chain([("_aws".to_owned(), declaration)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_declared_with_its_unit_and_dimensions() {
        let duration = Duration::from_micros(2_500);
        let line = line(&[("ToolType", "sms"), ("Limit", "per_call")], &[count("Runs", 1), time("Time", duration)]);
        let declared = &line["_aws"]["CloudWatchMetrics"][0];
        assert_eq!(declared["Dimensions"], json!([["ToolType", "Limit"]]));
        let metrics = json!([{"Name": "Runs", "Unit": "Count"}, {"Name": "Time", "Unit": "Milliseconds"}]);
        assert_eq!(declared["Metrics"], metrics);
        assert_eq!((&line["ToolType"], &line["Limit"]), (&json!("sms"), &json!("per_call")));
        assert_eq!((&line["Runs"], &line["Time"]), (&json!(1), &json!(2.5)));
    }
}
