//! Actions that run another automation.

use serde_json::{Value, json};
use tests::{Event, Fault, Trouble, World, automation::AMPLE, standins::llm::Turn};

use super::{active, and, books, carried_out, entered, post, text};

fn run_other(id: &str, more: Value) -> Value {
    and(json!({"id": "invoice", "tool": "call_automation", "parameters": {"automation_id": id}}), more)
}

/// Enters `{{trigger_data.customer}}`; the output is `number`.
async fn inner(world: &World) -> String {
    let action = and(post("enter", "{{trigger_data.customer}}"), json!({"output_as": "number"}));
    active(world, &and(world.manual(&json!([action])), json!({"name": "Invoice"}))).await
}

/// Runs `inner` for a customer, and enters its output.
async fn outer(world: &World, inner: &str, more: Value) -> String {
    let parameters = json!({"automation_id": inner, "data": {"customer": "{{trigger_data.who}}"}});
    let call = run_other(inner, json!({"parameters": parameters, "output_as": "invoice", "on_error": "stop"}));
    let definition = world.manual(&json!([call, post("then", "after-{{invoice.number.entered}}")]));
    active(world, &and(definition, and(json!({"name": "Order"}), more))).await
}

async fn runs_of(world: &World, id: &str) -> Vec<Value> {
    let runs = world.automation("GET", &format!("/{id}/runs"), &Value::Null).await.expect(200);
    runs["items"].as_array().unwrap().clone()
}

/// The diagnostics of a refused or saved definition: pointer and code.
fn told(answer: &Value) -> Vec<String> {
    let one = |one: &Value| format!("{} {}", text(&one["pointer"]), text(&one["code"]));
    answer["diagnostics"].as_array().unwrap().iter().map(one).collect()
}

const ADA: fn() -> Value = || json!({"trigger_data": {"who": "ada"}});

#[tokio::test]
async fn an_automation_runs_another_with_arguments_and_goes_on_with_its_outputs() {
    let (world, books) = books().await;
    let inner = inner(&world).await;
    let outer = outer(&world, &inner, json!({})).await;
    let run = carried_out(&world, &outer, &ADA()).await;
    assert_eq!(
        (&run["status"], entered(&books)),
        (&json!("completed"), vec!["ada".to_owned(), "after-ada".to_owned()]),
        "{run:#}"
    );
    assert_eq!(run["actions"][0]["output"], json!({"number": {"entered": "ada"}}));
    let children = runs_of(&world, &inner).await;
    let [child] = &children[..] else { panic!("{children:?}") };
    assert_eq!(
        (&child["parent_run_id"], &child["trigger_type"], &child["user_id"]),
        (&run["id"], &json!("action"), &run["user_id"])
    );
    // Messages that come again begin nothing again.
    world.deliver_runs().await;
    assert_eq!(entered(&books).len(), 2);
}

/// SQS delivers the message of a killed process again.
fn put_back(world: &World) {
    let open = |row: &Value| row["part"] == "run" && ["queued", "running"].contains(&text(&row["status"]));
    for row in world.aws.rows("automation_runs").iter().filter(|row| open(row)) {
        world.aws.post("runs", &json!({"organization_id": row["organization_id"], "run_id": row["id"]}).to_string());
    }
}

