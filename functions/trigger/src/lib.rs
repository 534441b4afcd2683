//! Events of services come in, and start the automations that listen to them.

mod candidates;
mod dispatch;
mod stop;
mod texts;
mod throttle;

use std::{net::IpAddr, time::Duration};

use futures_util::{StreamExt, future::BoxFuture, stream};
use lambda_http::{RequestExt, request::RequestContext};
use shared::{
    Deadline, Error, Result,
    automation::Dispatch,
    clients::{Jwks, Secrets, SigningKey},
    described::{Schemas, json},
    error,
    http::{self, Found, Operation, Part, Reply, Request, operation},
    lifecycle::HookRegistry,
    models::{Hook, HookStatus, Timestamp},
    platform::Parts,
    store::{DoNotCallList, Executions, HookChange, PhoneNumbers, Quotas},
    webhooks::{
        Delivery, Handshake, HookKeys, HookSecret, InboundEvent, Rejection, Scheme, WebhookRequest, key_id, receive,
    },
};

use crate::candidates::{Candidate, Claims};

// The first route that fits takes a request, and the last one fits the statuses too.
shared::routes!(Deps, "events": receive_shared_event, take_message_status, receive_event);

/// Events of one request that are dispatched beside each other.
const BESIDE: usize = 8;
/// No service sends an event again after so long; GitHub does for three days, when asked to.
const LONGEST_REDELIVERY: Duration = Duration::from_secs(7 * 24 * 60 * 60);

#[derive(Parts)]
pub struct Deps {
    pub registry: HookRegistry,
    pub dispatch: Dispatch,
    #[part(platform.google_keys()?)]
    pub google_keys: Jwks,
    pub do_not_call: DoNotCallList,
    pub executions: Executions,
    pub phone_numbers: PhoneNumbers,
    /// Of the phone numbers' accounts.
    pub secrets: Secrets,
    pub quotas: Quotas,
    /// Services sign this address or the gateway's.
    #[part(platform.public_url()?)]
    pub public_url: String,
    /// How long events are kept.
    #[part(platform.history()?.max(LONGEST_REDELIVERY))]
    pub kept: Duration,
    /// When a service must have its answer, if not as its scheme says.
    #[part(None)]
    pub answer_within: Option<Duration>,
}

/// The service in the path, not decoded.
struct Service(String);
/// The hook's id in the path, not checked.
struct OfHook(String);
/// Twilio's form about a message, which is read once it is proven.
struct StatusForm;

/// Take an event in at an address that all organizations share
///
/// For services that send everybody's events to one address (Slack, `HubSpot`, …). The body says whose it claims to
/// be; it is taken for the active hook with this `tenant` if that one's own secret proves it. Unreadable parts of a
/// batch are dropped. A message to a phone number, from `twilio`, needs no hook: the auth token of the number's account
/// proves it. So it does for the status of a message that the number sent, which is an event of the organization's hook of
/// `twilio`.
#[operation(POST "/api/hooks/{service}", by(webhookSignature), also(429, 500, 503), resource(ReceiveEvent), throttle(Services), answers(describe_answer))]
async fn receive_shared_event(deps: &Deps, found: &Found<'_>, service: Service) -> Result<Reply> {
    answer(deps, found, &service.0, None).await
}

/// Take the status of a message that a tool sent
///
/// Each message of a tool names this address as its status callback. The auth token of the sending number's account proves the
/// request. The status is an event of the organization's hook of `twilio`, if it has one. A call's receipt names a message that did
/// not arrive.
#[operation(POST "/api/hooks/twilio/statuses", by(twilioSignature), also(429, 500, 503), throttle(Statuses), answers(describe_taken_status))]
async fn take_message_status(deps: &Deps, found: &Found<'_>, _form: StatusForm) -> Result<Reply> {
    answer(deps, found, texts::TWILIO, None).await
}

/// Take an event of a service's in
///
/// Authenticated by the service's signature over the raw body. A signed time may be 300 seconds away, either way. The
/// event is noted, held against the filters of the automations that listen to it, and their runs are begun; the same
/// event again begins nothing. The answer comes within the service's own time limit, nine seconds at most. Unfinished
/// work is a 503, and is completed when the service sends the event again. Handshakes of Slack, Notion, Microsoft and
/// Google are answered.
#[operation(POST "/api/hooks/{service}/{hook_id}", by(webhookSignature), also(429, 500, 503), resource(ReceiveEventOfHook), throttle(Services), answers(describe_answer_of_hook))]
async fn receive_event(deps: &Deps, found: &Found<'_>, service: Service, hook: OfHook) -> Result<Reply> {
    answer(deps, found, &service.0, Some(&hook.0)).await
}

