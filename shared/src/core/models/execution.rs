//! Executions of tools.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::{CallId, E164, ExecutionId, OrganizationId, RunId, Timestamp, ToolId};
use crate::{described::Described, names::Names};

/// Replaces argument values in rows of a version that stored only names.
const NOT_KEPT: &str = "[not kept]";

/// A row of `executions`: the history of a tool, redacted (`redaction::Unredacted`).
#[declare::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Execution {
    pub id: ExecutionId,
    pub organization_id: OrganizationId,
    pub tool_id: ToolId,
    pub call_id: Option<CallId>,
    pub run_id: Option<RunId>,
    /// If known; for the erasure of a number.
    pub caller: Option<CallerHash>,
    /// Without the caller; for the erasure too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recipients: Vec<CallerHash>,
    #[serde(default)]
    pub trigger: ExecutionOrigin,
    pub status: ExecutionStatus,
    /// Why it failed: the sentence for the model.
    pub error: Option<String>,
    /// Of a failure; absent in rows of an older version.
    pub fault: Option<Fault>,
    /// The model's arguments, by name.
    #[serde(default, deserialize_with = "values_or_names")]
    pub arguments: Map<String, Value>,
    /// The answer to the model; absent while queued, and without one.
    pub result: Option<Value>,
    /// Dropped arguments that the tool does not have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored_arguments: Vec<String>,
    pub queued_at: Option<Timestamp>,
    pub started_at: Timestamp,
    /// Milliseconds.
    pub duration_ms: u64,
    /// When DynamoDB may drop the row; seconds since 1970.
    pub expires_at: i64,
}

impl Execution {
    /// Whether a tool of a call did not do its work, or nobody knows whether it did.
    pub fn failed_in_call(&self) -> bool {
        matches!(self.trigger, ExecutionOrigin::Conversation | ExecutionOrigin::CallStart)
            && matches!(self.status, ExecutionStatus::Failed | ExecutionStatus::Unknown)
    }
}

/// A queue message: a tool failed in a call, and automations may listen to that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedTool {
    pub organization_id: OrganizationId,
    pub failed_execution_id: ExecutionId,
}

impl FailedTool {
    pub fn of(execution: &Execution) -> Option<Self> {
        let failed = Self { organization_id: execution.organization_id, failed_execution_id: execution.id };
        execution.failed_in_call().then_some(failed)
    }
}

/// Twilio accepted a message and did not deliver it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undelivered {
    status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error_code: Option<u32>,
}

impl Undelivered {
    pub fn of(status: &str, error_code: &str) -> Option<Self> {
        let is_final = matches!(status, "undelivered" | "failed");
        is_final.then(|| Self { status: status.to_owned(), error_code: error_code.parse().ok() })
    }

    pub fn why(&self) -> String {
        match self.error_code {
            Some(code) => format!("{}, error {code}", self.status),
            None => self.status.clone(),
        }
    }
}

/// The hash of a caller or recipient, different in each organization: the history holds no numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallerHash(String);

impl CallerHash {
    /// The hash is independent of the number's notation.
    pub fn of(organization: OrganizationId, caller: &str) -> Self {
        let number = caller.parse().ok().map(|number: E164| number.to_string());
        let caller = number.as_deref().unwrap_or(caller);
        let hash = digest(&SHA256, format!("caller {organization} {caller}").as_bytes());
        Self(BASE64_URL_SAFE_NO_PAD.encode(hash))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The hashes of all texts in a value that are phone numbers, without duplicates.
    pub fn all_in(organization: OrganizationId, value: &Value) -> Vec<Self> {
        let mut found = Vec::new();
        let mut open = vec![value];
        while let Some(value) = open.pop() {
            match value {
                Value::String(text) => {
                    let hash = text.parse::<E164>().ok().map(|number| Self::of(organization, number.as_str()));
                    found.extend(hash.filter(|hash| !found.contains(hash)));
                }
                Value::Array(items) => open.extend(items.iter().rev()),
                Value::Object(members) => open.extend(members.values()),
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
        }
        found
    }
}

/// An older version stored a list of the arguments' names.
fn values_or_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Value>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Object(values) => Ok(values),
        Value::Array(names) => {
            let names = names.iter().filter_map(Value::as_str);
            Ok(names.map(|name| (name.to_owned(), NOT_KEPT.into())).collect())
        }
        _ => Err(serde::de::Error::custom("arguments are neither values by name nor a list of names")),
    }
}

/// A run, redacted. Hidden values are replaced by `[number]`, `[email]`, `[secret]`; `[redacted]` for a marked field, `[ignored]` for
/// an argument that the tool does not have, `[not kept]` in rows of an older version. Of the arguments and of the result 2 KB are
/// kept: `… (cut: the first 900 of 5000 bytes)` ends a text that was cut, `… (cut: 12 more)` stands for omitted parts of a list or,
/// under the name `…`, of an object.
#[derive(Debug, Serialize, Described)]
pub struct ExecutionView {
    id: ExecutionId,
    tool_id: ToolId,
    /// VAPI's id of the call.
    call_id: Option<CallId>,
    /// The run of an automation that it was part of.
    run_id: Option<RunId>,
    /// The cause of the run.
    trigger: ExecutionOrigin,
    status: ExecutionStatus,
    /// Why it did not succeed, as the model was told.
    error: Option<String>,
    fault: Option<Fault>,
    /// The way out of the failure, for a person.
    next_step: Option<&'static str>,
    /// The arguments from the model.
    arguments: Map<String, Value>,
    /// The result that the model received; null while the run waits.
    result: Option<Value>,
    /// Names of arguments that the tool does not have.
    ignored_arguments: Vec<String>,
    /// When it was put on a queue.
    queued_at: Option<Timestamp>,
    started_at: Timestamp,
    duration_ms: u64,
}

