//! Descriptions of the tools for existing automations.

use serde_json::{Value, json};

use super::{AgentTool, Hints, IDEMPOTENCY_KEY, Kind, definition, examples, idempotency_key};
use crate::models::ToolEffect;
use crate::tool::{Parameters, ToolSpec};

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn automation_id() -> Value {
    text("Id of the automation, as list_automations gives it")
}

pub(super) fn list_automations() -> AgentTool {
    let status = json!({
        "type": "string", "enum": ["pending_review", "active", "paused"], "description": "Only those with this status",
    });
    AgentTool {
        kind: Kind::ListAutomations,
        title: "List automations",
        spec: ToolSpec {
            name: "list_automations".into(),
            description: "Lists the organization's automations, newest first: id, name, what starts them, status, versions and \
                          revision. Look here before you create one: the task may be a change of an existing automation."
                .into(),
            parameters: Parameters::new([
                ("status", status, false),
                ("limit", json!({"type": "integer", "description": "How many to give, 1 to 100; 50 unless given"}), false),
                ("cursor", text("next_cursor of the previous answer, for the next page"), false),
            ])
            .closed(),
            returns: json!({}),
            own_examples: examples(&[
                "list_automations()",
                r#"list_automations({status: "active"})"#,
                "list_automations({limit: 10})",
            ]),
            effect: ToolEffect::None,
            repeatable: false,
        },
        hints: Hints::READS,
        how_to_get_the_rest: "ask again with a smaller limit, and go on with next_cursor",
    }
}

pub(super) fn get_automation() -> AgentTool {
    AgentTool {
        kind: Kind::GetAutomation,
        title: "Read an automation",
        spec: ToolSpec {
            name: "get_automation".into(),
            description: "Gives an automation with the definition of its newest version, its revision, when it runs next, and what \
                          it waits for. Read it before you change it."
                .into(),
            parameters: Parameters::new([("id", automation_id(), true)]).closed(),
            returns: json!({}),
            own_examples: examples(&[
                r#"get_automation("df82f27b-8582-8e09-b952-602fe248fbe7")"#,
                r#"get_automation({id: "df82f27b-8582-8e09-b952-602fe248fbe7"})"#,
                r#"return get_automation("df82f27b-8582-8e09-b952-602fe248fbe7");"#,
            ]),
            effect: ToolEffect::None,
            repeatable: false,
        },
        hints: Hints::READS,
        how_to_get_the_rest: "the definition is large; a person sees all of it in the dashboard",
    }
}

pub(super) fn update_automation() -> AgentTool {
    let revision = json!({
        "type": "integer", "description": "The revision that get_automation gave: if the automation has changed since, nothing is saved",
    });
    let dry_run = json!({"type": "boolean", "description": "Only check it and save nothing"});
    let parameters = Parameters::new([
        ("id", automation_id(), true),
        ("revision", revision, true),
        ("automation", definition(), true),
        ("dry_run", dry_run, false),
    ])
    .closed();
    AgentTool {
        kind: Kind::UpdateAutomation,
        title: "Change an automation",
        spec: ToolSpec {
            name: "update_automation".into(),
            description: "Checks a whole definition and saves it as the next version of an existing automation; the version that \
                          runs goes on until a person activates the new one. Take the definition from get_automation, change \
                          what is to change, and send all of it. Errors are told as deploy_automation tells them."
                .into(),
            parameters,
            returns: json!({}),
            own_examples: examples(&[
                r#"update_automation({id: "df82f27b-8582-8e09-b952-602fe248fbe7", revision: 2, automation: {name: "Morning", trigger_type: "schedule_recurring", trigger_config: {interval: "daily", time_of_day: "09:00", timezone: "Europe/Berlin"}, fingerprints: {current_time: "built-in"}, actions: [{id: "now", tool: "current_time"}]}})"#,
                r#"update_automation({id: "df82f27b-8582-8e09-b952-602fe248fbe7", revision: 2, automation: {name: "By hand", trigger_type: "manual", fingerprints: {current_time: "built-in"}, actions: [{id: "now", tool: "current_time"}]}, dry_run: true})"#,
                r#"update_automation("df82f27b-8582-8e09-b952-602fe248fbe7", 2, {name: "By hand", trigger_type: "manual", fingerprints: {current_time: "built-in"}, actions: [{id: "now", tool: "current_time", output_as: "time"}]})"#,
            ]),
            effect: ToolEffect::Record,
            repeatable: false,
        },
        // The new version waits for review.
        hints: Hints { read_only: false, destructive: false, idempotent: true, open_world: true },
        how_to_get_the_rest: "correct what is told here and send it again",
    }
}

pub(super) fn run_automation() -> AgentTool {
    let trigger_data =
        json!({"type": "object", "description": "The data of the trigger, into which the automation's paths lead"});
    let version = json!({"type": "integer", "description": "Another version than the active one; for a dry run, or an administrator"});
    let dry_run =
        json!({"type": "boolean", "description": "Nothing is changed outside: each action says what it would do"});
    AgentTool {
        kind: Kind::RunAutomation,
        title: "Run an automation",
        spec: ToolSpec {
            name: "run_automation".into(),
            description: "Starts a run of an automation now, whatever its trigger is, and answers at once; get_run gives its outcome. Its actions happen. Try it with dry_run first. With an idempotency_key the same call again \
                          is the same run."
                .into(),
            parameters: Parameters::new([
                ("id", automation_id(), true),
                ("trigger_data", trigger_data, false),
                ("version", version, false),
                ("dry_run", dry_run, false),
                (IDEMPOTENCY_KEY, idempotency_key(), false),
            ])
            .closed(),
            returns: json!({}),
            own_examples: examples(&[
                r#"run_automation({id: "df82f27b-8582-8e09-b952-602fe248fbe7", dry_run: true})"#,
                r#"run_automation("df82f27b-8582-8e09-b952-602fe248fbe7", {event: {text: "urgent: pump 3 leaks"}})"#,
                r#"run_automation({id: "df82f27b-8582-8e09-b952-602fe248fbe7", idempotency_key: "first try"})"#,
            ]),
            effect: ToolEffect::Record,
            repeatable: false,
        },
        hints: Hints { read_only: false, destructive: true, idempotent: false, open_world: true },
        how_to_get_the_rest: "read the run with get_run",
    }
}

pub(super) fn get_run() -> AgentTool {
    AgentTool {
        kind: Kind::GetRun,
        title: "Read a run",
        spec: ToolSpec {
            name: "get_run".into(),
            description: "Gives a run: its status, what it waits for, the input and output of each action, its error and its result. A run that is queued or running is worth another look in some seconds."
                .into(),
            parameters: Parameters::new([("id", text("Id of the run, as run_automation gave it"), true)]).closed(),
            returns: json!({}),
            own_examples: examples(&[
                r#"get_run("1f6d2c4e-0b7a-8c1d-9e2f-3a4b5c6d7e8f")"#,
                r#"get_run({id: "1f6d2c4e-0b7a-8c1d-9e2f-3a4b5c6d7e8f"})"#,
                r#"return get_run("1f6d2c4e-0b7a-8c1d-9e2f-3a4b5c6d7e8f");"#,
            ]),
            effect: ToolEffect::None,
            repeatable: false,
        },
        hints: Hints::READS,
        how_to_get_the_rest: "a person sees all of the run in the dashboard",
    }
}
