//! Personal data ends: by time, at the end of a call, and on request.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::large_futures,
    reason = "a test says what is wrong and stops"
)]

mod live_calls;
mod resumed_erasures;

use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{
    Answer, Event, Options, Template, Tenant, World, ai_sms, api_request,
    automation::AMPLE,
    logs::Logs,
    phone, sms_without_call,
    standins::{Fault, llm::Turn, twilio},
};

const DAY: i64 = 24 * 60 * 60;

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is not text"))
}

async fn ask(world: &World, tenant: &Tenant, method: &str, path: &str) -> Answer {
    let function = path.trim_start_matches('/').split('/').next().unwrap();
    let event = Event::new(method, &format!("/api/{}{path}", tenant.slug)).user(&tenant.user_id);
    world.send(function, &event).await
}

async fn delete(world: &World, path: &str) -> Answer {
    ask(world, &world.home, "DELETE", path).await
}

fn erasure(world: &World, body: &Value) -> Event {
    Event::post(&format!("/api/{}/erasures", world.home.slug), body).user(&world.home.user_id)
}

async fn erase(world: &World, number: &str) -> Value {
    world.send("erasures", &erasure(world, &json!({"phone_number": number}))).await.expect(200)
}

/// Makes the home organization's user a plain member.
fn as_member(world: &World) {
    let home = &world.home;
    let row = json!({"user_id": home.user_id, "organization_id": home.organization_id, "role": "member"});
    world.aws.put("organization_members", &row);
}

/// VAPI reports a status of the call.
async fn told(world: &World, call: &str, status: &str) {
    let message = json!({"message": {
        "type": "status-update", "status": status,
        "call": {"id": call, "monitor": {"controlUrl": format!("https://phone.vapi.ai/{call}/control")}},
    }});
    let bearer = format!("Bearer {}", world.options.webhook_bearer.clone().unwrap());
    let event = Event::post("/api/vapi/events", &message).header("authorization", &bearer);
    world.send("calls", &event).await.expect(200);
}

/// A world with a lookup at the call's start, and a call that has just come in.
async fn looked_up() -> (World, String) {
    let crm = twilio::start("127.0.0.1:0".parse().unwrap(), twilio::Options::default()).unwrap();
    crm.inject(Fault::body(json!({"name": "Ana Ruiz"})).times(9));
    let world = World::with(Options { open_hosts: vec![crm.address().to_string()], ..Options::default() }).await;
    let mut config = api_request("GET", &crm.url);
    config["execute_on_call_start"] = json!(true);
    config["attach_to_agent"] = json!(false);
    world.attached(&config).await;
    world.send("call-start", &world.incoming(&world.caller(&phone(1)))).await.expect(200);
    let call = text(&world.aws.rows("calls")[0]["id"]).to_owned();
    // The service lives as long as the tool is called.
    Box::leak(Box::new(crm));
    (world, call)
}

/// Runs an automation's prompt to its end.
async fn run_over(world: &World, prompt: &str, tools: &[&Value]) -> String {
    let tools: Vec<&Value> = tools.iter().map(|tool| &tool["id"]).collect();
    let run = world.start_run(&json!({"prompt": prompt, "tools": tools})).await.expect(202);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    text(&run["id"]).to_owned()
}

fn done() -> [Turn; 2] {
    [Turn::text("````tool\nreturn finalResponse();\n````"), Turn::text("\"done\"")]
}

fn parts(world: &World, run: &str) -> usize {
    world.aws.rows("automation_runs").iter().filter(|part| part["id"] == run).count()
}

// ------------------------------------------------------------------------------------------------------- by time

/// A new table must declare whether it can hold personal data; if so, DynamoDB must expire its rows.
#[test]
fn every_table_with_something_of_a_person_drops_its_rows() {
    let written_by_the_organization = [
        "agent_tools",
        "agents",
        "automation_versions",
        "automations",
        "deployed_triggers",
        // Digests of numbers, which outlive the numbers.
        "do_not_call",
        "hooks",
        "intents",
        "knowledge_bases",
        "knowledge_entries",
        "organization_members",
        "organizations",
        "phone_numbers",
        // Hashes of a source's items, and its last error, without numbers and addresses.
        "schedules",
        "tools",
    ];
    let the_same_for_everybody = ["service_capabilities", "service_tools", "services"];
    for (table, time_to_live) in Template::read().tables("stack") {
        let name = text(&table["TableName"]).trim_start_matches("stack-").to_owned();
        let kept = written_by_the_organization.iter().chain(&the_same_for_everybody).any(|kept| *kept == name);
        assert_eq!(time_to_live.as_deref(), (!kept).then_some("expires_at"), "{name}");
    }
}

