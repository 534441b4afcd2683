//! The token with which other voice platforms call an agent's tools.

use secrecy::ExposeSecret;
use serde::Serialize;
use shared::{
    Result,
    actions::voice_tokens::VoiceToken,
    described::Described,
    http::{Asked, Created, Deleted, Id, operation},
    models::{AgentId, Slug, Timestamp},
};

use crate::Deps;

/// An agent's token. It is not stored and not shown again.
#[derive(Serialize, Described)]
pub(crate) struct IssuedVoiceToken {
    /// The bearer of `/api/{slug}/voice/mcp` and of the agent's `/context`.
    token: String,
    issued_at: Timestamp,
}

/// Issue an agent's voice token
///
/// With it another voice platform, such as LiveKit, ElevenLabs or Retell, lists and calls the agent's tools over MCP. An
/// earlier token of the agent, and the tokens of its calls, no longer hold.
///
/// - 201: The token, which is shown this once.
#[operation(POST "/api/{slug}/agents/{id}/voice-token", Admin, resource(IssueVoiceToken))]
pub(crate) async fn issue_voice_token(
    deps: &Deps,
    asked: &Asked<'_>,
    slug: Slug,
    agent: Id<AgentId>,
) -> Result<Created<IssuedVoiceToken>> {
    let issued_at = Timestamp::now();
    deps.agents.set_voice_token(asked.organization(), agent.0, Some(issued_at)).await?;
    let token = VoiceToken::of_agent(asked.organization(), slug, agent.0, issued_at).signed(&deps.tokens).await?;
    Ok(Created(IssuedVoiceToken { token: token.expose_secret().to_owned(), issued_at }))
}

/// Revoke an agent's voice token
///
/// It holds no longer, and neither do the tokens of the agent's calls.
///
/// - 200: The agent has no token.
#[operation(DELETE "/api/{slug}/agents/{id}/voice-token", Admin, resource(RevokeVoiceToken))]
pub(crate) async fn revoke_voice_token(deps: &Deps, asked: &Asked<'_>, agent: Id<AgentId>) -> Result<Deleted> {
    deps.agents.set_voice_token(asked.organization(), agent.0, None).await?;
    Ok(Deleted)
}
