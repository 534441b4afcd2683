//! The requests of calls and events that the API's throttles turn away, counted in its access log.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tests::{Template, template::Route};

use super::{resource, text};

/// The throttles of routes whose requests come from calls and services.
const WATCHED: [&str; 4] = ["VapiRate", "TwilioRate", "ServicesRate", "VoiceRate"];

fn key(route: &Route) -> String {
    format!("{} {}", route.method, route.path)
}

/// A star at one end of a text in a filter pattern stands for any text.
fn matches(pattern: &str, route: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(end), _) => route.ends_with(end),
        (None, Some(begin)) => route.starts_with(begin),
        (None, None) => route == pattern,
    }
}

#[test]
fn the_apis_own_429s_of_calls_and_events_are_counted() {
    let template = Template::read();
    let filter = &resource(&template, "ThrottledRequests")["Properties"];
    assert_eq!(filter["LogGroupName"], json!({"Ref": "ApiLogs"}));
    let stage = &resource(&template, "ApiStage")["Properties"];
    assert_eq!(stage["AccessLogSettings"]["DestinationArn"], json!({"Fn::GetAtt": "ApiLogs.Arn"}));
    let format: Value = serde_json::from_str(text(&stage["AccessLogSettings"]["Format"])).unwrap();
    let pattern = text(&filter["FilterPattern"]);
    assert!(pattern.len() <= 1_024, "CloudWatch Logs takes 1,024 characters");
    let mut patterns = Vec::new();
    for comparison in pattern.split("$.").skip(1) {
        let (field, rest) = comparison.split_once(" = \"").unwrap();
        let (value, _) = rest.split_once('"').unwrap();
        match (text(&format[field]), value) {
            // A hyphen stands for a missing value: no function was invoked.
            ("$context.status", "429") | ("$context.integration.requestId", "-") => {}
            ("$context.routeKey", route) => patterns.push(route),
            other => panic!("{other:?} is compared"),
        }
    }

    let settings = stage["RouteSettings"].as_object().unwrap();
    let is_watched =
        |settings: &Value| WATCHED.iter().any(|column| settings["ThrottlingRateLimit"]["Fn::FindInMap"][2] == *column);
    let watched = settings.iter().filter(|(_, settings)| is_watched(settings));
    let paths: BTreeSet<&str> = watched.map(|(key, _)| key.split_once(' ').unwrap().1).collect();
    assert!(paths.len() > 8, "{paths:?}");
    for route in template.routes() {
        let counted = patterns.iter().any(|pattern| matches(pattern, &key(&route)));
        assert_eq!(counted, paths.contains(route.path.as_str()), "{}", key(&route));
    }
}
