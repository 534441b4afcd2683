//! A transfer that returns to the agent if nobody answers.

use super::{
    super::database::{number, text, to_attribute},
    Calls,
};
use crate::{
    Result,
    models::{AgentId, CallId, OrganizationId, ReturningTransfer, Timestamp},
};

impl Calls {
    /// Claims the call for one transfer. False: it is over, or it has been transferred. A write whose answer was lost is repeated,
    /// and finds its own transfer.
    pub async fn begin_transfer(
        &self,
        organization: OrganizationId,
        call: &CallId,
        transfer: &ReturningTransfer,
    ) -> Result<bool> {
        self.update(organization, call, "SET #transfer = :transfer, #updated_at = :now")
            .when(
                "attribute_not_exists(#ended_at) \
                 AND (attribute_not_exists(#transfer) OR #transfer.#execution_id = :execution)",
            )
            .with([(":transfer", to_attribute(transfer)?), (":execution", text(transfer.execution_id))])
            .unless_refused()
            .await
    }

    /// Releases a call that certainly was not moved. `at`: the time of the transfer.
    pub async fn give_up_transfer(&self, organization: OrganizationId, call: &CallId, at: Timestamp) -> Result<()> {
        self.update(organization, call, "SET #updated_at = :now REMOVE #transfer")
            .when("#transfer.#at = :at AND attribute_not_exists(#transfer.#outcome) AND size(#transfer.#rung) = :none")
            .with([(":at", text(at)), (":none", number(0))])
            .unless_refused()
            .await
            .map(drop)
    }

    /// Records that the last of `rung` destinations answered. False: it was recorded, another one rings, or the transfer is over.
    pub async fn note_transfer_answer(
        &self,
        organization: OrganizationId,
        call: &CallId,
        rung: usize,
        at: Timestamp,
    ) -> Result<bool> {
        let rung = i64::try_from(rung).unwrap_or(i64::MAX);
        self.update(organization, call, "SET #transfer.#answered_at = :at, #updated_at = :now")
            .when(
                "attribute_not_exists(#transfer.#outcome) \
                 AND attribute_not_exists(#transfer.#answered_at) AND size(#transfer.#rung) = :rung",
            )
            .with([(":at", text(at)), (":rung", number(rung))])
            .unless_refused()
            .await
    }

    pub async fn note_handoff(&self, organization: OrganizationId, call: &CallId, to: AgentId) -> Result<bool> {
        self.update(organization, call, "SET #handed_to = :agent, #updated_at = :now")
            .when("attribute_not_exists(#ended_at)")
            .with([(":agent", text(to))])
            .unless_refused()
            .await
    }

    /// Replaces the transfer. `rung`: how many destinations had been rung. False: it changed since, or is over.
    pub async fn note_transfer_progress(
        &self,
        organization: OrganizationId,
        call: &CallId,
        transfer: &ReturningTransfer,
        rung: usize,
    ) -> Result<bool> {
        let rung = i64::try_from(rung).unwrap_or(i64::MAX);
        self.update(organization, call, "SET #transfer = :transfer, #updated_at = :now")
            .when("#transfer.#at = :at AND attribute_not_exists(#transfer.#outcome) AND size(#transfer.#rung) = :rung")
            .with([(":transfer", to_attribute(transfer)?), (":at", text(transfer.at)), (":rung", number(rung))])
            .unless_refused()
            .await
    }
}
