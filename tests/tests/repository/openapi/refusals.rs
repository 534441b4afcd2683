//! Refused and failed requests to the dashboard's routes.

use std::time::Duration;

use local::standins::Fault as Standin;
use serde_json::{Value, json};
use tests::{Answer, Event, Fault, Trouble, World, ai_sms, slack_action};

use super::specification::{Document, Operation};
use super::{
    Given, LATE, NOBODY, a_base, attaching, attaching_knowledge, creating, dashboard, deleting, detaching, hold, text,
    updating,
};

/// A creation whose reserved name is taken by another tool while VAPI creates the tool.
async fn overtaken(world: &World) -> Answer {
    let reserved = |row: &&Value| row.get("reserved_until").is_some();
    world.vapi.inject(Standin::delay(1_500).on("POST", "/tool"));
    let takes = async {
        loop {
            if let Some(name) = world.aws.rows("tools").iter().find(reserved) {
                return world.aws.change("tools", text(&name["id"]), json!({"tool_id": NOBODY}));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let ((), answer) = futures_util::future::join(takes, world.create(&ai_sms())).await;
    answer
}

pub(super) async fn refusals() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    let row = world.tool(&ai_sms()).await;
    let tool = text(&row["id"]);
    let base = a_base(&world).await;
    for (operation, function, event) in dashboard(&world, tool, &base) {
        let mut nobody = event.clone();
        nobody.user = None;
        given.note(operation, 401, &world.send(function, &nobody).await);
        let stranger = event.clone().user(&world.other.user_id);
        given.note(operation, 404, &world.send(function, &stranger).await);
        let mut nowhere = event.clone();
        nowhere.path = event.path.replace(&world.home.slug, "no-such-organization");
        given.note(operation, 404, &world.send(function, &nowhere).await);
        if event.body.is_some() {
            for unreadable in ["", "{", "\u{0}"] {
                given.note(operation, 400, &world.send(function, &event.clone().text(unreadable)).await);
            }
            for wrong in ["[]", "{}", "null", r#"{"tool_id": 7, "label": "x", "type": "fax"}"#] {
                // An empty edit is valid.
                let status = if (operation, wrong) == ("updateTool", "{}") { 200 } else { 422 };
                given.note(operation, status, &world.send(function, &event.clone().text(wrong)).await);
            }
        }
    }
    for id in [NOBODY, "no-id"] {
        given.note("getTool", 404, &world.list(&format!("/tools/{id}")).await);
        given.note("listToolExecutions", 404, &world.list(&format!("/tools/{id}/executions")).await);
        given.note("listAgentsOfTool", 404, &world.list(&format!("/tools/{id}/agents")).await);
        given.note("listCallExecutions", 404, &world.executions_of_call(id).await);
        given.note("getCallReceipt", 404, &world.calls(&format!("/{id}/receipt")).await);
        given.note("listAgentTools", 404, &world.list(&format!("/agents/{id}/tools")).await);
        given.note("attachTool", 404, &world.attach_as(&world.home, id, tool).await);
        given.note("detachTool", 404, &world.detach_as(&world.home, id, tool).await);
        given.note("updateTool", 404, &world.update(&json!({"id": id}), &json!({})).await);
        given.note("deleteTool", 404, &world.delete(&json!({"id": id})).await);
    }
    given.note("attachTool", 404, &world.attach(NOBODY).await);
    given.note("detachTool", 404, &world.detach(NOBODY).await);
    given.note("updateTool", 409, &world.update_seen(&row, "7", &json!({})).await);
    given.note("updateTool", 422, &world.update_seen(&row, "soon", &json!({})).await);
    for query in ["limit=0", "limit=201", "limit=ten", "cursor=x"] {
        given.note("listTools", 422, &world.list(&format!("/tools?{query}")).await);
    }
    for query in ["limit=0", "cursor=x", "status=done"] {
        given.note("listToolExecutions", 422, &world.list(&format!("/tools/{tool}/executions?{query}")).await);
        given.note("listCallExecutions", 422, &world.executions_of_call(&format!("call-1?{query}")).await);
        given.note("listExecutions", 422, &world.list(&format!("/executions?{query}")).await);
    }

    let mut foreign = ai_sms();
    foreign["from"] = json!({"type": "specific_number", "phone_number_id": world.other.phone_number_id});
    given.note("createTool", 422, &world.create(&foreign).await);
    let mut unknown = slack_action(&world.home);
    unknown["pipedreamMetadata"]["actionKey"] = json!("slack-no-such-action");
    given.note("createTool", 422, &world.create(&unknown).await);

    given.note("createTool", 409, &overtaken(&world).await);
    world.vapi.inject(Standin::status(404).on("GET", "/assistant/"));
    given.note("attachTool", 409, &world.attach(tool).await);

    hold(&world, "agents", &world.home.agent_id);
    hold(&world, "tools", tool);
    hold(&world, "knowledge_bases", &base);
    for (operation, function, event) in dashboard(&world, tool, &base).into_iter().skip(18) {
        given.note(operation, 409, &world.send(function, &event.within(Duration::from_secs(1))).await);
    }
    given
}

/// Every operation above the viewer's role, requested by a viewer.
pub(super) async fn lesser_roles() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    let viewer = world.member(&world.home, Some("viewer"));
    let routes = world.template.routes();
    for operation in Document::read().operations() {
        let least = documented_role(&operation);
        let Some(route) = routes.iter().find(|route| {
            (&route.method, &route.path) == (&operation.method, &operation.path)
                && least.as_deref().is_some_and(|least| least != "viewer")
        }) else {
            continue;
        };
        let path = operation
            .path
            .replace("{slug}", &world.home.slug)
            .replace("{id}", NOBODY)
            .replace("{service}", "vapi")
            .replace("{version}", "1");
        let event = Event::new(&route.method, &path).user(&viewer);
        given.note(operation.id.leak(), 403, &world.send(&route.function, &event).await);
    }
    given
}

/// The documented role beside the JWT; `None` for other kinds of access.
pub(super) fn documented_role(operation: &Operation) -> Option<String> {
    match &operation.value["security"] {
        Value::Array(schemes) => {
            let scheme = schemes.first()?;
            let jwt = scheme.get("jwt").or_else(|| scheme.get("verifiedJwt"))?;
            Some(text(&jwt[0]).to_owned())
        }
        _ => None,
    }
}

pub(super) async fn outages() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    let tool = text(&tool["id"]);
    let base = a_base(&world).await;
    for (operation, function, event) in dashboard(&world, tool, &base) {
        world.aws.inject(Fault::throttled("Query", "organizations"));
        given.note(operation, 503, &world.send(function, &event).await);
        assert_eq!(world.aws.faults_left(), 0, "{operation}");
    }
    for (operation, function, event) in dashboard(&world, tool, &base) {
        world.aws.inject(Fault::new("Query", "organizations", Trouble::Error("ValidationException")));
        given.note(operation, 500, &world.send(function, &event).await);
    }
    // An unreadable row, as if a newer version had written it.
    world.aws.put("organizations", &json!({"id": world.home.organization_id, "slug": world.home.slug}));
    for (operation, function, event) in dashboard(&world, tool, &base) {
        given.note(operation, 503, &world.send(function, &event).await);
    }
    given
}

