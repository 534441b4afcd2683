//! `hooks`. Key: id.
//!
//! Each change raises `revision`, conditional on the revision that was read.
//!
//! The item `tenant#<tenant_key>` holds the `hook_id` of the tenant's active hook, unique across organizations. It routes
//! services that send all organizations' events to one address, and exists while the hook is active.

use serde::Deserialize;

use super::{
    Cursor, Intents, Page,
    audit::Change,
    database::{Database, Item, id, number, text, to_attribute},
    table::Table,
    write::{Refused, Write, set_only, transact},
};
use crate::{
    Error, Result,
    models::{
        Act, Hook, HookId, HookSecretRef, HookStatus, Intent, IntentId, Noun, OrganizationId, Timestamp, Unowned,
    },
};

const WHAT: &str = "hook";
const OWN_PREFIX: &str = "own.";
const OVERTAKEN: &str = "another change of this hook came in between; try again";
const TAKEN: &str = "another active hook has this tenant; a tenant's events are for one hook only: delete that hook, here \
                     (GET /api/{slug}/hooks) or in the organization that has it, or make this one without a tenant, for its own address";

#[derive(Clone)]
pub struct Hooks {
    table: Table,
    intents: Intents,
}

impl Hooks {
    pub fn new(database: &Database) -> Self {
        Self { table: database.table("hooks"), intents: Intents::new(database) }
    }

    /// Writes a new hook, closes the intent of its secret and, for an active hook, claims its tenant, in one transaction.
    ///
    /// # Errors
    /// [`Error::Conflict`] if another active hook of any organization has the tenant.
    pub async fn create(&self, hook: &Hook, secret: Option<IntentId>) -> Result<()> {
        let new = self.table.put(hook)?.when("attribute_not_exists(#id)").audited(change(Act::Created, hook))?;
        let closed = secret.map(|secret| self.intents.close_in_transaction(secret));
        let tenant = self.tenant_follows(hook, HookStatus::Pending, hook.status);
        self.with_tenant(tenant, [new].into_iter().chain(closed).collect(), "a hook with this id exists already").await
    }

    pub async fn get(&self, organization: OrganizationId, hook: HookId) -> Result<Hook> {
        self.table.owned(organization, id(hook), WHAT).await
    }

    /// The hook addressed by a request, read consistently, to be trusted once its secret has verified the request.
    pub async fn find(&self, hook: HookId) -> Result<Option<Unowned<Hook>>> {
        Ok(self.table.get_consistent(id(hook)).await?.map(Unowned::new))
    }

    /// The active hook of the claimed tenant, to be trusted once its secret has verified the request.
    pub async fn of_tenant(&self, tenant_key: &str) -> Result<Option<Unowned<Hook>>> {
        #[derive(Deserialize)]
        struct Tenant {
            hook_id: HookId,
        }
        match self.table.get::<Tenant>(tenant(tenant_key)).await? {
            Some(tenant) => self.find(tenant.hook_id).await,
            None => Ok(None),
        }
    }

    pub async fn page(&self, organization: OrganizationId, after: Option<&Cursor>, limit: i32) -> Result<Page<Hook>> {
        Page::newest(organization, &self.table, after, limit).await
    }

    /// The organization's hooks of a service ([`crate::models::folded_name`]) outside automations, oldest first.
    pub async fn of_service(&self, organization: OrganizationId, service: &str) -> Result<Vec<Hook>> {
        self.table
            .of_organization(organization)
            .filter("#service = :service AND attribute_not_exists(#automation_id)")
            .with([(":service", text(service))])
            .collect()
            .await
    }

    /// The organization's hooks that each receive events for one automation.
    pub async fn of_automations(&self, organization: OrganizationId) -> Result<Vec<Hook>> {
        self.table
            .query_index("by_organization", "#organization_id = :organization")
            .filter("attribute_exists(#automation_id)")
            .with([(":organization", text(organization))])
            .collect()
            .await
    }

    /// The service names of the organization's own hooks.
    pub async fn own_services(&self, organization: OrganizationId) -> Result<Vec<String>> {
        let own = self.table.of_organization(organization).filter("begins_with(#service, :own)");
        let own = own.with([(":own", text(OWN_PREFIX))]);
        let mut services: Vec<String> = own.collect::<Hook>().await?.into_iter().map(|hook| hook.service).collect();
        services.sort();
        services.dedup();
        Ok(services)
    }

