//! The comparison of an agent's words with the receipt of its call.

use super::{super::database::to_attribute, Calls};
use crate::{
    Result,
    models::{CallId, ClaimCheck, OrganizationId},
};

impl Calls {
    /// Claims the call for one check. False: it was checked before, or has no row.
    pub async fn begin_claim_check(
        &self,
        organization: OrganizationId,
        call: &CallId,
        check: &ClaimCheck,
    ) -> Result<bool> {
        self.update(organization, call, "SET #claim_check = :check, #updated_at = :now")
            .when("attribute_not_exists(#claim_check)")
            .with([(":check", to_attribute(check)?)])
            .unless_refused()
            .await
    }

    pub async fn note_claim_check(
        &self,
        organization: OrganizationId,
        call: &CallId,
        check: &ClaimCheck,
    ) -> Result<()> {
        self.update(organization, call, "SET #claim_check = :check, #updated_at = :now")
            .when("attribute_exists(#claim_check)")
            .with([(":check", to_attribute(check)?)])
            .unless_refused()
            .await
            .map(drop)
    }
}
