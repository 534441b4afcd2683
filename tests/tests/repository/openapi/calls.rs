//! Phone calls and their tool calls against `docs/openapi.yaml`.

use local::standins::{Fault as Standin, twilio::SignedForm};
use serde_json::{Value, json};
use shared::{
    accounts::Accounts,
    clients::Secrets,
    store::{Database, Organizations},
};
use tests::{
    Event, Fault, Trouble, World, ai_sms,
    aws::{TABLE_PREFIX, sdk_config},
    slack_action,
};
use tokio::net::TcpListener;

use super::{Given, NOBODY, specification::Document, text};

pub(super) async fn incoming() -> Given {
    let (mut given, world) = (Given::default(), World::start().await);
    let call = world.incoming(&world.caller("+14155550101"));
    given.note("incomingCall", 200, &world.send("call-start", &call).await);
    let forged = call.clone().header("x-twilio-signature", "Zm9yZ2Vk");
    given.note("incomingCall", 403, &world.send("call-start", &forged).await);
    let mut unknown = call.clone();
    unknown.path = unknown.path.replace(&world.home.phone_number_id, NOBODY);
    given.note("incomingCall", 403, &world.send("call-start", &unknown).await);
    let mut path = call.clone();
    path.headers.retain(|name, _| name != "x-twilio-signature");
    let url = format!("{}{}", world.options.public_url, path.path);
    let form = SignedForm::new(&url, &[("CallSid".to_owned(), "CA1".to_owned())], &world.home.twilio_token);
    let incomplete = form.headers.iter().fold(path.text(form.body), |event, (name, value)| event.header(name, value));
    given.note("incomingCall", 422, &world.send("call-start", &incomplete).await);
    transfers(&mut given, &world).await;
    given
}

/// The requests about the line of a caller whose call was transferred.
async fn transfers(given: &mut Given, world: &World) {
    let moved = world.aws.rows("calls").remove(0);
    let transfer = json!({
        "execution_id": NOBODY, "at": moved["created_at"], "ring_seconds": 20, "returns": true, "briefing": "Ana asks about invoice 42.",
        "destinations": [{"number": "+14155550199"}], "rung": [],
    });
    world.aws.change("calls", text(&moved["id"]), json!({"transfer": transfer}));
    let mut caller = world.caller("+14155550101");
    caller.call_sid = text(&moved["call_sid"]).to_owned();
    for (operation, end) in [("ringNext", ""), ("briefCallee", "/briefing")] {
        let path = format!("/api/phone-number/{}/transfers/{}{end}", world.home.phone_number_id, text(&moved["id"]));
        let url = format!("{}{path}", world.options.public_url);
        for (token, status) in [(world.home.twilio_token.as_str(), 200), ("guessed", 403)] {
            let form = SignedForm::new(&url, &caller.form(), token);
            let event = Event::new("POST", &path).text(form.body);
            let event = form.headers.iter().fold(event, |event, (name, value)| event.header(name, value));
            given.note(operation, status, &world.send("call-start", &event).await);
            given.note(operation, 422, &world.send("call-start", &event.query("rang", "often")).await);
        }
    }
}

