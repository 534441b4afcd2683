//! Automations: validated, saved, activated. `docs/automations.md` is the reference of a definition.
//!
//! Every validating route answers `{"result", "diagnostics", "truncated", "automation"?}`, with 422 if nothing was saved or
//! activated because of errors; with `Accept: text/plain` the same as text.

mod manual_run;
mod memory;
mod versions;

use serde::Serialize;
use shared::{
    Error, Result,
    automation::{
        AutomationReader, AutomationView, CheckResult, Deployed, Deployment, RunStarter, SeenVersion, Switch, Triggers,
    },
    declared::{Body, Text, Whole},
    described::{Described, Schemas, json, reference},
    http::{
        self, Access, Answers, Asked, Found, Gone, Id, Operation, Paged, Part, Reply, Request, Sent, Wanted, operation,
    },
    models::{Automation, AutomationId, AutomationStatus, OrganizationId},
    platform::Parts,
    store::{AutomationMemory, Page},
};

shared::routes!(
    Deps,
    "automations": deploy_automation,
    list_automations,
    get_automation,
    update_automation,
    delete_automation,
    versions::list_automation_versions,
    versions::get_automation_version,
    versions::diff_automation_versions,
    activate_automation,
    pause_automation,
    roll_back_automation,
    manual_run::run_automation,
    manual_run::list_automation_runs,
    memory::list_automation_memory,
    memory::forget_automation_memory,
);

/// Characters of a `content_hash`.
const LONGEST_HASH: usize = 64;

#[derive(Parts)]
pub struct Deps {
    pub access: Access,
    pub deployment: Deployment,
    pub triggers: Triggers,
    pub reader: AutomationReader,
    pub starter: RunStarter,
    pub memory: AutomationMemory,
}

/// The definition of an automation.
struct Definition;

shared::described!(Definition => {"$ref": "#/components/schemas/AutomationDefinition"});

/// Exactly the reviewed content.
#[derive(Body)]
struct ChosenVersion {
    version: Whole<1, { u32::MAX }>,
    /// That of the version as it was seen; another one is a 409.
    content_hash: Option<Text<LONGEST_HASH>>,
}

/// Validate and save an automation
///
/// Everything that is wrong with the definition is told at once ([reference](automations.md)). The same content again is the
/// same automation. With `dry_run` it is only validated.
///
/// - 201: Saved; it waits to be activated.
/// - 200: Validated only, or saved before with the same content.
///
/// ```json,prompt
/// {"name": "Morning digest", "trigger_type": "manual", "prompt": "Sum up {{trigger_data.text}}.", "tools": []}
/// ```
#[operation(POST "/api/{slug}/automations", Member, resource(Deploy))]
async fn deploy_automation(deps: &Deps, asked: &Asked<'_>, body: Sent<Definition>) -> Result<Verdict<true>> {
    let deployed = match refused_unread(asked.request) {
        Some(refused) => refused,
        None => deps.deployment.deploy(&asked.member, &body.json()?, asked.deadline).await?,
    };
    Ok(Verdict::of(asked, deployed))
}

/// List the organization's automations
///
/// Newest first. With `status` a page may be shorter than asked for and go on all the same.
///
/// - 200: A page of automations.
#[operation(GET "/api/{slug}/automations", Viewer)]
async fn list_automations(
    deps: &Deps,
    asked: &Asked<'_>,
    page: Paged,
    status: Wanted<AutomationStatus>,
) -> Result<Page<Automation>> {
    deps.deployment.automations.page(asked.organization(), status.0, page.cursor.as_ref(), page.limit).await
}

/// An automation with its newest definition
///
/// - 200: The automation. Send its `ETag` as `If-Match`.
#[operation(GET "/api/{slug}/automations/{id}", Viewer, resource(ShowAutomation))]
async fn get_automation(deps: &Deps, asked: &Asked<'_>, id: Id<AutomationId>) -> Result<Tagged<AutomationView>> {
    let view = deps.reader.show(asked.organization(), id.0, asked.deadline).await?;
    let revision = view.automation.revision;
    Ok(Tagged(view, revision))
}

