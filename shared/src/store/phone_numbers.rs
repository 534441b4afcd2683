//! `phone_numbers`. Key: id. Index `by_organization`: `organization_id`, `created_at`. Index `by_number`: number.
//!
//! That a number is registered once, whoever asks, is kept by a guard item beside the rows, with the key `number#<number>`.
//! Which agent a number rings also stands on the agent's row (`store/agents.rs`), written in the same transaction.

use std::time::Duration;

use aws_sdk_dynamodb::{
    Client,
    types::{Delete, Put, TransactWriteItem, Update},
};

use super::{
    Agents, Cursor, Intents, Page,
    database::{Database, failed, failed_transaction, from_item, owned, refused_action, text, to_item},
};
use crate::{
    Error, Result,
    models::{AgentId, E164, Intent, IntentId, OrganizationId, PhoneNumber, PhoneNumberId, Timestamp, Unowned},
};

#[derive(Clone)]
pub struct PhoneNumbers {
    client: Client,
    table: String,
    agents: Agents,
    intents: Intents,
}

impl PhoneNumbers {
    pub fn new(database: &Database) -> Self {
        Self {
            client: database.client.clone(),
            table: database.table("phone_numbers"),
            agents: Agents::new(database),
            intents: Intents::new(database),
        }
    }

    pub async fn get(&self, organization: OrganizationId, id: PhoneNumberId) -> Result<PhoneNumber> {
        self.read(organization, id, false).await
    }

    /// The row as of now: whether a write whose answer was lost has happened.
    pub async fn get_now(&self, organization: OrganizationId, id: PhoneNumberId) -> Result<PhoneNumber> {
        self.read(organization, id, true).await
    }

    /// The number that Twilio says is called. Whose request it is, is known only from the number's own credentials.
    pub async fn find(&self, id: PhoneNumberId) -> Result<Option<Unowned<PhoneNumber>>> {
        let found = self.client.get_item().table_name(&self.table).key("id", text(id)).send().await.map_err(failed)?;
        found.item.map(|item| from_item(item).map(Unowned::new)).transpose()
    }

    async fn read(&self, organization: OrganizationId, id: PhoneNumberId, consistent: bool) -> Result<PhoneNumber> {
        let found = self
            .client
            .get_item()
            .table_name(&self.table)
            .key("id", text(id))
            .consistent_read(consistent)
            .send()
            .await
            .map_err(failed)?;
        owned(organization, found.item, "phone number")
    }

    /// A page of the organization's phone numbers, newest first.
    pub async fn page(
        &self,
        organization: OrganizationId,
        after: Option<&Cursor>,
        limit: i32,
    ) -> Result<Page<PhoneNumber>> {
        let query = self.client.query().table_name(&self.table).index_name("by_organization");
        Page::newest_of(query, organization, after, limit).await
    }

    /// The organization's numbers that ring an agent.
    pub async fn of_agent(&self, organization: OrganizationId, agent: AgentId) -> Result<Vec<PhoneNumber>> {
        let mut rows = Vec::new();
        let mut pages = self
            .client
            .query()
            .table_name(&self.table)
            .index_name("by_organization")
            .key_condition_expression("#organization = :organization")
            .filter_expression("#agent = :agent")
            .expression_attribute_names("#organization", "organization_id")
            .expression_attribute_names("#agent", "agent_id")
            .expression_attribute_values(":organization", text(organization))
            .expression_attribute_values(":agent", text(agent))
            .into_paginator()
            .items()
            .send();
        while let Some(item) = pages.next().await {
            rows.push(from_item(item.map_err(failed)?)?);
        }
        Ok(rows)
    }

    /// Whoever owns the number that was called. Read beside the tool that tells who must own it.
    pub async fn by_number(&self, number: &E164) -> Result<Option<Unowned<PhoneNumber>>> {
        let found = self
            .client
            .query()
            .table_name(&self.table)
            .index_name("by_number")
            .key_condition_expression("#number = :number")
            .expression_attribute_names("#number", "number")
            .expression_attribute_values(":number", text(number))
            .limit(1)
            .send()
            .await
            .map_err(failed)?;
        found.items.unwrap_or_default().into_iter().next().map(|item| from_item(item).map(Unowned::new)).transpose()
    }

