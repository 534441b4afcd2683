//! From an event to the runs that it begins.
//!
//! The event is noted first, under an id made of the hook and of the service's own id for it. Each run's id is made of the
//! automation and the event, so whatever is repeated after a fault begins nothing twice. When every run is begun the row says
//! so, and the event is done with however often it comes.

use std::collections::BTreeSet;

use futures_util::{
    StreamExt,
    future::{BoxFuture, try_join_all},
    stream,
};
use serde_json::Value;
use shared::{
    Error, Result,
    automation::{DoesNotRun, RunCause},
    cut,
    models::{
        Automation, AutomationStatus, Event, EventId, EventStatus, Hook, MatchedRun, OrganizationId, RunTrigger,
        Timestamp, Unmatched,
    },
    webhooks::InboundEvent,
};

use crate::Deps;

/// Of what an event says, in bytes of JSON: so much fits into a row beside everything else, an event's or a run's.
const LARGEST_DATA: usize = 200_000;
/// Automations that an event is held against beside each other.
const BESIDE: usize = 8;
/// Of those that did not run, whose reasons are kept, and bytes of a reason.
const MOST_REASONS: usize = 100;
const LONGEST_REASON: usize = 1_000;

pub(crate) async fn dispatch(deps: &Deps, hook: &Hook, inbound: &InboundEvent) -> Result<()> {
    let only = match hook.automation_id {
        Some(automation) => match deps.filters.automations.get(hook.organization_id, automation).await {
            Ok(automation) => Some(automation),
            // It was deleted, and what was deployed for it goes, too.
            Err(Error::NotFound(_)) => return Ok(()),
            Err(error) => return Err(error),
        },
        None => None,
    };
    // Filters and runs see what came; only what is shown of it later is cut.
    let event = noted(deps, hook, only.as_ref(), inbound);
    if let Some(earlier) = deps.events.receive(&event).await?
        && earlier.status == EventStatus::Dispatched
    {
        return Ok(());
    }
    let listening = match only {
        Some(automation) => vec![automation],
        None => listening(deps, hook.organization_id, &hook.service, &inbound.event_types).await?,
    };
    let (matched, unmatched) = start(deps, &event, &inbound.data, &listening).await?;
    deps.events.dispatched(&event, &matched, &unmatched).await
}

/// The event's row as it begins.
fn noted(deps: &Deps, hook: &Hook, only: Option<&Automation>, inbound: &InboundEvent) -> Event {
    let now = Timestamp::now();
    // `<organization>#linear#issue.created`
    let listens = only.and_then(|automation| automation.trigger_key.as_ref()?.split_once('#')?.1.split_once('#'));
    let (service, event_type) = match listens {
        Some((service, event_type)) => (service.to_owned(), event_type.to_owned()),
        None => (hook.service.clone(), inbound.event_types.first().cloned().unwrap_or_default()),
    };
    Event {
        id: EventId::of_delivery(hook.organization_id, hook.id, &inbound.id_at_service),
        organization_id: hook.organization_id,
        hook_id: hook.id,
        service,
        event_type,
        data: cut::fit(inbound.data.clone(), LARGEST_DATA).to_string(),
        status: EventStatus::Received,
        matched: Vec::new(),
        unmatched: Vec::new(),
        created_at: now,
        updated_at: now,
        expires_at: now.plus(deps.kept).as_seconds(),
    }
}

/// The active automations that an event is for, by each of its names; each once.
async fn listening(
    deps: &Deps,
    organization: OrganizationId,
    service: &str,
    event_types: &[String],
) -> Result<Vec<Automation>> {
    let keys: Vec<String> =
        event_types.iter().map(|name| Automation::trigger_key_of(organization, service, name)).collect();
    let mut asked: Vec<BoxFuture<'_, Result<Vec<Automation>>>> = Vec::with_capacity(keys.len());
    for key in &keys {
        asked.push(Box::pin(deps.filters.automations.listening(organization, key)));
    }
    let mut seen = BTreeSet::new();
    let found = try_join_all(asked).await?.into_iter().flatten();
    Ok(found.filter(|automation| seen.insert(automation.id)).collect())
}

/// Begins a run of each automation whose filter lets the event through.
async fn start(
    deps: &Deps,
    event: &Event,
    data: &Value,
    listening: &[Automation],
) -> Result<(Vec<MatchedRun>, Vec<Unmatched>)> {
    let mut started: Vec<BoxFuture<'_, Result<Result<MatchedRun, DoesNotRun>>>> = Vec::with_capacity(listening.len());
    for automation in listening {
        started.push(Box::pin(start_one(deps, event, data, automation)));
    }
    // All are tried, whatever becomes of one.
    let outcomes: Vec<_> = stream::iter(started).buffered(BESIDE).collect().await;
    let (mut matched, mut unmatched) = (Vec::new(), Vec::new());
    for (automation_id, outcome) in listening.iter().map(|automation| automation.id).zip(outcomes) {
        match outcome? {
            Ok(run) => matched.push(run),
            Err(DoesNotRun(why)) => unmatched.push(Unmatched { automation_id, why: cut::cut(why, LONGEST_REASON) }),
        }
    }
    unmatched.truncate(MOST_REASONS);
    Ok((matched, unmatched))
}

async fn start_one(
    deps: &Deps,
    event: &Event,
    data: &Value,
    automation: &Automation,
) -> Result<Result<MatchedRun, DoesNotRun>> {
    if automation.status != AutomationStatus::Active {
        return Ok(Err(DoesNotRun("It is not active.".to_owned())));
    }
    if let Err(refused) = deps.filters.check(automation, data).await? {
        return Ok(Err(refused));
    }
    let size = data.to_string().len();
    if size > LARGEST_DATA {
        let why =
            format!("Its filter holds, but the event has {} KB, and a run is given 200 KB at most.", size / 1_000);
        return Ok(Err(DoesNotRun(why)));
    }
    let key = event.id.to_string();
    let cause = RunCause {
        trigger: RunTrigger::Webhook,
        key: &key,
        trigger_data: data,
        event: Some(event.id),
        scheduled_for: None,
        user: None,
        version: None,
        dry_run: false,
    };
    match deps.starter.start(automation, &cause).await {
        Ok((run, _)) => Ok(Ok(MatchedRun { automation_id: automation.id, run_id: run.id })),
        // It will not do when the event comes again, either.
        Err(error @ (Error::Conflict(_) | Error::OverBudget(_))) => {
            Ok(Err(DoesNotRun(format!("No run was begun: {error}."))))
        }
        Err(error) => Err(error),
    }
}
