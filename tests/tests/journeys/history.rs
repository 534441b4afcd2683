//! History of a tool's and a call's executions: access, order, redaction.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use serde_json::{Value, json};
use shared::{models::Timestamp, store::Cursor};
use tests::{
    Answer, Event, Options, World, ai_sms, api_request,
    logs::Logs,
    phone,
    secret_names::{HARMLESS, SECRET, assert_shown, texts},
    slack_action,
    standins::{Fault, Standin, twilio, vapi::ToolCall},
};
use uuid::Uuid;

fn id(row: &Value) -> &str {
    row["id"].as_str().unwrap()
}

/// The executions of a tool, as its organization sees them.
async fn of_tool(world: &World, tool: &Value, query: &str) -> Value {
    world.list(&format!("/tools/{}/executions{query}", id(tool))).await.expect(200)
}

async fn of_call(world: &World, call: &ToolCall) -> Value {
    world.executions_of_call(call.call_id.as_ref().unwrap()).await.expect(200)
}

/// The newest run of a tool.
async fn newest(world: &World, tool: &Value) -> Value {
    of_tool(world, tool, "?limit=1").await["items"][0].clone()
}

/// Every field of this name, in order.
fn all<'a>(page: &'a Value, field: &str) -> Vec<&'a Value> {
    page["items"].as_array().unwrap().iter().map(|row| &row[field]).collect()
}

fn address() -> Standin<twilio::Twilio> {
    twilio::start("127.0.0.1:0".parse().unwrap(), twilio::Options::default()).unwrap()
}

async fn world_with(open: &Standin<twilio::Twilio>) -> World {
    World::with(Options { open_hosts: vec![open.address().to_string()], ..Options::default() }).await
}

/// An execution as a row, `days` days old.
fn run(world: &World, tool: &Value, call: &str, days: i64, number: i64) -> Value {
    let at = Timestamp::from_millis(Timestamp::now().as_millis() - days * 86_400_000 + number);
    let row = json!({
        // Ids of version 7 begin with the time.
        "id": format!("{:08x}-{:04x}-7000-8000-{number:012x}", at.as_millis() >> 16, at.as_millis() & 0xffff),
        "organization_id": world.home.organization_id, "tool_id": tool["id"], "call_id": call, "trigger": "conversation",
        "organization_call": format!("{}#{call}", world.home.organization_id), "status": "succeeded",
        "arguments": {"n": number}, "started_at": at, "duration_ms": 7, "expires_at": at.as_seconds() + 30 * 86_400,
    });
    world.aws.put("executions", &row);
    row
}

#[tokio::test]
async fn the_runs_of_a_tool_are_shown_newest_first() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let mut calls = Vec::new();
    for number in 0..3 {
        let call = world.call(&tool, json!({"text": format!("Hello {number}")}));
        world.call_tool(&call).await.result();
        calls.push(call);
    }
    let page = of_tool(&world, &tool, "").await;
    let texts: Vec<&Value> = page["items"].as_array().unwrap().iter().map(|row| &row["arguments"]["text"]).collect();
    assert_eq!(texts, ["Hello 2", "Hello 1", "Hello 0"]);
    assert_eq!(page["next_cursor"], Value::Null);
    let row = &page["items"][2];
    assert_eq!((&row["tool_id"], &row["call_id"]), (&tool["id"], &json!(calls[0].call_id)));
    assert_eq!(
        (&row["trigger"], &row["status"], &row["error"]),
        (&json!("conversation"), &json!("succeeded"), &Value::Null)
    );
    assert_eq!((&row["queued_at"], &row["ignored_arguments"]), (&Value::Null, &json!([])));
    assert!(row["duration_ms"].is_u64() && row["started_at"].is_string(), "{row}");
    for hidden in ["organization_id", "expires_at", "organization_call"] {
        assert!(row.get(hidden).is_none(), "{hidden} is ours");
    }
}

