//! `agents`. Key: id.
//!
//! The row's lease serializes changes of the assistant at VAPI. Guard items `assistant#<VAPI's id>` make assistants unique
//! across organizations. The transaction that writes a phone number updates `phone_number_ids`, so an agent cannot be deleted
//! while it gets one. `removing_until` (milliseconds since 1970) refuses numbers during a removal.

use std::time::Duration;

use serde::Deserialize;

use super::{
    CheckedWith, Cursor, Lease, Page,
    audit::Change,
    database::{Database, Item, id, number, text, texts},
    organizations::{OTHER_ACCOUNT, registered},
    table::Table,
    write::{Refused, Write, transact, transact_unless_refused},
};
use crate::{
    Deadline, Error, Result,
    models::{Act, Agent, AgentId, Noun, OrganizationId, PhoneNumberId, Timestamp},
};

/// Longer than any holder may run, so that two holders cannot overlap.
const LEASE: Duration = Duration::from_secs(30);

#[derive(Clone)]
pub struct Agents {
    table: Table,
}

#[derive(Deserialize)]
struct Guard {
    agent_id: AgentId,
}

impl Agents {
    pub fn new(database: &Database) -> Self {
        Self { table: database.table("agents") }
    }

    pub async fn get(&self, organization: OrganizationId, agent: AgentId) -> Result<Agent> {
        self.table.owned(organization, id(agent), "agent").await
    }

    pub async fn with_assistant(&self, organization: OrganizationId, assistant: &str) -> Result<Option<Agent>> {
        // Consistent: the agent may have been registered a moment ago.
        let Some(guard) = self.table.get_consistent::<Guard>(guard(assistant)).await? else { return Ok(None) };
        let agent: Option<Agent> = self.table.get_consistent(id(guard.agent_id)).await?;
        // An agent's assistant does not change, but the row is authoritative.
        Ok(agent.filter(|agent| agent.organization_id == organization && agent.external_assistant_id == assistant))
    }

    pub async fn page(&self, organization: OrganizationId, after: Option<&Cursor>, limit: i32) -> Result<Page<Agent>> {
        Page::newest(organization, &self.table, after, limit).await
    }

    pub async fn all(&self, organization: OrganizationId) -> Result<Vec<Agent>> {
        self.table.of_organization(organization).collect().await
    }

    /// Writes a new agent and the guard of its assistant in one transaction.
    ///
    /// # Errors
    /// [`Error::Conflict`] if any organization has registered the assistant, or the organization's VAPI account was changed.
    pub async fn create(&self, agent: &Agent, checked: CheckedWith) -> Result<()> {
        let mut guard = guard(&agent.external_assistant_id);
        guard.insert("agent_id".into(), text(agent.id));
        let created = Change::of(Act::Created, Noun::Agent, agent.id).named(&agent.name);
        let row = self.table.put(agent)?.when("attribute_not_exists(#id)").audited(created)?;
        let guard = self.table.put_item(guard).when("attribute_not_exists(#id)");
        let noted = registered(&self.table, agent.organization_id, checked);
        transact(vec![row, guard, noted]).await.map_err(|refused| match refused {
            Refused::Condition(0) => Error::internal("a new agent's id is taken"),
            Refused::Condition(2) => Error::Conflict(OTHER_ACCOUNT.into()),
            refused => refused.or(
                "this assistant is already registered, here (GET /api/{slug}/agents) or by another organization, which must first \
                 remove its agent",
            ),
        })
    }

    /// Refuses phone numbers to the agent until [`Agents::end_removal`] or the lease's end. False if one rings it.
    pub async fn begin_removal(&self, lease: &Lease) -> Result<bool> {
        let begun = lease
            .update_in_transaction("SET #removing_until = :until")
            .when("#lease_token = :token AND attribute_not_exists(#phone_number_ids)")
            .with([(":until", number(Timestamp::now().plus(LEASE).as_millis()))]);
        begun.unless_refused().await
    }

    /// Also releases the lease.
    pub async fn end_removal(&self, lease: &Lease) -> Result<()> {
        let ended = lease.update_in_transaction("REMOVE #removing_until, #lease_token, #lease_until");
        ended.unless_refused().await.map(drop)
    }

    /// Deletes an agent and the guard of its assistant in one transaction.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the lease is lost or a phone number rings the agent.
    pub async fn delete(&self, organization: OrganizationId, agent: &Agent, lease: &Lease) -> Result<()> {
        let row = self
            .table
            .delete(id(agent.id))
            .when("#lease_token = :token AND attribute_not_exists(#phone_number_ids)")
            .of(organization)
            .with([(":token", lease.token())])
            .audited(Change::of(Act::Deleted, Noun::Agent, agent.id).named(&agent.name))?;
        // Rows written by hand have no guard.
        let guard = self.table.delete(guard(&agent.external_assistant_id));
        let guard = guard.when("attribute_not_exists(#id) OR #agent_id = :agent").with([(":agent", text(agent.id))]);
        transact(vec![row, guard]).await.map_err(|refused| match refused {
            Refused::Condition(1) => Error::internal("the guard of an assistant belongs to another agent"),
            refused => refused.or("another change of this agent came in between; try again"),
        })
    }

    /// Acquires the lease and reads the agent, in one round trip. [`Error::Conflict`] if another holder keeps it until
    /// `deadline`.
    pub async fn acquire(
        &self,
        organization: OrganizationId,
        agent: AgentId,
        deadline: Deadline,
    ) -> Result<(Agent, Lease)> {
        Lease::acquire(organization, &self.table, id(agent), "agent", LEASE, deadline).await
    }

    /// Sets when the agent's voice token was issued; `None` revokes it.
    pub async fn set_voice_token(
        &self,
        organization: OrganizationId,
        agent: AgentId,
        issued_at: Option<Timestamp>,
    ) -> Result<()> {
        let (change, did) = match issued_at {
            Some(_) => ("SET #voice_token_at = :at, #updated_at = :now", "issued"),
            None => ("SET #updated_at = :now REMOVE #voice_token_at", "revoked"),
        };
        let written = self.table.update(id(agent), change).of(organization).with([(":now", text(Timestamp::now()))]);
        let written = match issued_at {
            Some(at) => written.with([(":at", text(at))]),
            None => written,
        };
        let written = written.audited(Change::of(Act::Edited, Noun::Agent, agent).with("voice_token", did))?;
        if transact_unless_refused(vec![written]).await? { Ok(()) } else { Err(Error::NotFound("agent")) }
    }

    /// Adds or removes a phone number of an agent; the transaction fails if the organization has no such agent, or it is being
    /// removed.
    pub(super) fn set_number_in_transaction(
        &self,
        organization: OrganizationId,
        agent: AgentId,
        phone_number: PhoneNumberId,
        rings: bool,
    ) -> Write {
        let change = if rings { "ADD #phone_number_ids :number" } else { "DELETE #phone_number_ids :number" };
        let noted = self.table.update(id(agent), change).of(organization).with([(":number", texts([phone_number]))]);
        if !rings {
            return noted;
        }
        let kept = "(attribute_not_exists(#removing_until) OR #removing_until < :now)";
        noted.when(kept).with([(":now", number(Timestamp::now().as_millis()))])
    }

    /// Of [`Agents::set_number_in_transaction`].
    pub(super) async fn refused_number(&self, organization: OrganizationId, agent: AgentId) -> Error {
        match self.get(organization, agent).await {
            Ok(_) => Error::Conflict("the agent is being removed; try again in a moment, or name another agent".into()),
            Err(error) => error,
        }
    }
}

fn guard(assistant: &str) -> Item {
    id(format!("assistant#{assistant}"))
}
