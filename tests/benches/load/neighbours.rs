//! A quiet organization beside one with ten times its requests.
//!
//! The same noise at another stack is the control: its tables, functions and vendors are its own, and only the machine
//! is shared. The difference between the two is the product's.

use std::{sync::Arc, time::Duration};

use crate::{
    Result,
    execute::{Asked, Sms, check, send},
    open_loop::Latencies,
    stack::Stack,
};

/// The noisy organization's share, in quiet ones.
pub(crate) const TIMES: u32 = 10;
/// The most that the quiet organization's p99 may grow.
pub(crate) const BAR: f64 = 1.2;

pub(crate) struct Neighbours {
    pub(crate) alone: Latencies,
    pub(crate) beside: Latencies,
    /// Beside the same noise at another stack.
    pub(crate) control: Latencies,
    /// Of the quiet organization.
    pub(crate) requests: usize,
    /// Requests that the machine did not carry.
    pub(crate) unsent: usize,
    pub(crate) effects: usize,
    pub(crate) wrong: Vec<String>,
}

/// An organization of a stack.
pub(crate) struct At<'a> {
    pub(crate) stack: &'a Arc<Stack>,
    pub(crate) sms: &'a Sms,
}

/// `quiet` asks `rate` times a second, in turns: alone, beside `noisy` of the same stack, beside `elsewhere`.
pub(crate) async fn compare(
    quiet: At<'_>,
    noisy: At<'_>,
    elsewhere: At<'_>,
    rate: u32,
    turn: Duration,
    turns: usize,
) -> Result<Neighbours> {
    let mut latencies = [Vec::new(), Vec::new(), Vec::new()];
    let (mut effects, mut requests, mut unsent, mut wrong) = (0, 0, 0, Vec::new());
    for _ in 0..turns {
        for (noise, into) in [None, Some(&noisy), Some(&elsewhere)].into_iter().zip(&mut latencies) {
            let asked = quiet.requests(rate, turn)?;
            let loud = noise.map(|noise| noise.requests(rate * TIMES, turn)).transpose()?;
            let (said, loud_said) = match (noise, &loud) {
                (Some(noise), Some(loud)) => {
                    let (said, loud_said) =
                        tokio::join!(send(quiet.stack, &asked, rate), send(noise.stack, loud, rate * TIMES));
                    (said, Some(loud_said))
                }
                _ => (send(quiet.stack, &asked, rate).await, None),
            };
            into.extend(said.answers.iter().map(|timed| timed.latency));
            requests += said.answers.len();
            let same = noise.is_some_and(|noise| Arc::ptr_eq(noise.stack, quiet.stack));
            let (mut all, mut answers) = (asked, said);
            // A machine that does not carry the noise leaves requests unsent; they asked for nothing.
            unsent += all.len() - answers.sent;
            all.truncate(answers.sent);
            if let (Some(noise), Some(mut loud), Some(loud_said)) = (noise, loud, loud_said) {
                unsent += loud.len() - loud_said.sent;
                loud.truncate(loud_said.sent);
                if same {
                    all.extend(loud);
                    answers.answers.extend(loud_said.answers);
                } else {
                    wrong.extend(check(noise.stack, &loud, &loud_said).await?.wrong);
                }
            }
            let checked = check(quiet.stack, &all, &answers).await?;
            effects += checked.effects;
            wrong.extend(checked.wrong);
            for stack in [quiet.stack, elsewhere.stack] {
                stack.forget();
            }
        }
    }
    let [alone, beside, control] = latencies.map(Latencies::of);
    Ok(Neighbours { alone, beside, control, requests, unsent, effects, wrong })
}

impl At<'_> {
    fn requests(&self, rate: u32, turn: Duration) -> Result<Vec<Asked>> {
        let count = usize::try_from(u64::from(rate) * turn.as_secs())?;
        Ok(self.sms.requests(self.stack, count, false))
    }
}
