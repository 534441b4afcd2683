//! The same steps on the real store.

use std::{collections::BTreeMap, time::Duration};

use aws_config::retry::RetryConfig;
use serde_json::{Map, Value, json};
use shared::{
    Deadline,
    idempotency::{Claim, Idempotency, Key, Outcome, Ticket},
    models::Timestamp,
    store::Database,
};
use tests::{
    Aws, Fault, Template, Trouble,
    aws::{TABLE_PREFIX, sdk_config},
};

use super::{Action, Attempt, Claims, DELIVERIES, REQUESTS, Request, Row, State, Status};
use crate::walks::Walk;

const WALKS: u64 = 120;
const LONGEST: usize = 14;
const LEASE: Duration = Duration::from_secs(60);

pub(super) struct Real {
    aws: Aws,
    claims: Idempotency,
}

/// One effect, and the requests for it.
struct Effect<'a> {
    real: &'a Real,
    key: Key,
    tickets: [Option<Ticket>; REQUESTS],
    owners: BTreeMap<String, usize>,
}

impl Real {
    pub(super) fn start() -> Self {
        let aws = Aws::start(&Template::read());
        // A lost answer stays lost, at once.
        let config = sdk_config(&aws.url).into_builder().retry_config(RetryConfig::disabled()).build();
        let database = Database::connect(&config, TABLE_PREFIX);
        Self { claims: Idempotency::new(&database, Duration::from_secs(120)), aws }
    }

    /// The first difference between a walk and the store.
    pub(super) async fn differs(&self, walk: &Walk<Claims>) -> Option<String> {
        let key = Key::new(&["model"], &Value::Null);
        let mut effect = Effect { real: self, key, tickets: Default::default(), owners: BTreeMap::new() };
        let (mut before, mut difference) = (&walk.start, None);
        for (number, (action, after)) in walk.steps.iter().enumerate() {
            let answered = effect.carry_out(*action, before).await;
            let expected = match action {
                Action::Claim(request) => Some(after.requests[*request]),
                _ => None,
            };
            let row = effect.row();
            if answered.map(Request::seen) != expected.map(Request::seen) || row != after.row {
                let taken: Vec<&Action> = walk.steps[..=number].iter().map(|(action, _)| action).collect();
                difference = Some(format!("{taken:?}: the store has {row:?} {answered:?}, the model {after:?}"));
                break;
            }
            before = after;
        }
        self.aws.delete("idempotency", effect.key.as_str());
        difference
    }
}

impl Request {
    /// Without what only a release shows.
    fn seen(self) -> Result<u8, Self> {
        match self {
            Self::Holds(held) => Ok(held.done),
            other => Err(other),
        }
    }
}

impl Effect<'_> {
    async fn carry_out(&mut self, action: Action, before: &State) -> Option<Request> {
        let Real { aws, claims } = self.real;
        match action {
            Action::Claim(request) => return Some(self.claim(request).await),
            Action::LoseClaim(request) => {
                aws.inject(Fault::new("UpdateItem", "idempotency", Trouble::DropAfter));
                self.try_claim(request).await.expect_err("its answer is lost");
                self.note_owner(request);
            }
            Action::Act(..) => {}
            Action::Record(request) => {
                let Request::Acted(held, attempt) = before.requests[request] else { panic!("it did not act") };
                let (answer, done) = (json!(request), parts(held.done | super::FIRST));
                let outcome = match attempt {
                    Attempt::All => Outcome::Completed(answer),
                    Attempt::First => Outcome::Partial { answer, done, unknown: false },
                    Attempt::Nothing => Outcome::Released,
                    Attempt::Unclear => Outcome::Unknown { answer: Value::Null, done: Map::new() },
                };
                let ticket = self.tickets[request].take().expect("it holds the claim");
                claims.record(ticket, outcome).await.expect("the outcome is recorded");
            }
            Action::Crash(request) => drop(self.tickets[request].take()),
            Action::EndLease => aws.change("idempotency", self.key.as_str(), json!({"lease_until": 1})),
            Action::EndWindow => {
                aws.change("idempotency", self.key.as_str(), json!({"window_until": 1, "done_until": 1}));
            }
        }
        None
    }

    async fn try_claim(&self, request: usize) -> shared::Result<Claim> {
        let delivery = DELIVERIES[request].map(|name| name.to_string());
        let at_once = Deadline::after(Duration::ZERO);
        self.real.claims.claim(&self.key, delivery.as_deref().into(), LEASE, at_once).await
    }

    async fn claim(&mut self, request: usize) -> Request {
        match self.try_claim(request).await.expect("the store answers") {
            Claim::Mine(ticket) => {
                self.note_owner(request);
                let held = super::Held { done: bits(&ticket.done), answered_before: false };
                self.tickets[request] = Some(ticket);
                Request::Holds(held)
            }
            Claim::Completed(answer) => Request::ToldAnswer(request_of(&answer)),
            Claim::Unknown { .. } => Request::ToldUnknown,
            Claim::Running => Request::Waits,
        }
    }

    fn stored(&self) -> Option<Value> {
        self.real.aws.row("idempotency", self.key.as_str())
    }

    /// Remembers whose the row's new token is.
    fn note_owner(&mut self, request: usize) {
        if let Some(row) = self.stored() {
            self.owners.entry(row["token"].as_str().unwrap().to_owned()).or_insert(request);
        }
    }

    fn row(&self) -> Option<Row> {
        let row = self.stored()?;
        let now = Timestamp::now();
        let answer = row["answer"].as_str().and_then(|text| serde_json::from_str(text).ok());
        let names = row["deliveries"].as_array().into_iter().flatten();
        Some(Row {
            status: match row["status"].as_str() {
                Some("in_progress") => Status::InProgress,
                Some("completed") => Status::Completed,
                Some("partial") => Status::Partial,
                Some("unknown") => Status::Unknown,
                other => panic!("{other:?}"),
            },
            owner: self.owners[row["token"].as_str().unwrap()],
            lease_over: row["lease_until"].as_i64().unwrap() < now.as_millis(),
            window_over: row["window_until"].as_i64().map(|until| until <= now.as_seconds()),
            done: row["done"].as_object().map_or(0, bits),
            deliveries: names.map(|name| 1 << name.as_str().unwrap().parse::<u8>().unwrap()).sum(),
            answer: answer.as_ref().and_then(request_of),
        })
    }
}

fn parts(bits: u8) -> Map<String, Value> {
    (0..2).filter(|part| bits & (1 << part) != 0).map(|part| (part.to_string(), json!(true))).collect()
}

fn bits(parts: &Map<String, Value>) -> u8 {
    parts.keys().map(|part| 1 << part.parse::<u8>().unwrap()).sum()
}

fn request_of(answer: &Value) -> Option<usize> {
    answer.as_u64().and_then(|number| usize::try_from(number).ok())
}

#[tokio::test]
async fn the_store_takes_the_same_steps() {
    let real = Real::start();
    for seed in 0..WALKS {
        let difference = real.differs(&Walk::new(&Claims::default(), seed, LONGEST)).await;
        assert_eq!(difference, None, "seed {seed}");
    }
}
