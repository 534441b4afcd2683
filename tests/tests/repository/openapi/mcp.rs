//! The MCP server and the agent tools against `docs/openapi.yaml`.

use std::thread::JoinHandle;

use serde_json::{Value, json};
use tests::{Answer, Event, Fault, Options, Trouble, World, ai_sms};

use super::{Given, part, specification::Document};

pub(crate) fn parts() -> [JoinHandle<Given>; 3] {
    [part(answers), part(voice), part(outages)]
}

async fn send(world: &World, event: &Event) -> Answer {
    Box::pin(world.send("mcp", event)).await
}

fn asked(world: &World, method: &str, path: &str) -> Event {
    Event::new(method, &format!("/api/{}/{path}", world.home.slug)).user(&world.home.user_id)
}

fn ping() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})
}

async fn answers() -> Given {
    let mut given = Given::default();
    let variables = vec![("MCP_SCOPES", "agents".to_owned())];
    let scoped = World::with(Options { variables, ..Options::default() }).await;
    given.note("mcpMessage", 403, &scoped.mcp(&ping()).await);
    let well_known = format!("/.well-known/oauth-protected-resource/api/{}/mcp", scoped.home.slug);
    given.note("mcpMetadata", 200, &send(&scoped, &Event::get(&well_known)).await);
    given.note(
        "mcpMetadata",
        404,
        &send(&scoped, &Event::get("/.well-known/oauth-protected-resource/api/A%20B/mcp")).await,
    );
    given.note("rootMetadata", 200, &send(&scoped, &Event::get("/.well-known/oauth-protected-resource")).await);

    let world = World::start().await;
    let document = Document::read();
    for (_, message) in document.request_examples("mcpMessage") {
        given.note("mcpMessage", 200, &world.mcp(&message).await);
    }
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    given.note("mcpMessage", 202, &world.mcp(&notification).await);
    let message = world.mcp_event(&ping());
    for (status, header, value) in [
        (400, "mcp-protocol-version", "1999-01-01"),
        (401, "authorization", "Bearer x"),
        (403, "host", "evil.example"),
        (406, "accept", "*/*"),
        (415, "content-type", "text/plain"),
    ] {
        given.note("mcpMessage", status, &send(&world, &message.clone().header(header, value)).await);
    }
    let newest = world.mcp_event(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    let newest = newest.header("mcp-protocol-version", "2026-07-28").header("mcp-method", "tools/list");
    given.note("mcpMessage", 400, &send(&world, &newest).await);
    given.note("mcpMessage", 404, &send(&world, &world.mcp_event_of(&world.other.user_id, &ping())).await);

    given.note("mcpMessage", 400, &send(&world, &message.clone().text("{")).await);
    let token = format!("Bearer {}", world.issuer.token(&world.other.user_id));
    for (method, operation) in [("GET", "mcpListen"), ("DELETE", "mcpEnd")] {
        let mut asked = message.clone();
        method.clone_into(&mut asked.method);
        given.note(operation, 405, &send(&world, &asked).await);
        given.note(operation, 401, &send(&world, &asked.clone().header("authorization", "")).await);
        given.note(operation, 404, &send(&world, &asked.header("authorization", &token)).await);
    }
    let mut preflight = message;
    "OPTIONS".clone_into(&mut preflight.method);
    given.note(
        "mcpPreflight",
        204,
        &send(&world, &preflight.clone().header("origin", "https://api.switchboard.example")).await,
    );
    given.note("mcpPreflight", 403, &send(&world, &preflight.header("origin", "https://evil.example")).await);

    let list = asked(&world, "GET", "agent-tools");
    for format in ["openai", "anthropic", "json-schema"] {
        given.note("listToolsForAgents", 200, &send(&world, &list.clone().query("format", format)).await);
    }
    given.note("listToolsForAgents", 422, &send(&world, &list.clone().query("format", "xml")).await);
    for (_, arguments) in document.request_examples("callToolForAgents") {
        let call = asked(&world, "POST", "agent-tools/search_tools").text(arguments.to_string());
        given.note("callToolForAgents", 200, &send(&world, &call).await);
    }
    let call = asked(&world, "POST", "agent-tools/search_tools").text("{}");
    given.note("callToolForAgents", 400, &send(&world, &call.clone().text("{")).await);
    given.note("callToolForAgents", 422, &send(&world, &call.clone().text("[]")).await);
    given.note("callToolForAgents", 404, &send(&world, &asked(&world, "POST", "agent-tools/none").text("{}")).await);
    for (operation, event) in [("listToolsForAgents", list), ("callToolForAgents", call)] {
        given.note(operation, 401, &send(&world, &Event { user: None, ..event.clone() }).await);
        given.note(operation, 404, &send(&world, &event.user(&world.other.user_id)).await);
    }
    given
}

/// The tools of a voice agent, and the context of a call.
async fn voice() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let token = world.voice_token().await;
    let document = Document::read();
    for (_, message) in document.request_examples("voiceMcpMessage") {
        given.note("voiceMcpMessage", 200, &send(&world, &world.voice_event(&token, &message)).await);
    }
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    given.note("voiceMcpMessage", 202, &send(&world, &world.voice_event(&token, &notification)).await);
    let message = world.voice_event(&token, &ping());
    for (status, header, value) in [
        (400, "mcp-protocol-version", "1999-01-01"),
        (400, "x-call-id", "{{system__call_sid}}"),
        (401, "authorization", "Bearer x"),
        (403, "host", "evil.example"),
        (406, "accept", "*/*"),
        (415, "content-type", "text/plain"),
    ] {
        given.note("voiceMcpMessage", status, &send(&world, &message.clone().header(header, value)).await);
    }
    given.note("voiceMcpMessage", 400, &send(&world, &message.clone().text("{")).await);
    world.incoming_call(&world.other, "theirs", "+14155550101");
    let name = tool["name"].as_str().unwrap();
    let theirs = world.voice_call(&token, &[("x-call-id", "theirs")], name, &json!({"text": "Hi"}));
    given.note("voiceMcpMessage", 200, &send(&world, &theirs).await);
    given.note("agentContext", 403, &world.call_context(&token, &json!({"call_id": "theirs"})).await);
    for (_, body) in document.request_examples("agentContext") {
        given.note("agentContext", 200, &world.call_context(&token, &body).await);
    }
    given.note("agentContext", 422, &world.call_context(&token, &json!({"wait_ms": 4_001})).await);
    given.note("agentContext", 401, &world.call_context("x", &json!({})).await);
    let context = |path: &str| {
        let event = Event::new("POST", &format!("/api/{}/agents/{path}/context", world.home.slug));
        event.header("authorization", &format!("Bearer {token}"))
    };
    given.note("agentContext", 400, &send(&world, &context(&world.home.agent_id).text("{")).await);
    given.note("agentContext", 404, &send(&world, &context("no-id").text("{}")).await);
    for (method, operation) in [("GET", "voiceMcpListen"), ("DELETE", "voiceMcpEnd")] {
        let mut asked = message.clone();
        method.clone_into(&mut asked.method);
        given.note(operation, 405, &send(&world, &asked).await);
        given.note(operation, 401, &send(&world, &asked.clone().header("authorization", "")).await);
        failing(&mut given, &world, operation, &asked).await;
    }
    failing(&mut given, &world, "voiceMcpMessage", &message).await;
    failing(&mut given, &world, "agentContext", &context(&world.home.agent_id).text("{}")).await;
    given
}

async fn failing(given: &mut Given, world: &World, operation: &'static str, event: &Event) {
    world.aws.inject(Fault::throttled("GetItem", "agents"));
    given.note(operation, 503, &send(world, event).await);
    world.aws.inject(Fault::new("GetItem", "agents", Trouble::Error("ValidationException")));
    given.note(operation, 500, &send(world, event).await);
}

async fn outages() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    let message = world.mcp_event(&ping());
    let mut listen = message.clone();
    "GET".clone_into(&mut listen.method);
    let mut end = message.clone();
    "DELETE".clone_into(&mut end.method);
    let call = asked(&world, "POST", "agent-tools/search_tools").text("{}");
    for (operation, event) in [
        ("mcpMessage", message),
        ("mcpListen", listen),
        ("mcpEnd", end),
        ("listToolsForAgents", asked(&world, "GET", "agent-tools")),
        ("callToolForAgents", call),
    ] {
        world.aws.inject(Fault::throttled("Query", "organizations"));
        given.note(operation, 503, &send(&world, &event).await);
        world.aws.inject(Fault::new("Query", "organizations", Trouble::Error("ValidationException")));
        given.note(operation, 500, &send(&world, &event).await);
    }
    given
}
