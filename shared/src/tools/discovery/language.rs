//! The steps of definitions that are no tools, each with an example that deploys.

use std::fmt;

use serde::Serialize;
use serde_json::{Value, json};

use crate::described::Described;

/// A part of the language of definitions.
#[derive(Debug, Clone, PartialEq, Serialize, Described)]
pub struct LanguagePart {
    pub name: &'static str,
    pub description: &'static str,
    /// A definition that uses it.
    #[schema(r#type = "object")]
    pub example: Value,
}

const FOR_EACH: &str = "A loop: an action with for_each in place of tool. Its actions run for each item of the list, one item after the \
other unless at_once says otherwise; as names the item. key says what identifies an item, so that it is done once ({{row.id}}; else its content). A list with more than \
max_items (100, at most 1000) fails the loop before its first item. on_error of an action in it: stop ends the item; on_error of the loop: \
stop ends loop and run after a failed item. at_once (1, at most 5) items run at the same time, if none of them waits, asks or has a run of its own. \
output_as gathers [{key, succeeded, error, outputs: {name: output}}].";

const CHOOSE: &str = "A choice: an action with choose in place of tool. The first branch whose when holds runs, and no other; otherwise runs \
if none holds. If a when is about the output of a failed action, no branch runs. Branches may use the same output_as.";

const WAIT: &str = "A pause: an action with wait in place of tool, {\"minutes\": 30} or {\"until\": \"{{event.due}}\"}, at most 30 days, or \
{\"for_event\": {\"service\" or \"hook\", \"event_type\", \"filters\", \"timeout\"}}, timeout in minutes. \
until is a day or moment of ISO 8601; without an offset it is in the trigger's time zone, else the user's. The run lets go and costs nothing \
meanwhile; a moment that is over is not waited for. A dry run does not wait. \
The data of the first event whose filters hold become output_as, null after the timeout; {{…}} in values of filters is filled in when the pause begins.";

const CRON: &str = "A schedule: trigger_type schedule_recurring with cron in trigger_config. Five fields: minute, hour, day of the month, \
month, weekday; no seconds. Names (MON-FRI, JAN), lists, ranges and steps; L is the last day of the month, FRI#2 the second Friday, FRIL the \
last one, 15W the weekday nearest to the 15th. A list of up to ten expressions runs at the times of each. timezone is an IANA name. not_on lists days \
without a run: 2026-12-24, or 12-25 of every year. The answer to a dry run has the next five occurrences.";

const EXPRESSIONS: &str = "A template that is no path is an expression of Jinja: + - * / // % ~, comparisons, in, and, or, not, a if b else c, and \
filters after |: map(attribute=\"name\"), selectattr(\"open\"), join, length, sum, sort, unique, first, last, min, max, round, default, lower, trim, \
truncate(40), replace, split, plus_days(7), business_days(1), date(\"%d.%m.%Y\", zone), money(\"EUR\") of minor units, json, parse_json, any, all. A filter \
binds tighter than an operator: (a + b) | round. Write a - b with blanks. At most 500 bytes; no blocks, no functions. If it fails, its action fails and \
sends nothing.";

const CATCH: &str = "catch of an action, or of the definition, is a list of actions that run after a failure. error.message is a sentence; of an action \
there are error.action, .place, .tool and .status too. catch of the definition runs once, after all actions. The run stays failed in part. After an \
outcome that is unknown catch runs as well, and nothing is repeated.";

const CONDITIONS: &str = "A condition is a clause {path, op, value, case_insensitive} or a group {operator: AND or OR, clauses}. The path has no braces; the \
value may be a template. Ops: == != < > <= >= contains not_contains contains_any starts_with ends_with in between matches is_empty exists not_exists; \
any, all and none about a list, whose value is a condition about item. It stands in condition of a step, in when of a branch, and in filters of a trigger.";

const MEMORY: &str = "An automation keeps values between its runs. remember with if_absent stores only if the key has no value, and answers {stored, version, \
value}: so a step with a condition on stored runs once for each key. recall answers {found, value, version}; if_version of remember stores only at that \
version. 256 keys, 4096 bytes each; expires_in_days is 90 unless given. Put the mark before the effect.";