#[tokio::test]
async fn a_crash_at_any_request_neither_loses_nor_doubles_the_called_run() {
    let (world, books) = books().await;
    let inner = inner(&world).await;
    let outer = outer(&world, &inner, json!({})).await;
    let mut completed = 0;
    // The caller until it waits, the called run, the caller again.
    for batches in 0..3 {
        for request in 0.. {
            assert!(request < 120, "the run never ends without a crash");
            let who = format!("c{batches}-{request}");
            let begun = world.run_by_hand(&outer, &json!({"trigger_data": {"who": who}})).await.expect(202);
            for _ in 0..batches {
                let batch = world.aws.receive("runs", 0).unwrap();
                assert_eq!(world.run_loop_batch(batch, AMPLE).await, 0);
            }
            let killed = world.kill_run(Fault::new("*", "*", Trouble::StallAfter).after(request)).await;
            // A request of the killed process may arrive after its lease was ended.
            for _ in 0..2 {
                world.later();
                put_back(&world);
                world.deliver_runs().await;
            }
            let run = world.run(text(&begun["id"])).await.expect(200);
            let at = format!("{batches} batches and {request} requests: {run:#}");
            let mine: Vec<_> = entered(&books).into_iter().filter(|entry| entry.ends_with(&who)).collect();
            if run["status"] == "completed" {
                assert_eq!(mine, [who.clone(), format!("after-{who}")], "{at}");
                completed += 1;
            } else {
                // A process died between the claim on an effect and its result: the effect may have happened.
                assert!(batches > 0 && run["error"].is_string(), "{at}");
                let mut once = mine.clone();
                once.dedup();
                assert_eq!(once, mine, "{at}");
            }
            if !killed {
                break;
            }
        }
    }
    assert!(completed > 40, "only {completed} runs completed");
}

#[tokio::test]
async fn a_run_by_hand_is_carried_out_after_a_crash_before_its_message() {
    let (world, books) = books().await;
    let inner = inner(&world).await;
    world.aws.inject(Fault::new("TransactWriteItems", "automation_runs", Trouble::StallAfter));
    let asked = json!({"trigger_data": {"customer": "ada"}});
    tokio::select! {
        _ = world.run_by_hand(&inner, &asked) => panic!("it is not killed"),
        () = world.aws.stalled() => {}
    }
    world.aws.clear_faults();
    assert_eq!(runs_of(&world, &inner).await[0]["status"], "queued");
    world.deliver_runs().await;
    assert_eq!(
        (&runs_of(&world, &inner).await[0]["status"], entered(&books)),
        (&json!("completed"), vec!["ada".into()])
    );
}

#[tokio::test]
async fn a_dry_run_runs_the_other_automation_dry() {
    let (world, books) = books().await;
    let inner = inner(&world).await;
    let outer = outer(&world, &inner, json!({})).await;
    let run = carried_out(&world, &outer, &and(ADA(), json!({"dry_run": true}))).await;
    assert_eq!((&run["status"], entered(&books).len()), (&json!("completed"), 0), "{run:#}");
    assert_eq!(runs_of(&world, &inner).await[0]["dry_run"], true);
}

#[tokio::test]
async fn a_failed_or_refused_run_fails_the_action_and_says_why() {
    let (world, books) = books().await;
    let inner = inner(&world).await;
    let outer = outer(&world, &inner, json!({})).await;
    let run = carried_out(&world, &outer, &json!({"trigger_data": {"who": "refused"}})).await;
    let why = text(&run["actions"][0]["error"]);
    assert!(why.contains("did not complete") && why.contains("no such account"), "{run:#}");
    world.automation("POST", &format!("/{inner}/pause"), &Value::Null).await.expect(200);
    let run = carried_out(&world, &outer, &ADA()).await;
    assert!(text(&run["actions"][0]["error"]).contains("\"Invoice\" is not active"), "{run:#}");
    assert_eq!(runs_of(&world, &inner).await.len(), 1, "no run began");
    world.automation("POST", &format!("/{inner}/activate"), &json!({"version": 1})).await.expect(200);

    // Nothing happened, so the retry asks nothing and runs it.
    let path = format!("/api/{}/runs/{}/retry", world.home.slug, text(&run["id"]));
    let retry = Event::post(&path, &json!({"dry_run": false})).user(&world.home.user_id);
    let retried = world.send("runs", &retry).await.expect(202);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let retried = world.run(text(&retried["run"]["id"])).await.expect(200);
    assert_eq!(
        (&retried["status"], entered(&books).last().unwrap().as_str()),
        (&json!("completed"), "after-ada"),
        "{retried:#}"
    );
}

