//! POST /api/tools/{id}/execute for SMS: access, the call's owner, the model's sentences.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use base64::Engine;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tests::{
    Answer, Event, Options, World, ai_sms,
    logs::Logs,
    phone,
    standins::{self, vapi::ToolCall},
};
use uuid::Uuid;

fn id(tool: &Value) -> &str {
    tool["id"].as_str().unwrap()
}

async fn token(world: &World, tool_id: &str) -> String {
    world.process.tokens.issue(tool_id.parse().unwrap()).await.unwrap().expose_secret().to_owned()
}

/// A body as VAPI sends it, with a token of the test's choice.
fn body(world: &World, token: Option<&str>) -> Value {
    let mut body = json!({"text": "Hello", "metadata": {
        "callerPhoneNumber": phone(1), "calledPhoneNumber": world.home.phone_number, "callId": Uuid::now_v7().to_string(),
    }});
    if let Some(token) = token {
        body["metadata"]["token"] = json!(token);
    }
    body
}

/// Recipients beside the caller, whom the model may add.
fn extendable() -> Value {
    let mut config = ai_sms();
    config["recipients"]["fixedValues"] = json!(["{{caller_phone_number}}", phone(50)]);
    config["recipients"]["aiExtension"] = json!({"enabled": true, "prompt": "Others to tell", "required": false});
    config
}

fn recipients(world: &World) -> Vec<String> {
    let mut to: Vec<String> = world.twilio.messages().into_iter().map(|message| message.to).collect();
    to.sort();
    to
}

#[tokio::test]
async fn a_tool_called_in_a_call_sends_an_sms() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let answer = world.call_tool(&world.call(&tool, json!({"text": "See you at 15:00"}))).await;
    let result = answer.result();
    assert_eq!((&result["sent"], &result["recipients"][0]["state"]), (&json!(1), &json!("sent")));
    let messages = world.twilio.messages();
    assert_eq!(messages.len(), 1);
    let sms = &messages[0];
    assert_eq!((&sms.to, &sms.from, sms.body.as_str()), (&phone(1), &world.home.phone_number, "See you at 15:00"));
    assert_eq!(sms.account_sid, world.home.twilio_sid);
}

#[tokio::test]
async fn the_tool_calls_message_is_answered_in_its_own_shape() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    world.function_tool(&tool).await;
    let call = world.call(&tool, json!({"text": "Hello"}));
    let event = world.vapi_event(&call);
    let sent: Value = serde_json::from_str(event.body.as_ref().unwrap()).unwrap();
    let tool_call_id = sent["message"]["toolCallList"][0]["id"].clone();
    let answer = world.send("execute", &event).await.expect(200);
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results.len(), 1);
    assert_eq!((&results[0]["toolCallId"], &results[0]["name"]), (&tool_call_id, &tool["name"]));
    let result: Value = serde_json::from_str(results[0]["result"].as_str().unwrap()).unwrap();
    assert_eq!((&result["success"], &result["result"]["sent"]), (&json!(true), &json!(1)));
    assert_eq!(recipients(&world), [phone(1)]);
}

#[tokio::test]
async fn a_failure_in_a_tool_calls_message_is_one_line_of_text() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    world.function_tool(&tool).await;
    let answer = world.call_tool(&world.call(&tool, json!({"text": 5}))).await.expect(200);
    let error = answer["results"][0]["error"].as_str().unwrap();
    assert!(error.contains("\"text\"") && !error.contains('\n'), "{error}");
    assert!(answer["results"][0].get("result").is_none(), "any result counts as success");
}

#[tokio::test]
async fn several_calls_in_one_message_are_answered_one_by_one() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    world.function_tool(&tool).await;
    let event = world.vapi_event(&world.call(&tool, json!({"text": "One"})));
    let mut message: Value = serde_json::from_str(event.body.as_ref().unwrap()).unwrap();
    let list = message["message"]["toolCallList"].as_array_mut().unwrap();
    let mut second = list[0].clone();
    second["id"] = json!("call_two");
    second["function"]["arguments"] = json!("{\"text\":\"Two\"}");
    let mut foreign = list[0].clone();
    foreign["id"] = json!("call_three");
    foreign["function"]["name"] = json!("another_tool");
    list.extend([second, foreign]);
    let answer = world.send("execute", &event.text(message.to_string())).await.expect(200);
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results.len(), 3);
    assert!(results[0]["result"].is_string() && results[1]["result"].is_string());
    assert_eq!(results[1]["toolCallId"], "call_two");
    assert!(results[2]["error"].is_string(), "{answer}");
    let mut texts: Vec<String> = world.twilio.messages().into_iter().map(|message| message.body).collect();
    texts.sort();
    assert_eq!(texts, ["One", "Two"]);
}

