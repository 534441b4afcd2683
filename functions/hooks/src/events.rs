//! Events as their organization sees them.

use std::str::FromStr;

use serde::Serialize;
use serde_json::Value;
use shared::{
    Result,
    described::Described,
    http::{Asked, Asks, Id, Newest, Shown, Wanted, operation},
    models::{
        AutomationId, Event, EventId, EventStatus, HookId, MatchedRun, OrganizationId, Role, Timestamp, Unmatched,
        folded_name,
    },
    redaction::Transcript,
    store::{EventFilter, Page},
};

use crate::Deps;

/// Bytes of the displayed content, and of a reason.
const DATA_BUDGET: usize = 16_384;
const REASON_BUDGET: usize = 1_000;

#[derive(Serialize, Described)]
pub(crate) struct EventView {
    id: EventId,
    organization_id: OrganizationId,
    /// Null for an event of our own, such as the end of a call, and below admin: it is part of the hook's address.
    hook_id: Option<HookId>,
    service: String,
    /// The most precise name it has: `issues.opened`.
    event_type: String,
    /// `received`: automations in `waiting` have their turn, or the service sends it again.
    status: EventStatus,
    /// The runs that it began.
    matched: Vec<MatchedRun>,
    /// Runs that waited for it and go on; at most 100 are listed.
    woke: Vec<MatchedRun>,
    /// Automations that listen to it and did not run, and those of runs that wait for another one.
    unmatched: Vec<Unmatched>,
    /// Automations that listen to it and are tried later: there are many, or their filters are slow.
    waiting: Vec<AutomationId>,
    /// Why it began nothing, if no automation could say so.
    why: Option<&'static str>,
    created_at: Timestamp,
}

#[derive(Serialize, Described)]
pub(crate) struct WholeEventView {
    #[serde(flatten)]
    event: EventView,
    /// The event's data.
    data: Value,
}

impl EventView {
    fn of(event: Event, reader: Role) -> Self {
        let transcript = Transcript::default();
        let why = match event.status {
            EventStatus::Received if !event.waiting.is_empty() || event.has_waits => Some(
                "Many automations listen to this event, or their filters are slow or cannot be read yet: they are tried from a queue.",
            ),
            EventStatus::Received if event.hook_id.is_none() => {
                Some("It has not been dispatched; that is tried again.")
            }
            EventStatus::Received => Some("It has not been dispatched; the service sends it again."),
            EventStatus::Dispatched
                if event.matched.is_empty() && event.woke.is_empty() && event.unmatched.is_empty() =>
            {
                Some("No active automation listens to this event.")
            }
            EventStatus::Dispatched => None,
        };
        // The reason may quote the event.
        let shown =
            |unmatched: Unmatched| Unmatched { why: transcript.text(&unmatched.why, REASON_BUDGET), ..unmatched };
        Self {
            id: event.id,
            organization_id: event.organization_id,
            hook_id: event.hook_id.filter(|_| reader >= Role::Admin),
            service: event.service,
            event_type: event.event_type,
            status: event.status,
            matched: event.matched,
            unmatched: event.unmatched.into_iter().map(shown).collect(),
            waiting: event.waiting,
            woke: event.woke,
            why,
            created_at: event.created_at,
        }
    }
}

/// Events that started nothing.
pub(crate) struct Unanswered;

shared::described!(Unanswered => {"enum": ["false"]});

impl FromStr for Unanswered {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "false" { Ok(Self) } else { Err("must be false, or left out") }
    }
}

impl Asks for Unanswered {
    const NAME: &'static str = "matched";
    const DOC: &'static str = "Only events that started nothing.";
}

/// A service's name in any spelling.
pub(crate) struct OfService(String);

shared::described!(OfService => {"type": "string", "maxLength": 100});

impl FromStr for OfService {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let service = folded_name(text);
        if service.is_empty() || text.len() > 100 { Err("must be the name of a service") } else { Ok(Self(service)) }
    }
}

impl Asks for OfService {
    const NAME: &'static str = "service";
    const DOC: &'static str = "Only events of this service; its name in any spelling.";
}

/// List events
///
/// Newest first, with their runs; with `matched=false` only events without a run, with `automation_id` only events that
/// started this automation or to which it listens.
///
/// - 200: A page of events.
#[operation(GET "/api/{slug}/events", Viewer)]
pub(crate) async fn list_events(
    deps: &Deps,
    asked: &Asked<'_>,
    page: Newest,
    matched: Wanted<Unanswered>,
    service: Wanted<OfService>,
    automation: Wanted<AutomationId>,
) -> Result<Page<EventView>> {
    let wanted = EventFilter {
        unmatched: matched.0.is_some(),
        service: service.0.map(|OfService(service)| service),
        automation: automation.0,
    };
    let page = deps.events.page(asked.organization(), &page.0, &wanted).await?;
    Ok(page.map(|event| EventView::of(event, asked.member.role)))
}

/// Show an event
///
/// With its redacted data.
///
/// - 200: The event.
#[operation(GET "/api/{slug}/events/{id}", Viewer)]
pub(crate) async fn get_event(deps: &Deps, asked: &Asked<'_>, id: Id<EventId>) -> Result<Shown<WholeEventView>> {
    let event = deps.events.get(asked.organization(), id.0).await?;
    let data: Value = serde_json::from_str(&event.data).unwrap_or(Value::Null);
    let data = Transcript::default().result(&[], &data, DATA_BUDGET);
    Ok(Shown(WholeEventView { event: EventView::of(event, asked.member.role), data }))
}
