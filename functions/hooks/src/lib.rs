//! Hooks, the addresses for services' events; the received events, and their replay.
//!
//! Secrets are at Secrets Manager, in no row and no other answer.

mod body;
mod events;
mod replay_plans;
mod single_replay;

use futures_util::try_join;
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use shared::{
    Deadline, Error, Result,
    automation::EventReplays,
    described::Described,
    discovery::{ArrivesBy, arrivals, did_you_mean, nearest_services},
    http::{Access, Asked, Created, Deleted, Id, Paged, Sent, Shown, operation},
    lifecycle::{HookRegistry, NewHook},
    models::{AutomationId, Hook, HookId, HookSecretRef, HookStatus, OrganizationId, OwnHook, Timestamp},
    platform::Parts,
    store::{Events, HookChange, Page, Services},
    webhooks::{HookSecret, LearnedPayload, Scheme, learn, own_name, own_service},
};

use crate::body::{Change, CheckedHook, Secret};

shared::routes!(
    Deps,
    "events": create_hook,
    list_hooks,
    get_hook,
    update_hook,
    delete_hook,
    events::list_events,
    // Before the events: their ids would match "replays".
    replay_plans::plan_event_replay,
    replay_plans::list_event_replays,
    replay_plans::get_event_replay,
    replay_plans::start_event_replay,
    replay_plans::cancel_event_replay,
    events::get_event,
    single_replay::replay_event,
);

#[derive(Parts)]
pub struct Deps {
    pub access: Access,
    pub registry: HookRegistry,
    pub events: Events,
    pub event_replays: EventReplays,
    pub services: Services,
    /// The base of the hooks' addresses.
    #[part(platform.public_url()?)]
    pub public_url: String,
}

/// A row as its organization sees it.
#[derive(Serialize, Described)]
struct HookView {
    id: HookId,
    organization_id: OrganizationId,
    /// As it stands in the address: `google_calendar`.
    service: String,
    /// How its requests are proven.
    scheme: Scheme,
    /// The name of an own hook, for the `hook` of triggers.
    hook: Option<String>,
    /// How the requests of an own hook are proven and read.
    settings: Option<OwnHook>,
    /// The danger of a hook without a secret.
    warning: Option<&'static str>,
    /// Requests of an own hook that were refused because more than 300 came in a minute.
    throttled: u64,
    throttled_at: Option<Timestamp>,
    /// Instructions for setting the hook up at the service.
    set_up: &'static str,
    label: String,
    /// To be entered at the service.
    url: String,
    /// `pending` has no secret yet; `ended` was taken back at the service.
    status: HookStatus,
    tenant_key: Option<String>,
    /// The one automation that its events are for; the hook goes with it.
    automation_id: Option<AutomationId>,
    /// Which there are, and since when, the newest last.
    #[schema(maxItems = 2)]
    secrets: Vec<HookSecretRef>,
    /// The service gave its secret itself; a change with `reveal` shows it once.
    unseen_secret: bool,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// Shown this once.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
    /// The fields of the events that came in the last days, when a single hook is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<LearnedPayload>,
}

const UNPROVEN: &str = "Requests are not signed: everybody who learns the hook's url and can send from an allowed address can start runs \
                        with any data. Let no automation of this hook act on that data unchecked.";

impl HookView {
    fn new(deps: &Deps, hook: Hook) -> Self {
        let url = format!("{}/api/hooks/{}/{}", deps.public_url, hook.service, hook.id);
        Self {
            id: hook.id,
            organization_id: hook.organization_id,
            scheme: Scheme::of_hook(&hook),
            set_up: Scheme::of_hook(&hook).set_up(),
            hook: own_name(&hook.service).map(str::to_owned),
            settings: hook.own.clone(),
            warning: (Scheme::of_hook(&hook) == Scheme::Unsigned).then_some(UNPROVEN),
            throttled: hook.throttled.unwrap_or_default(),
            throttled_at: hook.throttled_at,
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
            payload: None,
        }
    }

    fn with_secret(self, secret: Option<&SecretString>) -> Self {
        Self { secret: secret.map(|secret| secret.expose_secret().to_owned()), ..self }
    }
}

