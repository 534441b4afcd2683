//! Diagnostics of definitions: every code, its pointer, and the diagnostics it suppresses.

mod hints;
mod mistakes;
mod nested;
mod schedules;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use serde_json::{Value, json};

use self::mistakes::{OWN, mistakes};
use super::*;
use crate::{
    catalogue::BuiltInTools,
    connections::{ConnectedAccount, Connection},
    json_schema::JsonSchema,
    models::{CheckedTool, RunCeilings, ServiceCapabilities, ToolRef},
};

fn tool(parameters: Value, fingerprint: &str) -> UsableTool {
    let schema = JsonSchema::compile(&parameters).ok().map(Arc::new);
    UsableTool {
        reference: ToolRef::BuiltIn("fixture".into()),
        parameters,
        schema,
        returns: json!({}),
        effect: true,
        fingerprint: fingerprint.into(),
        service: None,
        previous: None,
    }
}

fn connected() -> Connection {
    Connection::Connected { accounts: vec![ConnectedAccount { id: "apn_1".into(), name: "ops".into() }] }
}

fn slack_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "channel": {"type": "string", "description": "Id of the channel."},
            "text": {"type": "string"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 10},
            "unfurl": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "kind": {"type": "string", "enum": ["info", "alert"]},
            "at": {"type": "string", "format": "date-time"},
            "to": {"oneOf": [{"type": "string"}, {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}]},
            "mode": {"type": "string", "default": "plain"},
        },
        "required": ["channel", "text", "mode"],
        "additionalProperties": false,
    })
}

fn known() -> Known {
    let slack = UsableTool {
        service: Some(("Slack".into(), connected())),
        previous: Some((
            "slack-0".into(),
            json!({"type": "object", "properties": {"channel": {"type": "string"}, "message": {"type": "string"}}, "required": ["channel"]}),
        )),
        ..tool(slack_schema(), "slack-1")
    };
    let gmail = UsableTool {
        reference: ToolRef::Service { name: "gmail_find_email".into(), fingerprint: Some("gmail-1".into()) },
        service: Some(("Gmail".into(), Connection::NotConnected)),
        effect: false,
        ..tool(json!({"type": "object", "properties": {"q": {"type": "string"}}}), "gmail-1")
    };
    let rows = UsableTool {
        effect: false,
        returns: json!({"type": "object", "properties": {
            "rows": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "integer"}}}},
            "count": {"type": "integer"},
        }}),
        ..tool(json!({"type": "object", "properties": {"sheet": {"type": "string"}}, "required": ["sheet"]}), "v3")
    };
    let odd = tool(json!({"type": "object", "properties": {"a": {"type": "oddity"}}}), "odd-1");
    let tools = HashMap::from([
        ("slack_post_message".to_owned(), KnownTool::Here(Box::new(slack))),
        ("gmail_find_email".to_owned(), KnownTool::Here(Box::new(gmail))),
        ("read_rows".to_owned(), KnownTool::Here(Box::new(rows))),
        ("own_post".to_owned(), KnownTool::Here(Box::new(tool(slack_schema(), "v1")))),
        ("odd".to_owned(), KnownTool::Here(Box::new(odd))),
        ("gone".to_owned(), KnownTool::Inactive { service: "Slack".into() }),
        ("twice".to_owned(), KnownTool::Ambiguous { ids: vec!["id-1".into(), "id-2".into()] }),
        ("transfer".to_owned(), KnownTool::NeedsCall("transfers the call".into())),
        ("broken".to_owned(), KnownTool::Unusable("cannot be read".into())),
        (
            "slack_post_mesage".to_owned(),
            KnownTool::NotFound { others: vec!["slack_post_message".into()], not_searched: None },
        ),
        ("llm_agent".to_owned(), KnownTool::NotFound { others: Vec::new(), not_searched: None }),
        ("call_automation".to_owned(), KnownTool::NotFound { others: Vec::new(), not_searched: None }),
    ]);
    let capabilities: ServiceCapabilities = serde_json::from_value(json!({
        "service_name": "slack", "supports_webhooks": true, "webhook_events": ["message", "reaction_added"],
        "webhook_payload_schemas": {"message": {
            "trigger_data_fields": {
                "event.text": "Text", "event.user": "User", "event.count": "How many", "event.files": "Files", "event.more": "What else",
            },
            "example": {"event": {"text": "hi", "user": "U1", "count": 3, "files": [{"name": "a"}]}},
        }},
    }))
    .unwrap();
    Known {
        tools,
        trigger_service: KnownService::Here {
            name: "Slack".into(),
            connection: connected(),
            capabilities: Some(Box::new(capabilities)),
        },
        preflight: Preflight::NotAsked,
        earlier: BTreeMap::new(),
        events: Vec::new(),
        awaited: HashMap::new(),
        called: HashMap::from([
            (mistakes::UNKNOWN.parse().unwrap(), CalledAutomation::NotFound),
            (mistakes::INACTIVE.parse().unwrap(), CalledAutomation::Inactive { name: "Invoice".into() }),
            (mistakes::IN_CIRCLE.parse().unwrap(), CalledAutomation::InCircle { names: vec!["A".into(), "B".into()] }),
            (mistakes::TOO_DEEP.parse().unwrap(), CalledAutomation::TooDeep { names: vec!["A".into(), "B".into()] }),
        ]),
        built_in: BuiltInTools::default(),
        ceilings: Some(RunCeilings { cost: 5.0, seconds: 600, models: vec!["a/model".to_owned()] }),
        now: "2026-11-22T12:00:00Z".parse().unwrap(),
        purpose: Purpose::Saving,
    }
}