/// Calls, executions, runs, events, threads and remembered values.
fn deleted(counts: [u64; 6]) -> Value {
    let [calls, executions, runs, events, threads, remembered] = counts;
    json!({
        "calls": calls, "executions": executions, "runs": runs, "events": events, "threads": threads, "remembered": remembered,
    })
}

#[tokio::test]
async fn a_call_is_kept_for_ninety_days_and_not_shown_after_that() {
    let world = World::start().await;
    world.send("call-start", &world.incoming(&world.caller(&phone(1)))).await.expect(200);
    let row = world.aws.rows("calls").remove(0);
    let kept = row["expires_at"].as_i64().unwrap() - Timestamp::now().as_seconds();
    assert!((90 * DAY - 60..=90 * DAY).contains(&kept), "{kept} s");
    let path = format!("/calls/{}", text(&row["id"]));
    assert_eq!(ask(&world, &world.home, "GET", &path).await.status, 200);
    // DynamoDB has not dropped it yet.
    world.aws.change("calls", text(&row["id"]), json!({"expires_at": Timestamp::now().as_seconds() - DAY}));
    assert_eq!(ask(&world, &world.home, "GET", &path).await.status, 404);
    assert_eq!(world.calls("").await.expect(200)["items"], json!([]));
}

#[tokio::test]
async fn an_execution_whose_time_is_over_is_not_read() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    world.call_tool(&world.call(&tool, json!({"text": "Hello"}))).await.result();
    let row = world.aws.rows("executions").remove(0);
    let (organization, id) = (text(&row["organization_id"]).parse().unwrap(), text(&row["id"]).parse().unwrap());
    let executions = &world.process.execute.executor.executions;
    assert!(executions.get(organization, id).await.is_ok());
    world.aws.change("executions", text(&row["id"]), json!({"expires_at": Timestamp::now().as_seconds() - DAY}));
    assert!(matches!(executions.get(organization, id).await, Err(shared::Error::NotFound(_))));
}

#[tokio::test]
async fn a_run_whose_time_is_over_is_not_listed() {
    let world = World::start().await;
    let run = world.start_run(&json!({"prompt": "Hello"})).await.expect(202);
    let mut row = world.aws.rows("automation_runs").into_iter().find(|part| part["part"] == "run").unwrap();
    assert_eq!(world.runs("").await.expect(200)["items"][0]["id"], run["id"]);
    row["expires_at"] = json!(Timestamp::now().as_seconds() - DAY);
    world.aws.put("automation_runs", &row);
    assert_eq!(world.runs("").await.expect(200)["items"], json!([]));
    assert_eq!(world.run(text(&run["id"])).await.status, 404);
}

// ---------------------------------------------------------------------------------------------- when a call is over

#[tokio::test]
async fn results_of_a_calls_start_are_kept_until_they_are_told() {
    let (world, call) = looked_up().await;
    let messages = world.aws.messages("start-tools");
    assert_eq!(world.run_queued().await, 0);
    let row = world.aws.row("calls", &call).unwrap();
    assert!(row["context_injected_at"].is_string(), "{row}");
    let results = row["results"].as_object().unwrap();
    assert_eq!(results.values().collect::<Vec<_>>(), [&Value::Null], "that it came is all that is left");
    assert!(!row.to_string().contains("Ana Ruiz"), "{row}");
    // Repeated messages send nothing again.
    let said = world.vapi.requests().len();
    for message in messages {
        world.aws.post("start-tools", &message.to_string());
    }
    assert_eq!(world.run_queued().await, 0);
    assert_eq!(world.vapi.requests().len(), said);
}

