//! Puts an execution of an `async` tool on the queue of `run-tool`.

use futures_util::join;

use super::{ClaimedAhead, Executed, ExecutionRequest, Executor, unavailable};
use crate::{
    actions::ActionTool,
    clients::Queue,
    models::{AsyncResult, ExecutionStatus, Fault, Queued, QueuedExecution, Timestamp, Tool},
    tool::{CallContext, ToolOutcome},
};

impl Executor {
    /// `run-tool` claims the effect, so a claim made ahead is released.
    pub async fn enqueue(
        &self,
        queue: &Queue<Queued>,
        row: &Tool,
        tool: &ActionTool,
        request: ExecutionRequest<'_>,
        context: &CallContext<'_>,
        claim: Option<ClaimedAhead>,
    ) -> Executed {
        let checked = match tool.check(request.arguments) {
            Ok(checked) => checked,
            Err(sentence) => {
                let told = ToolOutcome::failed(sentence).at_fault(Fault::Model);
                return self.skip(tool, request, context, claim, told).await;
            }
        };
        let queued_at = Timestamp::now();
        let queued = Queued::Execution(Box::new(QueuedExecution {
            execution_id: request.id,
            organization_id: context.organization,
            tool_id: tool.id,
            call_id: context.call_id().cloned(),
            caller: context.conversation.caller.clone(),
            called: context.conversation.called.clone(),
            arguments: request.arguments.clone(),
            trigger: context.trigger,
            before_call: false,
            significant: Some(tool.significant(&checked.arguments, context.conversation)),
            tool_call_id: context.delivery.map(str::to_owned),
            sends_result_of: None,
            confirmed_after: request.confirmed_after,
            queued_at,
        }));
        let (sent, ()) = join!(queue.send(&queued), self.release(claim));
        let told = match sent {
            Ok(()) => {
                let told = if context.conversation.call.is_some() && row.async_result() != AsyncResult::None {
                    "It is being done in the background; its result will be told when it is there. Do not call it again \
                     for the same."
                } else {
                    "It is being done in the background; its result will not be shown. Do not call it again for the same."
                };
                ToolOutcome::succeeded(told).status(ExecutionStatus::Queued)
            }
            // If it is on the queue, its outcome takes the place of this in the history.
            Err(error) if error.effect_possible() => {
                let told = "It is not known whether it will be done; do not call it again for the same.";
                ToolOutcome::unknown(told).because(error).at_fault(Fault::Ours)
            }
            Err(error) => {
                context.subject.count_fault(context.trigger);
                unavailable().because(error)
            }
        };
        let request = ExecutionRequest { queued_at: Some(queued_at), ..request };
        self.skip(tool, request, context, None, told).await
    }
}
