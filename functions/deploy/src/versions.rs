//! The versions of an automation: listed, shown, compared.

use std::collections::BTreeMap;

use futures_util::try_join;
use lambda_http::RequestExt;
use serde::Serialize;
use serde_json::{Value, json};
use shared::{
    Error, Result,
    automation::differences,
    error::Problems,
    http::{self, Reply, Request},
    models::{AutomationId, AutomationVersion, CheckedTool, OrganizationId, Timestamp, UserId},
};

use crate::Deps;

/// A version with its definition.
#[derive(Debug, Serialize)]
struct VersionView {
    automation_id: AutomationId,
    version: u64,
    content_hash: String,
    definition: Value,
    /// Tools by name, with fingerprint and parameters as they were.
    checked: BTreeMap<String, CheckedTool>,
    created_by: UserId,
    created_at: Timestamp,
}

/// What its author wrote, as JSON.
pub(crate) fn definition(version: &AutomationVersion) -> Result<Value> {
    serde_json::from_str(&version.definition).map_err(Error::internal)
}

/// `?limit=&cursor=`; newest first.
pub(crate) async fn list(
    deps: &Deps,
    request: &Request,
    organization: OrganizationId,
    automation: AutomationId,
) -> Result<Reply> {
    let automations = &deps.deployment.automations;
    automations.get(organization, automation).await?;
    let (limit, before) = http::page(request)?;
    let page = automations.versions(organization, automation, before.as_ref(), limit).await?;
    Reply::ok(&page)
}

pub(crate) async fn show(
    deps: &Deps,
    organization: OrganizationId,
    automation: AutomationId,
    version: u64,
) -> Result<Reply> {
    let found = deps.deployment.automations.version(organization, automation, version).await?;
    let definition = definition(&found)?;
    let AutomationVersion { automation_id, version, content_hash, checked, created_by, created_at, .. } = found;
    Reply::ok(&VersionView { automation_id, version, content_hash, definition, checked, created_by, created_at })
}

/// `?from=1&to=2`: `{"from", "to", "changes": [{"pointer", "change", "from"?, "to"?}], "truncated"}`.
pub(crate) async fn diff(
    deps: &Deps,
    request: &Request,
    organization: OrganizationId,
    automation: AutomationId,
) -> Result<Reply> {
    let automations = &deps.deployment.automations;
    automations.get(organization, automation).await?;
    let mut problems = Problems::default();
    let [from, to] = ["from", "to"].map(|name| {
        let asked = number(request, name, &mut problems);
        if asked.is_none() && problems.iter().all(|problem| problem.field != name) {
            problems.add(name, "is required: the number of a version");
        }
        asked
    });
    let (from, to) = problems.into_result(from.zip(to))?;
    let (before, after) = try_join!(
        automations.version(organization, automation, from),
        automations.version(organization, automation, to),
    )?;
    let changes = differences(&definition(&before)?, &definition(&after)?);
    Reply::ok(&json!({"from": from, "to": to, "changes": changes.changes, "truncated": changes.truncated}))
}

fn number(request: &Request, name: &'static str, problems: &mut Problems) -> Option<u64> {
    let query = request.query_string_parameters();
    let text = query.first(name).filter(|text| !text.is_empty())?;
    let number = text.parse().ok().filter(|number: &u64| i64::try_from(*number).is_ok());
    if number.is_none() {
        problems.add(name, "must be a whole number");
    }
    number
}