#[tokio::test]
async fn a_call_that_is_over_has_neither_a_control_url_nor_results() {
    let (world, call) = looked_up().await;
    told(&world, &call, "in-progress").await;
    let row = world.aws.row("calls", &call).unwrap();
    let execution = text(&row["on_call_start"][0]["execution_id"]);
    world.aws.change("calls", &call, json!({"results": {execution: "CRM: {\"name\":\"Ana Ruiz\"}"}}));
    assert!(world.aws.row("calls", &call).unwrap()["control_url"].is_string());
    told(&world, &call, "ended").await;
    let row = world.aws.row("calls", &call).unwrap();
    assert_eq!((row.get("control_url"), &row["results"]), (None, &json!({})), "{row}");
    // VAPI's messages come in any order.
    told(&world, &call, "in-progress").await;
    assert!(world.aws.row("calls", &call).unwrap().get("control_url").is_none());
}

#[tokio::test]
async fn a_result_that_comes_when_the_call_is_over_is_not_kept_on_its_row() {
    let (world, call) = looked_up().await;
    told(&world, &call, "ended").await;
    assert_eq!(world.run_queued().await, 0);
    let row = world.aws.row("calls", &call).unwrap();
    assert_eq!((&row["results"], &row["context_error"]), (&json!({}), &json!("the call is over")), "{row}");
    let timeline = world.calls(&format!("/{call}")).await.expect(200)["timeline"].clone();
    assert!(timeline.as_array().unwrap().iter().any(|moment| moment["event"] == "tool_finished"), "{timeline}");
}

#[tokio::test]
async fn the_history_names_a_caller_by_a_hash_of_its_own_for_each_organization() {
    let world = World::start().await;
    let (ours, theirs) = (world.attached(&ai_sms()).await, their_tool(&world).await);
    let of = async |tool: &Value, tenant: &Tenant| {
        let mut call = world.call(tool, json!({"text": "Hello"}));
        call.customer_number = phone(7);
        call.phone_number.clone_from(&tenant.phone_number);
        call.assistant_id.clone_from(&tenant.assistant_id);
        world.call_tool(&call).await.result();
        let row = world.executions().into_iter().find(|row| row["tool_id"] == tool["id"]).unwrap();
        assert!(!row.to_string().contains(&phone(7)[2..]), "{row}");
        text(&row["caller"]).to_owned()
    };
    assert_ne!(of(&ours, &world.home).await, of(&theirs, &world.other).await);
}

// ------------------------------------------------------------------------------------------- deletion on request

#[tokio::test]
async fn a_call_is_deleted_with_the_executions_in_it() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let [deleted, kept] = ["One", "Two"].map(|word| world.call(&tool, json!({"text": word})));
    for call in [&deleted, &kept] {
        world.incoming_call(&world.home, call.call_id.as_ref().unwrap(), &call.customer_number);
        world.call_tool(call).await.result();
    }
    let path = format!("/calls/{}", deleted.call_id.unwrap());
    assert_eq!(ask(&world, &world.other, "DELETE", &path).await.status, 404);
    as_member(&world);
    assert_eq!(delete(&world, &path).await.status, 403);
    assert_eq!((world.aws.rows("calls").len(), world.executions().len()), (2, 2));
    let row = json!({
        "user_id": world.home.user_id, "organization_id": world.home.organization_id, "role": "admin",
    });
    world.aws.put("organization_members", &row);
    let answer = delete(&world, &path).await;
    assert_eq!((answer.status, answer.body), (204, Value::Null));
    let left = kept.call_id.unwrap();
    assert_eq!(world.aws.rows("calls")[0]["id"], left);
    assert_eq!(world.executions().iter().map(|row| text(&row["call_id"])).collect::<Vec<_>>(), [left]);
    assert_eq!(delete(&world, &path).await.status, 404);
}

#[tokio::test]
async fn a_call_that_only_vapi_knows_is_deleted_by_its_executions() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let call = world.call(&tool, json!({"text": "Hello"}));
    world.call_tool(&call).await.result();
    assert_eq!(delete(&world, &format!("/calls/{}", call.call_id.unwrap())).await.status, 204);
    assert!(world.executions().is_empty());
    assert_eq!(delete(&world, "/calls/unknown").await.status, 404);
}