#[tokio::test]
async fn cancelling_a_run_cancels_the_run_that_it_started() {
    let (world, books) = books().await;
    let inner = inner(&world).await;
    let outer = outer(&world, &inner, json!({})).await;
    let begun = world.run_by_hand(&outer, &ADA()).await.expect(202);
    let batch = world.aws.receive("runs", 0).unwrap();
    assert_eq!(world.run_loop_batch(batch, AMPLE).await, 0);
    assert_eq!(world.cancel_run(text(&begun["id"])).await.expect(200)["status"], "cancelled");
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!((&runs_of(&world, &inner).await[0]["status"], entered(&books).len()), (&json!("cancelled"), 0));
}

#[tokio::test]
async fn data_that_is_null_or_empty_counts_as_absent() {
    let (world, books) = books().await;
    let inner = active(&world, &and(world.manual(&json!([post("enter", "x")])), json!({"name": "Inner"}))).await;
    for (number, data) in [json!(null), json!(""), json!("{{trigger_data.none}}")].iter().enumerate() {
        let call = run_other(&inner, json!({"parameters": {"automation_id": inner, "data": data}}));
        let outer =
            active(&world, &and(world.manual(&json!([call])), json!({"name": format!("Outer {number}")}))).await;
        let run = carried_out(&world, &outer, &json!({"trigger_data": {"none": null}})).await;
        assert_eq!(run["status"], "completed", "{run:#}");
    }
    assert_eq!(entered(&books), ["x", "x", "x"]);
}

/// Calls `inner` with the caller's data.
async fn middle(world: &World, inner: &str) -> String {
    let call = run_other(inner, json!({"parameters": {"automation_id": inner, "data": "{{trigger_data}}"}}));
    active(world, &and(world.manual(&json!([call])), json!({"name": "Middle"}))).await
}

#[tokio::test]
async fn cancelling_a_run_cancels_everything_below_it() {
    let (world, books) = books().await;
    let asking =
        and(world.manual(&json!([post("enter", "x")])), json!({"name": "Asks", "approvals": [{"effect": "any"}]}));
    let inner = active(&world, &asking).await;
    let middle = middle(&world, &inner).await;
    let outer = outer(&world, &middle, json!({})).await;
    let run = carried_out(&world, &outer, &ADA()).await;
    let asked = world.asked().await;
    assert_eq!((&run["status"], asked.len()), (&json!("running"), 1), "{run:#}");

    // The last run cannot be cancelled at first; the same request again ends the rest.
    world.aws.inject(Fault::throttled("*", "approvals").times(9));
    assert!(world.cancel_run(text(&run["id"])).await.status >= 500);
    world.aws.clear_faults();
    world.cancel_run(text(&run["id"])).await.expect(409);
    for id in [&middle, &inner] {
        assert_eq!(runs_of(&world, id).await[0]["status"], "cancelled");
    }
    let approval = world.approvals("GET", &format!("/{}", text(&asked[0]["id"])), &Value::Null).await.expect(200);
    assert_eq!((&approval["status"], entered(&books).len()), (&json!("cancelled"), 0));
}

#[tokio::test]
async fn each_run_of_a_called_automation_has_its_own_limit_of_effects() {
    let (world, books) = books().await;
    let once = and(
        world.manual(&json!([post("enter", "{{trigger_data.customer}}")])),
        json!({"name": "Invoice", "quotas": {"effects_per_run": 1}}),
    );
    let inner = active(&world, &once).await;
    let call = run_other(&inner, json!({"parameters": {"automation_id": inner, "data": {"customer": "{{who}}"}}}));
    let each = json!([{"id": "all", "for_each": "{{trigger_data.customers}}", "as": "who", "actions": [call]}]);
    let outer = active(&world, &and(world.manual(&each), json!({"name": "Orders"}))).await;
    let run = carried_out(&world, &outer, &json!({"trigger_data": {"customers": ["ada", "grace", "mary"]}})).await;
    assert_eq!(
        (&run["status"], entered(&books)),
        (&json!("completed"), vec!["ada".to_owned(), "grace".to_owned(), "mary".to_owned()]),
        "{run:#}"
    );
}