#[tokio::test]
async fn arguments_that_cannot_be_read_are_told_to_the_model() {
    let world = World::start().await;
    let mut config = ai_sms();
    config["text"] = json!("Thank you for calling");
    let tool = world.tool(&config).await;
    world.function_tool(&tool).await;
    let event = world.vapi_event(&world.call(&tool, json!({})));
    for broken in [json!("{\"text\": "), json!("[]"), json!([1]), json!(5), json!("5")] {
        let mut message: Value = serde_json::from_str(event.body.as_ref().unwrap()).unwrap();
        message["message"]["toolCallList"][0]["function"]["arguments"] = broken.clone();
        let answer = world.send("execute", &event.clone().text(message.to_string())).await.expect(200);
        let error = answer["results"][0]["error"].as_str().unwrap_or_else(|| panic!("{broken}: {answer}"));
        assert!(error.contains("arguments") && !error.contains('\n'), "{error}");
    }
    assert!(world.twilio.requests().is_empty() && world.aws.rows("idempotency").is_empty());
    for empty in [json!(""), json!(null), json!("{}"), json!({})] {
        let mut message: Value = serde_json::from_str(event.body.as_ref().unwrap()).unwrap();
        message["message"]["toolCallList"][0]["function"]["arguments"] = empty.clone();
        let answer = world.send("execute", &event.clone().text(message.to_string())).await.expect(200);
        assert!(answer["results"][0]["result"].is_string(), "{empty}: {answer}");
    }
    assert_eq!(world.twilio.messages().len(), 1, "all of them the same effect");
}

#[tokio::test]
async fn a_model_that_repeats_itself_within_one_message_causes_one_effect() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    world.function_tool(&tool).await;
    let event = world.vapi_event(&world.call(&tool, json!({"text": "One"})));
    let mut message: Value = serde_json::from_str(event.body.as_ref().unwrap()).unwrap();
    let list = message["message"]["toolCallList"].as_array_mut().unwrap();
    for call_id in ["call_again", "call_and_again"] {
        let mut again = list[0].clone();
        again["id"] = json!(call_id);
        list.push(again);
    }
    // A claim that waited for its own message would use up the time.
    let event = event.text(message.to_string()).within(std::time::Duration::from_secs(6));
    let answer = world.send("execute", &event).await.expect(200);
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results.len(), 3);
    assert!(results.iter().all(|result| result["result"] == results[0]["result"]), "{answer}");
    let answered: Value = serde_json::from_str(results[0]["result"].as_str().unwrap()).unwrap();
    assert_eq!(answered["success"], true);
    assert_eq!(recipients(&world), [phone(1)]);
}

#[tokio::test]
async fn a_tool_without_its_token_does_not_run() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    let other_tool = world.tool(&ai_sms()).await;
    let right = token(&world, id(&tool)).await;
    let others = token(&world, id(&other_tool)).await;
    let cut = &right[..right.len() - 1];
    for wrong in [None, Some(""), Some("x"), Some(cut), Some(others.as_str()), Some("{{token}}"), Some("🦀")] {
        let answer = world.execute(id(&tool), &body(&world, wrong)).await;
        assert_eq!((answer.status, &answer.body["code"]), (401, &json!("unauthenticated")), "{wrong:?}");
    }
    let unknown = world.execute(&Uuid::new_v4().to_string(), &body(&world, Some(&right))).await;
    assert_eq!(unknown.status, 401, "that it does not exist is nobody's business");
    assert!(world.twilio.requests().is_empty() && world.executions().is_empty());
    assert!(world.aws.rows("idempotency").is_empty(), "nothing was claimed");
    world.execute(id(&tool), &body(&world, Some(&right))).await.result();
}

#[tokio::test]
async fn nothing_is_read_before_the_token_is_checked() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    world.aws.clear_operations();
    world.execute(id(&tool), &body(&world, Some("wrong"))).await.expect(401);
    assert!(world.aws.dynamodb().is_empty(), "a known and an unknown tool take the same time");
}