#[tokio::test]
async fn pages_follow_each_other_and_lose_nothing() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let other = world.attached(&ai_sms()).await;
    for number in 0..7 {
        run(&world, &tool, "call-1", 1, number);
        run(&world, &other, "call-2", 1, 100 + number);
    }
    for path in [format!("/tools/{}/executions", id(&tool)), "call".to_owned()] {
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let query = format!("?limit=3{cursor}");
            let page = match path.as_str() {
                "call" => world.executions_of_call(&format!("call-1{query}")).await.expect(200),
                path => world.list(&format!("{path}{query}")).await.expect(200),
            };
            seen.extend(page["items"].as_array().unwrap().iter().map(|row| row["arguments"]["n"].as_i64().unwrap()));
            // Newer executions do not shift older ones between pages.
            run(&world, &tool, "call-1", 0, 50 + i64::try_from(seen.len()).unwrap());
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        seen.retain(|number| *number < 50);
        assert_eq!(seen, [6, 5, 4, 3, 2, 1, 0], "{path}");
    }
}

#[tokio::test]
async fn a_wrong_limit_cursor_or_status_is_named() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    for (query, named) in [
        ("limit=0", "limit"),
        ("limit=201", "limit"),
        ("cursor=x", "cursor"),
        ("cursor=MjAyNi0wMS0wMSAx", "cursor"),
        ("status=done", "status"),
        ("status=Failed", "status"),
    ] {
        let of_tool = world.list(&format!("/tools/{}/executions?{query}", id(&tool))).await;
        assert_eq!(of_tool.wrong_fields(), [named], "{query}");
        assert_eq!(world.executions_of_call(&format!("call-1?{query}")).await.wrong_fields(), [named], "{query}");
    }
    of_tool(&world, &tool, "?status=&cursor=").await;
}

#[tokio::test]
async fn runs_of_one_status_are_found_among_many() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    for number in 0..450 {
        let mut row = run(&world, &tool, "call-1", 1, number);
        if number % 150 == 0 {
            row["status"] = json!("failed");
            world.aws.put("executions", &row);
        }
    }
    let numbers = |page: &Value| -> Vec<i64> {
        page["items"].as_array().unwrap().iter().map(|row| row["arguments"]["n"].as_i64().unwrap()).collect()
    };
    let page = of_tool(&world, &tool, "?status=failed&limit=2").await;
    assert_eq!(numbers(&page), [300, 150]);
    let rest = format!("?status=failed&limit=2&cursor={}", page["next_cursor"].as_str().unwrap());
    let rest = of_tool(&world, &tool, &rest).await;
    assert_eq!((numbers(&rest), &rest["next_cursor"]), (vec![0], &Value::Null));
    assert_eq!(of_tool(&world, &tool, "?status=partial").await["items"], json!([]));
}

#[tokio::test]
async fn rows_that_dynamodb_has_not_dropped_yet_are_not_shown() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    run(&world, &tool, "call-1", 31, 1);
    run(&world, &tool, "call-1", 29, 2);
    let page = of_tool(&world, &tool, "?limit=1").await;
    assert_eq!(all(&page, "arguments"), [&json!({"n": 2})]);
    assert_eq!(of_tool(&world, &tool, "").await["items"].as_array().unwrap().len(), 1);
    run(&world, &tool, "call-2", 31, 3);
    world.executions_of_call("call-2").await.expect(404);
}

#[tokio::test]
async fn rows_of_an_older_version_still_show() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let mut row = run(&world, &tool, "call-1", 1, 1);
    row["arguments"] = json!(["recipients", "text"]);
    for later in ["trigger", "call_id", "organization_call"] {
        row.as_object_mut().unwrap().remove(later);
    }
    world.aws.put("executions", &row);
    let shown = newest(&world, &tool).await;
    assert_eq!(shown["arguments"], json!({"recipients": "[not kept]", "text": "[not kept]"}));
    assert_eq!((&shown["result"], &shown["trigger"]), (&Value::Null, &json!("conversation")));
}

#[tokio::test]
async fn a_call_shows_the_runs_of_all_its_tools() {
    let world = World::start().await;
    let (sms, slack) = (world.attached(&ai_sms()).await, world.attached(&slack_action(&world.home)).await);
    let call = world.call(&sms, json!({"text": "Hello"}));
    let other = ToolCall { call_id: call.call_id.clone(), ..world.call(&slack, json!({"text": "New booking"})) };
    world.incoming_call(&world.home, call.call_id.as_ref().unwrap(), &phone(1));
    assert_eq!(of_call(&world, &call).await["items"], json!([]), "it is ours, and nothing ran yet");
    world.call_tool(&call).await.result();
    world.call_tool(&other).await.result();
    world.call_tool(&world.call(&sms, json!({"text": "Another call"}))).await.result();
    let page = of_call(&world, &call).await;
    assert_eq!(all(&page, "tool_id"), [&slack["id"], &sms["id"]]);
    // A deleted tool's executions stay with the call.
    world.delete(&slack).await.expect(200);
    assert_eq!(all(&of_call(&world, &call).await, "tool_id"), [&slack["id"], &sms["id"]]);
    world.list(&format!("/tools/{}/executions", id(&slack))).await.expect(404);
}

