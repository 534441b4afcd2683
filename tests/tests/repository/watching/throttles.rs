//! The requests of calls and events that the API's throttles turn away, counted in its access log.

use serde_json::{Value, json};
use tests::{Template, template::Route};

use super::{resource, text};

/// The throttles of routes whose requests come from calls and services.
const WATCHED: [&str; 4] = ["VapiRate", "TwilioRate", "ServicesRate", "VoiceRate"];

fn key(route: &Route) -> String {
    format!("{} {}", route.method, route.path)
}

/// Whether a filter pattern counts the line. A pair of brackets holds comparisons or pairs, all of one operator.
fn counts(pattern: &str, line: &Value) -> bool {
    let inside = pattern.trim().strip_prefix(['(', '{']).and_then(|rest| rest.strip_suffix([')', '}']));
    let inside = inside.unwrap_or_else(|| panic!("{pattern} has no brackets")).trim();
    if let Some(comparison) = inside.strip_prefix("$.") {
        let (field, value) = comparison.split_once(" = ").unwrap();
        return matches(value.trim_matches('"'), text(&line[field]));
    }
    let (pairs, operators) = split(inside);
    let one_is_enough = operators.first() == Some(&"||");
    let operator = if one_is_enough { "||" } else { "&&" };
    assert!(operators.iter().all(|other| *other == operator), "{pattern} mixes operators");
    let mut counted = pairs.iter().map(|pair| counts(pair, line));
    if one_is_enough { counted.any(|it| it) } else { counted.all(|it| it) }
}

/// The outermost pairs of brackets, and the operators between them.
fn split(text: &str) -> (Vec<&str>, Vec<&str>) {
    let (mut depth, mut begin) = (0, 0);
    let (mut pairs, mut operators) = (Vec::new(), Vec::new());
    for (at, letter) in text.char_indices() {
        if letter == '(' {
            if depth == 0 {
                operators.push(text[begin..at].trim());
                begin = at;
            }
            depth += 1;
        } else if letter == ')' {
            depth -= 1;
            if depth == 0 {
                pairs.push(&text[begin..=at]);
                begin = at + 1;
            }
        }
    }
    operators.retain(|operator| !operator.is_empty());
    (pairs, operators)
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
    let line = |route: &str, status: &str, invocation: &str| {
        let members = format.as_object().unwrap().iter().map(|(field, variable)| {
            let value = match text(variable) {
                "$context.status" => status,
                "$context.integration.requestId" => invocation,
                "$context.routeKey" => route,
                _ => "",
            };
            (field.clone(), Value::from(value))
        });
        Value::Object(members.collect())
    };

    let settings = stage["RouteSettings"].as_object().unwrap();
    let is_watched =
        |settings: &Value| WATCHED.iter().any(|column| settings["ThrottlingRateLimit"]["Fn::FindInMap"][2] == *column);
    assert!(settings.values().filter(|settings| is_watched(settings)).count() > 8, "{settings:#?}");
    for route in template.routes() {
        let route = key(&route);
        // A hyphen stands for a missing value: no function was invoked.
        let counted = counts(pattern, &line(&route, "429", "-"));
        assert_eq!(counted, settings.get(&route).is_some_and(is_watched), "{route}");
        assert!(!counts(pattern, &line(&route, "200", "-")), "{route}");
        assert!(!counts(pattern, &line(&route, "429", "6f1b")), "a function answered {route}");
    }
}
