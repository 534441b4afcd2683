//! Drafts a file from an app's components at Pipedream. A person declares what each tool changes, and reviews the rest.
//!
//! A component that cannot be a tool is left out, with the reason.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use shared::{
    Deadline, Error, Result,
    clients::pipedream::{self, Project},
    error::Problems,
    json_schema::properties,
    redaction::words,
};

use crate::{
    Deps,
    file::is_name,
    plain_text::plain,
    props::{Component, Overlay, derive},
};

/// The kept members of a prop.
const KEPT: [&str; 19] = [
    "name",
    "type",
    "app",
    "label",
    "description",
    "optional",
    "default",
    "options",
    "min",
    "max",
    "remoteOptions",
    "useQuery",
    "reloadProps",
    "hidden",
    "disabled",
    "readOnly",
    "secret",
    "withLabel",
    "format",
];
/// Components read in parallel.
const READ_AT_ONCE: usize = 8;
/// Kept back from the function's time for the draft.
const FOR_THE_DRAFT: Duration = Duration::from_secs(3);
const LONGEST_NAME: usize = 40;
const LONGEST_DESCRIPTION: usize = 1_000;

const NO_TIME: &str = "there was no time left to read it; import it by its key";

#[derive(Debug, Serialize)]
pub(crate) struct Draft {
    draft: Value,
    left_out: Vec<LeftOut>,
}

#[derive(Debug, Serialize)]
struct LeftOut {
    key: String,
    why: String,
}

/// The draft of the named components, or of all components of the app.
pub(crate) async fn draft(deps: &Deps, app: &str, keys: &[String], deadline: Deadline) -> Result<Draft> {
    let project: Project = deps.secrets.get(&deps.pipedream_secret).await?;
    let all;
    let keys = if keys.is_empty() {
        all = deps.pipedream.action_keys(&project, app, deadline).await?;
        &all
    } else {
        keys
    };
    if keys.is_empty() {
        return Err(Error::invalid(
            "import.app",
            format!("{app} has no actions at Pipedream; look the app's slug up there"),
        ));
    }
    let (mut tools, mut left_out): (Vec<Value>, Vec<LeftOut>) = (Vec::new(), Vec::new());
    let service = service_name(app);
    let (deadline, project) = (deadline.reserving(FOR_THE_DRAFT), &project);
    let read = |key: String| async move {
        if deadline.remaining().is_zero() {
            return (key, Ok(Err(NO_TIME.to_owned())));
        }
        let found = match deps.pipedream.component(project, &key, deadline).await {
            Ok(Some(component)) => Ok(Ok(component)),
            Ok(None) => Ok(Err("there is no action with this key".to_owned())),
            Err(_) if deadline.remaining().is_zero() => Ok(Err(NO_TIME.to_owned())),
            Err(error) => Err(error),
        };
        (key, found)
    };
    let mut components = stream::iter(keys.to_vec()).map(read).buffered(READ_AT_ONCE);
    while let Some((key, found)) = components.next().await {
        match found?.and_then(|component| tool(app, &service, &component)) {
            Ok(tool) => tools.push(tool),
            Err(why) => left_out.push(LeftOut { key, why }),
        }
    }
    let draft = json!({
        "name": service,
        "description": format!("{service}, by components of Pipedream."),
        "categories": ["other"],
        "connection": {"type": "pipedream", "app": app},
        "capabilities": {"auth_types": ["oauth2"], "notes": format!("The tools act at {service} as the connected account may."), "webhook_payload_schemas": {}, "polling_endpoints": {}},
        "tools": tools,
    });
    Ok(Draft { draft, left_out })
}

/// A component as a tool of the draft.
///
/// # Errors
/// The reason why it cannot be a tool.
fn tool(app: &str, service: &str, component: &pipedream::Component) -> Result<Value, String> {
    let pipedream::Component { key, version, configurable_props, annotations, .. } = component;
    let props: Vec<Value> = configurable_props.iter().map(kept).collect();
    let mut of_file = json!({"key": key, "version": version, "props": props});
    if let (Value::Object(of_file), Some(annotations)) = (&mut of_file, annotations) {
        of_file.insert("annotations".into(), annotations.clone());
    }
    let read = Component::deserialize(&of_file).map_err(|error| format!("cannot be read: {error}"))?;
    let mut problems = Problems::default();
    let derived = derive(&read, &Overlay::default(), "", &mut problems);
    let Some(derived) = derived else {
        let why: Vec<&str> = problems.iter().map(|problem| problem.problem.as_str()).collect();
        return Err(why.join("; "));
    };
    let category = match (derived.effect, key.contains("-delete-"), key.contains("-search") || key.contains("-find-")) {
        (true, true, _) if derived.destructive => "delete",
        (true, ..) => "write",
        (false, _, true) => "search",
        (false, ..) => "read",
    };
    let title = plain(&component.name, 100);
    let mut description = plain(component.description.as_deref().unwrap_or_default(), LONGEST_DESCRIPTION);
    if description.is_empty() {
        description = format!("{title}.");
    }
    Ok(json!({
        "name": tool_name(app, service, key),
        "title": title,
        "category": category,
        // A person fills in the effect.
        "effect": if derived.effect { "" } else { "none" },
        "description": description,
        "returns": format!("What {service} answers."),
        "component": of_file,
        "overlay": {"properties": undescribed(&derived.parameters)},
        "examples": [least(&derived.parameters)],
    }))
}

