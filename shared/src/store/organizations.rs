//! `organizations`. Key: id. Index `by_slug`: slug. Guard items `slug#<slug>` make slugs unique.
//!
//! A row written by hand has no guard until its slug is requested again.
//!
//! Dashboard routes read the organization by slug and cache its keys and budgets for the rest of the request
//! (docs/adr/0007-own-keys.md). The next request reads again, so a removed key is out of use at once
//! (docs/adr/0024-keys-hold-at-once.md). Clones share the cache: `Access` and `Accounts` are given the same [`Organizations`].

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
    audit::{AuditLog, Change},
    database::{Database, Item, from_item, id, text, to_attribute},
    table::{Table, wait_for_index},
    write::{Write, transact, transact_unless_refused},
};
use crate::{
    Error, Result, invocation,
    models::{
        Act, Budget, Intent, IntentId, KeyService, Noun, Organization, OrganizationId, OrganizationMember, OwnBudgets,
        OwnKey, OwnKeys, SecretId, Service, ServiceCredential, ServiceCredentials, ServiceId, Slug, Timestamp,
    },
};

/// Just longer than a dashboard request, so that one read lasts to its end; longer work sets a shorter limit
/// ([`Organizations::own_keys_within`]). Budgets grant no access, so they may come from an earlier invocation.
const REMEMBERED: Duration = Duration::from_secs(30);

#[derive(Clone)]
pub struct Organizations {
    table: Table,
    members: OrganizationMembers,
    intents: Intents,
    audit: AuditLog,
    seen: OwnCache,
}

/// The organization's own VAPI key with which a registration was checked; `None`: the platform's.
#[derive(Debug, Clone, Copy)]
pub struct CheckedWith(pub Option<SecretId>);

pub(super) const OTHER_ACCOUNT: &str = "the organization's VAPI account was changed in between; try again";

#[derive(Deserialize)]
struct Guard {
    organization_id: OrganizationId,
}

#[derive(Debug, Clone)]
struct Own {
    keys: OwnKeys,
    credentials: ServiceCredentials,
    accounts: BTreeMap<ServiceId, String>,
    budgets: OwnBudgets,
    changed_at: Timestamp,
}

impl Own {
    fn of(row: &Organization) -> Self {
        Self {
            keys: row.own_keys.clone(),
            credentials: row.service_credentials.clone(),
            accounts: row.service_accounts.clone(),
            budgets: row.budgets,
            changed_at: row.updated_at,
        }
    }
}

/// Each entry with the time its read began.
#[derive(Clone, Default)]
struct OwnCache(Arc<Mutex<HashMap<OrganizationId, (Instant, Own)>>>);

impl OwnCache {
    /// Settings read in the present invocation, no longer ago than `within`.
    fn read_now(&self, organization: OrganizationId, within: Duration) -> Option<Own> {
        let began = invocation::began()?;
        self.seen(organization, |at| at >= began && at.elapsed() < within)
    }

    fn read_lately(&self, organization: OrganizationId) -> Option<Own> {
        self.seen(organization, |at| at.elapsed() < REMEMBERED)
    }

    fn seen(&self, organization: OrganizationId, holds: impl FnOnce(Instant) -> bool) -> Option<Own> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(&organization).filter(|(at, _)| holds(*at)).map(|(_, own)| own.clone())
    }

    fn put(&self, organization: OrganizationId, at: Instant, own: Own) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.retain(|_, (at, _)| at.elapsed() < REMEMBERED);
        // A concurrent read of this process may have begun later and finished earlier.
        if seen.get(&organization).is_none_or(|(known, _)| *known <= at) {
            seen.insert(organization, (at, own));
        }
    }
}

impl Organizations {
    pub fn new(database: &Database) -> Self {
        Self {
            table: database.table("organizations"),
            members: OrganizationMembers::new(database),
            intents: Intents::new(database),
            audit: AuditLog::new(database),
            seen: OwnCache::default(),
        }
    }

    /// The organization with a slug, read consistently, to decide whether the slug is free.
    pub async fn holder_of(&self, slug: &Slug) -> Result<Option<Organization>> {
        if let Some(guard) = self.table.get_consistent::<Guard>(guard(slug)).await? {
            return self.get_consistent(guard.organization_id).await.map(Some);
        }
        let by_hand: Option<Organization> =
            self.table.query_index("by_slug", "#slug = :slug").with([(":slug", text(slug))]).first().await?;
        if let Some(by_hand) = &by_hand {
            let guard = self.table.put_item(guard_of(slug, by_hand.id)).when("attribute_not_exists(#id)");
            guard.unless_refused().await?;
        }
        Ok(by_hand)
    }

