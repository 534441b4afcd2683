//! The JSON schema of definitions, as a help for models.
//!
//! The validation is authoritative, and reports all mistakes together. `docs/automations.md` is the reference.

use serde_json::{Value, json};

use crate::{
    automation::{
        AGGREGATION_MODES, DAYS, INTERVALS, LONGEST_WAIT, MISSED, MOST_ACTIONS, MOST_AT_ONCE, MOST_CRON_EXPRESSIONS,
        MOST_EXCLUDED_DAYS, MOST_ITEMS, Operator, TRIGGER_TYPES,
    },
    models::{ApprovalEffect, ApprovalRequest, AutomationQuotas, RunLimits},
};

fn object(description: &str, properties: &Value, required: &[&str]) -> Value {
    json!({
        "type": "object", "description": description, "properties": properties, "required": required,
        "additionalProperties": false,
    })
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn one_of(values: &[&str], description: &str) -> Value {
    json!({"type": "string", "enum": values, "description": description})
}

fn number(range: std::ops::RangeInclusive<u64>, description: &str) -> Value {
    json!({"type": "integer", "minimum": range.start(), "maximum": range.end(), "description": description})
}

fn names(description: &str) -> Value {
    json!({"type": "array", "items": {"type": "string"}, "description": description})
}

fn any_object(description: &str) -> Value {
    json!({"type": "object", "description": description, "additionalProperties": true})
}

pub(super) fn definition_schema() -> Value {
    let actions = json!({
        "type": "array", "minItems": 1, "maxItems": MOST_ACTIONS, "items": action(),
        "description": "The actions, in this order; instead of prompt. Each calls a tool, or is a loop (for_each) or a choice (choose) with actions of its own, or a pause (wait)",
    });
    let approvals = json!({
        "type": "array", "items": approval_rule(), "description": "The effects of actions that ask a person first",
    });
    let fingerprints = json!({
        "type": "object", "additionalProperties": {"type": "string"},
        "description": "The fingerprint of each used tool, by its name, as fetch_tool_data gave it; built-in for built-in tools",
    });
    let properties = json!({
        "name": text("The name for people"),
        "description": text("What it is for"),
        "trigger_type": one_of(&TRIGGER_TYPES, "What starts it"),
        "trigger_config": trigger_config(),
        "actions": actions,
        "prompt": text("Instead of actions: the task that a model works on, with tools, until it has a result"),
        "system_prompt": text("With prompt: the model's role and rules"),
        "tools": names("With prompt: the names of the tools that the model may call"),
        "schema": any_object("With prompt: JSON Schema of the result"),
        "model": text("With prompt: another model; on the platform's key one of the deployment's"),
        "limits": limits(),
        "variables": any_object("Constants by name, used as {{name}}; no secrets, no templates"),
        "fingerprints": fingerprints,
        "quotas": quotas(),
        "approvals": approvals,
        "catch": inner_actions("With actions: run at the end if one failed; {{error.message}} sums up"),
    });
    object(
        "The definition of an automation. {{path}} in a parameter stands for a value of trigger_data ({{event.text}}), of an earlier \
         action's output_as ({{found.rows[0].name}}), of variables, of the user ({{user.email}}), or for a time ({{now}}, {{today}}). \
         A template may also be a Jinja expression: {{(total / 100) | round(2)}}, {{rows | map(attribute=\"name\") | join(\", \")}}, \
         {{today | plus_days(7)}}, {{name | default(\"there\")}}. fetch_tool_data([\"for_each\", \"choose\", \"wait\"]) \
         explains loops, choices and pauses, each with a definition.",
        &properties,
        &["name", "trigger_type"],
    )
}

fn trigger_config() -> Value {
    let tool_params = any_object("polling: the arguments of the source_tool");
    let minutes = number(5..=7 * 24 * 60, "polling: how often; 15 unless given");
    let day = json!({
        "type": ["string", "integer"], "description": format!("weekly: {}, or 0 for Sunday to 6", DAYS.join(", ")),
    });
    let cron = json!({
        "type": ["string", "array"], "items": {"type": "string"}, "maxItems": MOST_CRON_EXPRESSIONS,
        "description": "schedule_recurring: minute, hour, day, month and weekday, 0 9 * * MON-FRI; L is the last day (0 9 L * *), FRI#2 the \
                        second Friday. A list for several times: [\"0 9 * * *\", \"30 13 * * *\"]",
    });
    let not_on = json!({
        "type": "array", "items": {"type": "string"}, "maxItems": MOST_EXCLUDED_DAYS,
        "description": "schedule_recurring: days without a run, 2026-12-24, or 12-25 of every year",
    });
    let properties = json!({
        "service": text("webhook, polling: the service; none if the source_tool is the organization's own, or read_feed"),
        "hook": text("webhook, instead of service: the name of a hook of the organization's own"),
        "event_type": text("webhook: the event, as initial_md_fetch lists it; every event of an own hook unless given. polling: the name of the polling event"),
        "params": any_object("webhook: the configuration of the event's trigger, where initial_md_fetch gives a schema for it"),
        "filters": condition("webhook: which events start a run"),
        "source_tool": text("polling: the tool that is asked; it must only read"),
        "tool_params": tool_params,
        "items": text("polling: the path of the list in the answer of a tool of the organization's own"),
        "id": text("polling: the path of an item's id"),
        "polling_interval_minutes": minutes,
        "filter": condition("polling: which new items start a run"),
        "aggregation_mode": one_of(
            &AGGREGATION_MODES,
            "polling: a run for each new item (per_item, unless given), for the first, or one for all",
        ),
        "missed": one_of(&MISSED, "The handling of occurrences missed while it was paused; run_once unless given"),
        "run_at": text("schedule_once: the moment in ISO 8601, 2027-01-31T09:00:00+01:00"),
        "timezone": text("schedule_once, schedule_recurring: an IANA name, Europe/Berlin; always write it. Unless given, the zone of the member who saves it, else UTC"),
        "interval": one_of(&INTERVALS, "schedule_recurring: how often, instead of cron"),
        "cron": cron,
        "not_on": not_on,
        "time_of_day": text("daily, weekly: HH:MM, 09:00"),
        "day_of_week": day,
    });
    object("The trigger's settings, by trigger_type; manual has none", &properties, &[])
}

fn action() -> Value {
    let parameters = any_object("The tool's arguments, by its schema; texts may hold {{paths}}");
    let approval = json!({
        "description": "A person is asked before the tool is called: true, or an object",
        "anyOf": [{"type": "boolean"}, object("The settings of the question", &json!({
            "expires_in_minutes": number(1..=ApprovalRequest::MOST_MINUTES.into(), "The time after which it counts as refused; a day unless given"),
            "reason": text("The reason, shown to the person who decides"),
        }), &[])],
    });
    let choose = json!({
        "type": "array", "description": "In place of tool: branches; the first whose when holds runs, and no other",
        "items": object("A branch", &json!({
            "when": condition("The branch runs if this holds"), "actions": inner_actions("The actions of the branch"),
        }), &["when", "actions"]),
    });
    let properties = json!({
        "id": text("A name of its own"),
        "tool": text("The tool's name, or the id of a tool of the organization's; required unless for_each, choose or wait is given"),
        "parameters": parameters,
        "output_as": text("The name of the tool's output, or of the event of for_event, for later actions"),
        "condition": condition("The action is skipped unless this holds"),
        "approval": approval,
        "timeout_seconds": number(1..=300, "The time for one call of the tool, in seconds; 30 unless given"),
        "on_error": one_of(
            &["continue", "stop"],
            "Whether later actions are carried out after it failed; continue unless given. In a loop, stop ends the item; of a loop, it ends loop and run after the first failed item",
        ),
        "retries": number(0..=3, "How often the tool is called again after a failure that did nothing; 0 unless given"),
        "catch": inner_actions("The actions if it failed; {{error.message}} says why"),
        "for_each": {"description": "In place of tool: the list of a loop, {{found.rows}}"},
        "as": text("for_each: the name of the item in its actions; item unless given"),
        "key": text("for_each: what identifies an item, {{row.id}}; its content unless given"),
        "max_items": number(1..=MOST_ITEMS, "for_each: a longer list fails the loop; 100 unless given"),
        "at_once": number(1..=MOST_AT_ONCE, "for_each: items that run at the same time; 1 unless given"),
        "actions": inner_actions("for_each: the actions for each item"),
        "choose": choose,
        "otherwise": inner_actions("choose: the actions if no when holds"),
        "wait": object("In place of tool: a pause, during which the run costs nothing; one of minutes, until and for_event", &json!({
            "minutes": number(1..=LONGEST_WAIT, "How long"),
            "until": text("A moment within 30 days in ISO 8601, or a template for one; without an offset in the trigger's time zone, else the user's"),
            "for_event": awaited_event(),
        }), &[]),
    });
    object("One call of a tool, a loop, a choice or a pause", &properties, &["id"])
}

fn awaited_event() -> Value {
    let properties = json!({
        "service": text("The service that sends the event"),
        "hook": text("Instead of service: the name of a hook of the organization's own"),
        "event_type": text("The event, as initial_md_fetch lists it; every event of an own hook unless given"),
        "filters": condition("Which event ends the pause. Paths lead into the event; templates in values are filled in when the pause begins"),
        "timeout": number(1..=LONGEST_WAIT, "Minutes after which the run goes on without the event; its output is null then"),
    });
    object("An event whose data becomes the output", &properties, &["timeout"])
}

/// Described in words, since some clients reject recursive schemas.
fn inner_actions(description: &str) -> Value {
    json!({"type": "array", "items": {"type": "object", "description": "An action, as above"}, "description": description})
}

/// A clause or a group. Nested groups are described in words, since some clients reject recursive schemas.
fn condition(description: &str) -> Value {
    let clause = json!({
        "path": text("The path of the value, without braces: event.text"),
        "op": one_of(&Operator::NAMES, "The comparison; exists, not_exists and is_empty take no value"),
        "value": {"description": "The value to compare with; a list for contains_any and in, [low, high] for between, a regular expression for matches, a condition about item for any, all and none"},
        "case_insensitive": {"type": "boolean", "description": "Upper and lower case are the same"},
    });
    let mut properties = clause.clone();
    if let Value::Object(properties) = &mut properties {
        properties.insert("operator".into(), one_of(&["AND", "OR"], "Of a group, in place of path and op"));
        let items = json!({"type": "object", "properties": clause, "description": "A clause, or another group"});
        properties.insert("clauses".into(), json!({"type": "array", "items": items, "description": "Of a group"}));
    }
    object(&format!("{description}: a clause {{path, op, value}}, or a group {{operator, clauses}}"), &properties, &[])
}

fn quotas() -> Value {
    let (usual, highest) = (AutomationQuotas::default(), AutomationQuotas::HIGHEST);
    let quota =
        |usual: u32, highest: u32, what: &str| number(1..=highest.into(), &format!("{what}; {usual} unless given"));
    let properties = json!({
        "runs_per_hour": quota(usual.runs_per_hour, highest.runs_per_hour, "Runs that may begin in an hour"),
        "effects_per_run": quota(usual.effects_per_run, highest.effects_per_run, "Calls of tools that change something, in one run"),
        "messages_per_day": quota(usual.messages_per_day, highest.messages_per_day, "SMS, e-mails, chat messages and placed calls in a day"),
    });
    object("The limits of its runs", &properties, &[])
}

fn limits() -> Value {
    let highest = RunLimits::HIGHEST;
    let properties = json!({
        "iterations": number(1..=highest.iterations.into(), "Answers of the model"),
        "calls": number(1..=highest.calls.into(), "Calls of tools"),
        "tokens": number(1..=highest.tokens, "Tokens of all answers and questions together"),
        "cost": {"type": "number", "description": "The cost, in credits"},
        "seconds": number(1..=highest.seconds, "How long it may take"),
    });
    object("With prompt: the limits of a run", &properties, &[])
}

fn approval_rule() -> Value {
    let properties = json!({
        "effect": one_of(&ApprovalEffect::NAMES, "The effect of an action; any covers all of them"),
        "outside": names("Of email: only to addresses outside these domains"),
    });
    object("A rule", &properties, &["effect"])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Map;

    use super::*;
    use crate::{
        automation::{Code, Definition, Diagnostics},
        json_schema::JsonSchema,
    };

    fn unknown_fields(definition: &Value) -> Vec<String> {
        let mut diagnostics = Diagnostics::default();
        Definition::read(definition, &mut diagnostics);
        let unknown = diagnostics.iter().filter(|one| one.code == Code::UnknownField);
        unknown.map(|one| format!("{} {}", one.pointer, one.message)).collect()
    }

    /// Every member of the schema is a field of some definition.
    #[test]
    fn the_schema_names_nothing_that_is_not_read() {
        let schema = definition_schema();
        JsonSchema::compile(&schema).unwrap();
        let members = |pointer: &str| -> Map<String, Value> {
            let named = schema.pointer(pointer).and_then(Value::as_object).unwrap_or_else(|| panic!("{pointer}"));
            named.keys().map(|name| (name.clone(), Value::Null)).collect()
        };
        let mut unknown: Option<BTreeSet<String>> = None;
        let kinds = [
            ("tool", json!("t")),
            ("for_each", json!("{{rows}}")),
            ("wait", json!(members("/properties/actions/items/properties/wait/properties"))),
            ("choose", json!([members("/properties/actions/items/properties/choose/items/properties")])),
        ];
        for (trigger_type, (field, value)) in
            TRIGGER_TYPES.iter().flat_map(|of| kinds.iter().map(move |kind| (of, kind)))
        {
            let mut definition = members("/properties");
            let mut action = members("/properties/actions/items/properties");
            action.insert((*field).into(), value.clone());
            definition.insert("trigger_type".into(), json!(trigger_type));
            definition.insert("trigger_config".into(), json!(members("/properties/trigger_config/properties")));
            definition.insert("actions".into(), json!([action]));
            definition.insert("quotas".into(), json!(members("/properties/quotas/properties")));
            definition.insert("approvals".into(), json!([members("/properties/approvals/items/properties")]));
            let of_type = BTreeSet::from_iter(unknown_fields(&Value::Object(definition)));
            unknown = Some(unknown.map_or(of_type.clone(), |unknown| &unknown & &of_type));
        }
        assert_eq!(unknown, Some(BTreeSet::new()));
        assert_eq!(unknown_fields(&json!({"nme": "x"})).len(), 1);
    }
}
