//! An operator's invocation: loads or drafts the catalogue, makes organizations, sets budgets.
//!
//! It has no route; IAM decides who may invoke it (`lambda:InvokeFunction`).
//!
//! - `{"files": {"slack.json": {…}, …}, "dry_run"?: true}` loads the files. They are the whole catalogue: services and tools in
//!   none of them become inactive. Everything is checked before the first write. Gives `{"result": "refused", "refused":
//!   [{"file", "pointer", "problem"}], "more"}`, `{"result": "loaded" | "checked", "services": {…}, …}`, or `{"result":
//!   "broke_off", "problem", "written": {…}}` ([`load::Report`]).
//! - `{"import": {"app": "slack_v2", "keys"?: ["slack_v2-post-message"]}}` reads an app's components at Pipedream and gives
//!   `{"draft": {…}, "left_out": [{"key", "why"}]}`; nothing is written.
//! - `{"organization": {"slug", "owner", "name"?, "add_owner"?}}` makes an organization with its first owner, a user by the
//!   `sub` of their tokens. Gives `{"result": "made", "organization": {"id", "slug", "name", "budgets", "created_at",
//!   "updated_at"}}`; a repetition gives `exists`, and nothing is written. With `add_owner` a user becomes an owner of an
//!   existing organization whose owners are gone: `owner_added`.
//! - `{"budgets": {"slug", "runs_per_hour"?, "executions_per_hour"?, "platform_cost_per_month"?, "own_cost_per_month"?}}` sets
//!   the organization's own budgets; `null` returns to the deployment's. Gives `budgets_set`.
//!
//! The event carries the files, so the catalogue changes without a deployment, and a dry run shows the effect of a pull
//! request. An event holds 6 MB, some thirty times the present size.

mod capabilities;
mod file;
mod import;
pub mod load;
pub mod organization;
mod plain_text;
mod props;
mod reading;
mod request;

use organization::{NewBudgets, Wanted};
use serde_json::Value;
use shared::{
    Deadline, Error, Result,
    clients::{Pipedream, Secrets},
    error::Problems,
    fields::Fields,
    platform::Parts,
    store::{OrganizationMembers, Organizations, Services},
};

#[derive(Parts)]
pub struct Deps {
    pub organizations: Organizations,
    pub members: OrganizationMembers,
    pub services: Services,
    pub pipedream: Pipedream,
    #[part(platform.pipedream_secret()?)]
    pub pipedream_secret: String,
    pub secrets: Secrets,
}

/// # Errors
/// [`Error::Invalid`] for any other event; [`Error::Conflict`] during another load, and for the slug of another owner; outages.
pub async fn handle(deps: &Deps, event: Value, deadline: Deadline) -> Result<Value> {
    let mut problems = Problems::default();
    let asked = Fields::of(&event, "", &mut problems).and_then(read);
    // On the heap: the layout of a function's futures is deep enough for the compiler.
    let answer = match problems.into_result(asked)? {
        Asked::Load { dry_run } => {
            let files = event.get("files").and_then(Value::as_object).into_iter().flatten().collect();
            serde_json::to_value(Box::pin(load::load(deps, files, dry_run, deadline)).await?)
        }
        Asked::Import { app, keys } => {
            serde_json::to_value(Box::pin(import::draft(deps, &app, &keys, deadline)).await?)
        }
        Asked::Organization(wanted) => serde_json::to_value(Box::pin(organization::make(deps, wanted)).await?),
        Asked::Budgets(new) => serde_json::to_value(Box::pin(organization::set_budgets(deps, new)).await?),
    };
    answer.map_err(Error::internal)
}

enum Asked {
    Load { dry_run: bool },
    Import { app: String, keys: Vec<String> },
    Organization(Wanted),
    Budgets(NewBudgets),
}

fn read(mut fields: Fields<'_>) -> Option<Asked> {
    if let Some(import) = fields.get("import") {
        let mut of_import = Fields::of(import, "import", fields.problems())?;
        let app = of_import.required_text("app", 100);
        let keys = of_import.texts("keys", "keys of components", usize::MAX).unwrap_or_default();
        of_import.finish();
        fields.finish();
        return Some(Asked::Import { app: app?, keys });
    }
    if let Some(wanted) = fields.get("organization") {
        let wanted = Fields::of(wanted, "organization", fields.problems()).and_then(organization::read);
        fields.finish();
        return Some(Asked::Organization(wanted?));
    }
    if let Some(new) = fields.get("budgets") {
        let new = Fields::of(new, "budgets", fields.problems()).and_then(organization::read_budgets);
        fields.finish();
        return Some(Asked::Budgets(new?));
    }
    if fields.members("files").is_empty() {
        // An empty catalogue would deactivate everything.
        fields.problem("files", "must hold the files of the catalogue, by their names; or import an app's components");
    }
    let dry_run = fields.boolean("dry_run", false);
    fields.finish();
    Some(Asked::Load { dry_run })
}
