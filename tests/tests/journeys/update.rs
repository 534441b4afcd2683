//! PATCH /api/{slug}/tools/{id}
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use local::standins::Fault;
use serde_json::{Value, json};
use tests::{World, ai_sms, api_request, aws, preemptive_sms, slack_action, vapi_differences};

#[tokio::test]
async fn an_edit_changes_vapi_and_the_row_and_keeps_the_rest() {
    let world = World::start().await;
    let before = world.attached(&ai_sms()).await;
    let changes = json!({"description": "Tells the caller {{caller_phone_number}} when to come.", "text": {"mode": "ai", "prompt": "Day and time"}});
    let after = world.update(&before, &changes).await.expect(200);
    assert_eq!(after["version"], 1);
    assert_eq!(after["function_schema"]["parameters"]["properties"]["text"]["description"], "Day and time");
    for kept in ["id", "name", "label", "external_tool_id", "created_at", "static_config", "type"] {
        assert_eq!(after[kept], before[kept], "{kept}");
    }
    let at_vapi = world.vapi.tool(before["external_tool_id"].as_str().unwrap()).unwrap();
    assert_eq!(at_vapi["description"], "Tells the caller {{ customer.number }} when to come.");
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
    assert_eq!(world.list(&format!("/tools/{}", before["id"].as_str().unwrap())).await.expect(200), after);
    // The agent still calls it, by the token it had.
    let answer = world.call_tool(&world.call(&after, json!({"text": "Tuesday"}))).await;
    assert_eq!(answer.body["success"], true, "{}", answer.body);
}

#[tokio::test]
async fn a_new_label_keeps_the_name_unless_another_is_asked_for() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let relabelled = world.update(&tool, &json!({"label": "Text the caller"})).await.expect(200);
    assert_eq!((&relabelled["label"], &relabelled["name"]), (&json!("Text the caller"), &tool["name"]));
    let renamed = world.update(&tool, &json!({"name": "text_caller"})).await.expect(200);
    assert_eq!((&renamed["name"], &renamed["function_schema"]["name"]), (&json!("text_caller"), &json!("text_caller")));
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
    // The old name is free again, the new one is not.
    let other = world.tool(&ai_sms()).await;
    assert_eq!(other["name"], tool["name"]);
    assert_eq!(world.update(&other, &json!({"name": "text_caller"})).await.wrong_fields(), ["name"]);
    assert_eq!(world.update(&other, &json!({"name": "no spaces"})).await.wrong_fields(), ["name"]);
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
}

#[tokio::test]
async fn the_second_of_two_edits_of_one_version_is_a_conflict() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    world.update_seen(&tool, "\"0\"", &json!({"label": "First"})).await.expect(200);
    let second = world.update_seen(&tool, "\"0\"", &json!({"label": "Second"})).await;
    assert_eq!((second.status, &second.body["code"]), (409, &json!("conflict")));
    assert!(second.body["detail"].as_str().unwrap().contains("version 1"), "{}", second.body);
    assert_eq!(world.tools()[0]["label"], "First");
    assert_eq!(world.update_seen(&tool, "soon", &json!({"label": "x"})).await.wrong_fields(), ["If-Match"]);
    assert_eq!(world.update(&tool, &json!({"label": "x", "version": 0})).await.status, 409);
    assert_eq!(world.update_seen(&tool, "*", &json!({"label": "Third"})).await.status, 200);
}

#[tokio::test]
async fn edits_at_the_same_moment_never_overwrite_each_other_in_silence() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let edits: Vec<Value> = (0..6).map(|number| json!({"label": format!("Label {number}")})).collect();
    let answers = futures_util::future::join_all(edits.iter().map(|edit| world.update(&tool, edit))).await;
    let saved = answers.iter().filter(|answer| answer.status == 200).count();
    assert!(answers.iter().all(|answer| [200, 409].contains(&answer.status)));
    assert!(saved >= 1);
    assert_eq!(world.tools()[0]["version"], saved);
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
}

#[tokio::test]
async fn a_wrong_field_is_named_and_nothing_is_changed() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    for (changes, field) in [
        (json!({"type": "query"}), "type"),
        (json!({"type": "fax"}), "type"),
        (json!({"colour": "red"}), "colour"),
        (json!({"text": {"mode": "ai"}}), "text.prompt"),
        (json!({"label": ""}), "label"),
        (json!([1]), "body"),
    ] {
        let fields = world.update(&tool, &changes).await.wrong_fields();
        assert!(fields.contains(&field.to_owned()), "{changes}: {fields:?}");
    }
    let api = world.tool(&api_request("GET", "https://api.example.com/")).await;
    let other_type = json!({"type": "transfer_call", "target": {"type": "number", "number": "+15550100009"}, "method": null, "url": null});
    assert_eq!(world.update(&api, &other_type).await.wrong_fields(), ["type"]);
    assert_eq!(world.tools().iter().filter(|row| row["version"] != 0).count(), 0);
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
    assert_eq!(world.update_as(&world.other, &tool, &json!({"label": "Mine now"})).await.status, 404);
}