fn run_row(world: &World, id: &Value) -> Value {
    let rows = world.aws.rows("automation_runs");
    rows.into_iter().find(|row| row["id"] == *id && row["part"] == "run").unwrap()
}

#[tokio::test]
async fn a_caller_is_kept_no_longer_than_its_history_unless_the_called_run_pauses() {
    let (world, _) = books().await;
    let slow = json!([{"id": "wait", "wait": {"minutes": 60 * 24 * 20}}, post("enter", "x")]);
    let inner = active(&world, &and(world.manual(&slow), json!({"name": "Slow"}))).await;
    let outer = outer(&world, &inner, json!({})).await;
    let begun = world.run_by_hand(&outer, &ADA()).await.expect(202);
    let kept = run_row(&world, &begun["id"])["expires_at"].clone();
    world.deliver_runs().await;
    let mut waiting = run_row(&world, &begun["id"]);
    let until = waiting["time_from"].clone();
    assert_eq!(waiting["expires_at"], kept, "{waiting:#}");

    // Two weeks later, the caller looks whether the called run is over.
    let day_ago = shared::models::Timestamp::now().as_millis() - 24 * 60 * 60 * 1_000;
    waiting["time_from"] = json!(shared::models::Timestamp::from_millis(day_ago));
    waiting["expires_at"] = json!(day_ago / 1_000 + 2 * 24 * 60 * 60);
    world.aws.put("automation_runs", &waiting);
    put_back(&world);
    world.deliver_runs().await;
    let later = run_row(&world, &begun["id"]);
    assert!(text(&later["time_from"]) >= text(&until), "{later:#}");
    assert!(later["expires_at"].as_i64() > waiting["expires_at"].as_i64(), "{later:#}");
    let parts = world.aws.rows("automation_runs").into_iter().filter(|row| row["id"] == begun["id"]);
    assert!(parts.map(|row| row["expires_at"].as_i64()).min().unwrap() > waiting["expires_at"].as_i64());
}

#[tokio::test]
async fn the_time_of_a_caller_goes_on_when_the_called_run_is_over() {
    let (world, _) = books().await;
    let inner = inner(&world).await;
    let outer = outer(&world, &inner, json!({})).await;
    let run = carried_out(&world, &outer, &ADA()).await;
    let row = run_row(&world, &run["id"]);
    assert!(text(&row["time_from"]) <= text(&row["finished_at"]), "{row:#}");
}

#[tokio::test]
async fn a_rule_of_the_caller_asks_before_the_other_automation_runs() {
    let (world, books) = books().await;
    let inner = inner(&world).await;
    let outer = outer(&world, &inner, json!({"approvals": [{"effect": "sms"}]})).await;
    let run = carried_out(&world, &outer, &ADA()).await;
    assert_eq!((&run["status"], entered(&books).len()), (&json!("waiting_for_approval"), 0));
    let asked = world.asked().await;
    assert_eq!(asked[0]["tool"], "call_automation");
    world.approvals("POST", &format!("/{}/approve", text(&asked[0]["id"])), &Value::Null).await.expect(200);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(entered(&books), ["ada", "after-ada"]);
}

#[tokio::test]
async fn a_called_prompt_gives_back_its_result() {
    let (world, books) = books().await;
    let mut prompt = world.manual(&json!([]));
    prompt.as_object_mut().unwrap().remove("actions");
    let prompt = and(
        prompt,
        json!({"name": "Think", "prompt": "Name {{trigger_data.customer}}.", "schema": {"type": "string"}, "fingerprints": {}}),
    );
    let inner = active(&world, &prompt).await;
    let call = run_other(&inner, json!({"output_as": "named"}));
    let outer = active(&world, &world.manual(&json!([call, post("then", "{{named}}")]))).await;
    world.llm.script([Turn::text("```js\nreturn finalResponse();\n```"), Turn::text("\"grace\"")]);
    let run = carried_out(&world, &outer, &ADA()).await;
    assert_eq!((&run["status"], entered(&books)), (&json!("completed"), vec!["grace".to_owned()]), "{run:#}");
}