#[tokio::test]
async fn a_call_that_came_in_at_vapi_is_known_by_its_runs() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let call = world.call(&tool, json!({"text": "Hello"}));
    world.call_tool(&call).await.result();
    assert!(world.aws.rows("calls").is_empty());
    assert_eq!(all(&of_call(&world, &call).await, "tool_id"), [&tool["id"]]);
    let filtered = format!("{}?status=failed", call.call_id.as_ref().unwrap());
    assert_eq!(world.executions_of_call(&filtered).await.expect(200)["items"], json!([]), "it is there all the same");
    for unknown in [Uuid::now_v7().to_string().as_str(), "no-call", "%00", "x%2fy"] {
        assert_eq!(world.executions_of_call(unknown).await.status, 404, "{unknown}");
    }
}

#[tokio::test]
async fn runs_are_hidden_from_other_organizations() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let call = world.call(&tool, json!({"text": "Hello"}));
    let call_id = call.call_id.clone().unwrap();
    world.call_tool(&call).await.result();
    let path = format!("/tools/{}/executions", id(&tool));
    let unknown = world.list_as(&world.other, &format!("/tools/{}/executions", Uuid::new_v4())).await.expect(404);
    let refused = world.list_as(&world.other, &path).await.expect(404);
    assert_eq!(refused["detail"], unknown["detail"]);
    world.executions_of_call_as(&world.other, &call_id).await.expect(404);

    // A foreign tool that names our call: it is refused, and its execution belongs to the other organization alone.
    let theirs = world.create_as(&world.other, &ai_sms()).await.expect(201);
    world.incoming_call(&world.home, &call_id, &phone(1));
    let bearer = format!("Bearer {}", world.options.webhook_bearer.clone().unwrap());
    let body =
        json!({"text": "Stolen", "metadata": {"callId": call_id, "calledPhoneNumber": world.other.phone_number}});
    let event = Event::post(&format!("/api/tools/{}/execute", id(&theirs)), &body).header("authorization", &bearer);
    world.send("execute", &event).await.sentence();
    assert_eq!(world.executions().len(), 2);
    assert_eq!(all(&of_call(&world, &call).await, "tool_id"), [&tool["id"]]);
    assert_eq!(world.executions_of_call_as(&world.other, &call_id).await.status, 404, "the call is not theirs");
    let page = world.list_as(&world.other, &format!("/tools/{}/executions", id(&theirs))).await.expect(200);
    assert_eq!(all(&page, "tool_id"), [&theirs["id"]]);

    // If the call is unknown, each organization sees its own tools' executions.
    world.aws.delete("calls", &call_id);
    assert_eq!(all(&of_call(&world, &call).await, "tool_id"), [&tool["id"]]);
    let page = world.executions_of_call_as(&world.other, &call_id).await.expect(200);
    assert_eq!(all(&page, "tool_id"), [&theirs["id"]]);
    // A cursor opens nothing.
    let page = of_call(&world, &call).await;
    let cursor = Cursor(id(&page["items"][0]));
    let page = world.executions_of_call_as(&world.other, &format!("{call_id}?cursor={cursor}")).await;
    assert!(page.status == 404 || all(&page.body, "tool_id").iter().all(|id| **id == theirs["id"]), "{}", page.body);
}