#[tokio::test]
async fn attachable_and_preemptive_agree_everywhere() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let former = tool["external_tool_id"].as_str().unwrap().to_owned();

    let preemptive = world.update(&tool, &preemptive_sms()).await.expect(200);
    assert_eq!(
        (&preemptive["attach_to_agent"], preemptive.get("external_tool_id")),
        (&json!(false), Some(&Value::Null))
    );
    assert!(world.vapi.tool(&former).is_none());
    assert!(world.tool_ids().is_empty());
    assert_eq!(world.aws.rows("agent_tools")[0]["is_vapi_attached"], false);
    assert_eq!(vapi_differences::differences(&world), [""; 0]);

    let mut again = ai_sms();
    again["attach_to_agent"] = json!(true);
    again["execute_on_call_start"] = json!(false);
    let attachable = world.update(&tool, &again).await.expect(200);
    assert_eq!(world.tool_ids(), [attachable["external_tool_id"].as_str().unwrap()]);
    assert_eq!(world.aws.rows("agent_tools")[0]["is_vapi_attached"], true);
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
}

#[tokio::test]
async fn a_tool_that_vapi_lost_is_made_again_and_put_into_the_assistants() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let lost = tool["external_tool_id"].as_str().unwrap().to_owned();
    world.at_vapi("DELETE", &format!("/tool/{lost}"), &json!({})).await;
    let after = world.update(&tool, &json!({"label": "Again"})).await.expect(200);
    assert_ne!(after["external_tool_id"], lost.as_str());
    assert_eq!(world.tool_ids(), [after["external_tool_id"].as_str().unwrap()]);
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
}

#[tokio::test]
async fn the_id_of_a_tool_that_vapi_lost_leaves_assistants_that_fail_at_first() {
    for changes in [json!({"label": "Again"}), preemptive_sms()] {
        let world = World::start().await;
        let tool = world.attached(&ai_sms()).await;
        let agent = world.agents(1).await.remove(0);
        world.attach_as(&world.home, &agent, tool["id"].as_str().unwrap()).await.expect(201);
        let lost = tool["external_tool_id"].as_str().unwrap();
        world.at_vapi("DELETE", &format!("/tool/{lost}"), &json!({})).await;
        world.vapi.inject(Fault::status(500).on("PATCH", "/assistant/").times(99));
        let answer = world.update(&tool, &changes).await;
        assert_eq!(answer.status, 202, "{}", answer.body);
        world.vapi.clear_faults();
        world.later();
        assert_eq!(world.settle().await["left"], json!([]));
        let external = world.tools()[0]["external_tool_id"].as_str().map(str::to_owned);
        assert_eq!(world.tool_ids(), external.into_iter().collect::<Vec<_>>(), "{changes}");
        assert_eq!(vapi_differences::differences(&world), [""; 0], "{changes}");
    }
}

#[tokio::test]
async fn an_agent_that_the_index_shows_late_loses_the_tool_before_vapi_does() {
    for others in [0, 1] {
        let world = World::start().await;
        let tool = world.attached(&ai_sms()).await;
        for agent in world.agents(others).await {
            world.attach_as(&world.home, &agent, tool["id"].as_str().unwrap()).await.expect(201);
        }
        world.aws.inject(aws::Fault::new("Query", "agent_tools", aws::Trouble::Lagging));
        world.update(&tool, &preemptive_sms()).await.expect(200);
        assert_eq!(world.aws.faults_left(), 0);
        assert_eq!(vapi_differences::differences(&world), [""; 0]);
    }
}

#[tokio::test]
async fn vapi_failing_leaves_everything_as_it_was() {
    for fault in [Fault::status(500).times(9), Fault::status(400), Fault::drop_before().times(9)] {
        let world = World::start().await;
        let tool = world.attached(&ai_sms()).await;
        world.vapi.inject(fault.on("PATCH", "/tool/"));
        let answer = world.update(&tool, &json!({"label": "Other", "description": "Other"})).await;
        assert!(answer.status >= 502, "{}", answer.body);
        world.vapi.clear_faults();
        assert_eq!(world.tools()[0]["label"], tool["label"]);
        // Where VAPI could not be put back, the intent says so until it is.
        world.later();
        world.settle().await;
        assert_eq!(vapi_differences::differences(&world), [""; 0]);
    }
}

#[tokio::test]
async fn a_row_that_cannot_be_written_puts_vapi_back() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    world.aws.inject(aws::Fault::throttled("TransactWriteItems", "tools"));
    let answer = world.update(&tool, &json!({"description": "Other"})).await;
    assert_eq!((answer.status, &answer.body["code"]), (503, &json!("unavailable")));
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
}

#[tokio::test]
async fn a_transition_that_vapi_interrupts_is_saved_and_settled_later() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    world.vapi.inject(Fault::status(500).on("PATCH", "/assistant/").times(9));
    let answer = world.update(&tool, &preemptive_sms()).await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    assert_eq!(world.aws.rows("intents").len(), 1);
    world.vapi.clear_faults();
    world.later();
    assert_eq!(world.settle().await["left"], json!([]));
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
    assert!(world.tool_ids().is_empty());
}

#[tokio::test]
async fn a_pipedream_action_stays_pinned_to_the_version_that_was_read() {
    let world = World::start().await;
    let tool = world.tool(&slack_action(&world.home)).await;
    let after = world.update(&tool, &json!({"label": "Tell everybody"})).await.expect(200);
    assert_eq!(after["config_metadata"]["pipedreamMetadata"], tool["config_metadata"]["pipedreamMetadata"]);
}