/// The overlay's descriptions for arguments of which Pipedream says nothing: `objectType` becomes `Object type.`
fn undescribed(parameters: &Value) -> Map<String, Value> {
    let says_nothing =
        |schema: &Value| schema.get("description").and_then(Value::as_str).unwrap_or_default().is_empty();
    let silent = properties(parameters).filter(|(_, schema)| says_nothing(schema));
    silent
        .map(|(name, _)| {
            let words = words(name).join(" ");
            let (first, rest) = words.split_at(words.chars().next().map_or(0, char::len_utf8));
            (name.clone(), json!({"description": format!("{}{rest}.", first.to_uppercase())}))
        })
        .collect()
}

/// The smallest arguments that fit: the required ones, each with its default or the first value of its type.
fn least(parameters: &Value) -> Map<String, Value> {
    let required: Vec<&str> =
        parameters.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let asked = properties(parameters).filter(|(name, _)| required.contains(&name.as_str()));
    asked.map(|(name, schema)| (name.clone(), value_of(schema))).collect()
}

fn value_of(schema: &Value) -> Value {
    let known = schema.get("default").or_else(|| schema.get("enum").and_then(|values| values.get(0)));
    if let Some(known) = known {
        return known.clone();
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("integer") => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        Some("boolean") => json!(false),
        Some("array") => json!([schema.get("items").map_or(json!("text"), value_of)]),
        Some("object") => json!({}),
        _ => json!("text"),
    }
}

/// A prop as a file keeps it, with plain texts.
fn kept(prop: &Value) -> Value {
    let members = prop.as_object().into_iter().flatten().filter(|(name, _)| KEPT.contains(&name.as_str()));
    let plainly = |(name, value): (&String, &Value)| {
        let value = match (name.as_str(), value) {
            ("description" | "label", Value::String(text)) => plain(text, LONGEST_DESCRIPTION).into(),
            _ => value.clone(),
        };
        (name.clone(), value)
    };
    members.map(plainly).collect::<Map<String, Value>>().into()
}

/// `google_calendar` becomes Google Calendar, `slack_v2` Slack.
fn service_name(app: &str) -> String {
    let is_version =
        |word: &&str| word.len() > 1 && word.starts_with('v') && word[1..].bytes().all(|byte| byte.is_ascii_digit());
    let words = app.split('_').filter(|word| !word.is_empty() && !is_version(word) && *word != "oauth");
    let capital = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>())
    };
    words.filter_map(capital).collect::<Vec<_>>().join(" ")
}

/// `slack_v2-post-message` becomes `slack_post_message`. The author shortens a name that is too long.
fn tool_name(app: &str, service: &str, key: &str) -> String {
    let action = key.strip_prefix(app).unwrap_or(key).trim_start_matches('-');
    let name = format!("{}_{action}", shared::models::folded_name(service));
    let mut name: String =
        name.to_lowercase().chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
    while !is_name(&name) && name.len() > LONGEST_NAME {
        name.truncate(name.rfind('_').unwrap_or(LONGEST_NAME));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_service() {
        for (app, service, key, tool) in [
            ("slack_v2", "Slack", "slack_v2-post-message", "slack_post_message"),
            ("google_calendar", "Google Calendar", "google_calendar-list-events", "google_calendar_list_events"),
            ("airtable_oauth", "Airtable", "airtable_oauth-update-record", "airtable_update_record"),
            (
                "google_calendar",
                "Google Calendar",
                "google_calendar-query-free-busy-calendars-of-everybody",
                "google_calendar_query_free_busy",
            ),
        ] {
            assert_eq!((service_name(app).as_str(), tool_name(app, service, key).as_str()), (service, tool));
        }
    }
}
