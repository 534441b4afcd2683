//! Quotas of effects, per run and per automation and day, consumed before the effect.

use std::sync::Arc;

use futures_util::{future::FutureExt, join};
use serde_json::{Map, Value};

use crate::{
    Deadline, Result,
    models::{AutomationId, AutomationQuotas, AutomationRun, ExecutionStatus, OrganizationId, RunId, ToolEffect},
    store::{Counted, Quotas, Room, Window},
    tool::{CallContext, CallableTool, Subject, ToolFuture, ToolOutcome, ToolSpec, Toolbox},
};

#[derive(Clone)]
pub struct EffectQuota {
    quotas: Quotas,
    organization: OrganizationId,
    automation: AutomationId,
    /// The run whose quota counts.
    run: RunId,
    limits: AutomationQuotas,
}

impl EffectQuota {
    /// The quota of a run, which its agents share. `None` for a prompt run without an automation.
    pub fn of_run(quotas: &Quotas, run: &AutomationRun, limits: AutomationQuotas) -> Option<Self> {
        Self::counted_for(run.id, quotas, run, limits)
    }

    /// The quota of an agent's run: that of the run which started the agent.
    pub fn of_agent(quotas: &Quotas, run: &AutomationRun, limits: AutomationQuotas) -> Option<Self> {
        Self::counted_for(run.parent_run_id.unwrap_or(run.id), quotas, run, limits)
    }

    fn counted_for(counted: RunId, quotas: &Quotas, run: &AutomationRun, limits: AutomationQuotas) -> Option<Self> {
        Some(Self {
            quotas: quotas.clone(),
            organization: run.organization_id,
            automation: run.automation_id?,
            run: counted,
            limits,
        })
    }

    /// Consumes quota for one effect, once per `name`. Returns the reason, a sentence, if the quota is used up.
    ///
    /// # Errors
    /// If the quota is unknown; the effect must not happen.
    pub async fn take(&self, effect: ToolEffect, name: Option<&str>, deadline: Deadline) -> Result<Option<String>> {
        let (organization, automation) = (self.organization, self.automation);
        let run = format!("run:{}", self.run);
        let AutomationQuotas { effects_per_run, messages_per_day, .. } = self.limits;
        let of_run = [(Counted::Effects(automation), Window::Run(&run), effects_per_run)];
        let of_day = [(Counted::Messages(automation), Window::Day, messages_per_day)];
        // Two requests in parallel rather than one transaction: all runs of a day write the same counter item.
        let messages = async {
            if effect.is_message() {
                self.quotas.take_each(organization, &of_day, name, deadline).await
            } else {
                Ok(Room::free())
            }
        };
        let (effects, messages) = join!(self.quotas.take_each(organization, &of_run, name, deadline), messages);
        match (effects?, messages?) {
            (Room::Taken(_), Room::Taken(_)) => Ok(None),
            (Room::Taken(effects), Room::None(_)) => {
                self.quotas.release(effects).await?;
                Ok(Some(format!(
                    "It was not sent: the automation has reached its limit of {messages_per_day} messages a day (quotas.messages_per_day)."
                )))
            }
            (Room::None(_), messages) => {
                if let Room::Taken(messages) = messages {
                    self.quotas.release(messages).await?;
                }
                Ok(Some(format!(
                    "It was not done: the run has reached its limit of {effects_per_run} changes (quotas.effects_per_run)."
                )))
            }
        }
    }

    /// Wraps every tool with an effect so that it consumes quota before it runs.
    pub fn limit(&self, toolbox: &mut Toolbox) {
        toolbox.wrap_each(|tool| {
            if !tool.spec().acts() {
                return tool;
            }
            Arc::new(Limited { tool, quota: self.clone() })
        });
    }
}

struct Limited {
    tool: Arc<dyn CallableTool>,
    quota: EffectQuota,
}

impl CallableTool for Limited {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    fn inner(&self) -> Option<&dyn CallableTool> {
        Some(&*self.tool)
    }

    fn call<'a>(&'a self, arguments: Map<String, Value>, context: &'a CallContext<'a>) -> ToolFuture<'a> {
        async move {
            // Names need the run's id: a call has the same delivery number in every run, and all runs of a day share one counter.
            let run = match context.subject {
                Subject::Run(run) | Subject::Action { run, .. } => run,
                _ => self.quota.run,
            };
            let name = context.delivery.map(|delivery| format!("{run} {delivery}"));
            match self.quota.take(self.spec().effect, name.as_deref(), context.deadline).await? {
                Some(why) if self.tool.knows_deliveries() => {
                    self.tool.call(arguments, &CallContext { refused: Some(&why), ..*context }).await
                }
                Some(why) => Ok(ToolOutcome::failed(why).status(ExecutionStatus::Limited)),
                None => self.tool.call(arguments, context).await,
            }
        }
        .boxed()
    }
}
