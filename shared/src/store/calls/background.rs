//! Results of background tools, on their way to the live call.
//!
//! Each result is added once. One worker at a time takes all waiting results, before it sends them: a result is told in the
//! order of its arrival, and at most once.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;

use super::{
    super::{
        database::{number, text, to_attribute},
        write::WriteResult,
    },
    Calls,
};
use crate::{
    Result,
    models::{BackgroundResult, Call, CallId, OrganizationId, ResultToTell, Timestamp},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddedToCall {
    Waits,
    Before,
    /// Nothing was added.
    Over,
    NoCall,
}

const NEW: &str = "#organization_id = :organization AND NOT contains(#background, :id)";

impl Calls {
    pub async fn add_background(
        &self,
        organization: OrganizationId,
        call: &CallId,
        result: &ResultToTell,
    ) -> Result<AddedToCall> {
        let id = result.execution_id.to_string();
        let change = "SET #to_tell = list_append(if_not_exists(#to_tell, :none), :result), #updated_at = :now \
                      ADD #background :ids";
        let added =
            self.update(organization, call, change).when(format!("{NEW} AND attribute_not_exists(#ended_at)")).with([
                (":none", AttributeValue::L(Vec::new())),
                (":result", to_attribute(&[result])?),
                (":id", text(&id)),
                (":ids", AttributeValue::Ss(vec![id.clone()])),
            ]);
        let row = match added.attempt().await? {
            WriteResult::Done(_) => return Ok(AddedToCall::Waits),
            WriteResult::Refused(row) => row,
        };
        let before = row.get("background").and_then(|ids| ids.as_ss().ok()).is_some_and(|ids| ids.contains(&id));
        Ok(match row.get("organization_id") {
            owner if owner != Some(&text(organization)) => AddedToCall::NoCall,
            _ if before => AddedToCall::Before,
            _ => AddedToCall::Over,
        })
    }

    /// Records that a result came too late for the call.
    pub async fn miss_background(
        &self,
        organization: OrganizationId,
        call: &CallId,
        missed: &BackgroundResult,
    ) -> Result<()> {
        let id = missed.execution_id.to_string();
        let change = "SET #background_told = list_append(if_not_exists(#background_told, :none), :told), \
                      #updated_at = :now ADD #background :ids";
        let values = [
            (":none", AttributeValue::L(Vec::new())),
            (":told", to_attribute(&[missed])?),
            (":id", text(&id)),
            (":ids", AttributeValue::Ss(vec![id.clone()])),
        ];
        self.update(organization, call, change).when(NEW).with(values).unless_refused().await.map(drop)
    }

    /// Takes the waiting results, and the call as it was. `None`: there are none, or another worker is telling.
    pub async fn take_background(
        &self,
        organization: OrganizationId,
        call: &CallId,
        worker: &str,
        lease: Duration,
    ) -> Result<Option<Call>> {
        let now = Timestamp::now();
        self.update(
            organization,
            call,
            "SET #to_tell = :none, #telling_until = :until, #telling_worker = :worker, #updated_at = :now",
        )
        .when(
            "#organization_id = :organization AND size(#to_tell) > :zero AND \
             (attribute_not_exists(#telling_until) OR #telling_until < :millis OR #telling_worker = :worker)",
        )
        .with([
            (":none", AttributeValue::L(Vec::new())),
            (":until", number(now.plus(lease).as_millis())),
            (":worker", text(worker)),
            (":zero", number(0)),
            (":millis", number(now.as_millis())),
        ])
        .replaced()
        .await
    }

    pub async fn note_background(
        &self,
        organization: OrganizationId,
        call: &CallId,
        told: &[BackgroundResult],
    ) -> Result<()> {
        let change =
            "SET #background_told = list_append(if_not_exists(#background_told, :none), :told), #updated_at = :now";
        let values = [(":none", AttributeValue::L(Vec::new())), (":told", to_attribute(&told)?)];
        self.update(organization, call, change).with(values).unless_refused().await.map(drop)
    }

    /// Lets another worker tell. False: more results wait.
    pub async fn release_background(&self, organization: OrganizationId, call: &CallId, worker: &str) -> Result<bool> {
        self.update(organization, call, "SET #updated_at = :now REMOVE #telling_until, #telling_worker")
            .when(
                "#organization_id = :organization AND #telling_worker = :worker AND \
                 (attribute_not_exists(#to_tell) OR size(#to_tell) = :zero)",
            )
            .with([(":worker", text(worker)), (":zero", number(0))])
            .unless_refused()
            .await
    }
}