#[tokio::test]
async fn an_unknown_tool_with_its_right_token_is_404() {
    let world = World::start().await;
    let gone = Uuid::new_v4().to_string();
    let right = token(&world, &gone).await;
    let answer = world.execute(&gone, &body(&world, Some(&right))).await;
    assert_eq!((answer.status, &answer.body["code"]), (404, &json!("not_found")));
    assert!(world.aws.rows("idempotency").is_empty(), "its claim was given back");
    for path in ["/api/tools/not-a-uuid/execute", "/api/tools//execute"] {
        world.send("execute", &Event::post(path, &body(&world, Some(&right)))).await.expect(404);
    }
}

#[tokio::test]
async fn tokens_of_the_previous_key_hold_until_it_is_gone() {
    let old = World::with(Options { token_secret: json!({"current": "old key"}), ..Options::default() }).await;
    let mut world = World::with(Options {
        token_secret: json!({"current": "new key", "previous": "old key"}),
        ..Options::default()
    })
    .await;
    let tool = world.tool(&ai_sms()).await;
    let [by_old, by_new] = [token(&old, id(&tool)).await, token(&world, id(&tool)).await];
    assert_ne!(by_old, by_new);
    world.execute(id(&tool), &body(&world, Some(&by_old))).await.result();
    world.execute(id(&tool), &body(&world, Some(&by_new))).await.result();
    for secret in [
        json!({"current": "new key"}),
        json!({"current": "new key", "previous": ""}),
        json!({"current": "new key", "previous": null}),
    ] {
        world.aws.put_secret("switchboard/tool-token", &secret);
        world.restart();
        world.execute(id(&tool), &body(&world, Some(&by_old))).await.expect(401);
        world.execute(id(&tool), &body(&world, Some(&by_new))).await.result();
    }
}

#[tokio::test]
async fn the_bearer_of_vapis_credential_is_accepted() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    let path = format!("/api/tools/{}/execute", id(&tool));
    let bearer = world.options.webhook_bearer.clone().unwrap();
    let event = |header: &str, value: &str| Event::post(&path, &body(&world, None)).header(header, value);
    for (header, value) in [
        ("authorization", format!("Bearer {bearer}")),
        ("authorization", format!("bearer {bearer}")),
        ("x-vapi-secret", bearer.clone()),
    ] {
        world.send("execute", &event(header, &value)).await.result();
    }
    for (header, value) in [
        ("authorization", bearer.clone()),
        ("authorization", format!("Basic {bearer}")),
        ("authorization", "Bearer ".to_owned()),
        ("authorization", format!("Bearer {bearer}x")),
        ("x-vapi-secret", String::new()),
    ] {
        world.send("execute", &event(header, &value)).await.expect(401);
    }
    let both = Event::post(&path, &body(&world, Some("wrong"))).header("authorization", &format!("Bearer {bearer}"));
    world.send("execute", &both).await.expect(401);
}

#[tokio::test]
async fn without_a_credential_no_bearer_is_accepted() {
    let world = World::with(Options { webhook_bearer: None, ..Options::default() }).await;
    let tool = world.tool(&ai_sms()).await;
    let path = format!("/api/tools/{}/execute", id(&tool));
    for value in ["Bearer ", "Bearer null", "Bearer x"] {
        let event = Event::post(&path, &body(&world, None)).header("authorization", value);
        world.send("execute", &event).await.expect(401);
    }
}

#[tokio::test]
async fn a_body_that_cannot_be_read_is_400() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    let path = format!("/api/tools/{}/execute", id(&tool));
    for text in ["", "{", "[]", "5", "null", "\"x\"", r#"{"message":{"type":"tool-calls"}}"#] {
        let answer = world.send("execute", &Event::new("POST", &path).text(text)).await;
        assert_eq!((answer.status, &answer.body["code"]), (400, &json!("malformed")), "{text}");
    }
}

#[tokio::test]
async fn a_body_in_base64_is_read() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let mut event = world.vapi_event(&world.call(&tool, json!({"text": "Hello"}))).to_json();
    let body = event["body"].as_str().unwrap().to_owned();
    event["body"] = json!(base64::prelude::BASE64_STANDARD.encode(body));
    event["isBase64Encoded"] = json!(true);
    world.send_json("execute", &event).await.result();
}

#[tokio::test]
async fn a_message_to_very_many_is_refused_as_a_whole() {
    let world = World::start().await;
    let tool = world.attached(&extendable()).await;
    let many: Vec<String> = (100..130).map(phone).collect();
    let answer = world.call_tool(&world.call(&tool, json!({"text": "Hello", "recipients": many}))).await;
    assert!(answer.sentence().contains("recipients"), "{}", answer.body);
    assert!(world.twilio.requests().is_empty());
}

