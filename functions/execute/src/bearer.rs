//! Letting in by the bearer of VAPI's credential, for tools whose own token VAPI does not send.
//!
//! Whose credential it must be depends on whose tool it is: the one that was set up at the organization's own VAPI account if
//! it has one, else the platform's. So, other than with a token, two things are read before anything is known of the caller,
//! and the same two whether or not there is such a tool.

use lambda_http::Request;
use shared::{
    Error, Result,
    models::{OrganizationId, ToolId, VerifiedTool},
    tools::token,
};

use crate::Deps;

/// The bearer of the request: of `Authorization`, else `X-Vapi-Secret`.
pub(crate) fn presented(request: &Request) -> Option<&str> {
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    let bearer = header("authorization")
        .and_then(|value| value.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")))
        .map(|(_, bearer)| bearer.trim());
    bearer.or_else(|| header("x-vapi-secret")).filter(|bearer| !bearer.is_empty())
}

/// # Errors
/// [`Error::Unauthenticated`] for any other bearer than that of the account that the tool is at.
pub(crate) async fn verify(deps: &Deps, id: ToolId, bearer: &str) -> Result<VerifiedTool> {
    let owner = match deps.tools.owner(id).await {
        Ok(owner) => owner,
        // Nobody's: the platform's bearer may learn that there is no such tool.
        Err(Error::NotFound(_)) => OrganizationId::generate(),
        Err(error) => return Err(error),
    };
    let account = deps.accounts.vapi_now(owner).await?;
    token::verify_bearer(id, account.webhook_bearer.as_ref(), bearer)
}
