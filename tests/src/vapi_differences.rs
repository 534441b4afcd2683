//! Compares the tools at VAPI with the tables.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::World;

/// Every difference between the two sides, as sentences; empty if they agree and no intent is open.
pub fn differences(world: &World) -> Vec<String> {
    let mut differences = Vec::new();
    let tools = world.tools();
    let rows = world.aws.rows("agent_tools");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();

    for tool in &tools {
        let (id, external) = (text(&tool["id"]), tool["external_tool_id"].as_str());
        let attachable = tool["attach_to_agent"] == true;
        if attachable != external.is_some() {
            differences.push(format!("tool {id} is attachable: {attachable}, and has VAPI's id: {external:?}"));
        }
        if let Some(base) = tool["automatic_for"].as_str() {
            let named = world.aws.row("knowledge_bases", base).map(|base| base["query_tool_id"].clone());
            if named.as_ref() != Some(&tool["id"]) {
                differences.push(format!("tool {id} is automatic, and its base names {named:?}"));
            }
            if !rows.iter().any(|row| row["tool_id"] == tool["id"]) {
                differences.push(format!("tool {id} is automatic, and no agent has it"));
            }
        }
        let Some(external) = external else { continue };
        match world.vapi.tool(external) {
            None => differences.push(format!("tool {id} is not at VAPI")),
            Some(at_vapi) => {
                for (ours, theirs) in [("name", "name"), ("description", "description"), ("parameters", "body")] {
                    if tool["function_schema"][ours] != at_vapi[theirs] {
                        differences.push(format!("tool {id}: {ours} differs at VAPI"));
                    }
                }
            }
        }
    }
    for at_vapi in world.vapi.tools() {
        let external = text(&at_vapi["id"]);
        if !tools.iter().any(|tool| tool["external_tool_id"] == external.as_str()) {
            differences.push(format!("VAPI has a tool without a row: {external}"));
        }
    }
    for row in &rows {
        match tools.iter().find(|tool| tool["id"] == row["tool_id"]) {
            None => differences.push(format!("an attachment of a tool that is gone: {}", row["tool_id"])),
            Some(tool) if tool["attach_to_agent"] != row["is_vapi_attached"] => {
                differences.push(format!(
                    "is_vapi_attached is {}, attach_to_agent is {}",
                    row["is_vapi_attached"], tool["attach_to_agent"]
                ));
            }
            Some(_) => {}
        }
    }
    for agent in world.aws.rows("agents").iter().filter(|row| row.get("external_assistant_id").is_some()) {
        let external = |row: &&Value| {
            let tool = tools.iter().find(|tool| tool["id"] == row["tool_id"])?;
            tool["external_tool_id"].as_str().map(str::to_owned)
        };
        let of_table: BTreeSet<String> = rows
            .iter()
            .filter(|row| row["agent_id"] == agent["id"] && row["is_vapi_attached"] == true)
            .filter_map(|row| external(&row))
            .collect();
        let assistant = world.vapi.assistant(&text(&agent["external_assistant_id"])).unwrap_or_default();
        let mut ids = assistant["model"]["toolIds"].as_array().cloned().unwrap_or_default();
        let pinned = assistant["model"]["toolRefs"].as_array().into_iter().flatten();
        ids.extend(pinned.map(|pinned| pinned["toolId"].clone()));
        let of_vapi: BTreeSet<String> = ids.iter().map(text).collect();
        if of_table != of_vapi {
            differences.push(format!("the assistant has {of_vapi:?}, the table {of_table:?}"));
        }
        if ids.len() != of_vapi.len() {
            differences.push("the assistant names a tool twice".to_owned());
        }
    }
    let guards: BTreeSet<String> =
        world.aws.rows("tools").iter().map(|row| text(&row["id"])).filter(|id| id.starts_with("name#")).collect();
    let names: BTreeSet<String> =
        tools.iter().map(|tool| format!("name#{}#{}", text(&tool["organization_id"]), text(&tool["name"]))).collect();
    if guards != names {
        differences.push(format!("guards of names are {guards:?}, names {names:?}"));
    }
    for intent in world.aws.rows("intents") {
        differences.push(format!("an intent is open: {}", intent["change"]));
    }
    differences
}