impl LanguagePart {
    pub(super) fn named(name: &str) -> Option<Self> {
        let now = json!({"id": "now", "tool": "current_time"});
        let mut trigger = json!({"trigger_type": "manual"});
        let mut fingerprints = json!({"current_time": "built-in"});
        let (name, description, actions) = match name.trim().to_lowercase().as_str() {
            "for_each" => (
                "for_each",
                FOR_EACH,
                json!([{
                    "id": "each", "for_each": "{{trigger_data.rows}}", "as": "row", "key": "{{row.id}}", "output_as": "done",
                    "actions": [now],
                }]),
            ),
            "choose" => (
                "choose",
                CHOOSE,
                json!([{
                    "id": "decide",
                    "choose": [{"when": {"path": "trigger_data.kind", "op": "==", "value": "bug"}, "actions": [now]}],
                    "otherwise": [{"id": "later", "tool": "current_time"}],
                }]),
            ),
            "wait" => ("wait", WAIT, json!([{"id": "pause", "wait": {"minutes": 30}}, now])),
            "cron" => {
                let config = json!({"cron": ["0 9 * * MON-FRI", "0 11 * * SAT"], "timezone": "Europe/Berlin", "not_on": ["12-25"]});
                trigger = json!({"trigger_type": "schedule_recurring", "trigger_config": config});
                ("cron", CRON, json!([now]))
            }
            "expressions" => {
                let zone = "{{trigger_data.zones | selectattr(\"open\") | map(attribute=\"name\") | first | default(\"UTC\")}}";
                (
                    "expressions",
                    EXPRESSIONS,
                    json!([{"id": "now", "tool": "current_time", "parameters": {"timeZone": zone}}]),
                )
            }
            "conditions" => {
                let bug = json!({"path": "item.name", "op": "==", "value": "bug"});
                let when = json!({"operator": "AND", "clauses": [
                    {"path": "trigger_data.labels", "op": "any", "value": bug},
                    {"path": "trigger_data.title", "op": "not_contains", "value": "draft", "case_insensitive": true},
                ]});
                ("conditions", CONDITIONS, json!([{"id": "now", "tool": "current_time", "condition": when}]))
            }
            "catch" => {
                let parameters = json!({"timeZone": "{{trigger_data.zone}}"});
                let catch = json!([{
                    "id": "note", "tool": "remember", "parameters": {"key": "failed", "value": "{{error.message}}"},
                }]);
                fingerprints = json!({"current_time": "built-in", "remember": "built-in"});
                (
                    "catch",
                    CATCH,
                    json!([{"id": "now", "tool": "current_time", "parameters": parameters, "catch": catch}]),
                )
            }
            "remember" | "recall" => {
                fingerprints = json!({"remember": "built-in", "recall": "built-in", "current_time": "built-in"});
                let once = json!({"path": "mark.stored", "op": "==", "value": true});
                let key = "offer {{trigger_data.customer}} {{today | date(\"%Y-%m\")}}";
                let actions = json!([
                    {"id": "last", "tool": "recall", "parameters": {"key": "last"}, "output_as": "last"},
                    {"id": "mark", "tool": "remember", "parameters": {"key": key, "if_absent": true}, "output_as": "mark"},
                    {"id": "now", "tool": "current_time", "condition": once},
                ]);
                (if name.contains("recall") { "recall" } else { "remember" }, MEMORY, actions)
            }
            _ => return None,
        };
        let mut example =
            json!({"name": format!("An example of {name}"), "fingerprints": fingerprints, "actions": actions});
        if let (Value::Object(example), Value::Object(trigger)) = (&mut example, trigger) {
            example.extend(trigger);
        }
        Some(Self { name, description, example })
    }
}

impl fmt::Display for LanguagePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, description, example } = self;
        write!(f, "\n## {name}\n{description}\nExample: {example}\n")
    }
}
