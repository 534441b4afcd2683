//! The round trips that callers wait for, counted against the design's table.
//!
//! Every DynamoDB operation is equally slow, and the test counts waves instead of time, so a slow machine changes
//! nothing.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use std::time::Duration;

use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{
    Answer, Event, Options, World, ai_sms, api_request,
    aws::Operation,
    phone, preemptive_sms,
    sequential_round_trips::{summary, waves},
    slack_action,
    standins::{Fault, twilio},
};

/// Far more than the time between operations that start together.
const DELAY: Duration = Duration::from_millis(150);

/// The operations before the answer, and all of them.
struct Asked {
    answer: Answer,
    waited: Vec<Operation>,
    all: Vec<Operation>,
}

async fn measured(world: &World, function: &str, event: &Event) -> Asked {
    world.aws.clear_operations();
    world.vapi.clear_requests();
    world.twilio.clear_requests();
    world.pipedream.clear_requests();
    world.aws.slow_down(DELAY);
    let answer = world.send(function, event).await;
    world.aws.slow_down(Duration::ZERO);
    let all = world.aws.dynamodb();
    let waited = all.iter().filter(|operation| operation.started < answer.at).cloned().collect();
    Asked { answer, waited, all }
}

fn moment(at: &str) -> Timestamp {
    at.parse().unwrap()
}

#[tokio::test]
async fn execute_of_a_reading_tool_waits_for_one_read_before_and_none_after() {
    let crm = twilio::start("127.0.0.1:0".parse().unwrap(), twilio::Options::default()).unwrap();
    crm.inject(Fault::body(json!({"name": "Ana"})).times(9));
    let world = World::with(Options { open_hosts: vec![crm.address().to_string()], ..Options::default() }).await;
    let tool = world.attached(&api_request("GET", &crm.url)).await;
    world.call_tool(&world.call(&tool, json!({}))).await.result();
    crm.clear_requests();

    let Asked { answer, waited, all } =
        measured(&world, "execute", &world.vapi_event(&world.call(&tool, json!({})))).await;
    answer.result();
    assert_eq!(summary(&waited), [["GetItem calls", "GetItem tools", "Query phone_numbers"]]);
    let effect = moment(&crm.requests()[0].at);
    assert!(waited.iter().all(|operation| operation.to <= effect), "all of it before the effect");
    let afterwards = [["PutItem executions", "UpdateItem usage"]];
    assert_eq!(summary(&all)[1..], afterwards, "the history is written after the answer, and the budget counted");
}

/// A tool's secrets cost one request per process, between the reads and the effect.
#[tokio::test]
async fn execute_reads_the_secrets_of_a_tool_once_a_process_and_asks_for_none_where_there_are_none() {
    let crm = twilio::start("127.0.0.1:0".parse().unwrap(), twilio::Options::default()).unwrap();
    crm.inject(Fault::body(json!({"name": "Ana"})).times(9));
    let mut world = World::with(Options { open_hosts: vec![crm.address().to_string()], ..Options::default() }).await;
    let plain = world.attached(&api_request("POST", &crm.url)).await;
    let mut config = api_request("POST", &crm.url);
    config["headers"] = json!({"X-Api-Key": "s3cret-key"});
    let secret = world.attached(&config).await;
    world.restart();
    for (tool, reads) in [(&plain, 0), (&secret, 1), (&secret, 0)] {
        crm.clear_requests();
        let event = world.vapi_event(&world.call(tool, json!({})));
        let Asked { answer, waited, .. } = measured(&world, "execute", &event).await;
        answer.result();
        let before = vec!["GetItem calls", "GetItem tools", "Query phone_numbers", "UpdateItem idempotency"];
        assert_eq!(summary(&waited), [before, vec!["UpdateItem idempotency"]]);
        let asked = world.aws.operations();
        let of_tools = |operation: &&Operation| operation.on.iter().any(|on| on.contains("/organizations/tools/"));
        let asked: Vec<_> = asked.iter().filter(of_tools).collect();
        assert_eq!(asked.len(), reads, "{asked:?}");
        let effect = moment(&crm.requests()[0].at);
        assert!(asked.iter().all(|operation| operation.to <= effect));
    }
}