/// Save the next version
///
/// The active version stays active. Content that a version has already is that version.
///
/// - 200: Saved, or saved before.
#[operation(PUT "/api/{slug}/automations/{id}", Member, also(409))]
async fn update_automation(
    deps: &Deps,
    asked: &Asked<'_>,
    id: Id<AutomationId>,
    seen: IfMatch,
    body: Sent<Definition>,
) -> Result<Verdict<false>> {
    let deployment = &deps.deployment;
    // The owner is checked before the request.
    let before = deployment.automations.get(asked.organization(), id.0).await?;
    if !seen.is_sent {
        return Err(Error::invalid("If-Match", "is required: the ETag of the automation that was read"));
    }
    let revision = seen.revision.unwrap_or(before.revision);
    let deployed = match refused_unread(asked.request) {
        Some(refused) => refused,
        None => deployment.update(&asked.member, id.0, revision, &body.json()?, asked.deadline).await?,
    };
    Ok(Verdict::of(asked, deployed))
}

/// Delete an automation and all its versions
///
/// - 204: The automation and its versions are gone.
#[operation(DELETE "/api/{slug}/automations/{id}", Admin, also(409))]
async fn delete_automation(deps: &Deps, asked: &Asked<'_>, id: Id<AutomationId>, seen: IfMatch) -> Result<Gone> {
    let (organization, deadline) = (asked.organization(), asked.deadline);
    let delete = deps.deployment.automations.delete(organization, id.0, seen.revision, deadline);
    deps.triggers.change(organization, id.0, deadline, delete).await?;
    tracing::info!(automation.id = %id.0, "an automation was deleted");
    Ok(Gone)
}

/// Make a version run
///
/// Everything that exactly this version uses is checked again first.
///
/// - 200: It runs from now on, or would if the automation were not paused.
#[operation(POST "/api/{slug}/automations/{id}/activate", Admin, also(409))]
async fn activate_automation(
    deps: &Deps,
    asked: &Asked<'_>,
    id: Id<AutomationId>,
    seen: Result<IfMatch>,
    body: Sent<ChosenVersion>,
) -> Result<Verdict<false>> {
    switch_version(deps, asked, id.0, seen, body, Switch::Activation).await
}

/// Go back to an earlier version
///
/// Everything that exactly this version uses is checked again first.
///
/// - 200: It runs from now on, or would if the automation were not paused.
#[operation(POST "/api/{slug}/automations/{id}/rollback", Admin, also(409))]
async fn roll_back_automation(
    deps: &Deps,
    asked: &Asked<'_>,
    id: Id<AutomationId>,
    seen: Result<IfMatch>,
    body: Sent<ChosenVersion>,
) -> Result<Verdict<false>> {
    switch_version(deps, asked, id.0, seen, body, Switch::RollBack).await
}

async fn switch_version(
    deps: &Deps,
    asked: &Asked<'_>,
    id: AutomationId,
    seen: Result<IfMatch>,
    body: Sent<ChosenVersion>,
    switch: Switch,
) -> Result<Verdict<false>> {
    let (organization, deadline) = (asked.organization(), asked.deadline);
    // The owner is checked before the request.
    deps.deployment.automations.get(organization, id).await?;
    let (revision, ChosenVersion { version, content_hash }) = (seen?.revision, body.read()?);
    let version = SeenVersion { version: version.0.into(), content_hash: content_hash.map(String::from) };
    let switched = deps.deployment.switch(&asked.member, id, switch, &version, revision, deadline);
    let deployed = deps.triggers.change(organization, id, deadline, switched).await?;
    Ok(Verdict::of(asked, unless_paused(deps, organization, id, deployed).await?))
}

