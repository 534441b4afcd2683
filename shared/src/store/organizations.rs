//! `organizations`. Key: id. Index `by_slug`: slug. Guard items beside the rows, with the key `slug#<slug>`, ensure that a slug
//! is taken only once; a row that was put by hand has none until somebody else asks for its slug.
//!
//! Every route of the dashboard's reads the organization by its slug; which keys and budgets of its own it has is remembered
//! from there, so that nothing is read a second time in the same request (docs/adr/0007-own-keys.md). Clones share what they remember:
//! `Access` and `Accounts` are given the same [`Organizations`].

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use aws_sdk_dynamodb::types::AttributeValue;
use serde::Deserialize;
use serde_json::Number;

use super::{
    Intents, OrganizationMembers,
    database::{Database, Item, from_item, id, text, to_attribute},
    table::Table,
    write::{transact, transact_unless_refused},
};
use crate::{
    Error, Result,
    models::{
        Budget, Intent, IntentId, KeyService, Organization, OrganizationId, OrganizationMember, OwnBudgets, OwnKey,
        OwnKeys, ServiceCredential, ServiceCredentials, ServiceId, Slug, Timestamp,
    },
};

/// Just longer than a request of the dashboard's may last, so that what its access read holds to its end.
const REMEMBERED: Duration = Duration::from_secs(30);

/// How often, and how far apart, the index is looked at after a change.
const LOOKS: u32 = 20;
const APART: Duration = Duration::from_millis(50);

#[derive(Clone)]
pub struct Organizations {
    table: Table,
    members: OrganizationMembers,
    intents: Intents,
    seen: OwnCache,
}

/// Says which organization has a slug.
#[derive(Deserialize)]
struct Guard {
    organization_id: OrganizationId,
}

/// What an organization had of its own when its row was last read.
#[derive(Debug, Clone)]
struct Own {
    keys: OwnKeys,
    credentials: ServiceCredentials,
    accounts: BTreeMap<ServiceId, String>,
    budgets: OwnBudgets,
}

impl Own {
    fn of(row: &Organization) -> Self {
        Self {
            keys: row.own_keys.clone(),
            credentials: row.service_credentials.clone(),
            accounts: row.service_accounts.clone(),
            budgets: row.budgets,
        }
    }
}

#[derive(Clone, Default)]
struct OwnCache(Arc<Mutex<HashMap<OrganizationId, (Instant, Own)>>>);

impl OwnCache {
    fn get(&self, organization: OrganizationId) -> Option<Own> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(&organization).filter(|(at, _)| at.elapsed() < REMEMBERED).map(|(_, own)| own.clone())
    }

    fn put(&self, organization: OrganizationId, own: Own) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.retain(|_, (at, _)| at.elapsed() < REMEMBERED);
        seen.insert(organization, (Instant::now(), own));
    }
}

impl Organizations {
    pub fn new(database: &Database) -> Self {
        Self {
            table: database.table("organizations"),
            members: OrganizationMembers::new(database),
            intents: Intents::new(database),
            seen: OwnCache::default(),
        }
    }

    /// The organization that has a slug, as of now: whether the slug is free.
    pub async fn holder_of(&self, slug: &Slug) -> Result<Option<Organization>> {
        if let Some(guard) = self.table.get_consistent::<Guard>(guard(slug)).await? {
            return self.get_consistent(guard.organization_id).await.map(Some);
        }
        let by_hand: Option<Organization> =
            self.table.query_index("by_slug", "#slug = :slug").with([(":slug", text(slug))]).first().await?;
        if let Some(by_hand) = &by_hand {
            let guard = self.table.put_item(guard_of(slug, by_hand.id)).when("attribute_not_exists(#id)");
            // Refused, it is there.
            guard.unless_refused().await?;
        }
        Ok(by_hand)
    }

    /// Writes a new organization, the guard of its slug and its first member: all or none. False if the slug has been taken.
    /// Whether an organization without a guard has it says [`Organizations::holder_of`].
    pub async fn create(&self, organization: &Organization, first: &OrganizationMember) -> Result<bool> {
        let row = self.table.put(organization)?.when("attribute_not_exists(#id)");
        let guard = guard_of(&organization.slug, organization.id);
        let guard = self.table.put_item(guard).when("attribute_not_exists(#id)");
        transact_unless_refused(vec![guard, row, self.members.put_in_transaction(first)?]).await
    }

    /// The organization in a URL. Whether the reader belongs to it is for `http::access` to find out.
    ///
    /// # Errors
    /// [`Error::NotFound`] if no organization has the slug.
    pub async fn by_slug(&self, slug: &Slug) -> Result<Organization> {
        let found = self.table.query_index("by_slug", "#slug = :slug").with([(":slug", text(slug))]).first().await?;
        self.remembered(found)
    }

    /// The row as of now.
    pub async fn get_consistent(&self, organization: OrganizationId) -> Result<Organization> {
        self.remembered(self.table.get_consistent(id(organization)).await?)
    }

    fn remembered(&self, found: Option<Organization>) -> Result<Organization> {
        let organization = found.ok_or(Error::NotFound("organization"))?;
        self.seen.put(organization.id, Own::of(&organization));
        Ok(organization)
    }

    /// At which services the organization has an account of its own, as this request has read it, or as of now.
    pub async fn own_keys(&self, organization: OrganizationId) -> Result<OwnKeys> {
        match self.seen.get(organization) {
            Some(own) => Ok(own.keys),
            None => Ok(self.get_consistent(organization).await?.own_keys),
        }
    }