#[tokio::test]
async fn execute_of_a_query_reads_the_base_after_the_tool_and_no_entries() {
    let world = World::start().await;
    let base = world.knowledge_base(&json!([]), &json!([{"text": "House by the river"}])).await;
    let tool = json!({"type": "query", "label": "Find a home", "knowledge_base_id": base["id"]});
    let tool = world.attached(&tool).await;
    let event = world.vapi_event(&world.call(&tool, json!({"query": "river"})));
    world.send("execute", &event).await.result();
    let Asked { answer, waited, .. } = measured(&world, "execute", &event).await;
    assert_eq!(answer.result()["matched"], 1);
    let beside = vec!["GetItem calls", "GetItem tools", "Query phone_numbers"];
    assert_eq!(summary(&waited), [beside, vec!["GetItem knowledge_bases"]]);
}

#[tokio::test]
async fn execute_with_an_effect_waits_for_one_read_before_and_one_write_after() {
    let world = World::start().await;
    for (tool, at) in
        [(world.attached(&ai_sms()).await, "Twilio"), (world.attached(&slack_action(&world.home)).await, "Pipedream")]
    {
        // Secrets and Pipedream's token are read once per process.
        world.call_tool(&world.call(&tool, json!({"text": "Hello"}))).await.result();
        let event = world.vapi_event(&world.call(&tool, json!({"text": "Hello"})));
        let Asked { answer, waited, all } = measured(&world, "execute", &event).await;
        answer.result();
        assert_eq!(
            summary(&waited),
            [
                vec!["GetItem calls", "GetItem tools", "Query phone_numbers", "UpdateItem idempotency"],
                vec!["UpdateItem idempotency"],
            ],
            "{at}",
        );
        let upstream = [world.twilio.requests(), world.pipedream.requests()].concat();
        assert_eq!(upstream.len(), 1, "{at} is asked once");
        let effect = moment(&upstream[0].at);
        let [before, after] = [0, 1].map(|wave| waves(&waited)[wave].clone());
        assert!(before.iter().all(|operation| operation.to <= effect), "{at}");
        assert!(after.iter().all(|operation| operation.from >= effect), "{at}");
        assert_eq!(summary(&all)[2..], [["PutItem executions", "UpdateItem usage"]]);
    }
}

/// Its effects are those of the first call, which is known only with the row.
#[tokio::test]
async fn an_effect_in_a_call_to_which_the_caller_returned_waits_for_one_more() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    world.call_tool(&world.call(&tool, json!({"text": "Hello"}))).await.result();
    world.incoming_call(&world.home, "again", &phone(1));
    world.aws.change("calls", "again", json!({"returned_from": "first", "former_calls": ["first"]}));
    let mut call = world.call(&tool, json!({"text": "Hello"}));
    call.call_id = Some("again".to_owned());
    let Asked { answer, waited, .. } = measured(&world, "execute", &world.vapi_event(&call)).await;
    answer.result();
    let beside = vec!["GetItem calls", "GetItem tools", "Query phone_numbers", "UpdateItem idempotency"];
    let claim = vec!["DeleteItem idempotency", "UpdateItem idempotency"];
    assert_eq!(summary(&waited), [beside, claim, vec!["UpdateItem idempotency"]]);
}

