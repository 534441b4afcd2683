//! Automations: validated, saved, activated. `docs/automations.md` is the reference of a definition.
//!
//! - POST /api/{slug}/automations, a definition: saves it as `pending_review`, version 1; 201. The same content again is the same
//!   automation; 200. With `"dry_run": true` it is only validated; 200.
//! - GET /api/{slug}/automations?status=&limit=&cursor=: newest first, as `{items, next_cursor}`.
//! - GET /api/{slug}/automations/{id}: with the definition of its newest version, when it runs next, and the header `ETag`.
//! - PUT /api/{slug}/automations/{id}, a definition, with `If-Match`: saves it as the next version, which runs only once it is
//!   activated. Content that a version has already is that version.
//! - GET …/{id}/versions?limit=&cursor=, …/{id}/versions/{version}, …/{id}/diff?from=&to= (`versions.rs`).
//! - POST …/{id}/activate and …/{id}/rollback `{"version", "content_hash"?}`: checks everything that the version uses again and makes it the one
//!   that runs. POST …/{id}/pause.
//! - DELETE …/{id}: with all its versions.
//! - POST …/{id}/run `{"trigger_data"?, "version"?, "dry_run"?}`: starts a run by hand; 202 with its row. GET …/{id}/runs?limit=&cursor=
//!   (`manual_run.rs`).
//! - POST /api/{slug}/events/{id}/replay `{"automation_id"?, "dry_run"?}`: gives a stored event to automations once more (`replay.rs`).
//! - GET /api/{slug}/approvals?status=&limit=&cursor=, GET …/{id}, POST …/{id}/approve, POST …/{id}/refuse `{"reason"}`: what runs ask
//!   people (`approvals.rs`).
//!
//! Whatever validates answers `{"result", "diagnostics", "truncated", "automation"?}`, with 422 if something was to be saved or
//! activated and was not; with `Accept: text/plain` the same as text.

mod approvals;
mod manual_run;
mod replay;
mod versions;

use lambda_http::RequestExt;
use shared::{
    Deadline, Error, Platform, Result,
    automation::{AutomationReader, Deployed, Deployment, Outcome, RunStarter, SeenVersion, Triggers},
    error::Problems,
    fields::Fields,
    http::{self, Access, Reply, Request},
    models::{ApprovalStatus, AutomationId, AutomationStatus, NotAnAutomationStatus, OrganizationId},
    platform,
    store::{Approvals, Events},
};

/// Of a `content_hash`, in characters.
const LONGEST_HASH: usize = 64;

pub struct Deps {
    pub access: Access,
    pub deployment: Deployment,
    pub triggers: Triggers,
    pub reader: AutomationReader,
    pub starter: RunStarter,
    pub approvals: Approvals,
    pub events: Events,
}

impl Deps {
    pub fn new(platform: &Platform) -> platform::Result<Self> {
        Ok(Self {
            access: platform.access()?,
            deployment: platform.deployment()?,
            triggers: platform.triggers()?,
            reader: platform.automation_reader()?,
            starter: platform.run_starter()?,
            approvals: Approvals::new(platform.database()?),
            events: Events::new(platform.database()?),
        })
    }
}

