//! A curve: the cost of an operation at growing sizes, and the growth that is expected of it.

use std::{collections::BTreeMap, future::Future, pin::Pin, time::Duration};

use tests::{World, aws::Operation};

use crate::{cpu, measuring::measures};

/// Steps of the exponent that rounding and the digits of a number explain.
const FLAT: f64 = 0.1;
const LINEAR: f64 = 1.05;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Expected {
    /// The same requests, bytes and units at every size.
    Flat,
    /// At most in proportion to the size, with the reason.
    Linear(&'static str),
}

/// The sizes of one thing, and the operations that are measured at each.
pub(crate) struct Scenario {
    /// `tools of an organization`
    pub(crate) grows: &'static str,
    /// The largest size of a full measurement.
    pub(crate) most: usize,
    /// The sizes under `cargo test`: large enough that pages are full.
    pub(crate) small: [usize; 2],
    pub(crate) operations: &'static [(&'static str, Expected)],
    /// Fills a world and measures the operations, in their order.
    pub(crate) measure: fn(usize) -> Measuring,
}

pub(crate) type Measuring = Pin<Box<dyn Future<Output = Vec<Cost>>>>;

/// The cost of one operation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cost {
    /// To AWS and to vendors.
    pub(crate) requests: usize,
    /// Those to AWS, by action and table.
    pub(crate) kinds: BTreeMap<String, usize>,
    /// Bodies of requests to AWS and of their answers.
    pub(crate) bytes: usize,
    /// Capacity units of DynamoDB, also for rows that were read and filtered out.
    pub(crate) units: f64,
    /// Of the functions: not of DynamoDB or the vendors, which have threads of their own.
    pub(crate) cpu: Duration,
}

pub(crate) struct Curve {
    pub(crate) grows: &'static str,
    pub(crate) operation: &'static str,
    pub(crate) expected: Expected,
    /// Sizes with their costs, ascending.
    pub(crate) points: Vec<(usize, Cost)>,
}

/// Between the two largest sizes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exponents {
    pub(crate) requests: f64,
    pub(crate) bytes: f64,
    pub(crate) units: f64,
    pub(crate) cpu: f64,
}

impl Curve {
    pub(crate) fn exponents(&self) -> Exponents {
        let slope = |of: fn(&Cost) -> f64| match self.points.as_slice() {
            [.., (before, small), (after, large)] => {
                let (from, to) = (of(small).max(1.0), of(large).max(1.0));
                (to / from).ln() / (figure(*after) / figure(*before)).ln()
            }
            _ => 0.0,
        };
        Exponents {
            requests: slope(|cost| figure(cost.requests)),
            bytes: slope(|cost| figure(cost.bytes)),
            units: slope(|cost| cost.units),
            cpu: slope(|cost| cost.cpu.as_secs_f64() * 1e6),
        }
    }

    /// Why the curve grows faster than expected, if it does. CPU time depends on the machine and decides nothing.
    pub(crate) fn mistake(&self) -> Option<String> {
        let Exponents { requests, bytes, units, .. } = self.exponents();
        let most = match self.expected {
            Expected::Flat => FLAT,
            Expected::Linear(_) => LINEAR,
        };
        let found = [("requests", requests), ("bytes", bytes), ("units", units)];
        let (what, exponent) = found.into_iter().find(|(_, exponent)| *exponent > most)?;
        let Self { grows, operation, points, .. } = self;
        Some(format!("{operation}, {grows}: {what} grow with the power {exponent:.2} of the size: {points:#?}"))
    }
}

/// How often an operation is carried out, the first time in vain.
pub(crate) const TIMES: usize = 4;

/// Carries the operation out: counts are of the last time, and the CPU time is the median.
pub(crate) async fn measured(world: &World, mut operation: impl AsyncFnMut(usize)) -> Cost {
    operation(0).await;
    let mut took = Vec::new();
    let mut cost = Cost::default();
    for time in 1..if measures() { TIMES } else { 2 } {
        (cost, ()) = once(world, operation(time)).await;
        took.push(cost.cpu);
    }
    took.sort_unstable();
    Cost { cpu: took.get(took.len() / 2).copied().unwrap_or_default(), ..cost }
}

/// Carries the operation out once.
pub(crate) async fn once<T>(world: &World, operation: impl Future<Output = T>) -> (Cost, T) {
    world.aws.meter();
    world.aws.clear_operations();
    let before = at_vendors(world);
    let started = cpu::of_this_thread();
    let outcome = operation.await;
    let cpu = cpu::of_this_thread().saturating_sub(started);
    let operations = world.aws.operations();
    let mut kinds = BTreeMap::new();
    for Operation { action, on, .. } in &operations {
        *kinds.entry(format!("{action} {}", on.join(", "))).or_default() += 1;
    }
    let cost = Cost {
        requests: operations.len() + at_vendors(world) - before,
        kinds,
        bytes: operations.iter().map(|operation| operation.bytes).sum(),
        units: operations.iter().map(|operation| operation.units).sum(),
        cpu,
    };
    (cost, outcome)
}

fn at_vendors(world: &World) -> usize {
    let of_tools = world.vapi.requests().len() + world.twilio.requests().len() + world.pipedream.requests().len();
    of_tools + world.llm.requests().len()
}

#[expect(clippy::cast_precision_loss, reason = "figures for reading")]
pub(crate) fn figure(count: usize) -> f64 {
    count as f64
}
