//! Ten minutes of the busiest hour, in steps of ten milliseconds.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, VecDeque},
};

use super::{Input, Step};
use tests::random::Random;

const SEED: u64 = 20_261_124;
const TICKS_A_SECOND: f64 = 100.0;
/// Before the measurement: as long as a call, so that all steps are under way.
const WARM_UP: usize = 160;
const MEASURED: usize = 600;
const BATCH: usize = 10;

/// Of the busiest second each, unless another unit is named.
#[derive(Default)]
pub(crate) struct Busiest {
    functions: BTreeMap<&'static str, Function>,
    pub(crate) requests: f64,
    pub(crate) largest_organization: f64,
    pub(crate) queue_in_work: f64,
    pub(crate) batches: f64,
    pub(crate) messages_in_a_batch: f64,
    /// Seconds, of all messages.
    pub(crate) longest_wait: f64,
    all_at_once: f64,
}

#[derive(Default)]
struct Function {
    per_second: f64,
    at_once: f64,
    mean_at_once: f64,
}

impl Busiest {
    pub(crate) fn per_second(&self, function: &str) -> f64 {
        self.functions[function].per_second
    }

    pub(crate) fn at_once(&self, function: &str) -> f64 {
        self.functions[function].at_once
    }

    pub(crate) fn mean_at_once(&self, function: &str) -> f64 {
        self.functions[function].mean_at_once
    }

    pub(crate) fn at_once_of_all(&self) -> f64 {
        self.all_at_once
    }
}

/// What happened in each tick.
struct Record {
    begun: Vec<f64>,
    at_work: Vec<f64>,
}

impl Record {
    fn new(ticks: usize) -> Self {
        Self { begun: vec![0.0; ticks], at_work: vec![0.0; ticks] }
    }

    fn add(&mut self, tick: usize, seconds: f64) {
        self.begun[tick] += 1.0;
        // The fraction of the last tick counts as a fraction.
        let mut left = seconds * TICKS_A_SECOND;
        for at_work in self.at_work.iter_mut().skip(tick) {
            if left <= 0.0 {
                break;
            }
            *at_work += left.min(1.0);
            left -= 1.0;
        }
    }

