//! The same steps on the real store.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};
use shared::{
    Deadline,
    idempotency::{Idempotency, Key, Outcome, Ticket},
    models::{
        ActionResult, AutomationRun, OrganizationId, RunId, RunLimits, RunPlan, RunStatus, RunTrigger, Spent, Timestamp,
    },
    store::{AcquiredRun, AutomationRuns, Database, Lease, RunEnd, Saved, SavedStep},
};
use tests::{
    Aws, Template,
    aws::{TABLE_PREFIX, sdk_config},
};

use super::{ACTIONS, Action, Claim, INVOCATIONS, Phase, Runs, State, Status};
use crate::walks::Walk;

const WALKS: u64 = 60;
const LONGEST: usize = 40;
const LEASE: Duration = Duration::from_secs(60);

pub(super) struct Real {
    aws: Aws,
    runs: AutomationRuns,
    claims: Idempotency,
    organization: OrganizationId,
}

#[derive(Default)]
struct Invocation {
    held: Option<(AutomationRun, Lease)>,
    ticket: Option<Ticket>,
}

/// One run, and the invocations that work on it.
struct Work<'a> {
    real: &'a Real,
    id: RunId,
    keys: [Key; ACTIONS],
    invocations: [Invocation; INVOCATIONS],
    holders: BTreeMap<String, usize>,
}

/// What the model and the store must agree in: status, lease, cancellation, results, claims.
type Seen = (Status, Option<(usize, bool)>, bool, usize, [Claim; ACTIONS]);

impl Real {
    pub(super) fn start() -> Self {
        let aws = Aws::start(&Template::read());
        let database = Database::connect(&sdk_config(&aws.url), TABLE_PREFIX);
        Self {
            runs: AutomationRuns::new(&database),
            claims: Idempotency::new(&database, Duration::from_secs(3600)),
            organization: OrganizationId::generate(),
            aws,
        }
    }

    /// The first difference between a walk and the store.
    pub(super) async fn differs(&self, walk: &Walk<Runs>) -> Option<String> {
        let id = RunId::generate();
        let kept = Timestamp::now().plus(Duration::from_secs(3600)).as_seconds();
        let run = AutomationRun::queued(id, self.organization, RunTrigger::Manual, RunLimits::default(), kept);
        assert!(self.runs.create_planned(&run, &RunPlan::default()).await.expect("the run is new"));
        let keys = [0, 1].map(|action: usize| Key::new(&[&id.to_string()], &json!(action)));
        let mut work = Work { real: self, id, keys, invocations: Default::default(), holders: BTreeMap::new() };
        let (mut before, mut difference) = (&walk.start, None);
        for (number, (action, after)) in walk.steps.iter().enumerate() {
            let answered_so = work.take(*action, before, after).await;
            let expected = (after.status, after.lease, after.cancel_requested, after.journal, after.claims);
            let seen = work.seen();
            if seen != expected || !answered_so {
                let taken: Vec<&Action> = walk.steps[..=number].iter().map(|(action, _)| action).collect();
                let answer = if answered_so { "" } else { ", and another answer" };
                difference = Some(format!("{taken:?}: the store has {seen:?}{answer}, the model {expected:?}"));
                break;
            }
            before = after;
        }
        for part in work.parts() {
            self.aws.delete_part("automation_runs", &id.to_string(), part["part"].as_str().unwrap());
        }
        for key in &work.keys {
            self.aws.delete("idempotency", key.as_str());
        }
        difference
    }
}

