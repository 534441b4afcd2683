//! Events as their organization is shown them.

use lambda_http::RequestExt;
use serde::Serialize;
use serde_json::Value;
use shared::{
    Error, Result,
    http::{self, Reply, Request},
    models::{AutomationId, Event, EventId, EventStatus, HookId, MatchedRun, OrganizationId, Timestamp, Unmatched},
    redaction::Transcript,
};

use crate::Deps;

/// What is shown of an event's content, and of a reason, in bytes.
const DATA_BUDGET: usize = 16_384;
const REASON_BUDGET: usize = 1_000;

#[derive(Serialize)]
struct EventView {
    id: EventId,
    organization_id: OrganizationId,
    hook_id: HookId,
    service: String,
    event_type: String,
    status: EventStatus,
    /// The runs that it began.
    matched: Vec<MatchedRun>,
    /// Automations that listen to it and did not run.
    unmatched: Vec<Unmatched>,
    /// Automations that listen to it and are looked at later, for that takes long.
    waiting: Vec<AutomationId>,
    /// Why it began nothing, if no automation could say so.
    why: Option<&'static str>,
    created_at: Timestamp,
}

#[derive(Serialize)]
struct WholeEventView {
    #[serde(flatten)]
    event: EventView,
    data: Value,
}

impl From<Event> for EventView {
    fn from(event: Event) -> Self {
        let transcript = Transcript::default();
        let why = match event.status {
            EventStatus::Received if !event.waiting.is_empty() => Some(
                "The filters of the automations in waiting compare much, which takes long: they are looked at from a queue.",
            ),
            EventStatus::Received => Some("It has not been dispatched; the service sends it again."),
            EventStatus::Dispatched if event.matched.is_empty() && event.unmatched.is_empty() => {
                Some("No active automation listens to this event.")
            }
            EventStatus::Dispatched => None,
        };
        // It may quote the event.
        let shown =
            |unmatched: Unmatched| Unmatched { why: transcript.text(&unmatched.why, REASON_BUDGET), ..unmatched };
        Self {
            id: event.id,
            organization_id: event.organization_id,
            hook_id: event.hook_id,
            service: event.service,
            event_type: event.event_type,
            status: event.status,
            matched: event.matched,
            unmatched: event.unmatched.into_iter().map(shown).collect(),
            waiting: event.waiting,
            why,
            created_at: event.created_at,
        }
    }
}

pub(crate) async fn page(deps: &Deps, organization: OrganizationId, request: &Request) -> Result<Reply> {
    let (limit, cursor) = http::page(request)?;
    let query = request.query_string_parameters();
    let page = match query.first("matched").filter(|text| !text.is_empty()) {
        None => deps.events.page(organization, cursor.as_ref(), limit).await?,
        Some("false") => deps.events.page_of_unmatched(organization, cursor.as_ref(), limit).await?,
        Some(_) => return Err(Error::invalid("matched", "must be false, or left out")),
    };
    Reply::ok(&page.map(EventView::from))
}

pub(crate) async fn one(deps: &Deps, organization: OrganizationId, id: EventId) -> Result<Reply> {
    let event = deps.events.get(organization, id).await?;
    let data: Value = serde_json::from_str(&event.data).unwrap_or(Value::Null);
    let data = Transcript::default().result(&[], &data, DATA_BUDGET);
    Reply::ok(&WholeEventView { event: event.into(), data })
}