#[tokio::test]
async fn an_sms_is_shown_without_its_numbers() {
    let world = World::start().await;
    let mut config = ai_sms();
    config["recipients"]["aiExtension"] = json!({"enabled": true, "prompt": "Others to tell", "required": false});
    let tool = world.attached(&config).await;
    let text = "See you on 2026-03-01 at 15:00. Call (415) 555-0100 or write to ana@example.com.";
    let arguments = json!({"text": text, "recipients": [phone(51)], "Text": "Top secret", "+14155550199": 1});
    world.call_tool(&world.call(&tool, arguments)).await.result();
    let row = newest(&world, &tool).await;
    assert_eq!(
        row["arguments"],
        json!({
            "text": "See you on 2026-03-01 at 15:00. Call [number] or write to [email]", "recipients": ["[number]"],
            "Text": "[ignored]", "[number]": "[ignored]",
        })
    );
    assert_eq!(row["ignored_arguments"], json!(["[number]", "Text"]));
    assert_eq!(row["result"]["sent"], 2);
    for recipient in row["result"]["recipients"].as_array().unwrap() {
        assert_eq!((&recipient["to"], &recipient["state"]), (&json!("[number]"), &json!("sent")));
    }
    nothing_of(&world, &["4155550", "15005550006", "Top secret", "ana@"]);
}

/// Neither the table nor any index holds these.
#[track_caller]
fn nothing_of(world: &World, hidden: &[&str]) {
    let text = json!(world.executions()).to_string();
    for hidden in hidden {
        assert!(!text.contains(hidden), "{hidden} in {text}");
    }
}

#[tokio::test]
async fn an_api_requests_secrets_are_hidden_in_its_answer() {
    let crm = address();
    let world = world_with(&crm).await;
    let mut config = api_request("POST", &format!("{}/customers", crm.url));
    config["headers"] = json!({"Authorization": "Bearer crm-key-1", "x-line": {"mode": "ai", "prompt": "Line"}});
    config["body"] = json!({"api_key": "book-key-2", "room": {"mode": "ai", "prompt": "Room"}, "token": {"mode": "ai", "prompt": "T"}});
    let tool = world.attached(&config).await;
    let answered = json!({
        "echo": {"Authorization": "Bearer crm-key-1", "again": "crm-key-1 and book-key-2"},
        "customer": {"name": "Ana Ruiz", "phone": 4_155_550_101_i64, "email": "ana@example.com", "session_token": "s3ss"},
        "raw": "{\"password\":\"hunter2\",\"tel\":\"+1 415 555 0101\"}", "jwt_in_text": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc",
    });
    crm.inject(Fault::status(200).with_body(answered));
    let arguments = json!({"header_x-line": "+14155550102", "body_room": "terrace", "body_token": "t0ken"});
    world.call_tool(&world.call(&tool, arguments)).await.result();
    let row = newest(&world, &tool).await;
    assert_eq!(
        row["arguments"],
        json!({"header_x-line": "[number]", "body_room": "terrace", "body_token": "[secret]"})
    );
    assert_eq!(
        row["result"],
        json!({
            "echo": {"Authorization": "[secret]", "again": "[secret] and [secret]"},
            "customer": {"name": "Ana Ruiz", "phone": "[number]", "email": "[email]", "session_token": "[secret]"},
            "raw": "{\"password\":\"[secret]\",\"tel\":\"[number]\"}", "jwt_in_text": "[secret]",
        })
    );
    crm.inject(Fault::status(404).with_body(json!({"message": "Nobody has +14155550101 under book-key-2"})));
    world
        .call_tool(&world.call(&tool, json!({"header_x-line": "1", "body_room": "x", "body_token": "t"})))
        .await
        .sentence();
    let error = newest(&world, &tool).await["error"].as_str().unwrap().to_owned();
    assert!(error.ends_with("Nobody has [number] under [secret]"), "{error}");
    nothing_of(&world, &["crm-key-1", "book-key-2", "4155550", "hunter2", "s3ss", "t0ken", "eyJ"]);
}

#[tokio::test]
async fn every_name_of_a_secret_hides_its_value() {
    let crm = address();
    let world = world_with(&crm).await;
    for (names, expected) in [(&SECRET[..], false), (&HARMLESS[..], true)] {
        let (given, answered) = (texts(names, "given"), texts(names, "answered"));
        let mut config = api_request("POST", &crm.url);
        config["body"] = names.iter().map(|name| ((*name).to_owned(), json!({"mode": "ai", "prompt": "p"}))).collect();
        let tool = world.attached(&config).await;
        let said: Vec<String> = given.iter().map(|(name, text)| format!("{name}={}", text.as_str().unwrap())).collect();
        crm.inject(
            Fault::status(200)
                .with_body(json!({"list": [answered], "said": said, "echo": given.values().collect::<Vec<_>>()})),
        );
        let arguments = given.iter().map(|(name, text)| (format!("body_{name}"), text.clone())).collect();
        world.call_tool(&world.call(&tool, arguments)).await.result();
        let row = newest(&world, &tool).await;
        assert_eq!(row["result"]["list"][0].as_object().unwrap().len(), names.len(), "all of it was kept: {row}");
        assert_shown(&row["arguments"], &given, expected);
        assert_shown(&row["result"]["list"], &answered, expected);
        assert_shown(&row["result"], &given, expected);
    }
}