    /// Writes a new phone number with the guard of the number, notes it at its agent, and closes the intent of its secret: all
    /// or nothing.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the number is registered, by whatever organization; [`Error::NotFound`] if the organization
    /// has no such agent.
    pub async fn create(&self, row: &PhoneNumber, secret: IntentId) -> Result<()> {
        let put = Put::builder()
            .table_name(&self.table)
            .set_item(Some(to_item(row)?))
            .condition_expression("attribute_not_exists(#id)")
            .expression_attribute_names("#id", "id")
            .build()
            .map_err(Error::internal)?;
        let number = Put::builder()
            .table_name(&self.table)
            .item("id", text(guard(&row.number)))
            .item("phone_number_id", text(row.id))
            .condition_expression("attribute_not_exists(#id)")
            .expression_attribute_names("#id", "id")
            .build()
            .map_err(Error::internal)?;
        let mut actions =
            vec![TransactWriteItem::builder().put(put).build(), TransactWriteItem::builder().put(number).build()];
        // Before the agent's: a condition is told by its place.
        actions.push(self.intents.close_in_transaction(secret)?);
        actions.extend(row.agent_id.map(|agent| self.rings(row, agent, true)).transpose()?);
        let outcome = self
            .client
            .transact_write_items()
            .set_transact_items(Some(actions))
            .client_request_token(row.id.to_string())
            .send()
            .await;
        let Err(error) = outcome else { return Ok(()) };
        Err(match refused_action(&error) {
            Some(1) => Error::Conflict("this number is already registered".into()),
            Some(3) => Error::NotFound("agent"),
            Some(_) => Error::internal(error),
            None => failed_transaction(error),
        })
    }

    /// Writes label, agent, fallback number and the secret's name of a row that was read as `before`; gives the row as it is
    /// now. If the number comes to ring another agent, both agents' rows are written in the same transaction; the intent
    /// `made` of a new secret is closed there, and the intent `left` of the old one opened.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the row has changed since it was read; [`Error::NotFound`] if the organization has no such
    /// agent.
    pub async fn update(
        &self,
        organization: OrganizationId,
        before: &PhoneNumber,
        change: PhoneNumber,
        made: Option<IntentId>,
        left: Option<&Intent>,
    ) -> Result<PhoneNumber> {
        // Later than before on any clock: it is what tells two changes apart.
        let updated_at = Timestamp::now().max(before.updated_at.plus(Duration::from_millis(1)));
        let after = PhoneNumber { updated_at, ..change };
        let mut expression = String::from("SET #label = :label, #secret = :secret, #updated = :updated");
        let mut update = Update::builder()
            .table_name(&self.table)
            .key("id", text(before.id))
            .condition_expression("#organization = :organization AND #updated = :seen")
            .expression_attribute_names("#organization", "organization_id")
            .expression_attribute_names("#label", "label")
            .expression_attribute_names("#secret", "credentials_secret")
            .expression_attribute_names("#updated", "updated_at")
            .expression_attribute_names("#agent", "agent_id")
            .expression_attribute_names("#fallback", "fallback_number")
            .expression_attribute_values(":organization", text(organization))
            .expression_attribute_values(":label", text(&after.label))
            .expression_attribute_values(":secret", text(&after.credentials_secret))
            .expression_attribute_values(":updated", text(after.updated_at))
            .expression_attribute_values(":seen", text(before.updated_at));
        let mut gone = Vec::new();
        match after.agent_id {
            Some(agent) => {
                expression.push_str(", #agent = :agent");
                update = update.expression_attribute_values(":agent", text(agent));
            }
            None => gone.push("#agent"),
        }
        match &after.fallback_number {
            Some(number) => {
                expression.push_str(", #fallback = :fallback");
                update = update.expression_attribute_values(":fallback", text(number));
            }
            None => gone.push("#fallback"),
        }
        if !gone.is_empty() {
            expression.push_str(" REMOVE ");
            expression.push_str(&gone.join(", "));
        }
        let update = update.update_expression(expression).build().map_err(Error::internal)?;
        let mut actions = vec![TransactWriteItem::builder().update(update).build()];
        actions.extend(made.map(|made| self.intents.close_in_transaction(made)).transpose()?);
        actions.extend(left.map(|left| self.intents.open_in_transaction(left)).transpose()?);
        let moved = before.agent_id != after.agent_id;
        actions.extend(after.agent_id.filter(|_| moved).map(|agent| self.rings(&after, agent, true)).transpose()?);
        let quiet = before.agent_id.filter(|_| moved).map(|agent| self.rings(before, agent, false)).transpose()?;
        match self.write(actions, quiet).await {
            Ok(()) => Ok(after),
            Err(Refused::Action(0)) => {
                Err(Error::Conflict("another change of this phone number came in between; try again".into()))
            }
            Err(Refused::Action(_)) => Err(Error::NotFound("agent")),
            Err(Refused::Failed(error)) => Err(error),
        }
    }

