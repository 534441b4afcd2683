//! `phone_numbers`. Key: id. Index `by_number`: number.
//!
//! Guard items with the key `number#<number>` make a number unique across organizations. The agent's row (`store/agents.rs`)
//! lists its numbers, updated in the same transaction.

use std::time::Duration;

use super::{
    Agents, CheckedWith, Cursor, Intents, Page,
    audit::Change,
    database::{Database, Item, id, rows, text},
    organizations::{OTHER_ACCOUNT, registered},
    table::{Table, wait_for_index},
    write::{Refused, Write, set_only, transact},
};
use crate::{
    Error, Result,
    error::found,
    models::{
        Act, AgentId, E164, Intent, IntentId, Noun, OrganizationId, PhoneNumber, PhoneNumberId, Timestamp, Unowned,
    },
};

const OVERTAKEN: &str = "another change of this phone number came in between; try again";

pub const NUMBER_IS_REGISTERED: &str = "this number is already registered, here (GET /api/{slug}/phone-numbers) or by another \
                                        organization, which must first remove it";

const WHAT: &str = "phone number";

#[derive(Clone)]
pub struct PhoneNumbers {
    table: Table,
    agents: Agents,
    intents: Intents,
}

impl PhoneNumbers {
    pub fn new(database: &Database) -> Self {
        Self { table: database.table("phone_numbers"), agents: Agents::new(database), intents: Intents::new(database) }
    }

    /// The row and its current credentials, read consistently.
    pub async fn get(&self, organization: OrganizationId, number: PhoneNumberId) -> Result<PhoneNumber> {
        self.table.owned(organization, id(number), WHAT).await
    }

    /// The number addressed by Twilio's request, read consistently, to be trusted once its credentials have verified the
    /// request.
    pub async fn find(&self, number: PhoneNumberId) -> Result<Option<Unowned<PhoneNumber>>> {
        Ok(self.table.get_consistent(id(number)).await?.map(Unowned::new))
    }

    pub async fn page(
        &self,
        organization: OrganizationId,
        after: Option<&Cursor>,
        limit: i32,
    ) -> Result<Page<PhoneNumber>> {
        Page::newest(organization, &self.table, after, limit).await
    }

    pub async fn all(&self, organization: OrganizationId) -> Result<Vec<PhoneNumber>> {
        let numbers = self.table.query_index("by_organization", "#organization_id = :organization");
        numbers.with([(":organization", text(organization))]).collect().await
    }

    pub async fn oldest(&self, organization: OrganizationId, limit: i32) -> Result<Vec<PhoneNumber>> {
        let (page, _) = self.table.of_organization(organization).page(None, Some(limit)).await?;
        Ok(rows(page))
    }

    pub async fn of_agent(&self, organization: OrganizationId, agent: AgentId) -> Result<Vec<PhoneNumber>> {
        let numbers = self.table.of_organization(organization).filter("#agent_id = :agent");
        numbers.with([(":agent", text(agent))]).collect().await
    }

    /// The organization's row of a number, with its current credentials.
    pub async fn with_number(&self, organization: OrganizationId, number: &E164) -> Result<Option<PhoneNumber>> {
        let numbers =
            self.table.of_organization(organization).filter("#number = :number").with([(":number", text(number))]);
        let registered: Vec<PhoneNumber> = numbers.collect().await?;
        match registered.first() {
            Some(row) => found(self.get(organization, row.id).await),
            None => Ok(None),
        }
    }

    /// The owner of a called number, read in parallel with the tool that determines the organization.
    pub async fn by_number(&self, number: &E164) -> Result<Option<Unowned<PhoneNumber>>> {
        let found = self.table.query_index("by_number", "#number = :number").with([(":number", text(number))]);
        Ok(found.first().await?.map(Unowned::new))
    }

    /// Waits up to a second until the index by number has this secret, or no row for `None`: tools that send from the called
    /// number read the secret there.
    pub async fn wait_for_index(&self, number: &E164, secret: Option<&str>) {
        let shows = || async {
            let found: Option<PhoneNumber> = self.by_number(number).await.ok()?.map(Unowned::for_its_owner);
            Some(found.as_ref().map(|row| row.credentials_secret.as_str()) == secret)
        };
        wait_for_index(shows).await;
    }

    /// Writes a new phone number, its guard and its entry on the agent, and closes the intent of its secret, in one transaction.
    /// `checked`: if it has an id at VAPI.
    ///
    /// # Errors
    /// [`Error::Conflict`] if any organization has registered the number, the agent is being removed, or the organization's VAPI
    /// account was changed; [`Error::NotFound`] if the organization has no such agent.
    pub async fn create(&self, row: &PhoneNumber, secret: IntentId, checked: Option<CheckedWith>) -> Result<()> {
        let mut guard = guard(&row.number);
        guard.insert("phone_number_id".into(), text(row.id));
        let mut writes = vec![
            self.table.put(row)?.when("attribute_not_exists(#id)").audited(change(Act::Created, row))?,
            self.table.put_item(guard).when("attribute_not_exists(#id)"),
            // Before the agent's write: conditions are identified by position.
            self.intents.close_in_transaction(secret),
        ];
        writes.extend(row.agent_id.map(|agent| self.rings(row, agent, true)));
        writes.extend(checked.map(|checked| registered(&self.table, row.organization_id, checked)));
        let Err(refused) = transact(writes).await else { return Ok(()) };
        Err(match (refused, row.agent_id) {
            (Refused::Condition(0), _) => Error::internal("a new phone number's id is taken"),
            (Refused::Condition(3), Some(agent)) => self.agents.refused_number(row.organization_id, agent).await,
            (Refused::Condition(3..), _) => Error::Conflict(OTHER_ACCOUNT.into()),
            (refused, _) => refused.or(NUMBER_IS_REGISTERED),
        })
    }

