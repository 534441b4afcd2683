//! References in configurations must be the organization's own, already when they are saved.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use serde_json::{Value, json};
use tests::{Tenant, World, ai_sms, phone, slack_action};
use uuid::Uuid;

/// A configuration of each type with a reference to this organization; then a foreign reference, and the field of the refusal.
fn naming(tenant: &Tenant, base: &Value) -> Vec<(Value, &'static str)> {
    let sender = json!({"type": "specific_number", "phone_number_id": tenant.phone_number_id});
    let mut sms = ai_sms();
    sms["from"] = sender;
    let assistant = json!({"type": "assistant", "assistantId": tenant.assistant_id});
    let transfer = json!({"type": "transfer_call", "label": "Hand over", "target": assistant});
    let mut labelled = assistant;
    labelled["label"] = json!("Night shift");
    let destinations = json!([{"type": "number", "number": phone(9), "label": "Desk"}, labelled]);
    let choice = json!({"type": "transfer_call", "label": "Hand over", "destinations": destinations});
    let query = json!({"type": "query", "label": "Find", "knowledge_base_id": base["id"]});
    vec![
        (sms, "from.phone_number_id"),
        (transfer, "target.assistantId"),
        (choice, "destinations[1].assistantId"),
        (slack_action(tenant), "pipedreamMetadata.accountId"),
        (query, "knowledge_base_id"),
    ]
}

/// The other organization has everything that its own configurations name.
async fn worlds() -> (World, Value, Value) {
    let world = World::start().await;
    let body = json!({"name": "Homes"});
    let ours = world.knowledge("POST", "", &body).await.expect(201);
    let theirs = world.knowledge_as(&world.other, "POST", "", &body).await.expect(201);
    (world, ours, theirs)
}

#[tokio::test]
async fn a_tool_that_names_another_organizations_thing_is_not_saved() {
    let (world, ours, theirs) = worlds().await;
    let own = naming(&world.home, &ours);
    for ((theirs, field), (ours, _)) in naming(&world.other, &theirs).into_iter().zip(own) {
        assert_eq!(world.create(&theirs).await.wrong_fields(), [field]);
        let tried = world.try_tool(&json!({"config": theirs})).await;
        assert_eq!(tried.wrong_fields(), [format!("config.{field}")]);
        assert!(world.tools().is_empty() && world.vapi.tools().is_empty(), "{field}");

        let tool = world.tool(&ours).await;
        let before = world.tools();
        let mut change = theirs.clone();
        change.as_object_mut().unwrap().retain(|name, value| ours[name] != *value);
        assert_eq!(world.update(&tool, &change).await.wrong_fields(), [field], "{change}");
        assert_eq!(world.tools(), before, "{field}");
        world.delete(&tool).await.expect(200);
        // Its owner decides: the other organization may use it.
        let row = world.create_as(&world.other, &theirs).await.expect(201);
        world.delete_as(&world.other, &row).await.expect(200);
    }
}

#[tokio::test]
async fn a_tool_that_names_an_unknown_thing_is_not_saved() {
    let world = World::start().await;
    let nobody = Tenant {
        phone_number_id: Uuid::now_v7().to_string(),
        assistant_id: Uuid::new_v4().to_string(),
        slack_account: "apn_nobody".to_owned(),
        ..world.home.clone()
    };
    for (config, field) in naming(&nobody, &json!({"id": Uuid::now_v7()})) {
        assert_eq!(world.create(&config).await.wrong_fields(), [field]);
    }
}

#[tokio::test]
async fn a_transfer_may_name_an_agent_that_was_just_registered_and_not_one_that_was_removed() {
    let world = World::start().await;
    let made = world.at_vapi("POST", "/assistant", &json!({"name": "Night shift"})).await;
    let assistant = made["id"].as_str().unwrap();
    let target = json!({"type": "assistant", "assistantId": assistant});
    let transfer = json!({"type": "transfer_call", "label": "Hand over", "target": target});
    assert_eq!(world.create(&transfer).await.wrong_fields(), ["target.assistantId"], "it is nobody's agent yet");
    world.prove(&world.home, assistant).await;
    let path = format!("/api/{}/agents", world.home.slug);
    let registering = tests::Event::post(&path, &json!({"external_assistant_id": assistant})).user(&world.home.user_id);
    let agent = world.send("agents", &registering).await.expect(201);
    world.tool(&transfer).await;
    let path = format!("{path}/{}", agent["id"].as_str().unwrap());
    world.send("agents", &tests::Event::new("DELETE", &path).user(&world.home.user_id)).await.expect(200);
    assert_eq!(world.create(&transfer).await.wrong_fields(), ["target.assistantId"]);
}
