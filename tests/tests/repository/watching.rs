//! Monitoring of a deployment: alarms, dashboard, metrics, and request ids.
//!
//! Alarms watch existing resources and notify somebody, the dashboard shows them, the code writes their metrics, and
//! ids lead to a request's log.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::large_futures,
    reason = "a test says what is wrong and stops"
)]

mod alarms;
mod dashboard;
mod metrics;
mod requests;
mod throttles;
mod tool_faults;
mod traces;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tests::{Template, metrics::Metric};

const STACK: &str = "switchboard";

/// AWS's metrics of the template's resources: namespace, names, and their only dimension. Lambda's also exist without
/// it, for the account.
const OF_AWS: [(&str, &[&str], &str); 4] = [
    ("AWS/Lambda", &["Invocations", "Errors", "Throttles", "Duration"], "FunctionName"),
    ("AWS/SQS", &["ApproximateAgeOfOldestMessage", "ApproximateNumberOfMessagesVisible"], "QueueName"),
    ("AWS/ApiGateway", &["Count", "4xx", "5xx", "Latency"], "ApiId"),
    // The metrics of REST APIs.
    ("AWS/ApiGateway", &["Count", "4XXError", "5XXError", "Latency", "IntegrationLatency"], "ApiName"),
];
const OF_ACCOUNT: [&str; 4] = ["ConcurrentExecutions", "Errors", "RecursiveInvocationsDropped", "Throttles"];

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is not text"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn resource<'a>(template: &'a Template, id: &str) -> &'a Value {
    let resource = &template.0["Resources"][id];
    assert!(resource.is_object(), "the template has no {id}");
    resource
}

/// The text on AWS for a stack called `switchboard`; ids that AWS assigns become placeholders such as `<Api>`.
fn resolved(template: &Template, value: &Value) -> String {
    if let Some(text) = value.as_str() {
        return text.to_owned();
    }
    if let Some(name) = value["Ref"].as_str() {
        return referred(template, name);
    }
    if let Some(name) = value["Fn::GetAtt"].as_str() {
        return referred(template, name);
    }
    let mut rest = text(&value["Fn::Sub"]);
    let mut whole = String::new();
    while let Some((before, name)) = rest.split_once("${") {
        let (name, after) = name.split_once('}').unwrap();
        whole.push_str(before);
        whole.push_str(&referred(template, name));
        rest = after;
    }
    whole + rest
}

/// The target of `Queue`, `Queue.QueueName` or `AWS::StackName`.
fn referred(template: &Template, name: &str) -> String {
    let (id, attribute) = name.split_once('.').unwrap_or((name, ""));
    match id {
        "AWS::StackName" => return STACK.to_owned(),
        "AWS::Region" => return "eu-central-1".to_owned(),
        _ => {}
    }
    let resource = resource(template, id);
    match (text(&resource["Type"]), attribute) {
        ("AWS::Serverless::Function", "") => resolved(template, &resource["Properties"]["FunctionName"]),
        ("AWS::SQS::Queue", "QueueName") => resolved(template, &resource["Properties"]["QueueName"]),
        ("AWS::CloudWatch::Alarm", "Arn") | ("AWS::ApiGatewayV2::Api", "") => format!("<{id}>"),
        other => panic!("nobody needs {name} of {other:?} here"),
    }
}

/// Checks that a metric of AWS exists and belongs to a resource of the template; returns a metric of our own, for
/// comparison with the code's.
fn checked(
    template: &Template,
    by: &str,
    namespace: &str,
    name: &str,
    dimensions: BTreeMap<String, String>,
) -> Option<Metric> {
    if namespace == STACK {
        return Some((name.to_owned(), dimensions));
    }
    if dimensions.is_empty() {
        assert!(namespace == "AWS/Lambda" && OF_ACCOUNT.contains(&name), "{by}: {name} has dimensions");
        return None;
    }
    let given: Vec<&str> = dimensions.keys().map(String::as_str).collect();
    let (_, names, dimension) =
        OF_AWS.iter().find(|(of, _, dimension)| *of == namespace && given == [*dimension]).unwrap_or_else(|| {
            panic!("{by}: nothing of {namespace} has the dimensions {given:?}");
        });
    assert!(names.contains(&name), "{by}: {namespace} has no {name}");
    let (kind, property) = match *dimension {
        "FunctionName" => ("AWS::Serverless::Function", "FunctionName"),
        "QueueName" => ("AWS::SQS::Queue", "QueueName"),
        "ApiName" => ("AWS::ApiGateway::RestApi", "Name"),
        _ => {
            assert_eq!(dimensions[*dimension], "<Api>", "{by}: whose {name}?");
            return None;
        }
    };
    let there: BTreeSet<String> =
        template.resources(kind).values().map(|resource| resolved(template, &resource[property])).collect();
    assert!(there.contains(&dimensions[*dimension]), "{by}: the template has no {}", dimensions[*dimension]);
    None
}