#[tokio::test]
async fn an_argument_of_a_wrong_type_is_named_in_a_sentence() {
    let world = World::start().await;
    let tool = world.attached(&extendable()).await;
    for (arguments, named) in [
        (json!({}), "\"text\" is missing"),
        (json!({"text": ""}), "\"text\" is missing"),
        (json!({"text": null}), "\"text\" is missing"),
        (json!({"text": 5}), "\"text\" must be text, not a number"),
        (json!({"text": ["x"]}), "\"text\" must be text, not a list"),
        (json!({"text": "x", "recipients": "+14155550100"}), "\"recipients\" must be a list"),
        (json!({"text": "x", "recipients": [5]}), "\"recipients[0]\" must be text"),
        (json!({"text": "x".repeat(1_601)}), "longer than 1600 characters"),
    ] {
        let answer = world.call_tool(&world.call(&tool, arguments)).await;
        assert!(answer.sentence().contains(named), "{}", answer.body);
    }
    assert!(world.twilio.requests().is_empty());
    assert!(world.aws.rows("idempotency").is_empty(), "nothing happened, so nothing stands in the way of a better try");
}

#[tokio::test]
async fn arguments_that_the_tool_does_not_have_are_dropped_and_reported() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let arguments = json!({"text": "Hello", "recipients": [phone(99)], "from": phone(98), "urgent": true});
    let answer = world.call_tool(&world.call(&tool, arguments)).await;
    answer.result();
    assert_eq!(recipients(&world), [phone(1)], "the model cannot choose recipients the author did not open");
    let logs = answer.body["logs"].to_string();
    for name in ["recipients", "from", "urgent"] {
        assert!(logs.contains(name), "{logs}");
    }
    let row = &world.executions()[0];
    let mut ignored: Vec<&str> =
        row["ignored_arguments"].as_array().unwrap().iter().map(|n| n.as_str().unwrap()).collect();
    ignored.sort_unstable();
    assert_eq!(ignored, ["from", "recipients", "urgent"]);
}

#[tokio::test]
async fn a_static_text_wins_over_the_models() {
    let world = World::start().await;
    let mut config = ai_sms();
    config["text"] = json!({"mode": "fixed", "value": "From {{called_phone_number}} to {{caller_phone_number}}"});
    let tool = world.attached(&config).await;
    // As an older version stored it.
    let id = tool["id"].as_str().unwrap();
    let mut stored = world.aws.row("tools", id).unwrap()["config_metadata"].clone();
    stored["text"]["value"] = json!("From {{called_phone_number}} to {{caller_phone_number}} {{order}}");
    world.aws.change("tools", id, json!({"config_metadata": stored}));
    let again = json!({"text": {"mode": "fixed", "value": "Hello {{order}}"}});
    assert_eq!(world.update(&tool, &again).await.wrong_fields(), ["text.value"]);
    world.call_tool(&world.call(&tool, json!({"text": "Send money"}))).await.result();
    let text = &world.twilio.messages()[0].body;
    assert_eq!(*text, format!("From {} to {} {{{{order}}}}", world.home.phone_number, phone(1)));
}

#[tokio::test]
async fn the_models_text_is_not_read_as_a_template() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    world.call_tool(&world.call(&tool, json!({"text": "Your number is {{caller_phone_number}}"}))).await.result();
    assert_eq!(world.twilio.messages()[0].body, "Your number is {{caller_phone_number}}");
}

#[tokio::test]
async fn fixed_and_added_recipients_are_united_without_duplicates() {
    let world = World::start().await;
    let tool = world.attached(&extendable()).await;
    let spaced = "+1 (415) 555-0101";
    assert_eq!(phone(1), "+14155550101");
    let arguments = json!({"text": "Hello", "recipients": [phone(50), spaced, phone(51), phone(51)]});
    let answer = world.call_tool(&world.call(&tool, arguments)).await;
    assert_eq!(answer.result()["sent"], 3);
    assert_eq!(recipients(&world), [phone(1), phone(50), phone(51)]);
}

#[tokio::test]
async fn a_withheld_number_gets_no_sms() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    for caller in ["", "anonymous"] {
        let call = ToolCall { customer_number: caller.to_owned(), ..world.call(&tool, json!({"text": "Hello"})) };
        let answer = world.call_tool(&call).await;
        assert!(!answer.sentence().is_empty());
    }
    assert!(world.twilio.messages().is_empty());
}