    /// Writes a new organization, the guard of its slug and its first member in one transaction. False if the slug has a guard;
    /// check [`Organizations::holder_of`] for organizations without one.
    pub async fn create(&self, organization: &Organization, first: &OrganizationMember) -> Result<bool> {
        let row = self.table.put(organization)?.when("attribute_not_exists(#id)");
        let guard = guard_of(&organization.slug, organization.id);
        let guard = self.table.put_item(guard).when("attribute_not_exists(#id)");
        transact_unless_refused(vec![guard, row, self.members.put_in_transaction(first)?]).await
    }

    /// The organization of a URL. `http::access` checks membership.
    ///
    /// # Errors
    /// [`Error::NotFound`] if no organization has the slug.
    pub async fn by_slug(&self, slug: &Slug) -> Result<Organization> {
        let asked = Instant::now();
        let found = self.table.query_index("by_slug", "#slug = :slug").with([(":slug", text(slug))]).first().await?;
        self.remembered(asked, found)
    }

    pub async fn get_consistent(&self, organization: OrganizationId) -> Result<Organization> {
        let asked = Instant::now();
        self.remembered(asked, self.table.get_consistent(id(organization)).await?)
    }

    fn remembered(&self, asked: Instant, found: Option<Organization>) -> Result<Organization> {
        let organization = found.ok_or(Error::NotFound("organization"))?;
        self.seen.put(organization.id, asked, Own::of(&organization));
        Ok(organization)
    }

    /// The services with an own key, from this invocation's cache or read consistently.
    pub async fn own_keys(&self, organization: OrganizationId) -> Result<OwnKeys> {
        self.own_keys_within(organization, REMEMBERED).await
    }

    /// Like [`Organizations::own_keys`], with a cache no older than `within`.
    pub async fn own_keys_within(&self, organization: OrganizationId, within: Duration) -> Result<OwnKeys> {
        match self.seen.read_now(organization, within) {
            Some(own) => Ok(own.keys),
            None => Ok(self.get_consistent(organization).await?.own_keys),
        }
    }

    /// The organization's own budgets, up to half a minute old, or read consistently.
    pub async fn budgets(&self, organization: OrganizationId) -> Result<OwnBudgets> {
        match self.seen.read_lately(organization) {
            Some(own) => Ok(own.budgets),
            None => Ok(self.get_consistent(organization).await?.budgets),
        }
    }

    /// The services with a stored credential; freshness as in [`Organizations::own_keys`].
    pub async fn service_credentials(&self, organization: OrganizationId) -> Result<ServiceCredentials> {
        match self.seen.read_now(organization, REMEMBERED) {
            Some(own) => Ok(own.credentials),
            None => Ok(self.get_consistent(organization).await?.service_credentials),
        }
    }

    /// The selected account per service; freshness as in [`Organizations::own_keys`].
    pub async fn service_accounts(&self, organization: OrganizationId) -> Result<BTreeMap<ServiceId, String>> {
        match self.seen.read_now(organization, REMEMBERED) {
            Some(own) => Ok(own.accounts),
            None => Ok(self.get_consistent(organization).await?.service_accounts),
        }
    }

    /// The last change of keys, credentials or accounts; freshness as in [`Organizations::own_keys`].
    pub async fn changed_at(&self, organization: OrganizationId) -> Result<Timestamp> {
        match self.seen.read_now(organization, REMEMBERED) {
            Some(own) => Ok(own.changed_at),
            None => Ok(self.get_consistent(organization).await?.updated_at),
        }
    }

    pub async fn set_service_account(
        &self,
        before: &Organization,
        service: &Service,
        action: Act,
        account: Option<String>,
    ) -> Result<()> {
        let mut accounts = before.service_accounts.clone();
        match account {
            Some(account) => drop(accounts.insert(service.id, account)),
            None => drop(accounts.remove(&service.id)),
        }
        let change = "SET #service_accounts = :value, #updated_at = :now";
        let changed_at =
            self.set(before, change, to_attribute(&accounts)?, Some(connection(action, service)), None, None).await?;
        self.seen.put(before.id, Instant::now(), Own { accounts, changed_at, ..Own::of(before) });
        Ok(())
    }

