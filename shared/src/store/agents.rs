//! `agents`. Key: id. A change of the agent's assistant at VAPI is serialized by the lease on its row.

use std::time::Duration;

use aws_sdk_dynamodb::Client;

use super::{
    Lease,
    database::{Database, failed, from_item, text},
};
use crate::{
    Deadline, Error, Result,
    models::{Agent, AgentId, OrganizationId},
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
        let found = self.client.get_item().table_name(&self.table).key("id", text(id)).send().await.map_err(failed)?;
        let agent: Agent = from_item(found.item.ok_or(Error::NotFound("agent"))?)?;
        if agent.organization_id == organization { Ok(agent) } else { Err(Error::NotFound("agent")) }
    }

    /// Takes the lease on the agent's assistant and reads the agent, in one round trip. Waits for another holder until
    /// `deadline`, then [`Error::Conflict`].
    pub async fn lock(&self, organization: OrganizationId, id: AgentId, deadline: Deadline) -> Result<(Agent, Lease)> {
        let key = id.to_string();
        let (item, lease) =
            Lease::acquire(&self.client, &self.table, (organization, &key), "agent", LEASE, deadline).await?;
        Ok((from_item(item)?, lease))
    }

    pub async fn unlock(&self, lease: Lease) -> Result<()> {
        lease.release(&self.client).await
    }
}
