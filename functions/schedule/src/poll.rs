//! Polls a source and starts runs for new items.
//!
//! Runs start before the seen items are saved: after a crash an item is new again, and its run is the same. A run for several
//! items is named by these items, so they are saved before it starts.

use std::time::Duration;

use serde_json::{Value, json};
use shared::{
    Deadline, Error, Result,
    automation::{
        Data, Definition, ERROR_BUDGET, Lowered, MOST_COMPARED, OverBound, PauseCause, PolledItem, Polling, RunCause,
        SourceAnswer, items_together, next_poll,
    },
    models::{Automation, AutomationVersion, PollCursor, RunId, RunTrigger, Schedule, Timestamp, Validators},
    redaction::redacted,
};

use crate::Deps;

/// The wait if more items are left than one poll takes.
const SOON: Duration = Duration::from_secs(60);

/// The source of a polled automation.
pub(crate) struct Source<'a> {
    pub(crate) automation: &'a Automation,
    pub(crate) version: &'a AutomationVersion,
    pub(crate) definition: &'a Definition,
    pub(crate) polling: &'a Polling,
}

/// Polls the source, starts the runs, and makes the next poll.
pub(crate) async fn poll(
    deps: &Deps,
    source: &Source<'_>,
    schedule: Schedule,
    now: Timestamp,
    deadline: Deadline,
) -> Result<()> {
    let Source { automation, version, definition, polling } = source;
    let organization = automation.organization_id;
    let person = match &automation.activated_by {
        Some(user) => deps.starter.members.person(organization, user).await?,
        None => json!({}),
    };
    let known = (&person, schedule.cursor.as_ref());
    let asked = deps.deployment.ask_source(automation, version, (definition, polling), known, deadline);
    // An early poll does not bring the next one forward.
    let base = schedule.next_run_at.map_or(now, |at| at.max(now));
    match Box::pin(asked).await? {
        SourceAnswer::Gone(reason) => {
            let due = format!("schedule {base}");
            let cause = PauseCause::NoRun(RunId::of_cause(organization, automation.id, &due));
            let version = (automation.id, automation.active_version);
            deps.watch.pause_for(organization, version, &reason, cause).await?;
            Box::pin(deps.triggers.update_schedule(organization, automation.id)).await
        }
        SourceAnswer::Failed(sentence) => {
            let failures = schedule.failures.saturating_add(1);
            tracing::warn!(automation.id = %automation.id, failures, "a polled source could not be read");
            // It may quote the source, and the row does not expire.
            let last_error = Some(redacted(&sentence, ERROR_BUDGET));
            let failed = Schedule { failures, last_error, last_poll: Some(now), ..schedule };
            let next = next_poll(automation.id, polling.polling_interval_minutes, failures, base);
            deps.triggers.arm(failed, Some(next), now).await.map(drop)
        }
        SourceAnswer::Unchanged => {
            let polled = Schedule {
                last_poll: Some(now),
                last_run_at: schedule.next_run_at,
                failures: 0,
                last_error: None,
                ..schedule
            };
            let next = next_poll(automation.id, polling.polling_interval_minutes, 0, base);
            deps.triggers.arm(polled, Some(next), now).await.map(drop)
        }
        SourceAnswer::Items { items, source: told_by, account, validators } => {
            let answered = Answered { items, told_by, account, validators };
            take(deps, source, &person, schedule, answered, now).await
        }
    }
}

/// The items of an answer, the hashes of what identifies them and of the account, and the answer's validators.
struct Answered {
    items: Vec<PolledItem>,
    told_by: String,
    account: Option<String>,
    validators: Option<Validators>,
}

