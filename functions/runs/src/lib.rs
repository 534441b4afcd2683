//! Runs: started, shown, cancelled, deleted; `run-loop` executes them.

mod retry;
mod start;

use std::time::Duration;

use shared::{
    Error, Result,
    automation::{
        LARGEST_RUN_VIEW, RunQueue, RunStarter, RunView, WholeRunView, end_pending_work, report_end, whole_run_view,
    },
    catalogue::Catalogue,
    http::{Access, Asked, DryRun, Gone, Id, Newest, Shown, Wanted, YesNo, operation},
    models::{AutomationId, RunCeilings, RunId, RunStatus},
    platform::Parts,
    store::{Approvals, AutomationRuns, Automations, Budgets, Erasure, Organizations, Page, RunFilter},
};

shared::routes!(Deps, "automations": start::start_run, list_runs, get_run, delete_run, cancel_run, retry::retry_run);

#[derive(Parts)]
pub struct Deps {
    pub access: Access,
    pub runs: AutomationRuns,
    #[part(platform.catalogue_to_offer()?)]
    pub catalogue: Catalogue,
    pub queue: RunQueue,
    pub automations: Automations,
    pub starter: RunStarter,
    pub organizations: Organizations,
    pub budgets: Budgets,
    pub erasure: Erasure,
    pub approvals: Approvals,
    /// Ceilings of a run on the platform's key.
    pub ceilings: RunCeilings,
    /// How long a run is kept.
    #[part(platform.history()?)]
    pub history: Duration,
}

/// List runs
///
/// Newest first, without prompts and answers. `failed`: only runs that failed, partly failed, or ended at a limit.
///
/// - 200: A page of runs.
#[operation(GET "/api/{slug}/runs", Viewer)]
async fn list_runs(
    deps: &Deps,
    asked: &Asked<'_>,
    created: Newest,
    status: Wanted<RunStatus>,
    automation: Wanted<AutomationId>,
    failed: Wanted<YesNo>,
    dry_run: Wanted<DryRun>,
) -> Result<Page<RunView>> {
    let wanted = RunFilter {
        automation: automation.0,
        status: status.0,
        failed: failed.0.is_some_and(|YesNo(failed)| failed),
        dry_run: dry_run.0.map(|DryRun(dry_run)| dry_run),
    };
    let page = deps.runs.page(asked.organization(), &created.0, &wanted).await?;
    Ok(page.map(RunView::from))
}

