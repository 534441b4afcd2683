//! Pipedream's descriptions of actions, and the checks of their props.

use serde_json::{Map, Value, json};

#[derive(Clone, Debug)]
pub struct Action {
    /// `slack-send-message`.
    pub key: String,
    /// The slug of its app, `google_sheets`.
    pub app: String,
    pub name: String,
    pub description: String,
    pub version: String,
    /// Pipedream's list of prop descriptions: `{name, type, app?, optional?, default?, options?, …}`.
    pub configurable_props: Vec<Value>,
    /// `{readOnlyHint, destructiveHint, …}`, or null.
    pub annotations: Value,
    /// The text of `exports.$summary`; `{prop}` is replaced by the prop's value.
    pub summary: String,
    /// The action's return value.
    pub ret: Value,
    /// Props with which the action fails at its service.
    pub troubles: Vec<Trouble>,
}

/// A prop value that makes an action fail, and the error that it then reports.
#[derive(Clone, Debug)]
pub struct Trouble {
    pub prop: String,
    pub value: Value,
    pub error: String,
}

impl Action {
    /// The action's form in lists.
    pub(super) fn brief(&self) -> Value {
        json!({ "key": self.key, "name": self.name, "version": self.version })
    }

    pub(super) fn whole(&self) -> Value {
        json!({
            "key": self.key,
            "name": self.name,
            "version": self.version,
            "description": self.description,
            "component_type": "action",
            "configurable_props": self.configurable_props,
            "annotations": self.annotations,
        })
    }

    /// Problems of the props, by name.
    pub(super) fn problems(&self, given: &Map<String, Value>) -> Map<String, Value> {
        let mut problems = Map::new();
        for prop in &self.configurable_props {
            let Some(name) = prop.get("name").and_then(Value::as_str) else { continue };
            let kind = prop.get("type").and_then(Value::as_str).unwrap_or_default();
            let optional = prop.get("optional").and_then(Value::as_bool) == Some(true) || prop.get("default").is_some();
            let problem = match given.get(name) {
                None | Some(Value::Null) if optional || is_filled_by_platform(kind) => continue,
                None | Some(Value::Null) => "is required".to_owned(),
                Some(value) if !fits(kind, unlabelled(value)) => format!("must be of type {kind}"),
                Some(_) => continue,
            };
            problems.insert(name.to_owned(), Value::String(problem));
        }
        let declared = |name: &String| {
            self.configurable_props.iter().any(|prop| prop.get("name").and_then(Value::as_str) == Some(name))
        };
        for name in given.keys().filter(|name| !declared(name)) {
            problems.insert(name.clone(), Value::String("is not a prop of this action".to_owned()));
        }
        problems
    }

    /// The connected account in each app prop.
    pub(super) fn accounts<'a>(&'a self, given: &'a Map<String, Value>) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.configurable_props.iter().filter_map(|prop| {
            let name = prop.get("name")?.as_str()?;
            let is_app = prop.get("type")?.as_str()? == "app";
            let account = given.get(name)?.get("authProvisionId")?.as_str()?;
            is_app.then_some((name, account))
        })
    }

    pub(super) fn trouble(&self, given: &Map<String, Value>) -> Option<&str> {
        let met = self.troubles.iter().find(|trouble| given.get(&trouble.prop).map(unlabelled) == Some(&trouble.value));
        met.map(|trouble| trouble.error.as_str())
    }

    pub(super) fn summary(&self, given: &Map<String, Value>) -> String {
        given.iter().fold(self.summary.clone(), |summary, (name, value)| {
            let value = unlabelled(value);
            let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            summary.replace(&format!("{{{name}}}"), &shown)
        })
    }
}

/// The value inside `{"__lv": {"label", "value"}}`, Pipedream's form with a label for people.
fn unlabelled(value: &Value) -> &Value {
    value.get("__lv").and_then(|labelled| labelled.get("value")).unwrap_or(value)
}

/// Props that Pipedream fills in itself.
fn is_filled_by_platform(kind: &str) -> bool {
    matches!(kind, "alert" | "dir" | "data_store") || kind.starts_with("$.interface.") || kind.starts_with("$.service.")
}

fn fits(kind: &str, value: &Value) -> bool {
    let each = |fits: fn(&Value) -> bool| {
        value.as_array().is_some_and(|items| items.iter().all(|item| fits(unlabelled(item))))
    };
    match kind {
        "app" => value.get("authProvisionId").is_some_and(Value::is_string),
        "string" => value.is_string(),
        "string[]" => each(Value::is_string),
        "integer" => value.is_i64(),
        "integer[]" => each(Value::is_i64),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        _ => true,
    }
}