    /// Counts a request that was refused because they were too many. The row's revision stays.
    pub async fn throttled(&self, hook: &Hook) -> Result<()> {
        let counted = self
            .table
            .update(id(hook.id), "SET #throttled = if_not_exists(#throttled, :zero) + :one, #throttled_at = :now");
        let values = [(":zero", number(0)), (":one", number(1)), (":now", text(Timestamp::now()))];
        counted.of(hook.organization_id).with(values).unless_refused().await.map(drop)
    }

    /// Changes label, secrets or status at the revision that was read. Closes the intent `made` of a new secret and opens the
    /// intent `left` of an old one. Activation claims the tenant, deactivation releases it. Returns the new row.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the hook has changed since, or another active hook has the tenant.
    pub async fn change(
        &self,
        read: &Hook,
        after: HookChange<'_>,
        made: Option<IntentId>,
        left: Option<&Intent>,
    ) -> Result<Hook> {
        let changed = Hook {
            label: after.label.to_owned(),
            secrets: after.secrets.to_vec(),
            status: after.status,
            unseen_secret: after.unseen_secret,
            revision: read.revision + 1,
            updated_at: Timestamp::now(),
            ..read.clone()
        };
        let changing = ["label", "secrets", "status", "unseen_secret", "revision", "updated_at"];
        let (set, values) = set_only(&changed, &changing, &[])?;
        let update = self.table.update(id(read.id), set).when("#revision = :read").of(read.organization_id);
        let update = update.with_all(values).with([(":read", to_attribute(&read.revision)?)]);
        let update = update.audited(change(Act::Edited, &changed))?;
        let closed = made.map(|made| self.intents.close_in_transaction(made));
        let opened = left.map(|left| self.intents.open_in_transaction(left)).transpose()?;
        let tenant = self.tenant_follows(read, read.status, after.status);
        self.with_tenant(tenant, [update].into_iter().chain(closed).chain(opened).collect(), OVERTAKEN).await?;
        Ok(changed)
    }

    /// Deletes a hook at the revision that was read and opens intents to delete its secrets, in one transaction.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the hook has changed since.
    pub async fn delete(&self, read: &Hook, secrets: &[Intent]) -> Result<()> {
        let gone = self
            .table
            .delete(id(read.id))
            .when("attribute_not_exists(#id) OR (#organization_id = :organization AND #revision = :read)")
            .with([(":organization", text(read.organization_id)), (":read", to_attribute(&read.revision)?)])
            .audited(change(Act::Deleted, read))?;
        let opened =
            secrets.iter().map(|secret| self.intents.open_in_transaction(secret)).collect::<Result<Vec<_>>>()?;
        let tenant = self.tenant_follows(read, read.status, HookStatus::Ended);
        self.with_tenant(tenant, [gone].into_iter().chain(opened).collect(), OVERTAKEN).await
    }

    fn tenant_follows(&self, hook: &Hook, before: HookStatus, after: HookStatus) -> Option<Write> {
        let key = tenant(hook.tenant_key.as_deref()?);
        let hook_id = text(hook.id);
        let active = HookStatus::Active;
        if before != active && after == active {
            let taken = self.table.update(key, "SET #hook_id = :hook, #organization_id = :organization");
            let taken = taken.when("attribute_not_exists(#id) OR #hook_id = :hook");
            return Some(taken.with([(":hook", hook_id), (":organization", text(hook.organization_id))]));
        }
        let given_up = self.table.delete(key).when("attribute_not_exists(#id) OR #hook_id = :hook");
        (before == active && after != active).then(|| given_up.with([(":hook", hook_id)]))
    }

    async fn with_tenant(&self, tenant: Option<Write>, mut writes: Vec<Write>, otherwise: &str) -> Result<()> {
        let at = writes.len();
        writes.extend(tenant);
        transact(writes).await.map_err(|refused| match refused {
            Refused::Condition(place) if place == at => Error::Conflict(TAKEN.into()),
            refused => refused.or(otherwise),
        })
    }
}

fn change(action: Act, hook: &Hook) -> Change {
    Change::of(action, Noun::Hook, hook.id).named(&hook.label).with("service", &hook.service[..])
}

fn tenant(tenant_key: &str) -> Item {
    id(format!("tenant#{tenant_key}"))
}

/// The fields of a change; start from [`HookChange::none`].
#[derive(Debug, Clone, Copy)]
pub struct HookChange<'a> {
    pub label: &'a str,
    pub secrets: &'a [HookSecretRef],
    pub status: HookStatus,
    pub unseen_secret: bool,
}

impl<'a> HookChange<'a> {
    pub fn none(of: &'a Hook) -> Self {
        Self { label: &of.label, secrets: &of.secrets, status: of.status, unseen_secret: of.unseen_secret }
    }
}
