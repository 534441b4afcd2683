//! Letting in by the bearer of VAPI's credential, for tools whose own token VAPI does not send.
//!
//! The credential must be that of the tool's organization at its own VAPI account, if it has one, else the platform's.
//! So, other than with a token, two things are read before anything is known of the caller, and the same two whether
//! or not there is such a tool.

use shared::{
    Result,
    actions::token,
    clients::vapi::Account,
    error::found,
    models::{AuthenticatedTool, OrganizationId, ToolId},
};

use crate::Deps;

/// # Errors
/// [`Unauthenticated`](shared::Error::Unauthenticated) for any other bearer than that of the account that the tool is at.
pub(crate) async fn verify(deps: &Deps, id: ToolId, bearer: &str) -> Result<AuthenticatedTool> {
    // The platform's bearer may learn that there is no such tool.
    let owner = found(deps.tools.owner(id).await)?.unwrap_or_else(OrganizationId::generate);
    let fits = |account: &Account| token::check_bearer(account.webhook_bearer.as_ref(), bearer).is_ok();
    let account = deps.accounts.vapi_fitting(owner, fits).await?;
    token::verify_bearer(id, account.webhook_bearer.as_ref(), bearer)
}