pub(super) async fn runs_of_tools() -> Given {
    let mut given = Given::default();
    let mut world = World::start().await;
    let sms = world.attached(&ai_sms()).await;
    let slack = world.attached(&slack_action(&world.home)).await;
    let id = text(&sms["id"]).to_owned();

    let sent = world.call_tool(&world.call(&sms, json!({"text": "Hi", "colour": "red"}))).await;
    given.note("executeTool", 200, &sent);
    assert!(sent.body["logs"].is_array(), "{}", sent.body);
    let told = world.call_tool(&world.call(&slack, json!({"text": "Hi"}))).await;
    given.note("executeTool", 200, &told);
    assert!(told.body["exports"].is_object(), "{}", told.body);
    for arguments in [json!({}), json!({"text": 7})] {
        let failed = world.call_tool(&world.call(&sms, arguments)).await;
        given.note("executeTool", 200, &failed);
        failed.sentence();
    }
    world.twilio.inject(Standin::drop_after());
    let unknown = world.call_tool(&world.call(&sms, json!({"text": "Again"}))).await;
    given.note("executeTool", 200, &unknown);
    unknown.sentence();

    for query in ["?limit=2", "?status=failed", ""] {
        let shown = world.list(&format!("/tools/{id}/executions{query}")).await;
        given.note("listToolExecutions", 200, &shown);
        given.note("listExecutions", 200, &world.list("/executions").await);
        let call = shown.body["items"][0]["call_id"].clone();
        given.note("listCallExecutions", 200, &world.executions_of_call(text(&call)).await);
    }

    let wire = world.vapi_event(&world.call(&sms, json!({"text": "Hi"})));
    given.note("executeTool", 400, &world.send("execute", &wire.clone().text("{")).await);
    given.note("executeTool", 400, &world.send("execute", &wire.clone().text("[]")).await);
    given.note("executeTool", 401, &world.execute(&id, &json!({"text": "Hi"})).await);
    let wrong = json!({"text": "Hi", "metadata": {"token": "d3Jvbmc"}});
    given.note("executeTool", 401, &world.execute(&id, &wrong).await);
    given.note("executeTool", 401, &world.execute(NOBODY, &wrong).await);
    given.note("executeTool", 404, &world.execute("no-id", &wrong).await);

    // The same execution through VAPI's other message, with its credential's bearer.
    let bearer = format!("Bearer {}", world.options.webhook_bearer.clone().unwrap());
    let message = |id: &str, arguments: Value| {
        let call =
            json!({"id": "call_1", "type": "function", "function": {"name": sms["name"], "arguments": arguments}});
        let from = json!({"number": "+14155550101"});
        let body = json!({"message": {"type": "tool-calls", "toolCallList": [call], "customer": from,
            "phoneNumber": {"number": world.home.phone_number}, "call": {"id": "0193aa11-2b3c-7d4e-8f50-617283940a1e"}}});
        Event::post(&format!("/api/tools/{id}/execute"), &body).header("authorization", &bearer)
    };
    let (done, declined) = (message(&id, json!({"text": "Hello"})), message(&id, json!({})));
    let gone = message(NOBODY, json!({"text": "Hello"}));
    let done_answer = world.send("execute", &done).await;
    given.note("executeTool", 200, &done_answer);
    assert!(done_answer.body["results"][0]["result"].is_string(), "{}", done_answer.body);
    let declined = world.send("execute", &declined).await;
    given.note("executeTool", 200, &declined);
    assert!(declined.body["results"][0]["error"].is_string(), "{}", declined.body);
    given.note("executeTool", 404, &world.send("execute", &gone).await);

    world.restart();
    world.aws.inject(Fault::new("GetSecretValue", "switchboard/vapi", Trouble::Error("ResourceNotFoundException")));
    given.note("executeTool", 502, &world.send("execute", &done).await);
    world.aws.inject(Fault::new("GetSecretValue", "switchboard/tool-token", Trouble::DropBefore).times(9));
    given.note("executeTool", 503, &world.send("execute", &wire).await);
    world.aws.clear_faults();
    world.aws.put_secret("switchboard/tool-token", &json!({"current": ""}));
    given.note("executeTool", 500, &world.send("execute", &wire).await);

    let silence = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let secrets = Secrets::new(&sdk_config(&format!("http://{}", silence.local_addr().unwrap())));
    let database = Database::connect(&sdk_config(&world.aws.url), TABLE_PREFIX);
    world.process.execute.accounts = Accounts::new(Organizations::new(&database), secrets, "switchboard/vapi", "x/");
    given.note("executeTool", 504, &world.send("execute", &done).await);
    given
}