    /// What the organization may use of its own, known as in [`Organizations::own_keys`].
    pub async fn budgets(&self, organization: OrganizationId) -> Result<OwnBudgets> {
        match self.seen.get(organization) {
            Some(own) => Ok(own.budgets),
            None => Ok(self.get_consistent(organization).await?.budgets),
        }
    }

    /// The services for which the organization has stored a credential, known as in [`Organizations::own_keys`].
    pub async fn service_credentials(&self, organization: OrganizationId) -> Result<ServiceCredentials> {
        match self.seen.get(organization) {
            Some(own) => Ok(own.credentials),
            None => Ok(self.get_consistent(organization).await?.service_credentials),
        }
    }

    /// Which of several accounts acts, by service, known as in [`Organizations::own_keys`].
    pub async fn service_accounts(&self, organization: OrganizationId) -> Result<BTreeMap<ServiceId, String>> {
        match self.seen.get(organization) {
            Some(own) => Ok(own.accounts),
            None => Ok(self.get_consistent(organization).await?.service_accounts),
        }
    }

    /// Sets which of several accounts of a service acts, or takes that back, as [`Organizations::set_own_key`] does.
    pub async fn set_service_account(
        &self,
        before: &Organization,
        service: ServiceId,
        account: Option<String>,
    ) -> Result<()> {
        let mut accounts = before.service_accounts.clone();
        match account {
            Some(account) => drop(accounts.insert(service, account)),
            None => drop(accounts.remove(&service)),
        }
        let change = "SET #service_accounts = :value, #updated_at = :now";
        self.set(before, change, to_attribute(&accounts)?, None, None).await?;
        self.seen.put(before.id, Own { accounts, ..Own::of(before) });
        Ok(())
    }

    /// Sets the key of a service, or takes it away, in a row that was read as `before`; in the same transaction closes the
    /// intent `made` of the new secret and opens the intent `left` of the old one.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the row has changed since it was read.
    pub async fn set_own_key(
        &self,
        before: &Organization,
        service: KeyService,
        key: Option<OwnKey>,
        made: Option<IntentId>,
        left: Option<&Intent>,
    ) -> Result<()> {
        let keys = before.own_keys.clone().with(service, key);
        self.set(before, "SET #own_keys = :value, #updated_at = :now", to_attribute(&keys)?, made, left).await?;
        self.seen.put(before.id, Own { keys, ..Own::of(before) });
        Ok(())
    }

    /// Sets the credential for a service, or takes it away, as [`Organizations::set_own_key`] does.
    pub async fn set_service_credential(
        &self,
        before: &Organization,
        service: ServiceId,
        credential: Option<ServiceCredential>,
        made: Option<IntentId>,
        left: Option<&Intent>,
    ) -> Result<()> {
        let mut credentials = before.service_credentials.clone();
        match credential {
            Some(credential) => drop(credentials.insert(service, credential)),
            None => drop(credentials.remove(&service)),
        }
        let change = "SET #service_credentials = :value, #updated_at = :now";
        self.set(before, change, to_attribute(&credentials)?, made, left).await?;
        self.seen.put(before.id, Own { credentials, ..Own::of(before) });
        Ok(())
    }

    /// Sets budgets of an organization, or goes back to the deployment's where there is `None`. What else stands among its
    /// budgets stays. Gives what it has now.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the row has changed meanwhile.
    pub async fn set_budgets(
        &self,
        organization: OrganizationId,
        changes: &[(Budget, Option<Number>)],
    ) -> Result<Organization> {
        let mut item = self.table.item(id(organization), true).await?.ok_or(Error::NotFound("organization"))?;
        let before: Organization = from_item(item.clone())?;
        let mut budgets = match item.remove("budgets") {
            Some(AttributeValue::M(budgets)) => budgets,
            _ => Item::new(),
        };
        for (budget, limit) in changes {
            match limit {
                Some(limit) => drop(budgets.insert(budget.as_str().to_owned(), to_attribute(limit)?)),
                None => drop(budgets.remove(budget.as_str())),
            }
        }
        let change = "SET #budgets = :value, #updated_at = :now";
        self.set(&before, change, AttributeValue::M(budgets), None, None).await?;
        self.get_consistent(organization).await
    }

    /// Waits, a second at most, until the index shows a change. Routes read the row through the index, which follows a moment
    /// after the table: until then they know what was before, and whoever has our answer expects what is now.
    pub async fn index_follows(&self, before: &Organization, shows: impl Fn(&Organization) -> bool) {
        for _look in 0..LOOKS {
            match self.by_slug(&before.slug).await {
                Ok(row) if shows(&row) => return,
                Ok(_) => tokio::time::sleep(APART).await,
                Err(_) => return,
            }
        }
    }

    async fn set(
        &self,
        before: &Organization,
        change: &str,
        value: AttributeValue,
        made: Option<IntentId>,
        left: Option<&Intent>,
    ) -> Result<()> {
        // Later than before on any clock: it is what tells two changes apart.
        let updated_at = Timestamp::now().max(before.updated_at.plus(Duration::from_millis(1)));
        let mut writes = vec![self.table.update(id(before.id), change).when("#updated_at = :seen").with([
            (":value", value),
            (":now", text(updated_at)),
            (":seen", text(before.updated_at)),
        ])];
        writes.extend(made.map(|made| self.intents.close_in_transaction(made)));
        writes.extend(left.map(|left| self.intents.open_in_transaction(left)).transpose()?);
        let written = transact(writes).await;
        written.map_err(|refused| refused.or("another change of this organization came in between; try again"))
    }
}

fn guard(slug: &Slug) -> Item {
    id(format!("slug#{slug}"))
}

fn guard_of(slug: &Slug, organization: OrganizationId) -> Item {
    let mut guard = guard(slug);
    guard.insert("organization_id".into(), text(organization));
    guard
}
