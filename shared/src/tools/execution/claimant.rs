//! Whose effects and limits an execution counts among.

use serde_json::{Map, Value};

use crate::{
    actions::ActionTool,
    idempotency::Key,
    models::{ExecutionOrigin, Timestamp, ToolId, ToolType},
    tool::{CallContext, Subject},
};

/// The subject under which an effect is claimed and limited: the first of the calls that transfers connect. A transfer moves
/// the line of the present call, and lookups run again in each.
pub(super) fn claimant<'a>(tool: &ActionTool, context: &CallContext<'a>) -> Subject<'a> {
    let conversation = context.conversation;
    match (context.subject, &conversation.call) {
        (Subject::Call(_), Some(call)) if tool.spec.acts() && tool.action.kind() != ToolType::TransferCall => {
            Subject::Call(call.first_call())
        }
        (subject, _) => subject,
    }
}

pub(super) fn effect_key(tool: ToolId, subject: Subject<'_>, significant: Map<String, Value>) -> Key {
    let (kind, whose) = subject.parts();
    // Without the delivery's name: a model that repeats itself makes a new tool call of the same effect.
    Key::new(&["tool", &tool.to_string(), kind, &whose], &Value::Object(significant))
}

/// The unit of `per_call`: a call or an automation's run. Without a call id it is the caller's current hour, so that omitting the
/// id evades no limit. Test calls have no such limit.
pub(super) fn counted_for(tool: &ActionTool, context: &CallContext<'_>) -> Option<String> {
    match claimant(tool, context) {
        _ if context.trigger == ExecutionOrigin::Test => None,
        Subject::Call(call) => Some(call.to_string()),
        Subject::Run(run) | Subject::Action { run, .. } => Some(format!("run:{run}")),
        Subject::Turn { thread, .. } => Some(format!("thread:{thread}")),
        Subject::Caller(_) | Subject::Request(_) | Subject::Poll(_) => {
            let caller = context.conversation.caller.as_deref().unwrap_or_default();
            // Hashed, because the counter needs no phone number. Call ids contain no colon.
            let key = Key::new(&["caller", caller, &Timestamp::now().hour()], &Value::Null);
            Some(format!("caller:{}", key.as_str()))
        }
    }
}