/// A run, step by step
///
/// For each action it shows the tool's arguments and output, or the reason why it was not called, by clause of its
/// condition. Prompts and answers are redacted like the history: phone numbers, e-mail addresses, credentials, and the
/// fields that its tools' `redact` names, wherever their values appear again. If a tool names such fields, answers
/// with calls are hidden, because the calls are listed separately; so are replies about unreadable calls. Of each text
/// of a step 4 KB are kept, fewer if there are very many; a text that was cut ends with `… (cut: the first 4096 of
/// 9000 bytes)`. `result` was requested by the organization, and is shown unchanged.
///
/// - 200: The run.
///
/// ```json,200
/// {"id": "0193aa11-4d5e-7f60-8a71-8294a1b2c3d4", "status": "completed", "trigger_type": "manual",
///  "automation_id": null, "automation_version": null, "event_id": null, "scheduled_for": null, "dry_run": false,
///  "parent_run_id": null, "retry_of": null, "retried_by": null, "actions_executed": 0, "actions_failed": 0, "user_id": "auth0|5f7c8ec7c33c6c004bbafe82",
///  "model": null, "limits": {"iterations": 20, "calls_per_iteration": 10, "calls": 50, "tokens": 500000, "cost": 2.0,
///  "seconds": 900}, "spent": {"iterations": 2, "calls": 1, "prompt_tokens": 2950, "completion_tokens": 61,
///  "cached_tokens": 1024, "tokens": 3011, "cost": 0.0021}, "error": null, "waits_for": null,
///  "cancel_requested_at": null, "created_at": "2026-02-27T10:11:12.131Z", "started_at": "2026-02-27T10:11:12.310Z",
///  "finished_at": "2026-02-27T10:11:17.042Z", "updated_at": "2026-02-27T10:11:17.042Z", "duration_ms": 4732,
///  "prompt": "Which city is the practice of example.com in?",
///  "system_prompt": "# Tools… (cut: the first 7 of 21000 bytes)", "tools": [{"name": "wget", "tool_id": null,
///  "version": null, "fingerprint": null, "allowed_hosts": []}], "schema": {"type": "object",
///  "properties": {"city": {"type": "string"}}, "required": ["city"]}, "result": {"city": "Porto"},
///  "steps": [{"step": 1, "phase": "tools",
///  "answer": "````tool\nreturn wget(\"https://example.com\");\nreturn finalResponse();\n````",
///  "model": "openai/gpt-4o-mini", "cut": false, "prompt_tokens": 1420, "completion_tokens": 41, "cached_tokens": 0,
///  "cost": 0.0011, "started_at": "2026-02-27T10:11:12.402Z", "duration_ms": 2210, "calls": [{"name": "wget",
///  "arguments": {"uri": "https://example.com"}, "outcome": "succeeded",
///  "result": "Harbour Dental, Porto. Call us: [number]", "duration_ms": 180}], "calls_left_out": 0,
///  "reply": "<result call=\"1\" tool=\"wget\">\n…\n</result>\n\n…"}, {"step": 2, "phase": "final",
///  "answer": "{\"city\": \"Porto\"}", "model": "openai/gpt-4o-mini", "cut": false, "prompt_tokens": 1530,
///  "completion_tokens": 20, "cached_tokens": 1024, "cost": 0.001, "started_at": "2026-02-27T10:11:14.900Z",
///  "duration_ms": 2090, "calls": [], "calls_left_out": 0, "reply": null}], "trigger_data": null, "actions": []}
/// ```
#[operation(GET "/api/{slug}/runs/{id}", Viewer)]
async fn get_run(deps: &Deps, asked: &Asked<'_>, id: Id<RunId>) -> Result<Shown<WholeRunView>> {
    let whole = deps.runs.whole(asked.organization(), id.0).await?;
    whole_run_view(whole, LARGEST_RUN_VIEW).map(Shown)
}

/// Delete a run
///
/// Deletes a run with its steps and the executions of tools in it. A run that is not over is a 409: cancel it first.
///
/// - 204: It is gone.
#[operation(DELETE "/api/{slug}/runs/{id}", Admin, also(409), tag("privacy"))]
async fn delete_run(deps: &Deps, asked: &Asked<'_>, id: Id<RunId>) -> Result<Gone> {
    deps.erasure.run(asked.organization(), id.0, asked.deadline).await?;
    tracing::info!(run.id = %id.0, "a run was deleted");
    Ok(Gone)
}

/// Cancel a run
///
/// A run that waits is over at once. A running one ends with its next step: it is shown as `running`, with
/// `cancel_requested_at`, until then. A run that is over is a conflict.
///
/// - 200: The run as it is now.
#[operation(POST "/api/{slug}/runs/{id}/cancel", Member, also(409))]
async fn cancel_run(deps: &Deps, asked: &Asked<'_>, id: Id<RunId>) -> Result<Shown<RunView>> {
    let (organization, by) = (asked.organization(), Some(&asked.member.user_id));
    let run = match deps.runs.cancel(organization, id.0, by).await {
        Ok(run) => run,
        Err(conflict @ Error::Conflict(_)) => {
            // An earlier cancellation may have left work open.
            let run = deps.runs.get(organization, id.0).await?;
            if run.status == RunStatus::Cancelled {
                end_pending_work(&deps.runs, &deps.approvals, &run, by).await?;
            }
            return Err(conflict);
        }
        Err(error) => return Err(error),
    };
    end_pending_work(&deps.runs, &deps.approvals, &run, by).await?;
    if run.status.is_over() {
        report_end(&run, run.status);
        if let Some(parent) = run.parent_run_id {
            deps.queue.wake(organization, parent).await?;
        }
    }
    Ok(Shown(RunView::from(run)))
}