/// The claim is made before the tool is known, under the expected key.
#[tokio::test]
async fn an_effect_in_odd_words_waits_for_one_more_only_where_the_words_cannot_be_foreseen() {
    let world = World::start().await;
    let mut config = ai_sms();
    config["recipients"]["aiExtension"] = json!({"enabled": true, "prompt": "Others", "required": false});
    let tool = world.attached(&config).await;
    world.call_tool(&world.call(&tool, json!({"text": "Hello"}))).await.result();
    let beside = vec!["GetItem calls", "GetItem tools", "Query phone_numbers", "UpdateItem idempotency"];
    let again = vec!["DeleteItem idempotency", "UpdateItem idempotency"];
    let after = vec!["UpdateItem idempotency"];
    for (arguments, expected) in [
        (json!({"text": "Hello", "urgent": true}), vec![beside.clone(), after.clone()]),
        (json!({"text": " Hello", "recipients": []}), vec![beside.clone(), after.clone()]),
        (json!({"text": "Hello", "recipients": [phone(1)]}), vec![beside, again, after]),
    ] {
        let event = world.vapi_event(&world.call(&tool, arguments.clone()));
        let Asked { answer, waited, .. } = measured(&world, "execute", &event).await;
        answer.result();
        assert_eq!(summary(&waited), expected, "{arguments}");
    }
}

/// A single recipient is claimed in parallel with the read of the tool, for fixed and model recipients alike. Several
/// are claimed after it.
#[tokio::test]
async fn a_message_to_several_waits_for_one_more_round_trip_however_many_they_are() {
    let world = World::start().await;
    let mut config = ai_sms();
    config["recipients"]["aiExtension"] = json!({"enabled": true, "prompt": "Others", "required": false});
    let both = world.attached(&config).await;
    config["recipients"] = json!({"mode": "ai", "prompt": "Whom", "schema": {"type": "array"}});
    let models = world.attached(&config).await;
    for tool in [&both, &models] {
        world.call_tool(&world.call(tool, json!({"text": "Hello", "recipients": [phone(7)]}))).await.result();
    }
    let beside = vec!["GetItem calls", "GetItem tools", "Query phone_numbers", "UpdateItem idempotency"];
    let claims = |count: usize| vec!["UpdateItem idempotency"; count];
    let formatted = "+1 (415) 555-0102";
    assert_eq!(phone(2), "+14155550102");
    for (tool, recipients, expected) in [
        (&models, vec![phone(2)], vec![beside.clone(), claims(1)]),
        (&models, vec![formatted.to_owned()], vec![beside.clone(), claims(1)]),
        (&models, vec![phone(3), phone(2)], vec![beside.clone(), claims(2), claims(3)]),
        (&models, vec!["no number".to_owned(), phone(2)], vec![beside.clone(), claims(1), claims(2)]),
        (&both, vec![phone(2)], vec![beside.clone(), claims(2), claims(3)]),
        (&both, vec![phone(4), formatted.to_owned(), phone(3)], vec![beside.clone(), claims(4), claims(5)]),
        // The model repeats the author's recipient, so the whole set's claim differs from the expected one and is made with the
        // others.
        (
            &both,
            vec![phone(1), phone(2)],
            vec![beside.clone(), [vec!["DeleteItem idempotency"], claims(3)].concat(), claims(3)],
        ),
    ] {
        let event = world.vapi_event(&world.call(tool, json!({"text": "Hello", "recipients": recipients})));
        let Asked { answer, waited, .. } = measured(&world, "execute", &event).await;
        answer.expect(200);
        assert_eq!(summary(&waited), expected, "{recipients:?}");
    }
    // Every recipient has the message already.
    let call = world.call(&models, json!({"text": "Hello", "recipients": [phone(2), phone(3)]}));
    world.call_tool(&call).await.result();
    let mut fewer = call.clone();
    fewer.arguments.insert("recipients".to_owned(), json!([phone(3)]));
    let Asked { waited, .. } = measured(&world, "execute", &world.vapi_event(&fewer)).await;
    assert_eq!(summary(&waited), [beside], "it is told from the record");
}