/// Actions of three apps that agents use in calls.
pub(super) fn actions() -> Vec<Action> {
    vec![gmail_send_email(), slack_send_message(), sheets_add_row()]
}

fn of_effect() -> Value {
    json!({ "readOnlyHint": false, "destructiveHint": false, "openWorldHint": true })
}

fn gmail_send_email() -> Action {
    Action {
        key: "gmail-send-email".to_owned(),
        app: "gmail".to_owned(),
        name: "Send Email".to_owned(),
        description: "Send an email from your Google Workspace email account.".to_owned(),
        version: "0.2.1".to_owned(),
        configurable_props: vec![
            json!({ "name": "gmail", "type": "app", "app": "gmail" }),
            json!({ "name": "to", "type": "string[]", "label": "To" }),
            json!({ "name": "cc", "type": "string[]", "label": "Cc", "optional": true }),
            json!({ "name": "bcc", "type": "string[]", "label": "Bcc", "optional": true }),
            json!({ "name": "fromName", "type": "string", "label": "From Name", "optional": true }),
            json!({ "name": "replyTo", "type": "string", "label": "Reply To", "optional": true }),
            json!({ "name": "subject", "type": "string", "label": "Subject" }),
            json!({ "name": "body", "type": "string", "label": "Email Body" }),
            json!({
                "name": "bodyType",
                "type": "string",
                "label": "Body Type",
                "optional": true,
                "default": "plaintext",
                "options": ["html", "plaintext"],
            }),
        ],
        annotations: of_effect(),
        summary: "Successfully sent email to {to}".to_owned(),
        ret: json!({ "id": "18c2f0a1b2c3d4e5", "threadId": "18c2f0a1b2c3d4e5", "labelIds": ["SENT"] }),
        troubles: vec![Trouble {
            prop: "to".to_owned(),
            value: json!(["nobody@invalid"]),
            error: "Invalid To header".to_owned(),
        }],
    }
}

fn slack_send_message() -> Action {
    Action {
        key: "slack-send-message".to_owned(),
        app: "slack".to_owned(),
        name: "Send Message".to_owned(),
        description: "Send a message to a user, group, private channel or public channel.".to_owned(),
        version: "0.1.3".to_owned(),
        configurable_props: vec![
            json!({ "name": "slack", "type": "app", "app": "slack" }),
            json!({ "name": "conversation", "type": "string", "label": "Channel", "remoteOptions": true }),
            json!({ "name": "text", "type": "string", "label": "Text" }),
            json!({ "name": "mrkdwn", "type": "boolean", "label": "Send text as Slack mrkdwn", "optional": true }),
            json!({ "name": "username", "type": "string", "label": "Bot Username", "optional": true }),
        ],
        annotations: of_effect(),
        summary: "Successfully sent a message to channel ID {conversation}".to_owned(),
        ret: json!({ "ok": true, "ts": "1700000000.000100", "message": { "type": "message" } }),
        troubles: vec![Trouble {
            prop: "conversation".to_owned(),
            value: json!("C404"),
            error: "channel_not_found".to_owned(),
        }],
    }
}

fn sheets_add_row() -> Action {
    Action {
        key: "google_sheets-add-single-row".to_owned(),
        app: "google_sheets".to_owned(),
        name: "Add Single Row".to_owned(),
        description: "Add a single row of data to Google Sheets.".to_owned(),
        version: "2.1.12".to_owned(),
        configurable_props: vec![
            json!({ "name": "googleSheets", "type": "app", "app": "google_sheets" }),
            json!({ "name": "drive", "type": "string", "label": "Drive", "optional": true, "remoteOptions": true }),
            json!({ "name": "sheetId", "type": "string", "label": "Spreadsheet", "remoteOptions": true }),
            json!({ "name": "worksheetId", "type": "string", "label": "Worksheet", "remoteOptions": true }),
            json!({ "name": "hasHeaders", "type": "boolean", "label": "Header row", "optional": true }),
            json!({ "name": "myColumnData", "type": "string[]", "label": "Values" }),
        ],
        annotations: of_effect(),
        summary: "Added 1 row to {sheetId}".to_owned(),
        ret: json!({ "updatedRange": "Sheet1!A2:B2", "updatedRows": 1, "updatedCells": 2 }),
        troubles: vec![Trouble {
            prop: "sheetId".to_owned(),
            value: json!("missing"),
            error: "Requested entity was not found.".to_owned(),
        }],
    }
}
