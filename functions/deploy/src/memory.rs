//! The memory of an automation: listed, and values forgotten.

use serde::Serialize;
use serde_json::Value;
use shared::{
    Result,
    declared::{Body, Text},
    described::Described,
    http::{Asked, Gone, Id, Paged, Sent, operation},
    models::{AutomationId, RememberedValue, Timestamp},
    redaction::Transcript,
    store::Page,
};

use crate::Deps;

/// Characters.
const LONGEST_KEY: usize = 200;
/// Bytes of a value.
const LARGEST_SHOWN: usize = 8_192;

/// A value that an automation keeps between its runs.
#[derive(Serialize, Described)]
#[schema(name = "RememberedValue")]
pub(crate) struct RememberedView {
    key: String,
    /// Any JSON, redacted like the history.
    value: Value,
    /// Counts the writes of the key, from 1.
    version: u64,
    created_at: Timestamp,
    updated_at: Timestamp,
    expires_at: Timestamp,
}

impl From<RememberedValue> for RememberedView {
    fn from(row: RememberedValue) -> Self {
        let RememberedValue { key, value, version, created_at, updated_at, expires_at, .. } = row;
        let value = serde_json::from_str(&value).unwrap_or(Value::String(value));
        let value = Transcript::default().result(&[], &value, LARGEST_SHOWN);
        Self {
            key,
            value,
            version,
            created_at,
            updated_at,
            expires_at: Timestamp::from_millis(expires_at.saturating_mul(1_000)),
        }
    }
}

#[derive(Body)]
pub(crate) struct ForgottenKey {
    /// As it is listed.
    key: Text<LONGEST_KEY>,
}

/// List the memory of an automation
///
/// The values that its runs stored with `remember`, in the order of their keys. A key is shown as it is, because it names
/// the value to forget; it may name a person.
///
/// - 200: A page of values.
#[operation(GET "/api/{slug}/automations/{id}/memory", Admin, resource(ListAutomationMemory))]
pub(crate) async fn list_automation_memory(
    deps: &Deps,
    asked: &Asked<'_>,
    id: Id<AutomationId>,
    page: Result<Paged<String>>,
) -> Result<Page<RememberedView>> {
    deps.deployment.automations.get(asked.organization(), id.0).await?;
    let Paged { limit, cursor } = page?;
    let values = deps.memory.page(asked.organization(), id.0, cursor.as_ref(), limit).await?;
    Ok(values.map(RememberedView::from))
}

/// Forget a value
///
/// The next run that remembers the key stores its value as the first, even with `if_absent`: effects that follow once per
/// key then follow again. An action that stored the value keeps its result when its run is resumed.
///
/// - 204: The value is gone.
///
/// ```json,key
/// {"key": "offer ada 2026-11"}
/// ```
#[operation(POST "/api/{slug}/automations/{id}/memory/forget", Admin, also(409), resource(ForgetAutomationMemory))]
pub(crate) async fn forget_automation_memory(
    deps: &Deps,
    asked: &Asked<'_>,
    id: Id<AutomationId>,
    body: Sent<ForgottenKey>,
) -> Result<Gone> {
    deps.deployment.automations.get(asked.organization(), id.0).await?;
    let ForgottenKey { key } = body.read()?;
    deps.memory.forget(asked.organization(), id.0, &key).await?;
    Ok(Gone)
}
