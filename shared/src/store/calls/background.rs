//! Results of background tools, on their way to the live call.
//!
//! Each result is added once, to `to_tell`. One worker at a time moves all waiting results to `telling`, sends them, and records
//! their outcomes: a result is told in the order of its arrival, and at most once. If the worker stops in between, the next one
//! records that the outcome is unknown. The end of the call leaves both lists as they are. A call that was transferred takes
//! results after its end too: the caller may return in another call.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use serde::Deserialize;
use uuid::Uuid;

use super::{
    super::{
        database::{from_item, number, text, to_attribute},
        write::{Write, WriteResult},
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

const TOLD: &str = "#background_told = list_append(if_not_exists(#background_told, :none), :told)";
const OWN_TURN: &str = "#telling_worker = :worker AND size(#telling) = :before";
const NEW: &str = "NOT contains(#background, :id)";
const OPEN: &str = "(attribute_not_exists(#ended_at) OR attribute_exists(#transfer))";

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
        let added = self.update(organization, call, change).when(format!("{NEW} AND {OPEN}")).with([
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
        let change = format!("SET {TOLD}, #updated_at = :now ADD #background :ids");
        let values = [
            (":none", AttributeValue::L(Vec::new())),
            (":told", to_attribute(&[missed])?),
            (":id", text(&id)),
            (":ids", AttributeValue::Ss(vec![id.clone()])),
        ];
        self.update(organization, call, &change).when(NEW).with(values).unless_refused().await.map(drop)
    }

    /// The telling of the call's results by a worker of its own, whose turn ends `lease` after its last write.
    pub fn telling<'a>(&'a self, organization: OrganizationId, call: &'a CallId, lease: Duration) -> Telling<'a> {
        Telling { calls: self, organization, call, worker: Uuid::new_v4().to_string(), lease }
    }
}

pub struct Telling<'a> {
    calls: &'a Calls,
    organization: OrganizationId,
    call: &'a CallId,
    worker: String,
    lease: Duration,
}

#[derive(Debug)]
pub enum ToTell {
    Nothing,
    /// It is the turn of another worker.
    Held,
    /// The call, with the taken results in `telling`.
    Taken(Box<Call>),
    /// A worker took these results and its turn ended. Whether the call was told is unknown.
    Interrupted(Interrupted),
}

#[derive(Debug)]
pub struct Interrupted {
    pub results: Vec<ResultToTell>,
    turn: Turn,
}

#[derive(Debug, Deserialize)]
struct Turn {
    telling_worker: Option<String>,
    /// In milliseconds.
    telling_until: Option<i64>,
}

impl Telling<'_> {
    /// Takes the waiting results, if it is nobody else's turn.
    pub async fn take(&self) -> Result<ToTell> {
        let now = Timestamp::now();
        let taken = self
            .update(
                "SET #telling = #to_tell, #to_tell = :none, #telling_until = :until, #telling_worker = :worker, \
                 #updated_at = :now",
            )
            .when(
                "size(#to_tell) > :zero AND \
                 (attribute_not_exists(#telling) OR size(#telling) = :zero) AND \
                 (attribute_not_exists(#telling_until) OR #telling_until < :millis OR #telling_worker = :worker)",
            )
            .with([
                (":none", AttributeValue::L(Vec::new())),
                (":until", self.until(now)),
                (":worker", text(&self.worker)),
                (":zero", number(0)),
                (":millis", number(now.as_millis())),
            ]);
        let row = match taken.attempt().await? {
            WriteResult::Done(row) => return Ok(ToTell::Taken(Box::new(from_item(row)?))),
            WriteResult::Refused(row) if row.get("organization_id") == Some(&text(self.organization)) => row,
            WriteResult::Refused(_) => return Ok(ToTell::Nothing),
        };
        let (call, turn): (Call, Turn) = (from_item(row.clone())?, from_item(row)?);
        Ok(match () {
            () if call.telling.is_empty() && call.to_tell.is_empty() => ToTell::Nothing,
            // The SDK sent the update again after a lost answer.
            () if turn.is_of(&self.worker) && !call.telling.is_empty() => ToTell::Taken(Box::new(call)),
            () if call.telling.is_empty() || turn.telling_until.is_some_and(|until| until >= now.as_millis()) => {
                ToTell::Held
            }
            () => ToTell::Interrupted(Interrupted { results: call.telling, turn }),
        })
    }

    /// Records outcomes of taken results; `rest` are the taken results without one. False: the turn ended, and another worker
    /// recorded all of them as interrupted.
    pub async fn note(&self, told: &[BackgroundResult], rest: &[ResultToTell]) -> Result<bool> {
        let noted = self
            .update(&format!("SET {TOLD}, #telling = :rest, #telling_until = :until, #updated_at = :now"))
            .when(OWN_TURN)
            .with(self.outcomes(told, rest)?)
            .with([(":until", self.until(Timestamp::now()))]);
        match noted.attempt().await? {
            WriteResult::Done(_) => Ok(true),
            WriteResult::Refused(row) if row.contains_key("telling") => {
                let left = row.get("telling").and_then(|left| left.as_l().ok()).map_or(0, Vec::len);
                Ok(from_item::<Turn>(row)?.is_of(&self.worker) && left == rest.len())
            }
            WriteResult::Refused(_) => Ok(false),
        }
    }

    /// Records outcomes of taken results, has `rest` wait again before newer results, and ends the turn.
    pub async fn put_back(&self, told: &[BackgroundResult], rest: &[ResultToTell]) -> Result<()> {
        self.update(&format!(
            "SET {TOLD}, #to_tell = list_append(:rest, if_not_exists(#to_tell, :none)), #updated_at = :now \
             REMOVE #telling, #telling_until, #telling_worker"
        ))
        .when(OWN_TURN)
        .with(self.outcomes(told, rest)?)
        .unless_refused()
        .await
        .map(drop)
    }

    /// Records the outcomes of interrupted results, and ends that worker's turn.
    pub async fn note_interrupted(&self, interrupted: &Interrupted, outcomes: &[BackgroundResult]) -> Result<()> {
        self.update(&format!("SET {TOLD}, #updated_at = :now REMOVE #telling, #telling_until, #telling_worker"))
            .when("#telling_worker = :interrupted AND #telling_until = :ended AND size(#telling) > :zero")
            .with([
                (":none", AttributeValue::L(Vec::new())),
                (":told", to_attribute(&outcomes)?),
                (":interrupted", to_attribute(&interrupted.turn.telling_worker)?),
                (":ended", to_attribute(&interrupted.turn.telling_until)?),
                (":zero", number(0)),
            ])
            .unless_refused()
            .await
            .map(drop)
    }

    /// Ends the turn. False: more results wait.
    pub async fn release(&self) -> Result<bool> {
        self.update("SET #updated_at = :now REMOVE #telling, #telling_until, #telling_worker")
            .when("#telling_worker = :worker AND (attribute_not_exists(#to_tell) OR size(#to_tell) = :zero)")
            .with([(":worker", text(&self.worker)), (":zero", number(0))])
            .unless_refused()
            .await
    }

    /// The values of [`TOLD`] and [`OWN_TURN`], and `:rest`.
    fn outcomes(&self, told: &[BackgroundResult], rest: &[ResultToTell]) -> Result<[(&str, AttributeValue); 5]> {
        Ok([
            (":none", AttributeValue::L(Vec::new())),
            (":told", to_attribute(&told)?),
            (":rest", to_attribute(&rest)?),
            (":before", to_attribute(&(told.len() + rest.len()))?),
            (":worker", text(&self.worker)),
        ])
    }

    fn update(&self, change: &str) -> Write {
        self.calls.update(self.organization, self.call, change)
    }

    fn until(&self, now: Timestamp) -> AttributeValue {
        number(now.plus(self.lease).as_millis())
    }
}

impl Turn {
    fn is_of(&self, worker: &str) -> bool {
        self.telling_worker.as_deref() == Some(worker)
    }
}
