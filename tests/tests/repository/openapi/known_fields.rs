//! An answer to a misspelt field lists exactly the known fields of the chosen variant.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tests::{World, ai_sms};

use super::{
    specification::Document,
    text,
    wrong_fields::{places, with_a_body},
};

const MISSPELT: &str = "mispelt_field";

/// The members that a schema allows in a valid value, and whether it allows no others.
fn members(document: &Document, schema: &Value, value: &Value) -> Option<BTreeSet<String>> {
    let schema = document.resolve(schema);
    let mut names: BTreeSet<String> = BTreeSet::new();
    let mut known = false;
    if let Some(properties) = schema["properties"].as_object() {
        names.extend(properties.keys().cloned());
        known = true;
    }
    for part in parts(document, schema, value) {
        if let Some(more) = members(document, part, value) {
            names.extend(more);
            known = true;
        }
    }
    known.then_some(names)
}

/// The matching alternatives and parts of a schema for a value.
fn parts<'a>(document: &Document, schema: &'a Value, value: &Value) -> Vec<&'a Value> {
    let all = schema["allOf"].as_array().into_iter().flatten();
    let some = ["oneOf", "anyOf"].into_iter().flat_map(|name| schema[name].as_array().into_iter().flatten());
    let some = some.filter(|part| document.validator(part).is_valid(value));
    all.chain(some).collect()
}

/// The schema at a place within a value that `schema` describes.
fn below<'a>(document: &'a Document, schema: &'a Value, value: &Value, place: &str) -> Option<&'a Value> {
    let schema = document.resolve(schema);
    let Some((step, rest)) = place.strip_prefix('/').map(|place| place.split_once('/').unwrap_or((place, ""))) else {
        return Some(schema);
    };
    let rest = if rest.is_empty() { String::new() } else { format!("/{rest}") };
    let inner = value.pointer(&format!("/{step}"))?;
    let step = step.replace("~1", "/").replace("~0", "~");
    let direct = [&schema["properties"][&step], &schema["items"], &schema["additionalProperties"]];
    let direct = direct.into_iter().find(|schema| schema.is_object());
    if let Some(direct) = direct {
        return below(document, direct, inner, &rest);
    }
    parts(document, schema, value).into_iter().find_map(|part| below(document, part, value, place))
}

/// The known fields in the answer's error about the misspelt field.
fn told(answer: &Value) -> Option<BTreeSet<String>> {
    let of = |list: &str| list.split(", ").map(str::to_owned).collect();
    for error in answer["errors"].as_array().into_iter().flatten() {
        if text(&error["field"]).ends_with(MISSPELT) {
            let (_, list) = text(&error["problem"]).split_once("known are ")?;
            return Some(of(list));
        }
    }
    for diagnostic in answer["diagnostics"].as_array().into_iter().flatten() {
        if text(&diagnostic["pointer"]).ends_with(MISSPELT) {
            let allowed: Vec<&str> = diagnostic["allowed"].as_array()?.iter().map(text).collect();
            let each_once: BTreeSet<&str> = allowed.iter().copied().collect();
            assert_eq!(each_once.len(), allowed.len(), "{diagnostic}");
            return Some(allowed.into_iter().map(str::to_owned).collect());
        }
    }
    None
}

