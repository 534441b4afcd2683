//! A run of two actions and its journal: `functions/run-loop` and `shared/src/store/automation_runs.rs`.
//!
//! Messages come at least once, and two invocations may work at the same time. Each can die at any step, and its lease can run
//! out at any moment, also while it works. Each action has an effect under a claim, whose own model is `claim.rs`: here it is
//! one step, and an invocation that dies with it leaves an outcome that is unknown.

mod real;

use stateright::{Model, Property};

use super::{check, counterexample};

pub(crate) const INVOCATIONS: usize = 2;
pub(crate) const ACTIONS: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Status {
    Queued,
    Running,
    Completed,
    Cancelled,
}

impl Status {
    const fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Cancelled)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Claim {
    Free,
    InProgress,
    Completed,
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    Idle,
    /// It has a message, which comes again unless it is handled.
    Queue,
    Acquire,
    Claim(usize),
    Act(usize),
    Record(usize),
    Save(usize),
    /// With a result that is not stored yet.
    End(Status, Option<usize>),
    Handled,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) status: Status,
    /// The invocation whose token the row has, and whether its time is over.
    pub(crate) lease: Option<(usize, bool)>,
    pub(crate) cancel_requested: bool,
    /// The results that are stored, in their order.
    pub(crate) journal: usize,
    pub(crate) claims: [Claim; ACTIONS],
    pub(crate) invocations: [Phase; INVOCATIONS],
    /// Messages on the queue.
    messages: u8,
    /// Each invocation's message for its successor. It is later than the lease that it was sent for.
    successors: [bool; INVOCATIONS],
    effects: [u8; ACTIONS],
    began_too_early: bool,
    changed_when_over: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Receive(usize),
    /// With the invocation whose successor it is.
    Succeed(usize, usize),
    /// A message for a successor, in case this invocation dies.
    Queue(usize),
    Acquire(usize),
    Claim(usize),
    Act(usize),
    Record(usize),
    Save(usize),
    End(usize),
    /// The invocation returns, and its message is deleted.
    Return(usize),
    Crash(usize),
    EndLease,
    Cancel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    /// An action acts without a claim.
    WithoutClaim,
    /// A result is stored whoever holds the lease.
    SaveWithoutLease,
    /// The next action begins before the result is stored.
    SaveAtTheEnd,
    /// The message for a successor is not sent.
    WithoutSuccessor,
    /// A run that is over is acquired like any other.
    OverIsAcquired,
}

#[derive(Default)]
pub(crate) struct Runs {
    mistake: Option<Mistake>,
}

impl Runs {
    fn makes(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    fn is_over(&self, state: &State) -> bool {
        state.status.is_over() && !self.makes(Mistake::OverIsAcquired)
    }

    /// What an invocation does after `journal` results.
    const fn after(journal: usize) -> Phase {
        if journal < ACTIONS { Phase::Claim(journal) } else { Phase::End(Status::Completed, None) }
    }

    fn save(&self, next: &mut State, invocation: usize, action: usize) -> Phase {
        let held = next.is_held_by(invocation) || self.makes(Mistake::SaveWithoutLease);
        if next.cancel_requested {
            return Phase::End(Status::Cancelled, Some(action));
        }
        if !held {
            return Phase::Handled;
        }
        next.store(action);
        Self::after(action + 1)
    }
}

impl State {
    fn is_held_by(&self, invocation: usize) -> bool {
        self.lease.is_some_and(|(holder, _)| holder == invocation)
    }

    fn is_leased(&self) -> bool {
        matches!(self.lease, Some((_, false)))
    }

    /// A message comes: whose lease runs is left alone, because its holder has sent a message for a successor.
    fn receive(&mut self, invocation: usize, is_over: bool) {
        let left_alone = self.is_leased() || is_over;
        self.invocations[invocation] = if left_alone { Phase::Handled } else { Phase::Queue };
    }

