//! `hooks`. Key: id. Index `by_organization`: `organization_id`, `created_at`. Index `by_tenant`: `tenant_key`, `created_at`, of those
//! that have one: what a service is told apart by that sends all organizations' events to one address. Each change raises
//! `revision` under the condition that it is the one that was read.

use super::{
    Cursor, Intents, Page,
    database::{Database, id, rows, text, to_attribute},
    table::Table,
    write::{Write, transact},
};
use crate::{
    Result,
    models::{Hook, HookId, HookSecretRef, HookStatus, Intent, IntentId, OrganizationId, Timestamp, Unowned},
};

const WHAT: &str = "hook";
const OVERTAKEN: &str = "another change of this hook came in between; try again";

#[derive(Clone)]
pub struct Hooks {
    table: Table,
    intents: Intents,
}

impl Hooks {
    pub fn new(database: &Database) -> Self {
        Self { table: database.table("hooks"), intents: Intents::new(database) }
    }

    /// Writes a new hook, and closes the intent of its secret if it has one: both or neither.
    pub async fn create(&self, hook: &Hook, secret: Option<IntentId>) -> Result<()> {
        let new = self.table.put(hook)?.when("attribute_not_exists(#id)");
        let closed = secret.map(|secret| self.intents.close_in_transaction(secret));
        let written = transact([new].into_iter().chain(closed).collect()).await;
        written.map_err(|refused| refused.or("a hook with this id exists already"))
    }

    /// The hook as of now.
    pub async fn get(&self, organization: OrganizationId, hook: HookId) -> Result<Hook> {
        self.table.owned(organization, id(hook), WHAT).await
    }

    /// The hook that a request came by. Whose it is, is known once the request is verified with the hook's own secret.
    pub async fn find(&self, hook: HookId) -> Result<Option<Unowned<Hook>>> {
        Ok(self.table.get(id(hook)).await?.map(Unowned::new))
    }

    /// The oldest hooks, at most `limit`, of whoever a request claims to be for. It is theirs whose secret verifies it.
    pub async fn of_tenant(&self, tenant_key: &str, limit: i32) -> Result<Vec<Unowned<Hook>>> {
        let of = self.table.query_index("by_tenant", "#tenant_key = :tenant").with([(":tenant", text(tenant_key))]);
        let (items, _) = of.page(None, Some(limit)).await?;
        Ok(rows(items).into_iter().map(Unowned::new).collect())
    }

    /// A page of the organization's hooks, newest first.
    pub async fn page(&self, organization: OrganizationId, after: Option<&Cursor>, limit: i32) -> Result<Page<Hook>> {
        Page::newest(organization, &self.table, after, limit).await
    }

    /// Gives a hook, which is as it was read, another label, other secrets or another status; closes the intent `made` of a new
    /// secret and opens the intent `left` of one that it leaves. The row as it is then.
    ///
    /// # Errors
    /// [`Error::Conflict`] if somebody else changed it since.
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
        let update = self
            .table
            .update(
                id(read.id),
                "SET #label = :label, #secrets = :secrets, #status = :status, #unseen_secret = :unseen, \
                 #revision = :next, #updated_at = :now",
            )
            .when("#organization_id = :organization AND #revision = :read")
            .with([
                (":label", text(&changed.label)),
                (":secrets", to_attribute(&changed.secrets)?),
                (":status", to_attribute(&changed.status)?),
                (":unseen", to_attribute(&changed.unseen_secret)?),
                (":next", to_attribute(&changed.revision)?),
                (":now", text(changed.updated_at)),
                (":organization", text(read.organization_id)),
                (":read", to_attribute(&read.revision)?),
            ]);
        self.with_intents(update, made, left).await?;
        Ok(changed)
    }

    /// Deletes a hook, which is as it was read, and records that its secrets are to go: all or nothing.
    ///
    /// # Errors
    /// [`Error::Conflict`] if somebody changed it since.
    pub async fn delete(&self, read: &Hook, secrets: &[Intent]) -> Result<()> {
        let gone = self
            .table
            .delete(id(read.id))
            .when("attribute_not_exists(#id) OR (#organization_id = :organization AND #revision = :read)")
            .with([(":organization", text(read.organization_id)), (":read", to_attribute(&read.revision)?)]);
        let opened =
            secrets.iter().map(|secret| self.intents.open_in_transaction(secret)).collect::<Result<Vec<_>>>()?;
        let deleted = transact([gone].into_iter().chain(opened).collect()).await;
        deleted.map_err(|refused| refused.or(OVERTAKEN))
    }

    async fn with_intents(&self, change: Write, made: Option<IntentId>, left: Option<&Intent>) -> Result<()> {
        let closed = made.map(|made| self.intents.close_in_transaction(made));
        let opened = left.map(|left| self.intents.open_in_transaction(left)).transpose()?;
        let written = transact([change].into_iter().chain(closed).chain(opened).collect()).await;
        written.map_err(|refused| refused.or(OVERTAKEN))
    }
}

/// What may change of a hook; what is not said stays as [`HookChange::none`] has it.
#[derive(Debug, Clone, Copy)]
pub struct HookChange<'a> {
    pub label: &'a str,
    pub secrets: &'a [HookSecretRef],
    pub status: HookStatus,
    pub unseen_secret: bool,
}

impl<'a> HookChange<'a> {
    /// The hook as it is.
    pub fn none(of: &'a Hook) -> Self {
        Self { label: &of.label, secrets: &of.secrets, status: of.status, unseen_secret: of.unseen_secret }
    }
}
