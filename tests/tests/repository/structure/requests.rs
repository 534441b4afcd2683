//! The HTTP API's throttles, and its CORS headers.

use std::collections::BTreeSet;

use serde_json::Value;
use tests::{Template, template::Route};

use super::source::{between, rust};

/// Slow routes: a few of their requests use up many executions.
const LONG: [&str; 2] = ["POST /agent/chat", "POST /copilotkit/action"];

fn key(route: &Route) -> String {
    format!("{} {}", route.method, route.path)
}

#[test]
fn each_public_route_has_its_own_throttle() {
    let template = Template::read();
    let stage = &template.0["Resources"]["ApiStage"];
    let settings = stage["Properties"]["RouteSettings"].as_object().unwrap();
    let routes = template.routes();
    let open = routes.iter().filter(|route| !route.jwt).map(key);
    for name in open.chain(LONG.map(str::to_owned)) {
        assert!(settings.contains_key(&name), "{name} takes from the dashboard's share");
    }

    // CloudFormation rejects settings of a route that does not exist yet.
    let by_id = template.resources("AWS::ApiGatewayV2::Route");
    let waits_for: BTreeSet<&str> = stage["DependsOn"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let mut needed = BTreeSet::new();
    for (name, setting) in settings {
        let (id, _) =
            by_id.iter().find(|(_, route)| route["RouteKey"] == *name).unwrap_or_else(|| panic!("no route {name}"));
        if template.0["Resources"][*id].get("Condition").is_some() {
            assert!(stage["Metadata"].to_string().contains(*id), "{name}: the stage waits for {id} where it is");
            assert!(!setting["Fn::If"].is_null(), "{name} is there under a condition, and so are its settings");
        } else {
            needed.insert(*id);
        }
    }
    assert_eq!(waits_for, needed);
}

/// A page may send every header that its routes read.
#[test]
fn pages_may_send_the_headers_that_routes_read() {
    // Headers from services or from the gateway.
    const NOT_OF_PAGES: [&str; 4] = ["x-twilio-signature", "x-vapi-secret", "origin", "host"];
    let template = Template::read();
    let api = template.deployed(&[("DashboardOrigins", "https://app.example")]).properties("Api").unwrap();
    let allowed: BTreeSet<&str> =
        api["CorsConfiguration"]["AllowHeaders"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let mut read = BTreeSet::new();
    for file in rust("shared/src/entry/http").into_iter().chain(rust("functions")) {
        if file.path.contains("trigger/") {
            continue;
        }
        read.extend(between(&file.code, "headers().get(\"", "\"").into_iter().map(str::to_owned));
    }
    assert!(read.len() > 4, "the headers were found: {read:?}");
    for name in read.iter().map(String::as_str).filter(|name| !NOT_OF_PAGES.contains(name)) {
        assert!(allowed.contains(name), "pages may not send {name}");
    }
    let used: BTreeSet<&str> = template
        .resources("AWS::ApiGatewayV2::Route")
        .values()
        .map(|route| route["RouteKey"].as_str().unwrap().split(' ').next().unwrap())
        .collect();
    let methods = api["CorsConfiguration"]["AllowMethods"].as_array().unwrap();
    for method in used.into_iter().filter(|method| *method != "OPTIONS") {
        assert!(methods.iter().any(|allowed| allowed == method), "pages may not use {method}");
    }
}
