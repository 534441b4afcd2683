//! Actions that ask a person first.

use futures_util::join;
use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{Event, Options, World, automation::AMPLE, automation_event};

use super::{active, and, books, books_with, carried_out, entered, like_ledger_post, messenger, post, text};

/// An automation of three actions, the second with an approval.
async fn asking(world: &World) -> String {
    let asks = and(post("b", "two"), json!({"approval": {"expires_in_minutes": 30, "reason": "It is a lot."}}));
    active(world, &world.manual(&json!([post("a", "one"), asks, post("c", "three")]))).await
}

/// The approval expires without a decision.
fn expire(world: &World, approval: &str) {
    let then = "2026-01-01T00:00:00.000Z";
    world.aws.change("approvals", approval, json!({"valid_until": then, "wake_at": then}));
}

#[tokio::test]
async fn an_action_waits_for_a_person_and_continues_with_the_approved_arguments() {
    let (world, books) = books().await;
    let id = asking(&world).await;
    let run = carried_out(&world, &id, &json!({})).await;
    assert_eq!((&run["status"], entered(&books)), (&json!("waiting_for_approval"), vec!["one".to_owned()]));
    let asked = world.asked().await;
    let approval = &asked[0];
    assert_eq!((asked.len(), &approval["run_id"], &approval["action_id"]), (1, &run["id"], &json!("b")));
    assert_eq!((&approval["arguments"], &approval["reason"]), (&json!({"entry": "two"}), &json!("It is a lot.")));
    let shown = world.approvals("GET", &format!("/{}", text(&approval["id"])), &Value::Null).await.expect(200);
    assert_eq!(&shown, approval);

    // Waiting costs nothing: messages are dropped and none is queued.
    while let Some(batch) = world.aws.receive("runs", 900) {
        assert_eq!(world.run_loop_batch(batch, AMPLE).await, 0);
    }
    assert_eq!(world.aws.messages("runs").len(), 0);

    // Of two decisions at once, one counts.
    let path = format!("/{}/approve", text(&approval["id"]));
    let (one, two) = join!(world.approvals("POST", &path, &Value::Null), world.approvals("POST", &path, &Value::Null));
    let mut statuses = [one.status, two.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
    let late = world.approvals("POST", &path.replace("approve", "refuse"), &json!({"reason": "No"})).await;
    assert_eq!(late.status, 409, "{}", late.body);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let run = world.run(text(&run["id"])).await.expect(200);
    assert_eq!((&run["status"], &run["actions_executed"]), (&json!("completed"), &json!(3)), "{run:#}");
    assert_eq!(entered(&books), ["one", "two", "three"]);
    let used = world.approvals("GET", &format!("/{}", text(&approval["id"])), &Value::Null).await.expect(200);
    assert!(used["used_at"].is_string() && used["decided_by"] == world.home.user_id.as_str(), "{used}");
    assert_eq!(world.asked().await.len(), 0);
}

#[tokio::test]
async fn a_refused_action_is_not_done_and_the_reason_is_kept() {
    let (world, books) = books().await;
    let id = asking(&world).await;
    let run = carried_out(&world, &id, &json!({})).await;
    let path = format!("/{}/refuse", text(&world.asked().await[0]["id"]));
    assert_eq!(world.approvals("POST", &path, &json!({})).await.status, 422);
    world.approvals("POST", &path, &json!({"reason": "Too dear"})).await.expect(200);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let run = world.run(text(&run["id"])).await.expect(200);
    assert_eq!((&run["status"], &run["actions"][1]["status"]), (&json!("partial_failure"), &json!("refused")));
    assert!(text(&run["actions"][1]["error"]).contains("Too dear"), "{run:#}");
    assert_eq!(entered(&books), ["one", "three"]);
}

#[tokio::test]
async fn a_refusal_stops_a_run_that_is_to_stop() {
    let (world, books) = books().await;
    let asks = and(post("a", "one"), json!({"approval": true, "on_error": "stop"}));
    let id = active(&world, &world.manual(&json!([asks, post("b", "two")]))).await;
    let run = carried_out(&world, &id, &json!({})).await;
    let path = format!("/{}/refuse", text(&world.asked().await[0]["id"]));
    world.approvals("POST", &path, &json!({"reason": "No"})).await.expect(200);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(world.run(text(&run["id"])).await.expect(200)["status"], "failed");
    assert_eq!(entered(&books), [""; 0]);
}

#[tokio::test]
async fn an_approval_without_a_decision_expires() {
    let (world, books) = books().await;
    let id = asking(&world).await;
    let run = carried_out(&world, &id, &json!({})).await;
    let approval = text(&world.asked().await[0]["id"]).to_owned();
    expire(&world, &approval);
    assert_eq!(world.asked().await.len(), 0);
    let expired = world.approvals("GET", "?status=expired", &Value::Null).await.expect(200);
    assert_eq!(expired["items"][0]["status"], "expired");
    assert_eq!(world.approvals("POST", &format!("/{approval}/approve"), &Value::Null).await.status, 409);
    // The schedule finds it, once.
    world.settle().await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    world.settle().await;
    assert_eq!(world.aws.receive("runs", 0).map(|_| ()), None, "it was told once");
    let run = world.run(text(&run["id"])).await.expect(200);
    assert_eq!(
        (&run["status"], &run["actions"][1]["status"]),
        (&json!("partial_failure"), &json!("refused")),
        "{run:#}"
    );
    assert_eq!(entered(&books), ["one", "three"]);
}

#[tokio::test]
async fn an_approval_holds_for_exactly_the_shown_arguments() {
    let (world, books) = books().await;
    let id = asking(&world).await;
    let run = carried_out(&world, &id, &json!({})).await;
    let approval = text(&world.asked().await[0]["id"]).to_owned();
    // As if it had been given for other arguments.
    world.aws.change("approvals", &approval, json!({"arguments_hash": "of something else"}));
    world.approvals("POST", &format!("/{approval}/approve"), &Value::Null).await.expect(200);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let run = world.run(text(&run["id"])).await.expect(200);
    assert_eq!(run["actions"][1]["status"], "refused", "{run:#}");
    assert_eq!(entered(&books), ["one", "three"]);
}

#[tokio::test]
async fn a_decision_whose_message_was_lost_reaches_the_run_all_the_same() {
    let (world, books) = books().await;
    let id = asking(&world).await;
    carried_out(&world, &id, &json!({})).await;
    let approval = text(&world.asked().await[0]["id"]).to_owned();
    world.approvals("POST", &format!("/{approval}/approve"), &Value::Null).await.expect(200);
    while let Some(lost) = world.aws.receive("runs", 900) {
        lost.answered(&json!({"batchItemFailures": []}));
    }
    world.settle().await;
    assert_eq!(world.aws.messages("runs").len(), 0, "it has a while to take it up");
    world.aws.change("approvals", &approval, json!({"wake_at": "2026-01-01T00:00:00.000Z"}));
    world.settle().await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(entered(&books), ["one", "two", "three"]);
}

#[tokio::test]
async fn another_organization_decides_nothing() {
    let (world, books) = books().await;
    let id = asking(&world).await;
    carried_out(&world, &id, &json!({})).await;
    let approval = text(&world.asked().await[0]["id"]).to_owned();
    let event = automation_event(&world.other, "POST", &format!("/{approval}/approve"), &Value::Null);
    let path = event.path.replacen("/automations", "/approvals", 1);
    assert_eq!(world.send("approvals", &Event { path, ..event }).await.status, 404);
    assert_eq!((world.asked().await.len(), entered(&books)), (1, vec!["one".to_owned()]));
}

#[tokio::test]
async fn cancelling_a_run_ends_its_approvals() {
    let (world, books) = books().await;
    let id = asking(&world).await;
    let run = carried_out(&world, &id, &json!({})).await;
    let approval = text(&world.asked().await[0]["id"]).to_owned();
    assert_eq!(world.cancel_run(text(&run["id"])).await.expect(200)["status"], "cancelled");
    let shown = world.approvals("GET", &format!("/{approval}"), &Value::Null).await.expect(200);
    assert_eq!(shown["status"], "cancelled");
    assert_eq!(world.approvals("POST", &format!("/{approval}/approve"), &Value::Null).await.status, 409);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(entered(&books), ["one"]);
    // It goes with the run.
    let event = Event::new("DELETE", &format!("/api/{}/runs/{}", world.home.slug, text(&run["id"])));
    world.send("runs", &event.user(&world.home.user_id)).await.expect(204);
    assert_eq!(world.aws.rows("approvals"), Vec::<Value>::new());
}

#[tokio::test]
async fn a_dry_run_says_that_it_would_ask() {
    let (world, books) = books().await;
    let id = asking(&world).await;
    let run = carried_out(&world, &id, &json!({"dry_run": true})).await;
    assert_eq!(run["status"], "completed");
    let asks = &run["actions"][1]["output"]["would_ask_for_approval"];
    assert_eq!(asks, &json!({"reason": "It is a lot.", "expires_in_minutes": 30}), "{run:#}");
    assert_eq!((world.asked().await.len(), entered(&books)), (0, Vec::new()));
}

#[tokio::test]
async fn a_rule_asks_for_every_action_with_its_effect() {
    let (world, books) = books().await;
    messenger(&world);
    let read = json!({"id": "r", "tool": "ledger_read", "parameters": {"entry": "rows"}});
    let tell = json!({"id": "tell", "tool": "team_post_message", "parameters": {"entry": "Hello"}});
    let of = |effect: &str| {
        let definition = world.manual(&json!([read, post("a", "one"), tell]));
        and(definition, json!({"name": effect, "approvals": [{"effect": effect}]}))
    };
    let id = active(&world, &of("message")).await;
    carried_out(&world, &id, &json!({})).await;
    let asked = world.asked().await;
    assert_eq!((asked.len(), &asked[0]["action_id"]), (1, &json!("tell")));
    assert_eq!(asked[0]["reason"], "The automation asks before a message in a chat.");
    assert_eq!(entered(&books), ["one"]);
    let id = active(&world, &of("any")).await;
    carried_out(&world, &id, &json!({})).await;
    assert!(world.asked().await.iter().any(|asked| asked["action_id"] == "a"));
    assert_eq!(entered(&books), ["one"]);
}

/// The row of an older version declares nothing; no rule may let its tool through.
#[tokio::test]
async fn a_tool_that_declares_no_effect_asks_under_every_rule() {
    let (world, books) = books().await;
    for (older, acts_as) in [("ledger_old", Value::Null), ("ledger_newer", json!("telepathy"))] {
        like_ledger_post(&world, older, "record");
        let mut row = world.aws.rows("service_tools").into_iter().find(|row| row["name"] == older).unwrap();
        match acts_as {
            Value::Null => drop(row.as_object_mut().unwrap().remove("acts_as")),
            newer => row["acts_as"] = newer,
        }
        world.aws.put("service_tools", &row);
        for effect in ["email", "sms", "message", "payment"] {
            let asks = json!({"id": "a", "tool": older, "parameters": {"entry": "one"}});
            let rules = json!({"name": format!("{older} {effect}"), "approvals": [{"effect": effect}]});
            let id = active(&world, &and(world.manual(&json!([asks])), rules)).await;
            let run = carried_out(&world, &id, &json!({})).await;
            assert_eq!(run["status"], "waiting_for_approval", "{older} {effect}: {run:#}");
        }
    }
    assert!(entered(&books).is_empty());
}

/// An organization's own tool has its declared effect, not the effect that its name suggests.
#[tokio::test]
async fn an_organizations_own_tool_asks_under_the_rule_of_its_declared_effect() {
    let (world, books) = books().await;
    let url = format!("http://{}/ledger/own", books.address);
    for (label, declared, asked) in [("Send SMS", "record", false), ("Remind", "sms", true)] {
        let mut tool = tests::api_request("POST", "https://books.example/ledger/own");
        tool["label"] = json!(label);
        tool["effect"] = json!(declared);
        let made = world.create(&tool).await.expect(201);
        let mut row = world.aws.rows("tools").into_iter().find(|row| row["id"] == made["id"]).unwrap();
        row["config_metadata"]["url"] = json!({"mode": "fixed", "value": url});
        row["static_config"]["url"] = json!(url);
        world.aws.put("tools", &row);
        let action = json!({"id": "a", "tool": made["name"], "parameters": {}});
        let rules = json!({"name": label, "approvals": [{"effect": "sms"}]});
        let id = active(&world, &and(world.manual(&json!([action])), rules)).await;
        let run = carried_out(&world, &id, &json!({})).await;
        let status = if asked { "waiting_for_approval" } else { "completed" };
        assert_eq!(run["status"], status, "{label}: {run:#}");
    }
}

/// Members who decide must see the recipients; other members need not.
#[tokio::test]
async fn an_approval_shows_the_exact_recipients() {
    let (world, _books) = books().await;
    let parameters = json!({"entry": "ana@acme.example", "note": "+1 415 555 0101", "amount": 3});
    let asks = and(post("a", "x"), json!({"parameters": parameters, "approval": true}));
    let id = active(&world, &world.manual(&json!([asks]))).await;
    carried_out(&world, &id, &json!({})).await;
    let asked = world.asked().await.remove(0);
    assert_eq!(asked["arguments"], parameters, "{asked}");
    assert_eq!(asked["recipients"], json!(["ana@acme.example", "+1 415 555 0101"]));
    let path = format!("/api/{}/approvals/{}", world.home.slug, text(&asked["id"]));
    for role in ["viewer", "member"] {
        let user = world.member(&world.home, Some(role));
        let shown = world.send("approvals", &Event::get(&path).user(&user)).await.expect(200);
        assert_eq!(shown["arguments"], json!({"entry": "[email]", "note": "[number]", "amount": 3}), "{role}");
        assert_eq!(shown["recipients"], json!(["[email]", "[number]"]), "{role}");
    }
    let admin = world.member(&world.home, Some("admin"));
    assert_eq!(world.send("approvals", &Event::get(&path).user(&admin)).await.expect(200), asked);
}

#[tokio::test]
async fn a_run_is_kept_as_long_as_it_waits() {
    let variables = vec![("HISTORY_DAYS", "1".to_owned())];
    let (world, books) = books_with(Options { variables, ..Options::default() }).await;
    let asks = and(post("b", "two"), json!({"approval": {"expires_in_minutes": 10_080}}));
    let id = active(&world, &world.manual(&json!([post("a", "one"), asks]))).await;
    carried_out(&world, &id, &json!({})).await;
    let approval = world.aws.rows("approvals").remove(0);
    let until = text(&approval["valid_until"]).parse::<Timestamp>().unwrap().as_seconds() + 24 * 60 * 60;
    let rows = world.aws.rows("automation_runs");
    assert_eq!(rows.len(), 3, "the row, the plan and the first action");
    for row in rows.iter().chain([&approval]) {
        assert!(row["expires_at"].as_i64().unwrap() >= until, "{row}");
    }
    assert_eq!(entered(&books), ["one"]);
}