impl Work<'_> {
    fn parts(&self) -> Vec<Value> {
        let id = self.id.to_string();
        self.real.aws.rows("automation_runs").into_iter().filter(|row| row["id"] == id.as_str()).collect()
    }

    fn row(&self) -> Value {
        self.parts().into_iter().find(|part| part["part"] == "run").expect("the run's row")
    }

    fn seen(&self) -> Seen {
        let parts = self.parts();
        let row = parts.iter().find(|part| part["part"] == "run").expect("the run's row");
        let status = match row["status"].as_str() {
            Some("queued") => Status::Queued,
            Some("running") => Status::Running,
            Some("completed") => Status::Completed,
            Some("cancelled") => Status::Cancelled,
            other => panic!("{other:?}"),
        };
        let now = Timestamp::now().as_millis();
        let lease = row["lease_token"].as_str().map(|token| {
            let holder = self.holders.get(token).copied().expect("an invocation acquired it");
            (holder, row["lease_until"].as_i64().unwrap() < now)
        });
        let results = parts.iter().filter(|part| part["part"].as_str().unwrap().ends_with("#action")).count();
        let claims = self.keys.each_ref().map(|key| {
            let claim = self.real.aws.row("idempotency", key.as_str());
            match claim.as_ref().and_then(|claim| claim["status"].as_str()) {
                None => Claim::Free,
                Some("in_progress") => Claim::InProgress,
                Some("completed") => Claim::Completed,
                Some(_) => Claim::Unknown,
            }
        });
        (status, lease, row["cancel_requested_at"].is_string(), results, claims)
    }

    /// False if the store answers otherwise than the model.
    async fn take(&mut self, action: Action, before: &State, after: &State) -> bool {
        let Real { aws, runs, claims, organization } = self.real;
        match action {
            Action::Acquire(invocation) => {
                match runs.acquire(*organization, self.id, LEASE).await.expect("the store answers") {
                    AcquiredRun::Ours(run, lease) => {
                        self.holders.insert(self.row()["lease_token"].as_str().unwrap().to_owned(), invocation);
                        self.invocations[invocation].held = Some((*run, lease));
                        return after.invocations[invocation] != Phase::Handled;
                    }
                    AcquiredRun::Busy | AcquiredRun::Over => return after.invocations[invocation] == Phase::Handled,
                }
            }
            Action::Claim(invocation) => {
                let Phase::Claim(action) = before.invocations[invocation] else { panic!("{before:?}") };
                let key = &self.keys[action];
                if before.claims[action] == Claim::InProgress {
                    aws.change("idempotency", key.as_str(), json!({"lease_until": 1}));
                }
                let at_once = Deadline::after(Duration::ZERO);
                let claimed =
                    claims.claim(key, Some("its place").into(), LEASE, at_once).await.expect("the store answers");
                self.invocations[invocation].ticket = claimed.mine();
                let acts = after.invocations[invocation] == Phase::Act(action);
                return self.invocations[invocation].ticket.is_some() == acts;
            }
            Action::Record(invocation) => {
                if let Some(ticket) = self.invocations[invocation].ticket.take() {
                    let outcome = Outcome::Completed(json!({"sent": true}));
                    claims.record(ticket, outcome).await.expect("the outcome is recorded");
                }
            }
            Action::Save(invocation) => {
                let Phase::Save(action) = before.invocations[invocation] else { panic!("{before:?}") };
                let (run, lease) = self.invocations[invocation].held.as_ref().expect("it held the lease");
                let result = result(action);
                let saved = runs.save(run, lease, SavedStep::Action(&result), &Spent::default()).await;
                let expected = match after.invocations[invocation] {
                    Phase::Handled => Saved::Lost,
                    Phase::End(Status::Cancelled, _) => Saved::CancelRequested,
                    _ => Saved::Yes,
                };
                return saved.expect("the store answers") == expected;
            }
            Action::End(invocation) => {
                let Phase::End(status, unsaved) = before.invocations[invocation] else { panic!("{before:?}") };
                let (run, lease) = self.invocations[invocation].held.take().expect("it held the lease");
                let last = unsaved.map(result);
                let status = match status {
                    Status::Cancelled => RunStatus::Cancelled,
                    _ => RunStatus::Completed,
                };
                let end = RunEnd { status, result: None, error: None, outage: false };
                let last: Vec<_> = last.iter().map(SavedStep::Action).collect();
                runs.end(&run, lease, &last, &Spent::default(), end).await.expect("the store answers");
            }
            Action::Return(invocation) | Action::Crash(invocation) => {
                self.invocations[invocation] = Invocation::default();
            }
            Action::EndLease => {
                let mut row = self.row();
                row["lease_until"] = json!(1);
                aws.put("automation_runs", &row);
            }
            Action::Cancel => {
                let cancelled = runs.cancel(*organization, self.id, None).await.expect("it is not over");
                return (cancelled.status == RunStatus::Cancelled) == (after.status == Status::Cancelled);
            }
            Action::Receive(_) | Action::Succeed(..) | Action::Queue(_) | Action::Act(_) => {}
        }
        true
    }
}

fn result(action: usize) -> ActionResult {
    let result = json!({
        "index": action, "action_id": format!("action_{}", action + 1), "tool": "send_message", "status": "succeeded",
        "started_at": Timestamp::now(), "duration_ms": 1,
    });
    serde_json::from_value(result).expect("a result")
}

#[tokio::test]
async fn the_store_takes_the_same_steps() {
    let real = Real::start();
    for seed in 0..WALKS {
        let difference = real.differs(&Walk::new(&Runs::default(), seed, LONGEST)).await;
        assert_eq!(difference, None, "seed {seed}");
    }
}