    /// Notes an account that was removed at Pipedream when another request wrote the row at the same moment.
    pub async fn note_disconnected(&self, service: &Service) -> Result<()> {
        self.audit.note(connection(Act::Disconnected, service)).await
    }

    /// Sets or removes the key of a service in a row read as `before`. The same transaction closes the intent `made` of the new
    /// secret and opens the intent `left` of the old one.
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
        let action = if key.is_some() { Act::Edited } else { Act::Deleted };
        let entry = Some(Change::of(action, Noun::Key, service));
        let keys = before.own_keys.clone().with(service, key);
        let change = "SET #own_keys = :value, #updated_at = :now";
        let changed_at = self.set(before, change, to_attribute(&keys)?, entry, made, left).await?;
        self.seen.put(before.id, Instant::now(), Own { keys, changed_at, ..Own::of(before) });
        Ok(())
    }

    /// Sets or removes the credential of a service, like [`Organizations::set_own_key`].
    pub async fn set_service_credential(
        &self,
        before: &Organization,
        service: &Service,
        credential: Option<ServiceCredential>,
        made: Option<IntentId>,
        left: Option<&Intent>,
    ) -> Result<()> {
        let mut credentials = before.service_credentials.clone();
        let action = if credential.is_some() { Act::Connected } else { Act::Disconnected };
        match credential {
            Some(credential) => drop(credentials.insert(service.id, credential)),
            None => drop(credentials.remove(&service.id)),
        }
        let change = "SET #service_credentials = :value, #updated_at = :now";
        let changed_at = self
            .set(before, change, to_attribute(&credentials)?, Some(connection(action, service)), made, left)
            .await?;
        self.seen.put(before.id, Instant::now(), Own { credentials, changed_at, ..Own::of(before) });
        Ok(())
    }

    /// Sets budgets, or with `None` resets them to the deployment's. Other budgets stay. Returns the new row.
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
        self.set(&before, change, AttributeValue::M(budgets), None, None, None).await?;
        self.get_consistent(organization).await
    }

    /// Waits up to a second until the index, through which routes read the row, shows the change.
    pub async fn wait_for_index(&self, before: &Organization, shows: impl Fn(&Organization) -> bool) {
        wait_for_index(|| async { Some(shows(&self.by_slug(&before.slug).await.ok()?)) }).await;
    }

    async fn set(
        &self,
        before: &Organization,
        change: &str,
        value: AttributeValue,
        entry: Option<Change>,
        made: Option<IntentId>,
        left: Option<&Intent>,
    ) -> Result<Timestamp> {
        // Strictly later than before on any clock: `updated_at` distinguishes changes.
        let updated_at = Timestamp::now().max(before.updated_at.plus(Duration::from_millis(1)));
        let update = self.table.update(id(before.id), change).when("#updated_at = :seen").with([
            (":value", value),
            (":now", text(updated_at)),
            (":seen", text(before.updated_at)),
        ]);
        let mut writes = vec![match entry {
            Some(entry) => update.audited(entry)?,
            None => update,
        }];
        writes.extend(made.map(|made| self.intents.close_in_transaction(made)));
        writes.extend(left.map(|left| self.intents.open_in_transaction(left)).transpose()?);
        let written = transact(writes).await;
        written.map_err(|refused| refused.or("another change of this organization came in between; try again"))?;
        Ok(updated_at)
    }
}

/// Part of the transaction of a registration: refused if the key has changed. A change of the key under way notices it by
/// `updated_at`.
pub(super) fn registered(table: &Table, organization: OrganizationId, CheckedWith(key): CheckedWith) -> Write {
    let noted = table.beside("organizations").update(id(organization), "SET #updated_at = :now");
    let noted = noted.when("attribute_exists(#id)").with([(":now", text(Timestamp::now()))]);
    match key {
        Some(key) => noted.when("#own_keys.#vapi.#id = :key").with([(":key", text(key))]),
        None => noted.when("attribute_not_exists(#own_keys.#vapi)"),
    }
}

fn connection(action: Act, service: &Service) -> Change {
    Change::of(action, Noun::Service, service.id).named(&service.name)
}

fn guard(slug: &Slug) -> Item {
    id(format!("slug#{slug}"))
}

fn guard_of(slug: &Slug, organization: OrganizationId) -> Item {
    let mut guard = guard(slug);
    guard.insert("organization_id".into(), text(organization));
    guard
}
