//! Starting a run: the row and what it is asked, then a message to `run-loop`.
//!
//! The row is written first, so that a message never names a run that is not there. A run whose message the queue does not
//! take is ended as failed: nobody would ever carry it out.

use futures_util::join;
use shared::{
    Error, Result,
    automation::{RunRequest, RunView, offer},
    error::Problems,
    http::{self, Reply, Request},
    idempotency::Key,
    models::{AutomationRun, KeyService, Member, OrganizationId, RunId, RunTrigger, Timestamp, ToolRef, UserId},
};

use crate::Deps;

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
    let found = offer(&deps.catalogue.built_in, &named, resolved?, &mut problems)?;
    let prompt = asked.as_ref().map(|asked| asked.prompt_with(&found, &mut problems));
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
