//! The files of `infra/catalogue` against the components of the registry.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use shared::{
    Deadline,
    connections::Connecting,
    json_schema::JsonSchema,
    models::{
        Binding, ConnectionKind, ExecutionOrigin, ExecutionStatus, Service, ServiceTool, ToolEffect, ToolRef,
        folded_name,
    },
    tool::{CallContext, Conversation, Subject},
};
use tests::{
    World,
    automation::{AMPLE, organization},
    phone,
};

use super::{files, load, row, set};

/// Compares each component with the registry's, an independent source.
#[test]
fn every_component_is_as_the_registry_has_it() {
    let registry: Vec<Value> =
        serde_json::from_str(include_str!("../../../fixtures/pipedream_components.json")).unwrap();
    let of_key = |key: &Value| registry.iter().find(|of| of["key"] == *key);
    let (mut compared, mut wrong) = (0, Vec::new());
    for (file, content) in files().as_object().unwrap() {
        for tool in content["tools"].as_array().unwrap() {
            let Some(component) = tool.get("component") else { continue };
            compared += 1;
            let key = &component["key"];
            let Some(real) = of_key(key) else {
                wrong.push(format!("{file}: {key} is in no registry"));
                continue;
            };
            let app_prop = component["props"].as_array().unwrap().iter().find(|prop| prop["type"] == "app");
            let app_prop = app_prop.map_or(&Value::Null, |prop| &prop["name"]);
            for (what, ours, theirs) in [
                ("version", &component["version"], &real["version"]),
                ("app prop", app_prop, &real["app_prop"]),
                ("app", &content["connection"]["app"], &real["app"]),
                ("annotations", &component["annotations"], &real["annotations"]),
            ] {
                if ours != theirs {
                    wrong.push(format!("{file}: {key}: {what} is {ours}, and {theirs} in the registry"));
                }
            }
            let (ours, theirs) = (props(&component["props"]), props(&real["props"]));
            if ours != theirs {
                wrong.push(format!("{file}: {key}: {ours:?} is {theirs:?} in the registry"));
            }
        }
    }
    for (file, content) in files().as_object().unwrap() {
        for event in content["capabilities"]["webhook_payload_schemas"].as_object().unwrap().values() {
            let Some(trigger) = event.get("deployed_trigger") else { continue };
            compared += 1;
            let Some(real) = of_key(&trigger["component"]) else {
                wrong.push(format!("{file}: {} is in no registry", trigger["component"]));
                continue;
            };
            for (what, ours, theirs) in [
                ("version", &trigger["version"], &real["version"]),
                ("app prop", &trigger["app_prop"], &real["app_prop"]),
                ("app", &content["connection"]["app"], &real["app"]),
            ] {
                if ours != theirs {
                    wrong.push(format!("{file}: {what} is {ours}, and {theirs} in the registry"));
                }
            }
            wrong.extend(trigger_props(trigger, real).into_iter().map(|problem| format!("{file}: {problem}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared > 40 && compared == registry.len(), "{compared} of {}", registry.len());
}

/// Mistakes in a trigger's parameters and defaults: unknown props, and required props without a value.
fn trigger_props(trigger: &Value, real: &Value) -> Vec<String> {
    let parameters = &trigger["parameters"];
    let mut given: BTreeSet<&str> = parameters["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    given.extend(trigger["defaults"].as_object().into_iter().flatten().map(|(name, _)| name.as_str()));
    let has = |name: &str| real["props"].as_array().unwrap().iter().any(|prop| prop["name"] == name);
    let mut wrong: Vec<String> =
        given.iter().filter(|name| !has(name)).map(|name| format!("{name} is not a prop of {}", real["key"])).collect();
    for prop in real["props"].as_array().unwrap() {
        let (name, kind) = (prop["name"].as_str().unwrap(), prop["type"].as_str().unwrap());
        let platform = kind == "app" || kind == "alert" || kind.starts_with("$.");
        let required = prop["optional"] != true && !platform;
        let asked = parameters["required"].as_array().into_iter().flatten().any(|asked| asked == name);
        if required && !asked && trigger["defaults"].get(name).is_none() {
            wrong.push(format!("{} needs {name}, which is neither required nor a default", real["key"]));
        }
    }
    wrong
}

/// Name and type of each prop, and whether it is required.
pub(super) fn props(of: &Value) -> BTreeSet<(String, String, bool)> {
    let prop = |prop: &Value| {
        let text = |name: &str| prop[name].as_str().unwrap().to_owned();
        (text("name"), text("type"), prop["optional"] != true)
    };
    of.as_array().unwrap().iter().map(prop).collect()
}

/// Connects the home organization to each service.
pub(crate) async fn connect_all(world: &World, services: &[Service]) {
    let connections = &world.process.runs.catalogue.connections;
    for service in services {
        match &service.connection {
            ConnectionKind::Pipedream { app } => {
                world.pipedream.connect(&format!("apn_{app}"), &world.home.organization_id, app);
            }
            ConnectionKind::Credential { fields } => {
                let credential: Value = fields
                    .iter()
                    .map(|field| (field.name.clone(), json!(format!("value-of-{}", field.name).replace('_', "-"))))
                    .collect();
                let deadline = Deadline::after(AMPLE);
                let connected = connections.connect(organization(world), service, &credential, deadline).await.unwrap();
                assert!(matches!(connected, Connecting::Connected { .. }), "{}", service.name);
            }
            // The home organization has a number.
            ConnectionKind::None | ConnectionKind::PhoneNumber => {}
        }
    }
}

/// Each service has something to use, and each of its tools an effect and examples that its own schema takes.
#[tokio::test]
async fn every_service_and_tool_of_the_catalogue_is_usable() {
    let world = World::start().await;
    load(&world, &files()).await;
    let rows = world.aws.rows("service_tools");
    let rows: Vec<ServiceTool> = rows.into_iter().map(|row| serde_json::from_value(row).unwrap()).collect();
    for row in &rows {
        let name = &row.name;
        assert!(row.is_active, "{name}");
        assert_eq!(row.effect, row.declared_effect() != ToolEffect::None, "{name} has an effect, or none");
        assert!(!row.examples.is_empty(), "{name} has no example");
        let schema = JsonSchema::compile(&row.parameters).unwrap_or_else(|problems| panic!("{name}: {problems:?}"));
        for example in &row.examples {
            let wrong: Vec<String> = schema
                .validate(&json!(example))
                .iter()
                .map(|violation| format!("{} {}", violation.path, violation.problem))
                .collect();
            assert_eq!(wrong, [""; 0], "{name} {example:?}");
        }
        if let Binding::ApiRequest(template) = &row.binding
            && template.fixed.contains_key("query")
        {
            let refused_by = &template.refused_by;
            assert!(refused_by.iter().any(|place| place == "/errors"), "{name}: GraphQL refuses with status 200");
        }
    }
    let services = world.process.runs.catalogue.services.all().await.unwrap();
    assert!(services.len() >= 40, "{}", services.len());
    let names: Vec<String> = services.iter().map(|service| service.name.clone()).collect();
    let capabilities =
        world.process.runs.catalogue.services.capabilities(&names, Deadline::after(AMPLE)).await.unwrap();
    for service in &services {
        let name = &service.name;
        assert!(service.is_active, "{name}");
        let of = capabilities.get(&folded_name(name)).unwrap_or_else(|| panic!("{name} has no capabilities"));
        let tools: Vec<&ServiceTool> = rows.iter().filter(|row| row.service_name == *name).collect();
        assert!(!tools.is_empty() || !of.webhook_events.is_empty(), "{name} has neither a tool nor an event");
        assert_eq!(of.supports_polling, !of.polling_endpoints.is_empty(), "{name}");
        for (event, endpoint) in &of.polling_endpoints {
            let source = tools.iter().find(|tool| endpoint["source_tool"] == *tool.name);
            assert!(source.is_some_and(|tool| !tool.effect), "{name} {event}: a source only reads");
        }
    }
}

/// Listed means executable: each tool of the catalogue is found at its fingerprint, shows the request of each example, and runs
/// if it is bound to a component or to an SMS.
#[tokio::test]
async fn every_tool_of_the_catalogue_resolves_and_can_be_tried() {
    let world = World::start().await;
    load(&world, &files()).await;
    let (catalogue, executor) = (&world.process.runs.catalogue, &world.process.run_tool.executor);
    connect_all(&world, &catalogue.services.all().await.unwrap()).await;
    let rows = world.aws.rows("service_tools");
    let rows: Vec<ServiceTool> = rows.into_iter().map(|row| serde_json::from_value(row).unwrap()).collect();
    let references: Vec<ToolRef> = rows
        .iter()
        .map(|row| ToolRef::Service { name: row.name.clone(), fingerprint: Some(row.fingerprint.clone()) })
        .collect();
    let resolved = catalogue.resolve(organization(&world), &references, Deadline::after(AMPLE)).await.unwrap();
    let conversation = Conversation::default();
    for (row, resolved) in rows.iter().zip(resolved) {
        let Ok(found) = resolved else { panic!("{} cannot be called", row.name) };
        let context = CallContext {
            organization: organization(&world),
            user: None,
            subject: Subject::Request(&row.name),
            automation: None,
            delivery: None,
            conversation: &conversation,
            trigger: ExecutionOrigin::Test,
            refused: None,
            deadline: Deadline::after(AMPLE),
        };
        for example in &row.examples {
            let shown = found.preview(executor, &context, example).await.unwrap();
            let shown = shown.unwrap_or_else(|why| panic!("{} {example:?}: {why}", row.name)).to_string();
            let place = "https://subdomain.zendesk.com/api/v2/";
            assert!(row.service_name != "Zendesk" || shown.contains(place), "{}: {shown}", row.name);
            assert!(!shown.contains("value-of-secret") && !shown.contains("value-of-access"), "{}: {shown}", row.name);
        }
        let example = row.examples[0].clone();
        if !matches!(row.binding, Binding::ApiRequest(_)) {
            let before = world.pipedream.runs().len() + world.twilio.messages().len();
            let outcome = found.callable(executor).call(example, &context).await.unwrap();
            assert_eq!(outcome.status, ExecutionStatus::Succeeded, "{}: {:?}", row.name, outcome.answer);
            assert_eq!(world.pipedream.runs().len() + world.twilio.messages().len(), before + 1, "{}", row.name);
        }
    }
    for run in world.pipedream.runs() {
        assert!(
            rows.iter().any(|row| matches!(&row.binding, Binding::Pipedream { component, .. } if *component == run.id))
        );
    }
}

/// Automations that use the tool run on.
#[tokio::test]
async fn a_tool_with_more_optional_parameters_keeps_its_fingerprint() {
    const TOOL: &str = "twilio_send_sms";
    let world = World::start().await;
    let with_from = json!({"twilio.json": files()["twilio.json"]});
    let mut without = with_from.clone();
    set(&mut without, "/twilio.json/tools/0/parameters/properties/from", &Value::Null);
    load(&world, &without).await;
    let before = row(&world, "service_tools", TOOL);
    let report = load(&world, &with_from).await;
    assert_eq!(report["services"]["Twilio"]["changed"][0]["fields"], json!(["parameter_names", "parameters"]));
    let after = row(&world, "service_tools", TOOL);
    assert_eq!((&after["fingerprint"], &after["version"]), (&before["fingerprint"], &before["version"]));
    assert!(after["parameters"]["properties"]["from"].is_object());
    assert_eq!(load(&world, &with_from).await["services"], json!({}));
    let mut required = with_from.clone();
    set(&mut required, "/twilio.json/tools/0/parameters/required", &json!(["recipients", "text", "from"]));
    set(&mut required, "/twilio.json/tools/0/examples/0/from", &json!("+14155550123"));
    load(&world, &required).await;
    assert_ne!(row(&world, "service_tools", TOOL)["fingerprint"], before["fingerprint"]);
}

/// An automation may name the lost parameter under the fingerprint of before.
#[tokio::test]
async fn a_tool_that_loses_an_optional_parameter_has_another_fingerprint() {
    let world = World::start().await;
    let with_from = json!({"twilio.json": files()["twilio.json"]});
    let mut without = with_from.clone();
    set(&mut without, "/twilio.json/tools/0/parameters/properties/from", &Value::Null);
    let mut fingerprints = Vec::new();
    for files in [&without, &with_from, &without, &with_from, &without] {
        load(&world, files).await;
        let tool = row(&world, "service_tools", "twilio_send_sms");
        fingerprints.push((tool["fingerprint"].clone(), tool["previous"]["fingerprint"].clone()));
        assert_eq!(load(&world, files).await["services"], json!({}), "loading it again changes nothing");
    }
    let [first, added, lost, again, gone] = &fingerprints[..] else { panic!("{fingerprints:?}") };
    assert_eq!((&added.0, &again.0), (&first.0, &lost.0));
    assert_eq!((&lost.1, &gone.1), (&added.0, &again.0), "the change is shown");
    assert!(lost.0 != first.0 && gone.0 != lost.0 && gone.0 != first.0, "{fingerprints:?}");
}

#[tokio::test]
async fn a_definition_may_use_a_parameter_as_soon_as_it_is_loaded() {
    let world = World::start().await;
    let with_from = json!({"twilio.json": files()["twilio.json"]});
    let mut without = with_from.clone();
    set(&mut without, "/twilio.json/tools/0/parameters/properties/from", &Value::Null);
    load(&world, &without).await;
    let mut tell = json!([{
        "id": "tell", "tool": "twilio_send_sms", "parameters": {"recipients": [phone(1)], "text": "Ready."},
    }]);
    tell[0]["parameters"]["from"] = json!(phone(2));
    assert_eq!(world.deploy(&world.manual(&tell)).await.status, 422);
    load(&world, &with_from).await;
    world.deploy(&world.manual(&tell)).await.expect(201);
}
