//! Calls that VAPI has not created yet, and calls that a tool places.
//!
//! Their rows have provisional ids and no `created_at`, so no list shows them.

use super::{
    super::{
        database::{Item, from_item, id, text},
        write::WriteResult,
    },
    Calls,
};
use crate::{
    Result,
    models::{Call, CallId, ExecutionId, OrganizationId, PlacingCall, StartingCall, Timestamp, Unowned},
};
use aws_sdk_dynamodb::types::AttributeValue;

/// Where the result of a tool went that began before its call.
#[derive(Debug)]
pub enum AddedEarly {
    Waits,
    /// The call has begun; nothing was added.
    Begun(CallId),
    NoCall,
}

impl Calls {
    pub async fn put_starting(&self, starting: &StartingCall) -> Result<()> {
        self.table.put(starting)?.when("attribute_not_exists(#id)").unless_refused().await.map(drop)
    }

    /// Read consistently.
    pub async fn starting(&self, organization: OrganizationId, starting: &CallId) -> Result<Option<StartingCall>> {
        let row: Option<StartingCall> = self.table.get_consistent(id(starting)).await?;
        Ok(row.filter(|row| row.organization_id == organization))
    }

    pub async fn put_placing(&self, placing: &PlacingCall) -> Result<()> {
        self.table.put(placing)?.when("attribute_not_exists(#id)").unless_refused().await.map(drop)
    }

    pub async fn delete_placing(&self, organization: OrganizationId, placing: &CallId) -> Result<()> {
        self.table.delete(id(placing)).of(organization).unless_refused().await.map(drop)
    }

    /// Writes a placed call, and deletes the row that named it.
    pub async fn put_placed(&self, call: &Call, placing: &CallId) -> Result<()> {
        self.put(call).await?;
        self.delete_placing(call.organization_id, placing).await
    }

    /// Read consistently.
    pub async fn placing(&self, placing: &CallId) -> Result<Option<Unowned<PlacingCall>>> {
        let row: Option<PlacingCall> = self.table.get_consistent(id(placing)).await?;
        Ok(row.filter(|row| row.expires_at > Timestamp::now().as_seconds()).map(Unowned::new))
    }

    /// Adds the JSON of a result. The first outcome of an execution wins.
    pub async fn add_early_result(
        &self,
        organization: OrganizationId,
        starting: &CallId,
        execution: ExecutionId,
        json: Option<&str>,
    ) -> Result<AddedEarly> {
        let added = self
            .table
            .update(id(starting), "SET #results.#execution = :json")
            .when("attribute_not_exists(#call_id) AND attribute_not_exists(#results.#execution)")
            .of(organization)
            .alias("#execution", &execution.to_string())
            .with([(":json", json.map_or(AttributeValue::Null(true), text))]);
        match added.attempt().await? {
            WriteResult::Done(_) => Ok(AddedEarly::Waits),
            WriteResult::Refused(row) if row.get("organization_id") != Some(&text(organization)) => {
                Ok(AddedEarly::NoCall)
            }
            WriteResult::Refused(row) => {
                let row: StartingCall = from_item(row)?;
                Ok(row.call_id.map_or(AddedEarly::Waits, AddedEarly::Begun))
            }
        }
    }

    /// Names the call that VAPI created, and takes the results so far. Later results go to the call.
    pub async fn begin(
        &self,
        organization: OrganizationId,
        starting: &CallId,
        call: &CallId,
    ) -> Result<Option<StartingCall>> {
        self.table
            .update(id(starting), "SET #call_id = :call, #results = :none REMOVE #caller_phone_number")
            .when("attribute_not_exists(#call_id)")
            .of(organization)
            .with([(":call", text(call)), (":none", AttributeValue::M(Item::new()))])
            .replaced()
            .await
    }

    pub async fn give_up_starting(&self, organization: OrganizationId, starting: &CallId) -> Result<()> {
        self.delete(organization, starting).await.map(drop)
    }
}
