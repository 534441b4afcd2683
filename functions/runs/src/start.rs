//! Starts a run: the row with its prompt, then a message to `run-loop`.
//!
//! The row is written first, so that a message never names a missing run. If the queue does not take the message, the run fails
//! at once.

use futures_util::join;
use shared::{
    Error, Result,
    automation::{NewRun, RunRequest, RunView, named_tools},
    error::{Problems, found},
    http::{Asked, Begun, Repeated, Sent, operation},
    idempotency::Key,
    models::{AutomationRun, KeyService, OrganizationId, RunId, RunTrigger, Timestamp, ToolRef, UserId},
};

use crate::Deps;

/// A run with the caller's `Idempotency-Key`.
struct Keyed {
    id: RunId,
    /// Hash of the body.
    hash: String,
}

/// Start a run
///
/// A prompt is answered by a model that may call tools, until it gives a result that fits `schema`. The run goes on by
/// itself: ask for it by its id. It can call only the offered tools, each at its present version; a tool that is
/// changed or deleted meanwhile is not called. A tool whose `chat.least_role` is above the caller's role is refused. A call's
/// effect happens once in a run, however often the call is made.
///
/// With an `Idempotency-Key` the same key and body answer the same run for as long as it is kept, and start nothing; after a
/// 503 they try again.
///
/// - 202: The run waits to be taken up.
/// - 200: The run that the same request began before, as it is now.
///
/// ```json,prompt: A prompt and nothing else
/// {"prompt": "Name three names for a dental practice by the harbour."}
/// ```
/// ```json,extraction: A result of a certain form, without tools
/// {"prompt": "Which of these reviews ask for a call back? 1: Great service. 2: Please ring me about the bill.",
///  "system_prompt": "You sort what patients write to a dental practice.", "tools": [], "schema": {"type": "object",
///  "properties": {"reviews": {"type": "array", "items": {"type": "integer"}}}, "required": ["reviews"]},
///  "limits": {"iterations": 5, "cost": 0.1}}
/// ```
/// ```json,organization_tool: With a tool of the organization, by its id
/// {"prompt": "Send Ada a text message that her new brace is here.", "tools": ["0f1e2d3c-4b5a-4697-8788-99aabbccddee"],
///  "limits": {"calls": 1}}
/// ```
/// ```json,202
/// {"id": "0193aa11-4d5e-7f60-8a71-8294a1b2c3d4", "status": "queued", "trigger_type": "manual", "automation_id": null,
///  "automation_version": null, "event_id": null, "scheduled_for": null, "dry_run": false, "parent_run_id": null,
///  "retry_of": null, "retried_by": null,
///  "actions_executed": 0, "actions_failed": 0, "user_id": "auth0|5f7c8ec7c33c6c004bbafe82", "model": null,
///  "limits": {"iterations": 20, "calls_per_iteration": 10, "calls": 50, "tokens": 500000, "cost": 2.0,
///  "seconds": 900}, "spent": {"iterations": 0, "calls": 0, "prompt_tokens": 0, "completion_tokens": 0,
///  "cached_tokens": 0, "tokens": 0, "cost": 0.0}, "error": null, "waits_for": null, "cancel_requested_at": null,
///  "created_at": "2026-02-27T10:11:12.131Z", "started_at": null, "finished_at": null,
///  "updated_at": "2026-02-27T10:11:12.131Z", "duration_ms": null}
/// ```
#[operation(POST "/api/{slug}/runs", Member, also(409, 429 = OverBudget))]
pub(crate) async fn start_run(
    deps: &Deps,
    asked: &Asked<'_>,
    key: Repeated,
    body: Sent<NewRun>,
) -> Result<Begun<RunView>> {
    let (organization, by, deadline) = (asked.organization(), &asked.member.user_id, asked.deadline);
    let role = asked.member.role;
    let body = body.json()?;
    let keyed = key.0.map(|key| Keyed {
        id: RunId::of_key(organization, &key),
        hash: Key::new(&["run"], &body).as_str().to_owned(),
    });

    let mut problems = Problems::default();
    // Access has just read the organization's row.
    let on_own_key = deps.organizations.own_keys(organization).await?.get(KeyService::Llm).is_some();
    let ceilings = (!on_own_key).then_some(&deps.ceilings);
    let (named, asked) = RunRequest::read(&body, &deps.catalogue.built_in, ceilings, &mut problems);
    let references: Vec<ToolRef> = named.iter().map(|named| named.tool.clone()).collect();
    let (earlier, resolved) = join!(
        earlier(deps, organization, keyed.as_ref()),
        deps.catalogue.resolve(organization, &references, deadline),
    );
    if let (Some(earlier), Some(keyed)) = (earlier?, &keyed) {
        return again(deps, earlier, keyed).await;
    }
    let resolved = resolved?.into_iter().map(|tool| tool.and_then(|tool| tool.for_role(role))).collect();
    let found = named_tools(&deps.catalogue.built_in, &named, resolved, &mut problems)?;
    let prompt = asked.as_ref().map(|asked| asked.prompt_with(&found, &mut problems));
    let (asked, prompt) = problems.into_result(asked.zip(prompt))?;
    let run = row(deps, organization, by.clone(), keyed.as_ref(), asked);
    if keyed.is_none() {
        deps.queue.put_if_lost(organization, run.id).await?;
    }
    let created = deps.runs.create(&run, &prompt, &deps.budgets, on_own_key, deadline).await;
    match (created, keyed) {
        (Ok(()), _) => Ok(Begun::Now(RunView::from(deps.queue.put(run).await?))),
        // The same request came twice at once.
        (Err(Error::Conflict(_)), Some(keyed)) => match earlier_of(deps, organization, &keyed).await? {
            Some(earlier) => again(deps, earlier, &keyed).await,
            None => Err(Error::Conflict("the Idempotency-Key was that of an old run; use another one".into())),
        },
        (Err(error), _) => Err(error),
    }
}

fn row(
    deps: &Deps,
    organization: OrganizationId,
    user: UserId,
    keyed: Option<&Keyed>,
    RunRequest { model, limits, .. }: RunRequest,
) -> AutomationRun {
    let id = keyed.map_or_else(RunId::generate, |keyed| keyed.id);
    let kept_until = Timestamp::now().plus(deps.history).as_seconds();
    AutomationRun {
        user_id: Some(user),
        model,
        request_hash: keyed.map(|keyed| keyed.hash.clone()),
        ..AutomationRun::queued(id, organization, RunTrigger::Manual, limits, kept_until)
    }
}

async fn earlier(deps: &Deps, organization: OrganizationId, keyed: Option<&Keyed>) -> Result<Option<AutomationRun>> {
    match keyed {
        Some(keyed) => earlier_of(deps, organization, keyed).await,
        None => Ok(None),
    }
}

async fn earlier_of(deps: &Deps, organization: OrganizationId, keyed: &Keyed) -> Result<Option<AutomationRun>> {
    found(deps.runs.get(organization, keyed.id).await)
}

/// Answers a repeated request with its run, and queues a waiting run again; a duplicate message is harmless.
async fn again(deps: &Deps, run: AutomationRun, keyed: &Keyed) -> Result<Begun<RunView>> {
    if run.request_hash.as_ref() != Some(&keyed.hash) {
        let id = run.id;
        let problem = format!("the Idempotency-Key began the run {id} with another body; use another key for this one");
        return Err(Error::Conflict(problem));
    }
    Ok(Begun::Before(RunView::from(deps.queue.put_again(run).await?)))
}