#[tokio::test]
async fn a_call_to_somebody_elses_number_runs_nothing() {
    let world = World::start().await;
    let mut config = ai_sms();
    for from in [
        json!({"type": "called_number"}),
        json!({"type": "specific_number", "phone_number_id": world.home.phone_number_id}),
    ] {
        config["from"] = from;
        let tool = world.attached(&config).await;
        for called in [&world.other.phone_number, &phone(70)] {
            let call = ToolCall { phone_number: called.clone(), ..world.call(&tool, json!({"text": "Hello"})) };
            let answer = world.call_tool(&call).await;
            assert!(!answer.sentence().is_empty());
        }
    }
    assert!(world.twilio.requests().is_empty());
    assert!(world.aws.rows("idempotency").is_empty(), "claims were given back");
}

#[tokio::test]
async fn the_numbers_of_a_call_that_came_through_us_are_ours_not_the_bodys() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let mut call = world.call(&tool, json!({"text": "Hello"}));
    world.incoming_call(&world.home, call.call_id.as_ref().unwrap(), &phone(7));
    call.customer_number = phone(66);
    world.call_tool(&call).await.result();
    assert_eq!(recipients(&world), [phone(7)]);

    let mut foreign = world.call(&tool, json!({"text": "Hello"}));
    world.incoming_call(&world.other, foreign.call_id.as_ref().unwrap(), &phone(8));
    let answer = world.call_tool(&foreign).await;
    assert!(!answer.sentence().is_empty(), "a call of another organization");
    foreign.phone_number = world.other.phone_number.clone();
    assert!(!world.call_tool(&foreign).await.sentence().is_empty());
    assert_eq!(world.twilio.messages().len(), 1);
}

#[tokio::test]
async fn a_lying_called_number_does_not_change_the_number_of_a_call_that_came_through_us() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let mut call = world.call(&tool, json!({"text": "Hello"}));
    world.incoming_call(&world.home, call.call_id.as_ref().unwrap(), &phone(7));
    call.phone_number = world.other.phone_number.clone();
    let answer = world.call_tool(&call).await;
    assert_eq!(answer.status, 200);
    for message in world.twilio.messages() {
        assert_eq!((message.from, message.to), (world.home.phone_number.clone(), phone(7)));
    }
}

#[tokio::test]
async fn a_call_that_did_not_say_which_number_was_called_can_send_from_a_chosen_one_only() {
    let world = World::start().await;
    let called = world.attached(&ai_sms()).await;
    let without_number =
        |tool: &Value| ToolCall { phone_number: String::new(), ..world.call(tool, json!({"text": "Hello"})) };
    assert!(!world.call_tool(&without_number(&called)).await.sentence().is_empty());
    let mut config = ai_sms();
    config["from"] = json!({"type": "specific_number", "phone_number_id": world.home.phone_number_id});
    let chosen = world.attached(&config).await;
    world.call_tool(&without_number(&chosen)).await.result();
    assert_eq!(world.twilio.messages().len(), 1);
}

#[tokio::test]
async fn credentials_are_read_under_the_name_the_number_has() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    world.aws.change("phone_numbers", &world.home.phone_number_id, json!({"credentials_secret": "elsewhere"}));
    let answer = world.call_tool(&world.call(&tool, json!({"text": "Hello"}))).await;
    assert!(!answer.sentence().contains("elsewhere"), "{}", answer.body);
    let credentials = json!({"account_sid": world.home.twilio_sid, "auth_token": world.home.twilio_token});
    world.aws.put_secret("elsewhere", &credentials);
    world.call_tool(&world.call(&tool, json!({"text": "Hello"}))).await.result();
}

#[tokio::test]
async fn the_history_shows_the_outcome_of_a_run_without_personal_data() {
    let world = World::start().await;
    let mut config = extendable();
    config["redact"] = json!(["text"]);
    let tool = world.attached(&config).await;
    let mut call = world.call(&tool, json!({"text": "Top secret diagnosis", "recipients": [phone(51)]}));
    world.call_tool(&call).await.result();
    call.arguments.insert("text".to_owned(), json!(5));
    world.call_tool(&call).await.sentence();
    let rows = world.executions();
    let statuses: Vec<&Value> = rows.iter().map(|row| &row["status"]).collect();
    assert_eq!(statuses, ["succeeded", "failed"]);
    for row in &rows {
        assert_eq!(row["organization_id"], world.home.organization_id);
        assert_eq!((&row["tool_id"], &row["call_id"]), (&tool["id"], &json!(call.call_id)));
        assert!(row["duration_ms"].is_u64() && row["expires_at"].is_i64() && row["started_at"].is_string());
        assert_eq!(row["arguments"], json!({"recipients": ["[number]"], "text": "[redacted]"}));
        let text = row.to_string();
        for hidden in ["diagnosis", "4155550", "15005550006"] {
            assert!(!text.contains(hidden), "{hidden} in {text}");
        }
    }
    assert!(rows[1]["error"].as_str().unwrap().contains("\"text\""));
}