#[tokio::test]
async fn a_call_with_more_executions_than_a_batch_takes_is_deleted_whole() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let call = world.call(&tool, json!({"text": "Hello"}));
    world.call_tool(&call).await.result();
    let row = world.executions().remove(0);
    for number in 0..60 {
        let mut copy = row.clone();
        copy["id"] = json!(uuid::Uuid::now_v7().to_string());
        // Expired rows, which nobody sees any more, are deleted too.
        copy["expires_at"] = json!(if number % 2 == 0 { 1 } else { 4_000_000_000_u64 });
        world.aws.put("executions", &copy);
    }
    assert_eq!(delete(&world, &format!("/calls/{}", call.call_id.unwrap())).await.status, 204);
    assert!(world.executions().is_empty());
}

#[tokio::test]
async fn a_run_is_deleted_with_its_steps_and_executions_when_it_is_over() {
    let world = World::start().await;
    let sms = world.tool(&sms_without_call(&world.home)).await;
    let name = text(&sms["name"]);
    world
        .llm
        .script([Turn::text(&format!("````tool\nreturn {name}({{text: \"Hi\"}});\n````"))].into_iter().chain(done()));
    let run = run_over(&world, "Text Ada.", &[&sms]).await;
    let waiting = world.start_run(&json!({"prompt": "Wait"})).await.expect(202);
    let executions = world.executions();
    assert!(parts(&world, &run) > 6 && executions.len() == 1, "{executions:?}");
    assert_eq!(executions[0]["run_id"], run);
    let shown = world.list(&format!("/tools/{}/executions", text(&sms["id"]))).await.expect(200);
    assert_eq!(shown["items"][0]["run_id"], run);

    let path = format!("/runs/{run}");
    assert_eq!(ask(&world, &world.other, "DELETE", &path).await.status, 404);
    let early = delete(&world, &format!("/runs/{}", text(&waiting["id"]))).await;
    assert_eq!(early.status, 409);
    assert!(text(&early.body["detail"]).contains("cancel it first"), "{}", early.body);
    let answer = delete(&world, &path).await;
    assert_eq!((answer.status, answer.body), (204, Value::Null));
    assert_eq!((parts(&world, &run), world.executions().len()), (0, 0));
    assert_eq!(delete(&world, &path).await.status, 404);

    world.cancel_run(text(&waiting["id"])).await.expect(200);
    assert_eq!(delete(&world, &format!("/runs/{}", text(&waiting["id"]))).await.status, 204);
    assert_eq!(world.aws.rows("automation_runs").len(), 0);
    as_member(&world);
    assert_eq!(delete(&world, &path).await.status, 403);
}

#[tokio::test]
async fn a_deletion_that_was_broken_off_is_gone_on_with() {
    let world = World::start().await;
    world.llm.script(done());
    let run = run_over(&world, "Hello", &[]).await;
    let path = format!("/runs/{run}");
    world.aws.inject(tests::Fault::throttled("BatchWriteItem", "automation_runs"));
    assert_eq!(delete(&world, &path).await.status, 503);
    assert_eq!(world.run(&run).await.status, 404, "it is not shown any more");
    assert_eq!(delete(&world, &path).await.status, 204);
    assert_eq!(parts(&world, &run), 0);
}

#[tokio::test]
async fn an_erasure_finishes_a_deletion_that_was_broken_off() {
    let world = World::start().await;
    world.llm.script(done());
    let run = run_over(&world, &format!("Call {} back.", phone(1)), &[]).await;
    world.aws.inject(tests::Fault::throttled("BatchWriteItem", "automation_runs"));
    assert_eq!(world.send("erasures", &erasure(&world, &json!({"phone_number": phone(1)}))).await.status, 503);
    // As if the part with the number had been deleted by then.
    let mut prompt = world.aws.rows("automation_runs").into_iter().find(|part| part["part"] == "prompt").unwrap();
    prompt["prompt"] = json!("");
    world.aws.put("automation_runs", &prompt);
    assert_eq!(erase(&world, &phone(1)).await["complete"], true);
    assert_eq!(parts(&world, &run), 0);
}

