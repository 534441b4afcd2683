//! The examples of `docs/openapi.yaml`: requests are accepted, others fit their schemas.

use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tests::{Event, Options, World, ai_sms};

use super::{
    specification::{Document, objects},
    text,
};

/// Requests are sent unchanged, except for the tool's real token.
#[tokio::test]
async fn every_example_of_a_request_is_accepted() {
    let document = Document::read();
    let account = &document.request_examples("createTool")["pipedream_action"]["pipedreamMetadata"]["accountId"];
    let mut options = Options::default();
    text(account).clone_into(&mut options.home.slack_account);
    let world = World::with(options).await;
    for (name, body) in document.request_examples("createKnowledgeBase") {
        let created = world.knowledge("POST", "", &body).await;
        assert_eq!(created.status, 201, "{name}: {}", created.body);
    }
    let fields = json!([
        {"name": "city", "type": "text"}, {"name": "price", "type": "number"}, {"name": "sold", "type": "boolean"},
        {"name": "garden", "type": "boolean"},
    ]);
    let mut base = world.knowledge_base(&fields, &json!([])).await;
    base["id"] = json!("0f1e2d3c-4b5a-4697-8788-99aabbccddee");
    world.aws.put("knowledge_bases", &base);
    for (name, body) in document.request_examples("loadKnowledgeEntries") {
        let path = format!("/{}/entries", text(&base["id"]));
        let report = world.knowledge("POST", &path, &body).await.expect(200);
        assert_eq!(report["refused"], json!([]), "{name}");
    }
    for operation in ["attachKnowledgeBase", "detachKnowledgeBase"] {
        for (name, body) in document.request_examples(operation) {
            let (what, status) = if operation.starts_with("attach") { ("attach", 201) } else { ("detach", 200) };
            let path = format!("/api/{}/agents/{}/knowledge-bases/{what}", world.home.slug, world.home.agent_id);
            let answer = world.send("knowledge", &Event::post(&path, &body).user(&world.home.user_id)).await;
            assert_eq!(answer.status, status, "{operation} {name}: {}", answer.body);
        }
    }
    for (name, body) in document.request_examples("createTool") {
        let created = world.create(&body).await;
        assert_eq!(created.status, 201, "{name}: {}", created.body);
    }

    for (name, body) in document.request_examples("addMember") {
        let path = format!("/api/{}/members", world.home.slug);
        let added = world.send("members", &Event::post(&path, &body).user(&world.home.user_id)).await;
        assert_eq!(added.status, 201, "{name}: {}", added.body);
        for (name, change) in document.request_examples("updateMember") {
            let user = text(&body["user_id"]).replace('|', "%7C");
            let event = Event::new("PATCH", &format!("{path}/{user}")).text(change.to_string());
            let changed = world.send("members", &event.user(&world.home.user_id)).await;
            assert_eq!(changed.status, 200, "{name}: {}", changed.body);
        }
    }

    for (name, body) in document.request_examples("attachTool") {
        let mut row = world.tool(&ai_sms()).await;
        row["id"] = body["tool_id"].clone();
        world.aws.put("tools", &row);
        let attached = world.attach_as(&world.home, &world.home.agent_id, text(&body["tool_id"])).await;
        assert_eq!(attached.status, 201, "{name}: {}", attached.body);
    }

    for (name, body) in document.request_examples("detachTool") {
        let mut row = world.tool(&ai_sms()).await;
        row["id"] = body["tool_id"].clone();
        world.aws.put("tools", &row);
        world.attach(text(&body["tool_id"])).await;
        let detached = world.detach(text(&body["tool_id"])).await;
        assert_eq!(detached.status, 200, "{name}: {}", detached.body);
    }

    for (name, body) in document.request_examples("updateTool") {
        let updated = world.update(&world.tool(&ai_sms()).await, &body).await;
        assert_eq!(updated.status, 200, "{name}: {}", updated.body);
    }

    let tool = world.tool(&document.request_examples("createTool")["sms"]).await;
    let tool_id = text(&tool["id"]);
    let token = world.process.tokens.issue(tool_id.parse().unwrap()).await.unwrap();
    let examples = document.request_examples("executeTool");
    for (name, mut body) in examples.clone() {
        let mut event = Event::post(&format!("/api/tools/{tool_id}/execute"), &Value::Null);
        if body["message"].is_object() {
            body["message"]["toolCallList"][0]["function"]["name"] = tool["name"].clone();
            event = event.header("authorization", &format!("Bearer {}", world.options.webhook_bearer.clone().unwrap()));
        } else {
            assert_eq!(text(&body["metadata"]["token"]).len(), token.expose_secret().len(), "{name}: a token's form");
            body["metadata"]["token"] = json!(token.expose_secret());
        }
        let answer = world.send("execute", &event.text(body.to_string())).await;
        assert_eq!(answer.status, 200, "{name}: {}", answer.body);
        let failed = answer.body["success"] == false || answer.body["results"][0]["error"].is_string();
        assert!(!failed, "{name}: {}", answer.body);
    }
    assert_eq!(world.twilio.messages().len(), examples.len(), "each example is a call of its own");
}

#[test]
fn every_example_fits_its_schema() {
    let document = Document::read();
    let mut held = 0;
    for content in objects(&document.root).into_iter().filter(|object| object["schema"].is_object()) {
        let examples = content["examples"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, example)| (name.as_str(), &example["value"]));
        for (name, example) in examples.chain(content.get("example").map(|example| ("example", example))) {
            document.hold(name, &content["schema"], example);
            held += 1;
        }
    }
    assert!(held > 15, "only {held} examples were found");
}
