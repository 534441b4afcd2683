//! The tools of a voice agent over MCP, and the context of a call, for voice platforms other than VAPI.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use local::standins::{Fault, Standin, twilio};
use serde_json::{Value, json};
use shared::{
    actions::voice_tokens::{CallFacts, VoiceToken},
    models::Timestamp,
};
use tests::{Event, Trouble, World, ai_sms, api_request, phone, said};

use crate::async_tools::{answers, crm_world};

const CALL: &str = "conv_8f3a";

fn headers(world: &World) -> Vec<(&'static str, String)> {
    vec![
        ("x-call-id", CALL.to_owned()),
        ("x-caller-number", phone(1)),
        ("x-called-number", world.home.phone_number.clone()),
    ]
}

async fn call_with(
    world: &World,
    token: &str,
    headers: &[(&'static str, String)],
    tool: &Value,
    arguments: &Value,
) -> Value {
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let event = world.voice_call(token, &headers, tool["name"].as_str().unwrap(), arguments);
    world.send("mcp", &event).await.expect(200)["result"].clone()
}

async fn listed(world: &World, token: &str) -> Vec<Value> {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let answer = world.send("mcp", &world.voice_event(token, &message)).await.expect(200);
    answer["result"]["tools"].as_array().unwrap().clone()
}

async fn status(world: &World, token: &str) -> u16 {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    world.send("mcp", &world.voice_event(token, &message)).await.status
}

#[tokio::test]
async fn a_client_initializes_lists_and_calls_and_the_effect_happens_once() {
    let world = World::start().await;
    let sms = world.attached(&ai_sms()).await;
    let token = world.voice_token().await;
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "livekit", "version": "1"},
    }});
    let begun = world.send("mcp", &world.voice_event(&token, &initialize)).await.expect(200);
    assert_eq!(begun["result"]["capabilities"], json!({"tools": {}}));
    let [tool] = &listed(&world, &token).await[..] else { panic!("one tool is attached") };
    assert_eq!((&tool["name"], &tool["annotations"]["readOnlyHint"]), (&sms["name"], &json!(false)));
    assert_eq!(tool["inputSchema"]["required"], json!(["text"]));

    let headers = headers(&world);
    for _interrupted in 0..3 {
        let result = call_with(&world, &token, &headers, &sms, &json!({"text": "See you at nine"})).await;
        assert!(!said(&result).0 && said(&result).1.contains("Sent to"), "{result}");
    }
    let [sent] = &world.twilio.messages()[..] else { panic!("one message") };
    assert_eq!((sent.to.as_str(), sent.body.as_str()), (phone(1).as_str(), "See you at nine"));
    let receipt = world.calls(&format!("/{CALL}/receipt")).await.expect(200);
    assert_eq!(receipt["tools_done"], json!([sms["name"]]));
    assert_eq!(receipt["done"].as_array().unwrap().len(), 1, "{receipt}");
    // Another call is another effect.
    let other = [("x-call-id", "conv_other".to_owned()), headers[1].clone(), headers[2].clone()];
    call_with(&world, &token, &other, &sms, &json!({"text": "See you at nine"})).await;
    assert_eq!(world.twilio.messages().len(), 2);
}

#[tokio::test]
async fn only_a_token_in_force_of_this_organization_is_let_in() {
    let world = World::start().await;
    world.attached(&ai_sms()).await;
    let first = world.voice_token().await;
    assert_eq!(status(&world, &first).await, 200);
    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    let token = world.voice_token().await;
    assert_eq!((status(&world, &first).await, status(&world, &token).await), (401, 200), "it was issued anew");

    let (claims, tag) = token.rsplit_once('.').unwrap();
    let swapped = format!("{claims}x.{tag}");
    let of_a_tool =
        world.process.tokens.issue(world.tools()[0]["id"].as_str().unwrap().parse().unwrap()).await.unwrap();
    let of_a_tool = secrecy::ExposeSecret::expose_secret(&of_a_tool).to_owned();
    for wrong in ["", "x", "voice.", "voice.a.b", &swapped, &of_a_tool, &token[6..]] {
        assert_eq!(status(&world, wrong).await, 401, "{wrong}");
    }
    // At another organization, and at another agent.
    let mut event = world.voice_event(&token, &json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}));
    event.path = format!("/api/{}/voice/mcp", world.other.slug);
    assert_eq!(world.send("mcp", &event).await.status, 401);
    let path = format!("/api/{}/agents/{}/context", world.home.slug, world.other.agent_id);
    let elsewhere = Event::post(&path, &json!({})).header("authorization", &format!("Bearer {token}"));
    assert_eq!(world.send("mcp", &elsewhere).await.status, 401);
    // Their administrator issues none for our agent.
    let path = format!("/api/{}/agents/{}/voice-token", world.other.slug, world.home.agent_id);
    world.send("agents", &Event::new("POST", &path).user(&world.other.user_id)).await.expect(404);

    let path = format!("/api/{}/agents/{}/voice-token", world.home.slug, world.home.agent_id);
    world.send("agents", &Event::new("DELETE", &path).user(&world.home.user_id)).await.expect(200);
    assert_eq!(status(&world, &token).await, 401, "it was revoked");
}

