//! Drafts of catalogue files, made from the components of an app.

use std::time::Duration;

use serde_json::{Map, Value, json};
use shared::{Deadline, Error};
use tests::World;

use super::{invoke, stored};

#[tokio::test]
async fn an_apps_components_become_a_draft() {
    let world = World::start().await;
    let answer = invoke(&world, json!({"import": {"app": "slack_v2"}})).await.unwrap();
    let draft = &answer["draft"];
    assert_eq!(
        (&draft["name"], &draft["connection"]),
        (&json!("Slack"), &json!({"type": "pipedream", "app": "slack_v2"}))
    );
    let tools = draft["tools"].as_array().unwrap();
    let post = tools.iter().find(|tool| tool["name"] == "slack_post_message").unwrap_or_else(|| panic!("{answer:#}"));
    assert_eq!((&post["component"]["key"], &post["category"]), (&json!("slack_v2-post-message"), &json!("write")));
    assert!(post["component"]["props"].as_array().unwrap().iter().any(|prop| prop["name"] == "threadTs"));
    assert_eq!(stored(&world), Vec::<Value>::new());
    assert_eq!(post["effect"], "", "a person says what it changes");
    let keys = json!(["slack_v2-post-message", "slack_v2-no-such"]);
    let some = invoke(&world, json!({"import": {"app": "slack_v2", "keys": keys}})).await.unwrap();
    assert_eq!(some["draft"]["tools"].as_array().unwrap().len(), 1);
    assert_eq!(some["left_out"][0]["key"], "slack_v2-no-such");
    let unknown = invoke(&world, json!({"import": {"app": "no_such_app"}})).await;
    assert!(matches!(unknown, Err(Error::Invalid(_))), "{unknown:?}");
}

/// The rest is review.
#[tokio::test]
async fn a_draft_loads_once_a_person_has_declared_the_effects() {
    let world = World::start().await;
    for app in ["slack_v2", "hubspot", "airtable_oauth", "notion"] {
        let mut draft = invoke(&world, json!({"import": {"app": app}})).await.unwrap()["draft"].take();
        let refused = invoke(&world, json!({"files": {"draft.json": draft}, "dry_run": true})).await.unwrap();
        let pointers: Vec<&str> =
            refused["refused"].as_array().into_iter().flatten().filter_map(|one| one["pointer"].as_str()).collect();
        assert!(
            !pointers.is_empty() && pointers.iter().all(|pointer| pointer.ends_with("/effect")),
            "{app}: {refused:#}"
        );
        for tool in draft["tools"].as_array_mut().unwrap() {
            if tool["effect"] == "" {
                tool["effect"] = json!("record");
            }
        }
        let checked = invoke(&world, json!({"files": {"draft.json": draft}, "dry_run": true})).await.unwrap();
        assert_eq!(checked["result"], "checked", "{app}: {checked:#}");
    }
}

#[tokio::test]
async fn an_import_reads_every_page_and_leaves_out_unsuitable_components() {
    let mut options = local::standins::pipedream::Options::default();
    let action = |number: usize, props: Value| local::standins::pipedream::Action {
        key: format!("big_app-action-{number:03}"),
        app: "big_app".to_owned(),
        name: format!("Action **{number}**"),
        description: "Does. [See the docs](https://big.example/docs)".to_owned(),
        version: "0.0.1".to_owned(),
        configurable_props: serde_json::from_value(props).unwrap(),
        summary: String::new(),
        ret: Value::Null,
        troubles: Vec::new(),
        ..options.actions[0].clone()
    };
    let app = json!({"name": "big", "type": "app", "app": "big_app"});
    let plain = json!([app, {"name": "text", "type": "string", "description": "The `text`"}]);
    let mut actions: Vec<_> = (0..230).map(|number| action(number, plain.clone())).collect();
    actions.push(action(230, json!([app, {"name": "columns", "type": "string", "reloadProps": true}])));
    actions.push(action(231, json!([app, {"name": "query", "type": "sql"}])));
    options.actions = actions;
    let world = World::with_pipedream(options).await;
    let answer = invoke(&world, json!({"import": {"app": "big_app"}})).await.unwrap();
    let tools = answer["draft"]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 230);
    let first = &tools[0];
    assert_eq!((&first["title"], &first["description"]), (&json!("Action 0"), &json!("Does. See the docs")));
    assert_eq!(first["component"]["props"][1]["description"], "The text");
    let left_out: Map<String, Value> = (answer["left_out"].as_array().unwrap().iter())
        .map(|left| (left["key"].as_str().unwrap().to_owned(), left["why"].clone()))
        .collect();
    assert!(left_out["big_app-action-230"].as_str().unwrap().contains("reload"), "{left_out:?}");
    assert!(left_out["big_app-action-231"].as_str().unwrap().contains("sql"), "{left_out:?}");
}

#[tokio::test]
async fn an_import_leaves_out_components_beyond_its_time() {
    let world = World::start().await;
    let keys = json!(["slack_v2-post-message", "slack_v2-list-channels"]);
    let event = json!({"import": {"app": "slack_v2", "keys": keys}});
    let deadline = Deadline::after(Duration::from_secs(3));
    let answer = operator::handle(&world.process.operator, event, deadline).await.unwrap();
    assert_eq!(answer["draft"]["tools"], json!([]));
    let left: Vec<&Value> = answer["left_out"].as_array().unwrap().iter().map(|left| &left["key"]).collect();
    assert_eq!(json!(left), keys);
    assert!(answer["left_out"][1]["why"].as_str().unwrap().contains("no time"), "{answer}");
}
