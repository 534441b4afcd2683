//! Wakes the runs that wait for an event.
//!
//! The waits are looked up beside the listening automations. The first event that matches ends a wait. When that event is
//! delivered again it wakes the run again, because the message may have been lost; the run takes the event's data once.

use futures_util::future::{BoxFuture, try_join_all};

use super::{
    dispatch::{Became, Dispatch, Held, LARGEST_DATA, LONGEST_REASON, if_readable, is_tried_again, note},
    matching::{Matched, holds_for_wait},
};
use crate::{
    Result, cut,
    models::{Event, EventWait, MatchedRun, Unmatched},
};

impl Dispatch {
    pub(super) async fn waiting_runs(&self, event: &Event) -> Result<Vec<EventWait>> {
        let keys = event.trigger_keys();
        let mut asked: Vec<BoxFuture<'_, Result<Vec<EventWait>>>> = Vec::with_capacity(keys.len());
        for key in &keys {
            asked.push(Box::pin(self.starter.queue.runs.waits.waiting(key)));
        }
        Ok(try_join_all(asked).await?.into_iter().flatten().collect())
    }

    /// Gives the event to a waiting run and queues the run, if the wait's filter matches.
    pub(super) async fn wake(&self, held: &Held<'_>, wait: &EventWait) -> Result<Became> {
        let Held { event, data, size, work } = *held;
        let queue = &self.starter.queue;
        let EventWait { automation_id, run_id, .. } = *wait;
        let nothing = |why: String| {
            let why = cut::cut(format!("The run {run_id} waits for another event. {why}"), LONGEST_REASON);
            Ok(Became::Nothing(Unmatched { automation_id, why }))
        };
        if wait.taken_by != Some(event.id) {
            if wait.taken_by.is_some() {
                return nothing("Another event came first.".to_owned());
            }
            match holds_for_wait(wait, data, work)? {
                Matched::Yes if size > LARGEST_DATA => {
                    return nothing(format!("This one has {} KB, and a run is given 200 KB at most.", size / 1_000));
                }
                Matched::Yes => {}
                Matched::No(why) => return nothing(why),
                Matched::NotYet if size > LARGEST_DATA => {
                    return nothing("The filter was not evaluated: the event is too large.".to_owned());
                }
                Matched::NotYet => return Ok(Became::WaitsForTurn),
            }
            if !queue.runs.waits.give(wait, event, data.value()).await? {
                return nothing("Another event came first, or the wait was over.".to_owned());
            }
        }
        queue.wake(event.organization_id, run_id).await?;
        Ok(Became::Woke(MatchedRun { automation_id, run_id }))
    }

    /// Evaluates the filters that were too much work, or unreadable, before the answer. Filters beyond the work of `held` end with
    /// a reason, unreadable ones after a day.
    pub(super) async fn wake_later(&self, held: &Held<'_>, done: &mut Event) -> Result<()> {
        let waits = self.waiting_runs(held.event).await?;
        for wait in waits.iter().filter(|wait| wait.created_at <= held.event.created_at) {
            let EventWait { automation_id, run_id, .. } = *wait;
            if done.woke.iter().any(|woken| woken.run_id == run_id) {
                continue;
            }
            let not_evaluated = |why: &str| {
                let why = format!("The run {run_id} waits for an event, but its filter was not evaluated: {why}");
                Became::Nothing(Unmatched { automation_id, why })
            };
            let became = if held.event.in_part {
                not_evaluated("the event is too large.")
            } else {
                match if_readable(self.wake(held, wait).await)? {
                    None if is_tried_again(held.event) => Became::WaitsForTurn,
                    None => not_evaluated("it cannot be read."),
                    Some(Became::WaitsForTurn) => not_evaluated("it compares too much. Use fewer clauses or values."),
                    Some(became) => became,
                }
            };
            note(done, became);
        }
        Ok(())
    }
}
