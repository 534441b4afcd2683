//! The claim of an effect: `shared/src/store/idempotency.rs`.
//!
//! Four requests for one effect, which has two parts. The second is a redelivery of the first, the third a repetition with a
//! delivery of its own, the last a repetition without one. Time passes at any moment, also while an owner is still at work.

mod real;

use stateright::{Model, Property};

use super::{check, counterexample};

pub(crate) const REQUESTS: usize = 4;
pub(crate) const DELIVERIES: [Option<u8>; REQUESTS] = [Some(0), Some(0), Some(1), None];
/// The first part of an effect, and all parts, as bits.
const FIRST: u8 = 0b01;
const ALL: u8 = 0b11;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Status {
    InProgress,
    Completed,
    Partial,
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Row {
    pub(crate) status: Status,
    /// The request whose token it has.
    pub(crate) owner: usize,
    pub(crate) lease_over: bool,
    /// Of the last outcome, if there is one.
    pub(crate) window_over: Option<bool>,
    pub(crate) done: u8,
    pub(crate) deliveries: u8,
    /// The request whose answer it has.
    pub(crate) answer: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Held {
    pub(crate) done: u8,
    answered_before: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Attempt {
    All,
    First,
    Nothing,
    /// A time-out: the effect may have happened.
    Unclear,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Request {
    Waits,
    Holds(Held),
    Acted(Held, Attempt),
    Recorded,
    ToldAnswer(Option<usize>),
    ToldUnknown,
    Gone,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) row: Option<Row>,
    pub(crate) requests: [Request; REQUESTS],
    /// The parts that each request made happen.
    acted: [u8; REQUESTS],
    /// Windows that ended: after each the same effect may be wanted again.
    windows: u8,
    told_unknown: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Claim(usize),
    /// The claim is written, but its answer is lost, and the request ends with an error.
    LoseClaim(usize),
    Act(usize, Attempt, bool),
    Record(usize),
    Crash(usize),
    EndLease,
    EndWindow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    /// An expired claim is free again.
    ExpiryFrees,
    /// An effect that may have happened is treated as one that did not.
    UnclearIsReleased,
    /// A redelivery is taken for a repetition.
    DeliveriesAreForgotten,
    /// An outcome is recorded whoever owns the claim.
    RecordWithoutToken,
    /// The parts that are done are not told to the next owner.
    DoneIsForgotten,
}

#[derive(Default)]
pub(crate) struct Claims {
    mistake: Option<Mistake>,
}

impl Claims {
    fn makes(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    fn may_claim(&self, row: Option<&Row>, request: usize) -> bool {
        let Some(row) = row else { return true };
        let over = match row.status {
            Status::Partial => true,
            Status::Completed => row.window_over == Some(true),
            Status::InProgress => row.lease_over && self.makes(Mistake::ExpiryFrees),
            Status::Unknown => false,
        };
        let redelivered = row.deliveries & delivery(request) != 0 && !self.makes(Mistake::DeliveriesAreForgotten);
        over && !redelivered
    }

    fn claimed(&self, row: Option<Row>, request: usize) -> (Row, Held) {
        let mut row = row.unwrap_or(Row {
            status: Status::InProgress,
            owner: request,
            lease_over: false,
            window_over: None,
            done: 0,
            deliveries: 0,
            answer: None,
        });
        (row.status, row.owner, row.lease_over) = (Status::InProgress, request, false);
        let answered_before = row.deliveries & !delivery(request) != 0;
        row.deliveries |= delivery(request);
        let forgotten = row.window_over == Some(true) || self.makes(Mistake::DoneIsForgotten);
        let done = if forgotten { 0 } else { row.done };
        (row, Held { done, answered_before })
    }

    fn recorded(&self, row: Option<Row>, request: usize, held: Held, attempt: Attempt) -> Option<Row> {
        let ours = |row: &Row| row.owner == request && row.status == Status::InProgress;
        let stands = |row: &Row| !ours(row) && !self.makes(Mistake::RecordWithoutToken);
        let mut row = row?;
        if stands(&row) {
            return Some(row);
        }
        let released =
            attempt == Attempt::Nothing || attempt == Attempt::Unclear && self.makes(Mistake::UnclearIsReleased);
        if released {
            if !held.answered_before && held.done == 0 {
                return None;
            }
            row.status = if held.done == 0 { Status::Completed } else { Status::Partial };
            row.deliveries &= !delivery(request);
            return Some(row);
        }
        (row.status, row.done, row.answer) = match attempt {
            Attempt::First => (Status::Partial, held.done | FIRST, Some(request)),
            Attempt::Unclear => (Status::Unknown, 0, None),
            _ => (Status::Completed, 0, Some(request)),
        };
        row.window_over = Some(false);
        Some(row)
    }
}

fn delivery(request: usize) -> u8 {
    DELIVERIES[request].map_or(0, |name| 1 << name)
}

impl State {
    /// Whether the requests among these that made a part happen are more than `most`.
    fn exceed(&self, most: u8, counted: impl Fn(usize) -> bool) -> bool {
        [0b01, 0b10].into_iter().any(|part| {
            let acted = (0..REQUESTS).filter(|request| counted(*request) && self.acted[*request] & part != 0);
            acted.count() > usize::from(most)
        })
    }
}

impl Model for Claims {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let requests = [Request::Waits; REQUESTS];
        vec![State { row: None, requests, acted: [0; REQUESTS], windows: 0, told_unknown: false }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (number, request) in state.requests.iter().enumerate() {
            match request {
                Request::Waits => {
                    actions.push(Action::Claim(number));
                    if self.may_claim(state.row.as_ref(), number) {
                        actions.push(Action::LoseClaim(number));
                    }
                }
                Request::Holds(held) => {
                    actions.push(Action::Act(number, Attempt::All, true));
                    actions.push(Action::Act(number, Attempt::Nothing, false));
                    actions.push(Action::Act(number, Attempt::Unclear, true));
                    actions.push(Action::Act(number, Attempt::Unclear, false));
                    if held.done == 0 {
                        actions.push(Action::Act(number, Attempt::First, true));
                    }
                    actions.push(Action::Crash(number));
                }
                Request::Acted(..) => actions.extend([Action::Record(number), Action::Crash(number)]),
                _ => {}
            }
        }
        match &state.row {
            Some(row) if row.status == Status::InProgress && !row.lease_over => actions.push(Action::EndLease),
            Some(Row { status: Status::Completed | Status::Partial, window_over: Some(false), .. }) => {
                actions.push(Action::EndWindow);
            }
            _ => {}
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Claim(number) if self.may_claim(state.row.as_ref(), number) => {
                let (row, held) = self.claimed(next.row.take(), number);
                next.row = Some(row);
                next.requests[number] = Request::Holds(held);
            }
            Action::Claim(number) => {
                let row = next.row.as_mut()?;
                match row.status {
                    Status::InProgress if row.lease_over => {
                        // The owner died. The request finds the outcome at its next try.
                        (row.status, row.done, row.answer, row.window_over) = (Status::Unknown, 0, None, Some(false));
                    }
                    Status::InProgress => return None,
                    Status::Unknown => {
                        next.requests[number] = Request::ToldUnknown;
                        next.told_unknown = true;
                    }
                    Status::Completed => {
                        row.deliveries |= delivery(number);
                        next.requests[number] = Request::ToldAnswer(row.answer);
                    }
                    Status::Partial => next.requests[number] = Request::ToldAnswer(row.answer),
                }
            }
            Action::LoseClaim(number) => {
                // Withdrawn, in the way of a release.
                let (row, held) = self.claimed(next.row.take(), number);
                next.row = self.recorded(Some(row), number, held, Attempt::Nothing);
                next.requests[number] = Request::Gone;
            }
            Action::Act(number, attempt, happened) => {
                let Request::Holds(held) = state.requests[number] else { return None };
                let parts = if attempt == Attempt::First { FIRST } else { ALL & !held.done };
                next.acted[number] = if happened { parts } else { 0 };
                next.requests[number] = Request::Acted(held, attempt);
            }
            Action::Record(number) => {
                let Request::Acted(held, attempt) = state.requests[number] else { return None };
                next.row = self.recorded(next.row.take(), number, held, attempt);
                next.requests[number] = Request::Recorded;
            }
            Action::Crash(number) => next.requests[number] = Request::Gone,
            Action::EndLease => next.row.as_mut()?.lease_over = true,
            Action::EndWindow => {
                next.row.as_mut()?.window_over = Some(true);
                next.windows += 1;
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONCE, |_, state: &State| !state.exceed(1 + state.windows, |_| true)),
            Property::always(SAME, |_, state: &State| !state.exceed(1, |request| DELIVERIES[request] == Some(0))),
            Property::always(NEVER_REPEATED, |_, state: &State| {
                let unknown = state.row.as_ref().is_some_and(|row| row.status == Status::Unknown);
                !state.told_unknown || unknown
            }),
            Property::always("A duplicate gets the recorded answer.", |_, state: &State| {
                state.requests.iter().all(|request| match request {
                    Request::ToldAnswer(answer) => answer.is_some_and(|of| state.acted[of] != 0),
                    _ => true,
                })
            }),
            Property::sometimes("a repetition after the window is a new effect", |_, state: &State| {
                state.exceed(1, |_| true)
            }),
            Property::sometimes("another request does the part that is left", |_, state: &State| {
                state.acted[0] == FIRST && state.acted[2] == ALL & !FIRST && state.windows == 0
            }),
            Property::sometimes("a redelivery does what the first delivery released", |_, state: &State| {
                state.acted[1] != 0 && matches!(state.requests[0], Request::Recorded)
            }),
            Property::sometimes("an owner that is only late finds its claim given up", |_, state: &State| {
                state.acted[0] == ALL && state.requests[0] == Request::Recorded && state.told_unknown
            }),
        ]
    }
}

const ONCE: &str = "An effect happens once.";
const SAME: &str = "A redelivery keeps its name, and is the same execution";
const NEVER_REPEATED: &str = "An unknown outcome is reported and never repeated";

#[test]
fn all_states_keep_the_promises() {
    check(Claims::default());
}

/// Each mistake, with a promise that it breaks.
const MISTAKES: [(Mistake, &str); 5] = [
    (Mistake::ExpiryFrees, ONCE),
    (Mistake::UnclearIsReleased, ONCE),
    (Mistake::DoneIsForgotten, ONCE),
    (Mistake::DeliveriesAreForgotten, SAME),
    (Mistake::RecordWithoutToken, NEVER_REPEATED),
];

/// The code makes none of them: on the store each walk to a broken promise takes another turn.
#[tokio::test]
async fn each_mistake_breaks_a_promise_that_the_store_keeps() {
    let store = real::Real::start();
    for (mistake, promise) in MISTAKES {
        let walk = counterexample(Claims { mistake: Some(mistake) }, promise);
        assert!(store.differs(&walk).await.is_some(), "the store does {mistake:?}");
    }
}
