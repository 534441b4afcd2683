//! A change of VAPI and the tables, under a lease and with an intent: `shared/src/store/lease.rs`, `intents.rs` and
//! `shared/src/tools/lifecycle/attachments.rs`.
//!
//! Two workers change the tools of one agent, and a settler finishes what they leave. VAPI has no conditional write: a list is
//! read, and replaced. Any process can die at any step, and any write to VAPI or to the tables can lose its answer. One
//! assumption is built in, as in the code: a lease outlasts its holder. The ownership of an intent may end while its owner works.

mod real;

use stateright::{Model, Property};

use super::{check, counterexample};

const A: u8 = 0b01;
const B: u8 = 0b10;
pub(crate) const WORKERS: usize = 2;
pub(crate) const SETTLER: usize = WORKERS;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Job {
    Attach(u8),
    Detach(u8),
}

impl Job {
    pub(crate) const fn tool(self) -> u8 {
        match self {
            Self::Attach(tool) | Self::Detach(tool) => tool,
        }
    }

    const fn with(self, tools: u8) -> u8 {
        match self {
            Self::Attach(tool) => tools | tool,
            Self::Detach(tool) => tools & !tool,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Held {
    pub(crate) holder: usize,
    pub(crate) over: bool,
    /// The holder is gone.
    orphan: bool,
}

/// What a process does next, with the worker whose intent it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    Begin,
    Open,
    Read,
    Patch {
        seen: u8,
    },
    Commit,
    /// A step failed: the change is settled at once.
    Failed,
    /// The settler waits for the lease.
    TakenOver(usize),
    Compare(usize),
    Correct {
        of: usize,
        seen: u8,
        wanted: bool,
    },
    DeleteRow(usize),
    /// The change is settled, and its intent is to be closed.
    Close(usize),
    Release {
        then_close: Option<usize>,
    },
    Gone,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) lease: Option<Held>,
    pub(crate) vapi: u8,
    pub(crate) rows: u8,
    /// By worker; whether its owner's time is over.
    pub(crate) intents: [Option<bool>; WORKERS],
    pub(crate) processes: [Phase; WORKERS + 1],
    /// VAPI was changed by a process without the lease.
    changed_outside: bool,
    /// By worker: the tool was attached by the other one after its intent was written.
    attached_since: [bool; WORKERS],
    undone: bool,
    settled_a_crash: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Written {
    Yes,
    /// The answer is lost, and the write happened, or did not.
    Lost(bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Acquire(usize),
    Open(usize),
    Read(usize),
    Patch(usize, Written),
    Commit(usize, Written),
    /// After a failure: is the lease still ours?
    Ask(usize),
    TakeOver(usize),
    Compare(usize),
    Correct(usize, Written),
    DeleteRow(usize),
    Close(usize),
    Release(usize),
    Crash(usize),
    EndLease,
    EndOwnership(usize),
}

const OUTCOMES: [Written; 3] = [Written::Yes, Written::Lost(true), Written::Lost(false)];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    /// VAPI is changed before the intent is written.
    WithoutIntent,
    /// A lease may run out while its holder works.
    LeaseIsTooShort,
    /// The intent is closed before the rows are written.
    ClosedTooEarly,
    /// A detachment is completed, although the tool was attached since.
    DetachedInAnyCase,
    /// A failed change is settled at once, although its last transaction may have released the lease.
    SettledWithoutAsking,
}

pub(crate) struct Changes {
    pub(crate) jobs: [Job; WORKERS],
    mistake: Option<Mistake>,
}

impl Changes {
    pub(crate) const fn of(jobs: [Job; WORKERS]) -> Self {
        Self { jobs, mistake: None }
    }

    fn makes(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    /// The tools at the start: those that are to be detached.
    pub(crate) fn attached(&self) -> u8 {
        self.jobs.iter().fold(0, |tools, job| match job {
            Job::Detach(tool) => tools | tool,
            Job::Attach(_) => tools,
        })
    }

    /// The transaction at the end of a change, with the phase after it. Refused without the lease.
    fn commit(&self, next: &mut State, worker: usize) -> Phase {
        let job = self.jobs[worker];
        if !next.is_held_by(worker) {
            return Phase::Failed;
        }
        next.rows = job.with(next.rows);
        let other = 1 - worker;
        if job == Job::Attach(self.jobs[other].tool()) {
            next.attached_since[other] = true;
        }
        next.intents[worker] = None;
        next.lease = None;
        Phase::Gone
    }
}

impl State {
    fn is_held_by(&self, process: usize) -> bool {
        self.lease.is_some_and(|lease| lease.holder == process)
    }

    fn change_vapi(&mut self, process: usize, tools: u8) {
        self.changed_outside |= self.vapi != tools && !self.is_held_by(process);
        self.vapi = tools;
    }

    fn is_free(&self) -> bool {
        self.lease.is_none_or(|lease| lease.over)
    }
}

impl Model for Changes {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let attached = self.attached();
        vec![State {
            lease: None,
            vapi: attached,
            rows: attached,
            intents: [None; WORKERS],
            processes: [Phase::Begin; WORKERS + 1],
            changed_outside: false,
            attached_since: [false; WORKERS],
            undone: false,
            settled_a_crash: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (process, phase) in state.processes.iter().enumerate() {
            match phase {
                Phase::Begin if process == SETTLER => {
                    let abandoned = (0..WORKERS).filter(|worker| state.intents[*worker] == Some(true));
                    actions.extend(abandoned.map(Action::TakeOver));
                    continue;
                }
                Phase::Begin | Phase::TakenOver(_) if state.is_free() => actions.push(Action::Acquire(process)),
                Phase::TakenOver(_) => {}
                Phase::Open => actions.push(Action::Open(process)),
                Phase::Read => actions.push(Action::Read(process)),
                Phase::Patch { .. } => actions.extend(OUTCOMES.map(|written| Action::Patch(process, written))),
                Phase::Commit => actions.extend(OUTCOMES.map(|written| Action::Commit(process, written))),
                Phase::Failed => actions.push(Action::Ask(process)),
                Phase::Compare(_) => actions.push(Action::Compare(process)),
                Phase::Correct { .. } => actions.extend(OUTCOMES.map(|written| Action::Correct(process, written))),
                Phase::DeleteRow(_) => actions.push(Action::DeleteRow(process)),
                Phase::Close(_) => actions.push(Action::Close(process)),
                Phase::Release { .. } => actions.push(Action::Release(process)),
                Phase::Begin | Phase::Gone => continue,
            }
            actions.push(Action::Crash(process));
        }
        if state.lease.is_some_and(|lease| !lease.over && (lease.orphan || self.makes(Mistake::LeaseIsTooShort))) {
            actions.push(Action::EndLease);
        }
        let owned = (0..WORKERS).filter(|worker| state.intents[*worker] == Some(false));
        actions.extend(owned.map(Action::EndOwnership));
    }

    #[expect(clippy::too_many_lines, reason = "it is the list of the steps")]
    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        let settling = |process: usize, of: usize| match process {
            SETTLER => Phase::Release { then_close: Some(of) },
            _ => Phase::Close(of),
        };
        match action {
            Action::Acquire(process) => {
                next.lease = Some(Held { holder: process, over: false, orphan: false });
                next.processes[process] = match state.processes[process] {
                    Phase::TakenOver(of) => Phase::Compare(of),
                    _ => Phase::Open,
                };
            }
            Action::Open(worker) => {
                if !self.makes(Mistake::WithoutIntent) {
                    next.intents[worker] = Some(false);
                }
                next.attached_since[worker] = false;
                next.processes[worker] = Phase::Read;
            }
            Action::Read(worker) => next.processes[worker] = Phase::Patch { seen: state.vapi },
            Action::Patch(worker, written) => {
                let Phase::Patch { seen } = state.processes[worker] else { return None };
                if written != Written::Lost(false) {
                    next.change_vapi(worker, self.jobs[worker].with(seen));
                }
                if self.makes(Mistake::ClosedTooEarly) {
                    next.intents[worker] = None;
                }
                next.processes[worker] = if written == Written::Yes { Phase::Commit } else { Phase::Failed };
            }
            Action::Commit(worker, Written::Yes) => next.processes[worker] = self.commit(&mut next, worker),
            Action::Commit(worker, Written::Lost(happened)) => {
                if happened {
                    self.commit(&mut next, worker);
                }
                next.processes[worker] = Phase::Failed;
            }
            Action::Ask(worker) => {
                let held = state.is_held_by(worker) || self.makes(Mistake::SettledWithoutAsking);
                next.processes[worker] = if held { Phase::Compare(worker) } else { Phase::Gone };
            }
            Action::TakeOver(worker) => {
                next.intents[worker] = Some(false);
                next.processes[SETTLER] = Phase::TakenOver(worker);
            }
            Action::Compare(process) => {
                let Phase::Compare(of) = state.processes[process] else { return None };
                let follows = match self.jobs[of] {
                    Job::Attach(_) => true,
                    Job::Detach(_) => state.attached_since[of] && !self.makes(Mistake::DetachedInAnyCase),
                };
                let wanted = follows && state.rows & self.jobs[of].tool() != 0;
                next.processes[process] = Phase::Correct { of, seen: state.vapi, wanted };
            }
            Action::Correct(process, written) => {
                let Phase::Correct { of, seen, wanted } = state.processes[process] else { return None };
                let tool = self.jobs[of].tool();
                if written != Written::Lost(false) {
                    next.change_vapi(process, if wanted { seen | tool } else { seen & !tool });
                }
                next.processes[process] = match (written, self.jobs[of]) {
                    (Written::Yes, Job::Detach(_)) if !wanted => Phase::DeleteRow(of),
                    (Written::Yes, _) => settling(process, of),
                    _ => Phase::Release { then_close: None },
                };
            }
            Action::DeleteRow(process) => {
                let Phase::DeleteRow(of) = state.processes[process] else { return None };
                let tool = self.jobs[of].tool();
                let deletes = state.rows & tool != 0;
                next.processes[process] = if deletes && !state.is_held_by(process) {
                    Phase::Release { then_close: None }
                } else {
                    settling(process, of)
                };
                if deletes && state.is_held_by(process) {
                    next.undone |= state.attached_since[of];
                    next.rows &= !tool;
                    next.lease = None;
                }
            }
            Action::Close(process) => {
                let Phase::Close(of) = state.processes[process] else { return None };
                next.intents[of] = None;
                next.settled_a_crash |= process == SETTLER && state.processes[of] == Phase::Gone;
                next.processes[process] =
                    if process == SETTLER { Phase::Begin } else { Phase::Release { then_close: None } };
            }
            Action::Release(process) => {
                let Phase::Release { then_close } = state.processes[process] else { return None };
                if state.is_held_by(process) {
                    next.lease = None;
                }
                let idle = if process == SETTLER { Phase::Begin } else { Phase::Gone };
                next.processes[process] = then_close.map_or(idle, Phase::Close);
            }
            Action::Crash(process) => {
                if let Some(lease) = next.lease.as_mut().filter(|lease| lease.holder == process) {
                    lease.orphan = true;
                }
                next.processes[process] = if process == SETTLER { Phase::Begin } else { Phase::Gone };
            }
            Action::EndLease => next.lease.as_mut()?.over = true,
            Action::EndOwnership(worker) => next.intents[worker] = Some(true),
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(AGREE, |model: &Self, state: &State| {
                [A, B].into_iter().all(|tool| {
                    let jobs = model.jobs.iter().zip(&state.intents);
                    let on_record = jobs.into_iter().any(|(job, intent)| job.tool() == tool && intent.is_some());
                    state.vapi & tool == state.rows & tool || on_record
                })
            }),
            Property::always(UNDER_LEASE, |_, state: &State| !state.changed_outside),
            Property::always(NOT_UNDONE, |_, state: &State| !state.undone),
            Property::sometimes("both changes are made", |model: &Self, state: &State| {
                let made = model.jobs.iter().fold(model.attached(), |tools, job| job.with(tools));
                state.vapi == made && state.rows == made && state.intents == [None; WORKERS]
            }),
            Property::sometimes("the change of a process that died is settled", |_, state: &State| {
                state.settled_a_crash
            }),
        ]
    }
}

const AGREE: &str = "VAPI and the tables agree, or the difference is on record.";
const NOT_UNDONE: &str = "Settling never undoes a later change.";
const UNDER_LEASE: &str = "Agents and tools change under a lease on their row";

pub(crate) const JOBS: [[Job; WORKERS]; 5] = [
    [Job::Attach(A), Job::Attach(B)],
    [Job::Attach(A), Job::Attach(A)],
    [Job::Attach(A), Job::Detach(A)],
    [Job::Attach(A), Job::Detach(B)],
    [Job::Detach(A), Job::Detach(B)],
];

#[test]
fn all_states_keep_the_promises() {
    for jobs in JOBS {
        check(Changes::of(jobs));
    }
}

/// Each mistake, with the jobs of a walk to a promise that it breaks.
const MISTAKES: [(Mistake, [Job; WORKERS], &str); 6] = [
    (Mistake::WithoutIntent, JOBS[0], AGREE),
    (Mistake::LeaseIsTooShort, JOBS[0], AGREE),
    (Mistake::ClosedTooEarly, JOBS[0], AGREE),
    (Mistake::SettledWithoutAsking, JOBS[0], AGREE),
    (Mistake::SettledWithoutAsking, JOBS[0], UNDER_LEASE),
    (Mistake::DetachedInAnyCase, JOBS[2], NOT_UNDONE),
];

#[test]
fn each_mistake_breaks_a_promise() {
    for (mistake, jobs, promise) in MISTAKES {
        let walk = counterexample(Changes { mistake: Some(mistake), jobs }, promise);
        println!("{mistake:?}: {} steps", walk.steps.len());
    }
}
