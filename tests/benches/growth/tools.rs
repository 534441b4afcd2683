//! Tools, the agents that have them, and the history of their executions.

use serde_json::{Value, json};
use tests::{World, ai_sms, sms_without_call, standins::llm::Turn};
use uuid::Uuid;

use crate::{
    SMALL,
    curve::{
        Cost,
        Expected::{Flat, Linear},
        Scenario, TIMES, measured, once,
    },
    rows::{PAGE, copy, fill, full, id, world},
};

pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario {
        grows: "tools of an organization",
        most: 1_000,
        small: SMALL,
        operations: &[
            ("a page of the tools", Flat),
            ("a tool is made", Flat),
            ("a tool is attached", Flat),
            ("a call of a tool", Flat),
            ("a turn of a chat", Linear("the search for tools that fit the question reads all of them")),
        ],
        measure: |size| Box::pin(tools_of_an_organization(size)),
    },
    Scenario {
        grows: "tools of an agent",
        most: 100,
        small: [4, 12],
        operations: &[("a tool is attached", Flat), ("a call of a tool", Flat)],
        measure: |size| Box::pin(tools_of_an_agent(size)),
    },
    Scenario {
        grows: "agents of a tool",
        most: 100,
        small: [4, 12],
        operations: &[
            ("an edit that keeps the agents", Flat),
            ("its agents are listed", Linear("the list has all of them")),
            (
                "an edit that changes each agent",
                Linear("each agent is changed at VAPI; for those that the request has no time for, `settle` does it"),
            ),
        ],
        measure: |size| Box::pin(agents_of_a_tool(size)),
    },
    Scenario {
        grows: "executions in the history",
        most: 1_000,
        small: [40, 80],
        operations: &[
            ("a page of all", Flat),
            ("a page of one tool's", Flat),
            ("a page of one call's", Flat),
            ("a call of the tool", Flat),
        ],
        measure: |size| Box::pin(executions(size)),
    },
];

async fn tools_of_an_organization(size: usize) -> Vec<Cost> {
    let world = world().await;
    let tool = world.attached(&ai_sms()).await;
    // The planner offers tools that need no phone call.
    let usable = world.tool(&sms_without_call(&world.home)).await;
    let row = world.aws.row("tools", id(&usable)).unwrap();
    fill(&world, "tools", &row, size, |number| {
        let schema = |mut schema: Value, name: &str| {
            schema["name"] = json!(name);
            schema
        };
        let name = format!("confirm_{number}");
        json!({
            "name": name, "label": format!("Confirm {number}"), "external_tool_id": Uuid::new_v4(),
            "function_schema": schema(row["function_schema"].clone(), &name),
        })
    });
    let page = measured(&world, async |_| full(&world.list(&format!("/tools?limit={PAGE}")).await.expect(200))).await;
    let made = measured(&world, async |_| drop(world.tool(&ai_sms()).await)).await;
    let mut spare = Vec::new();
    for _ in 0..TIMES {
        spare.push(world.tool(&ai_sms()).await);
    }
    let attached = measured(&world, async |time| drop(world.attach(id(&spare[time])).await.expect(201))).await;
    let chat = measured(&world, async |_| {
        let plan = r#"{"tool": "none", "reason": "a greeting", "arguments": {}}"#;
        world.llm.script([Turn::text(plan), Turn::text("Hello!")]);
        world.chat("Hi").await.expect(200);
    })
    .await;
    vec![page, made, attached, called(&world, &tool).await, chat]
}

async fn called(world: &World, tool: &Value) -> Cost {
    let call = |time: usize| world.vapi_event(&world.call(tool, json!({"text": format!("Message {time}")})));
    let events: Vec<_> = (0..TIMES).map(call).collect();
    measured(world, async |time| {
        world.send("execute", &events[time]).await.result();
    })
    .await
}

async fn tools_of_an_agent(size: usize) -> Vec<Cost> {
    let world = world().await;
    let tool = world.attached(&ai_sms()).await;
    for _ in 1..size {
        world.attached(&ai_sms()).await;
    }
    let mut spare = Vec::new();
    for _ in 0..TIMES {
        spare.push(world.tool(&ai_sms()).await);
    }
    let attached = measured(&world, async |time| drop(world.attach(id(&spare[time])).await.expect(201))).await;
    vec![attached, called(&world, &tool).await]
}

async fn agents_of_a_tool(size: usize) -> Vec<Cost> {
    let world = world().await;
    let tool = world.attached(&ai_sms()).await;
    let model = world.model();
    let attachment = world.aws.rows("agent_tools").remove(0);
    let agents = world.agents(size - 1).await;
    for (number, agent) in agents.iter().enumerate() {
        world.aws.put("agent_tools", &copy(&attachment, number, &json!({"agent_id": agent})));
        let assistant = world.aws.row("agents", agent).unwrap()["external_assistant_id"].clone();
        let path = format!("/assistant/{}", assistant.as_str().unwrap());
        world.at_vapi("PATCH", &path, &json!({"model": model})).await;
        world.prove(&world.home, assistant.as_str().unwrap()).await;
    }
    let edit = measured(&world, async |time| {
        let changes = json!({"description": format!("Sends the caller a text message, number {time}.")});
        world.update(&tool, &changes).await.expect(200);
    })
    .await;
    let path = format!("/tools/{}/agents", id(&tool));
    let list = measured(&world, async |_| drop(world.list(&path).await.expect(200))).await;
    let (each, answer) = once(&world, world.update(&tool, &json!({"attach_to_agent": false, "execute_on_call_start": true, "text": {"mode": "fixed", "value": "Welcome"}}))).await;
    assert!(matches!(answer.status, 200 | 202), "{}", answer.body);
    vec![edit, list, each]
}

async fn executions(size: usize) -> Vec<Cost> {
    let world = world().await;
    let tool = world.attached(&ai_sms()).await;
    world.call_tool(&world.call(&tool, json!({"text": "Hello"}))).await.result();
    let row = world.executions().remove(0);
    fill(&world, "executions", &row, size, |_| json!({}));
    let pages = [format!("/executions?limit={PAGE}"), format!("/tools/{}/executions?limit={PAGE}", id(&tool))];
    let mut costs = Vec::new();
    for page in &pages {
        costs.push(measured(&world, async |_| full(&world.list(page).await.expect(200))).await);
    }
    let of_call = format!("{}?limit={PAGE}", row["call_id"].as_str().unwrap());
    costs.push(measured(&world, async |_| full(&world.executions_of_call(&of_call).await.expect(200))).await);
    costs.push(called(&world, &tool).await);
    costs
}