/// Configured values that an address repeats are hidden from the model.
#[tokio::test]
async fn a_hidden_value_does_not_come_back_to_the_model() {
    let crm = address();
    let world = world_with(&crm).await;
    let mut config = api_request("POST", &format!("{}/customers?sig=of-the-url", crm.url));
    let fixed = texts(&SECRET, "fixed");
    config["body"] = json!(fixed);
    config["headers"] = json!({"x-line": "of-the-header"});
    let tool = world.attached(&config).await;
    let echo = json!({"sent": fixed.values().collect::<Vec<_>>(), "more": "of-the-url, of-the-header, of the house"});
    crm.inject(Fault::status(200).with_body(echo));
    let told = world.call_tool(&world.call(&tool, json!({}))).await;
    assert_shown(&told.body, &fixed, false);
    assert_eq!(told.result()["more"], "[secret], [secret], of the house");
    crm.inject(Fault::status(400).with_body(json!({"error": "what is fixed-0-text?"})));
    let told = world.call_tool(&world.call(&tool, json!({}))).await;
    assert!(told.sentence().ends_with("what is [secret]?"), "{}", told.body);

    let mut config = slack_action(&world.home);
    config["pipedreamMetadata"]["dynamicPropsId"] = json!("dyp_1");
    config["preloadedParams"] = json!({"bot_token": "of-the-bot"});
    let tool = world.attached(&config).await;
    let call = world.call(&tool, json!({"text": "x"}));
    world
        .pipedream
        .inject(Fault::status(200).with_body(json!({"exports": {"$summary": "by of-the-bot"}, "ret": "of-the-bot"})));
    let told = world.call_tool(&call).await;
    assert_eq!(told.result(), "[secret]", "{}", told.body);
    assert!(!told.body.to_string().contains("of-the-bot"), "{}", told.body);
}

#[tokio::test]
async fn marked_fields_are_hidden_in_arguments_and_results() {
    let crm = address();
    let world = world_with(&crm).await;
    let mut config = api_request("POST", &crm.url);
    config["body"] = json!({
        "guest": {"mode": "ai", "prompt": "Guest", "schema": {"type": "object"}}, "why": {"mode": "ai", "prompt": "Why"},
    });
    config["redact"] = json!(["body_why", "body_guest.name", "result.customers.town"]);
    let tool = world.attached(&config).await;
    assert_eq!(tool["config_metadata"]["redact"], json!(["body_guest.name", "body_why", "result.customers.town"]));
    let given = json!({"body_guest": {"name": "Ana Ruiz", "party": 2}, "body_why": "Root canal"});
    let answered = json!({"said": "Ana Ruiz: Root canal", "customers": [{"town": "Faro", "since": 2019}]});
    crm.inject(Fault::status(200).with_body(answered.clone()));
    world.call_tool(&world.call(&tool, given.clone())).await.result();
    let row = newest(&world, &tool).await;
    assert_eq!(row["arguments"], json!({"body_guest": {"name": "[redacted]", "party": 2}, "body_why": "[redacted]"}));
    let result = json!({"said": "[redacted]: [redacted]", "customers": [{"town": "[redacted]", "since": 2019}]});
    assert_eq!(row["result"], result);
    nothing_of(&world, &["Ana", "Root", "Faro"]);

    // The new marks hold from the next execution.
    assert_eq!(world.update(&tool, &json!({"redact": ["body_whose"]})).await.wrong_fields(), ["redact[0]"]);
    let tool = world.update(&tool, &json!({"redact": ["result"]})).await.expect(200);
    crm.inject(Fault::status(409).with_body(json!({"message": "Eva Lima was first"})));
    world.call_tool(&world.call(&tool, given.clone())).await.sentence();
    assert_eq!(newest(&world, &tool).await["error"], "[redacted]", "it may quote the result");
    let tool = world.update(&tool, &json!({"redact": ["*"]})).await.expect(200);
    crm.inject(Fault::status(200).with_body(answered.clone()));
    world.call_tool(&world.call(&tool, given.clone())).await.result();
    let row = newest(&world, &tool).await;
    assert_eq!(row["arguments"], json!({"body_guest": "[redacted]", "body_why": "[redacted]"}));
    assert_eq!(row["result"], "[redacted]");
    nothing_of(&world, &["Eva"]);
    let tool = world.update(&tool, &json!({"redact": null})).await.expect(200);
    crm.inject(Fault::status(200).with_body(answered));
    world.call_tool(&world.call(&tool, given.clone())).await.result();
    assert_eq!(newest(&world, &tool).await["arguments"], given);
}

