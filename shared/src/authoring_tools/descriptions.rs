//! Descriptions of the agent tools: names, schemas and hints.

mod automations;
mod definition_schema;
#[cfg(test)]
mod schema_and_reader;

use std::{collections::BTreeMap, sync::LazyLock};

use serde_json::{Value, json};

use self::{
    automations::{get_automation, get_run, list_automations, run_automation, update_automation},
    definition_schema::definition_schema,
};
use crate::{
    models::ToolEffect,
    tool::{Parameters, ToolSpec},
};

/// Identifies repeats of the same call, also much later.
pub const IDEMPOTENCY_KEY: &str = "idempotency_key";

#[derive(Debug)]
pub struct AgentTool {
    pub(super) kind: Kind,
    /// Arguments are checked against its parameters.
    pub spec: ToolSpec,
    pub title: &'static str,
    pub hints: Hints,
    /// The remedy for a shortened answer, to follow a colon.
    pub(super) how_to_get_the_rest: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    InitialMdFetch,
    FetchToolData,
    SearchTools,
    DeployAutomation,
    ListAutomations,
    GetAutomation,
    UpdateAutomation,
    RunAutomation,
    GetRun,
    CallTool,
}

impl Kind {
    /// Whether only clients may use it: a run with it could start itself.
    pub(super) const fn is_for_clients(self) -> bool {
        match self {
            Self::InitialMdFetch | Self::FetchToolData | Self::SearchTools | Self::DeployAutomation => false,
            Self::ListAutomations
            | Self::GetAutomation
            | Self::UpdateAutomation
            | Self::RunAutomation
            | Self::GetRun
            | Self::CallTool => true,
        }
    }
}

impl AgentTool {
    /// JSON schema of the arguments, as shown to models.
    pub fn schema(&self) -> &Value {
        WITH_DEFINITION.get(&self.spec.name).unwrap_or_else(|| self.spec.parameters.schema())
    }
}

/// Annotations of the Model Context Protocol, for the worst case.
#[expect(clippy::struct_excessive_bools, reason = "each is an annotation of its own in the protocol")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hints {
    pub read_only: bool,
    pub destructive: bool,
    pub idempotent: bool,
    pub open_world: bool,
}

impl Hints {
    /// Reads our own data only.
    const READS: Self = Self { read_only: true, destructive: false, idempotent: true, open_world: false };
}

/// In the order of listing and typical use.
pub static AGENT_TOOLS: LazyLock<[AgentTool; 10]> = LazyLock::new(|| {
    [
        initial_md_fetch(),
        fetch_tool_data(),
        search_tools(),
        deploy_automation(),
        list_automations(),
        get_automation(),
        update_automation(),
        run_automation(),
        get_run(),
        call_tool(),
    ]
});

fn initial_md_fetch() -> AgentTool {
    let services = json!({
        "type": "array", "items": {"type": "string"},
        "description": "Names of services, in any case: [\"Slack\", \"Google Calendar\"]",
    });
    let cursor = json!({"type": "string", "description": "next_cursor of the previous answer, for the next page"});
    AgentTool {
        kind: Kind::InitialMdFetch,
        title: "List what services offer",
        spec: ToolSpec {
            name: "initial_md_fetch".into(),
            description: "Lists the tools of services, each in one line, and what the services can do: which webhook events \
                          they send with the fields of trigger_data, whether they can be polled, and notes. Begin here when \
                          you know the service. If you do not, call search_tools. A schema is read with fetch_tool_data. The name \
                          automations gives the language of definitions on one page: read it before the first deploy_automation."
                .into(),
            parameters: Parameters::new([("services", services, true), ("cursor", cursor, false)]).closed(),
            returns: json!({}),
            own_examples: examples(&[
                r#"initial_md_fetch(["Slack"])"#,
                r#"initial_md_fetch(["slack", "push notifications"])"#,
                r#"initial_md_fetch({services: ["Google Calendar"]})"#,
            ]),
            effect: ToolEffect::None,
            repeatable: true,
        },
        hints: Hints::READS,
        how_to_get_the_rest: "ask for fewer services at a time, or for single tools with search_tools",
    }
}

