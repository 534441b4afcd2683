//! Where services send an organization's events, and what came of them.
//!
//! - POST /api/{slug}/hooks: makes a hook; 201 with the row, the address to enter at the service, and a secret of ours, which is
//!   shown this once. Bodies are in `body.rs`
//! - GET /api/{slug}/hooks?limit=&cursor=: newest first, as `{items, next_cursor}`
//! - GET /api/{slug}/hooks/{id}: one hook
//! - PATCH /api/{slug}/hooks/{id}: another label; a second secret beside the first; the old one taken away; once, the secret that
//!   a service gave
//! - DELETE /api/{slug}/hooks/{id}: `{"status": "deleted"}`; its address takes nothing any more
//! - GET /api/{slug}/events?matched=false&limit=&cursor=: what came in, newest first; with `matched=false` what started nothing
//! - GET /api/{slug}/events/{id}: one event, with what it said, redacted, the runs that it began, and why others did not run
//!
//! Secrets are at Secrets Manager, in no row and no other answer.

mod body;
mod event;

use futures_util::try_join;
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde_json::json;
use shared::{
    Deadline, Error, Platform, Result,
    discovery::{ArrivesBy, arrivals, did_you_mean, nearest_services},
    http::{self, Access, Reply, Request},
    lifecycle::{HookRegistry, NewHook},
    models::{AutomationId, Hook, HookId, HookSecretRef, HookStatus, OrganizationId, Timestamp},
    platform,
    store::{Events, HookChange, Services},
    webhooks::{HookSecret, Scheme},
};

use crate::body::{Change, Secret};

pub struct Deps {
    pub access: Access,
    pub registry: HookRegistry,
    pub events: Events,
    pub services: Services,
    /// Under which the services reach us.
    pub public_url: String,
}

impl Deps {
    pub fn new(platform: &Platform) -> platform::Result<Self> {
        Ok(Self {
            access: platform.access()?,
            registry: platform.hook_registry()?,
            events: Events::new(platform.database()?),
            services: Services::new(platform.database()?),
            public_url: platform.public_url()?,
        })
    }
}

/// A row as its organization sees it.
#[derive(Serialize)]
struct HookView {
    id: HookId,
    organization_id: OrganizationId,
    service: String,
    scheme: Scheme,
    /// What a person does at the service.
    set_up: &'static str,
    label: String,
    /// To be entered at the service.
    url: String,
    status: HookStatus,
    tenant_key: Option<String>,
    automation_id: Option<AutomationId>,
    /// Which there are, and since when.
    secrets: Vec<HookSecretRef>,
    /// The service gave its secret, which can be shown once.
    unseen_secret: bool,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// Shown this once.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

impl HookView {
    fn new(deps: &Deps, hook: Hook) -> Self {
        let url = format!("{}/api/hooks/{}/{}", deps.public_url, hook.service, hook.id);
        Self {
            id: hook.id,
            organization_id: hook.organization_id,
            scheme: Scheme::of_hook(&hook),
            set_up: Scheme::of_hook(&hook).set_up(),
            service: hook.service,
            label: hook.label,
            url,
            status: hook.status,
            tenant_key: hook.tenant_key,
            automation_id: hook.automation_id,
            secrets: hook.secrets,
            unseen_secret: hook.unseen_secret,
            created_at: hook.created_at,
            updated_at: hook.updated_at,
            secret: None,
        }
    }

