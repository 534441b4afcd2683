//! Functions: their variables, roles and time limits.

use std::{cell::RefCell, collections::BTreeSet, rc::Rc};

use serde_json::{Value, json};
use shared::{
    Platform,
    actions::{ANSWER_WITHIN, VAPI_WAITS_SECONDS},
    config::Environment,
    platform::Result,
};
use tests::{Template, aws::identity};

use super::source::{between, pascal, read, rust};
use super::{functions, kebab_id, scheduled, set, unattended};

type Wiring = fn(&Platform) -> Result<()>;

/// The wiring of each function.
const WIRINGS: [(&str, Wiring); 32] = [
    ("agents", |platform| agents::Deps::new(platform).map(drop)),
    ("approvals", |platform| approvals::Deps::new(platform).map(drop)),
    ("attach", |platform| attach::Deps::new(platform).map(drop)),
    ("call-start", |platform| call_start::Deps::new(platform).map(drop)),
    ("calls", |platform| calls::Deps::new(platform).map(drop)),
    ("chat", |platform| chat::Deps::new(platform).map(drop)),
    ("console", |platform| console::Deps::new(platform).map(drop)),
    ("create-tool", |platform| create_tool::Deps::new(platform).map(drop)),
    ("delete", |platform| delete::Deps::new(platform).map(drop)),
    ("deploy", |platform| deploy::Deps::new(platform).map(drop)),
    ("detach", |platform| detach::Deps::new(platform).map(drop)),
    ("discover", |platform| discover::Deps::new(platform).map(drop)),
    ("members", |platform| members::Deps::new(platform).map(drop)),
    ("erasures", |platform| erasures::Deps::new(platform).map(drop)),
    ("execute", |platform| execute::Deps::new(platform).map(drop)),
    ("hooks", |platform| hooks::Deps::new(platform).map(drop)),
    ("keys", |platform| keys::Deps::new(platform).map(drop)),
    ("knowledge", |platform| knowledge::Deps::new(platform).map(drop)),
    ("list-tools", |platform| list_tools::Deps::new(platform).map(drop)),
    ("mcp", |platform| mcp::Deps::new(platform).map(drop)),
    ("operator", |platform| operator::Deps::new(platform).map(drop)),
    ("phone-numbers", |platform| phone_numbers::Deps::new(platform).map(drop)),
    ("run-loop", |platform| run_loop::Deps::new(platform).map(drop)),
    ("run-tool", |platform| run_tool::Deps::new(platform).map(drop)),
    ("runs", |platform| runs::Deps::new(platform).map(drop)),
    ("schedule", |platform| schedule::Deps::new(platform).map(drop)),
    ("settle", |platform| settle::Deps::new(platform).map(drop)),
    ("stream", |platform| stream::Deps::new(platform).map(drop)),
    ("tools-test", |platform| tools_test::Deps::new(platform).map(drop)),
    ("trigger", |platform| trigger::Deps::new(platform).map(drop)),
    ("update-tool", |platform| update_tool::Deps::new(platform).map(drop)),
    ("usage", |platform| usage::Deps::new(platform).map(drop)),
];

/// Wires a function with a number in every variable except `without`; returns the variables that it read, except
/// AWS's own.
fn wire(wiring: Wiring, without: &[&str]) -> (Result<()>, BTreeSet<String>) {
    let looked_up = Rc::new(RefCell::new(BTreeSet::new()));
    let (noted, without) = (looked_up.clone(), set(without.iter().copied()));
    let environment = Environment::new(move |name| {
        if name == "AWS_ENDPOINT_URL" {
            return None;
        }
        noted.borrow_mut().insert(name.to_owned());
        (!without.contains(name)).then(|| "7".to_owned())
    });
    let (region, credentials) = identity();
    let wired = Platform::new(environment, region, credentials).and_then(|platform| wiring(&platform));
    let looked_up = looked_up.borrow().clone();
    (wired, looked_up)
}

#[test]
fn a_function_gets_the_variables_it_reads_and_no_other() {
    let template = Template::read();
    assert_eq!(set(WIRINGS.map(|(name, _)| name)), functions());
    let globals = template.0["Globals"]["Function"]["Environment"]["Variables"].as_object();
    for (name, wiring) in WIRINGS {
        let (wired, mut wanted) = wire(wiring, &[]);
        wired.unwrap_or_else(|error| panic!("{name}: {error}"));
        wanted.extend(set(["AWS_LAMBDA_LOG_LEVEL", "METRICS_NAMESPACE"])); // `Platform::from_env`
        let id = format!("{}Function", pascal(name));
        let given = template.resources("AWS::Serverless::Function")[id.as_str()]["Environment"]["Variables"].clone();
        let given = given.as_object().into_iter().chain(globals).flat_map(serde_json::Map::keys);
        assert_eq!(set(given.cloned()), wanted, "environment of {id}");
    }
}