#[tokio::test]
async fn circles_unknown_ids_and_depth_are_refused_before_they_run() {
    let (world, _books) = books().await;
    let first = inner(&world).await;
    let place = "/actions/0/parameters/automation_id";
    let calling = |id: &str, name: &str| and(world.manual(&json!([run_other(id, json!({}))])), json!({"name": name}));
    let nobody = "0192f0c1-7a3e-7c4d-9d52-3f1c8f0a1b2c";
    for (id, code) in [
        (nobody, "unknown_automation"),
        ("{{trigger_data.id}}", "template_not_allowed"),
        ("Invoice", "template_not_allowed"),
    ] {
        let answer = world.deploy(&calling(id, "Wrong")).await;
        assert_eq!((answer.status, &told(&answer.body)[0]), (422, &format!("{place} {code}")), "{}", answer.body);
    }
    let theirs = world.automation_as(&world.other, "POST", "", &calling(&first, "Theirs")).await;
    assert_eq!(told(&theirs.body), [format!("{place} unknown_automation")], "another organization's");

    let second = active(&world, &calling(&first, "Second")).await;
    let third = active(&world, &calling(&second, "Third")).await;
    let fourth = active(&world, &calling(&third, "Fourth")).await;
    let fifth = world.deploy(&calling(&fourth, "Fifth")).await;
    assert_eq!((fifth.status, told(&fifth.body)), (422, vec![format!("{place} too_large")]), "{}", fifth.body);

    let etag = format!("\"{}\"", world.automation_row(&first).await.revision);
    let circle = world.put_automation(&first, &etag, &calling(&third, "Invoice")).await;
    assert_eq!((circle.status, told(&circle.body)), (422, vec![format!("{place} circular_run")]));
    let message = text(&circle.body["diagnostics"][0]["message"]);
    assert!(message.contains(r#""Invoice" runs "Third" runs "Second" runs "Invoice""#), "{message}");

    // An automation that is not active is a warning until its caller is activated.
    let waiting =
        world.deploy(&and(world.manual(&json!([post("a", "one")])), json!({"name": "Later"}))).await.expect(201);
    let saved = world.deploy(&calling(text(&waiting["automation"]["id"]), "Early")).await;
    assert_eq!((saved.status, told(&saved.body)), (201, vec![format!("{place} inactive_automation")]));
    let activate = format!("/{}/activate", text(&saved.body["automation"]["id"]));
    let refused = world.automation("POST", &activate, &json!({"version": 1})).await.expect(422);
    assert_eq!(told(&refused), [format!("{place} inactive_automation")]);
}

/// The called run acts, then pauses; its caller is cancelled.
#[tokio::test]
async fn a_retry_asks_before_a_called_run_that_may_have_acted_is_run_again() {
    let (world, books) = books().await;
    let pause = json!({"id": "pause", "wait": {"minutes": 600}});
    let actions = json!([post("enter", "{{trigger_data.customer}}"), pause]);
    let inner = active(&world, &and(world.manual(&actions), json!({"name": "Invoice"}))).await;
    let outer = outer(&world, &inner, json!({})).await;
    let run = carried_out(&world, &outer, &ADA()).await;
    assert_eq!((&run["status"], entered(&books)), (&json!("running"), vec!["ada".to_owned()]), "{run:#}");
    world.cancel_run(text(&run["id"])).await;
    world.deliver_runs().await;
    let children = runs_of(&world, &inner).await;
    assert_eq!((children.len(), &children[0]["status"]), (1, &json!("cancelled")), "{children:#?}");

    let path = format!("/api/{}/runs/{}/retry", world.home.slug, text(&run["id"]));
    let retry = async |body: Value| world.send("runs", &Event::post(&path, &body).user(&world.home.user_id)).await;
    let refused = retry(json!({"dry_run": false})).await.expect(422);
    assert!(text(&refused["detail"]).contains("to act again: invoice"), "{refused}");
    world.deliver_runs().await;
    assert_eq!((entered(&books), runs_of(&world, &inner).await.len()), (vec!["ada".to_owned()], 1));
    // A person says yes to that.
    retry(json!({"dry_run": false, "confirm_unknown": ["invoice"]})).await.expect(202);
    world.deliver_runs().await;
    assert_eq!((entered(&books).len(), runs_of(&world, &inner).await.len()), (2, 2));
}

#[tokio::test]
async fn outputs_with_hidden_fields_are_hidden_in_the_caller() {
    let (world, books) = books().await;
    let inner = inner(&world).await;
    let outer = outer(&world, &inner, json!({})).await;
    let begun = world.run_by_hand(&outer, &ADA()).await.expect(202);
    for _ in 0..2 {
        let batch = world.aws.receive("runs", 0).unwrap();
        assert_eq!(world.run_loop_batch(batch, AMPLE).await, 0);
    }
    // As if the author of the tool had marked a field.
    let rows = world.aws.rows("automation_runs");
    let done = rows.iter().find(|row| row["action_id"] == "enter").unwrap();
    world.aws.put("automation_runs", &and(done.clone(), json!({"redact": ["result.entered"]})));
    world.deliver_runs().await;
    let run = world.run(text(&begun["id"])).await.expect(200);
    assert_eq!((&run["status"], &run["actions"][0]["output"]), (&json!("completed"), &json!("[redacted]")), "{run:#}");
    assert_eq!(entered(&books), ["ada", "after-ada"], "the caller goes on with the value");
}

#[tokio::test]
async fn data_that_is_no_object_starts_nothing() {
    let (world, _books) = books().await;
    let inner = inner(&world).await;
    let parameters = json!({"automation_id": inner, "data": "{{trigger_data.who}}"});
    let outer = active(&world, &world.manual(&json!([run_other(&inner, json!({"parameters": parameters}))]))).await;
    let run = carried_out(&world, &outer, &ADA()).await;
    assert!(text(&run["actions"][0]["error"]).contains("data must be an object, not text"), "{run:#}");
    assert_eq!(runs_of(&world, &inner).await.len(), 0);
}

/// Definitions that changed after their check: the run itself refuses the circle.
#[tokio::test]
async fn a_circle_that_no_check_saw_ends_at_its_second_turn() {
    let (world, books) = books().await;
    let inner = inner(&world).await;
    let outer = outer(&world, &inner, json!({})).await;
    let version =
        world.aws.rows("automation_versions").into_iter().find(|row| row["automation_id"] == inner.as_str()).unwrap();
    let mut definition: Value = serde_json::from_str(text(&version["definition"])).unwrap();
    definition["actions"][0] = run_other(&outer, json!({}));
    definition["fingerprints"] = json!({"call_automation": "built-in"});
    let checked =
        world.aws.rows("automation_versions").into_iter().find(|row| row["automation_id"] == outer.as_str()).unwrap();
    let changed = and(version, json!({"definition": definition.to_string(), "checked": checked["checked"]}));
    world.aws.put("automation_versions", &changed);
    let run = carried_out(&world, &outer, &ADA()).await;
    assert!(text(&run["actions"][0]["error"]).contains("led to this run"), "{run:#}");
    assert_eq!((runs_of(&world, &outer).await.len(), runs_of(&world, &inner).await.len()), (1, 1));
    assert_eq!(entered(&books).iter().filter(|entry| *entry == "ada").count(), 0);
}
