//! Tokens by which a voice platform shows for which agent, and in which call, it calls tools.
//!
//! `voice.<claims>.<tag>`: the claims are base64url JSON, and the tag signs them under the key of the tool tokens. An agent's
//! token names the agent. A call's token also has the call's facts, and expires. Neither is stored; both name the time at which
//! the agent's token was issued, which the agent's row has until the token is issued anew or revoked.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::ToolTokens;
use crate::{
    Error, Result,
    models::{Agent, AgentId, CallId, E164, OrganizationId, Slug, Timestamp},
};

const PREFIX: &str = "voice.";
/// Longer than any call.
const OF_A_CALL: Duration = Duration::from_secs(6 * 60 * 60);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoiceToken {
    pub organization_id: OrganizationId,
    pub agent_id: AgentId,
    slug: Slug,
    issued_at: Timestamp,
    /// `None` for the agent's token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallFacts>,
    /// Seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<i64>,
}

/// A call as the platform describes it.
#[declare::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallFacts {
    pub id: Option<CallId>,
    /// Not always a number.
    pub caller: Option<String>,
    pub called: Option<E164>,
}

impl VoiceToken {
    pub const fn of_agent(
        organization_id: OrganizationId,
        slug: Slug,
        agent_id: AgentId,
        issued_at: Timestamp,
    ) -> Self {
        Self { organization_id, agent_id, slug, issued_at, call: None, expires_at: None }
    }

    /// A token for the tools of one call.
    #[must_use]
    pub fn for_call(&self, call: CallFacts) -> Self {
        let expires_at = Timestamp::now().plus(OF_A_CALL).as_seconds();
        Self { call: Some(call), expires_at: Some(expires_at), ..self.clone() }
    }

    pub async fn signed(&self, tokens: &ToolTokens) -> Result<SecretString> {
        let claims = serde_json::to_vec(self).map_err(Error::internal)?;
        let claims = BASE64_URL_SAFE_NO_PAD.encode(claims);
        let tag = tokens.tag(&signed_text(&claims)).await?;
        Ok(SecretString::from(format!("{PREFIX}{claims}.{tag}")))
    }

    /// # Errors
    /// [`Error::Unauthenticated`] for any text but a valid token of this organization.
    pub async fn verified(tokens: &ToolTokens, slug: &Slug, shown: &str) -> Result<Self> {
        let (claims, tag) =
            shown.strip_prefix(PREFIX).and_then(|rest| rest.split_once('.')).ok_or(Error::Unauthenticated)?;
        if !tokens.has_tag(&signed_text(claims), tag).await? {
            return Err(Error::Unauthenticated);
        }
        let claims = BASE64_URL_SAFE_NO_PAD.decode(claims).ok();
        let token: Option<Self> = claims.and_then(|claims| serde_json::from_slice(&claims).ok());
        let is_valid =
            |token: &Self| token.slug == *slug && token.expires_at.is_none_or(|at| at > Timestamp::now().as_seconds());
        token.filter(is_valid).ok_or(Error::Unauthenticated)
    }

    /// Whether the agent's token was neither issued anew nor revoked since.
    pub fn is_in_force(&self, agent: &Agent) -> bool {
        agent.voice_token_at == Some(self.issued_at)
    }
}

/// Never equal to another text that the key signs.
fn signed_text(claims: &str) -> String {
    format!("voice token {claims}")
}