    fn store(&mut self, action: usize) {
        self.changed_when_over |= self.status.is_over();
        self.journal = self.journal.max(action + 1);
    }
}

impl Model for Runs {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            status: Status::Queued,
            lease: None,
            cancel_requested: false,
            journal: 0,
            claims: [Claim::Free; ACTIONS],
            invocations: [Phase::Idle; INVOCATIONS],
            messages: 1,
            successors: [false; INVOCATIONS],
            effects: [0; ACTIONS],
            began_too_early: false,
            changed_when_over: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (invocation, phase) in state.invocations.iter().enumerate() {
            if *phase == Phase::Idle {
                if state.messages > 0 {
                    actions.push(Action::Receive(invocation));
                }
                let due = |of: &usize| {
                    let waits = state.invocations[*of] == Phase::Acquire || state.lease == Some((*of, false));
                    state.successors[*of] && !waits
                };
                actions.extend((0..INVOCATIONS).filter(due).map(|of| Action::Succeed(invocation, of)));
                continue;
            }
            actions.push(match phase {
                Phase::Idle => continue,
                Phase::Queue => Action::Queue(invocation),
                Phase::Acquire => Action::Acquire(invocation),
                Phase::Claim(_) => Action::Claim(invocation),
                Phase::Act(_) => Action::Act(invocation),
                Phase::Record(_) => Action::Record(invocation),
                Phase::Save(_) => Action::Save(invocation),
                Phase::End(..) => Action::End(invocation),
                Phase::Handled => Action::Return(invocation),
            });
            actions.push(Action::Crash(invocation));
        }
        if state.is_leased() {
            actions.push(Action::EndLease);
        }
        if !state.status.is_over() && !state.cancel_requested {
            actions.push(Action::Cancel);
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Receive(invocation) => {
                next.messages -= 1;
                next.receive(invocation, self.is_over(state));
            }
            Action::Succeed(invocation, of) => {
                next.successors[of] = false;
                next.receive(invocation, self.is_over(state));
            }
            Action::Queue(invocation) => {
                next.successors[invocation] = !self.makes(Mistake::WithoutSuccessor);
                next.invocations[invocation] = Phase::Acquire;
            }
            Action::Acquire(invocation) => {
                next.invocations[invocation] = if state.is_leased() {
                    Phase::Handled
                } else if self.is_over(state) {
                    // Acquired, found to be over, and released.
                    next.lease = None;
                    Phase::Handled
                } else {
                    next.changed_when_over |= state.status.is_over();
                    (next.status, next.lease) = (Status::Running, Some((invocation, false)));
                    let cancelled = Phase::End(Status::Cancelled, None);
                    if state.cancel_requested { cancelled } else { Self::after(state.journal) }
                };
            }
            Action::Claim(invocation) => {
                let Phase::Claim(action) = state.invocations[invocation] else { return None };
                next.began_too_early |= state.journal < action;
                let claim = &mut next.claims[action];
                next.invocations[invocation] = match *claim {
                    _ if self.makes(Mistake::WithoutClaim) => Phase::Act(action),
                    Claim::Free => {
                        *claim = Claim::InProgress;
                        Phase::Act(action)
                    }
                    // The owner works, or died: its lease runs out, and its outcome is then unknown.
                    Claim::InProgress => {
                        *claim = Claim::Unknown;
                        Phase::Save(action)
                    }
                    Claim::Completed | Claim::Unknown => Phase::Save(action),
                };
            }
            Action::Act(invocation) => {
                let Phase::Act(action) = state.invocations[invocation] else { return None };
                next.effects[action] += 1;
                next.invocations[invocation] = Phase::Record(action);
            }
            Action::Record(invocation) => {
                let Phase::Record(action) = state.invocations[invocation] else { return None };
                if state.claims[action] == Claim::InProgress {
                    next.claims[action] = Claim::Completed;
                }
                let later = self.makes(Mistake::SaveAtTheEnd) && action + 1 < ACTIONS;
                next.invocations[invocation] = if later { Phase::Claim(action + 1) } else { Phase::Save(action) };
            }
            Action::Save(invocation) => {
                let Phase::Save(action) = state.invocations[invocation] else { return None };
                next.invocations[invocation] = self.save(&mut next, invocation, action);
            }
            Action::End(invocation) => {
                let Phase::End(status, unsaved) = state.invocations[invocation] else { return None };
                if state.is_held_by(invocation) {
                    next.changed_when_over |= state.status.is_over();
                    (next.status, next.lease) = (status, None);
                    if let Some(action) = unsaved {
                        next.journal = next.journal.max(action + 1);
                    }
                }
                next.invocations[invocation] = Phase::Handled;
            }
            Action::Return(invocation) => next.invocations[invocation] = Phase::Idle,
            Action::Crash(invocation) => {
                next.messages = (next.messages + 1).min(2);
                next.invocations[invocation] = Phase::Idle;
            }
            Action::EndLease => next.lease = next.lease.map(|(holder, _)| (holder, true)),
            Action::Cancel => {
                next.cancel_requested = true;
                if !state.is_leased() {
                    (next.status, next.lease) = (Status::Cancelled, None);
                }
            }
        }
        Some(next)
    }

    /// Two effects break a promise; more say nothing else.
    fn within_boundary(&self, state: &State) -> bool {
        state.effects.iter().all(|effects| *effects <= 2)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONCE, |_, state: &State| state.effects.iter().all(|effects| *effects <= 1)),
            Property::always(STORED_FIRST, |_, state: &State| !state.began_too_early),
            Property::always(SURVIVES, |_, state: &State| {
                let at_work = state.invocations.iter().any(|phase| !matches!(phase, Phase::Idle | Phase::Handled));
                state.status.is_over() || state.messages > 0 || state.successors.contains(&true) || at_work
            }),
            Property::always(STAYS_OVER, |_, state: &State| !state.changed_when_over),
            Property::sometimes("a run goes on after an unknown outcome", |_, state: &State| {
                state.status == Status::Completed && state.claims[0] == Claim::Unknown
            }),
            Property::sometimes("a cancelled run keeps its last result", |_, state: &State| {
                state.status == Status::Cancelled && state.journal == 1
            }),
        ]
    }
}

const ONCE: &str = "An effect happens once.";
const STORED_FIRST: &str = "The result is stored before the next action begins.";
const SURVIVES: &str = "from then on the run survives a crash";
const STAYS_OVER: &str = "A run that is over stays as it is.";

#[test]
fn all_states_keep_the_promises() {
    check(Runs::default());
}

/// Mistakes of the store, and of the invocations, each with a promise that it breaks.
const OF_THE_STORE: [(Mistake, &str); 3] =
    [(Mistake::WithoutClaim, ONCE), (Mistake::SaveWithoutLease, STAYS_OVER), (Mistake::OverIsAcquired, STAYS_OVER)];
const OF_INVOCATIONS: [(Mistake, &str); 2] =
    [(Mistake::SaveAtTheEnd, STORED_FIRST), (Mistake::WithoutSuccessor, SURVIVES)];

/// The code makes none of the first: on the store each walk to a broken promise takes another turn.
#[tokio::test]
async fn each_mistake_breaks_a_promise_that_the_store_keeps() {
    let store = real::Real::start();
    for (mistake, promise) in OF_THE_STORE {
        let walk = counterexample(Runs { mistake: Some(mistake) }, promise);
        assert!(store.differs(&walk).await.is_some(), "the store does {mistake:?}");
    }
    for (mistake, promise) in OF_INVOCATIONS {
        counterexample(Runs { mistake: Some(mistake) }, promise);
    }
}
