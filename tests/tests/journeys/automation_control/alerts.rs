//! Alerts: automations that keep failing are paused, and their owners are informed.

use axum::{Router, http::StatusCode, routing::post as route};
use futures_util::join;
use serde_json::{Value, json};
use shared::{automation::MOST_FAILURES, models::RunStatus};
use tests::{Fault, Options, World, automation::whole, http_server::Server};

use super::{active, and, books_with, carried_out, post, text};

const KEY: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A world with a server for the owners' alerts.
async fn told() -> (World, Server, Server) {
    let owners = Server::start(Router::new().route("/alerts", route(async || StatusCode::NO_CONTENT))).await;
    let variables =
        vec![("ALERT_HOOK_URL", format!("{}/alerts", owners.url)), ("ALERT_SECRET", "switchboard/alerts".to_owned())];
    let open_hosts = vec![owners.address.to_string()];
    let (world, books) = books_with(Options { variables, open_hosts, ..Options::default() }).await;
    world.aws.put_secret("switchboard/alerts", &json!({"key": KEY}));
    (world, books, owners)
}

fn row(world: &World, automation: &str) -> Value {
    world.aws.row("automations", automation).unwrap()
}

#[tokio::test]
async fn five_failures_in_a_row_pause_an_automation_and_tell_its_owners_once() {
    let (world, _books, owners) = told().await;
    let id = active(&world, &world.manual(&json!([post("a", "{{trigger_data.entry}}")]))).await;
    let run = async |entry: &str| carried_out(&world, &id, &json!({"trigger_data": {"entry": entry}})).await;
    for _ in 1..MOST_FAILURES {
        assert_eq!(run("refused").await["status"], "failed");
    }
    assert_eq!((&row(&world, &id)["failures_in_a_row"], owners.seen().len()), (&json!(4), 0));
    // A success resets the count; a dry run does not count.
    assert_eq!(run("fine").await["status"], "completed");
    assert_eq!(row(&world, &id)["failures_in_a_row"], 0);
    for _ in 1..MOST_FAILURES {
        run("refused").await;
    }
    let dry = carried_out(&world, &id, &json!({"dry_run": true})).await;
    assert_eq!((&dry["dry_run"], &row(&world, &id)["status"]), (&json!(true), &json!("active")));
    let last = run("refused").await;
    let paused = row(&world, &id);
    assert_eq!((&paused["status"], &paused["paused_by_run"]), (&json!("paused"), &last["id"]));
    assert!(text(&paused["pause_reason"]).starts_with("5 runs failed one after the other"), "{paused}");
    let seen = owners.seen();
    assert_eq!(seen.len(), 1);
    let body: Value = serde_json::from_str(&seen[0].body).unwrap();
    assert_eq!((&body["type"], &body["data"]["automation_id"]), (&json!("automation.paused"), &json!(id)));
    assert_eq!(seen[0].headers["webhook-id"], format!("alert_{}", text(&last["id"])));
    assert!(seen[0].headers["webhook-signature"].starts_with("v1,"));
    // After a crash the end of the run counts nothing twice; the alert is the same one.
    let run = whole(&world, text(&last["id"]).parse().unwrap()).await.run;
    world.process.run_loop.watch.run_ends(&run, RunStatus::Failed).await;
    assert_eq!(row(&world, &id)["failures_in_a_row"], 5);
    let ids: Vec<String> = owners.seen().iter().map(|request| request.headers["webhook-id"].clone()).collect();
    assert_eq!(ids, [ids[0].clone(), ids[0].clone()]);
    // Activating it begins anew.
    world.automation("POST", &format!("/{id}/activate"), &json!({"version": 1})).await.expect(200);
    let active = row(&world, &id);
    assert_eq!((&active["failures_in_a_row"], active.get("pause_reason")), (&json!(0), None));
}

/// A `catch` that tells of each failure succeeds each time.
#[tokio::test]
async fn an_automation_whose_catch_alone_succeeds_is_paused_like_one_without() {
    let (world, _books, owners) = told().await;
    let entry = |id: &str| post(id, "{{trigger_data.entry}}");
    let caught = |id: &str| and(entry(id), json!({"catch": [post(&format!("tell_{id}"), "told")]}));
    let each = json!({"id": "each", "for_each": [1, 2], "at_once": 2, "actions": [caught("in_loop")]});
    let definition = world.manual(&json!([caught("a"), each]));
    let id = active(&world, &and(definition, json!({"catch": [post("tell_all", "told")]}))).await;
    let run = async |entry: &str| carried_out(&world, &id, &json!({"trigger_data": {"entry": entry}})).await;
    // Outages do not count, as without a `catch`.
    assert_eq!(run("busy").await["status"], "partial_failure");
    assert!(row(&world, &id).get("failed_runs").is_none());
    for _ in 1..MOST_FAILURES {
        assert_eq!(run("refused").await["status"], "partial_failure");
    }
    assert_eq!((&row(&world, &id)["failures_in_a_row"], owners.seen().len()), (&json!(4), 0));
    assert_eq!(run("fine").await["status"], "completed");
    assert_eq!(row(&world, &id)["failures_in_a_row"], 0);
    for _ in 0..MOST_FAILURES {
        run("refused").await;
    }
    assert_eq!((&row(&world, &id)["status"], owners.seen().len()), (&json!("paused"), 1));
}