pub async fn handle(deps: &Deps, request: Request) -> Result<Reply> {
    let member = deps.access.member(&request).await?;
    let (organization, deadline) = (member.organization_id, http::deadline(&request));
    let deployment = &deps.deployment;
    match http::route(&request)[..] {
        ["POST", "api", _, "automations"] => {
            let deployed = match refused_unread(&request) {
                Some(refused) => refused,
                None => Box::pin(deployment.deploy(&member, &http::json_body(&request)?, deadline)).await?,
            };
            answer(&request, &deployed)
        }
        ["GET", "api", _, "automations"] => Box::pin(list(deps, &request, organization)).await,
        ["GET", "api", _, "automations", id] => show(deps, organization, automation(id)?, deadline).await,
        ["PUT", "api", _, "automations", id] => {
            let (id, revision) = (automation(id)?, if_match(&request)?);
            // Whose it is comes before what is wrong with the request.
            let before = deployment.automations.get(organization, id).await?;
            if request.headers().get("if-match").is_none() {
                return Err(Error::invalid("If-Match", "is required: the ETag of the automation that was read"));
            }
            let revision = revision.unwrap_or(before.revision);
            let deployed = match refused_unread(&request) {
                Some(refused) => refused,
                None => {
                    Box::pin(deployment.update(&member, id, revision, &http::json_body(&request)?, deadline)).await?
                }
            };
            answer(&request, &deployed)
        }
        ["DELETE", "api", _, "automations", id] => {
            let id = automation(id)?;
            let delete = deployment.automations.delete(organization, id, if_match(&request)?, deadline);
            Box::pin(deps.triggers.change(organization, id, deadline, delete)).await?;
            tracing::info!(automation.id = %id, "an automation was deleted");
            Ok(Reply::no_content())
        }
        ["GET", "api", _, "automations", id, "versions"] => {
            Box::pin(versions::list(deps, &request, organization, automation(id)?)).await
        }
        ["GET", "api", _, "automations", id, "versions", version] => {
            versions::show(deps, organization, automation(id)?, http::id(version, "version")?).await
        }
        ["GET", "api", _, "automations", id, "diff"] => {
            Box::pin(versions::diff(deps, &request, organization, automation(id)?)).await
        }
        ["POST", "api", _, "automations", id, "activate"] => {
            let (id, revision) = (known(deps, organization, id).await?, if_match(&request)?);
            let version = version_of_body(&request)?;
            let activate = deployment.activate(&member, id, &version, revision, deadline);
            let deployed = Box::pin(deps.triggers.change(organization, id, deadline, activate)).await?;
            answer(&request, &unless_paused(deps, organization, id, deployed).await?)
        }
        ["POST", "api", _, "automations", id, "rollback"] => {
            let (id, revision) = (known(deps, organization, id).await?, if_match(&request)?);
            let version = version_of_body(&request)?;
            let roll_back = deployment.roll_back(&member, id, &version, revision, deadline);
            let deployed = Box::pin(deps.triggers.change(organization, id, deadline, roll_back)).await?;
            answer(&request, &unless_paused(deps, organization, id, deployed).await?)
        }
        ["POST", "api", _, "automations", id, "pause"] => {
            let (id, revision) = (automation(id)?, if_match(&request)?);
            let pause = deployment.pause(&member, id, revision);
            let paused = Box::pin(deps.triggers.change(organization, id, deadline, pause)).await?;
            Ok(Reply::ok(&paused)?.with_headers([etag(paused.revision)]))
        }
        ["POST", "api", _, "automations", id, "run"] => {
            let automations = &deployment.automations;
            Box::pin(manual_run::start(automations, &deps.starter, &request, &member, automation(id)?)).await
        }
        ["GET", "api", _, "automations", id, "runs"] => {
            let automations = &deployment.automations;
            Box::pin(manual_run::list(automations, &deps.starter, &request, organization, automation(id)?)).await
        }
        ["POST", "api", _, "events", id, "replay"] => {
            let stores = (&deps.events, &deployment.automations, &deps.starter);
            Box::pin(replay::replay(stores, &request, &member, http::id(id, "event")?)).await
        }
        ["GET", "api", _, "approvals"] => Box::pin(approvals::list(deps, &request, &member)).await,
        ["GET", "api", _, "approvals", id] => approvals::show(deps, &member, http::id(id, "approval")?).await,
        ["POST", "api", _, "approvals", id, "approve"] => {
            let id = http::id(id, "approval")?;
            Box::pin(approvals::decide(deps, &request, &member, id, ApprovalStatus::Approved)).await
        }
        ["POST", "api", _, "approvals", id, "refuse"] => {
            let id = http::id(id, "approval")?;
            Box::pin(approvals::decide(deps, &request, &member, id, ApprovalStatus::Refused)).await
        }
        _ => Err(Error::NotFound("route")),
    }
}