async fn take(
    deps: &Deps,
    source: &Source<'_>,
    person: &Value,
    mut schedule: Schedule,
    Answered { items, told_by, account, validators }: Answered,
    now: Timestamp,
) -> Result<()> {
    let Source { automation, polling, .. } = source;
    let scheduled_for = schedule.next_run_at;
    let base = scheduled_for.map_or(now, |at| at.max(now));
    let known = schedule.cursor.clone().filter(|cursor| cursor.is_of(&told_by, account.as_deref()));
    let first = known.is_none();
    let cursor = known.unwrap_or_else(|| {
        let follows_another = schedule.cursor.as_ref().is_some_and(|before| before.source == told_by);
        PollCursor { source: told_by, account: account.clone(), follows_another, ..PollCursor::default() }
    });
    let account = account.or_else(|| cursor.account.clone());
    let begun = !cursor.pending.is_empty();
    let latest = polling.aggregation_mode == "latest";
    let all = if latest && !begun { items.clone() } else { Vec::new() };
    let mut poll = if begun { cursor.poll_pending(items) } else { cursor.poll(items, first) };
    let (mut wanted, mut undecided): (Vec<&PolledItem>, usize) = (Vec::new(), 0);
    for item in &poll.new {
        match holds(source, person, &item.value, now) {
            Ok(true) => wanted.push(item),
            Ok(false) => {}
            Err(OverBound) => undecided += 1,
        }
    }
    match polling.aggregation_mode {
        _ if wanted.is_empty() => {}
        "per_item" if !begun => {
            for item in wanted {
                start(deps, automation, (&cursor.key_of(item), &item.value), scheduled_for).await?;
            }
        }
        "latest" if !begun => {
            if let Some(item) = wanted.first() {
                start(deps, automation, (&cursor.key_of(item), &item.value), scheduled_for).await?;
                // All other items are old.
                poll.cursor = cursor.poll(all, true).cursor;
                poll.more = false;
            }
        }
        mode => {
            let pending = if begun {
                cursor
            } else {
                let pending = poll.new.iter().map(|item| item.id.clone()).collect();
                let pending = PollCursor { pending, validators: None, ..cursor };
                let begun = Schedule { cursor: Some(pending.clone()), ..schedule };
                let Some(saved) = deps.schedules.save(&begun).await? else { return Ok(()) };
                schedule = saved;
                pending
            };
            let together = items_together(wanted, mode == "summary");
            start(deps, automation, (&pending.key_of_pending(), &together), scheduled_for).await?;
        }
    }
    let last_error = left_out(poll.too_large, undecided);
    // An unchanged answer would hide the items that are left.
    let validators = validators.filter(|_| !poll.more);
    let polled = Schedule {
        cursor: Some(PollCursor { account, validators, ..poll.cursor }),
        last_poll: Some(now),
        last_run_at: scheduled_for,
        failures: 0,
        last_error,
        ..schedule
    };
    let next =
        if poll.more { now.plus(SOON) } else { next_poll(automation.id, polling.polling_interval_minutes, 0, base) };
    deps.triggers.arm(polled, Some(next), now).await.map(drop)
}

/// The new items that start no run, in words.
fn left_out(too_large: usize, undecided: usize) -> Option<String> {
    let large = format!("{too_large} of the new items had more than 200 KB and were left out.");
    let most = MOST_COMPARED / 1_000_000;
    let slow = format!(
        "{undecided} of the new items were left out: the filter compares more than {most} MB with each of them. Use fewer clauses or values."
    );
    let sentences = [(too_large, large), (undecided, slow)];
    let told: Vec<String> =
        sentences.into_iter().filter(|(count, _)| *count > 0).map(|(_, sentence)| sentence).collect();
    (!told.is_empty()).then(|| told.join(" "))
}

/// Whether the automation's filter accepts the item.
fn holds(source: &Source<'_>, person: &Value, item: &Value, now: Timestamp) -> Result<bool, OverBound> {
    let Some(filter) = &source.polling.filter else { return Ok(true) };
    let item = Lowered::of(item);
    let data = Data::of_trigger(&source.definition.variables, &item, person, now);
    data.explain(filter).map(|explained| explained.holds)
}

async fn start(
    deps: &Deps,
    automation: &Automation,
    (key, trigger_data): (&str, &Value),
    scheduled_for: Option<Timestamp>,
) -> Result<()> {
    let cause = RunCause { scheduled_for, ..RunCause::new(RunTrigger::Polling, key, trigger_data) };
    match Box::pin(deps.starter.start(automation, &cause)).await {
        Ok((run, true)) => tracing::info!(automation.id = %automation.id, run.id = %run.id, "a poll started a run"),
        Ok((_, false)) => {}
        // Another attempt would end in the same way, and the source's other items wait for it.
        Err(Error::Conflict(why)) => {
            tracing::warn!(automation.id = %automation.id, "a poll's item began no run: {why}");
        }
        Err(error) => return Err(error),
    }
    Ok(())
}
