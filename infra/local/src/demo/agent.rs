//! An agent builds an automation over the Model Context Protocol.
//!
//! The user asked: "alert me when someone posts 'urgent' in Slack". The agent finds the services, reads two schemas,
//! deploys, is rejected, repairs the definition and is accepted. A person activates the automation and pauses it
//! again.

use reqwest::Method;
use serde_json::{Value, json};

use super::user::{User, must, text};
use crate::{Error, Result, progress::Progress};

/// Maximum lines printed of an answer.
const LINES: usize = 8;
const PROTOCOL: &str = "2025-11-25";

pub(super) async fn play(user: &User<'_>, progress: &Progress) -> Result<()> {
    let step =
        progress.step("demo: an agent builds an automation over MCP, is refused, repairs it, and it is activated");
    let mut client = Client { user, next_id: 1 };
    let hello =
        json!({"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": {"name": "demo", "version": "1"}});
    let server = client.ask("initialize", &hello).await?;
    let listed = client.ask("tools/list", &json!({})).await?;
    let names = listed.get("tools").and_then(Value::as_array).into_iter().flatten().filter_map(|tool| tool.get("name"));
    must(names.clone().any(|name| name == "deploy_automation"), "the MCP server does not list deploy_automation")?;
    let names: Vec<&str> = names.filter_map(Value::as_str).collect();

    // The user connects an account for notifications once.
    let credential = json!({"account_name": "On call", "user_key": "demo-user-key", "api_token": "demo-api-token"});
    user.ask(Method::POST, "/services/push_notifications/connect", Some(&credential)).await?;

    let (_, overview) = client.call("initial_md_fetch", &json!({"services": ["Slack", "Push Notifications"]})).await?;
    must(said(&overview).contains("event.text"), "the agent was not told what Slack's events hold")?;
    let wanted = json!({"tool_names": ["slack_post_message", "push_notifications_send"]});
    let (_, schemas) = client.call("fetch_tool_data", &wanted).await?;
    let fingerprint = fingerprint(&schemas, "push_notifications_send")?;

    let wrong = definition(&fingerprint, "Urgent: {{event.txt}}", "includes");
    let (refused, why) = client.call("deploy_automation", &json!({"automation": wrong})).await?;
    must(
        refused && said(&why).contains("event.text") && said(&why).contains("contains"),
        &format!("the definition was not refused as it must be: {}", said(&why)),
    )?;
    let right = definition(&fingerprint, "Urgent: {{event.text}}", "contains");
    let (refused, saved) = client.call("deploy_automation", &json!({"automation": right})).await?;
    must(!refused, &format!("the repaired definition was refused: {}", said(&saved)))?;

    let automation = saved.pointer("/structuredContent/automation").cloned().unwrap_or_default();
    let path = format!("/automations/{}/activate", text(&automation, "id")?);
    let version = automation.get("version").cloned().unwrap_or_default();
    let activated = user.ask(Method::POST, &path, Some(&json!({"version": version}))).await?;
    let active = activated.pointer("/automation/status").is_some_and(|status| status == "active");
    must(active, &format!("the automation was not activated: {activated}"))?;
    // Paused, because the demo has no stand-in for the notification service.
    let id = text(&automation, "id")?;
    user.ask(Method::POST, &format!("/automations/{id}/pause"), None).await?;
    step.done("it is active");

    progress.line(&format!("\nThe agent, over MCP with {}:", said_by(&server)));
    progress.line(&format!("  tools: {}", names.join(", ")));
    for (what, answer) in [
        ("initial_md_fetch Slack, Push Notifications", &overview),
        ("fetch_tool_data slack_post_message, push_notifications_send", &schemas),
        ("deploy_automation, with two mistakes", &why),
        ("deploy_automation, repaired", &saved),
    ] {
        progress.line(&format!("  {what}"));
        for line in said(answer).lines().filter(|line| !line.trim().is_empty()).take(LINES) {
            progress.line(&format!("    {}", short(line)));
        }
    }
    progress.line(&format!(
        "  then a person activates version {version}: {}, and pauses it, because the demo's key for notifications is nobody's",
        activated.pointer("/automation/status").unwrap_or(&Value::Null)
    ));
    Ok(())
}

/// The automation that the agent writes.
fn definition(fingerprint: &str, message: &str, operator: &str) -> Value {
    json!({
        "name": "Urgent in Slack",
        "description": "Alerts me when someone posts 'urgent' in Slack.",
        "trigger_type": "webhook",
        "trigger_config": {"service": "Slack", "event_type": "message"},
        "fingerprints": {"push_notifications_send": fingerprint},
        "actions": [{
            "id": "alert", "tool": "push_notifications_send", "parameters": {"message": message},
            "condition": {"path": "event.text", "op": operator, "value": "urgent", "case_insensitive": true},
        }],
    })
}

/// A minimal MCP client.
struct Client<'a> {
    user: &'a User<'a>,
    next_id: u64,
}

impl Client<'_> {
    async fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        let about = &self.user.stack.description;
        let address = format!("{}/api/{}/mcp", about.api_url, about.slug);
        let message = json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params});
        self.next_id += 1;
        let request = self.user.stack.http.post(&address).bearer_auth(&about.token).json(&message);
        let request = request.header("accept", "application/json, text/event-stream");
        let request = request.header("mcp-protocol-version", PROTOCOL);
        let answer = super::user::answer(&format!("MCP's {method}"), &address, request).await?;
        answer.get("result").cloned().ok_or_else(|| Error::Demo(format!("MCP's {method} was answered {answer}")))
    }

    /// Whether the tool failed, and its result.
    async fn call(&mut self, tool: &str, arguments: &Value) -> Result<(bool, Value)> {
        let result = self.ask("tools/call", &json!({"name": tool, "arguments": arguments})).await?;
        Ok((result.get("isError").is_some_and(|failed| *failed == true), result))
    }
}

fn fingerprint(schemas: &Value, tool: &str) -> Result<String> {
    let tools = schemas.pointer("/structuredContent/tools").and_then(Value::as_array);
    let read = tools.into_iter().flatten().find(|read| read.get("name").is_some_and(|name| name == tool));
    text(read.unwrap_or(&Value::Null), "fingerprint")
}

fn said(result: &Value) -> &str {
    result.pointer("/content/0/text").and_then(Value::as_str).unwrap_or_default()
}

fn said_by(server: &Value) -> String {
    let name = server.pointer("/serverInfo/title").and_then(Value::as_str).unwrap_or("the server");
    format!("{name}, {}", server.get("protocolVersion").and_then(Value::as_str).unwrap_or_default())
}

fn short(line: &str) -> String {
    match line.char_indices().nth(116) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line.to_owned(),
    }
}