#[tokio::test]
async fn a_misspelt_field_is_told_which_there_are() {
    let document = Document::read();
    let world = World::start().await;
    let tool = text(&world.tool(&ai_sms()).await["id"]).to_owned();
    let base = super::a_base(&world).await;
    let (mut seen, mut wrong) = (0, Vec::new());
    for (operation, function, event) in with_a_body(&world, &tool, &base) {
        // Their fields depend on the service, the tool, or the choice of actions or prompt, which a schema cannot
        // express.
        if ["createHook", "deployAutomation", "storeKey", "updateTool"].contains(&operation) {
            continue;
        }
        let schema = &document.operation(operation).value["requestBody"]["content"]["application/json"]["schema"];
        for (name, example) in document.request_examples(operation) {
            let mut all = Vec::new();
            places(&example, "", &mut all);
            for place in all.into_iter().filter(|place| example.pointer(place).is_some_and(Value::is_object)) {
                let value = example.pointer(&place).unwrap();
                let Some(expected) =
                    below(&document, schema, &example, &place).and_then(|schema| members(&document, schema, value))
                else {
                    continue;
                };
                let mut body = example.clone();
                body.pointer_mut(&place).unwrap()[MISSPELT] = json!(true);
                let answer = Box::pin(world.send(function, &event.clone().text(body.to_string()))).await;
                let Some(told) = told(&answer.body) else { continue };
                seen += 1;
                if told != expected {
                    let lacks: Vec<_> = expected.difference(&told).collect();
                    let more: Vec<_> = told.difference(&expected).collect();
                    wrong.push(format!("{operation} {name} at {place:?}: lacks {lacks:?}, has besides {more:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(seen > 40, "only {seen} were told");
}

#[tokio::test]
async fn the_fields_of_the_chosen_service_are_shown_and_no_others() {
    let world = World::start().await;
    let path = format!("/api/{}/automations", world.home.slug);
    let of_actions = [
        "actions",
        "approvals",
        "catch",
        "description",
        "dry_run",
        "fingerprints",
        "name",
        "quotas",
        "trigger_config",
        "trigger_type",
        "variables",
    ];
    let of_prompt = [
        "approvals",
        "description",
        "dry_run",
        "fingerprints",
        "limits",
        "model",
        "name",
        "prompt",
        "quotas",
        "schema",
        "system_prompt",
        "tools",
        "trigger_config",
        "trigger_type",
        "variables",
    ];
    for (body, expected) in [
        (json!({"actions": [{"id": "a", "tool": "current_time"}]}), of_actions.as_slice()),
        (json!({"prompt": "Say hello"}), of_prompt.as_slice()),
    ] {
        let mut body = body;
        body["name"] = json!("One");
        body["trigger_type"] = json!("manual");
        body[MISSPELT] = json!(1);
        let event = tests::Event::post(&path, &body).user(&world.home.user_id);
        let answer = world.send("deploy", &event).await;
        let told = told(&answer.body).unwrap_or_else(|| panic!("{}", answer.body));
        assert_eq!(told.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    }
    let key = ["api_key", "base_url", "model", "verify_claims"];
    let client = ["audience", "base_url", "client_id", "client_secret", "model", "scope", "token_url", "verify_claims"];
    for (service, body, expected) in [
        ("vapi", json!({"api_key": "k"}), ["api_key", "webhook_bearer"].as_slice()),
        ("llm", json!({"api_key": "k"}), &key),
        ("llm", json!({}), &key),
        ("llm", json!({"client_id": "c"}), &client),
        ("llm", json!({"client_id": "c", "api_key": "k"}), &client),
    ] {
        let mut body = body;
        body[MISSPELT] = json!(1);
        let answer = world.keys(&world.home, "PUT", &format!("/{service}"), &body).await;
        let told = told(&answer.body).unwrap_or_else(|| panic!("{}", answer.body));
        assert_eq!(told.iter().map(String::as_str).collect::<Vec<_>>(), expected, "{service}");
    }
    let tool = world.tool(&ai_sms()).await;
    let answer = world.update(&tool, &json!({MISSPELT: 1})).await;
    let told_of_edit = told(&answer.body).unwrap_or_else(|| panic!("{}", answer.body));
    for (field, is_one) in [("name", true), ("version", true), ("recipients", true), ("url", false), ("target", false)]
    {
        assert_eq!(told_of_edit.contains(field), is_one, "{field}");
    }
    for (service, expected) in [
        ("slack", ["label", "secret", "service", "tenant"].as_slice()),
        ("gmail", &["audience", "label", "service", "service_account"]),
        (
            "my own",
            &[
                "algorithm",
                "allowed_addresses",
                "encoding",
                "event_field",
                "header",
                "label",
                "prefix",
                "scheme",
                "secret",
                "service",
                "user",
            ],
        ),
    ] {
        let path = format!("/api/{}/hooks", world.home.slug);
        let event = tests::Event::post(&path, &json!({"service": service, MISSPELT: 1})).user(&world.home.user_id);
        let answer = world.send("hooks", &event).await;
        let told = told(&answer.body).unwrap_or_else(|| panic!("{}", answer.body));
        assert_eq!(told.iter().map(String::as_str).collect::<Vec<_>>(), expected, "{service}");
    }
}