/// What is said of a body that is not to be read at all.
fn refused_unread(request: &Request) -> Option<Deployed> {
    let body = http::body(request);
    Deployment::refuse_size(body.len()).or_else(|| Deployment::refuse_duplicates(body))
}

fn automation(segment: &str) -> Result<AutomationId> {
    http::id(segment, "automation")
}

/// The id of an automation that there is: that it is somebody else's is said before anything of the request.
async fn known(deps: &Deps, organization: OrganizationId, segment: &str) -> Result<AutomationId> {
    let id = automation(segment)?;
    deps.deployment.automations.get(organization, id).await.map(|automation| automation.id)
}

/// What became of a request to save or to activate, with the status that says so.
fn answer(request: &Request, deployed: &Deployed) -> Result<Reply> {
    let refused = deployed.report.result == Outcome::Failed && !deployed.dry_run;
    let created = deployed.created && http::route(request).as_slice().len() == 4;
    let status = match (refused, created) {
        (true, _) => 422,
        (false, true) => 201,
        (false, false) => 200,
    };
    let reply = match http::accepted_text(request) {
        Some(content_type) => Reply::of(status, content_type, deployed.to_text().into_bytes()),
        None => Reply::of(status, "application/json", serde_json::to_vec(deployed).map_err(Error::internal)?),
    };
    Ok(reply.with_headers(deployed.automation.as_ref().map(|automation| etag(automation.revision))))
}

fn etag(revision: u64) -> (&'static str, String) {
    ("etag", format!("\"{revision}\""))
}

/// The revision that the caller has read: `If-Match: "3"`. `*` is whichever it is.
fn if_match(request: &Request) -> Result<Option<u64>> {
    let Some(value) = request.headers().get("if-match") else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    if text == "*" {
        return Ok(None);
    }
    let number = text.strip_prefix("W/").unwrap_or(text).trim_matches('"').parse();
    let revision = number.map_err(|_not_a_number| Error::invalid("If-Match", "must be the ETag of the automation"))?;
    Ok(Some(revision))
}

/// `{"version": 2, "content_hash"?}`: exactly what was seen.
fn version_of_body(request: &Request) -> Result<SeenVersion> {
    let body = http::json_body(request)?;
    let mut problems = Problems::default();
    let version = Fields::of(&body, "", &mut problems).and_then(|mut fields| {
        let version = fields.required("version").and_then(|_| fields.whole("version", 1..=u32::MAX));
        let content_hash = fields.text("content_hash", LONGEST_HASH);
        fields.finish();
        Some(SeenVersion { version: version?.into(), content_hash })
    });
    problems.into_result(version)
}

/// What was made to run, unless what would start it was refused meanwhile: that pauses the automation again, with the reason.
async fn unless_paused(
    deps: &Deps,
    organization: OrganizationId,
    id: AutomationId,
    deployed: Deployed,
) -> Result<Deployed> {
    if deployed.automation.as_ref().is_none_or(|automation| automation.status != AutomationStatus::Active) {
        return Ok(deployed);
    }
    let now = deps.deployment.automations.get(organization, id).await?;
    match (now.status, now.pause_reason) {
        (AutomationStatus::Paused, Some(reason)) => Err(Error::Conflict(reason)),
        _ => Ok(deployed),
    }
}

async fn list(deps: &Deps, request: &Request, organization: OrganizationId) -> Result<Reply> {
    let (limit, after) = http::page(request)?;
    let query = request.query_string_parameters();
    let status = query.first("status").filter(|text| !text.is_empty()).map(str::parse::<AutomationStatus>).transpose();
    let status = status.map_err(|error: NotAnAutomationStatus| Error::invalid("status", error.to_string()))?;
    Reply::ok(&deps.deployment.automations.page(organization, status, after.as_ref(), limit).await?)
}

async fn show(deps: &Deps, organization: OrganizationId, id: AutomationId, deadline: Deadline) -> Result<Reply> {
    let view = deps.reader.show(organization, id, deadline).await?;
    let revision = view.automation.revision;
    Ok(Reply::ok(&view)?.with_headers([etag(revision)]))
}