/// An action that succeeds beside the one that fails resets the count.
#[tokio::test]
async fn a_success_outside_of_a_catch_keeps_an_automation_active() {
    let (world, _books, owners) = told().await;
    let caught = and(post("a", "refused"), json!({"catch": [post("tell", "told")]}));
    let id = active(&world, &world.manual(&json!([caught, post("b", "fine")]))).await;
    for _ in 0..=MOST_FAILURES {
        assert_eq!(carried_out(&world, &id, &json!({})).await["status"], "partial_failure");
    }
    assert_eq!((&row(&world, &id)["status"], owners.seen().len()), (&json!("active"), 0));
}

#[tokio::test]
async fn two_runs_that_fail_at_once_pause_it_once() {
    let (world, _books, owners) = told().await;
    let automation = world.activate(&world.manual(&json!([post("a", "one")]))).await;
    let mut runs = Vec::new();
    for number in 0..6 {
        runs.push(world.start_automation(&automation, &format!("cause {number}"), &json!({})).await);
    }
    let watch = &world.process.run_loop.watch;
    for run in &runs[..4] {
        watch.run_ends(run, RunStatus::Failed).await;
        watch.run_ends(run, RunStatus::Failed).await;
    }
    assert_eq!(row(&world, &automation.id.to_string())["failures_in_a_row"], 4);
    join!(watch.run_ends(&runs[4], RunStatus::Failed), watch.run_ends(&runs[5], RunStatus::Failed));
    let paused = row(&world, &automation.id.to_string());
    assert_eq!((&paused["status"], &paused["failures_in_a_row"]), (&json!("paused"), &json!(6)));
    assert_eq!(owners.seen().len(), 1);
    // Cancelled runs and runs ended by a limit do not count.
    watch.run_ends(&runs[0], RunStatus::Cancelled).await;
    watch.run_ends(&runs[0], RunStatus::TimeLimit).await;
    assert_eq!(row(&world, &automation.id.to_string())["failures_in_a_row"], 6);
}

#[tokio::test]
async fn an_automation_is_paused_even_if_the_alert_fails() {
    let (world, _books, owners) = told().await;
    drop(owners);
    let id = active(&world, &world.manual(&json!([post("a", "refused")]))).await;
    for _ in 0..MOST_FAILURES {
        assert_eq!(carried_out(&world, &id, &json!({})).await["status"], "failed");
    }
    assert_eq!(row(&world, &id)["status"], "paused");
}

/// An hour of outages, a service's or a table's, is no reason to pause an automation.
#[tokio::test]
async fn outages_do_not_pause_an_automation() {
    let (world, _books, owners) = told().await;
    let id = active(&world, &world.manual(&json!([post("a", "busy")]))).await;
    for _ in 0..=MOST_FAILURES {
        assert_eq!(carried_out(&world, &id, &json!({})).await["status"], "failed");
    }
    let automation = row(&world, &id);
    assert_eq!((&automation["status"], owners.seen().len()), (&json!("active"), 0));
    assert!(automation.get("failed_runs").is_none(), "{automation}");
}

#[tokio::test]
async fn failures_of_another_version_say_nothing_of_the_one_that_is_active() {
    let (world, _books, owners) = told().await;
    let id = active(&world, &world.manual(&json!([post("a", "fine")]))).await;
    world.put_automation(&id, "\"2\"", &world.manual(&json!([post("a", "refused")]))).await.expect(200);
    for _ in 0..=MOST_FAILURES {
        let run = carried_out(&world, &id, &json!({"version": 2})).await;
        assert_eq!((&run["status"], &run["automation_version"]), (&json!("failed"), &json!(2)));
    }
    assert_eq!((&row(&world, &id)["status"], owners.seen().len()), (&json!("active"), 0));
    assert!(row(&world, &id).get("failed_runs").is_none());
}

#[tokio::test]
async fn owners_are_told_of_a_pause_although_its_record_could_not_be_closed() {
    let (world, _books, owners) = told().await;
    let id = active(&world, &world.manual(&json!([post("a", "refused")]))).await;
    for _ in 1..MOST_FAILURES {
        carried_out(&world, &id, &json!({})).await;
    }
    world.aws.inject(Fault::throttled("UpdateItem", "intents").times(6));
    carried_out(&world, &id, &json!({})).await;
    world.aws.clear_faults();
    assert_eq!((&row(&world, &id)["status"], owners.seen().len()), (&json!("paused"), 1));
}