/// A tool of the other organization's agent.
async fn their_tool(world: &World) -> Value {
    let tool = world.create_as(&world.other, &ai_sms()).await.expect(201);
    world.attach_as(&world.other, &world.other.agent_id, text(&tool["id"])).await.expect(201);
    tool
}

/// All data about a caller: a call through us with an execution, a call that only VAPI knows, a call from a line of the
/// organization's own, and two runs; and the same for another caller and another organization.
async fn traces(world: &World) -> Value {
    let tool = world.attached(&ai_sms()).await;
    let theirs = their_tool(world).await;
    for (number, through_us) in [(1, true), (1, false), (2, true), (2, false)] {
        let mut call = world.call(&tool, json!({"text": format!("{number} {through_us}")}));
        call.customer_number = phone(number);
        if through_us {
            world.incoming_call(&world.home, call.call_id.as_ref().unwrap(), &phone(number));
        }
        world.call_tool(&call).await.result();
    }
    let mut elsewhere = world.call(&theirs, json!({"text": "Hello"}));
    elsewhere.customer_number = phone(1);
    elsewhere.phone_number.clone_from(&world.other.phone_number);
    elsewhere.assistant_id.clone_from(&world.other.assistant_id);
    world.incoming_call(&world.other, elsewhere.call_id.as_ref().unwrap(), &phone(1));
    world.call_tool(&elsewhere).await.result();
    tool
}

#[tokio::test]
async fn everything_of_a_number_is_erased_and_nothing_of_another() {
    let world = World::start().await;
    traces(&world).await;
    world.llm.script(done());
    run_over(&world, "Call +1 (415) 555\u{2011}0101 back.", &[]).await;
    let [ask_model, _] = done();
    world.llm.script([ask_model, Turn::text("\"It is 4155550101.\"")]);
    run_over(&world, "Who called?", &[]).await;
    world.llm.script(done());
    let other = run_over(&world, "Call +1 (415) 555-0102 back.", &[]).await;
    let waiting = world.start_run(&json!({"prompt": "Call +14155550101."})).await.expect(202);

    let logs = Logs::capture();
    let first = erase(&world, &phone(1)).await;
    assert!(!first.to_string().contains(&phone(1)[2..]) && !logs.text().contains(&phone(1)[2..]), "{first}");
    drop(logs);
    assert_eq!(first["deleted"], deleted([1, 2, 2, 0, 0, 0]), "{first}");
    assert_eq!((&first["runs_under_way"], &first["complete"]), (&json!([waiting["id"]]), &json!(false)));
    world.cancel_run(text(&waiting["id"])).await.expect(200);
    let second = erase(&world, &phone(1)).await;
    assert_eq!((&second["deleted"], &second["complete"]), (&deleted([0, 0, 1, 0, 0, 0]), &json!(true)));
    let third = erase(&world, &phone(1)).await;
    assert_eq!((&third["deleted"], &third["complete"]), (&deleted([0, 0, 0, 0, 0, 0]), &json!(true)));

    for table in ["calls", "executions", "automation_runs", "usage"] {
        let ours =
            world.aws.rows(table).into_iter().filter(|row| row["organization_id"] != world.other.organization_id);
        let left = json!(ours.collect::<Vec<_>>()).to_string();
        assert!(!left.contains(&phone(1)[2..]), "{table}: {left}");
    }
    let callers: Vec<Value> = world.aws.rows("calls").iter().map(|row| row["caller_phone_number"].clone()).collect();
    assert!(
        callers.contains(&json!(phone(2))) && callers.contains(&json!(phone(1))) && callers.len() == 2,
        "{callers:?}"
    );
    assert_eq!(world.executions().len(), 3, "two of the other caller, one of the other organization");
    assert!(parts(&world, &other) > 0);
}