#[tokio::test]
async fn execute_of_a_limited_tool_waits_for_one_more_however_many_limits_it_has() {
    let world = World::start().await;
    for (limits, counted) in [
        (json!({"per_call": 9}), "UpdateItem idempotency"),
        (json!({"per_call": 9, "per_hour": 99}), "TransactWriteItems idempotency"),
    ] {
        let mut config = ai_sms();
        config["limits"] = limits;
        let tool = world.attached(&config).await;
        world.call_tool(&world.call(&tool, json!({"text": "Hello"}))).await.result();
        let call = world.call(&tool, json!({"text": "Hello"}));
        let Asked { answer, waited, .. } = measured(&world, "execute", &world.vapi_event(&call)).await;
        answer.result();
        let before = vec!["GetItem calls", "GetItem tools", "Query phone_numbers", "UpdateItem idempotency"];
        assert_eq!(summary(&waited), [before, vec![counted], vec!["UpdateItem idempotency"]]);
        let Asked { answer, waited, .. } = measured(&world, "execute", &world.vapi_event(&call)).await;
        answer.result();
        assert_eq!(waves(&waited).len(), 1, "a replay is not counted: {:?}", summary(&waited));
    }
}

#[tokio::test]
async fn execute_of_a_repeated_effect_waits_for_one_round_trip() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let call = world.call(&tool, json!({"text": "Hello"}));
    world.call_tool(&call).await.result();
    let Asked { answer, waited, .. } = measured(&world, "execute", &world.vapi_event(&call)).await;
    answer.result();
    assert_eq!(waves(&waited).len(), 1, "{:?}", summary(&waited));
    assert!(world.twilio.requests().is_empty());
}

#[tokio::test]
async fn attach_waits_for_lock_and_read_then_vapi_twice_then_one_transaction() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    let path = format!("/api/{}/agents/{}/tools/attach", world.home.slug, world.home.agent_id);
    let event = Event::post(&path, &json!({"tool_id": tool["id"]})).user(&world.home.user_id);
    let Asked { answer, waited, all } = measured(&world, "attach", &event).await;
    answer.expect(201);
    assert_eq!(
        summary(&waited),
        [
            vec!["Query organization_members", "Query organizations"],
            vec!["GetItem agent_tools", "GetItem tools", "UpdateItem agents"],
            vec!["PutItem intents"],
            vec!["TransactWriteItems agent_tools+agents+audit_entries+intents+tools"],
        ],
    );
    assert_eq!(all.len(), waited.len(), "nothing follows the answer");
    let asked: Vec<String> = world.vapi.requests().iter().map(|request| request.method.clone()).collect();
    // The tool is requested in parallel with the assistant.
    assert_eq!(asked, ["GET", "GET", "PATCH"]);
    let waves = waves(&waited);
    let at: Vec<_> = world.vapi.requests().iter().map(|request| moment(&request.at)).collect();
    assert!(at.iter().all(|at| waves[1].iter().all(|operation| operation.to <= *at) && *at <= waves[3][0].from));
    assert!(
        at[0] <= waves[2][0].to && waves[2][0].to <= at[2],
        "the intent is recorded beside the GETs, before the PATCH"
    );
}

#[tokio::test]
async fn create_waits_for_access_name_vapi_and_one_transaction() {
    let world = World::start().await;
    let event =
        |config: &Value| Event::post(&format!("/api/{}/tools", world.home.slug), config).user(&world.home.user_id);
    let Asked { answer, waited, .. } = measured(&world, "create-tool", &event(&ai_sms())).await;
    answer.expect(201);
    let expected = [
        vec!["Query organization_members", "Query organizations"],
        vec!["TransactWriteItems intents+tools"],
        vec!["TransactWriteItems audit_entries+intents+tools"],
    ];
    assert_eq!(summary(&waited), expected);
    assert_eq!(world.vapi.requests().len(), 1);

    let mut chosen = ai_sms();
    chosen["label"] = json!("From the main line");
    chosen["from"] = json!({"type": "specific_number", "phone_number_id": world.home.phone_number_id});
    let Asked { answer, waited, .. } = measured(&world, "create-tool", &event(&chosen)).await;
    answer.expect(201);
    assert!(waves(&waited).len() <= 4, "{:?}", summary(&waited));
}

