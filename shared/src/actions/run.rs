//! From an action and arguments to what came of it, or to the request that would be sent.

use serde_json::{Map, Value};

use super::{Action, query::Knowledge, variables};
use crate::{
    Result,
    accounts::Accounts,
    clients::{CallControl, Outbound, Pipedream, Secrets, Twilio, Vapi},
    models::ExecutionId,
    store::{Agents, PhoneNumbers},
    tool::{CallContext, RecipientOutcome, ToolOutcome},
};

/// What a model is given back at most, in bytes; VAPI warns of larger answers, and a model drowns in them.
const LONGEST_RESULT: usize = 8_000;

/// What actions act through.
#[derive(Clone)]
pub struct Services {
    pub agents: Agents,
    pub phone_numbers: PhoneNumbers,
    pub secrets: Secrets,
    pub twilio: Twilio,
    pub pipedream: Pipedream,
    /// Name or ARN of the Pipedream project's secret.
    pub pipedream_secret: String,
    pub vapi: Vapi,
    pub accounts: Accounts,
    pub call_control: CallControl,
    pub outbound: Outbound,
    pub knowledge: Knowledge,
}

/// One try of an execution.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    /// The execution's, the same in every delivery of it, and another once it was refused and is asked for again.
    pub id: ExecutionId,
    /// The recipients that are not to get it again, with what became of them.
    pub done: &'a Map<String, Value>,
}

/// Carries an action out. The arguments have been checked.
///
/// # Errors
/// Only for an outage of our own; what the tool or a vendor makes of it is in the outcome.
pub async fn run(
    action: &Action,
    services: &Services,
    context: &CallContext<'_>,
    arguments: &Map<String, Value>,
    attempt: Attempt<'_>,
) -> Result<ToolOutcome> {
    // What is fixed is none of the model's business, also where a service or we ourselves repeat it.
    let hidden = action.hidden_texts(context.conversation);
    let outcome = match action {
        Action::ApiRequest(action) => action.run(services, context, arguments, &hidden).await,
        Action::PipedreamAction(action) => action.run(services, context, arguments, &hidden).await,
        Action::Query(action) => action.run(services, context, arguments).await?,
        Action::Sms(action) => action.run(services, context, arguments, attempt.done).await?.hiding(&hidden),
        Action::TransferCall(action) => action.run(services, context, arguments).await?.hiding(&hidden),
        Action::ServiceRequest(action) => action.run(services, context, arguments, attempt, &hidden).await,
    };
    Ok(outcome.cut_to(LONGEST_RESULT))
}

/// What a model is told of some of the recipients, as it is told of all of them by [`run`].
pub fn told(action: &Action, context: &CallContext<'_>, recipients: Vec<RecipientOutcome>) -> ToolOutcome {
    ToolOutcome::of_recipients(recipients).hiding(&action.hidden_texts(context.conversation)).cut_to(LONGEST_RESULT)
}

/// The request that [`run`] would send, secrets masked, or the sentence a model would be told instead. The arguments have
/// been checked. Each type shows the very request that its `run` builds, so that the two cannot differ; only our own tables
/// are asked.
///
/// # Errors
/// Only for an outage of our own.
pub async fn preview(
    action: &Action,
    services: &Services,
    context: &CallContext<'_>,
    arguments: &Map<String, Value>,
) -> Result<Result<Value, String>> {
    let masked = action.masked();
    let request = match &masked {
        Action::ApiRequest(action) => action.preview(services, context, arguments),
        Action::PipedreamAction(action) => action.preview(context, arguments),
        Action::Query(action) => action.preview(context, arguments),
        Action::Sms(action) => action.preview(services, context, arguments).await?,
        Action::TransferCall(action) => action.preview(context, arguments),
        Action::ServiceRequest(action) => action.preview(services, arguments, "…"),
    };
    // Whoever tries a tool may see what is fixed in it, but no secrets.
    let conversation = context.conversation;
    let mut secrets = variables::named_secrets(&action.with_marked(action.static_config()), conversation);
    // A header that is nothing but a variable is no secret.
    for number in [conversation.caller_number(), conversation.called.clone()].iter().flatten() {
        secrets.remove(number.as_str());
    }
    Ok(request.map(|request| secrets.masked(request)))
}
