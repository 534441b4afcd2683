//! What a run would send, without sending it.
//!
//! Each type shows the very request that its `run` builds and sends, so that the two cannot differ.

use serde_json::{Map, Value};

use super::{Action, Conversation, Services, ToolConfig};
use crate::{Result, models::OrganizationId};

/// The request a run would send, secrets masked, or the sentence a model would be told instead. The arguments have been
/// checked. Nothing is asked of anybody but our own tables.
///
/// # Errors
/// Only for an outage of our own.
pub async fn preview(
    config: &ToolConfig,
    services: &Services,
    organization: OrganizationId,
    conversation: &Conversation,
    arguments: &Map<String, Value>,
) -> Result<Result<Value, String>> {
    match &config.action {
        Action::ApiRequest(action) => Ok(action.preview(services, conversation, arguments)),
        Action::PipedreamAction(action) => Ok(action.preview(organization, conversation, arguments)),
        Action::Query(action) => Ok(action.preview(conversation, arguments)),
        Action::Sms(action) => action.preview(services, organization, conversation, arguments).await,
        Action::TransferCall(action) => Ok(action.preview(conversation, arguments)),
    }
}
