//! The versions of an automation: listed, shown, compared.

use std::{collections::BTreeMap, num::ParseIntError, str::FromStr};

use futures_util::try_join;
use lambda_http::RequestExt;
use serde::Serialize;
use serde_json::Value;
use shared::{
    Error, Result,
    automation::{Difference, differences},
    described::{Described, Schemas},
    error::Problems,
    http::{Asked, Found, Id, Ids, Named, Operation, Paged, Part, Request, Shown, operation},
    models::{AutomationId, AutomationVersion, CheckedTool, Timestamp, UserId},
    store::{ListedVersion, Page},
};

use crate::Deps;

#[derive(Debug, Serialize, Described)]
#[schema(name = "AutomationVersion")]
pub(crate) struct VersionView {
    automation_id: AutomationId,
    #[schema(minimum = 1)]
    version: u64,
    content_hash: String,
    #[schema(r#type = "object")]
    definition: Value,
    /// Tools that the version was checked against, by name: fingerprint and parameters.
    checked: BTreeMap<String, CheckedTool>,
    created_by: UserId,
    created_at: Timestamp,
}

/// The author's definition, as JSON.
pub(crate) fn definition(version: &AutomationVersion) -> Result<Value> {
    serde_json::from_str(&version.definition).map_err(Error::internal)
}

/// The number of a version.
pub(crate) struct Version(u64);

shared::described!(Version => {"type": "integer", "minimum": 1});

impl FromStr for Version {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl Named for Version {
    const NOUN: &'static str = "version";
    const DOC: &'static str = "A version; the first is 1.";
}

/// The versions of an automation
///
/// Newest first, without their definitions.
///
/// - 200: A page of versions.
#[operation(GET "/api/{slug}/automations/{id}/versions", Viewer)]
pub(crate) async fn list_automation_versions(
    deps: &Deps,
    asked: &Asked<'_>,
    id: Id<AutomationId>,
    page: Result<Paged<u64>>,
) -> Result<Page<ListedVersion>> {
    let automations = &deps.deployment.automations;
    automations.get(asked.organization(), id.0).await?;
    let Paged { limit, cursor: before } = page?;
    automations.versions(asked.organization(), id.0, before.as_ref(), limit).await
}

/// One version
///
/// With its definition and the tools it was checked against.
///
/// - 200: The version.
#[operation(GET "/api/{slug}/automations/{id}/versions/{version}", Viewer, resource(ShowAutomationVersion))]
pub(crate) async fn get_automation_version(
    deps: &Deps,
    asked: &Asked<'_>,
    ids: Ids<AutomationId, Version>,
) -> Result<Shown<VersionView>> {
    let Ids(automation, Version(version)) = ids;
    let found = deps.deployment.automations.version(asked.organization(), automation, version).await?;
    let definition = definition(&found)?;
    let AutomationVersion { automation_id, version, content_hash, checked, created_by, created_at, .. } = found;
    Ok(Shown(VersionView { automation_id, version, content_hash, definition, checked, created_by, created_at }))
}

/// `?from=1&to=2`
pub(crate) struct Compared {
    from: u64,
    to: u64,
}

impl Part for Compared {
    const QUERY: &'static [&'static str] = &["from", "to"];

    fn of(found: &Found<'_>) -> Result<Self> {
        let mut problems = Problems::default();
        let [from, to] = ["from", "to"].map(|name| {
            let asked = number(found.request, name, &mut problems);
            if asked.is_none() && problems.iter().all(|problem| problem.field != name) {
                problems.add(name, "is required: the number of a version");
            }
            asked
        });
        problems.into_result(from.zip(to)).map(|(from, to)| Self { from, to })
    }

    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        for name in Self::QUERY {
            operation.may_ask(name, "A version.", Version::schema(schemas));
            operation.must();
        }
    }
}

#[derive(Serialize, Described)]
#[schema(name = "AutomationDiff")]
pub(crate) struct Differences {
    changes: Vec<Difference>,
    from: u64,
    to: u64,
    /// There are more than the thousand that are listed.
    truncated: bool,
}

/// Compare two versions
///
/// - 200: The differences.
#[operation(GET "/api/{slug}/automations/{id}/diff", Viewer)]
pub(crate) async fn diff_automation_versions(
    deps: &Deps,
    asked: &Asked<'_>,
    id: Id<AutomationId>,
    compared: Result<Compared>,
) -> Result<Shown<Differences>> {
    let (automations, organization) = (&deps.deployment.automations, asked.organization());
    automations.get(organization, id.0).await?;
    let Compared { from, to } = compared?;
    let (before, after) =
        try_join!(automations.version(organization, id.0, from), automations.version(organization, id.0, to))?;
    let found = differences(&definition(&before)?, &definition(&after)?);
    Ok(Shown(Differences { changes: found.changes, from, to, truncated: found.truncated }))
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
