//! Every field of every body in `docs/openapi.yaml` with invalid values: a refusal names its field.

use serde_json::{Value, json};
use tests::{Event, World, ai_sms};

use super::{asked, specification::Document, text};

/// Every place in a body, starting with the body itself.
pub(super) fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                places(member, &format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        // All items of a list are read alike.
        Value::Array(items) => {
            if let Some(first) = items.first() {
                places(first, &format!("{at}/0"), found);
            }
        }
        _ => {}
    }
}

/// A request of each operation that takes a body, still without it.
pub(super) fn with_a_body(world: &World, tool: &str, base: &str) -> Vec<(&'static str, &'static str, Event)> {
    let home = &world.home;
    let agent = &home.agent_id;
    vec![
        ("createTool", "create-tool", asked(world, "POST", "/tools")),
        ("testTool", "tools-test", asked(world, "POST", "/tools/test")),
        ("updateTool", "update-tool", asked(world, "PATCH", &format!("/tools/{tool}"))),
        ("attachTool", "attach", asked(world, "POST", &format!("/agents/{agent}/tools/attach"))),
        ("detachTool", "detach", asked(world, "POST", &format!("/agents/{agent}/tools/detach"))),
        ("registerAgent", "agents", asked(world, "POST", "/agents")),
        ("registerPhoneNumber", "phone-numbers", asked(world, "POST", "/phone-numbers")),
        (
            "updatePhoneNumber",
            "phone-numbers",
            asked(world, "PATCH", &format!("/phone-numbers/{}", home.phone_number_id)),
        ),
        ("createKnowledgeBase", "knowledge", asked(world, "POST", "/knowledge-bases")),
        ("loadKnowledgeEntries", "knowledge", asked(world, "POST", &format!("/knowledge-bases/{base}/entries"))),
        ("attachKnowledgeBase", "knowledge", asked(world, "POST", &format!("/agents/{agent}/knowledge-bases/attach"))),
        ("detachKnowledgeBase", "knowledge", asked(world, "POST", &format!("/agents/{agent}/knowledge-bases/detach"))),
        ("storeKey", "keys", asked(world, "PUT", "/keys/vapi")),
        ("addMember", "members", asked(world, "POST", "/members")),
        ("updateMember", "members", asked(world, "PATCH", &format!("/members/{}", world.member(home, Some("member"))))),
        ("createHook", "hooks", asked(world, "POST", "/hooks")),
        ("startRun", "runs", asked(world, "POST", "/runs")),
        ("deployAutomation", "deploy", asked(world, "POST", "/automations")),
        ("eraseNumber", "erasures", asked(world, "POST", "/erasures")),
        ("fetchToolDataOfMany", "discover", asked(world, "POST", "/discover/fetch_tool_data")),
        ("searchToolsByBody", "discover", asked(world, "POST", "/discover/search")),
    ]
}

#[tokio::test]
async fn every_refusal_of_a_body_names_its_fields() {
    let document = Document::read();
    let world = World::start().await;
    let tool = text(&world.tool(&ai_sms()).await["id"]).to_owned();
    let base = super::a_base(&world).await;
    let operations = with_a_body(&world, &tool, &base);
    let mut refused = 0;
    for (operation, function, event) in operations {
        for (name, example) in document.request_examples(operation) {
            let mut all = Vec::new();
            places(&example, "", &mut all);
            for place in all {
                for value in [json!(""), json!(" "), Value::Null, json!(0), json!([]), json!({})] {
                    let mut body = example.clone();
                    *body.pointer_mut(&place).unwrap() = value.clone();
                    let answer = Box::pin(world.send(function, &event.clone().text(body.to_string()))).await;
                    let what = format!("{operation} {name}: {place} = {value}: {}", answer.body);
                    assert!(answer.status < 500, "{what}");
                    if answer.status == 422 {
                        // An automation's errors name the place in its document.
                        let errors = answer.body["errors"].as_array().or(answer.body["diagnostics"].as_array());
                        let errors = errors.unwrap_or_else(|| panic!("{what}"));
                        let named = |error: &Value| {
                            error["field"].is_string() && error["problem"] != ""
                                || error["pointer"].is_string() && error["message"] != ""
                        };
                        assert!(!errors.is_empty() && errors.iter().all(named), "{what}");
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(refused > 500, "only {refused} were refused");
}