/// Let a service send its events here
///
/// Returns the address to enter at the service, and instructions in `set_up`. Services that are told a secret (GitHub,
/// Google Calendar, Outlook, Telegram, and `Webhooks`, the organization's own programs, which sign as Standard
/// Webhooks says) get one of ours, shown this once, unless `secret` gives one. Services that create the secret (Slack,
/// Stripe, `HubSpot`, Notion, Linear; for Twilio it is the account's auth token) leave the hook `pending` until it is
/// known: now, by a change of the hook, or from Notion itself. Gmail shows tokens of Google's for `service_account`. A
/// service that calls no hook (Airtable, Google Sheets, Oura) is refused with the way in which its events arrive.
///
/// Any other name is a hook of the organization's own, for `"trigger_config": {"hook": "acme"}`. Its `scheme` is
/// `standard_webhooks` unless given; `hmac` signs the body into `header`, `bearer` shows a token, `basic` a user and
/// password, and `none` proves nothing, so it needs `allowed_addresses`. A name that resembles a service's needs a `scheme`.
///
/// `tenant` is whose events they are where a service sends those of all organizations to one address, `/api/hooks/{service}`:
/// `<app>#<workspace>` for Slack, the id of the installation for GitHub, of the connected account for Stripe,
/// `<integration>#<workspace>` for Notion, of the portal for `HubSpot`, of the channel for Google Calendar, of the subscription
/// for Outlook, of the workspace for Linear. Events of others are not taken. A tenant is one active hook's, of all
/// organizations: the first one's; another one is a 409. Gmail has none: its hooks are reached by their own addresses.
///
/// - 201: The hook, with a secret of ours if it has one.
///
/// ```json,slack
/// {"service": "Slack", "secret": "8f742231b10e8888abcd99yyyzzz85a5", "tenant": "A0MDYCDME#T061EG9R6",
///  "label": "Our workspace"}
/// ```
/// ```json,own: A program of the organization
/// {"service": "Webhooks", "label": "Our shop"}
/// ```
/// ```json,signed: An own hook, signed as a shop does it
/// {"service": "acme", "scheme": "hmac", "header": "X-Acme-Signature", "encoding": "base64", "event_field": "topic"}
/// ```
/// ```json,unsigned: A device without secrets
/// {"service": "doorbell", "scheme": "none", "allowed_addresses": ["203.0.113.0/24"]}
/// ```
/// ```json,gmail
/// {"service": "Gmail", "service_account": "push@project.iam.gserviceaccount.com"}
/// ```
/// ```json,notion: Notion gives the secret itself
/// {"service": "Notion"}
/// ```
#[operation(POST "/api/{slug}/hooks", Admin, also(409, 502))]
async fn create_hook(deps: &Deps, asked: &Asked<'_>, body: Sent<body::NewHook>) -> Result<Created<HookView>> {
    let mut new = body::new_hook(&body.json()?)?;
    if is_own(deps, &new, asked.deadline).await? {
        new.service = own_service(&new.service);
        new.own.get_or_insert_default();
    }
    let Secret { content, shown } = new.secret;
    let new = NewHook {
        id: HookId::generate(),
        service: new.service,
        scheme: new.scheme,
        own: new.own,
        label: new.label,
        tenant_key: new.tenant_key,
        deployed: None,
        secret: content.map(|content| content.to_secret()),
    };
    let hook = deps.registry.create(asked.organization(), new, asked.deadline).await?;
    Ok(Created(HookView::new(deps, hook).with_secret(shown.as_ref())))
}

/// List the hooks
///
/// Newest first. A secret is never shown. An address can be a hook's only proof, so hooks are shown to admins only.
///
/// - 200: A page of hooks.
#[operation(GET "/api/{slug}/hooks", Admin)]
async fn list_hooks(deps: &Deps, asked: &Asked<'_>, page: Paged) -> Result<Page<HookView>> {
    let page = deps.registry.hooks.page(asked.organization(), page.cursor.as_ref(), page.limit).await?;
    Ok(page.map(|hook| HookView::new(deps, hook)))
}

/// Show a hook
///
/// - 200: The hook.
#[operation(GET "/api/{slug}/hooks/{id}", Admin)]
async fn get_hook(deps: &Deps, asked: &Asked<'_>, id: Id<HookId>) -> Result<Shown<HookView>> {
    let hook = deps.registry.hooks.get(asked.organization(), id.0).await?;
    let events = deps.events.samples(asked.organization(), &hook.service, None).await?;
    Ok(Shown(HookView { payload: learn(&events), ..HookView::new(deps, hook) }))
}