#[tokio::test]
async fn list_waits_for_access_and_one_query() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let get = |path: String| Event::get(&format!("/api/{}{path}", world.home.slug)).user(&world.home.user_id);
    for (path, most) in [
        ("/tools".to_owned(), 2),
        (format!("/tools/{}", tool["id"].as_str().unwrap()), 2),
        (format!("/tools/{}/executions", tool["id"].as_str().unwrap()), 2),
        (format!("/agents/{}/tools", world.home.agent_id), 3),
    ] {
        let Asked { answer, waited, .. } = measured(&world, "list-tools", &get(path.clone())).await;
        answer.expect(200);
        assert_eq!(waves(&waited).len(), most, "{path}: {:?}", summary(&waited));
    }
}

/// For a call through Switchboard a transfer costs no more than any effect; for other calls VAPI is asked first.
#[tokio::test]
async fn a_transfer_reads_more_only_when_the_call_did_not_come_through_us() {
    let world = World::start().await;
    let target = json!({"type": "number", "number": "+14155550199"});
    let tool = world.attached(&json!({"type": "transfer_call", "label": "Connect", "target": target})).await;
    world.call_tool(&world.call(&tool, json!({}))).await.result();
    let before = vec!["GetItem calls", "GetItem tools", "Query phone_numbers", "UpdateItem idempotency"];
    let after = vec!["UpdateItem idempotency"];

    let call = world.call(&tool, json!({}));
    let event = world.vapi_event(&call);
    let call_id = call.call_id.as_ref().unwrap();
    world.incoming_call(&world.home, call_id, &call.customer_number);
    let url = world.vapi.call(call_id).unwrap()["monitor"]["controlUrl"].clone();
    world.aws.change("calls", call_id, json!({"control_url": url}));
    let Asked { answer, waited, .. } = measured(&world, "execute", &event).await;
    answer.result();
    assert_eq!(summary(&waited), [before.clone(), after.clone()]);
    let asked: Vec<_> = world.vapi.requests().into_iter().map(|request| (request.method, request.path)).collect();
    assert_eq!(asked, [("POST".to_owned(), format!("/{call_id}/control"))]);

    let event = world.vapi_event(&world.call(&tool, json!({})));
    let Asked { answer, waited, .. } = measured(&world, "execute", &event).await;
    answer.result();
    // The account is read for each request, so a key that was just removed is not used.
    let account = vec!["GetItem organizations"];
    assert_eq!(summary(&waited), [before, account, vec!["GetItem agents"], vec!["GetItem agents"], after]);
    assert_eq!(world.vapi.requests().len(), 2);
}

/// Besides VAPI's own time the caller waits for two round trips, regardless of the number of tools.
#[tokio::test]
async fn a_call_that_comes_in_waits_for_its_number_and_for_its_record() {
    let world = World::start().await;
    for _ in 0..3 {
        world.attached(&preemptive_sms()).await;
    }
    world.send("call-start", &world.incoming(&world.caller(&phone(1)))).await.expect(200);
    let Asked { answer, waited, .. } = measured(&world, "call-start", &world.incoming(&world.caller(&phone(1)))).await;
    answer.expect(200);
    let summary = summary(&waited);
    assert_eq!(summary[0], ["GetItem phone_numbers", "UpdateItem idempotency"]);
    assert_eq!(summary.last().unwrap(), &["PutItem calls", "UpdateItem idempotency"]);
    assert_eq!(summary[1..summary.len() - 1], [["Query agent_tools"], ["BatchGetItem tools"]], "beside VAPI");
}