impl From<Execution> for ExecutionView {
    fn from(row: Execution) -> Self {
        Self {
            id: row.id,
            tool_id: row.tool_id,
            call_id: row.call_id,
            run_id: row.run_id,
            trigger: row.trigger,
            status: row.status,
            error: row.error,
            fault: row.fault,
            next_step: row.fault.map(Fault::next_step),
            arguments: row.arguments,
            result: row.result,
            ignored_arguments: row.ignored_arguments,
            queued_at: row.queued_at,
            started_at: row.started_at,
            duration_ms: row.duration_ms,
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, Described, Names)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionOrigin {
    #[default]
    Conversation,
    CallStart,
    Automation,
    Test,
    /// An external agent, over the Model Context Protocol or as a function.
    Agent,
}

/// Whose fault a failure is. `ours`: an outage of this service, or too little time. `configuration`: the tool's address, credentials,
/// numbers or limits. `service`: the service that the tool calls. `caller`: the person on the phone was not available, shows no
/// number, or wants no messages. `model`: the model's arguments. `other`: a fault that only a newer version knows. Null for an
/// execution that did not fail, and for rows of an older version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Described, Names)]
#[serde(rename_all = "snake_case")]
#[schema(name = "Fault")]
pub enum Fault {
    Ours,
    Configuration,
    Service,
    Caller,
    Model,
    #[serde(other)]
    #[names(never_given)]
    Other,
}

impl Fault {
    /// By the status of a service's answer that is no success, to a request that holds the model's arguments.
    pub const fn of_status(status: u16) -> Self {
        match status {
            400 | 409 | 413 | 422 => Self::Model,
            408 | 429 | 500.. => Self::Service,
            _ => Self::Configuration,
        }
    }

    /// As [`Fault::of_status`], where the arguments cannot be the reason of a refusal.
    pub const fn of_set_up(status: u16) -> Self {
        match Self::of_status(status) {
            Self::Model => Self::Configuration,
            fault => fault,
        }
    }

    pub const fn next_step(self) -> &'static str {
        match self {
            Self::Ours => "Try again. If it fails again, tell the operator of this service.",
            Self::Configuration => "Check the tool's address, credentials, numbers and limits, and edit the tool.",
            Self::Service => "Check the status of the service. Once it works again, try again.",
            Self::Caller => "Nothing has to be changed: the caller was away, shows no number, or wants no messages.",
            Self::Model => "Describe the tool's parameters more precisely, with examples of their values.",
            Self::Other => "Look at the error.",
        }
    }
}

/// `queued`: it waits. `partial`: some recipients got it, others did not. `unknown`: it may or may not have happened, and is not
/// repeated. `replayed`: answered from the record of the same effect; nothing happened again. `limited`: one of the tool's limits was
/// reached. `read_back`: the caller has to confirm it; nothing happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Described, Names)]
#[serde(rename_all = "snake_case")]
#[schema(name = "ExecutionStatus")]
pub enum ExecutionStatus {
    Queued,
    Succeeded,
    Partial,
    Failed,
    Unknown,
    Replayed,
    Limited,
    ReadBack,
}

impl ExecutionStatus {
    pub const NOT_SUCCEEDED: [Self; 4] = [Self::Failed, Self::Unknown, Self::Partial, Self::Limited];
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(arguments: Value) -> Value {
        let id = "01930f5e-6a1b-7c2d-8e3f-4a5b6c7d8e9f";
        let mut row = json!({
            "id": id, "organization_id": id, "tool_id": id, "status": "succeeded", "started_at": "2026-11-20T16:20:52.123Z",
            "duration_ms": 12, "expires_at": 1_800_000_000,
        });
        if !arguments.is_null() {
            row["arguments"] = arguments;
        }
        row
    }

    #[test]
    fn a_row_of_an_older_version_still_decodes() {
        let read =
            |arguments| serde_json::from_value::<Execution>(row(arguments)).map(|row| Value::Object(row.arguments));
        assert_eq!(read(json!(["text", "to"])).unwrap(), json!({"text": "[not kept]", "to": "[not kept]"}));
        assert_eq!(read(json!([])).unwrap(), json!({}));
        assert_eq!(read(Value::Null).unwrap(), json!({}));
        assert_eq!(read(json!({"text": {"deep": [1, null]}})).unwrap(), json!({"text": {"deep": [1, null]}}));
        assert!(read(json!("text")).is_err());
    }

    #[test]
    fn a_written_status_is_read_back() {
        for status in ["queued", "succeeded", "partial", "failed", "unknown", "replayed", "limited", "read_back"] {
            assert_eq!(status.parse::<ExecutionStatus>().unwrap().as_str(), status);
        }
        assert!("Failed".parse::<ExecutionStatus>().is_err());
    }

    #[test]
    fn a_caller_has_one_hash_in_each_organization() {
        let [one, other] = [OrganizationId::generate(), OrganizationId::generate()];
        let hash = CallerHash::of(one, "+14155550101");
        assert_eq!(hash, CallerHash::of(one, "+1 (415) 555-0101"));
        for another in [CallerHash::of(other, "+14155550101"), CallerHash::of(one, "anonymous")] {
            assert_ne!(hash, another);
        }
    }
}