#[tokio::test]
async fn an_expired_token_of_a_call_is_refused_and_a_valid_one_has_the_calls_facts() {
    let world = World::start().await;
    let sms = world.attached(&ai_sms()).await;
    let token = world.voice_token().await;
    let call =
        json!({"call_id": CALL, "caller_phone_number": phone(1), "called_phone_number": world.home.phone_number});
    let context = world.call_context(&token, &call).await.expect(200);
    let of_call = context["token"].as_str().unwrap();
    // The headers count for nothing beside it.
    let forged = [("x-caller-number", phone(9)), ("x-call-id", "conv_other".to_owned())];
    call_with(&world, of_call, &forged, &sms, &json!({"text": "Hi", "caller_phone_number": phone(9)})).await;
    assert_eq!(world.twilio.messages()[0].to, phone(1));
    assert_eq!(world.executions()[0]["call_id"], CALL);
    // A call's token gets no others.
    assert_eq!(world.call_context(of_call, &call).await.status, 401);

    let issued_at: Timestamp = {
        let agent = world.aws.row("agents", &world.home.agent_id).unwrap();
        serde_json::from_value(agent["voice_token_at"].clone()).unwrap()
    };
    let home = &world.home;
    let of_agent = VoiceToken::of_agent(
        home.organization_id.parse().unwrap(),
        home.slug.parse().unwrap(),
        home.agent_id.parse().unwrap(),
        issued_at,
    );
    let mut expired = serde_json::to_value(of_agent.for_call(CallFacts::default())).unwrap();
    expired["expires_at"] = json!(Timestamp::now().as_seconds() - 1);
    let expired: VoiceToken = serde_json::from_value(expired).unwrap();
    let expired = expired.signed(&world.process.tokens).await.unwrap();
    assert_eq!(status(&world, secrecy::ExposeSecret::expose_secret(&expired)).await, 401);
}

#[tokio::test]
async fn what_the_platform_did_not_fill_in_is_refused_and_a_missing_number_is_a_sentence() {
    let world = World::start().await;
    let sms = world.attached(&ai_sms()).await;
    let token = world.voice_token().await;
    let name = sms["name"].as_str().unwrap();
    for (header, value) in [
        ("x-call-id", "{{system__conversation_id}}"),
        ("x-caller-number", "{{system__caller_id}}"),
        ("x-called-number", "twelve"),
    ] {
        let event = world.voice_call(&token, &[(header, value)], name, &json!({"text": "Hi"}));
        let refused = world.send("mcp", &event).await.expect(400);
        assert!(refused["detail"].as_str().unwrap().to_lowercase().contains(header), "{refused}");
    }
    world.incoming_call(&world.other, "theirs", &phone(1));
    let theirs = call_with(&world, &token, &[("x-call-id", "theirs".to_owned())], &sms, &json!({"text": "Hi"})).await;
    assert!(said(&theirs).0 && said(&theirs).1.contains("cannot be used in this call"), "{theirs}");
    world.call_context(&token, &json!({"call_id": "theirs"})).await.expect(403);
    // A caller in a browser.
    let web = [("x-call-id", CALL.to_owned()), ("x-caller-number", String::new()), ("x-called-number", String::new())];
    let result = call_with(&world, &token, &web, &sms, &json!({"text": "Hi"})).await;
    assert!(said(&result).0 && said(&result).1.contains("number"), "{result}");
    let wrong = call_with(&world, &token, &headers(&world), &sms, &json!({"words": "Hi"})).await;
    assert!(said(&wrong).0 && said(&wrong).1.contains("\"text\""), "{wrong}");
    assert!(world.twilio.messages().is_empty());
}