/// A message to a person who never called: the number is found as a recipient, fixed or chosen by the model.
#[tokio::test]
async fn a_number_is_found_as_the_recipient_of_an_execution() {
    let world = World::start().await;
    let mut config = ai_sms();
    config["recipients"] = json!({
        "mode": "array_extendable", "fixedValues": [phone(5)], "aiExtension": {"enabled": true, "prompt": "x", "required": false},
    });
    config["label"] = json!("Tell the office");
    let tool = world.attached(&config).await;
    let said = json!({"text": "Ana, your results are in.", "recipients": ["+1 (415) 555-0106"]});
    world.call_tool(&world.call(&tool, said)).await.result();
    world.call_tool(&world.call(&tool, json!({"text": "Another."}))).await.result();
    config["async"] = json!(true);
    config["label"] = json!("Tell the office later");
    let later = world.attached(&config).await;
    world.call_tool(&world.call(&later, json!({"text": "Later.", "recipients": [phone(6)]}))).await.result();
    let mut elsewhere = ai_sms();
    elsewhere["recipients"] = json!({"mode": "fixed", "value": [phone(6)]});
    let theirs = world.create_as(&world.other, &elsewhere).await.expect(201);
    world.attach_as(&world.other, &world.other.agent_id, text(&theirs["id"])).await.expect(201);
    let mut call = world.call(&theirs, json!({"text": "Theirs"}));
    call.phone_number.clone_from(&world.other.phone_number);
    call.assistant_id.clone_from(&world.other.assistant_id);
    world.call_tool(&call).await.result();
    assert_eq!(world.executions().len(), 4);
    // A waiting message is found before it is sent.
    let erased = erase(&world, &phone(6)).await;
    assert_eq!((&erased["deleted"]["executions"], &erased["complete"]), (&json!(2), &json!(true)), "{erased}");
    let left = json!(world.executions()).to_string();
    assert!(!left.contains("Ana, your results") && left.contains("Another.") && left.contains("Theirs"), "{left}");
    assert_eq!(erase(&world, &phone(5)).await["deleted"]["executions"], 1);
    assert_eq!(erase(&world, &phone(5)).await["deleted"]["executions"], 0);
    let ours = world.aws.rows("executions");
    let ours: Vec<_> = ours.iter().filter(|row| row["organization_id"] != json!(world.other.organization_id)).collect();
    assert!(ours.is_empty(), "nothing is left of them: {ours:?}");
}

/// The entries by which an execution is found are deleted with it.
#[tokio::test]
async fn a_deleted_call_leaves_nothing_of_its_recipients() {
    let world = World::start().await;
    let mut config = ai_sms();
    config["recipients"] = json!({"mode": "fixed", "value": [phone(5), phone(6)]});
    let tool = world.attached(&config).await;
    let call = world.call(&tool, json!({"text": "Hello"}));
    world.call_tool(&call).await.result();
    assert_eq!(world.aws.rows("executions").len(), 3);
    assert_eq!(delete(&world, &format!("/calls/{}", call.call_id.unwrap())).await.status, 204);
    assert_eq!(world.aws.rows("executions").len(), 0);
}

#[tokio::test]
async fn events_that_name_a_number_are_erased_with_the_runs_that_they_began() {
    let world = World::start().await;
    world.slack_service();
    let automation = world.active(&world.urgent_messages()).await;
    let hook = world.slack_hook().await;
    for (id, said) in [
        ("Ev1", format!("urgent: call {}", phone(1))),
        ("Ev2", format!("lunch with {}?", phone(1))),
        ("Ev3", format!("urgent: call {}", phone(2))),
    ] {
        world.slack_says(&hook, id, &said).await.expect(200);
    }
    let theirs = json!({"service": "Slack", "secret": "theirs"});
    let theirs = world.hooks(&world.other, "POST", "", &theirs).await.expect(201);
    let message = tests::slack_message("Ev4", &format!("call {}", phone(1)));
    world.deliver_signed(&theirs, tests::webhooks::Signer::Slack("theirs"), &message).await.expect(200);
    for run in world.runs_of(&automation) {
        world.cancel_run(text(&run["id"])).await.expect(200);
    }
    let done = erase(&world, &phone(1)).await;
    assert_eq!(done["deleted"], deleted([0, 0, 1, 2, 0, 0]), "{done}");
    let left = world.aws.rows("events");
    let of_home = |row: &&Value| row["organization_id"] == world.home.organization_id.as_str();
    assert_eq!((left.len(), left.iter().filter(of_home).count()), (2, 1));
    assert_eq!(world.runs_of(&automation).len(), 1);
}