    /// Deletes a row with the guard of its number, and at its agent, and records that its secret is to go: all or nothing. A
    /// row that is gone already is fine.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the row has changed since it was read.
    pub async fn delete(&self, organization: OrganizationId, row: &PhoneNumber, secret: Option<&Intent>) -> Result<()> {
        let delete = Delete::builder()
            .table_name(&self.table)
            .key("id", text(row.id))
            .condition_expression("attribute_not_exists(#id) OR (#organization = :organization AND #updated = :seen)")
            .expression_attribute_names("#id", "id")
            .expression_attribute_names("#organization", "organization_id")
            .expression_attribute_names("#updated", "updated_at")
            .expression_attribute_values(":organization", text(organization))
            .expression_attribute_values(":seen", text(row.updated_at))
            .build()
            .map_err(Error::internal)?;
        // A row that was put by hand has no guard.
        let number = Delete::builder()
            .table_name(&self.table)
            .key("id", text(guard(&row.number)))
            .condition_expression("attribute_not_exists(#id) OR #row = :row")
            .expression_attribute_names("#id", "id")
            .expression_attribute_names("#row", "phone_number_id")
            .expression_attribute_values(":row", text(row.id))
            .build()
            .map_err(Error::internal)?;
        let mut actions = vec![
            TransactWriteItem::builder().delete(delete).build(),
            TransactWriteItem::builder().delete(number).build(),
        ];
        actions.extend(secret.map(|secret| self.intents.open_in_transaction(secret)).transpose()?);
        let left = row.agent_id.map(|agent| self.rings(row, agent, false)).transpose()?;
        match self.write(actions, left).await {
            Ok(()) => Ok(()),
            Err(Refused::Action(0)) => {
                Err(Error::Conflict("another change of this phone number came in between; try again".into()))
            }
            Err(Refused::Action(_)) => Err(Error::internal("the guard of a number belongs to another row")),
            Err(Refused::Failed(error)) => Err(error),
        }
    }

    /// Carries a transaction out. `left` takes the number from the agent it rang; it is left out if that agent is gone, as
    /// only an agent deleted by hand can be.
    async fn write(
        &self,
        actions: Vec<TransactWriteItem>,
        left: Option<TransactWriteItem>,
    ) -> std::result::Result<(), Refused> {
        let last = left.as_ref().map(|_| actions.len());
        let with_left = actions.iter().cloned().chain(left).collect();
        let outcome = self.client.transact_write_items().set_transact_items(Some(with_left)).send().await;
        let Err(error) = outcome else { return Ok(()) };
        match refused_action(&error) {
            refused if refused.is_some() && refused == last => {}
            Some(action) => return Err(Refused::Action(action)),
            None => return Err(Refused::Failed(failed_transaction(error))),
        }
        let outcome = self.client.transact_write_items().set_transact_items(Some(actions)).send().await;
        let Err(error) = outcome else { return Ok(()) };
        Err(refused_action(&error).map_or_else(|| Refused::Failed(failed_transaction(error)), Refused::Action))
    }

    fn rings(&self, row: &PhoneNumber, agent: AgentId, rings: bool) -> Result<TransactWriteItem> {
        self.agents.rings_in_transaction(row.organization_id, agent, row.id, rings)
    }
}

/// Why a transaction was not carried out.
enum Refused {
    /// The condition of this action, counted from 0.
    Action(usize),
    Failed(Error),
}

fn guard(number: &E164) -> String {
    format!("number#{number}")
}
