//! A prompt with tools: the model's answers and our replies, until its final answer.

use std::time::Duration;

use futures_util::join;
use shared::{
    Error, Result,
    accounts::{LlmInUse, LlmModel},
    automation::{Definition, EffectQuota},
    error::found,
    injection::{Dialogue, Ended, Ending, FeedbackLoop, FinalFormat, is_repeatable},
    models::{AutomationQuotas, AutomationRun, Budget, ExecutionOrigin, Spent, WholeRun},
    tool::{CallContext, Conversation, Subject},
};

use crate::{
    deps::{Deps, Held},
    ending::ended_by,
    journal::{CostMeter, RunJournal, Stop, Withdrawal},
    verdict::ends_at,
};

/// The time to read the organization's budgets.
const USAGE_WITHIN: Duration = Duration::from_secs(10);

/// Returns the end of the steps, and the usage so far.
pub(crate) async fn take_steps(held: Held<'_>, whole: WholeRun) -> (Ended<Stop>, Spent) {
    let Held { deps, run, lease, deadline } = held;
    let organization = run.organization_id;
    let withdrawal = Withdrawal::new(&deps.automations, run);
    let ready = async {
        let prompt = whole.prompt.as_ref().ok_or_else(|| Error::internal("a run has no prompt"))?;
        let schema = prompt.schema.as_deref().map(serde_json::from_str).transpose().map_err(Error::internal)?;
        let format = FinalFormat::new(schema.as_ref())?;
        let mut toolbox =
            deps.catalogue.toolbox(organization, &prompt.tools, &deps.executor, run.dry_run, deadline).await?;
        if let Some(quota) = if run.dry_run { None } else { quota(deps, &whole).await? } {
            quota.limit(&mut toolbox);
        }
        withdrawal.limit(&mut toolbox);
        let (account, usage) =
            join!(deps.accounts.llm(organization), deps.budgets.usage(organization, deadline.at_most(USAGE_WITHIN)));
        let account = account?;
        let budget = Budget::of_cost(account.is_own());
        let usage = usage?.into_iter().find(|usage| usage.budget == budget);
        Ok::<_, Error>((format, toolbox, account, usage))
    };
    let (format, toolbox, account, usage) = match ready.await {
        Ok(ready) => ready,
        Err(error) => return (ended_by(run, error), run.spent),
    };
    let model = run.model.as_deref().filter(|model| !account.is_own() && *model != account.model());
    if let Some(problem) = model.and_then(|model| deps.ceilings.refused_model(model)) {
        return (Ended::Over(Ending::failed(format!("The run's model {problem}."))), run.spent);
    }
    // The organization may have had its own key, with higher limits, when it started the run.
    let limits = if account.is_own() { run.limits } else { run.limits.at_most(&deps.ceilings) };
    let run = &AutomationRun { limits, ..run.clone() };
    let mut dialogue = Dialogue::resume(whole, |name| is_repeatable(&toolbox, name));
    let in_use = LlmInUse { accounts: &deps.accounts, organization, account: &account };
    let feedback = FeedbackLoop {
        model: &LlmModel { llm: &deps.llm, account: in_use, model: run.model.as_deref() },
        toolbox: &toolbox,
        format: &format,
        limits: run.limits,
        ends_at: ends_at(run),
        context: CallContext {
            organization,
            user: run.user_id.as_ref(),
            subject: Subject::Run(run.id),
            automation: run.automation_id,
            delivery: None,
            conversation: &Conversation::default(),
            trigger: ExecutionOrigin::Automation,
            refused: None,
            deadline,
        },
        step_needs: deps.step_needs,
    };
    let meter = CostMeter { budgets: &deps.budgets, organization, on_own_key: account.is_own(), usage, uncounted: 0.0 };
    let ended = feedback
        .run(&mut dialogue, &mut RunJournal { runs: &deps.runs, withdrawal: &withdrawal, run, lease, meter })
        .await;
    (ended, *dialogue.spent())
}

/// The effect quota of an automation's run.
async fn quota(deps: &Deps, WholeRun { run, plan, .. }: &WholeRun) -> Result<Option<EffectQuota>> {
    let Some(automation) = run.automation_id else { return Ok(None) };
    // The quotas of the run's version, as for its actions.
    let version = match run.automation_version {
        Some(number) => found(deps.automations.version(run.organization_id, automation, number).await)?,
        None => None,
    };
    let limits = match version {
        Some(version) => Definition::stored(&version)?.quotas,
        None => AutomationQuotas::default(),
    };
    // An agent has no plan of its own. A called automation has one, and its own quota.
    let of = if plan.is_some() { EffectQuota::of_run } else { EffectQuota::of_agent };
    Ok(of(&deps.executor.quotas, run, limits))
}