#[tokio::test]
async fn tools_that_need_a_call_of_vapis_are_not_offered_and_async_ones_are_queued() {
    let world = World::start().await;
    let mut confirmed = ai_sms();
    confirmed["confirm"] = json!("read_back");
    let transfer =
        json!({"type": "transfer_call", "label": "Connect", "target": {"type": "number", "number": phone(9)}});
    let mut later = ai_sms();
    later["async"] = json!(true);
    let [confirmed, transfer] = [world.attached(&confirmed).await, world.attached(&transfer).await];
    let later = world.attached(&later).await;
    // It is not the agent's.
    world.tool(&ai_sms()).await;
    let token = world.voice_token().await;
    let names: Vec<Value> = listed(&world, &token).await.iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names, [later["name"].clone()]);
    for tool in [confirmed, transfer] {
        let event = world.voice_call(&token, &[], tool["name"].as_str().unwrap(), &json!({}));
        let answer = world.send("mcp", &event).await.expect(200);
        assert!(answer["error"]["message"].as_str().unwrap().contains("tool not found"), "{answer}");
    }
    let result = call_with(&world, &token, &headers(&world), &later, &json!({"text": "Hi"})).await;
    assert!(said(&result).1.contains("in the background"), "{result}");
    assert!(world.twilio.messages().is_empty());
    assert_eq!(world.run_queued().await, 0);
    assert_eq!(world.twilio.messages()[0].to, phone(1));
}

#[tokio::test]
async fn variables_in_descriptions_are_those_of_the_call() {
    let world = World::start().await;
    let mut sms = ai_sms();
    sms["description"] = json!("For {{caller_phone_number}}, who called {{called_phone_number}}.");
    sms["text"]["prompt"] = json!("The message to {{caller_phone_number}}; it is {{now}}");
    world.attached(&sms).await;
    let token = world.voice_token().await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    for caller in [phone(1), phone(2)] {
        let event = world.voice_event(&token, &list).header("x-caller-number", &caller);
        let event = event.header("x-called-number", &world.home.phone_number);
        let tool = world.send("mcp", &event).await.expect(200)["result"]["tools"][0].clone();
        assert_eq!(tool["description"], format!("For {caller}, who called {}.", world.home.phone_number));
        let prompt = tool["inputSchema"]["properties"]["text"]["description"].as_str().unwrap();
        let now = prompt.strip_prefix(&format!("The message to {caller}; it is ")).unwrap();
        assert!(now.parse::<Timestamp>().is_ok(), "{prompt}");
    }
    // A platform that says nothing of the call.
    let tool = &listed(&world, &token).await[0];
    assert_eq!(tool["description"], "For unknown, who called unknown.");
}

/// A lookup at the start of a call, and an SMS at its start, which changes something.
async fn at_start() -> (World, Standin<twilio::Twilio>, String) {
    let (world, crm) = crm_world().await;
    let mut lookup = api_request("GET", &format!("{}/customer", crm.url));
    (lookup["label"], lookup["execute_on_call_start"]) = (json!("Look up customer"), json!(true));
    world.attached(&lookup).await;
    world.attached(&tests::preemptive_sms()).await;
    let token = world.voice_token().await;
    (world, crm, token)
}

#[tokio::test]
async fn the_context_has_the_results_of_lookups_and_changes_nothing() {
    let (world, crm, token) = at_start().await;
    answers(&crm, "customer", Fault::body(json!({"name": "Ana {{x}}", "tags": ["vip"]})).times(2));
    let call = json!({
        "call_id": CALL, "caller_phone_number": phone(1), "called_phone_number": world.home.phone_number, "wait_ms": 4_000,
    });
    let context = world.call_context(&token, &call).await.expect(200);
    assert_eq!(context["variables"], json!({"look_up_customer": {"name": "Ana { {x} }", "tags": ["vip"]}}));
    assert_eq!(context["missing"], json!([]));
    let run = &world.executions()[0];
    assert_eq!((&run["call_id"], &run["trigger"], world.executions().len()), (&json!(CALL), &json!("call_start"), 1));
    // ElevenLabs asks, and takes plain values only.
    let asked = json!({
        "caller_id": phone(1), "agent_id": "J3Pb", "called_number": world.home.phone_number, "call_sid": "CA1", "more": 1,
    });
    let data = world.call_context(&token, &asked).await.expect(200);
    let given = &data["dynamic_variables"];
    let expected = json!({
        "look_up_customer": "{\"name\":\"Ana { {x} }\",\"tags\":[\"vip\"]}", "look_up_customer_name": "Ana { {x} }",
        "secret__switchboard_authorization": given["secret__switchboard_authorization"],
    });
    assert_eq!(data, json!({"type": "conversation_initiation_client_data", "dynamic_variables": expected}));
    let of_call = given["secret__switchboard_authorization"].as_str().unwrap().strip_prefix("Bearer ").unwrap();
    assert_eq!(status(&world, of_call).await, 200);
    assert!(world.twilio.messages().is_empty());
}

