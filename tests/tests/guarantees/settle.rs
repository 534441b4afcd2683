//! Settling after crashes and failures between VAPI and the tables.
//!
//! Every function that changes both is killed at each step, and each step fails, before and after its effect.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

mod failures;

use std::time::Duration;

use local::standins;
use serde_json::{Value, json};
use shared::{Deadline, models::Timestamp};
use tests::{Event, Fault, Trouble, World, ai_sms, preemptive_sms, vapi_differences};

/// The change whose request is killed; its preconditions are prepared.
#[derive(Debug, Clone, Copy)]
enum Change {
    Create,
    CreatePreemptive,
    Attach,
    AttachPreemptive,
    Detach,
    DetachPreemptive,
    Edit,
    Rename,
    ToPreemptive,
    ToAttachable,
    Delete,
    DeletePreemptive,
    AttachBase,
    AttachBaseToAnother,
    DetachBase,
    DetachBaseOfOne,
    RemoveAgent,
}

/// The step of a side at which the function is killed, before or after its effect.
#[derive(Debug, Clone, Copy)]
struct Kill {
    at_vapi: bool,
    step: u32,
    took_effect: bool,
}

/// Prepares the world; returns function and event.
async fn prepare(world: &World, change: Change) -> (&'static str, Event) {
    let home = &world.home;
    let tools = format!("/api/{}/tools", home.slug);
    let of_agent = |what: &str| format!("/api/{}/agents/{}/tools/{what}", home.slug, home.agent_id);
    let labelled = |mut config: Value| {
        // A unique name, so that each attempt takes the same steps.
        config["label"] = json!(format!("Tool {}", uuid::Uuid::new_v4().simple()));
        config
    };
    let existing = match change {
        Change::Create | Change::CreatePreemptive => Value::Null,
        Change::AttachBase | Change::AttachBaseToAnother | Change::DetachBase | Change::DetachBaseOfOne => {
            return prepare_base(world, change).await;
        }
        Change::RemoveAgent => {
            let agent = world.agents(1).await.remove(0);
            for tool in [ai_sms(), preemptive_sms()] {
                let tool = world.tool(&labelled(tool)).await;
                world.attach_as(home, &agent, tool["id"].as_str().unwrap()).await.expect(201);
            }
            return ("agents", Event::new("DELETE", &format!("/api/{}/agents/{agent}", home.slug)).user(&home.user_id));
        }
        Change::Attach => world.tool(&labelled(ai_sms())).await,
        Change::AttachPreemptive => world.tool(&labelled(preemptive_sms())).await,
        Change::DetachPreemptive | Change::ToAttachable | Change::DeletePreemptive => {
            world.attached(&labelled(preemptive_sms())).await
        }
        _ => world.attached(&labelled(ai_sms())).await,
    };
    let id = existing["id"].as_str().unwrap_or_default();
    let one = format!("{tools}/{id}");
    let body = json!({"tool_id": id});
    let (function, event) = match change {
        Change::Create => ("create-tool", Event::post(&tools, &labelled(ai_sms()))),
        Change::CreatePreemptive => ("create-tool", Event::post(&tools, &labelled(preemptive_sms()))),
        Change::Attach | Change::AttachPreemptive => ("attach", Event::post(&of_agent("attach"), &body)),
        Change::Detach | Change::DetachPreemptive => ("detach", Event::post(&of_agent("detach"), &body)),
        Change::Edit => {
            ("update-tool", Event::new("PATCH", &one).text(json!({"description": "Another one"}).to_string()))
        }
        Change::Rename => (
            "update-tool",
            Event::new("PATCH", &one).text(json!({"name": uuid::Uuid::new_v4().simple().to_string()}).to_string()),
        ),
        Change::ToPreemptive => ("update-tool", Event::new("PATCH", &one).text(preemptive_sms().to_string())),
        Change::ToAttachable => {
            ("update-tool", Event::new("PATCH", &one).text(json!({"attach_to_agent": true}).to_string()))
        }
        Change::Delete | Change::DeletePreemptive => ("delete", Event::new("DELETE", &one)),
        Change::AttachBase
        | Change::AttachBaseToAnother
        | Change::DetachBase
        | Change::DetachBaseOfOne
        | Change::RemoveAgent => unreachable!("prepared apart"),
    };
    (function, event.user(&home.user_id))
}