fn fetch_tool_data() -> AgentTool {
    let names = json!({
        "type": "array", "items": {"type": "string"},
        "description": "Names of tools as they were listed: [\"slack_post_message\", \"push_notifications_send\"]",
    });
    AgentTool {
        kind: Kind::FetchToolData,
        title: "Read tools' schemas",
        spec: ToolSpec {
            name: "fetch_tool_data".into(),
            description: "Gives tools in full: parameters as a JSON schema, what they return, their fingerprint, whether their \
                          service is connected, and an example call. Read every tool before you use it in an automation: \
                          deploy_automation asks for its fingerprint. The names for_each, choose, wait, cron, expressions, \
                          conditions, catch, remember and recall explain parts of definitions."
                .into(),
            parameters: Parameters::new([("tool_names", names, true)]).closed(),
            returns: json!({}),
            own_examples: examples(&[
                r#"fetch_tool_data(["slack_post_message"])"#,
                r#"fetch_tool_data(["slack_post_message", "push_notifications_send"])"#,
                r#"fetch_tool_data({tool_names: ["gmail_send_email"]})"#,
            ]),
            effect: ToolEffect::None,
            repeatable: true,
        },
        hints: Hints::READS,
        how_to_get_the_rest: "ask for fewer tools at a time",
    }
}

fn search_tools() -> AgentTool {
    let text = |description: &str| json!({"type": "string", "description": description});
    let services = json!({
        "type": "array", "items": {"type": "string"}, "description": "Only tools of these services, in any case",
    });
    let trigger = json!({
        "type": "string", "enum": ["webhook", "polling"],
        "description": "Only tools of services that can start an automation in this way",
    });
    AgentTool {
        kind: Kind::SearchTools,
        title: "Search tools",
        spec: ToolSpec {
            name: "search_tools".into(),
            description: "Finds tools by what they can do, best first: the services' and the organization's own. Without q it \
                          lists everything that passes the filters. Each is given in one line, with its fingerprint and \
                          whether its service is connected; read its schema with fetch_tool_data before you use it."
                .into(),
            parameters: Parameters::new([
                ("q", text("Words for the purpose of the tool: send a text message"), false),
                ("services", services, false),
                ("category", text("read, write, search or delete, or a service's category"), false),
                ("trigger", trigger, false),
                ("connected", json!({"type": "boolean", "description": "Only tools of services that are, or are not, connected"}), false),
                ("limit", json!({"type": "integer", "description": "How many to give, 1 to 100; 10 unless given"}), false),
                ("cursor", text("next_cursor of the previous answer, for the next page"), false),
            ])
            .closed(),
            returns: json!({}),
            own_examples: examples(&[
                r#"search_tools("send a push notification")"#,
                r#"search_tools({q: "new email", trigger: "polling", connected: true})"#,
                r#"search_tools({services: ["Notion"], category: "write", limit: 20})"#,
            ]),
            effect: ToolEffect::None,
            repeatable: true,
        },
        hints: Hints::READS,
        how_to_get_the_rest: "ask again with a smaller limit, and go on with next_cursor",
    }
}

/// The definition's argument in the checked schema, which admits any object: the validation reports all mistakes together.
fn definition() -> Value {
    json!({
        "type": "object",
        "description": "The definition: name, description, trigger_type (webhook, polling, schedule_once, \
                        schedule_recurring or manual), trigger_config, actions, variables, and fingerprints: for each tool \
                        that is used, the fingerprint that fetch_tool_data gave. An action has id, tool, parameters, \
                        output_as and condition; {{path}} in a parameter stands for a value of trigger_data or of an \
                        earlier output.",
    })
}

/// The schemas of the tools that take a definition, by tool, with the definition described in full. They are made when a tool is first
/// shown: they are a fifth of the start of a run, which shows none.
static WITH_DEFINITION: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    let with_definition = |tool: &AgentTool| {
        let mut schema = tool.spec.parameters.schema().clone();
        *schema.pointer_mut("/properties/automation")? = definition_schema();
        Some((tool.spec.name.clone(), schema))
    };
    AGENT_TOOLS.iter().filter_map(with_definition).collect()
});

