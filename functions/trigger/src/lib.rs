//! Events of services come in, and start the automations that listen to them.
//!
//! - `POST /api/hooks/{service}/{hook_id}`: by an organization's own hook
//! - `POST /api/hooks/{service}`: by an address that all organizations share at a service; the body says whose it claims to be, and
//!   only what the secret of such a hook proves is taken
//!
//! Answers: 200 with `{}`, or what a handshake asks for, once every run is begun, or waits for `schedule` to look at filters that take
//! long; 401 with an empty body for whatever is not
//! proven, also for a hook that is not there; another 4xx for what is proven and cannot be used; 503 for what could not be
//! done in time, which the service sends again: what was begun is not begun twice.

mod candidates;
mod dispatch;

use std::time::Duration;

use futures_util::{StreamExt, future::BoxFuture, stream};
use lambda_http::RequestExt;
use serde_json::json;
use shared::{
    Deadline, Error, Platform, Result,
    automation::Dispatch,
    clients::{Jwks, SigningKey},
    error,
    http::{self, Reply, Request},
    lifecycle::HookRegistry,
    models::{Hook, HookStatus, Timestamp},
    platform,
    store::HookChange,
    webhooks::{
        Delivery, Handshake, HookKeys, HookSecret, InboundEvent, Rejection, Scheme, WebhookRequest, key_id, receive,
    },
};

use crate::candidates::{Candidate, Claims};

/// Events of one request that are dispatched beside each other.
const BESIDE: usize = 8;
/// No service sends an event again after so long; GitHub does for three days, when asked to.
const LONGEST_REDELIVERY: Duration = Duration::from_secs(7 * 24 * 60 * 60);

pub struct Deps {
    pub registry: HookRegistry,
    pub dispatch: Dispatch,
    pub google_keys: Jwks,
    /// Under which the services reach us.
    pub public_url: String,
    /// How long events are kept.
    pub kept: Duration,
    /// When a service must have its answer, if not as its scheme says.
    pub answer_within: Option<Duration>,
}

impl Deps {
    pub fn new(platform: &Platform) -> platform::Result<Self> {
        Ok(Self {
            registry: platform.hook_registry()?,
            dispatch: platform.dispatch()?,
            google_keys: platform.google_keys()?,
            public_url: platform.public_url()?,
            kept: platform.history()?.max(LONGEST_REDELIVERY),
            answer_within: None,
        })
    }
}

pub async fn handle(deps: &Deps, request: Request) -> Result<Reply> {
    let (service, hook) = match http::route(&request)[..] {
        ["POST", "api", "hooks", service] => (service.to_owned(), None),
        ["POST", "api", "hooks", service, hook] => (service.to_owned(), Some(hook.to_owned())),
        _ => return Err(Error::NotFound("route")),
    };
    let within = deps.answer_within.unwrap_or(Scheme::of_service(&service).answered_within());
    let deadline = http::deadline(&request).at_most(within);
    // What is dropped half-way goes on when the service sends it again.
    let answered = Box::pin(receive_and_dispatch(deps, &request, &service, hook.as_deref(), deadline));
    match tokio::time::timeout(deadline.remaining(), answered).await {
        // Whatever is out of reach: the service tries again.
        Ok(Err(error)) if error.is_outage() => Err(Error::Unavailable("the processing of events", Box::new(error))),
        Ok(answered) => answered,
        Err(elapsed) => Err(Error::Unavailable("the processing of events", Box::new(elapsed))),
    }
}

async fn receive_and_dispatch(
    deps: &Deps,
    request: &Request,
    service: &str,
    hook: Option<&str>,
    deadline: Deadline,
) -> Result<Reply> {
    let scheme = Scheme::of_service(service);
    let url = public_url(&deps.public_url, request);
    let asked = WebhookRequest {
        method: request.method().as_str(),
        url: &url,
        headers: request.headers(),
        body: http::body(request),
    };
    let claims = Claims::of(scheme, hook, &asked);
    let mut received = Received { answer: Err(Rejection::Unauthentic), events: Vec::new() };
    let (mut turn, mut none) = (0, true);
    while let Some(found) = claims.next(deps, service, (turn, received.answer.is_ok())).await? {
        turn += 1;
        let google_key = google_key(deps, scheme, &found, &asked, deadline).await?;
        for (candidate, secrets) in found {
            none = false;
            let keys =
                HookKeys { scheme: Scheme::of_hook(&candidate), secrets: &secrets, google_key: google_key.as_ref() };
            let delivered = receive(keys, &asked, Timestamp::now());
            if let Some(reply) = received.take(deps, (candidate, hook.is_none()), delivered, deadline).await? {
                return Ok(reply);
            }
        }
    }
    if none {
        // As much is computed for a hook that is not there.
        let decoy = [HookSecret::of("decoy")];
        let keys = HookKeys { scheme, secrets: &decoy, google_key: None };
        drop(receive(keys, &asked, Timestamp::now()));
    }
    dispatch_all(deps, &received.events).await?;
    match received.answer {
        // Anything but TwiML is an error in Twilio's log.
        Ok(()) if scheme == Scheme::Twilio => Ok(Reply::text("text/xml", "<Response/>".to_owned())),
        Ok(()) => done(),
        Err(rejection) => Ok(rejected(rejection)),
    }
}