/// Like [`prepare`], with a knowledge base for this or another agent.
async fn prepare_base(world: &World, change: Change) -> (&'static str, Event) {
    let home = &world.home;
    let base = world.knowledge_base(&json!([{"name": "city", "type": "text"}]), &json!([{"city": "Porto"}])).await;
    let base = base["id"].as_str().unwrap();
    world.aws.change("knowledge_bases", base, json!({"name": uuid::Uuid::new_v4().simple().to_string()}));
    if matches!(change, Change::AttachBaseToAnother | Change::DetachBaseOfOne) {
        let other = world.agents(1).await;
        world.knowledge_of(&other[0], "attach", base).await.expect(201);
    }
    let detaches = matches!(change, Change::DetachBase | Change::DetachBaseOfOne);
    if detaches {
        world.knowledge_of(&home.agent_id, "attach", base).await.expect(201);
    }
    let what = if detaches { "detach" } else { "attach" };
    let path = format!("/api/{}/agents/{}/knowledge-bases/{what}", home.slug, home.agent_id);
    ("knowledge", Event::post(&path, &json!({"knowledge_base_id": base})).user(&home.user_id))
}

/// Runs the function up to the step and kills it there. False if it ended before.
async fn killed(world: &World, function: &str, event: &Event, kill: Kill) -> bool {
    let reached = async {
        if kill.at_vapi {
            let seen = world.vapi.requests().len();
            let through = standins::Fault::delay(0);
            if kill.step > 0 {
                world.vapi.inject(through.times(kill.step));
            }
            let stall = standins::Fault::delay(600_000);
            world.vapi.inject(if kill.took_effect { stall } else { stall.with_effect(standins::Effect::None) });
            // The request is on record once it has taken effect and waits for its answer.
            while world.vapi.requests().len() <= seen + kill.step as usize
                || world.vapi.requests().iter().all(|request| request.status.is_some())
            {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        } else {
            let trouble = if kill.took_effect { Trouble::StallAfter } else { Trouble::StallBefore };
            world.aws.inject(Fault::new("*", "*", trouble).after(kill.step));
            world.aws.stalled().await;
        }
    };
    let died = tokio::select! {
        biased;
        () = reached => true,
        _ = world.send(function, event) => false,
    };
    world.vapi.clear_faults();
    world.aws.clear_faults();
    if died {
        // Operations in parallel with the fatal step still arrive.
        world.aws.idle().await;
    }
    died
}

/// Kills the change at each of its steps; returns the number of kills.
async fn walk(change: Change) -> u32 {
    let mut kills = 0;
    for at_vapi in [false, true] {
        for took_effect in [false, true] {
            for step in 0.. {
                let kill = Kill { at_vapi, step, took_effect };
                let world = World::start().await;
                let (function, event) = prepare(&world, change).await;
                if !killed(&world, function, &event, kill).await {
                    assert_eq!(vapi_differences::differences(&world), [""; 0], "{change:?} when nothing kills it");
                    break;
                }
                kills += 1;
                world.later();
                let report = world.settle().await;
                assert_eq!(report["left"], json!([]), "{change:?} {kill:?}: {report}");
                assert_eq!(vapi_differences::differences(&world), [""; 0], "{change:?} {kill:?}: {report}");
                // Nothing is left to settle, and the change can be repeated.
                assert_eq!(world.settle().await["settled"], json!([]));
                let again = world.send(function, &event).await;
                assert!(again.status < 500, "{change:?} {kill:?}: {}", again.body);
                assert_eq!(vapi_differences::differences(&world), [""; 0], "{change:?} {kill:?} and again");
            }
        }
    }
    kills
}

#[tokio::test]
async fn a_creation_killed_at_any_step_leaves_both_sides_alike() {
    assert!(Box::pin(walk(Change::Create)).await >= 8);
}

#[tokio::test]
async fn a_preemptive_creation_killed_at_any_step_leaves_the_table_whole() {
    assert!(Box::pin(walk(Change::CreatePreemptive)).await >= 6);
}

#[tokio::test]
async fn an_attachment_killed_at_any_step_leaves_both_sides_alike() {
    assert!(Box::pin(walk(Change::Attach)).await >= 14);
}

#[tokio::test]
async fn a_preemptive_attachment_killed_at_any_step_leaves_the_table_whole() {
    assert!(Box::pin(walk(Change::AttachPreemptive)).await >= 10);
}

#[tokio::test]
async fn a_detachment_killed_at_any_step_leaves_both_sides_alike() {
    assert!(Box::pin(walk(Change::Detach)).await >= 14);
}

#[tokio::test]
async fn a_preemptive_detachment_killed_at_any_step_leaves_the_table_whole() {
    assert!(Box::pin(walk(Change::DetachPreemptive)).await >= 10);
}

#[tokio::test]
async fn an_edit_killed_at_any_step_leaves_both_sides_alike() {
    assert!(Box::pin(walk(Change::Edit)).await >= 12);
}

#[tokio::test]
async fn a_new_name_killed_at_any_step_leaves_both_sides_alike() {
    assert!(Box::pin(walk(Change::Rename)).await >= 12);
}

#[tokio::test]
async fn an_edit_to_preemptive_killed_at_any_step_leaves_both_sides_alike() {
    assert!(Box::pin(walk(Change::ToPreemptive)).await >= 18);
}

#[tokio::test]
async fn an_edit_to_attachable_killed_at_any_step_leaves_both_sides_alike() {
    assert!(Box::pin(walk(Change::ToAttachable)).await >= 18);
}

#[tokio::test]
async fn a_deletion_killed_at_any_step_leaves_both_sides_alike() {
    assert!(Box::pin(walk(Change::Delete)).await >= 18);
}

#[tokio::test]
async fn a_preemptive_deletion_killed_at_any_step_leaves_the_table_whole() {
    assert!(Box::pin(walk(Change::DeletePreemptive)).await >= 10);
}

#[tokio::test]
async fn a_base_whose_first_attaching_is_killed_at_any_step_leaves_both_sides_alike() {
    assert!(Box::pin(walk(Change::AttachBase)).await >= 24);
}

#[tokio::test]
async fn a_base_whose_second_attaching_is_killed_at_any_step_leaves_both_sides_alike() {
    assert!(Box::pin(walk(Change::AttachBaseToAnother)).await >= 18);
}

#[tokio::test]
async fn a_base_whose_last_detaching_is_killed_at_any_step_leaves_both_sides_alike() {
    assert!(Box::pin(walk(Change::DetachBase)).await >= 30);
}

#[tokio::test]
async fn a_base_whose_detaching_is_killed_at_any_step_stays_with_the_other_agent() {
    assert!(Box::pin(walk(Change::DetachBaseOfOne)).await >= 20);
}

/// A repeated removal resumes the first; until then VAPI and the table agree.
#[tokio::test]
async fn an_agent_with_a_base_whose_removal_is_killed_at_any_step_leaves_no_tool_when_removed() {
    let mut kills = 0;
    for at_vapi in [false, true] {
        for took_effect in [false, true] {
            for step in 0.. {
                let kill = Kill { at_vapi, step, took_effect };
                let world = World::start().await;
                let base = world.knowledge_base(&json!([]), &json!([{"text": "House"}])).await;
                let agent = world.agents(1).await.remove(0);
                world.knowledge_of(&agent, "attach", base["id"].as_str().unwrap()).await.expect(201);
                let path = format!("/api/{}/agents/{agent}", world.home.slug);
                let event = Event::new("DELETE", &path).user(&world.home.user_id);
                let died = killed(&world, "agents", &event, kill).await;
                world.later();
                let report = world.settle().await;
                assert_eq!(
                    (&report["left"], vapi_differences::differences(&world)),
                    (&json!([]), vec![]),
                    "{kill:?}: {report}"
                );
                let removed = world.send("agents", &event).await;
                assert!([200, 404].contains(&removed.status), "{kill:?}: {}", removed.body);
                world.later();
                let report = world.settle().await;
                assert_eq!(report["left"], json!([]), "{kill:?}");
                assert_eq!(vapi_differences::differences(&world), [""; 0], "{kill:?}: {report}");
                assert!(world.tools().is_empty() && world.vapi.tools().is_empty(), "{kill:?}");
                if !died {
                    break;
                }
                kills += 1;
            }
        }
    }
    assert!(kills >= 20, "{kills}");
}

/// Settles the detachment after the check whether the base's tool is still needed.
#[tokio::test]
async fn a_base_whose_last_detaching_is_settled_late_loses_its_tool() {
    let world = World::start().await;
    let (function, event) = prepare(&world, Change::DetachBase).await;
    world.vapi.inject(standins::Fault::status(400).on("PATCH", "/assistant").times(3));
    world.send(function, &event).await.expect(502);
    world.later();
    assert_eq!(world.settle().await["left"][0]["change"], "detach_tool");
    world.later();
    assert_eq!(world.settle().await["left"], json!([]));
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
    assert!(world.tools().is_empty() && world.vapi.tools().is_empty());
}

#[tokio::test]
async fn an_attachment_is_settled_with_the_id_that_vapi_knows_the_tool_by_now() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    world.aws.put(
        "intents",
        &json!({
            "id": uuid::Uuid::now_v7(), "organization_id": world.home.organization_id, "change": "attach_tool",
            "agent_id": world.home.agent_id, "tool_id": tool["id"], "external_tool_id": uuid::Uuid::new_v4(),
            "created_at": "2026-01-01T00:00:00.000Z", "owner_until": 1,
        }),
    );
    assert_eq!(world.settle().await["settled"][0]["outcome"], "the tool is attached");
    assert_eq!(world.tool_ids(), [tool["external_tool_id"].as_str().unwrap()]);
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
}