#[tokio::test]
async fn a_pipedream_action_is_shown_without_marked_values() {
    let world = World::start().await;
    let mut config = slack_action(&world.home);
    config["redact"] = json!(["text"]);
    let tool = world.attached(&config).await;
    world.call_tool(&world.call(&tool, json!({"text": "New booking of Ana Ruiz"}))).await.result();
    let row = newest(&world, &tool).await;
    assert_eq!((&row["arguments"], &row["status"]), (&json!({"text": "[redacted]"}), &json!("succeeded")));
    assert_eq!(row["result"]["ok"], true);
    nothing_of(&world, &["Ana Ruiz"]);
}

#[tokio::test]
async fn a_query_is_shown_with_its_results() {
    let world = World::start().await;
    let entries = json!([{"text": "House by the river, ask Ana at 415-555-0100"}]);
    let base = world.knowledge_base(&json!([{"name": "price", "type": "number"}]), &entries).await;
    let config =
        json!({"type": "query", "label": "Find a home", "knowledge_base_id": base["id"], "redact": ["price_at_most"]});
    let tool = world.attached(&config).await;
    world.call_tool(&world.call(&tool, json!({"query": "river"}))).await.result();
    let row = newest(&world, &tool).await;
    assert_eq!((&row["arguments"], &row["result"]["matched"]), (&json!({"query": "river"}), &json!(1)));
    assert_eq!(row["result"]["entries"], json!(["House by the river, ask Ana at [number]"]));
    world.call_tool(&world.call(&tool, json!({"query": "river", "price_at_most": 450_000}))).await.result();
    assert_eq!(newest(&world, &tool).await["arguments"], json!({"query": "river", "price_at_most": "[redacted]"}));
}

#[tokio::test]
async fn a_run_that_failed_is_unknown_or_was_replayed_says_so() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    world.call_tool(&world.call(&tool, json!({"text": 5}))).await.sentence();
    world.twilio.inject(Fault::status(400).with_body(json!({
        "code": 21211, "message": format!("The 'To' number {} is not a valid phone number.", phone(1)), "status": 400,
    })));
    world.call_tool(&world.call(&tool, json!({"text": "Refused"}))).await.sentence();
    world.twilio.inject(Fault::drop_after());
    let unclear = world.call(&tool, json!({"text": "Unclear"}));
    world.call_tool(&unclear).await.sentence();
    world.call_tool(&unclear).await.sentence();
    let sent = world.call(&tool, json!({"text": "Sent"}));
    world.call_tool(&sent).await.result();
    world.call_tool(&sent).await.result();
    let page = of_tool(&world, &tool, "").await;
    assert_eq!(all(&page, "status"), ["replayed", "succeeded", "replayed", "unknown", "failed", "failed"]);
    assert_eq!(all(&page, "result")[..2], [&page["items"][1]["result"]; 2], "the same answer");
    for row in &page["items"].as_array().unwrap()[2..] {
        assert!(row["error"].as_str().unwrap().len() > 10, "{row}");
    }
    assert_eq!(page["items"][5]["arguments"], json!({"text": 5}), "also of a run that did not begin");
    assert!(page["items"][4]["error"].as_str().unwrap().contains("[number]"), "{}", page["items"][4]);
    assert_eq!(all(&of_tool(&world, &tool, "?status=replayed").await, "status"), ["replayed", "replayed"]);
    nothing_of(&world, &["4155550"]);
}