    /// Updates a row read as `before`, and sets `updated_at`. The same transaction updates both agents' rows, closes the intent
    /// `made` of a new secret and opens the intent `left` of the old one. `checked`: if it gets an id at VAPI.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the row has changed since it was read, the agent is being removed, or the organization's VAPI account
    /// was changed; [`Error::NotFound`] if the organization has no such agent.
    pub async fn update(
        &self,
        organization: OrganizationId,
        before: &PhoneNumber,
        after: &mut PhoneNumber,
        made: Option<IntentId>,
        left: Option<&Intent>,
        checked: Option<CheckedWith>,
    ) -> Result<()> {
        // Strictly later than before on any clock: `updated_at` distinguishes changes.
        after.updated_at = Timestamp::now().max(before.updated_at.plus(Duration::from_millis(1)));
        let optional =
            ["agent_id", "fallback_number", "fallback_sentence", "language", "vapi_phone_number_id", "wait_ms"];
        let (set, values) = set_only(after, &["label", "credentials_secret", "updated_at"], &optional)?;
        let update = self.table.update(id(before.id), set).when("#updated_at = :seen").of(organization);
        let update = update.with_all(values).with([(":seen", text(before.updated_at))]);
        let mut writes = vec![update.audited(change(Act::Edited, after))?];
        writes.extend(checked.map(|checked| registered(&self.table, organization, checked)));
        writes.extend(made.map(|made| self.intents.close_in_transaction(made)));
        writes.extend(left.map(|left| self.intents.open_in_transaction(left)).transpose()?);
        let moved = before.agent_id != after.agent_id;
        writes.extend(after.agent_id.filter(|_| moved).map(|agent| self.rings(after, agent, true)));
        let quiet = before.agent_id.filter(|_| moved).map(|agent| self.rings(before, agent, false));
        let Err(refused) = transact_leaving(writes, quiet).await else { return Ok(()) };
        Err(match (refused, after.agent_id) {
            (Refused::Condition(1), _) if checked.is_some() => Error::Conflict(OTHER_ACCOUNT.into()),
            (Refused::Condition(1..), Some(agent)) => self.agents.refused_number(organization, agent).await,
            (refused, _) => refused.or(OVERTAKEN),
        })
    }

    /// Deletes a row, its guard and its entry on the agent, and opens the intent to delete its secret, in one transaction.
    /// Repeatable.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the row has changed since it was read.
    pub async fn delete(&self, organization: OrganizationId, row: &PhoneNumber, secret: Option<&Intent>) -> Result<()> {
        let deleted = self
            .table
            .delete(id(row.id))
            .when("attribute_not_exists(#id) OR (#organization_id = :organization AND #updated_at = :seen)")
            .with([(":organization", text(organization)), (":seen", text(row.updated_at))]);
        // Rows written by hand have no guard.
        let guard = self.table.delete(guard(&row.number));
        let guard = guard.when("attribute_not_exists(#id) OR #phone_number_id = :row").with([(":row", text(row.id))]);
        let mut writes = vec![deleted.audited(change(Act::Deleted, row))?, guard];
        writes.extend(secret.map(|secret| self.intents.open_in_transaction(secret)).transpose()?);
        let left = row.agent_id.map(|agent| self.rings(row, agent, false));
        transact_leaving(writes, left).await.map_err(|refused| match refused {
            Refused::Condition(1..) => Error::internal("the guard of a number belongs to another row"),
            refused => refused.or(OVERTAKEN),
        })
    }

    fn rings(&self, row: &PhoneNumber, agent: AgentId, rings: bool) -> Write {
        self.agents.set_number_in_transaction(row.organization_id, agent, row.id, rings)
    }
}

/// Sends a transaction, without `left` if the agent in it is gone, which takes a deletion by hand.
async fn transact_leaving(writes: Vec<Write>, left: Option<Write>) -> Result<(), Refused> {
    let place = writes.len();
    match transact(writes.iter().cloned().chain(left).collect()).await {
        Err(Refused::Condition(refused)) if refused == place => transact(writes).await,
        done => done,
    }
}

fn change(action: Act, row: &PhoneNumber) -> Change {
    Change::of(action, Noun::PhoneNumber, row.id).named(&row.label)
}

fn guard(number: &E164) -> Item {
    id(format!("number#{number}"))
}
