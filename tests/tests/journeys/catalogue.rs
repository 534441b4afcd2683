//! The catalogue of services: refusals, changes of a load.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test says what is wrong and stops")]

mod import;
mod loads;
mod prose;
pub(crate) mod registry;

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Value, json};
use shared::{Deadline, Error, Result, models::ServiceTool};
use tests::World;

async fn invoke(world: &World, event: Value) -> Result<Value> {
    Box::pin(operator::handle(&world.process.operator, event, Deadline::after(Duration::from_secs(60)))).await
}

pub(crate) async fn load(world: &World, files: &Value) -> Value {
    invoke(world, json!({"files": files})).await.unwrap()
}

/// The files of the repository.
pub(crate) fn files() -> Value {
    Value::Object(tests::catalogue::files().unwrap())
}

fn event_file() -> Value {
    let path = format!("{}/../events/operator.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// A small catalogue: a service with requests, and a service with a component.
fn small() -> Value {
    let weather = event_file()["files"]["weather.json"].clone();
    let chat = json!({
        "name": "Chat", "description": "Messages.", "categories": ["chat"], "connection": {"type": "pipedream", "app": "slack"},
        "capabilities": {
            "auth_types": ["oauth2"], "notes": "Channels are named by ids.",
            "webhook_payload_schemas": {"message": {
                "description": "A message came.",
                "trigger_data_fields": {"event.text": "The text", "tags[0].name": "The first tag"},
                "example_condition": {"path": "event.text", "op": "contains", "value": "urgent"},
                "example": {"event": {"text": "urgent"}, "tags": [{"name": "a"}]},
            }},
            "polling_endpoints": {"found": {
                "source_tool": "chat_find", "description": "What is found.", "items": "", "id": "ts", "tool_params": {"q": "x"},
            }},
        },
        "tools": [
            {
                "name": "chat_send", "title": "Send", "category": "write", "effect": "message", "description": "Sends.", "returns": "The message.",
                "component": {
                    "key": "slack-send", "version": "1.0.0",
                    "props": [
                        {"name": "slack", "type": "app", "app": "slack"}, {"name": "text", "type": "string", "label": "Text"},
                        {"name": "blocks", "type": "string", "optional": true}, {"name": "mark", "type": "boolean", "optional": true},
                    ],
                    "annotations": {"readOnlyHint": false, "destructiveHint": false},
                },
                "overlay": {"properties": {"blocks": {"contentMediaType": "application/json"}}, "fixed": {"mark": false}},
                "examples": [{"text": "Hello", "blocks": "[1]"}],
            },
            {
                "name": "chat_find", "title": "Find", "category": "search", "description": "Finds.", "returns": "A list.",
                "component": {
                    "key": "slack-find", "version": "0.1.0",
                    "props": [{"name": "slack", "type": "app", "app": "slack"}, {"name": "q", "type": "string", "label": "Query"}],
                    "annotations": {"readOnlyHint": true, "destructiveHint": false},
                },
                "examples": [{"q": "x"}],
            },
        ],
    });
    json!({"chat.json": chat, "weather.json": weather})
}

fn row(world: &World, table: &str, name: &str) -> Value {
    let named = |row: &Value| row["name"] == name || row["service_name"] == name && table == "service_capabilities";
    world.aws.rows(table).into_iter().find(named).unwrap_or_else(|| panic!("no {name} in {table}"))
}

/// All stored rows except the lease.
fn stored(world: &World) -> Vec<Value> {
    let tables = ["services", "service_tools", "service_capabilities"];
    let rows = tables.iter().flat_map(|table| world.aws.rows(table)).filter(|row| row["id"] != "load");
    let mut rows: Vec<Value> = rows.collect();
    rows.sort_by_key(ToString::to_string);
    rows
}

#[tokio::test]
async fn the_catalogue_loads_and_loading_it_again_changes_nothing() {
    let world = World::start().await;
    let report = load(&world, &files()).await;
    assert_eq!(report["result"], "loaded", "{report:#}");
    assert!(report["services"].as_object().unwrap().len() >= 40);
    assert_eq!(report["services"]["Slack"]["service"], "added");
    let before = stored(&world);
    let tools = world.aws.rows("service_tools");
    assert!(tools.len() > 160 && tools.iter().all(|tool| tool["is_active"] == true));
    let report = load(&world, &files()).await;
    let expected = json!({
        "result": "loaded", "services": {}, "services_unchanged": files().as_object().unwrap().len(), "tools_unchanged": tools.len(),
    });
    assert_eq!(report, expected);
    assert_eq!(stored(&world), before);
    // The store returns the loaded rows.
    let names: Vec<String> = tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
    let deadline = Deadline::after(Duration::from_secs(9));
    let read = world.process.operator.services.tools_named(&names, deadline).await.unwrap();
    assert_eq!(read.len(), names.len());
    for tool in read.values() {
        let ServiceTool { name, parameters, returns, binding, fingerprint, .. } = tool;
        assert_eq!(*fingerprint, ServiceTool::fingerprint_of(name, parameters, returns, binding), "{name}");
    }
}

#[tokio::test]
async fn a_dry_run_lists_the_changes_and_writes_nothing() {
    let world = World::start().await;
    let report = invoke(&world, event_file()).await.unwrap();
    assert_eq!(report["result"], "checked");
    assert_eq!(report["services"]["Weather"]["added"], json!(["weather_get_forecast"]));
    assert_eq!(stored(&world), Vec::<Value>::new());
}

/// A change of the small catalogue at a JSON pointer, `null` to remove the value; then the file and pointer of the refusal, and
/// a word of its reason.
type Refused = (&'static str, Value, &'static str, &'static str);

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table")]
async fn a_faulty_file_is_refused_with_its_place_and_nothing_is_loaded() {
    let world = World::start().await;
    let (chat, weather) = ("/chat.json", "/weather.json/tools/0");
    let at = |start: &str, rest: &str| -> &'static str { format!("{start}{rest}").leak() };
    let refused: Vec<Refused> = vec![
        (at(chat, "/name"), json!(null), "/name", "required"),
        (at(chat, "/name"), json!("WEATHER"), "/tools/0/name", "must begin with"),
        (at(chat, "/colour"), json!("red"), "/colour", "not a known field"),
        (at(chat, "/categories"), json!(["chat", 7]), "/categories/1", "must be text"),
        (at(chat, "/connection"), json!({"type": "magic"}), "/connection", "magic"),
        (at(chat, "/connection/apps"), json!("x"), "/connection/apps", "not a known field"),
        (at(chat, "/connection"), json!({"type": "none"}), "/tools/0/component", "pipedream"),
        (at(chat, "/connection/app"), json!("other"), "/tools/0/component/key", "not a component of other"),
        (at(chat, "/tools"), json!([]), "/tools", "1 to"),
        (at(chat, "/tools/0"), json!("x"), "/tools/0", "must be an object"),
        (at(chat, "/tools/0/name"), json!("chat_Send"), "/tools/0/name", "a-z"),
        (at(chat, "/tools/0/name"), json!("chat_find"), "/tools/1/name", "another tool"),
        (at(chat, "/tools/0/name"), json!(format!("chat_{}", "x".repeat(36))), "/tools/0/name", "at most 40"),
        (at(chat, "/tools/0/category"), json!("paint"), "/tools/0/category", "read, write"),
        (at(chat, "/tools/0/category"), json!("read"), "/tools/0/effect", "none"),
        (
            at(chat, "/tools/0/effect"),
            json!(null),
            "/tools/0/effect",
            "email, sms, message, call, payment, record, other",
        ),
        (at(chat, "/tools/0/effect"), json!(" "), "/tools/0/effect", "required"),
        (at(chat, "/tools/0/effect"), json!(true), "/tools/0/effect", "must be text"),
        (at(chat, "/tools/0/effect"), json!("telepathy"), "/tools/0/effect", "must be one of"),
        (at(chat, "/tools/0/category"), json!("delete"), "/tools/0/destructive", "true"),
        (at(chat, "/tools/1/category"), json!("write"), "/tools/1/effect", "none"),
        (at(chat, "/tools/0/description"), json!(""), "/tools/0/description", "required"),
        (at(chat, "/tools/0/description"), json!("é".repeat(600)), "/tools/0/description", "1000 bytes"),
        (at(chat, "/tools/0/description"), json!("a\u{1b}[31m"), "/tools/0/description", "control"),
        (at(chat, "/tools/0/returns"), json!(null), "/tools/0/returns", "required"),
        (at(chat, "/tools/0/keywords"), json!("notify"), "/tools/0/keywords", "a list"),
        (at(chat, "/tools/0/keywords"), json!(vec!["x"; 21]), "/tools/0/keywords", "at most 20"),
        (at(chat, "/tools/0/keywords"), json!(["tell", "tell"]), "/tools/0/keywords/1", "twice"),
        (at(chat, "/tools/0/keywords"), json!(["tell", "x".repeat(31)]), "/tools/0/keywords/1", "30 characters"),
        (at(chat, "/tools/0/keywords"), json!([7]), "/tools/0/keywords/0", "a word"),
        (at(chat, "/tools/0/keywords"), json!(["?\n"]), "/tools/0/keywords/0", "a word"),
        (at(chat, "/tools/0/component"), json!(null), "/tools/0", "one of component"),
        (at(chat, "/tools/0/component/props"), json!([]), "/tools/0/component/props", "type app"),
        (at(chat, "/tools/0/component/props/1/type"), json!("sql"), "/tools/0/component/props/1", "sql"),
        (at(chat, "/tools/0/component/props/1/reloadProps"), json!(true), "/tools/0/component/props/1", "reload"),
        (at(chat, "/tools/0/component/props/1/secret"), json!(true), "/tools/0/component/props/1", "secret"),
        (at(chat, "/tools/0/overlay/fixed"), json!({"mark": "no"}), "/tools/0/component/props/3", "fixed mark"),
        (at(chat, "/tools/0/overlay/required"), json!(["no"]), "/tools/0/overlay/required/no", "not a prop"),
        (at(chat, "/tools/0/overlay/required"), json!([7]), "/tools/0/overlay/required/0", "must be text"),
        (
            at(chat, "/tools/0/overlay/properties/blocks/contentMediaType"),
            json!("text/csv"),
            "/tools/0/component",
            "application/json",
        ),
        (at(chat, "/tools/0/overlay/properties/blocks/colour"), json!(1), "/tools/0/component", "colour"),
        (at(chat, "/tools/0/parameters"), json!({"type": "object"}), "/tools/0/parameters", "overlay"),
        (at(chat, "/tools/0/examples"), json!([]), "/tools/0/examples", "1 to 5"),
        (at(chat, "/tools/0/examples"), json!([{"text": 5}]), "/tools/0/examples/0", "text"),
        (at(chat, "/tools/0/examples/0/blocks"), json!("[1"), "/tools/0/examples/0", "JSON"),
        (at(chat, "/tools/0/examples/0/made_up"), json!(1), "/tools/0/examples/0", "made_up"),
        (
            at(chat, "/capabilities/polling_endpoints/found/tool_params/long"),
            json!("x".repeat(16_000)),
            "/capabilities",
            "16000",
        ),
        (at(chat, "/capabilities/auth_types"), json!(["magic"]), "/capabilities/auth_types", "oauth2"),
        (
            at(chat, "/capabilities/webhook_payload_schemas/message/example"),
            json!({"event": {"text": "x"}}),
            "/capabilities/webhook_payload_schemas/message/trigger_data_fields/tags[0].name",
            "nowhere",
        ),
        (
            at(chat, "/capabilities/webhook_payload_schemas/message/example_condition/path"),
            json!("event.words"),
            "/capabilities/webhook_payload_schemas/message/example_condition/path",
            "nowhere",
        ),
        (
            at(chat, "/capabilities/webhook_payload_schemas/message/example_condition/op"),
            json!("has"),
            "/capabilities/webhook_payload_schemas/message/example_condition/op",
            "contains_any",
        ),
        (
            at(chat, "/capabilities/webhook_payload_schemas/message/example_condition/value"),
            json!(["urgent"]),
            "/capabilities/webhook_payload_schemas/message/example_condition/value",
            "contains_any",
        ),
        (
            at(chat, "/capabilities/webhook_payload_schemas/message/example_condition"),
            json!({"operator": "XOR", "clauses": [{"op": "exists"}]}),
            "/capabilities/webhook_payload_schemas/message/example_condition/clauses/0/path",
            "required",
        ),
        (
            at(chat, "/capabilities/polling_endpoints/found/source_tool"),
            json!("chat_look"),
            "/capabilities/polling_endpoints/found/source_tool",
            "not a tool",
        ),
        (
            at(chat, "/capabilities/polling_endpoints/found/source_tool"),
            json!("chat_send"),
            "/capabilities/polling_endpoints/found/source_tool",
            "changes something",
        ),
        (
            at(chat, "/capabilities/polling_endpoints/found/tool_params"),
            json!({"q": 5}),
            "/capabilities/polling_endpoints/found/tool_params",
            "chat_find",
        ),
        (at(weather, "/parameters/type"), json!("array"), "/tools/0/parameters/type", "object"),
        (at(weather, "/parameters/oneOf"), json!([{}]), "/tools/0/parameters/oneOf", "top level"),
        (at(weather, "/parameters/required/0"), json!("height"), "/tools/0/parameters/required", "height"),
        (at(weather, "/parameters/properties/latitude/type"), json!("degrees"), "/tools/0/parameters", "degrees"),
        (
            at(weather, "/parameters/properties/latitude/description"),
            json!(null),
            "/tools/0/parameters/properties/latitude/description",
            "model",
        ),
        (at(weather, "/request/url"), json!("http://api.open-meteo.com/v1/forecast"), "/tools/0/request/url", "https"),
        (at(weather, "/request/url"), json!("https://{latitude}.example.com/x"), "/tools/0/request/url", "written out"),
        (at(weather, "/request/url"), json!("https://10.0.0.1/x"), "/tools/0/request/url", "written out"),
        (at(weather, "/request/url"), json!("https://a.example.com:8443/x"), "/tools/0/request/url", "port"),
        (at(weather, "/request/url"), json!("https://a.example.com@b.example.com/x"), "/tools/0/request/url", "user"),
        (
            at(weather, "/request/url"),
            json!("https://a.example.com/{place}"),
            "/tools/0/request/url",
            "not a parameter",
        ),
        (
            at(weather, "/request/url"),
            json!("https://a.example.com/{latitude}"),
            "/tools/0/request/url",
            "string or integer",
        ),
        (at(weather, "/request/url"), json!("https://a.example.com/x?y=1"), "/tools/0/request/url", "query"),
        (at(weather, "/request/url"), json!("https://a.example.com/../{latitude"), "/tools/0/request/url", "{name}"),
        (at(weather, "/request/method"), json!("TRACE"), "/tools/0/request/method", "GET"),
        (at(weather, "/request/query"), json!(["latitude"]), "/tools/0/request/query", "longitude goes nowhere"),
        (at(weather, "/request/query/0"), json!("height"), "/tools/0/request/query/0", "height"),
        (at(weather, "/request/body"), json!("json"), "/tools/0/request/body", "GET"),
        (at(weather, "/request/fixed/latitude"), json!(1), "/tools/0/request/fixed/latitude", "parameter"),
        (at(weather, "/request/headers"), json!({"X-Api-Key": "k"}), "/tools/0/request/headers/X-Api-Key", "secret"),
        (
            at(weather, "/request/headers"),
            json!({"Host": "b.example.com"}),
            "/tools/0/request/headers/Host",
            "leave it out",
        ),
        (
            at(weather, "/request/auth"),
            json!({"type": "bearer", "field": "key"}),
            "/tools/0/request/auth",
            "credential",
        ),
        (at(weather, "/request/colour"), json!(1), "/tools/0/request/colour", "not a known field"),
        (at(weather, "/request/refused_by"), json!(["errors"]), "/tools/0/request/refused_by/0", "JSON pointer"),
        (
            at(weather, "/request/idempotency_key"),
            json!({"in": "header", "name": "Idempotency-Key"}),
            "/tools/0/request/idempotency_key",
            "GET",
        ),
        ("/weather.json/connection", json!({"type": "credential", "fields": []}), "/connection/fields", "at least one"),
        (
            "/weather.json/connection",
            json!({"type": "credential", "fields": [{"name": "key", "description": "There."}]}),
            "/tools/0/request/auth",
            "required",
        ),
        ("/weather.json/name", json!("CHAT"), "/name", "chat.json"),
    ];
    for (pointer, value, place, word) in refused {
        let mut files = small();
        set(&mut files, pointer, &value);
        let report = load(&world, &files).await;
        assert_eq!(report["result"], "refused", "{pointer} = {value}");
        let file = pointer.split('/').nth(1).unwrap();
        let found = report["refused"].as_array().unwrap().iter().any(|refusal| {
            refusal["file"] == file
                && refusal["pointer"] == place
                && refusal["problem"].as_str().unwrap().contains(word)
        });
        assert!(found, "{pointer} = {value}: {report:#}");
        assert_eq!(stored(&world), Vec::<Value>::new(), "{pointer} = {value}");
    }
    assert_eq!(load(&world, &small()).await["result"], "loaded");
}

/// A field of the credential may stand only before the service's own domain.
#[tokio::test]
async fn an_address_with_a_field_of_the_credential_stays_in_the_services_domain() {
    let world = World::start().await;
    let field = |secret: bool| json!({"name": "shop", "description": "There.", "secret": secret, "in_address": true});
    let with = |url: &str, field: Value| {
        let mut files = small();
        set(
            &mut files,
            "/weather.json/connection",
            &json!({"type": "credential", "fields": [field, {"name": "key", "description": "There."}]}),
        );
        set(&mut files, "/weather.json/tools/0/request/url", &json!(url));
        set(
            &mut files,
            "/weather.json/tools/0/request/auth",
            &json!({"type": "header", "header": "Authorization", "field": "key", "prefix": "Bot "}),
        );
        files
    };
    for url in ["https://{shop}.example.com/x", "https://eu-{shop}.example.com/x", "https://api.example.com/{shop}/x"] {
        let report = load(&world, &with(url, field(false))).await;
        assert_eq!(report["result"], "loaded", "{url}: {report:#}");
    }
    let mut other = field(false);
    other["in_address"] = json!(false);
    for (url, field, place) in [
        ("https://{shop}/x", field(false), "/tools/0/request/url"),
        ("https://{shop}.com/x", field(false), "/tools/0/request/url"),
        ("https://api.{shop}.com/x", field(false), "/tools/0/request/url"),
        ("https://api.example.{shop}/x", field(false), "/tools/0/request/url"),
        ("https://example.com.{shop}/x", field(false), "/tools/0/request/url"),
        ("https://{shop}example.com/x", field(false), "/tools/0/request/url"),
        ("https://{latitude}.{shop}.example.com/x", field(false), "/tools/0/request/url"),
        ("https://{shop}.example.com/x", other, "/tools/0/request/url"),
        ("https://{shop}.example.com/x", field(true), "/connection/fields/0/secret"),
    ] {
        let report = load(&world, &with(url, field)).await;
        let places: Vec<&Value> =
            report["refused"].as_array().into_iter().flatten().map(|one| &one["pointer"]).collect();
        assert!(places.contains(&&json!(place)), "{url}: {report:#}");
    }
}

/// Sets the value at a pointer, or removes it if the new one is null.
fn set(value: &mut Value, pointer: &str, new: &Value) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = value.pointer_mut(parent).unwrap_or_else(|| panic!("{pointer}"));
    match parent {
        Value::Object(members) if new.is_null() => drop(members.remove(name)),
        Value::Object(members) => drop(members.insert(name.to_owned(), new.clone())),
        Value::Array(items) => items[name.parse::<usize>().unwrap()] = new.clone(),
        other => panic!("{pointer}: {other}"),
    }
}

#[tokio::test]
async fn everything_wrong_in_all_files_is_told_at_once() {
    let world = World::start().await;
    let mut files = small();
    set(&mut files, "/chat.json/tools/0/title", &Value::Null);
    set(&mut files, "/chat.json/tools/1/returns", &Value::Null);
    set(&mut files, "/weather.json/tools/0/category", &json!("x"));
    let report = load(&world, &files).await;
    let places: BTreeSet<(&str, &str)> = (report["refused"].as_array().unwrap().iter())
        .map(|refusal| (refusal["file"].as_str().unwrap(), refusal["pointer"].as_str().unwrap()))
        .collect();
    let expected =
        [("chat.json", "/tools/0/title"), ("chat.json", "/tools/1/returns"), ("weather.json", "/tools/0/category")];
    assert!(expected.iter().all(|place| places.contains(place)), "{report:#}");
    assert_eq!(report["more"], 0);
    // The answer stays small for any number of mistakes.
    let tool = json!({"name": "X"});
    set(&mut files, "/chat.json/tools", &json!(vec![tool; 900]));
    let report = load(&world, &files).await;
    assert_eq!(report["refused"].as_array().unwrap().len(), 500);
    assert!(report["more"].as_u64().unwrap() > 1_000);
}

#[tokio::test]
async fn an_event_that_asks_for_nothing_is_refused() {
    let world = World::start().await;
    for event in [
        json!(null),
        json!([]),
        json!({}),
        json!({"files": {}}),
        json!({"files": []}),
        json!({"files": small(), "dry": true}),
        json!({"files": small(), "dry_run": "yes"}),
        json!({"import": {}}),
        json!({"import": {"app": "slack", "keys": "x"}}),
    ] {
        let answer = invoke(&world, event.clone()).await;
        assert!(matches!(answer, Err(Error::Invalid(_))), "{event}: {answer:?}");
    }
    assert_eq!(stored(&world), Vec::<Value>::new());
}

#[tokio::test]
async fn a_removed_tool_becomes_inactive_and_may_return() {
    let world = World::start().await;
    load(&world, &small()).await;
    let first = row(&world, "service_tools", "chat_find");
    let mut fewer = small();
    fewer["chat.json"]["tools"].as_array_mut().unwrap().pop();
    fewer["chat.json"]["capabilities"]["polling_endpoints"] = json!({});
    fewer.as_object_mut().unwrap().remove("weather.json");
    let report = load(&world, &fewer).await;
    assert_eq!(report["services"]["Chat"]["deactivated"], json!(["chat_find"]));
    assert_eq!(
        report["services"]["Weather"],
        json!({"service": "deactivated", "deactivated": ["weather_get_forecast"], "unchanged": 0})
    );
    for (table, name) in
        [("service_tools", "chat_find"), ("service_tools", "weather_get_forecast"), ("services", "Weather")]
    {
        assert_eq!(row(&world, table, name)["is_active"], false, "{name}");
    }
    assert_eq!(
        (&row(&world, "services", "Weather")["tools"], &row(&world, "services", "Chat")["tools"]),
        (&json!(0), &json!(1))
    );
    assert_eq!(row(&world, "service_capabilities", "chat")["supports_polling"], false);
    assert_eq!(load(&world, &fewer).await["services"], json!({}), "what is gone stays gone");

    let report = load(&world, &small()).await;
    assert_eq!(report["services"]["Weather"]["service"], "reactivated");
    assert_eq!(report["services"]["Chat"]["changed"], json!([{"name": "chat_find", "fields": ["is_active"]}]));
    let again = row(&world, "service_tools", "chat_find");
    assert_eq!(
        (&again["is_active"], &again["fingerprint"], &again["created_at"]),
        (&json!(true), &first["fingerprint"], &first["created_at"])
    );
}

#[tokio::test]
async fn a_changed_tool_shows_its_earlier_values() {
    let world = World::start().await;
    load(&world, &small()).await;
    let (tool, service) = (row(&world, "service_tools", "weather_get_forecast"), row(&world, "services", "Weather"));
    assert_eq!(tool["version"], "1");
    let mut files = small();
    set(&mut files, "/weather.json/tools/0/parameters/properties/latitude/maximum", &json!(80));
    let report = load(&world, &files).await;
    let expected =
        json!([{"name": "weather_get_forecast", "fields": ["fingerprint", "parameters", "previous", "version"]}]);
    assert_eq!(report["services"]["Weather"]["changed"], expected);
    assert_eq!(report["services"]["Weather"]["service"], "unchanged");
    assert!(report["services"].get("Chat").is_none(), "{report}");
    let changed = row(&world, "service_tools", "weather_get_forecast");
    let previous = json!({
        "fingerprint": tool["fingerprint"], "version": "1", "parameters": tool["parameters"], "returns": tool["returns"],
    });
    assert_eq!((&changed["previous"], &changed["version"]), (&previous, &json!("2")));
    assert_ne!(row(&world, "services", "Weather")["edition"], service["edition"]);
    // Another description is no other tool.
    set(&mut files, "/weather.json/tools/0/description", &json!("Gets a forecast."));
    let report = load(&world, &files).await;
    assert_eq!(report["services"]["Weather"]["changed"][0]["fields"], json!(["description"]));
    let described = row(&world, "service_tools", "weather_get_forecast");
    assert_eq!((&described["fingerprint"], &described["previous"]), (&changed["fingerprint"], &previous));
}

#[tokio::test]
async fn a_component_at_another_version_is_another_tool() {
    let world = World::start().await;
    load(&world, &small()).await;
    let before = row(&world, "service_tools", "chat_send");
    let mut files = small();
    set(&mut files, "/chat.json/tools/0/component/version", &json!("1.0.1"));
    load(&world, &files).await;
    let after = row(&world, "service_tools", "chat_send");
    assert_eq!((&after["version"], &after["previous"]["version"]), (&json!("1.0.1"), &json!("1.0.0")));
    assert_ne!(after["fingerprint"], before["fingerprint"]);
}
