//! The AWS requests of the streamed chat.

use serde_json::{Map, Value, json};
use tests::{
    World, run_input, sms_without_call,
    standins::{Fault, llm::Turn},
};

use super::{Permissions, note, own_llm};

/// Streams the turns of `chat`, whose tools exist already; reads a thread and stops a turn.
pub(super) async fn stream(asked: &mut Permissions, world: &mut World, tools: &[&Value]) {
    let failing = world.tool(&sms_without_call(&world.home)).await;
    world.restart();
    world.aws.clear_operations();
    let call = |name: &str, arguments: Value| Turn::text(&json!({"tool": name, "arguments": arguments}).to_string());
    for tool in tools.iter().copied().chain([&failing]) {
        let known = &tool["function_schema"]["parameters"]["properties"];
        let argument = ["text", "query"].into_iter().find(|name| known.get(*name).is_some());
        let arguments: Map<String, Value> = argument.map(|name| (name.to_owned(), json!("Hi"))).into_iter().collect();
        let name = tool["name"].as_str().unwrap().replace('-', "_");
        for (number, fault) in [None, Some(Fault::status(400))].into_iter().enumerate() {
            if let Some(fault) = fault {
                world.twilio.inject(fault);
            }
            world.llm.script([call(&name, json!(arguments)), Turn::text("That is it.")]);
            turn(world, &json!({"message": format!("{name} {number}")})).await;
        }
        world.twilio.clear_faults();
    }
    world.llm.script([call("pay_list", json!({})), Turn::text("That is it.")]);
    turn(world, &json!({"message": "Which payments are there to list?"})).await;
    world.llm.script([call("ask_first", json!({"text": "Hi"}))]);
    let waits = turn(world, &json!({"message": "Hi"})).await;
    world.llm.script([Turn::text("All right.")]);
    let id = &waits["metadata"]["pending_action"]["id"];
    turn(world, &json!({"metadata": {"consent": {"id": id, "approved": true}}})).await;

    let thread = "0193aa11-4d5e-7f60-8a71-8294a1b2c3d5";
    world.llm.script([Turn::text(r#"{"tool": "none"}"#), Turn::text("Hello!")]);
    let (user, slug) = (world.home.user_id.clone(), world.home.slug.clone());
    let event = world.stream_event(&user, "/copilotkit/stream", &run_input(thread, "u1", "Hi"));
    let events = world.open_stream(&event.header("x-organization", &slug)).await.rest().await;
    assert_eq!(events.last().unwrap()["type"], "RUN_FINISHED");
    // An expired thread is created anew.
    for mut item in world.aws.rows("threads") {
        item["expires_at"] = json!(1);
        world.aws.put("threads", &item);
    }
    world.llm.script([Turn::text(r#"{"tool": "none"}"#), Turn::text("Hello again!")]);
    let event = world.stream_event(&user, "/copilotkit/stream", &run_input(thread, "u2", "Hi"));
    let events = world.open_stream(&event.header("x-organization", &slug)).await.rest().await;
    assert_eq!(events.last().unwrap()["type"], "RUN_FINISHED");
    world.connect(thread).await.rest().await;
    world.stop(thread).await;
    world.stop("no thread").await;
    // With the organization's own LLM key, whose address has no server.
    let before = own_llm(world);
    let mut broken = world.chat_stream(&json!({"message": "Hi"})).await;
    assert_eq!(broken.rest().await.last().unwrap()["type"], "error");
    world.aws.change("organizations", &world.home.organization_id, json!({"own_keys": before}));
    note(asked, "stream", world);
}

async fn turn(world: &World, body: &Value) -> Value {
    let mut stream = world.chat_stream(body).await;
    let last = stream.rest().await.pop().unwrap();
    assert_eq!(last["type"], "done", "{}", stream.text);
    last
}
