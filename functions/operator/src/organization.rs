//! Organizations and their budgets, which only an operator makes and sets.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Number, Value};
use shared::{
    Error, Result,
    fields::Fields,
    models::{
        Budget, Contact, Organization, OrganizationId, OrganizationMember, OwnBudgets, OwnKeys, Role,
        ServiceCredentials, Slug, Timestamp, UserId,
    },
};

use crate::Deps;

/// Path segments at a slug's place in other routes: `POST /api/hooks/tools` would never reach an organization `hooks`.
pub const RESERVED: [&str; 4] = ["hooks", "phone-number", "tools", "vapi"];

const LONGEST_NAME: usize = 200;

/// `{"slug", "owner", "name"?, "add_owner"?: true}`: the requested organization with its owner.
pub(crate) struct Wanted {
    slug: Slug,
    owner: UserId,
    name: Option<String>,
    /// Makes the user an owner of an existing organization.
    add_owner: bool,
}

/// `{"slug", "runs_per_hour"?: 500 | null, …}`: new budgets of an organization; `null` restores the deployment's.
pub(crate) struct NewBudgets {
    slug: Slug,
    changes: Vec<(Budget, Option<Number>)>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub(crate) enum Report {
    Made(View),
    /// It existed before, with this owner; nothing changed.
    Exists(View),
    OwnerAdded(View),
    BudgetsSet(View),
}

#[derive(Debug, Serialize)]
pub(crate) struct View {
    organization: Shown,
}

#[derive(Debug, Serialize)]
struct Shown {
    id: OrganizationId,
    slug: Slug,
    name: String,
    /// Its own budgets; the others are the deployment's.
    budgets: Map<String, Value>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl View {
    fn of(organization: Organization) -> Self {
        let Organization { id, slug, name, budgets, created_at, updated_at, .. } = organization;
        let of = |budget: Budget| match budget {
            Budget::RunsPerHour => budgets.runs_per_hour.map(Value::from),
            Budget::ExecutionsPerHour => budgets.executions_per_hour.map(Value::from),
            Budget::PlatformCostPerMonth => budgets.platform_cost_per_month.map(Value::from),
            Budget::OwnCostPerMonth => budgets.own_cost_per_month.map(Value::from),
        };
        let own = Budget::ALL.into_iter().filter_map(|budget| Some((budget.as_str().to_owned(), of(budget)?)));
        Self { organization: Shown { id, slug, name, budgets: own.collect(), created_at, updated_at } }
    }
}

pub(crate) fn read(mut fields: Fields<'_>) -> Option<Wanted> {
    let slug: Option<Slug> = fields.required_parse("slug");
    if slug.as_ref().is_some_and(|slug| RESERVED.contains(&slug.as_str())) {
        fields.problem("slug", format!("must not be {}, which other addresses begin with", RESERVED.join(", ")));
    }
    let owner = fields.required_parse("owner");
    let name = fields.text("name", LONGEST_NAME);
    if name.as_ref().is_some_and(|name| name.contains(char::is_control)) {
        fields.problem("name", "must have no control characters");
    }
    let add_owner = fields.boolean("add_owner", false);
    fields.finish();
    Some(Wanted { slug: slug?, owner: owner?, name, add_owner })
}

pub(crate) fn read_budgets(mut fields: Fields<'_>) -> Option<NewBudgets> {
    let slug = fields.required_parse("slug");
    let mut changes = Vec::new();
    for budget in Budget::ALL {
        let name = budget.as_str();
        if fields.cleared(name) {
            changes.push((budget, None));
        } else if let Some(limit) = fields.get(name) {
            let number = limit.as_number();
            let (is_limit, problem) = match budget {
                Budget::RunsPerHour | Budget::ExecutionsPerHour => (
                    number.and_then(Number::as_u64).is_some_and(|count| u32::try_from(count).is_ok()),
                    "must be a whole number, 0 or more; null for what the deployment has",
                ),
                Budget::PlatformCostPerMonth | Budget::OwnCostPerMonth => (
                    number.and_then(Number::as_f64).is_some_and(|amount| amount >= 0.0),
                    "must be a number, 0 or more; null for what the deployment has",
                ),
            };
            if !is_limit {
                fields.problem(name, problem);
            }
            changes.push((budget, number.cloned()));
        }
    }
    if changes.is_empty() {
        fields.problem("runs_per_hour", format!("is missing; give at least one of {}", Budget::NAMES.join(", ")));
    }
    fields.finish();
    Some(NewBudgets { slug: slug?, changes })
}

/// Makes the organization with its owner, or finds it.
///
/// # Errors
/// [`Error::Conflict`] if the slug is another owner's; [`Error::Invalid`] for an unknown slug with `add_owner`.
pub(crate) async fn make(deps: &Deps, wanted: Wanted) -> Result<Report> {
    if let Some(existing) = deps.organizations.holder_of(&wanted.slug).await? {
        return found(deps, existing, &wanted).await;
    }
    if wanted.add_owner {
        // A misspelt slug must not make an organization that nobody wants.
        return Err(Error::invalid(
            "organization.slug",
            "names no organization, so nobody was added; check it, or leave ADD_OWNER (\"add_owner\") out to make one",
        ));
    }
    let now = Timestamp::now();
    let organization = Organization {
        id: OrganizationId::generate(),
        name: wanted.name.clone().unwrap_or_else(|| wanted.slug.to_string()),
        slug: wanted.slug.clone(),
        own_keys: OwnKeys::default(),
        service_credentials: ServiceCredentials::default(),
        service_accounts: BTreeMap::default(),
        budgets: OwnBudgets::default(),
        created_at: now,
        updated_at: now,
    };
    let owner = OrganizationMember::new(organization.id, wanted.owner.clone(), Role::Owner, Contact::default());
    if deps.organizations.create(&organization, &owner).await? {
        return Ok(Report::Made(View::of(organization)));
    }
    // Another invocation took this slug in between.
    let existing = deps.organizations.holder_of(&wanted.slug).await?;
    found(deps, existing.ok_or_else(|| Error::internal("a slug is reserved but belongs to no organization"))?, &wanted)
        .await
}

async fn found(deps: &Deps, existing: Organization, wanted: &Wanted) -> Result<Report> {
    let member = deps.members.find(existing.id, &wanted.owner).await?;
    if member.is_some_and(|member| member.role == Role::Owner) {
        return Ok(Report::Exists(View::of(existing)));
    }
    if wanted.add_owner {
        deps.members.make_owner(existing.id, &wanted.owner).await?;
        return Ok(Report::OwnerAdded(View::of(existing)));
    }
    let Organization { slug, name, created_at, .. } = existing;
    Err(Error::Conflict(format!(
        "the slug {slug} is taken by the organization \"{name}\", made {created_at}, of which this user is no owner; choose \
         another slug, have one of its owners add the user (POST /api/{slug}/members), or, if it has lost its owners, make the \
         user one by ADD_OWNER=1 (\"add_owner\": true)"
    )))
}

/// # Errors
/// [`Error::NotFound`] for an unknown slug; [`Error::Conflict`] if the row changed meanwhile.
pub(crate) async fn set_budgets(deps: &Deps, new: NewBudgets) -> Result<Report> {
    let existing = deps.organizations.holder_of(&new.slug).await?.ok_or(Error::NotFound("organization"))?;
    let organization = deps.organizations.set_budgets(existing.id, &new.changes).await?;
    Ok(Report::BudgetsSet(View::of(organization)))
}
