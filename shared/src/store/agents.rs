//! `agents`. Key: id. Index `by_organization`: `organization_id`, `created_at`.
//!
//! A change of the agent's assistant at VAPI is serialized by the lease on its row. That an assistant is registered once,
//! whoever asks, is kept by a guard item beside the rows, with the key `assistant#<VAPI's id>`. The row's
//! `phone_number_ids` is the set of numbers that ring the agent; `store/phone_numbers.rs` writes it in the transactions
//! that write the numbers, so that an agent cannot be deleted under a number that is just being given to it.

use std::time::Duration;

use aws_sdk_dynamodb::{
    Client,
    types::{AttributeValue, Delete, Put, TransactWriteItem, Update},
};

use super::{
    Cursor, Lease, Page,
    database::{Database, failed, failed_transaction, from_item, key, owned, refused_action, text, to_item},
};
use crate::{
    Deadline, Error, Result,
    models::{Agent, AgentId, OrganizationId, PhoneNumberId},
};

/// Longer than any function that holds it may run, so that two holders cannot overlap.
const LEASE: Duration = Duration::from_secs(30);

#[derive(Clone)]
pub struct Agents {
    client: Client,
    table: String,
}

impl Agents {
    pub fn new(database: &Database) -> Self {
        Self { client: database.client.clone(), table: database.table("agents") }
    }

    pub async fn get(&self, organization: OrganizationId, id: AgentId) -> Result<Agent> {
        let found = self
            .client
            .get_item()
            .table_name(&self.table)
            .key("id", text(id))
            .consistent_read(true)
            .send()
            .await
            .map_err(failed)?;
        owned(organization, found.item, "agent")
    }

    /// The organization's agent with this assistant of VAPI's, or `None`: another one's is nobody's.
    pub async fn with_assistant(&self, organization: OrganizationId, assistant: &str) -> Result<Option<Agent>> {
        let guard = self.client.get_item().table_name(&self.table).key("id", text(guard(assistant)));
        let Some(mut guard) = guard.send().await.map_err(failed)?.item else { return Ok(None) };
        let Some(id) = guard.remove("agent_id") else { return Ok(None) };
        let found = self.client.get_item().table_name(&self.table).key("id", id).send().await.map_err(failed)?;
        let agent: Option<Agent> = found.item.map(from_item).transpose()?;
        // The assistant of an agent does not change, but the row is what counts.
        Ok(agent.filter(|agent| agent.organization_id == organization && agent.external_assistant_id == assistant))
    }

    /// A page of the organization's agents, newest first.
    pub async fn page(&self, organization: OrganizationId, after: Option<&Cursor>, limit: i32) -> Result<Page<Agent>> {
        let query = self.client.query().table_name(&self.table).index_name("by_organization");
        Page::newest_of(query, organization, after, limit).await
    }

    /// Writes a new agent and the guard of its assistant, both or neither.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the assistant is registered, by whatever organization.
    pub async fn create(&self, agent: &Agent) -> Result<()> {
        let row = Put::builder()
            .table_name(&self.table)
            .set_item(Some(to_item(agent)?))
            .condition_expression("attribute_not_exists(#id)")
            .expression_attribute_names("#id", "id")
            .build()
            .map_err(Error::internal)?;
        let assistant = Put::builder()
            .table_name(&self.table)
            .item("id", text(guard(&agent.external_assistant_id)))
            .item("agent_id", text(agent.id))
            .condition_expression("attribute_not_exists(#id)")
            .expression_attribute_names("#id", "id")
            .build()
            .map_err(Error::internal)?;
        let outcome = self
            .client
            .transact_write_items()
            .transact_items(TransactWriteItem::builder().put(row).build())
            .transact_items(TransactWriteItem::builder().put(assistant).build())
            .client_request_token(agent.id.to_string())
            .send()
            .await;
        let Err(error) = outcome else { return Ok(()) };
        Err(match refused_action(&error) {
            Some(1) => Error::Conflict("this assistant is already registered".into()),
            Some(_) => Error::internal(error),
            None => failed_transaction(error),
        })
    }

    /// Deletes an agent whose lease is held, with the guard of its assistant, both or neither.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the lease is no longer ours or a phone number has come to ring the agent.
    pub async fn delete(&self, organization: OrganizationId, agent: &Agent, lease: &Lease) -> Result<()> {
        let row = Delete::builder()
            .table_name(&self.table)
            .key("id", text(agent.id))
            .condition_expression(
                "#organization = :organization AND #token = :token AND attribute_not_exists(#numbers)",
            )
            .expression_attribute_names("#organization", "organization_id")
            .expression_attribute_names("#token", "lease_token")
            .expression_attribute_names("#numbers", "phone_number_ids")
            .expression_attribute_values(":organization", text(organization))
            .expression_attribute_values(":token", lease.token())
            .build()
            .map_err(Error::internal)?;
        // A row that was put by hand has no guard.
        let assistant = Delete::builder()
            .table_name(&self.table)
            .key("id", text(guard(&agent.external_assistant_id)))
            .condition_expression("attribute_not_exists(#id) OR #agent = :agent")
            .expression_attribute_names("#id", "id")
            .expression_attribute_names("#agent", "agent_id")
            .expression_attribute_values(":agent", text(agent.id))
            .build()
            .map_err(Error::internal)?;
        let outcome = self
            .client
            .transact_write_items()
            .transact_items(TransactWriteItem::builder().delete(row).build())
            .transact_items(TransactWriteItem::builder().delete(assistant).build())
            .send()
            .await;
        let Err(error) = outcome else { return Ok(()) };
        Err(match refused_action(&error) {
            Some(0) => Error::Conflict("another change of this agent came in between; try again".into()),
            Some(_) => Error::internal(error),
            None => failed_transaction(error),
        })
    }

    /// Takes the lease on the agent's assistant and reads the agent, in one round trip. Waits for another holder until
    /// `deadline`, then [`Error::Conflict`].
    pub async fn lock(&self, organization: OrganizationId, id: AgentId, deadline: Deadline) -> Result<(Agent, Lease)> {
        Lease::acquire(&self.client, &self.table, (organization, key(id)), "agent", LEASE, deadline).await
    }

    pub async fn unlock(&self, lease: Lease) -> Result<()> {
        lease.release(&self.client).await
    }

    /// Notes, as part of a transaction, whether a phone number rings an agent; the transaction fails if the organization has
    /// no such agent.
    pub(super) fn rings_in_transaction(
        &self,
        organization: OrganizationId,
        agent: AgentId,
        number: PhoneNumberId,
        rings: bool,
    ) -> Result<TransactWriteItem> {
        let update = Update::builder()
            .table_name(&self.table)
            .key("id", text(agent))
            .update_expression(if rings { "ADD #numbers :number" } else { "DELETE #numbers :number" })
            .condition_expression("#organization = :organization")
            .expression_attribute_names("#numbers", "phone_number_ids")
            .expression_attribute_names("#organization", "organization_id")
            .expression_attribute_values(":number", AttributeValue::Ss(vec![number.to_string()]))
            .expression_attribute_values(":organization", text(organization))
            .build()
            .map_err(Error::internal)?;
        Ok(TransactWriteItem::builder().update(update).build())
    }
}

fn guard(assistant: &str) -> String {
    format!("assistant#{assistant}")
}