/// What the hooks of a request make of it.
struct Received {
    answer: std::result::Result<(), Rejection>,
    events: Vec<(Hook, InboundEvent)>,
}

impl Received {
    /// Takes what one hook makes of the request; the answer, if that is all there is to it. `shared`: it came to an address that
    /// everybody knows.
    async fn take(
        &mut self,
        deps: &Deps,
        (hook, shared): (Hook, bool),
        delivered: std::result::Result<Delivery, Rejection>,
        deadline: Deadline,
    ) -> Result<Option<Reply>> {
        match delivered {
            Ok(Delivery::Events(events)) => {
                self.answer = Ok(());
                let ours = events.into_iter().filter(|event| is_for(&hook, event.tenant.as_ref()));
                self.events.extend(ours.map(|event| (hook.clone(), event)));
            }
            Ok(Delivery::Nothing) => self.answer = Ok(()),
            Ok(Delivery::Ended(tenant)) => {
                // A hook without a tenant may take the events of several, and one of them goes.
                if hook.tenant_key.is_some() && hook.tenant_key == tenant {
                    end(deps, &hook).await?;
                }
                self.answer = Ok(());
            }
            Ok(Delivery::Handshake(Handshake::Json(challenge))) => return Reply::ok(&challenge).map(Some),
            // What nobody has signed is answered at an address only that nobody else knows.
            Ok(Delivery::Handshake(_)) if shared => {}
            Ok(Delivery::Handshake(Handshake::Text(text))) => return Ok(Some(Reply::text("text/plain", text))),
            Ok(Delivery::Handshake(Handshake::Secret(secret))) => {
                let secret = HookSecret { secret, ..HookSecret::default() }.to_secret();
                let as_of_now = deps.registry.hooks.get(hook.organization_id, hook.id).await?;
                if as_of_now.status == HookStatus::Pending && as_of_now.secrets.is_empty() {
                    deps.registry.add_secret(&as_of_now, &secret, true, None, deadline).await?;
                    return done().map(Some);
                }
            }
            Err(Rejection::Unusable(status)) if self.answer.is_err() => {
                self.answer = Err(Rejection::Unusable(status));
            }
            Err(_) => {}
        }
        Ok(None)
    }
}

/// Begins what each event begins. All are tried, whatever becomes of one; the time for their filters is the request's.
async fn dispatch_all(deps: &Deps, events: &[(Hook, InboundEvent)]) -> Result<()> {
    let work = Dispatch::work();
    let mut dispatched: Vec<BoxFuture<'_, Result<()>>> = Vec::with_capacity(events.len());
    for (hook, event) in events {
        dispatched.push(Box::pin(dispatch::dispatch(deps, hook, event, &work)));
    }
    let outcomes: Vec<Result<()>> = stream::iter(dispatched).buffer_unordered(BESIDE).collect().await;
    outcomes.into_iter().collect()
}

fn done() -> Result<Reply> {
    Reply::ok(&json!({}))
}

/// Empty, so that nothing tells a hook that is not there from a wrong signature.
fn rejected(rejection: Rejection) -> Reply {
    let status = match rejection {
        Rejection::Unauthentic => 401,
        Rejection::Unusable(status) => status,
    };
    tracing::info!(http.status = status, "a webhook was refused");
    Reply::of(status, "text/plain", Vec::new())
}

/// Whether what is said to be a tenant's is a hook's. What somebody signs of others is not theirs.
fn is_for(hook: &Hook, tenant: Option<&String>) -> bool {
    hook.tenant_key.is_none() || hook.tenant_key.as_ref() == tenant
}

/// The hook takes nothing any more.
async fn end(deps: &Deps, hook: &Hook) -> Result<()> {
    let hook = deps.registry.hooks.get(hook.organization_id, hook.id).await?;
    let change = HookChange { status: HookStatus::Ended, ..HookChange::none(&hook) };
    deps.registry.hooks.change(&hook, change, None, None).await?;
    tracing::info!(hook.id = %hook.id, "a service says that access was taken back: the hook has ended");
    Ok(())
}

/// The key of Google's that the request names, if it may be needed.
async fn google_key(
    deps: &Deps,
    scheme: Scheme,
    candidates: &[Candidate],
    asked: &WebhookRequest<'_>,
    deadline: Deadline,
) -> Result<Option<SigningKey>> {
    match key_id(asked) {
        Some(id) if scheme == Scheme::GooglePubsub && !candidates.is_empty() => {
            deps.google_keys.key(&id, deadline).await.inspect_err(|unknown| {
                tracing::warn!("Google's keys are out of reach: {}", error::chain(unknown));
            })
        }
        _ => Ok(None),
    }
}

/// The address as the service called it.
fn public_url(base: &str, request: &Request) -> String {
    let path = match request.raw_http_path() {
        "" => request.uri().path(),
        path => path,
    };
    match request.uri().query().filter(|query| !query.is_empty()) {
        Some(query) => format!("{base}{path}?{query}"),
        None => format!("{base}{path}"),
    }
}
