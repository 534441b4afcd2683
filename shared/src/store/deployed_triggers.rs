//! `deployed_triggers`. Key: the automation's id. Changes of a deployment require the row's lease.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;

use super::{
    Lease,
    database::{Database, id, text},
    table::Table,
};
use crate::{
    Deadline, Result,
    error::found,
    models::{AutomationId, DeployedTrigger, OrganizationId},
};

const WHAT: &str = "deployed trigger";
/// Longer than any holder may run.
const LEASE: Duration = Duration::from_secs(90);

#[derive(Clone)]
pub struct DeployedTriggers {
    table: Table,
}

impl DeployedTriggers {
    pub fn new(database: &Database) -> Self {
        Self { table: database.table("deployed_triggers") }
    }

    /// The trigger of an automation, deployed or about to be, read consistently.
    pub async fn find(
        &self,
        organization: OrganizationId,
        automation: AutomationId,
    ) -> Result<Option<DeployedTrigger>> {
        found(self.table.owned(organization, id(automation), WHAT).await)
    }

    /// Records a trigger about to be deployed, unless the automation has a record.
    pub async fn record(&self, row: &DeployedTrigger) -> Result<()> {
        self.table.put(row)?.when("attribute_not_exists(#id)").unless_refused().await.map(drop)
    }

    /// # Errors
    /// [`NotFound`](crate::Error::NotFound) without a row, [`Conflict`](crate::Error::Conflict) if another holder keeps the
    /// lease until `deadline`.
    pub async fn acquire(
        &self,
        organization: OrganizationId,
        automation: AutomationId,
        deadline: Deadline,
    ) -> Result<(DeployedTrigger, Lease)> {
        Lease::acquire(organization, &self.table, id(automation), WHAT, LEASE, deadline).await
    }

    pub async fn asked(&self, lease: &Lease) -> Result<()> {
        let asked = lease.update_in_transaction("SET #asked = :asked").with([(":asked", AttributeValue::Bool(true))]);
        asked.send().await
    }

    /// Pipedream has the trigger, and posts to this address.
    pub async fn deployed(&self, lease: &Lease, trigger_id: &str, webhook_url: &str) -> Result<()> {
        let deployed = lease.update_in_transaction("SET #trigger_id = :trigger, #webhook_url = :url");
        deployed.with([(":trigger", text(trigger_id)), (":url", text(webhook_url))]).send().await
    }

    /// A page of all organizations' triggers, for `settle`, and the key to continue after.
    pub async fn page(&self, after: Option<&str>, limit: i32) -> Result<(Vec<DeployedTrigger>, Option<String>)> {
        self.table.scan().rows_after(after, limit).await
    }

    pub async fn delete(&self, row: &DeployedTrigger, lease: Lease) -> Result<()> {
        let gone = self.table.delete(id(row.id)).when("#lease_token = :token").with([(":token", lease.token())]);
        gone.unless_refused().await.map(drop)
    }
}
