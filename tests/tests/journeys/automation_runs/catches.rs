//! Actions after a failure: once, with the reason in words; a crash changes neither.

use serde_json::{Value, json};
use shared::models::{AutomationRun, RunStatus};
use tests::{Fault, Trouble, World, automation::whole, http_server::Server};

use super::{and, books, entered, post, statuses};

/// Posts the reason of a step's failure.
fn tell(id: &str, entry: &str) -> Value {
    tell_of(id, entry, "{{error.place}} {{error.status}}: {{error.message}}")
}

fn tell_of(id: &str, entry: &str, note: &str) -> Value {
    json!([{"id": id, "tool": "ledger_post", "parameters": {"entry": entry, "note": note}}])
}

/// Starts an automation with these actions and this `catch`.
async fn begun(world: &World, actions: &Value, catch: &Value) -> AutomationRun {
    let definition = and(world.manual(actions), json!({"catch": catch}));
    let automation = world.activate(&definition).await;
    world
        .start_automation(
            &automation,
            "once",
            &json!({"rows": [{"id": 1, "name": "refused"}, {"id": 2, "name": "e2"}]}),
        )
        .await
}

async fn end(world: &World, run: &AutomationRun) -> (RunStatus, String) {
    let run = whole(world, run.id).await.run;
    (run.status, run.error.unwrap_or_default())
}

/// The note that was posted with this entry.
fn note(books: &Server, entry: &str) -> String {
    let posts: Vec<_> = books.seen().into_iter().filter(|request| request.target.ends_with(entry)).collect();
    let [posted] = &posts[..] else { panic!("{entry} was posted {} times", posts.len()) };
    serde_json::from_str::<Value>(&posted.body).unwrap()["note"].as_str().unwrap().to_owned()
}

/// An action, a loop and a choice that fail, each with its `catch`; crashes before and after each write.
#[tokio::test]
async fn each_catch_runs_once_though_the_process_dies_at_every_step() {
    let after_a_write = || Fault::new("TransactWriteItems", "automation_runs", Trouble::StallAfter);
    let before_the_next = || Fault::new("TransactWriteItems", "automation_runs", Trouble::StallBefore).after(1);
    for fault in [&after_a_write as &dyn Fn() -> Fault, &before_the_next] {
        let (mut world, books) = books().await;
        let actions = json!([
            and(post("a", "refused"), json!({"catch": tell("of_a", "caught-a")})),
            {
                "id": "each", "for_each": "{{trigger_data.rows}}", "as": "row", "key": "{{row.id}}",
                "actions": [post("enter", "{{row.name}}")], "catch": tell("of_each", "caught-each"),
            },
            {
                "id": "pick", "catch": tell("of_pick", "caught-pick"),
                "choose": [{"when": {"path": "trigger_data.rows", "op": "exists"}, "actions": [post("b", "refused")]}],
            },
            post("last", "last"),
        ]);
        let run = begun(&world, &actions, &tell_of("at_the_end", "caught-all", "{{error.message}}")).await;
        let mut deaths = 0;
        while world.kill_run(fault()).await {
            deaths += 1;
            world.restart();
        }
        assert!(deaths >= 10, "{deaths}");
        world.deliver_runs().await;
        let expected =
            ["refused", "caught-a", "refused", "e2", "caught-each", "refused", "caught-pick", "last", "caught-all"];
        let mut requests = entered(&books);
        // A refused request did nothing, so the next process may send it again.
        requests.dedup_by(|later, earlier| later == earlier && later == "refused");
        assert_eq!(requests, expected);
        let why = "The service answered with status 422: no such account";
        assert_eq!(note(&books, "caught-a"), format!("a failed: {why}"));
        let of_the_loop = format!("2 of 2 items were done, 1 of them failed. The first failure: {why}");
        assert_eq!(note(&books, "caught-each"), format!("each failed: {of_the_loop}"));
        assert_eq!(note(&books, "caught-pick"), format!("pick failed: {why}"));
        let (status, error) = end(&world, &run).await;
        assert_eq!(status, RunStatus::PartialFailure);
        assert!(error.contains("a (The service") && error.contains("each[1].enter (The service"), "{error}");
    }
}

#[tokio::test]
async fn a_catch_that_fails_is_not_caught_again_and_the_run_says_so() {
    let (world, books) = books().await;
    let failing = json!([post("tell", "refused"), post("then", "then")]);
    let actions = json!([and(post("a", "refused"), json!({"catch": failing})), post("b", "two")]);
    let run = begun(&world, &actions, &json!([post("end", "refused")])).await;
    world.deliver_runs().await;
    assert_eq!(entered(&books), ["refused", "refused", "then", "two", "refused"]);
    let expected = ["a failed", "tell failed", "then succeeded", "b succeeded", "end failed"];
    assert_eq!(statuses(&world, &run).await, expected);
    let (status, error) = end(&world, &run).await;
    assert_eq!(status, RunStatus::PartialFailure);
    for place in ["3 of 5 actions failed", "a (", "tell (", "end ("] {
        assert!(error.contains(place), "{place}: {error}");
    }
}

/// An effect whose outcome is unknown is caught, and not repeated.
#[tokio::test]
async fn an_unknown_outcome_is_caught_and_nothing_is_done_again() {
    let (world, books) = books().await;
    let actions = json!([and(post("a", "broken"), json!({"retries": 3, "catch": tell("of_a", "caught-a")}))]);
    let run = begun(&world, &actions, &json!(null)).await;
    world.deliver_runs().await;
    assert_eq!(entered(&books), ["broken", "caught-a"]);
    assert!(note(&books, "caught-a").starts_with("a unknown: "), "{}", note(&books, "caught-a"));
    assert_eq!(statuses(&world, &run).await, ["a unknown", "of_a succeeded"]);
    assert_eq!(end(&world, &run).await.0, RunStatus::PartialFailure);
}

/// No version of the program can make the tool, so waiting would not help.
#[tokio::test]
async fn a_tool_that_can_never_be_called_fails_its_action_and_is_caught() {
    let (world, books) = books().await;
    let actions = json!([
        {"id": "a", "tool": "ledger_read", "parameters": {"entry": "rows"}, "catch": tell("of_a", "caught-a")},
    ]);
    let run = begun(&world, &actions, &json!(null)).await;
    let row = world.aws.rows("service_tools").into_iter().find(|row| row["name"] == "ledger_read").unwrap();
    let broken = json!({"type": "object", "properties": {"entry": {"type": "nonsense"}}});
    world.aws.put("service_tools", &and(row, json!({"parameters": broken})));
    world.deliver_runs().await;
    assert_eq!(statuses(&world, &run).await, ["a failed", "of_a succeeded"]);
    let note = note(&books, "caught-a");
    assert!(note.contains("does not work as the catalogue describes it"), "{note}");
    assert_eq!(end(&world, &run).await.0, RunStatus::PartialFailure);
}