#[tokio::test]
async fn calls_to_a_number_are_erased_with_those_from_it() {
    let world = World::start().await;
    traces(&world).await;
    let done = erase(&world, &world.home.phone_number).await;
    assert_eq!(done["deleted"], deleted([2, 2, 0, 0, 0, 0]), "{done}");
    let left = world.aws.rows("calls");
    assert_eq!((left.len(), &left[0]["organization_id"]), (1, &json!(world.other.organization_id)));
}

#[tokio::test]
async fn an_erasure_looks_through_more_runs_than_a_page_holds() {
    let world = World::start().await;
    let run = world.start_run(&json!({"prompt": "Hello"})).await.expect(202);
    world.cancel_run(text(&run["id"])).await.expect(200);
    let made = world.aws.rows("automation_runs");
    for number in 0..60 {
        let id = uuid::Uuid::now_v7().to_string();
        for part in &made {
            let mut part = part.clone();
            part["id"] = json!(id);
            if part["part"] == "prompt" && number % 3 == 0 {
                part["prompt"] = json!(format!("Call {} back", phone(5)));
            }
            world.aws.put("automation_runs", &part);
        }
    }
    let done = erase(&world, &phone(5)).await;
    assert_eq!((&done["deleted"]["runs"], &done["complete"]), (&json!(20), &json!(true)), "{done}");
    assert_eq!(world.aws.rows("automation_runs").len(), 41 * 2);
}

#[tokio::test]
async fn only_an_administrator_may_erase_and_every_wrong_field_is_named() {
    let world = World::start().await;
    let wrong = json!({"phone_number": "0151 234", "cursor": "x", "all": true});
    let answer = world.send("erasures", &erasure(&world, &wrong)).await;
    assert_eq!(answer.wrong_fields(), ["all", "cursor", "phone_number"]);
    as_member(&world);
    let answer = world.send("erasures", &erasure(&world, &json!({"phone_number": phone(1)}))).await;
    assert_eq!(answer.status, 403, "{}", answer.body);
}

#[tokio::test]
async fn a_conversation_that_names_the_number_is_erased() {
    let world = World::start().await;
    let say = async |thread: &str, message: &str| {
        world.llm.script([Turn::text(r#"{"tool": "none"}"#), Turn::text("I see.")]);
        world.chat_with(&json!({"message": message, "thread_id": thread})).await.expect(200);
    };
    say("about-her", &format!("Her number is {}", phone(1))).await;
    say("other", "What is new?").await;
    let done = erase(&world, &phone(1)).await;
    assert_eq!(done["deleted"], deleted([0, 0, 0, 0, 1, 0]), "{done}");
    let user = &world.home.user_id;
    let left = world.threads(user, "GET", "").await.expect(200);
    assert_eq!(left["items"].as_array().unwrap().len(), 1, "{left}");
    assert_eq!(left["items"][0]["thread_id"], "other");
}

/// The request of a waiting action is stored nowhere else, also where the automation itself names the number.
#[tokio::test]
async fn an_approval_about_a_number_is_erased_with_its_run() {
    let world = World::start().await;
    world.ledger_service("https://ledger.example");
    let action = json!({
        "id": "a", "tool": "ledger_post", "approval": true, "parameters": {"entry": "x", "note": format!("Call {}", phone(1))},
    });
    let automation = world.activate(&world.manual(&json!([action]))).await;
    let run = world.start_automation(&automation, "once", &json!({})).await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert!(text(&world.aws.rows("approvals")[0]["arguments"]).contains(&phone(1)));
    let waits = erase(&world, &phone(1)).await;
    assert_eq!(waits["runs_under_way"], json!([run.id]), "{waits}");
    world.cancel_run(&run.id.to_string()).await.expect(200);
    assert_eq!(erase(&world, &phone(2)).await["deleted"]["runs"], 0);
    assert_eq!(erase(&world, &phone(1)).await["deleted"]["runs"], 1);
    assert_eq!((world.aws.rows("approvals").len(), world.runs_of(&automation.id.to_string()).len()), (0, 0));
}