/// With `wait_ms` the caller waits for as long as it says, and then for one write more: the results of the start become the
/// call's.
#[tokio::test]
async fn a_call_that_waits_for_its_tools_is_begun_in_one_round_trip_more() {
    let world = World::start().await;
    let at_vapi = world.vapi.set_number(&world.home.phone_number, &world.home.assistant_id).unwrap();
    let number = json!({"vapi_phone_number_id": at_vapi, "wait_ms": 1_200});
    world.aws.change("phone_numbers", &world.home.phone_number_id, number);
    let mut lookup = api_request("GET", "https://example.com/");
    lookup["attach_to_agent"] = json!(false);
    lookup["execute_on_call_start"] = json!(true);
    world.attached(&lookup).await;
    let Asked { answer, waited, .. } = measured(&world, "call-start", &world.incoming(&world.caller(&phone(1)))).await;
    answer.expect(200);
    let summary = summary(&waited);
    assert_eq!(summary[0], ["GetItem phone_numbers", "UpdateItem idempotency"]);
    assert_eq!(
        summary[1],
        ["GetItem agents", "GetItem organizations", "Query agent_tools"],
        "VAPI is asked without a read"
    );
    assert_eq!(summary[2..4], [["BatchGetItem tools"], ["PutItem calls"]]);
    let begun = summary.iter().position(|wave| wave.contains(&"UpdateItem calls".to_owned()));
    let begun = begun.unwrap_or_else(|| panic!("{summary:?}"));
    assert!(summary[4..begun].iter().all(|wave| *wave == ["GetItem calls"]), "{summary:?}");
    assert_eq!(summary[begun + 1..], [["PutItem calls", "UpdateItem idempotency"]]);
}

#[tokio::test]
async fn the_runs_of_a_call_wait_for_access_and_one_query() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let call = world.call(&tool, json!({"text": "Hello"}));
    world.call_tool(&call).await.result();
    let path = format!("/api/{}/calls/{}/executions", world.home.slug, call.call_id.unwrap());
    let Asked { answer, waited, .. } = measured(&world, "calls", &Event::get(&path).user(&world.home.user_id)).await;
    assert_eq!(answer.expect(200)["items"].as_array().unwrap().len(), 1);
    let access = vec!["Query organization_members", "Query organizations"];
    assert_eq!(summary(&waited), [access, vec!["GetItem calls", "Query executions"]]);
}

#[tokio::test]
async fn a_list_of_calls_and_a_timeline_wait_for_access_and_one_round_trip() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let call = world.call(&tool, json!({"text": "Hello"}));
    let id = call.call_id.clone().unwrap();
    world.incoming_call(&world.home, &id, &call.customer_number);
    world.call_tool(&call).await.result();
    let access = vec!["Query organization_members", "Query organizations"];
    for (path, then) in
        [(String::new(), vec!["Query calls"]), (format!("/{id}"), vec!["GetItem calls", "Query executions"])]
    {
        let event = Event::get(&format!("/api/{}/calls{path}", world.home.slug)).user(&world.home.user_id);
        let Asked { answer, waited, .. } = measured(&world, "calls", &event).await;
        answer.expect(200);
        assert_eq!(summary(&waited), [access.clone(), then]);
    }
}

#[tokio::test]
async fn an_event_of_vapis_waits_for_two_reads_and_one_write() {
    let world = World::start().await;
    world.incoming_call(&world.home, "call-1", "+14155550101");
    for (call, written) in [("call-1", Some("UpdateItem calls")), ("unknown", None)] {
        let message = json!({"message": {"type": "status-update", "status": "in-progress", "call": {"id": call}}});
        let bearer = format!("Bearer {}", world.options.webhook_bearer.clone().unwrap());
        let event = Event::post("/api/vapi/events", &message).header("authorization", &bearer);
        let Asked { answer, waited, .. } = measured(&world, "calls", &event).await;
        answer.expect(200);
        let reads = [vec!["GetItem calls"], vec!["GetItem organizations"]];
        let expected: Vec<_> = reads.into_iter().chain(written.map(|write| vec![write])).collect();
        assert_eq!(summary(&waited), expected, "{call}");
    }
}