/// Stop an automation from being started
///
/// - 200: The automation.
#[operation(POST "/api/{slug}/automations/{id}/pause", Admin, also(409))]
async fn pause_automation(
    deps: &Deps,
    asked: &Asked<'_>,
    id: Id<AutomationId>,
    seen: IfMatch,
) -> Result<Tagged<Automation>> {
    let pause = deps.deployment.pause(&asked.member, id.0, seen.revision);
    let paused = deps.triggers.change(asked.organization(), id.0, asked.deadline, pause).await?;
    let revision = paused.revision;
    Ok(Tagged(paused, revision))
}

/// The revision that the caller has read: `If-Match: "3"`. `*` matches every revision.
struct IfMatch {
    revision: Option<u64>,
    is_sent: bool,
}

impl Part for IfMatch {
    fn of(found: &Found<'_>) -> Result<Self> {
        let Some(value) = found.request.headers().get("if-match") else {
            return Ok(Self { revision: None, is_sent: false });
        };
        let text = value.to_str().unwrap_or_default().trim();
        let number = text.strip_prefix("W/").unwrap_or(text).trim_matches('"');
        let revision = (text != "*").then(|| number.parse()).transpose();
        let revision =
            revision.map_err(|_not_a_number| Error::invalid("If-Match", "must be the ETag of the automation"))?;
        Ok(Self { revision, is_sent: true })
    }

    fn describe(operation: &mut Operation, _: &mut Schemas) {
        let doc = "The `ETag` of the automation that was read; a change of another one is a 409.";
        operation.request_header("If-Match", doc, json!({"type": "string"}));
    }
}

/// 200 with a value and its revision.
struct Tagged<T>(T, u64);

impl<T: Serialize + Described> Answers for Tagged<T> {
    fn reply(self) -> Result<Reply> {
        Ok(Reply::ok(&self.0)?.with_headers([etag(self.1)]))
    }

    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.answers(200, "The present state.", T::schema(schemas));
        operation.never_unchanged();
    }
}

/// The outcome of saving or activating, with its status. `NEW` says whether the request may save something new.
struct Verdict<const NEW: bool> {
    deployed: Deployed,
    /// The content type of a text answer in place of JSON.
    text: Option<&'static str>,
}

impl<const NEW: bool> Verdict<NEW> {
    fn of(asked: &Asked<'_>, deployed: Deployed) -> Self {
        Self { deployed, text: http::accepted_text(asked.request) }
    }
}

impl<const NEW: bool> Answers for Verdict<NEW> {
    fn reply(self) -> Result<Reply> {
        let Self { deployed, text } = self;
        let refused = deployed.report.result == CheckResult::Failed && !deployed.dry_run;
        let status = match (refused, deployed.created && NEW) {
            (true, _) => 422,
            (false, true) => 201,
            (false, false) => 200,
        };
        let reply = match text {
            Some(content_type) => Reply::of(status, content_type, deployed.to_text().into_bytes()),
            None => Reply::json(status, &deployed)?,
        };
        Ok(reply.with_headers(deployed.automation.as_ref().map(|automation| etag(automation.revision))))
    }

    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        let deployed = Deployed::schema(schemas);
        for status in if NEW { &[200, 201][..] } else { &[200] } {
            operation.answers(*status, "It is saved.", deployed.clone());
            let text = json!({"schema": {"type": "string"}});
            operation.answers_with(*status, "", "text/plain; charset=utf-8", text);
        }
        operation.answers_with(422, "What is wrong with it.", "application/json", json!({"schema": deployed}));
        if !NEW {
            let invalid = json!({"schema": reference("Invalid")});
            operation.answers_with(422, "", "application/problem+json", invalid);
        }
    }
}

fn refused_unread(request: &Request) -> Option<Deployed> {
    let body = http::body(request);
    Deployment::refuse_size(body.len()).or_else(|| Deployment::refuse_duplicates(body))
}

fn etag(revision: u64) -> (&'static str, String) {
    ("etag", format!("\"{revision}\""))
}

/// The activated automation, unless its trigger was refused meanwhile: then it is paused again, with the reason.
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