/// Change a hook, or its secret
///
/// To replace a secret without losing an event: add the next one (`secret`, or `rotate` for one of ours, which is shown this
/// once), change it at the service, and then take the old one away (`remove_secret`). Two are accepted at a time. `reveal`
/// shows, once, the secret that a service gave itself. One of these four at a time.
///
/// - 200: The hook as it is now.
#[operation(PATCH "/api/{slug}/hooks/{id}", Admin, also(409, 502))]
async fn update_hook(
    deps: &Deps,
    asked: &Asked<'_>,
    id: Id<HookId>,
    body: Sent<body::HookChange>,
) -> Result<Shown<HookView>> {
    let hook = deps.registry.hooks.get(asked.organization(), id.0).await?;
    must_be_ours(&hook)?;
    let change = body::change(&body.json()?, &hook)?;
    update(deps, &hook, change, asked.deadline).await.map(Shown)
}

/// Delete a hook
///
/// Its address takes nothing any more. Received events are kept.
///
/// - 200: It is gone.
#[operation(DELETE "/api/{slug}/hooks/{id}", Admin, also(409))]
async fn delete_hook(deps: &Deps, asked: &Asked<'_>, id: Id<HookId>) -> Result<Deleted> {
    let hook = deps.registry.hooks.get(asked.organization(), id.0).await?;
    must_be_ours(&hook)?;
    deps.registry.delete(&hook, asked.deadline).await?;
    Ok(Deleted)
}

/// Whether a hook is the organization's own. Refuses a name that may be a misspelt service, and a service whose events arrive in
/// another way.
async fn is_own(deps: &Deps, new: &CheckedHook, deadline: Deadline) -> Result<bool> {
    let written = new.service.as_str();
    if Scheme::known(written).is_some() {
        return Ok(false);
    }
    let names = [written.to_owned()];
    let (services, mut capabilities) =
        try_join!(deps.services.named(&names, deadline), deps.services.capabilities(&names, deadline))?;
    let Some(service) = services.first() else {
        let near = if new.own.is_some() { Vec::new() } else { nearest_services(written, &deps.services.all().await?) };
        if near.is_empty() {
            return Ok(true);
        }
        let problem = format!(
            "is not a service with known events; {} For a hook of your own with this name give its scheme too",
            did_you_mean(&near)
        );
        return Err(Error::invalid("service", problem));
    };
    let arrivals = arrivals(&service.name, capabilities.remove(written).as_ref());
    let calls_hooks = arrivals.iter().any(|arrival| arrival.by == ArrivesBy::Hook);
    if new.own.is_some() && calls_hooks {
        let problem = "is for hooks of your own; this service has the scheme that it signs with";
        return Err(Error::invalid("scheme", problem));
    }
    if new.own.is_some() || calls_hooks {
        return Ok(!calls_hooks);
    }
    let ways: Vec<String> =
        arrivals.iter().map(|arrival| format!("{} ({})", arrival.next_step, arrival.events.join(", "))).collect();
    let ways = if ways.is_empty() { "it has no events here".to_owned() } else { ways.join("; ") };
    let problem = format!("calls no hook: {ways}; for a hook of your own with this name give its scheme too");
    Err(Error::invalid("service", problem))
}

/// A hook of an automation comes and goes with the automation.
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
        // The known facts of a channel or subscription also hold with its next secret.
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

/// Shows the service's secret once: only the request that changes the row gets it.
async fn reveal(deps: &Deps, hook: &Hook, label: Option<&str>) -> Result<HookView> {
    if !hook.unseen_secret {
        return Err(Error::Conflict("the service has no unseen secret".into()));
    }
    let secrets = deps.registry.secrets(hook).await?;
    let none = HookChange::none(hook);
    let change = HookChange { unseen_secret: false, label: label.unwrap_or(none.label), ..none };
    let changed = deps.registry.hooks.change(hook, change, None, None).await?;
    Ok(HookView::new(deps, changed).with_secret(secrets.last().map(|secret| &secret.secret)))
}