    fn with_secret(self, secret: Option<&SecretString>) -> Self {
        Self { secret: secret.map(|secret| secret.expose_secret().to_owned()), ..self }
    }
}

pub async fn handle(deps: &Deps, request: Request) -> Result<Reply> {
    let deadline = http::deadline(&request);
    let organization = deps.access.member(&request).await?.organization_id;
    match http::route(&request)[..] {
        ["POST", "api", _, "hooks"] => {
            let new = body::new_hook(&http::json_body(&request)?)?;
            must_call_hooks(deps, &new.service, deadline).await?;
            let Secret { content, shown } = new.secret;
            let new = NewHook {
                id: HookId::generate(),
                service: new.service,
                label: new.label,
                tenant_key: new.tenant_key,
                automation_id: None,
                secret: content.map(|content| content.to_secret()),
            };
            let hook = Box::pin(deps.registry.create(organization, new, deadline)).await?;
            Reply::created(&HookView::new(deps, hook).with_secret(shown.as_ref()))
        }
        ["GET", "api", _, "hooks"] => {
            let (limit, cursor) = http::page(&request)?;
            let page = deps.registry.hooks.page(organization, cursor.as_ref(), limit).await?;
            Reply::ok(&page.map(|hook| HookView::new(deps, hook)))
        }
        ["GET", "api", _, "hooks", id] => {
            let hook = deps.registry.hooks.get(organization, http::id(id, "hook")?).await?;
            Reply::ok(&HookView::new(deps, hook))
        }
        ["PATCH", "api", _, "hooks", id] => {
            let hook = deps.registry.hooks.get(organization, http::id(id, "hook")?).await?;
            must_be_ours(&hook)?;
            let change = body::change(&http::json_body(&request)?, &hook)?;
            Reply::ok(&Box::pin(update(deps, &hook, change, deadline)).await?)
        }
        ["DELETE", "api", _, "hooks", id] => {
            let hook = deps.registry.hooks.get(organization, http::id(id, "hook")?).await?;
            must_be_ours(&hook)?;
            Box::pin(deps.registry.delete(&hook, deadline)).await?;
            Reply::ok(&json!({"status": "deleted"}))
        }
        ["GET", "api", _, "events"] => event::page(deps, organization, &request).await,
        ["GET", "api", _, "events", id] => event::one(deps, organization, http::id(id, "event")?).await,
        _ => Err(Error::NotFound("route")),
    }
}

/// Refuses a hook that nobody would call: for a service that is unknown, or whose events arrive in another way.
async fn must_call_hooks(deps: &Deps, written: &str, deadline: Deadline) -> Result<()> {
    if Scheme::known(written).is_some() {
        return Ok(());
    }
    let names = [written.to_owned()];
    let (services, mut capabilities) =
        try_join!(deps.services.named(&names, deadline), deps.services.capabilities(&names, deadline))?;
    let Some(service) = services.first() else {
        let near = did_you_mean(&nearest_services(written, &deps.services.all().await?));
        let near = if near.is_empty() { near } else { format!("{near} ") };
        let problem =
            format!("is no service whose events are known here; {near}For a program of your own write Webhooks");
        return Err(Error::invalid("service", problem));
    };
    let arrivals = arrivals(&service.name, capabilities.remove(written).as_ref());
    if arrivals.iter().any(|arrival| arrival.by == ArrivesBy::Hook) {
        return Ok(());
    }
    let ways: Vec<String> =
        arrivals.iter().map(|arrival| format!("{} ({})", arrival.next_step, arrival.events.join(", "))).collect();
    let ways = if ways.is_empty() { "it has no events here".to_owned() } else { ways.join("; ") };
    Err(Error::invalid("service", format!("calls no hook: {ways}")))
}

/// What belongs to an automation comes and goes with it.
fn must_be_ours(hook: &Hook) -> Result<()> {
    match hook.automation_id {
        None => Ok(()),
        Some(_) => Err(Error::Conflict(
            "the hook belongs to an automation; pause or delete the automation, and it goes".into(),
        )),
    }
}

async fn update(deps: &Deps, hook: &Hook, change: Change, deadline: Deadline) -> Result<HookView> {
    let label = change.label.as_deref();
    if let Some(Secret { content: Some(content), shown }) = change.secret {
        // What is known of a channel or a subscription holds with its next secret, too.
        let known = deps.registry.secrets(hook).await?.pop().unwrap_or_default();
        let content = HookSecret { secret: content.secret, ..known }.to_secret();
        let changed = deps.registry.add_secret(hook, &content, false, label, deadline).await?;
        return Ok(HookView::new(deps, changed).with_secret(shown.as_ref()));
    }
    if let Some(secret) = change.remove_secret {
        let changed = deps.registry.remove_secret(hook, secret, label, deadline).await?;
        return Ok(HookView::new(deps, changed));
    }
    if change.reveal {
        return reveal(deps, hook, label).await;
    }
    let none = HookChange::none(hook);
    let change = HookChange { label: label.unwrap_or(none.label), ..none };
    let changed = deps.registry.hooks.change(hook, change, None, None).await?;
    Ok(HookView::new(deps, changed))
}

/// Shows the secret that the service gave, once: whoever changes the row is the one who sees it.
async fn reveal(deps: &Deps, hook: &Hook, label: Option<&str>) -> Result<HookView> {
    if !hook.unseen_secret {
        return Err(Error::Conflict("there is no secret of the service's that nobody has seen yet".into()));
    }
    let secrets = deps.registry.secrets(hook).await?;
    let none = HookChange::none(hook);
    let change = HookChange { unseen_secret: false, label: label.unwrap_or(none.label), ..none };
    let changed = deps.registry.hooks.change(hook, change, None, None).await?;
    Ok(HookView::new(deps, changed).with_secret(secrets.last().map(|secret| &secret.secret)))
}