    /// Sums, or means, of the seconds that are measured.
    fn seconds(values: &[f64], divided_by: f64) -> Vec<f64> {
        let seconds = values.chunks(TICKS_A_SECOND as usize).skip(WARM_UP).take(MEASURED);
        seconds.map(|ticks| ticks.iter().sum::<f64>() / divided_by).collect()
    }
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// A number of a Poisson distribution.
fn arrivals(random: &mut Random, mean: f64) -> usize {
    let (limit, mut product, mut count) = ((-mean).exp(), random.unit(), 0);
    while product > limit {
        product *= random.unit();
        count += 1;
    }
    count
}

pub(crate) fn simulate(input: &Input) -> Busiest {
    let mut random = Random(SEED);
    let ticks = (WARM_UP + MEASURED + 1) * TICKS_A_SECOND as usize;
    // A few more, for the steps of calls that begin at the end.
    let room = ticks + (input.call_seconds as usize + 10) * TICKS_A_SECOND as usize;
    let mut functions: BTreeMap<&'static str, Record> = BTreeMap::new();
    let mut messages: Vec<(f64, f64)> = Vec::new();
    let mut largest = vec![0.0; room];
    let share = input.largest_share();
    for (tick, largest) in largest.iter_mut().enumerate().take(ticks) {
        for _ in 0..arrivals(&mut random, input.calls_per_second / TICKS_A_SECOND) {
            *largest += f64::from(u8::from(random.unit() < share));
            let within = random.unit() / TICKS_A_SECOND;
            for Step { function, at, seconds, .. } in &input.steps {
                let at = at.unwrap_or_else(|| 5.0 + random.unit() * (input.call_seconds - 10.0));
                let begins = tick + (at * TICKS_A_SECOND) as usize;
                if *function == "run-tool" {
                    messages.push((tick as f64 / TICKS_A_SECOND + within + at, *seconds));
                } else {
                    functions.entry(function).or_insert_with(|| Record::new(room)).add(begins, *seconds);
                }
            }
        }
    }
    let most_batches = input.sizes["StartToolsMaximumConcurrency"] as usize;
    let queue = take_messages(messages, most_batches, room);
    let mut busiest = Busiest {
        largest_organization: most(&Record::seconds(&largest, 1.0)),
        queue_in_work: most(&Record::seconds(&queue.in_work, TICKS_A_SECOND)),
        batches: queue.most_batches as f64,
        messages_in_a_batch: queue.messages / queue.taken,
        longest_wait: queue.longest_wait,
        ..Busiest::default()
    };
    let mut requests = vec![0.0; room];
    let mut all = queue.batches.clone();
    for (name, record) in functions {
        for (tick, begun) in record.begun.iter().enumerate() {
            requests[tick] += begun;
            all[tick] += record.at_work[tick];
        }
        let at_work = Record::seconds(&record.at_work, TICKS_A_SECOND);
        let function = Function {
            per_second: most(&Record::seconds(&record.begun, 1.0)),
            mean_at_once: at_work.iter().sum::<f64>() / at_work.len() as f64,
            at_once: most(&at_work),
        };
        busiest.functions.insert(name, function);
    }
    busiest.requests = most(&Record::seconds(&requests, 1.0));
    busiest.all_at_once = most(&Record::seconds(&all, TICKS_A_SECOND));
    busiest
}

struct Queue {
    /// Messages, and batches, at work in each tick.
    in_work: Vec<f64>,
    batches: Vec<f64>,
    messages: f64,
    taken: f64,
    longest_wait: f64,
    most_batches: usize,
}

impl Queue {
    /// Begins a batch of messages, each with the time at which it came and the seconds it takes. They are at work beside each
    /// other, and the batch is over with the last of them. Returns the time of that.
    fn begin(&mut self, now: f64, batch: &[(f64, f64)]) -> f64 {
        let end = now + batch.iter().map(|(_, seconds)| *seconds).fold(0.0, f64::max);
        let size = batch.len() as f64;
        let wait = now - batch.first().map_or(now, |(came, _)| *came);
        self.longest_wait = self.longest_wait.max(wait);
        self.messages += size;
        self.taken += 1.0;
        let (first, last) = ((now * TICKS_A_SECOND) as usize, (end * TICKS_A_SECOND).ceil() as usize);
        for tick in first..last.min(self.batches.len()) {
            let (begins, ends) = (now * TICKS_A_SECOND - tick as f64, end * TICKS_A_SECOND - tick as f64);
            let part = ends.min(1.0) - begins.max(0.0);
            self.in_work[tick] += size * part;
            self.batches[tick] += part;
        }
        end
    }
}

/// Takes each message at once while fewer batches than `most_batches` are at work. Those that came meanwhile go together.
fn take_messages(mut arriving: Vec<(f64, f64)>, most_batches: usize, ticks: usize) -> Queue {
    arriving.sort_by(|a, b| a.0.total_cmp(&b.0));
    let nothing = vec![0.0; ticks];
    let mut queue = Queue {
        in_work: nothing.clone(),
        batches: nothing,
        messages: 0.0,
        taken: 0.0,
        longest_wait: 0.0,
        most_batches: 0,
    };
    let mut waiting: VecDeque<(f64, f64)> = VecDeque::new();
    // In microseconds, which can be compared.
    let mut ends: BinaryHeap<Reverse<u64>> = BinaryHeap::new();
    let micros = |seconds: f64| (seconds * 1e6) as u64;
    for message in arriving {
        while let Some(Reverse(end)) = ends.peek().copied().filter(|Reverse(end)| *end <= micros(message.0)) {
            ends.pop();
            let batch: Vec<(f64, f64)> = waiting.drain(..waiting.len().min(BATCH)).collect();
            if !batch.is_empty() {
                ends.push(Reverse(micros(queue.begin(end as f64 / 1e6, &batch))));
            }
        }
        if ends.len() < most_batches {
            ends.push(Reverse(micros(queue.begin(message.0, &[message]))));
        } else {
            waiting.push_back(message);
        }
        queue.most_batches = queue.most_batches.max(ends.len());
    }
    queue
}
