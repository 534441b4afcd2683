//! The request that the agent reads back to the caller.

use aws_sdk_dynamodb::types::AttributeValue;

use super::{
    super::database::{id, number, text, to_attribute},
    Calls,
};
use crate::{
    Result,
    models::{Call, CallId, OrganizationId, ReadBack, SpeechTurn},
};

const SAME: &str = "#read_back.#key = :key AND #read_back.#at = :at";
const AS_SEEN: &str = "#read_back.#key = :key AND #read_back.#at = :at AND size(#read_back.#heard) = :turns";

impl Calls {
    /// The call's row, read consistently. `None`: it has no row of this organization's.
    pub async fn current(&self, organization: OrganizationId, call: &CallId) -> Result<Option<Call>> {
        let call: Option<Call> = self.table.get_consistent(id(call)).await?;
        Ok(call.filter(|call| call.organization_id == organization && call.is_kept()))
    }

    /// Replaces the request `seen` by another. False: it changed or somebody spoke since it was read, or the call is over or has no
    /// row.
    pub async fn read_back(
        &self,
        organization: OrganizationId,
        call: &CallId,
        seen: Option<&ReadBack>,
        request: &ReadBack,
    ) -> Result<bool> {
        const LIVE: &str = "attribute_not_exists(#ended_at)";
        let change = self
            .update(organization, call, "SET #read_back = :request, #updated_at = :now")
            .with([(":request", to_attribute(request)?)]);
        let change = match seen {
            None => change.when(format!("{LIVE} AND attribute_not_exists(#read_back)")),
            Some(seen @ ReadBack { acted_at: None, .. }) => change
                .when(format!("{LIVE} AND {AS_SEEN} AND attribute_not_exists(#read_back.#acted_at)"))
                .with(as_seen(seen)),
            Some(seen @ ReadBack { acted_at: Some(acted_at), .. }) => change
                .when(format!("{LIVE} AND {AS_SEEN} AND #read_back.#acted_at = :acted_at"))
                .with(as_seen(seen))
                .with([(":acted_at", text(acted_at))]),
        };
        change.unless_refused().await
    }

    /// Takes the caller's answer to the request, once. False: somebody spoke since it was read, or it was taken.
    pub async fn take_answer(
        &self,
        organization: OrganizationId,
        call: &CallId,
        seen: &ReadBack,
        acted_by: Option<&str>,
    ) -> Result<bool> {
        let mut change = self
            .update(organization, call, "SET #read_back.#acted_at = :now, #updated_at = :now")
            .when(format!("{AS_SEEN} AND attribute_not_exists(#read_back.#acted_at)"))
            .with(as_seen(seen));
        if let Some(by) = acted_by {
            change = change.and(", #read_back.#acted_by = :by").with([(":by", text(by))]);
        }
        change.unless_refused().await
    }

    /// Adds that agent or caller spoke since the request.
    pub async fn note_turn(
        &self,
        organization: OrganizationId,
        call: &CallId,
        request: &ReadBack,
        turn: SpeechTurn,
    ) -> Result<()> {
        self.update(
            organization,
            call,
            "SET #read_back.#heard = list_append(#read_back.#heard, :turns), #updated_at = :now",
        )
        .when(SAME)
        .with([(":key", text(&request.key)), (":at", text(request.at)), (":turns", to_attribute(&[turn])?)])
        .unless_refused()
        .await
        .map(drop)
    }
}

fn as_seen(seen: &ReadBack) -> [(&'static str, AttributeValue); 3] {
    let turns = i64::try_from(seen.heard.len()).unwrap_or(i64::MAX);
    [(":key", text(&seen.key)), (":at", text(seen.at)), (":turns", number(turns))]
}