async fn answer(deps: &Deps, found: &Found<'_>, service: &str, hook: Option<&str>) -> Result<Reply> {
    let within = deps.answer_within.unwrap_or(Scheme::of_service(service).answered_within());
    let deadline = found.deadline.at_most(within);
    // Interrupted work continues when the service sends the event again.
    let answered = Box::pin(receive_and_dispatch(deps, found.request, service, hook, deadline));
    match tokio::time::timeout(deadline.remaining(), answered).await {
        // An outage: the service tries again.
        Ok(Err(error)) if error.is_outage() => Err(Error::Unavailable("the processing of events", Box::new(error))),
        Ok(answered) => answered,
        Err(elapsed) => Err(Error::Unavailable("the processing of events", Box::new(elapsed))),
    }
}

impl Part for Service {
    fn of(found: &Found<'_>) -> Result<Self> {
        Ok(Self(found.variable(0).to_owned()))
    }

    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.names("The service's name as the hook has it, `google_calendar`.", json!({"type": "string"}));
        operation.takes(json!(true), false);
    }
}

impl Part for OfHook {
    fn of(found: &Found<'_>) -> Result<Self> {
        Ok(Self(found.variable(1).to_owned()))
    }

    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.names("The hook's id.", json!({"type": "string"}));
    }
}

impl Part for StatusForm {
    fn of(_: &Found<'_>) -> Result<Self> {
        Ok(Self)
    }

    fn describe(operation: &mut Operation, _: &mut Schemas) {
        let schema = json!({"type": "object", "required": ["MessageSid", "MessageStatus", "AccountSid", "From"], "properties": {
            "MessageSid": {"type": "string"},
            "MessageStatus": {"type": "string", "description": "`sent`, `delivered`, `undelivered`, `failed`, …"},
            "AccountSid": {"type": "string", "description": "The account of the number's credentials."},
            "From": {"type": "string", "description": "The organization's number, which sent the message."},
            "ErrorCode": {"type": "string", "description": "Why the message did not arrive."},
        }});
        operation.sends_as("application/x-www-form-urlencoded", json!({"schema": schema}));
    }
}

fn describe_taken_status(operation: &mut Operation, _: &mut Schemas) {
    operation.answers_with(200, "Empty `TwiML`.", "text/xml", json!({"schema": {"type": "string"}}));
    operation.answers_nothing(400, "It is Twilio's, and cannot be read.");
    operation.answers_nothing(401, "It is not shown to be Twilio's for this number. The body is empty.");
}

/// The answer to an event or a handshake. Every run is started by then, or waits for `schedule`, which evaluates slow filters.
fn describe_answer(operation: &mut Operation, _: &mut Schemas) {
    let taken = "Every run that it begins is begun, now or before; or what the service asked for.";
    operation.answers(200, taken, json!({"type": "object"}));
    operation.answers_nothing(400, "It is the service's, and cannot be read. The service does not send it again.");
    let unproven = "It is not shown to be the service's, or there is no such hook. The body is empty.";
    operation.answers_nothing(401, unproven);
}

/// As [`describe_answer`], or the text that answers Microsoft's handshake.
fn describe_answer_of_hook(operation: &mut Operation, schemas: &mut Schemas) {
    describe_answer(operation, schemas);
    let token = json!({"schema": {"type": "string", "description": "The token that Microsoft asked with."}});
    operation.answers_with(200, "", "text/plain", token);
}