#[tokio::test]
async fn a_change_in_progress_is_left_alone() {
    let world = World::start().await;
    let (function, event) = prepare(&world, Change::Attach).await;
    let kill = Kill { at_vapi: true, step: 1, took_effect: true };
    assert!(killed(&world, function, &event, kill).await);
    assert_eq!(world.settle().await, json!({"settled": [], "left": []}));
    assert_eq!(world.aws.rows("intents").len(), 1);
    world.later();
    assert_eq!(world.settle().await["settled"][0]["change"], "attach_tool");
}

#[tokio::test]
async fn a_change_that_cannot_be_settled_stays_and_is_reported() {
    let world = World::start().await;
    let (function, event) = prepare(&world, Change::Delete).await;
    let kill = Kill { at_vapi: true, step: 0, took_effect: true };
    assert!(killed(&world, function, &event, kill).await);
    world.later();
    world.vapi.inject(standins::Fault::status(500).times(100));
    let report = world.settle().await;
    assert_eq!(
        (report["settled"].as_array().map(Vec::len), &report["left"][0]["change"]),
        (Some(0), &json!("delete_tool"))
    );
    world.vapi.clear_faults();
    world.later();
    assert_eq!(world.settle().await["left"], json!([]));
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
}

/// Failing changes may exceed the time of a run; changes without an attempt come first in the next one.
#[tokio::test]
async fn a_change_that_fails_each_time_keeps_no_other_from_being_settled() {
    let world = World::start().await;
    let lost = |name: &str, created_at: &str| {
        json!({
            "id": uuid::Uuid::now_v7(), "organization_id": world.home.organization_id, "change": "create_tool",
            "tool_id": uuid::Uuid::now_v7(), "name": name, "created_at": created_at, "owner_until": 1,
        })
    };
    let failing = lost("failing", "2026-01-01T00:00:00.000Z");
    let waiting = lost("waiting", "2026-01-02T00:00:00.000Z");
    for intent in [&failing, &waiting] {
        world.aws.put("intents", intent);
    }
    // Time enough for one of the two.
    let run = async || {
        world.vapi.inject(standins::Fault::delay(2_500).with_body(json!("no list")));
        let report = settle::handle(&world.process.settle, Deadline::after(Duration::from_secs(52))).await.unwrap();
        world.vapi.clear_faults();
        serde_json::to_value(report).unwrap()
    };
    let left = |report: &Value| -> Vec<Value> {
        report["left"].as_array().unwrap().iter().map(|left| left["outcome"].clone()).collect()
    };
    let first = run().await;
    assert_eq!((left(&first).len(), &left(&first)[1]), (2, &json!("no time left")), "{first}");
    // The ownership of the attempt has just expired.
    let now = Timestamp::now().as_millis() - 1;
    world.aws.change("intents", failing["id"].as_str().unwrap(), json!({"owner_until": now}));
    let second = run().await;
    assert_eq!(second["left"][0]["intent"], waiting["id"], "the one that waited has its turn: {second}");
}

#[tokio::test]
async fn two_settlers_do_not_work_on_the_same_intent() {
    let world = World::start().await;
    let (function, event) = prepare(&world, Change::Create).await;
    let kill = Kill { at_vapi: true, step: 0, took_effect: true };
    assert!(killed(&world, function, &event, kill).await);
    world.later();
    let (one, other) = tokio::join!(world.settle(), world.settle());
    let settled = |report: &Value| report["settled"].as_array().map_or(0, Vec::len);
    assert_eq!(settled(&one) + settled(&other), 1, "{one} {other}");
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
}