#[tokio::test]
async fn a_run_that_waits_has_no_result_yet_and_keeps_its_place() {
    let world = World::start().await;
    let mut config = ai_sms();
    config["async"] = json!(true);
    let tool = world.attached(&config).await;
    world.call_tool(&world.call(&tool, json!({"text": "First +14155550150"}))).await.result();
    world.call_tool(&world.call(&tool, json!({"text": "Second"}))).await.result();
    let waiting = of_tool(&world, &tool, "").await;
    assert_eq!(all(&waiting, "status"), ["queued", "queued"]);
    assert_eq!(all(&waiting, "result"), [&Value::Null, &Value::Null]);
    assert_eq!(world.run_queued().await, 0);
    let done = of_tool(&world, &tool, "").await;
    assert_eq!(all(&done, "status"), ["succeeded", "succeeded"]);
    assert_eq!(all(&done, "id"), all(&waiting, "id"));
    assert_eq!(all(&done, "arguments"), [&json!({"text": "Second"}), &json!({"text": "First [number]"})]);
    assert_eq!(done["items"][0]["result"]["sent"], 1);
    assert!(done["items"][0]["queued_at"].is_string());
    nothing_of(&world, &["4155550"]);
}

#[tokio::test]
async fn a_large_value_is_cut_with_a_marker() {
    let crm = address();
    let world = world_with(&crm).await;
    let mut config = api_request("GET", &crm.url);
    config["body"] = json!({"q": {"mode": "ai", "prompt": "What"}});
    let tool = world.attached(&config).await;
    let many: Vec<Value> = (0..400).map(|n| json!({"number": n, "note": "x".repeat(20)})).collect();
    crm.inject(Fault::status(200).with_body(json!(many)));
    world.call_tool(&world.call(&tool, json!({"body_q": "word ".repeat(2_000)}))).await.result();
    let row = newest(&world, &tool).await;
    assert!(row.to_string().len() < 7_000, "{}", row.to_string().len());
    assert!(row["arguments"]["body_q"].as_str().unwrap().ends_with(" of 10000 bytes)"));
    assert!(row["result"].to_string().contains("… (cut: "), "{}", row["result"]);
}

/// DynamoDB refuses empty names, large numbers and deep nesting; a model or a service may send them.
#[tokio::test]
async fn a_value_that_the_table_refuses_does_not_lose_the_row() {
    let logs = Logs::capture();
    let crm = address();
    let world = world_with(&crm).await;
    let mut config = api_request("GET", &crm.url);
    config["body"] = json!({"free": {"mode": "ai", "prompt": "Any", "schema": {"type": "object"}}});
    let tool = world.attached(&config).await;
    let deep = (0..60).fold(json!("end"), |inner, _| json!({"in": [inner]}));
    crm.inject(Fault::status(200).with_body(json!({"": "empty", "big": 1e300, "deep": deep})));
    let arguments = json!({"body_free": {"": {"": 1}, "small": 1e-200, "deep": deep}, "": 1});
    let answer: Answer = world.call_tool(&world.call(&tool, arguments)).await;
    answer.result();
    let row = newest(&world, &tool).await;
    assert_eq!((&row["result"]["[no name]"], &row["result"]["big"]), (&json!("empty"), &json!("1e+300")));
    assert_eq!(row["arguments"]["body_free"]["[no name]"], json!({"[no name]": 1}));
    assert!(logs.at("ERROR").is_empty(), "{:?}", logs.at("ERROR"));
}

#[tokio::test]
async fn an_execution_is_redacted_before_it_leaves_the_process() {
    let logs = Logs::capture();
    let world = World::start().await;
    let mut config = ai_sms();
    config["redact"] = json!(["text"]);
    let tool = world.attached(&config).await;
    world.aws.clear_operations();
    world.call_tool(&world.call(&tool, json!({"text": "Top secret diagnosis"}))).await.result();
    let written = world.aws.dynamodb().into_iter().filter(|done| done.on.iter().any(|on| on == "executions"));
    let written: Vec<String> = written.map(|done| done.body.to_string()).collect();
    assert_eq!(written.len(), 1);
    let logged: String = logs.ours().iter().map(Value::to_string).collect();
    for hidden in ["diagnosis", "4155550", "15005550006"] {
        assert!(!written[0].contains(hidden) && !logged.contains(hidden), "{hidden}: {}", written[0]);
    }
}