#[tokio::test]
async fn the_end_of_a_call_is_queued_once_and_reads_nothing_more() {
    let world = World::start().await;
    world.incoming_call(&world.home, "call-1", "+14155550101");
    let message = json!({"message": {"type": "status-update", "status": "ended", "call": {"id": "call-1"}}});
    let bearer = format!("Bearer {}", world.options.webhook_bearer.clone().unwrap());
    let event = Event::post("/api/vapi/events", &message).header("authorization", &bearer);
    for _ in 0..2 {
        let Asked { answer, waited, .. } = measured(&world, "calls", &event).await;
        answer.expect(200);
        assert_eq!(summary(&waited), [["GetItem calls"], ["GetItem organizations"], ["UpdateItem calls"]]);
        assert_eq!(world.aws.messages("scheduled").len(), 1);
    }
}

/// The budget check is part of the transaction that stores the run.
#[tokio::test]
async fn a_run_waits_for_access_and_its_row_and_nothing_for_its_budgets() {
    let world = World::start().await;
    let path = format!("/api/{}/runs", world.home.slug);
    let event = Event::post(&path, &json!({"prompt": "Hello"})).user(&world.home.user_id);
    let Asked { answer, waited, .. } = measured(&world, "runs", &event).await;
    answer.expect(202);
    let access = vec!["Query organization_members", "Query organizations"];
    assert_eq!(summary(&waited), [access, vec!["TransactWriteItems audit_entries+automation_runs+usage"]]);
}

/// The tools of services take one query, in parallel with services and capabilities; several services add only their
/// tools.
#[tokio::test]
async fn discovery_reads_each_table_once_behind_the_access() {
    let world = World::start().await;
    for service in ["Slack", "Gmail"] {
        world.service(service, Some(&service.to_lowercase()));
        for number in 0..60 {
            let name = format!("{}_tool_{number}", service.to_lowercase());
            world.service_tool(service, &name, "Does one thing.", &["text"]);
        }
    }
    let access = vec!["Query organization_members", "Query organizations"];
    let home = &world.home;
    let get = |path: &str| Event::get(&format!("/api/{}/{path}", home.slug)).user(&home.user_id);
    let overview = get("discover/initial_md_fetch").query("service", "slack").query("service", "GMAIL");
    let names: Vec<String> = (0..60).map(|number| format!("slack_tool_{number}")).collect();
    let data = Event::post(&format!("/api/{}/discover/fetch_tool_data", home.slug), &json!({"tool_names": names}));
    let search = get("discover/search").query("q", "thing");
    let of_services = vec![
        "BatchGetItem service_capabilities",
        "BatchGetItem services",
        "Query service_tools",
        "Query service_tools",
    ];
    for (event, waves) in [
        (overview, vec![access.clone(), of_services]),
        (
            data.user(&home.user_id),
            vec![access.clone(), vec!["BatchGetItem service_tools", "Query tools", "Scan services"]],
        ),
        // The first search of a process fills its cache.
        (
            search.clone(),
            vec![
                access.clone(),
                vec!["Query tools", "Scan services"],
                vec!["BatchGetItem service_capabilities", "Query service_tools", "Query service_tools"],
            ],
        ),
        (search, vec![access.clone(), vec!["Query tools", "Scan services"]]),
        (get("services"), vec![access.clone(), vec!["Scan services"], vec!["BatchGetItem service_capabilities"]]),
    ] {
        let Asked { answer, waited, all } = measured(&world, "discover", &event).await;
        answer.expect(200);
        assert_eq!(summary(&waited), waves, "{event:?}");
        assert_eq!(summary(&all), waves, "nothing follows the answer");
    }
}