#[tokio::test]
async fn a_slow_or_failing_lookup_is_missing_and_the_answer_is_in_time() {
    let (world, crm, token) = at_start().await;
    for fault in [Fault { delay_ms: 60_000, ..Fault::body(json!({"name": "Ana"})) }, Fault::status(500).times(9)] {
        answers(&crm, "customer", fault);
        let begun = std::time::Instant::now();
        let context = world.call_context(&token, &json!({"wait_ms": 300})).await.expect(200);
        assert!(begun.elapsed().as_secs() < 15, "{:?}", begun.elapsed());
        assert_eq!(context["variables"], json!({"look_up_customer": null}));
        assert_eq!((&context["missing"], &context["token"]), (&json!(["look_up_customer"]), &Value::Null));
        assert_eq!(world.executions().last().unwrap()["status"], "failed");
        crm.clear_faults();
    }
    let at_once = world.call_context(&token, &json!({"wait_ms": 0})).await.expect(200);
    assert_eq!(at_once["missing"], json!(["look_up_customer"]));
    let refused = world.call_context(&token, &json!({"wait_ms": 4_001, "caller": phone(1)})).await;
    assert_eq!(refused.wrong_fields(), ["caller", "wait_ms"]);
}

#[tokio::test]
async fn elevenlabs_gets_each_variable_that_its_agent_names() {
    let (world, crm, token) = at_start().await;
    answers(&crm, "customer", Fault::status(500));
    let path = format!("/api/{}/agents/{}/context", world.home.slug, world.home.agent_id);
    let asked = json!({"caller_id": "anonymous", "agent_id": "J3Pb", "called_number": "", "call_sid": ""});
    let event = Event::post(&path, &asked).header("authorization", &format!("Bearer {token}"));
    let named = event.clone().query("variables", "look_up_customer_name,look_up_customer_vip");
    let data = world.send("mcp", &named).await.expect(200);
    let expected = json!({"look_up_customer": "", "look_up_customer_name": "", "look_up_customer_vip": ""});
    assert_eq!(data["dynamic_variables"], expected);
    for wrong in ["a-b", "a,,b", "a.b", &"a,".repeat(60)] {
        assert_eq!(world.send("mcp", &event.clone().query("variables", wrong)).await.wrong_fields(), ["variables"]);
    }
}

#[tokio::test]
async fn an_outage_is_a_sentence_for_the_model_and_nothing_is_done() {
    let world = World::start().await;
    let sms = world.attached(&ai_sms()).await;
    let token = world.voice_token().await;
    for table in ["agents", "calls"] {
        world.aws.inject(tests::Fault::new("GetItem", table, Trouble::Error("ValidationException")));
        let result = call_with(&world, &token, &headers(&world), &sms, &json!({"text": "Hi"})).await;
        assert!(said(&result).0 && said(&result).1.contains("not available just now"), "{table}: {result}");
        assert!(world.twilio.messages().is_empty());
    }
    call_with(&world, &token, &headers(&world), &sms, &json!({"text": "Hi"})).await;
    assert_eq!(world.twilio.messages().len(), 1);
}

#[tokio::test]
async fn a_call_that_came_in_here_has_its_own_numbers_also_after_its_end() {
    let world = World::start().await;
    let sms = world.attached(&ai_sms()).await;
    let token = world.voice_token().await;
    world.incoming_call(&world.home, CALL, &phone(1));
    let forged = [("x-call-id", CALL.to_owned()), ("x-caller-number", phone(9))];
    call_with(&world, &token, &forged, &sms, &json!({"text": "Hi"})).await;
    let bearer = format!("Bearer {}", world.options.webhook_bearer.as_ref().unwrap());
    let ended = json!({"message": {"type": "status-update", "status": "ended", "call": {"id": CALL}}});
    world.send("calls", &Event::post("/api/vapi/events", &ended).header("authorization", &bearer)).await.expect(200);
    // The repetition of a client that did not get the answer.
    call_with(&world, &token, &forged, &sms, &json!({"text": "Hi"})).await;
    let [sent] = &world.twilio.messages()[..] else { panic!("one message") };
    assert_eq!((&sent.to, &sent.from), (&phone(1), &world.home.phone_number));
    let receipt = world.calls(&format!("/{CALL}/receipt")).await.expect(200);
    assert_eq!((&receipt["final"], &receipt["tools_done"]), (&json!(true), &json!([sms["name"]])));
}