fn base() -> Value {
    json!({
        "name": "Urgent messages",
        "trigger_type": "webhook",
        "trigger_config": {
            "service": "Slack", "event_type": "message",
            "filters": {"path": "event.text", "op": "contains", "value": "urgent", "case_insensitive": true},
        },
        "actions": [
            {"id": "look", "tool": "read_rows", "parameters": {"sheet": "{{event.user}}"}, "output_as": "found"},
            {
                "id": "tell", "tool": "slack_post_message", "output_as": "sent",
                "parameters": {"channel": "{{channel}}", "text": "{{event.text}} from {{user.name}}: {{found.rows[0].name}}"},
                "condition": {"path": "found.count", "op": ">", "value": 0},
            },
        ],
        "variables": {"channel": "C024BE91L", "many": [1, 2], "limit": 5},
        "fingerprints": {"read_rows": "v3", "slack_post_message": "slack-1"},
    })
}

fn prompt() -> Value {
    json!({
        "name": "Digest", "trigger_type": "manual", "prompt": "Sum up {{trigger_data.text}}", "tools": ["read_rows"],
        "fingerprints": {"read_rows": "v3"},
    })
}

fn polling() -> Value {
    json!({
        "name": "Mail", "trigger_type": "polling",
        "trigger_config": {"service": "Gmail", "source_tool": "gmail_find_email", "tool_params": {"q": "after:{{yesterday}}"}},
        "actions": [{"id": "a", "tool": "slack_post_message", "parameters": {"channel": "C", "text": "{{trigger_data.subject}}"}}],
        "fingerprints": {"gmail_find_email": "gmail-1", "slack_post_message": "slack-1"},
    })
}

/// Sets the values at these pointers; null removes.
fn with(mut value: Value, places: &[(&str, Value)]) -> Value {
    for (pointer, new) in places {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        match (value.pointer_mut(parent).unwrap(), new) {
            (Value::Object(members), Value::Null) => drop(members.remove(name)),
            (Value::Object(members), new) => drop(members.insert(name.to_owned(), new.clone())),
            (Value::Array(items), new) if name == "-" => items.push(new.clone()),
            (Value::Array(items), new) => items[name.parse::<usize>().unwrap()] = new.clone(),
            _ => panic!("{pointer}"),
        }
    }
    value
}