#[test]
fn a_function_that_lacks_a_variable_does_not_start_and_names_it() {
    let required = |name: &str| {
        let ends = ["_SECRET", "_PREFIX", "_QUEUE_URL", "_ARN"];
        // An upgrade may change a program before its variables.
        (name != "START_TOOLS_QUEUE_URL" && ends.iter().any(|end| name.ends_with(end))) || name == "SCHEDULE_GROUP"
    };
    for (name, wiring) in WIRINGS {
        for variable in wire(wiring, &[]).1 {
            let error = wire(wiring, &[&variable]).0.err().map(|error| error.to_string());
            let missing = format!("environment variable {variable} is required");
            let expected =
                (required(&variable) || variable == "PUBLIC_URL" || variable.starts_with("JWT_")).then_some(missing);
            assert_eq!(error, expected, "{name} without {variable}");
        }
    }
}

#[test]
fn a_function_has_a_role_and_a_log_of_its_own() {
    let template = Template::read();
    let roles = template.resources("AWS::IAM::Role");
    let logs = template.resources("AWS::Logs::LogGroup");
    for (id, log) in &logs {
        assert!(!log["RetentionInDays"].is_null(), "{id} keeps logs for ever");
    }
    for (id, properties) in template.resources("AWS::Serverless::Function") {
        let pascal = id.strip_suffix("Function").unwrap();
        let (role, log) = (format!("{pascal}Role"), format!("{pascal}Logs"));
        assert_eq!(properties["Role"], json!({"Fn::GetAtt": format!("{role}.Arn")}), "{id}");
        assert_eq!(properties["LoggingConfig"]["LogGroup"], json!({"Ref": log}), "{id}");
        assert!(logs.contains_key(log.as_str()), "{log} is missing");
        let policies = &roles[role.as_str()]["Policies"];
        for statement in policies.as_array().unwrap().iter().flat_map(statements) {
            let text = format!("{} {}", statement["Action"], statement["Resource"]);
            for wide in [":*\"", "\"*\""] {
                assert!(!text.contains(wide), "{role} may do too much: {text}");
            }
        }
    }
    let groups = template.resources("AWS::Scheduler::ScheduleGroup").len();
    let accounts = template.resources("AWS::ApiGateway::Account").len();
    let apis = template.resources("AWS::ApiGatewayV2::Api").len();
    let count = functions().len() + scheduled(&template).len() + groups + accounts + apis;
    assert_eq!(
        roles.len(),
        count,
        "a role for each function, each schedule and group of them, the HTTP API, API Gateway's logs, and none beside"
    );
}

fn statements(policy: &Value) -> Vec<&Value> {
    policy["PolicyDocument"]["Statement"].as_array().unwrap().iter().collect()
}

/// Each limit exceeds the limits inside it: we answer VAPI before it gives up, the function ends before the API does,
/// and leases and name reservations outlast the function.
#[test]
fn inner_time_limits_are_shorter_than_outer_ones() {
    let template = Template::read();
    let timeout = template.0["Globals"]["Function"]["Timeout"].as_u64().unwrap();
    let of_rest: BTreeSet<String> = set(template.rest_routes().into_iter().map(|route| route.function));
    let longest_turn = template.0["Parameters"]["TurnSeconds"]["MaxValue"].as_u64().unwrap();
    let streams = template.resources("AWS::Serverless::Function")["StreamFunction"]["Timeout"].as_u64().unwrap();
    assert!(longest_turn < streams, "a turn ends before its function does");
    for (id, properties) in template.resources("AWS::Serverless::Function") {
        let own = properties.get("Timeout").is_some();
        assert_eq!(
            own,
            unattended(&template).contains(&kebab_id(id)) || of_rest.contains(&kebab_id(id)),
            "{id}: only what the HTTP API does not wait for takes its time"
        );
    }
    assert!(ANSWER_WITHIN.as_secs() < u64::from(VAPI_WAITS_SECONDS));
    assert!(u64::from(VAPI_WAITS_SECONDS) < timeout);
    assert!(timeout < 30, "the HTTP API gives up after 30 s");
    for (file, constant) in [
        ("shared/src/store/agents.rs", "LEASE"),
        ("shared/src/store/knowledge_bases.rs", "LEASE"),
        ("shared/src/store/tools.rs", "RESERVATION"),
    ] {
        let text = read(file);
        let seconds = between(&text, &format!("const {constant}: Duration = Duration::from_secs("), ")")[0];
        assert!(seconds.parse::<u64>().unwrap() > timeout, "{constant} of {file} ends before the function does");
    }
}

/// A library without unit tests is not compiled a second time.
#[test]
fn unit_tests_are_built_where_there_are_some() {
    for name in functions() {
        let code = rust(&format!("functions/{name}/src"));
        let tested = code.iter().any(|file| file.code.contains("#[test]") || file.code.contains("#[tokio::test"));
        let built = !read(&format!("functions/{name}/Cargo.toml")).contains("[lib]\ntest = false");
        assert_eq!(built, tested, "functions/{name}/Cargo.toml: `test` of [lib]");
    }
}
