//! The steps of definitions that are no tools, each with an example that deploys.

use std::fmt;

use serde::Serialize;
use serde_json::{Value, json};

/// A part of the language of definitions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LanguagePart {
    pub name: &'static str,
    pub description: &'static str,
    /// A definition that uses it.
    pub example: Value,
}

const FOR_EACH: &str = "A loop: an action with for_each in place of tool. Its actions run for each item of the list, one item after the \
other; as names the item. key says what identifies an item, so that it is done once ({{row.id}}; else its content). A list with more than \
max_items (100, at most 1000) fails the loop before its first item. on_error of an action in it: stop ends the item; on_error of the loop: \
stop ends loop and run after a failed item. output_as gathers [{key, succeeded, error, outputs: {name: output}}].";

const CHOOSE: &str = "A choice: an action with choose in place of tool. The first branch whose when holds runs, and no other; otherwise runs \
if none holds. If a when is about the output of a failed action, no branch runs. Branches may use the same output_as.";

const WAIT: &str = "A pause: an action with wait in place of tool, {\"minutes\": 30} or {\"until\": \"{{event.due}}\"}, at most 30 days, or \
{\"for_event\": {\"service\" or \"hook\", \"event_type\", \"filters\", \"timeout\"}}, timeout in minutes. \
until is a day or moment of ISO 8601; without an offset it is in the trigger's time zone, else the user's. The run lets go and costs nothing \
meanwhile; a moment that is over is not waited for. A dry run does not wait. \
The data of the first event whose filters hold become output_as, null after the timeout; {{…}} in values of filters is filled in when the pause begins.";

impl LanguagePart {
    pub(super) fn named(name: &str) -> Option<Self> {
        let now = json!({"id": "now", "tool": "current_time"});
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
            _ => return None,
        };
        let example = json!({
            "name": format!("An example of {name}"), "trigger_type": "manual", "fingerprints": {"current_time": "built-in"},
            "actions": actions,
        });
        Some(Self { name, description, example })
    }
}

impl fmt::Display for LanguagePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, description, example } = self;
        write!(f, "\n## {name}\n{description}\nExample: {example}\n")
    }
}
