//! `organizations`. Key: id. Index `by_slug`: slug.
//!
//! Every route of the dashboard's reads the organization by its slug; which keys of its own it has is remembered from there,
//! so that nothing is read a second time in the same request (docs/adr/0007-own-keys.md).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use aws_sdk_dynamodb::{
    Client,
    types::{TransactWriteItem, Update},
};

use super::{
    Intents,
    database::{Database, failed, from_item, text, to_attribute, transact},
};
use crate::{
    Error, Result,
    models::{Intent, IntentId, KeyService, Organization, OrganizationId, OwnKey, OwnKeys, Slug, Timestamp},
};

/// Just longer than a request of the dashboard's may last, so that what its access read holds to its end.
const REMEMBERED: Duration = Duration::from_secs(30);

#[derive(Clone)]
pub struct Organizations {
    client: Client,
    table: String,
    intents: Intents,
    seen: OwnKeysSeen,
}

/// Which own keys organizations had when their rows were last read over one connection.
#[derive(Clone, Default)]
pub(crate) struct OwnKeysSeen(Arc<Mutex<HashMap<OrganizationId, (Instant, OwnKeys)>>>);

impl OwnKeysSeen {
    fn get(&self, organization: OrganizationId) -> Option<OwnKeys> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(&organization).filter(|(at, _)| at.elapsed() < REMEMBERED).map(|(_, keys)| keys.clone())
    }

    fn put(&self, organization: OrganizationId, keys: OwnKeys) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.retain(|_, (at, _)| at.elapsed() < REMEMBERED);
        seen.insert(organization, (Instant::now(), keys));
    }
}

impl Organizations {
    pub fn new(database: &Database) -> Self {
        Self {
            client: database.client.clone(),
            table: database.table("organizations"),
            intents: Intents::new(database),
            seen: database.own_keys_seen.clone(),
        }
    }

    /// The organization in a URL. Whether the reader belongs to it is for `http::access` to find out.
    ///
    /// # Errors
    /// [`Error::NotFound`] if no organization has the slug.
    pub async fn by_slug(&self, slug: &Slug) -> Result<Organization> {
        let found = self
            .client
            .query()
            .table_name(&self.table)
            .index_name("by_slug")
            .key_condition_expression("#slug = :slug")
            .expression_attribute_names("#slug", "slug")
            .expression_attribute_values(":slug", text(slug))
            .limit(1)
            .send()
            .await
            .map_err(failed)?;
        let item = found.items.unwrap_or_default().into_iter().next().ok_or(Error::NotFound("organization"))?;
        let organization: Organization = from_item(item)?;
        self.seen.put(organization.id, organization.own_keys.clone());
        Ok(organization)
    }

    /// The row as of now.
    pub async fn get_now(&self, id: OrganizationId) -> Result<Organization> {
        let found = self
            .client
            .get_item()
            .table_name(&self.table)
            .key("id", text(id))
            .consistent_read(true)
            .send()
            .await
            .map_err(failed)?;
        let organization: Organization = from_item(found.item.ok_or(Error::NotFound("organization"))?)?;
        self.seen.put(id, organization.own_keys.clone());
        Ok(organization)
    }

    /// At which services the organization has an account of its own, as this request has read it, or as of now.
    pub async fn own_keys(&self, id: OrganizationId) -> Result<OwnKeys> {
        match self.seen.get(id) {
            Some(keys) => Ok(keys),
            None => Ok(self.get_now(id).await?.own_keys),
        }
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
        // Later than before on any clock: it is what tells two changes apart.
        let updated_at = Timestamp::now().max(before.updated_at.plus(Duration::from_millis(1)));
        let update = Update::builder()
            .table_name(&self.table)
            .key("id", text(before.id))
            .update_expression("SET #keys = :keys, #updated = :updated")
            .condition_expression("#updated = :seen")
            .expression_attribute_names("#keys", "own_keys")
            .expression_attribute_names("#updated", "updated_at")
            .expression_attribute_values(":keys", to_attribute(&keys)?)
            .expression_attribute_values(":updated", text(updated_at))
            .expression_attribute_values(":seen", text(before.updated_at))
            .build()
            .map_err(Error::internal)?;
        let mut actions = vec![TransactWriteItem::builder().update(update).build()];
        actions.extend(made.map(|made| self.intents.close_in_transaction(made)).transpose()?);
        actions.extend(left.map(|left| self.intents.open_in_transaction(left)).transpose()?);
        let written = transact(&self.client, actions).await;
        written.map_err(|refused| refused.or("another change of this organization came in between; try again"))?;
        self.seen.put(before.id, keys);
        Ok(())
    }
}
