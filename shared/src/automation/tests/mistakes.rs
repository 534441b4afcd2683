//! One mistake per case.

use serde_json::{Map, Value, json};

/// Marks a diagnostic given only for the organization's own tool with the same schema as Slack's.
pub(super) const OWN: (&str, &str) = ("the organization's own tool", "");

/// Ids of automations that an action runs.
pub(super) const UNKNOWN: &str = "0192f0c1-0000-7000-8000-000000000001";
pub(super) const INACTIVE: &str = "0192f0c1-0000-7000-8000-000000000002";
pub(super) const IN_CIRCLE: &str = "0192f0c1-0000-7000-8000-000000000003";
pub(super) const TOO_DEEP: &str = "0192f0c1-0000-7000-8000-000000000004";

/// Changes to [`super::base`], and all resulting diagnostics.
pub(super) type Mistake = (Vec<(&'static str, Value)>, Vec<(&'static str, &'static str)>);

#[expect(clippy::too_many_lines, reason = "it is a table")]
pub(super) fn mistakes() -> Vec<Mistake> {
    const TEXT: &str = "/actions/1/parameters/text";
    const RUNS: &str = "/actions/2/tool";
    const CALLED: &str = "/actions/2/parameters/automation_id";
    let runs = |id: &str| json!({"id": "x", "tool": "call_automation", "parameters": {"automation_id": id}});
    let agent = |name: &str, value: Value| {
        let parameters = Map::from_iter([("prompt".to_owned(), json!("{{event.text}}")), (name.to_owned(), value)]);
        json!({"id": "x", "tool": "llm_agent", "parameters": parameters})
    };
    let action = |tool: &str| json!({"id": "x", "tool": tool, "parameters": {"whatever": true}});
    vec![
        (vec![], vec![]),
        // Shape.
        (vec![("/name", json!(null))], vec![("/name", "missing_field")]),
        (vec![("/name", json!(7))], vec![("/name", "wrong_type")]),
        (vec![("/name", json!(" "))], vec![("/name", "invalid_value")]),
        (vec![("/variable", json!({}))], vec![("/variable", "unknown_field")]),
        (vec![("/actions/0/channel", json!("C"))], vec![("/actions/0/channel", "unknown_field")]),
        (vec![("/service", json!("Slack"))], vec![("/service", "unknown_field")]),
        (vec![("/actions/0/params", json!({}))], vec![("/actions/0/params", "duplicate_field")]),
        (vec![("/actions/0/parameters", json!("sheet"))], vec![("/actions/0/parameters", "wrong_type")]),
        (vec![("/actions/1/id", json!("look"))], vec![("/actions/1/id", "duplicate_id")]),
        (vec![("/actions/1/id", json!(null))], vec![("/actions/1/id", "missing_field")]),
        (vec![("/actions/1/output_as", json!("found"))], vec![("/actions/1/output_as", "duplicate_name")]),
        (vec![("/actions/1/output_as", json!("limit"))], vec![("/actions/1/output_as", "duplicate_name")]),
        (vec![("/actions/1/output_as", json!("today"))], vec![("/actions/1/output_as", "duplicate_name")]),
        (vec![("/actions/1/output_as", json!("a b"))], vec![("/actions/1/output_as", "invalid_value")]),
        (vec![("/actions/1/output_as", json!("__proto__"))], vec![("/actions/1/output_as", "invalid_value")]),
        (vec![("/name", json!("a\u{202E}b"))], vec![("/name", "invalid_value")]),
        (vec![("/variables/api_key", json!("sk-1"))], vec![("/variables/api_key", "secret_in_variable")]),
        (vec![("/variables/crm", json!({"tokens": ["a"]}))], vec![("/variables/crm/tokens/0", "secret_in_variable")]),
        (vec![("/variables/max_tokens", json!("5"))], vec![]),
        (vec![("/variables/api_key", json!(""))], vec![]),
        (vec![("/prompt", json!("Hello"))], vec![("/prompt", "wrong_body")]),
        (vec![("/actions", json!([]))], vec![("/actions", "wrong_body")]),
        (vec![("/actions/0", json!("look"))], vec![("/actions/0", "wrong_type")]),
        (vec![("/fingerprints/read_rows", json!(3))], vec![("/fingerprints/read_rows", "wrong_type")]),
        (vec![("/variables", json!("x"))], vec![("/variables", "wrong_type")]),
        (
            vec![(
                "/trigger_config/filters",
                json!({"path": "event.text", "op": "contains_any", "value": ["{{evnt.x}}"]}),
            )],
            vec![("/trigger_config/filters/value/0", "unknown_path")],
        ),
        (
            vec![("/trigger_config/filters", json!({"path": "event.files", "op": "contains", "value": "a"}))],
            vec![("/trigger_config/filters/op", "operator_misfit")],
        ),
        (
            vec![(
                "/trigger_config/filters",
                json!({"path": "event.files", "op": "any", "value": {"path": "itm.name", "op": "exists"}}),
            )],
            vec![("/trigger_config/filters/value/path", "unknown_path")],
        ),
        (
            vec![(
                "/trigger_config/filters",
                json!({"path": "event.files", "op": "any", "value": {"path": "item.name", "op": "==", "value": "{{item.x}}"}}),
            )],
            vec![("/trigger_config/filters/value/value", "unknown_path")],
        ),
        (
            vec![(
                "/trigger_config/filters",
                json!({"path": "event.text", "op": "any", "value": {"path": "item", "op": "exists"}}),
            )],
            vec![("/trigger_config/filters/op", "operator_misfit")],
        ),
        (
            vec![("/trigger_config/filters", json!({"path": "event.count", "op": ">", "value": "a lot"}))],
            vec![("/trigger_config/filters/value", "operator_misfit")],
        ),
        (vec![("/trigger_config/filters", json!({"path": "event.count", "op": ">", "value": "2"}))], vec![]),
        // Trigger.
        (vec![("/trigger_type", json!("cron"))], vec![("/trigger_type", "invalid_value")]),
        (vec![("/trigger_config", json!(null))], vec![("/trigger_config", "missing_field")]),
        (vec![("/trigger_config/channel", json!("C"))], vec![("/trigger_config/channel", "unknown_field")]),
        (vec![("/trigger_config/event_type", json!("mesage"))], vec![("/trigger_config/event_type", "unknown_event")]),
        (
            vec![("/trigger_config/event_type", json!("reaction_added"))],
            vec![("/trigger_config/event_type", "not_checked")],
        ),
        // Tools.
        (vec![("/actions/-", action("slack_post_mesage"))], vec![("/actions/2/tool", "unknown_tool")]),
        (vec![("/actions/-", action("llm_agent"))], vec![("/actions/2/tool", "unknown_tool")]),
        (
            vec![("/actions/-", runs("{{event.id}}"))],
            vec![(RUNS, "unknown_tool"), (CALLED, "template_not_allowed"), (CALLED, "unknown_path")],
        ),
        (vec![("/actions/-", runs(UNKNOWN))], vec![(RUNS, "unknown_tool"), (CALLED, "unknown_automation")]),
        (vec![("/actions/-", runs(INACTIVE))], vec![(RUNS, "unknown_tool"), (CALLED, "inactive_automation")]),
        (vec![("/actions/-", runs(IN_CIRCLE))], vec![(RUNS, "unknown_tool"), (CALLED, "circular_run")]),
        (vec![("/actions/-", runs(TOO_DEEP))], vec![(RUNS, "unknown_tool"), (CALLED, "too_large")]),
        // The request of an agent, as far as it has no templates.
        (
            vec![("/actions/-", agent("limits", json!({"max_calls": 5})))],
            vec![(RUNS, "unknown_tool"), ("/actions/2/parameters/limits/max_calls", "unknown_field")],
        ),
        (
            vec![("/actions/-", agent("limits", json!({"iterations": 100_000, "calls": "{{limit}}"})))],
            vec![(RUNS, "unknown_tool"), ("/actions/2/parameters/limits/iterations", "invalid_value")],
        ),
        (
            vec![("/actions/-", agent("schema", json!({"type": "objekt"})))],
            vec![(RUNS, "unknown_tool"), ("/actions/2/parameters/schema/type", "invalid_schema")],
        ),
        (vec![("/actions/-", agent("schema", json!({"type": "{{event.text}}"})))], vec![(RUNS, "unknown_tool")]),
        (vec![("/actions/-", agent("limits", json!("")))], vec![(RUNS, "unknown_tool")]),
        (vec![("/actions/0/timeout_seconds", json!(0))], vec![("/actions/0/timeout_seconds", "invalid_value")]),
        (vec![("/actions/0/timeout_seconds", json!(301))], vec![("/actions/0/timeout_seconds", "invalid_value")]),
        (vec![("/actions/0/timeout_seconds", json!("60"))], vec![("/actions/0/timeout_seconds", "wrong_type")]),
        (vec![("/actions/0/on_error", json!("halt"))], vec![("/actions/0/on_error", "invalid_value")]),
        (vec![("/actions/0/retries", json!(4))], vec![("/actions/0/retries", "invalid_value")]),
        (vec![("/actions/0/retries", json!(-1))], vec![("/actions/0/retries", "invalid_value")]),
        (vec![("/actions/-", action("broken"))], vec![("/actions/2/tool", "unknown_tool")]),
        (vec![("/actions/-", action("gone"))], vec![("/actions/2/tool", "inactive_tool")]),
        (vec![("/actions/-", action("twice"))], vec![("/actions/2/tool", "ambiguous_tool")]),
        (vec![("/actions/-", action("transfer"))], vec![("/actions/2/tool", "tool_needs_call")]),
        (
            vec![
                ("/actions/-", json!({"id": "x", "tool": "odd", "parameters": {}})),
                ("/fingerprints/odd", json!("odd-1")),
            ],
            vec![("/actions/2/tool", "not_checked")],
        ),
        (vec![("/fingerprints/slack_post_message", json!(null))], vec![("/actions/1/tool", "schema_not_read")]),
        (
            vec![("/fingerprints/slack_post_message", json!("slack-0")), ("/actions/1/parameters/message", json!("x"))],
            vec![("/fingerprints/slack_post_message", "tool_changed")],
        ),
        (
            vec![("/fingerprints/slack_post_message", json!("v3"))],
            vec![("/fingerprints/slack_post_message", "tool_changed")],
        ),
        (vec![("/fingerprints/other", json!("x"))], vec![("/fingerprints/other", "unused_fingerprint")]),
        (
            vec![
                ("/actions/-", json!({"id": "x", "tool": "gmail_find_email"})),
                ("/fingerprints/gmail_find_email", json!("gmail-1")),
            ],
            vec![("/actions/2/tool", "not_connected")],
        ),
        // Parameters.
        (
            vec![("/actions/1/parameters/channel", json!(null))],
            vec![("/actions/1/parameters/channel", "missing_parameter")],
        ),
        (
            vec![("/actions/1/parameters", json!({}))],
            vec![("/actions/1/parameters/channel", "missing_parameter"), (TEXT, "missing_parameter")],
        ),
        (
            vec![("/actions/1/parameters/chanel", json!("C"))],
            vec![("/actions/1/parameters/chanel", "unknown_parameter")],
        ),
        (vec![("/actions/1/parameters/limit", json!("5"))], vec![OWN, ("/actions/1/parameters/limit", "wrong_type")]),
        (vec![("/actions/1/parameters/limit", json!(1.5))], vec![("/actions/1/parameters/limit", "wrong_type")]),
        (vec![("/actions/1/parameters/limit", json!(50))], vec![("/actions/1/parameters/limit", "invalid_parameter")]),
        (vec![("/actions/1/parameters/limit", json!("{{limit}}"))], vec![]),
        (vec![("/actions/1/parameters/limit", json!("{{event.count}}"))], vec![]),
        (vec![("/actions/1/parameters/limit", json!("{{found.count}}"))], vec![]),
        (
            vec![("/actions/1/parameters/limit", json!("{{channel}}"))],
            vec![OWN, ("/actions/1/parameters/limit", "wrong_type")],
        ),
        (
            vec![("/actions/1/parameters/limit", json!("{{event.text}}"))],
            vec![("/actions/1/parameters/limit", "wrong_type")],
        ),
        (
            vec![("/actions/1/parameters/limit", json!("{{found.rows}}"))],
            vec![("/actions/1/parameters/limit", "wrong_type")],
        ),
        (
            vec![("/actions/1/parameters/limit", json!("about {{limit}}"))],
            vec![OWN, ("/actions/1/parameters/limit", "wrong_type")],
        ),
        (
            vec![("/actions/1/parameters/limit", json!("{{event.more}}"))],
            vec![("/actions/1/parameters", "not_checked")],
        ),
        (vec![("/actions/1/parameters/text", json!("{{limit}}"))], vec![OWN, (TEXT, "wrong_type")]),
        (vec![("/actions/1/parameters/text", json!("{{limit}}"))], vec![]),
        (vec![("/actions/1/parameters/text", json!(""))], vec![OWN, (TEXT, "missing_parameter")]),
        (vec![("/actions/1/parameters/limit", json!("5"))], vec![]),
        (vec![("/actions/1/parameters/tags", json!(["{{event.count}}"]))], vec![]),
        (vec![(TEXT, json!("{{found.rows.name}}"))], vec![(TEXT, "unknown_path")]),
        (vec![(TEXT, json!("{{found.count.x}}"))], vec![(TEXT, "unknown_path")]),
        (vec![(TEXT, json!("{{event.files.name}}"))], vec![(TEXT, "unknown_path")]),
        (vec![("/actions/1/output_as", json!("event"))], vec![("/actions/1/output_as", "duplicate_name")]),
        (
            vec![("/actions/1/parameters/tags", json!(["a", 1]))],
            vec![OWN, ("/actions/1/parameters/tags/1", "wrong_type")],
        ),
        (vec![("/actions/1/parameters/tags", json!("a"))], vec![OWN, ("/actions/1/parameters/tags", "wrong_type")]),
        (vec![("/actions/1/parameters/kind", json!("alrt"))], vec![("/actions/1/parameters/kind", "not_allowed")]),
        (
            vec![("/actions/1/parameters/kind", json!("{{event.text}}!"))],
            vec![("/actions/1/parameters", "not_checked")],
        ),
        (
            vec![("/actions/1/parameters/at", json!("tomorrow"))],
            vec![("/actions/1/parameters/at", "invalid_parameter")],
        ),
        (
            vec![("/actions/1/parameters/to", json!({"name": "x"}))],
            vec![("/actions/1/parameters/to/id", "invalid_parameter")],
        ),
        (vec![("/actions/1/parameters/to", json!({"id": "{{event.user}}"}))], vec![]),
        (vec![("/actions/1/parameters/unfurl", json!(""))], vec![]),
        // The alias is checked like the name.
        (
            vec![("/actions/1/parameters", json!(null)), ("/actions/1/params", json!({"channel": {}}))],
            vec![("/actions/1/params/channel", "wrong_type"), ("/actions/1/params/text", "missing_parameter")],
        ),
        // Templates.
        (vec![(TEXT, json!("{{#if event}}x{{/if}}"))], vec![(TEXT, "handlebars_block")]),
        (vec![(TEXT, json!("{{event.text"))], vec![(TEXT, "unclosed_template")]),
        (vec![(TEXT, json!("{{a {{b}} }}"))], vec![(TEXT, "nested_template")]),
        (vec![(TEXT, json!("{{upper event.text}}"))], vec![(TEXT, "invalid_template")]),
        (vec![(TEXT, json!("{{event_data.event.text}}"))], vec![(TEXT, "event_data")]),
        (vec![(TEXT, json!("{{event.txt}}"))], vec![(TEXT, "unknown_path")]),
        (vec![(TEXT, json!("{{trigger_data.event.txt}}"))], vec![(TEXT, "unknown_path")]),
        (vec![(TEXT, json!("{{trigger_data.event.text}} {{event.files[0].name}} {{event.files.-1.name}}"))], vec![]),
        (vec![(TEXT, json!("{{score}}"))], vec![(TEXT, "unknown_path")]),
        (vec![(TEXT, json!("{{event.text.length}}"))], vec![(TEXT, "unknown_path")]),
        (vec![(TEXT, json!("{{found.rws}}"))], vec![(TEXT, "unknown_path")]),
        (vec![(TEXT, json!("{{many.7}}"))], vec![(TEXT, "unknown_path")]),
        (vec![(TEXT, json!("{{user.age}}"))], vec![(TEXT, "unknown_path")]),
        (vec![(TEXT, json!("{{today}} {{now_minus_6h_utc}}"))], vec![]),
        (vec![(TEXT, json!("{{today.year}}"))], vec![(TEXT, "unknown_path")]),
        (vec![(TEXT, json!("{{sent.ts}}"))], vec![(TEXT, "output_not_yet")]),
        (
            vec![("/actions/0/parameters/sheet", json!("{{sent}}"))],
            vec![("/actions/0/parameters/sheet", "output_not_yet")],
        ),
        (vec![("/actions/1/parameters/{{x}}", json!("y"))], vec![("/actions/1/parameters/{{x}}", "unknown_parameter")]),
        (
            vec![("/variables/channel", json!("{{event.channel}}"))],
            vec![("/variables/channel", "template_not_allowed")],
        ),
        (
            vec![("/variables/a", json!("{{b}}")), ("/variables/b", json!("{{a}}"))],
            vec![("/variables/a", "template_not_allowed"), ("/variables/b", "template_not_allowed")],
        ),
        // Conditions.
        (vec![("/actions/1/condition", json!("found.count > 0"))], vec![("/actions/1/condition", "invalid_condition")]),
        (
            vec![("/actions/1/condition/op", json!("greater_than"))],
            vec![("/actions/1/condition/op", "unknown_operator")],
        ),
        (vec![("/actions/1/condition/value", json!(null))], vec![("/actions/1/condition/value", "missing_field")]),
        (vec![("/actions/1/condition/path", json!("found.cont"))], vec![("/actions/1/condition/path", "unknown_path")]),
        (
            vec![("/actions/1/condition/op", json!("starts_with")), ("/actions/1/condition/value", json!("1"))],
            vec![("/actions/1/condition/op", "operator_misfit")],
        ),
        (
            vec![(
                "/actions/1/condition",
                json!({"operator": "OR", "clauses": [{"operator": "AND", "clauses": [{"path": "event.txt", "op": "exists"}]}]}),
            )],
            vec![("/actions/1/condition/clauses/0/clauses/0/path", "unknown_path")],
        ),
        (
            vec![("/trigger_config/filters/path", json!("event.txt"))],
            vec![("/trigger_config/filters/path", "unknown_path")],
        ),
        (
            vec![("/trigger_config/filters/value", json!("{{event.txt}}"))],
            vec![("/trigger_config/filters/value", "unknown_path")],
        ),
        (
            vec![("/trigger_config/filters", json!({"path": "found.count", "op": "exists"}))],
            vec![("/trigger_config/filters/path", "unknown_path")],
        ),
        (
            vec![(
                "/trigger_config/filters",
                json!({"path": "event.text", "op": "contains_any", "value": ["urgent", "asap"]}),
            )],
            vec![],
        ),
        (vec![("/trigger_config/filters", json!({"field": "event.text", "contains": "urgent"}))], vec![]),
        // Combined.
        (
            vec![
                ("/name", json!(null)),
                ("/actions/1/parameters/chanel", json!("C")),
                ("/trigger_config/event_type", json!("mesage")),
            ],
            vec![
                ("/name", "missing_field"),
                ("/actions/1/parameters/chanel", "unknown_parameter"),
                ("/trigger_config/event_type", "unknown_event"),
            ],
        ),
    ]
}