pub(super) async fn calls() -> Given {
    let mut given = Given::default();
    let mut world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let call = world.call(&tool, json!({"text": "Hi"}));
    let id = call.call_id.clone().unwrap();
    world.call_tool(&call).await.result();
    given.note("getCall", 200, &world.calls(&format!("/{id}")).await);
    world.incoming_call(&world.home, &id, &call.customer_number);
    let now = shared::models::Timestamp::now();
    let started = json!({"execution_id": uuid::Uuid::now_v7().to_string(), "tool_id": tool["id"], "label": "CRM"});
    let row = json!({
        "call_sid": "CA1", "phone_number_id": world.home.phone_number_id, "status": "ringing", "twiml_at": now,
        "on_call_start": [started], "context_taken_at": now, "context_injected_at": now, "context_error": "it is over",
        "context_failed_at": now,
    });
    world.aws.change("calls", &id, row);

    let told = |world: &World, message: &Value| {
        let bearer = format!("Bearer {}", world.options.webhook_bearer.clone().unwrap());
        Event::post("/api/vapi/events", message).header("authorization", &bearer)
    };
    let examples = Document::read().request_examples("takeVapiEvent");
    for (name, status) in [("status", "in-progress"), ("report", "ended")] {
        let mut message = examples[name].clone();
        message["message"]["call"]["id"] = json!(id);
        given.note("takeVapiEvent", 200, &world.send("calls", &told(&world, &message)).await);
        let shown = world.calls(&format!("/{id}")).await;
        assert_eq!(shown.body["status"], status, "{name}");
        given.note("getCall", 200, &shown);
        given.note("getCallReceipt", 200, &world.calls(&format!("/{id}/receipt")).await);
    }
    let page = world.calls("?limit=1").await;
    assert_eq!((&page.body["items"][0]["cost"], &page.body["items"][0]["id"]), (&json!(0.12), &json!(id)));
    given.note("listCalls", 200, &page);
    for query in ["limit=0", "limit=201", "cursor=x"] {
        given.note("listCalls", 422, &world.calls(&format!("?{query}")).await);
    }

    let event = told(&world, &json!({"message": {"type": "status-update", "status": "ended", "call": {"id": id}}}));
    given.note("takeVapiEvent", 400, &world.send("calls", &event.clone().text("{")).await);
    given.note("takeVapiEvent", 400, &world.send("calls", &event.clone().text("{}")).await);
    let wrong = event.clone().header("authorization", "Bearer wrong");
    given.note("takeVapiEvent", 401, &world.send("calls", &wrong).await);
    // An end is waited out; this message is not.
    let passing = json!({"type": "speech-update", "status": "started", "role": "user", "call": {"id": id}});
    let event = told(&world, &json!({"message": passing}));
    world.aws.inject(Fault::throttled("GetItem", "calls"));
    given.note("takeVapiEvent", 503, &world.send("calls", &event).await);

    world.restart();
    world.aws.inject(Fault::new("GetSecretValue", "switchboard/vapi", Trouble::Error("ResourceNotFoundException")));
    given.note("takeVapiEvent", 502, &world.send("calls", &event).await);
    let silence = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let secrets = Secrets::new(&sdk_config(&format!("http://{}", silence.local_addr().unwrap())));
    let database = Database::connect(&sdk_config(&world.aws.url), TABLE_PREFIX);
    world.process.calls.accounts = Accounts::new(Organizations::new(&database), secrets, "switchboard/vapi", "x/");
    given.note("takeVapiEvent", 504, &world.send("calls", &event).await);
    world.aws.inject(Fault::new("GetItem", "calls", Trouble::Error("ValidationException")));
    given.note("takeVapiEvent", 500, &world.send("calls", &event).await);
    world.aws.put("calls", &json!({"id": id}));
    given.note("takeVapiEvent", 503, &world.send("calls", &event).await);
    given
}
