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
    let request = match &config.action {
        Action::ApiRequest(action) => action.preview(services, conversation, arguments),
        Action::PipedreamAction(action) => action.preview(organization, conversation, arguments),
        Action::Query(action) => action.preview(conversation, arguments),
        Action::Sms(action) => action.preview(services, organization, conversation, arguments).await?,
        Action::TransferCall(action) => action.preview(conversation, arguments),
    };
    let mut secrets = conversation.secrets(&config.static_config());
    // A header that is nothing but a variable is no secret.
    let called = conversation.called.as_ref().map(ToString::to_string);
    for number in [&conversation.caller, &called].into_iter().flatten() {
        secrets.remove(number);
    }
    Ok(request.map(|request| secrets.masked(request)))
}