async fn receive_and_dispatch(
    deps: &Deps,
    request: &Request,
    service: &str,
    hook: Option<&str>,
    deadline: Deadline,
) -> Result<Reply> {
    let scheme = Scheme::of_service(service);
    let urls = http::called_addresses(&deps.public_url, request);
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let asked = WebhookRequest {
        method: request.method().as_str(),
        urls: &urls,
        headers: request.headers(),
        body: http::body(request),
        source: sender(request),
    };
    if scheme == Scheme::Twilio && hook.is_none() {
        return texts::take(deps, &asked).await;
    }
    let claims = Claims::of(scheme, hook, &asked);
    let mut received = Received { answer: Err(Rejection::Unauthentic), events: Vec::new() };
    let (mut turn, mut none) = (0, true);
    while let Some(found) = claims.next(deps, service, (turn, received.answer.is_ok())).await? {
        turn += 1;
        let google_key = google_key(deps, scheme, &found, &asked, deadline).await?;
        for (candidate, secrets) in found {
            none = false;
            let keys = HookKeys {
                scheme: Scheme::of_hook(&candidate),
                secrets: &secrets,
                google_key: google_key.as_ref(),
                own: candidate.own.as_ref(),
            };
            let delivered = receive(keys, &asked, Timestamp::now());
            if let Ok(Delivery::Events(events)) = &delivered
                && let Some(refusal) = throttle::refusal(deps, &candidate, events, deadline).await?
            {
                return Ok(refusal);
            }
            if let Some(reply) = received.take(deps, (candidate, hook.is_none()), delivered, deadline).await? {
                return Ok(reply);
            }
        }
    }
    if none {
        // As much is computed for a hook that is not there.
        let decoy = [HookSecret::of("decoy")];
        let keys = HookKeys { scheme, secrets: &decoy, google_key: None, own: None };
        drop(receive(keys, &asked, Timestamp::now()));
    }
    for (hook, event) in &received.events {
        if Scheme::of_service(&hook.service) == Scheme::Twilio {
            stop::list_sender(deps, hook.organization_id, event).await?;
        }
    }
    dispatch_all(deps, &received.events).await?;
    match received.answer {
        Ok(()) => done_for(scheme),
        Err(rejection) => Ok(rejected(rejection)),
    }
}

/// The results of a request's hooks.
struct Received {
    answer: std::result::Result<(), Rejection>,
    events: Vec<(Hook, InboundEvent)>,
}

impl Received {
    /// Takes one hook's result; returns the answer if the request needs no more. `shared`: it came to an address that
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
            // An unsigned handshake is answered only at an address that only the service knows.
            Ok(Delivery::Handshake(_)) if shared => {}
            Ok(Delivery::Handshake(Handshake::Text(text))) => return Ok(Some(Reply::text("text/plain", text))),
            Ok(Delivery::Handshake(Handshake::Secret(secret))) => {
                let secret = HookSecret { secret, ..HookSecret::default() }.to_secret();
                let as_of_now = deps.registry.hooks.get(hook.organization_id, hook.id).await?;
                if as_of_now.status == HookStatus::Pending && as_of_now.secrets.is_empty() {
                    deps.registry.add_secret(&as_of_now, &secret, true, None, deadline).await?;
                    return done_for(Scheme::Notion).map(Some);
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

/// Dispatches each event. All are tried, even after a failure; the time for their filters is the request's.
async fn dispatch_all(deps: &Deps, events: &[(Hook, InboundEvent)]) -> Result<()> {
    let work = Dispatch::work();
    let mut dispatched: Vec<BoxFuture<'_, Result<()>>> = Vec::with_capacity(events.len());
    for (hook, event) in events {
        dispatched.push(Box::pin(dispatch::dispatch(deps, hook, event, &work)));
        dispatched.push(Box::pin(texts::take_from_hook(deps, hook, event, &work)));
    }
    let outcomes: Vec<Result<()>> = stream::iter(dispatched).buffer_unordered(BESIDE).collect().await;
    outcomes.into_iter().collect()
}

fn done_for(scheme: Scheme) -> Result<Reply> {
    // Anything but TwiML is an error in Twilio's log.
    if scheme == Scheme::Twilio {
        return Ok(Reply::text("text/xml", "<Response/>".to_owned()));
    }
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

/// Whether an event's claimed tenant is the hook's. A hook's secret proves nothing about other tenants.
fn is_for(hook: &Hook, tenant: Option<&String>) -> bool {
    hook.tenant_key.is_none() || hook.tenant_key.as_ref() == tenant
}

async fn end(deps: &Deps, hook: &Hook) -> Result<()> {
    let hook = deps.registry.hooks.get(hook.organization_id, hook.id).await?;
    let change = HookChange { status: HookStatus::Ended, ..HookChange::none(&hook) };
    deps.registry.hooks.change(&hook, change, None, None).await?;
    tracing::info!(hook.id = %hook.id, "a service has revoked access: the hook is closed");
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
                tracing::warn!("Google's keys could not be read: {}", error::chain(unknown));
            })
        }
        _ => Ok(None),
    }
}

/// The address that the request came from.
fn sender(request: &Request) -> Option<IpAddr> {
    let RequestContext::ApiGatewayV2(context) = request.request_context_ref()? else { return None };
    context.http.source_ip.as_ref()?.parse().ok()
}