fn report(definition: &Value, known: &Known) -> CheckReport {
    let mut diagnostics = Diagnostics::default();
    if let Some(read) = Definition::read(definition, &mut diagnostics) {
        validate(&read, known, &mut diagnostics);
    }
    diagnostics.into_report()
}

fn told(report: &CheckReport) -> BTreeSet<(String, &'static str)> {
    report.diagnostics.iter().map(|one| (one.pointer.clone(), one.code.as_str())).collect()
}

type Places<'t> = &'t [(&'t str, Value)];

#[test]
fn each_mistake_is_told_at_its_place_and_nothing_that_follows_from_it() {
    let known = known();
    for (places, expected) in mistakes() {
        let mut definition = with(base(), &places);
        // Only service tools correct obvious mistakes of form.
        if let Some(tool) = definition.pointer_mut("/actions/1/tool").filter(|_| expected.contains(&OWN)) {
            *tool = json!("own_post");
            let fingerprints = definition["fingerprints"].as_object_mut().unwrap();
            fingerprints.remove("slack_post_message");
            fingerprints.insert("own_post".into(), json!("v1"));
        }
        let expected: Vec<_> = expected.into_iter().filter(|one| *one != OWN).collect();
        let found = report(&definition, &known);
        let expected: BTreeSet<_> = expected.into_iter().map(|(place, code)| (place.to_owned(), code)).collect();
        assert_eq!(told(&found), expected, "{places:?}\n{}", found.to_text());
        for one in &found.diagnostics {
            assert!(one.hint.ends_with(['.', ':', '…']) && one.hint.len() > 8, "{one:?}");
            assert!(one.message.ends_with('.') && !one.message.is_empty(), "{one:?}");
        }
    }
}

#[test]
fn a_near_name_is_offered_and_a_list_of_those_that_there_are() {
    let known = known();
    let said = |places: Places<'_>| report(&with(base(), places), &known).diagnostics.remove(0);
    for (places, meant) in [
        (&[("/trigger_config/event_type", json!("mesage"))][..], "message"),
        (&[("/actions/1/parameters/text", json!("{{event.txt}}"))], "event.text"),
        (&[("/actions/1/parameters/text", json!("{{trigger_data.event.txt}}"))], "trigger_data.event.text"),
        (&[("/actions/1/parameters/text", json!("{{found.rws}}"))], "found.rows"),
        (&[("/actions/1/parameters/text", json!("{{user.nam}}"))], "user.name"),
        (&[("/actions/1/parameters/text", json!("{{yestrday}}"))], "yesterday"),
        (&[("/actions/1/parameters/kind", json!("alrt"))], "alert"),
        (&[("/actions/1/condition/op", json!("greater_than"))], ">"),
        (&[("/actions/-", json!({"id": "x", "tool": "slack_post_mesage"}))], "slack_post_message"),
        (&[("/variable", json!({}))], "variables"),
    ] {
        let said = said(places);
        assert_eq!(said.did_you_mean.as_deref(), Some(meant), "{said:?}");
        assert!(said.hint.starts_with(&format!("Write {meant} if you meant that.")), "{said:?}");
    }
    let said = said(&[("/actions/1/parameters/kind", json!("loud"))]);
    assert_eq!((said.allowed, said.found), (vec!["info".to_owned(), "alert".to_owned()], Some(json!("loud"))));
}

fn own() -> (&'static str, Value) {
    ("/actions/1/tool", json!("own_post"))
}

fn own_read() -> (&'static str, Value) {
    ("/fingerprints/own_post", json!("v1"))
}

#[test]
fn hints_name_the_correct_form() {
    let known = known();
    for (places, hint) in [
        (&[own(), own_read(), ("/actions/1/parameters/limit", json!("5"))][..], "Write 5 without quotes."),
        (&[own(), own_read(), ("/actions/1/parameters/text", json!(5))], "Write \"5\" with quotes."),
        (&[own(), own_read(), ("/actions/1/parameters/unfurl", json!("true"))], "Write true without quotes."),
        (&[own(), own_read(), ("/actions/1/parameters/tags", json!("a"))], "Put it into a list"),
        (&[own(), own_read(), ("/actions/1/parameters/tags", json!("{{event.text}}"))], "[\"{{path}}\"]"),
        (&[own(), own_read(), ("/actions/1/parameters/limit", json!("{{channel}}"))], "Change the variable channel"),
        (&[("/actions/1/parameters/text", json!("{{sent}}"))], "Use an output of an earlier action"),
        (&[("/actions/1/parameters/text", json!("{{event_data.event.text}}"))], "{{trigger_data.event.text}}"),
        (&[("/service", json!("Slack"))], "Move it to trigger_config"),
        (&[("/fingerprints/read_rows", json!(null))], "fetch_tool_data([\"read_rows\"])"),
        (&[("/actions/1/parameters/channel", json!(null))], "Add \"channel\": \"...\". It is: Id of the channel."),
        (&[("/actions/0/id", json!(null))], "Add \"id\": \"step_1\"."),
        (&[("/actions/1/condition/path", json!("{{found.count}}"))], "Write \"found.count\""),
    ] {
        let found = report(&with(base(), places), &known);
        assert!(found.diagnostics[0].hint.contains(hint), "{:?}", found.diagnostics[0]);
    }
}

#[test]
fn drift_names_the_changes() {
    let mut known = known();
    let said = |known: &Known, read: &str| {
        let definition = with(base(), &[("/fingerprints/slack_post_message", json!(read))]);
        report(&definition, known).diagnostics.remove(0).message
    };
    let changed = said(&known, "slack-0");
    for part in ["text is new (string, required)", "message is gone", "kind is new (string of \"info\", \"alert\")"] {
        assert!(changed.contains(part), "{changed}");
    }
    assert!(said(&known, "v3").contains("the fingerprint of read_rows"));
    assert!(said(&known, "never").contains("or this was never its fingerprint"));
    // The tool as an earlier version was checked against it.
    let parameters = BTreeMap::from([("channel".to_owned(), "integer, required".to_owned())]);
    known
        .earlier
        .insert("slack_post_message".into(), CheckedTool { fingerprint: "slack--1".into(), tool_id: None, parameters });
    assert!(said(&known, "slack--1").contains("channel was integer, required and is string, required"));
}

#[test]
fn services_and_their_events_are_checked() {
    let told_of = |definition: &Value, service: KnownService| {
        told(&report(definition, &Known { trigger_service: service, ..known() }))
    };
    let here = |capabilities: Value| KnownService::Here {
        name: "Slack".into(),
        connection: connected(),
        capabilities: Some(Box::new(serde_json::from_value(capabilities).unwrap())),
    };
    let one = |pointer: &str, code: &'static str| BTreeSet::from([(pointer.to_owned(), code)]);
    let service = "/trigger_config/service";
    let unknown = KnownService::Unknown { others: vec!["Slack".into()] };
    // Event paths of an unknown service stay unchecked.
    assert_eq!(told_of(&base(), unknown), one(service, "unknown_service"));
    assert_eq!(told_of(&base(), KnownService::Inactive { name: "Slack".into() }), one(service, "inactive_service"));
    let none = here(json!({"service_name": "slack", "supports_polling": true}));
    assert_eq!(told_of(&base(), none), one("/trigger_type", "webhooks_not_supported"));
    let failed = KnownService::Here { name: "Slack".into(), connection: connected(), capabilities: None };
    assert_eq!(told_of(&base(), failed), one(service, "not_checked"));
    let unsure = KnownService::Here { name: "Slack".into(), connection: Connection::Unknown, capabilities: None };
    assert_eq!(told_of(&base(), unsure), one(service, "not_checked"));
    let gmail = here(json!({"service_name": "gmail", "supports_webhooks": true}));
    let expected = BTreeSet::from([
        ("/trigger_type".to_owned(), "polling_not_supported"),
        ("/trigger_config/source_tool".to_owned(), "not_connected"),
    ]);
    assert_eq!(told_of(&polling(), gmail), expected);
}

#[test]
fn a_polled_tool_is_a_read_of_its_service_and_paths_lead_into_its_answer() {
    let gmail = || KnownService::Here {
        name: "Gmail".into(),
        connection: connected(),
        capabilities: Some(Box::new(
            serde_json::from_value(json!({"service_name": "gmail", "supports_polling": true})).unwrap(),
        )),
    };
    let told_of = |definition: &Value, preflight: Preflight| {
        let known = Known { trigger_service: gmail(), preflight, ..known() };
        let mut told = told(&report(definition, &known));
        told.remove(&("/trigger_config/source_tool".to_owned(), "not_connected"));
        told.into_iter().map(|(place, code)| format!("{place} {code}")).collect::<Vec<_>>().join(", ")
    };
    let answered = |answer: Value| Preflight::Answered(answer);
    let mail = json!({"subject": "Hi", "from": {"name": "Ada"}});
    assert_eq!(told_of(&polling(), answered(json!([mail]))), "");
    assert_eq!(told_of(&polling(), answered(json!({"messages": [mail], "more": false}))), "");
    assert_eq!(told_of(&polling(), answered(mail.clone())), "");
    assert_eq!(told_of(&polling(), answered(json!([{"title": "Hi"}]))), "/actions/0/parameters/text unknown_path");
    assert_eq!(told_of(&polling(), answered(json!([{"subject": null}, mail]))), "");
    assert_eq!(told_of(&polling(), answered(json!([{"title": "Hi"}, mail]))), "");
    assert_eq!(told_of(&polling(), answered(json!([]))), "/trigger_config/source_tool not_checked");
    let batch = with(polling(), &[("/trigger_config/aggregation_mode", json!("batch"))]);
    assert_eq!(told_of(&batch, answered(json!([mail]))), "/actions/0/parameters/text unknown_path");
    for (mode, text, expected) in [
        ("batch", "{{count}} new, {{items[0].subject}}, {{trigger_data.items.-1.from.name}}", ""),
        ("batch", "{{text}}", "/actions/0/parameters/text unknown_path"),
        ("summary", "{{trigger_data.text}}", ""),
        ("summary", "{{items.subject}}", "/actions/0/parameters/text unknown_path"),
        ("summary", "{{count.all}}", "/actions/0/parameters/text unknown_path"),
    ] {
        let changes = [("/trigger_config/aggregation_mode", json!(mode)), ("/actions/0/parameters/text", json!(text))];
        let definition = with(polling(), &changes);
        assert_eq!(told_of(&definition, answered(json!([mail]))), expected, "{mode} {text}");
        // Known for any answer of the tool; the filter sees each item.
        let filtered = with(
            definition,
            &[("/trigger_config/filter", json!({"path": "subject", "op": "contains", "value": "Hi"}))],
        );
        assert_eq!(told_of(&filtered, answered(json!([mail]))), expected, "{mode} {text}");
    }
    let failed = Preflight::Failed("The service answered 500.".into());
    assert_eq!(told_of(&polling(), failed), "/trigger_config/source_tool preflight_failed");
    for (places, expected) in [
        (
            &[
                ("/trigger_config/source_tool", json!("slack_post_message")),
                ("/fingerprints/gmail_find_email", json!(null)),
            ][..],
            "/trigger_config/source_tool source_tool_acts, /trigger_config/source_tool wrong_service",
        ),
        (
            &[("/trigger_config/tool_params", json!({"query": "x"}))],
            "/trigger_config/tool_params/query unknown_parameter",
        ),
        (
            &[("/trigger_config/tool_params", json!({"q": "{{trigger_data.x}}"}))],
            "/trigger_config/tool_params/q unknown_path",
        ),
        (
            &[("/trigger_config/polling_interval_minutes", json!(1))],
            "/trigger_config/polling_interval_minutes invalid_value",
        ),
        (&[("/trigger_config/aggregation_mode", json!("all"))], "/trigger_config/aggregation_mode invalid_value"),
    ] {
        assert_eq!(told_of(&with(polling(), places), Preflight::NotAsked), expected);
    }
}

#[test]
fn a_prompt_is_checked_as_a_run_checks_it() {
    let known = known();
    for (places, expected) in [
        (&[][..], &[][..]),
        (&[("/prompt", json!("{{score}}"))], &[("/prompt", "unknown_path")]),
        (&[("/prompt", json!(7))], &[("/prompt", "invalid_value")]),
        (&[("/prompt", json!(null))], &[("/prompt", "missing_field")]),
        (&[("/limits", json!({"calls": 0}))], &[("/limits/calls", "invalid_value")]),
        (&[("/limits", json!({"cost": 50}))], &[("/limits/cost", "invalid_value")]),
        (&[("/limits", json!({"days": 1}))], &[("/limits/days", "unknown_field")]),
        (&[("/schema", json!({"type": "objekt"}))], &[("/schema/type", "invalid_schema")]),
        (&[("/schema", json!("text"))], &[("/schema", "invalid_schema")]),
        (&[("/tools/-", json!("gone"))], &[("/tools/1", "inactive_tool")]),
        (&[("/tools/-", json!("slack_post_message"))], &[("/tools/1", "schema_not_read")]),
        (&[("/fingerprints", json!({"read_rows": "v2"}))], &[("/fingerprints/read_rows", "tool_changed")]),
    ] {
        let found = report(&with(prompt(), places), &known);
        let expected = expected.iter().map(|(place, code)| ((*place).to_owned(), *code)).collect();
        assert_eq!(told(&found), expected, "{places:?}\n{}", found.to_text());
    }
}

#[test]
fn a_missing_connection_prevents_activation() {
    let definition = with(
        base(),
        &[
            ("/actions/-", json!({"id": "x", "tool": "gmail_find_email"})),
            ("/fingerprints/gmail_find_email", json!("gmail-1")),
        ],
    );
    assert_eq!(report(&definition, &known()).result, CheckResult::Ok);
    assert_eq!(report(&definition, &Known { purpose: Purpose::Activation, ..known() }).result, CheckResult::Failed);
}

#[test]
fn every_code_is_met() {
    let known = known();
    let mut met: BTreeSet<&str> = BTreeSet::new();
    for (places, _) in mistakes() {
        met.extend(report(&with(base(), &places), &known).diagnostics.iter().map(|one| one.code.as_str()));
    }
    met.extend([
        "too_large",
        "invalid_schema",
        "unknown_service",
        "inactive_service",
        "webhooks_not_supported",
        "polling_not_supported",
        "in_the_past",
        "never_occurs",
        "unknown_timezone",
        "timezone_assumed",
        "source_tool_acts",
        "wrong_service",
        "preflight_failed",
        "same_name",
        "waits_for_hook",
    ]);
    let missing: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).filter(|code| !met.contains(code)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_large_definition_is_refused_before_it_is_read() {
    let known = known();
    let action = json!({"id": "a", "tool": "no_such", "parameters": {"x": "{{y}}"}});
    let many = with(base(), &[("/actions", json!(vec![action; 10_000]))]);
    let large = with(base(), &[("/description", json!("x".repeat(2_000_000)))]);
    let mut nested = json!("deep");
    for _ in 0..100 {
        nested = json!([nested]);
    }
    let deep = with(base(), &[("/variables/deep", nested)]);
    for (definition, place) in [(many, "/actions"), (large, ""), (deep, "")] {
        assert_eq!(told(&report(&definition, &known)), BTreeSet::from([(place.to_owned(), "too_large")]));
    }
    // The number of diagnostics is bounded.
    let wrong: Vec<Value> = (0..200)
        .map(|index| json!({"id": index.to_string(), "tool": "read_rows", "parameters": {"a": 1, "b": "{{c}}"}}))
        .collect();
    let wrong = report(&with(base(), &[("/actions", json!(wrong))]), &known);
    assert_eq!((wrong.diagnostics.len(), wrong.truncated), (MOST_DIAGNOSTICS, true));
}

#[test]
fn aliases_are_stored_as_names_with_the_same_hash() {
    let one = json!({"name": "n", "dry_run": false, "actions": [{"action_id": "a", "tool": "t", "params": {"x": 1}}], "description": null});
    let other = json!({"actions": [{"id": "a", "parameters": {"x": 1}, "tool": "t"}], "name": "n"});
    assert_eq!(Definition::canonical(&one), other);
    let hash = |value: &Value| crate::models::AutomationVersion::hash_of(&Definition::canonical(value));
    assert_eq!(hash(&one), hash(&other));
}

#[test]
fn names_cannot_make_the_answer_large_and_more_tools_than_a_run_has_are_not_looked_up() {
    let known = known();
    let long = with(base(), &[("/actions/1/parameters/text", json!({"x".repeat(100_000): vec!["{{a}}"; 5_000]}))]);
    assert_eq!(told(&report(&long, &known)), BTreeSet::from([(String::new(), "too_large")]));
    let tools: Vec<String> = (0..51).map(|index| format!("a{index}")).collect();
    let many = with(prompt(), &[("/tools", json!(tools))]);
    assert_eq!(told(&report(&many, &known)), BTreeSet::from([("/tools".to_owned(), "too_large")]));
    // Sizes count escapes, as stored.
    let escaped = with(base(), &[("/actions/1/parameters/text", json!("\u{1}".repeat(100_000)))]);
    assert_eq!(told(&report(&escaped, &known)), BTreeSet::from([(String::new(), "too_large")]));
}

#[test]
fn after_as_many_mistakes_as_are_told_no_near_names_are_looked_for() {
    let known = known();
    let paths: Vec<String> = (0..10_000).map(|index| format!("{{{{wrong{index}.path}}}}")).collect();
    let paths = paths.join(" ");
    let parameters: serde_json::Map<String, Value> =
        (0..10_000).map(|index| (format!("wrong{index}"), json!(1))).collect();
    for wrong in [
        with(base(), &[("/actions/1/parameters/text", json!(paths))]),
        with(base(), &[("/actions/1/parameters", json!(parameters))]),
    ] {
        LOOKED_FOR_NEAR_NAMES.with(|count| count.set(0));
        let found = report(&wrong, &known);
        assert_eq!((found.diagnostics.len(), found.truncated), (MOST_DIAGNOSTICS, true));
        let looked = LOOKED_FOR_NEAR_NAMES.with(std::cell::Cell::get);
        assert!(looked <= 4 * MOST_DIAGNOSTICS, "{looked}");
    }
}

#[test]
fn a_field_that_is_null_is_as_good_as_absent_and_makes_no_other_content() {
    let plain = json!({"name": "n", "actions": [{"id": "a", "tool": "t", "parameters": {"x": null}}]});
    let nulls = json!({"name": "n", "description": null, "actions": [
        {"id": null, "action_id": "a", "tool": "t", "parameters": null, "params": {"x": null}, "condition": null},
    ]});
    assert_eq!(Definition::canonical(&nulls), plain);
}

/// Work is linear in the size of the definition: ten times the input takes about ten times as long.
#[test]
fn work_grows_with_the_definition_and_not_faster() {
    let known = known();
    let text = |times: usize| with(base(), &[("/actions/1/parameters/text", json!("{{event.text}} ".repeat(times)))]);
    let took = |definition: &Value| {
        let once = |_| {
            let started = std::time::Instant::now();
            assert_eq!(report(definition, &known).result, CheckResult::Ok);
            started.elapsed().as_secs_f64()
        };
        // A busy machine slows some of them.
        (0..5).map(once).fold(f64::MAX, f64::min)
    };
    let (small, large) = (took(&text(500)), took(&text(10_000)));
    assert!(large < small * 200.0 + 0.5, "{small} s and {large} s");
}