/// However VAPI fails, nothing remains there and no tool is lost.
pub(super) async fn vapi_fails(operation: &'static str, function: &'static str) -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    let tool = text(&tool["id"]);
    if ["detach", "delete"].contains(&function) {
        world.attach(tool).await.expect(201);
    }
    let (event, route) = match function {
        "create-tool" => (creating(&world, &ai_sms()), ("POST", "/tool")),
        "update-tool" => (updating(&world, tool), ("PATCH", "/tool/")),
        "attach" => (attaching(&world, tool), ("PATCH", "/assistant/")),
        "detach" => (detaching(&world, tool), ("PATCH", "/assistant/")),
        "knowledge" => {
            let base = a_base(&world).await;
            let what = if operation == "attachKnowledgeBase" { "attach" } else { "detach" };
            if what == "detach" {
                world.knowledge_of(&world.home.agent_id, "attach", &base).await.expect(201);
            }
            (attaching_knowledge(&world, what, &base), ("PATCH", "/assistant/"))
        }
        _ => (deleting(&world, tool), ("PATCH", "/assistant/")),
    };
    for (fault, status) in [
        (Standin::status(500), 502),
        (Standin::status(401), 502),
        (Standin::body(json!("<html>")), 502),
        (Standin::status(429).with_header("Retry-After", "600"), 503),
    ] {
        world.vapi.inject(fault.times(20));
        let answer = world.send(function, &event).await;
        given.note(operation, status, &answer);
        assert_eq!(answer.body.get("agents_left").is_some(), function == "delete", "{}", answer.body);
        world.vapi.clear_faults();
    }
    world.vapi.inject(Standin::delay(LATE).on(route.0, route.1));
    given.note(operation, 504, &world.send(function, &event.within(Duration::from_secs(8))).await);
    // Settling removes the query tool after the agent's detachment, which may happen at once.
    let most = if operation == "detachKnowledgeBase" { 2 } else { 1 };
    let tools = world.vapi.tools().len();
    assert!((1..=most).contains(&tools), "{operation} leaves {tools} tools at VAPI");
    assert_eq!(world.tool_ids().len(), 0, "{operation} leaves a tool with the assistant");
    given
}
