//! Starting a run: the row and what it is asked, then a message to `run-loop`.
//!
//! The row is written first, so that a message never names a run that is not there. A run whose message the queue does not
//! take is ended as failed: nobody would ever carry it out.

use futures_util::join;
use shared::{
    Error, Result,
    automation::{NamedTool, RunRequest, RunView},
    catalogue::{Found, Gone, Resolved},
    error::Problems,
    http::{self, Reply, Request},
    idempotency::Key,
    injection::{FINAL_RESPONSE, system_prompt},
    models::{
        AutomationRun, KeyService, Member, OrganizationId, RunId, RunPrompt, RunStatus, RunTrigger, Spent, Timestamp,
        ToolRef, UserId,
    },
};

use crate::Deps;

/// Bytes of everything a run is asked, what the model is told of its tools included: well below what an item may have.
const LARGEST_PROMPT: usize = 300_000;

const NO_HOSTS: &str = "cannot be said of this tool, which goes to no address that a model chooses; leave it out";

/// A run that is named by the caller's key.
struct Keyed {
    id: RunId,
    /// Of the body.
    hash: String,
}

pub(crate) async fn start(deps: &Deps, request: &Request, member: Member) -> Result<Reply> {
    let organization = member.organization_id;
    let key = http::idempotency_key(request)?;
    let body = http::json_body(request)?;
    let keyed = key.map(|key| Keyed {
        id: RunId::of_key(organization, &key),
        hash: Key::new(&["run"], &body).as_str().to_owned(),
    });

    let mut problems = Problems::default();
    // Access has just read the organization's row.
    let on_own_key = deps.organizations.own_keys(organization).await?.get(KeyService::Llm).is_some();
    let ceilings = (!on_own_key).then_some(deps.ceilings);
    let (named, asked) = RunRequest::read(&body, &deps.catalogue.built_in, ceilings, &mut problems);
    let references: Vec<ToolRef> = named.iter().map(|named| named.tool.clone()).collect();
    let (earlier, resolved) = join!(
        earlier(deps, organization, keyed.as_ref()),
        deps.catalogue.resolve(organization, &references, http::deadline(request)),
    );
    if let (Some(earlier), Some(keyed)) = (earlier?, &keyed) {
        return again(deps, earlier, keyed).await;
    }
    let found = offer(deps, &named, resolved?, &mut problems)?;
    let prompt = asked.as_ref().map(|asked| RunPrompt {
        system_prompt: system_prompt(&asked.system_prompt, found.iter().map(Found::spec)),
        prompt: asked.prompt.clone(),
        schema: asked.schema.clone(),
        tools: found.iter().map(Found::offered).collect(),
    });
    if let Some(too_much) = prompt.as_ref().map(size).filter(|size| *size > LARGEST_PROMPT) {
        let problem = format!("make a prompt of {too_much} bytes, and at most {LARGEST_PROMPT} will do; offer fewer");
        problems.add("tools", problem);
    }
    let (asked, prompt) = problems.into_result(asked.zip(prompt))?;
    let run = row(deps, organization, member.user_id, keyed.as_ref(), asked);
    let created = deps.runs.create(&run, &prompt, &deps.budgets, on_own_key, http::deadline(request)).await;
    match (created, keyed) {
        (Ok(()), _) => Reply::accepted(&RunView::from(deps.queue.put(run).await?)),
        // The same request came twice at once.
        (Err(Error::Conflict(_)), Some(keyed)) => match earlier_of(deps, organization, &keyed).await? {
            Some(earlier) => again(deps, earlier, &keyed).await,
            None => Err(Error::Conflict("the Idempotency-Key was that of an old run; use another one".into())),
        },
        (Err(error), _) => Err(error),
    }
}

/// The tools that can be offered, each under a name of its own; notes which cannot be.
fn offer(deps: &Deps, named: &[NamedTool], resolved: Vec<Resolved>, problems: &mut Problems) -> Result<Vec<Found>> {
    let mut found: Vec<Found> = Vec::new();
    for (NamedTool { place, tool, allowed_hosts }, resolved) in named.iter().zip(resolved) {
        match resolved {
            Resolved::Here(found_tool) => {
                let is_taken = |name: &str| {
                    name == FINAL_RESPONSE
                        || deps.catalogue.built_in.has(name)
                        || found.iter().any(|other| other.spec().name == name)
                };
                match found_tool.with_free_name(is_taken).held_to(allowed_hosts) {
                    Some(held) => found.push(held),
                    None => problems.add(format!("{place}.allowed_hosts"), NO_HOSTS),
                }
            }
            Resolved::Gone(Gone::Unreadable) => {
                return Err(Error::Unreadable { row: "tool", key: tool.to_string() });
            }
            Resolved::Gone(Gone::NotFound) if matches!(tool, ToolRef::Service { .. }) => {
                problems.add(place, deps.catalogue.built_in.unknown());
            }
            Resolved::Gone(gone) => problems.add(place, gone.for_author()),
        }
    }
    Ok(found)
}

fn row(
    deps: &Deps,
    organization: OrganizationId,
    user: UserId,
    keyed: Option<&Keyed>,
    RunRequest { model, limits, .. }: RunRequest,
) -> AutomationRun {
    let now = Timestamp::now();
    AutomationRun {
        id: keyed.map_or_else(RunId::generate, |keyed| keyed.id),
        organization_id: organization,
        user_id: Some(user),
        trigger_type: RunTrigger::Manual,
        automation_id: None,
        automation_version: None,
        event_id: None,
        scheduled_for: None,
        dry_run: false,
        parent_run_id: None,
        waits_for_approval: None,
        waits_for_run: None,
        actions_executed: 0,
        actions_failed: 0,
        status: RunStatus::Queued,
        model,
        limits,
        spent: Spent::default(),
        attempts: 0,
        lease_until: None,
        resume_at: None,
        cancel_requested_at: None,
        error: None,
        request_hash: keyed.map(|keyed| keyed.hash.clone()),
        started_at: None,
        finished_at: None,
        created_at: now,
        updated_at: now,
        expires_at: now.plus(deps.history).as_seconds(),
    }
}

fn size(prompt: &RunPrompt) -> usize {
    prompt.system_prompt.len() + prompt.prompt.len() + prompt.schema.as_ref().map_or(0, String::len)
}

async fn earlier(deps: &Deps, organization: OrganizationId, keyed: Option<&Keyed>) -> Result<Option<AutomationRun>> {
    match keyed {
        Some(keyed) => earlier_of(deps, organization, keyed).await,
        None => Ok(None),
    }
}

async fn earlier_of(deps: &Deps, organization: OrganizationId, keyed: &Keyed) -> Result<Option<AutomationRun>> {
    match deps.runs.get(organization, keyed.id).await {
        Ok(run) => Ok(Some(run)),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Answers a repeated request with the run that it began, and sees to it that the run is on the queue if it waits: that it is
/// there twice does no harm.
async fn again(deps: &Deps, run: AutomationRun, keyed: &Keyed) -> Result<Reply> {
    if run.request_hash.as_ref() != Some(&keyed.hash) {
        let id = run.id;
        let problem = format!("the Idempotency-Key began the run {id} with another body; use another key for this one");
        return Err(Error::Conflict(problem));
    }
    Reply::ok(&RunView::from(deps.queue.put_again(run).await?))
}