fn deploy_automation() -> AgentTool {
    let dry_run = json!({"type": "boolean", "description": "Only check it and save nothing"});
    let parameters = Parameters::new([("automation", definition(), true), ("dry_run", dry_run, false)]).closed();
    AgentTool {
        kind: Kind::DeployAutomation,
        title: "Deploy an automation",
        spec: ToolSpec {
            name: "deploy_automation".into(),
            description: "Checks the definition of a new automation and saves it as pending_review; a person activates it. When \
                          something is wrong, nothing is saved and all errors are told at once, each with its place (a JSON \
                          pointer into the definition) and the next step: correct them all and deploy again. Read every tool \
                          with fetch_tool_data first. The same definition again is the same automation; to change one that \
                          there is, use update_automation."
                .into(),
            parameters,
            returns: json!({}),
            own_examples: examples(&[
                r#"deploy_automation({automation: {name: "Urgent in Slack", trigger_type: "webhook", trigger_config: {service: "slack", event_type: "message"}, fingerprints: {push_notifications_send: "9f2c41d07a6be835"}, actions: [{id: "alert", tool: "push_notifications_send", parameters: {message: "{{event.text}}"}, condition: {path: "event.text", op: "contains", value: "urgent"}}]}})"#,
                r#"deploy_automation({automation: {name: "Morning", trigger_type: "schedule_recurring", trigger_config: {interval: "daily", time_of_day: "08:00", timezone: "Europe/Berlin"}, fingerprints: {current_time: "built-in"}, actions: [{id: "now", tool: "current_time"}]}, dry_run: true})"#,
                r#"deploy_automation({automation: {name: "By hand", trigger_type: "manual", fingerprints: {current_time: "built-in"}, actions: [{id: "now", tool: "current_time", output_as: "time"}]}})"#,
            ]),
            effect: ToolEffect::Record,
            repeatable: false,
        },
        // The new version waits for review; a polled service is called once.
        hints: Hints { read_only: false, destructive: false, idempotent: true, open_world: true },
        how_to_get_the_rest: "correct what is told here and deploy again",
    }
}

fn call_tool() -> AgentTool {
    let text = |description: &str| json!({"type": "string", "description": description});
    AgentTool {
        kind: Kind::CallTool,
        title: "Call a tool",
        spec: ToolSpec {
            name: "call_tool".into(),
            description: "Calls one of the tools that search_tools and initial_md_fetch list, as the organization. Read it with \
                          fetch_tool_data first and give the fingerprint that you found; a tool that has changed since is not \
                          called. What it does happens at once and may not be undone. The same call again within a few \
                          minutes is answered from the record and does nothing."
                .into(),
            parameters: Parameters::new([
                ("name", text("The tool's name as it was listed"), true),
                ("fingerprint", text("The fingerprint that fetch_tool_data gave for it"), true),
                ("arguments", json!({"type": "object", "description": "The tool's own arguments, by its schema"}), true),
                (IDEMPOTENCY_KEY, idempotency_key(), false),
            ])
            .closed(),
            returns: json!({}),
            own_examples: examples(&[
                r#"call_tool("current_time", "built-in", {timeZone: "Europe/Lisbon"})"#,
                r#"call_tool({name: "slack_post_message", fingerprint: "9f2c41d07a6be835", arguments: {channel: "C024BE91L", text: "Hello"}})"#,
                r#"call_tool({name: "gmail_find_email", fingerprint: "77a0e1b2c3d4f506", arguments: {q: "invoice"}})"#,
            ]),
            effect: ToolEffect::Record,
            repeatable: false,
        },
        hints: Hints { read_only: false, destructive: true, idempotent: false, open_world: true },
        how_to_get_the_rest: "call it again with arguments that ask for less, such as a limit, a page or fewer fields",
    }
}

fn idempotency_key() -> Value {
    json!({
        "type": "string",
        "description": "A text of your choice, the same whenever you repeat this call because you heard no answer: then it \
                        happens once",
    })
}

fn examples(examples: &[&str]) -> Vec<String> {
    examples.iter().map(|example| (*example).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_titles_and_schemas_suit_every_client() {
        for AgentTool { spec, title, hints, .. } in AGENT_TOOLS.iter() {
            let plain = spec.name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'));
            assert!(plain && spec.name.len() <= 40, "{}", spec.name);
            assert!(!title.is_empty() && spec.description.len() < 1_000, "{}", spec.name);
            assert_eq!(spec.parameters.schema()["additionalProperties"], false, "{}", spec.name);
            assert_eq!(hints.read_only, !spec.acts(), "{}", spec.name);
            assert!(!hints.read_only || !hints.destructive, "{}", spec.name);
        }
    }
}