#[tokio::test]
async fn the_log_holds_no_secret_no_number_and_no_argument() {
    let logs = Logs::capture();
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let right = token(&world, id(&tool)).await;
    world.twilio.inject(standins::Fault::status(400).with_body(json!({
        "code": 21211, "status": 400, "message": format!(
            "The 'To' number {} is not valid: ask Ana Maria Silva <ana.silva@example.com>, account token tok_9f8e7d6c5b4a, about \
             'Top secret diagnosis'.", phone(1)),
    })));
    let answers: [Answer; 4] = [
        world.call_tool(&world.call(&tool, json!({"text": "Top secret diagnosis"}))).await,
        world
            .call_tool(&ToolCall {
                phone_number: phone(70),
                ..world.call(&tool, json!({"text": "Top secret diagnosis"}))
            })
            .await,
        world.execute(id(&tool), &body(&world, Some("wrong-token-of-somebody"))).await,
        world.call_tool(&world.call(&tool, json!({"text": 5}))).await,
    ];
    assert_eq!(answers.each_ref().map(|answer| answer.status), [200, 200, 401, 200]);
    for fault in [standins::Fault::drop_after(), standins::Fault::body(json!(format!("sent to {}", phone(1))))] {
        world.twilio.inject(fault);
        world.call_tool(&world.call(&tool, json!({"text": "Top secret diagnosis"}))).await.sentence();
    }
    let text: String = logs.ours().iter().map(Value::to_string).collect();
    assert!(text.contains("Twilio"), "the cause is logged: {text}");
    let secrets =
        [&right, &world.home.twilio_token, &world.home.twilio_sid, "key-of-the-tool-tokens", "wrong-token-of-somebody"];
    for hidden in secrets.into_iter().chain([
        "diagnosis",
        "4155550",
        "15005550006",
        "vapi-private-key",
        "Silva",
        "@example",
        "9f8e7d6c",
    ]) {
        assert!(!text.contains(hidden), "{hidden} in {text}");
    }
    assert!(logs.at("ERROR").len() + logs.at("WARN").len() >= 2);
}

#[tokio::test]
async fn a_message_that_names_another_tool_runs_nothing() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let bearer = world.options.webhook_bearer.clone().unwrap();
    let send = async |names: &[&str]| {
        let list: Vec<Value> = names
            .iter()
            .map(|name| json!({"id": format!("call_{name}"), "function": {"name": name, "arguments": {"text": name}}}))
            .collect();
        let message = json!({"message": {
            "type": "tool-calls", "toolCallList": list, "call": {"id": Uuid::now_v7().to_string()},
            "customer": {"number": phone(1)}, "phoneNumber": {"number": world.home.phone_number},
        }});
        let event = Event::post(&format!("/api/tools/{}/execute", id(&tool)), &message);
        world.send("execute", &event.header("authorization", &format!("Bearer {bearer}"))).await.expect(200)["results"]
            .clone()
    };
    let own = tool["name"].as_str().unwrap();
    for names in [&["delete_account"][..], &["delete_account", "delete_account"], &["delete_account", ""]] {
        for result in send(names).await.as_array().unwrap() {
            assert!(result["error"].as_str().unwrap().contains(own), "{names:?}: {result}");
        }
    }
    assert!(world.twilio.messages().is_empty());
    let results = send(&["delete_account", own]).await;
    assert!(results[0]["error"].is_string() && results[1]["result"].is_string(), "{results}");
    assert_eq!(world.twilio.messages().len(), 1);
}

#[tokio::test]
async fn a_missing_argument_and_a_made_up_one_are_both_told() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let told = world.call_tool(&world.call(&tool, json!({"message": "Hello"}))).await;
    let error = told.body["error"].as_str().unwrap();
    assert!(error.contains("\"text\" is missing") && error.contains("no argument \"message\""), "{error}");
}
