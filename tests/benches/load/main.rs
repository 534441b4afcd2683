//! `make load`: the functions' release binaries under load, each effect counted.
//!
//! The binaries run as on Lambda (`infra/local/src/lambda.rs`): a process for each request that is open, reused while
//! idle. DynamoDB, SQS and the vendors' stand-ins run in this program, which is built as for the tests; all of it shares
//! one machine. Requests start on a fixed schedule, and a latency counts from the intended start, so a slow answer delays
//! no later request and hides none.
//!
//! An effect that is lost, doubled or not asked for, a wrong answer, a dead letter or a message that is left fails the
//! benchmark; no latency does.

#![expect(clippy::print_stdout, reason = "the report is what this is for")]
#![expect(clippy::indexing_slicing, reason = "of JSON, where a member that is not there is null")]

mod calls;
mod execute;
#[path = "../../../shared/benches/measuring/mod.rs"]
mod measuring;
mod neighbours;
mod open_loop;
mod page;
mod stack;
mod streams;
mod webhooks;

use std::{process::ExitCode, sync::Arc, time::Duration};

use lambda_http::Error;
use tests::{measured::Table, preemptive_sms, programs};

use crate::{
    execute::Sms,
    measuring::measures,
    neighbours::{At, BAR, Neighbours, TIMES},
    open_loop::Latencies,
    stack::{FUNCTIONS, Stack},
};

type Result<T> = std::result::Result<T, Error>;

/// The size of the measurement.
struct Extent {
    /// Requests of `execute` a second, step by step.
    rates: &'static [u32],
    step: Duration,
    /// At the highest rate that the machine carries.
    long: Duration,
    calls: usize,
    webhooks: usize,
    webhooks_within: Duration,
    streams: usize,
    /// Of the quiet organization's requests a second, at most.
    quiet: u32,
    turn: Duration,
    turns: usize,
}

const MEASURED: Extent = Extent {
    rates: &[25, 50, 75, 100, 150, 200],
    step: Duration::from_secs(10),
    long: Duration::from_secs(60),
    calls: 100,
    webhooks: 1_000,
    webhooks_within: Duration::from_secs(10),
    streams: 50,
    quiet: 10,
    turn: Duration::from_secs(30),
    turns: 3,
};
/// Under `cargo test`: only checks that everything works and that every effect is made once.
const ONCE: Extent = Extent {
    rates: &[30],
    step: Duration::from_secs(2),
    long: Duration::from_secs(1),
    calls: 2,
    webhooks: 5,
    webhooks_within: Duration::from_secs(1),
    streams: 2,
    quiet: 1,
    turn: Duration::from_secs(1),
    turns: 1,
};

/// Writes the figures into `docs/load.md`.
const REPORT: &str = "--report";

fn main() -> ExitCode {
    match measure() {
        Ok(wrong) if wrong.is_empty() => ExitCode::SUCCESS,
        Ok(wrong) => {
            println!("\n{} effects or answers are wrong:\n{}", wrong.len(), wrong.join("\n"));
            ExitCode::FAILURE
        }
        Err(error) => {
            println!("the measurement broke: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The wrong effects and answers.
fn measure() -> Result<Vec<String>> {
    let extent = if measures() { MEASURED } else { ONCE };
    let built = programs::build(&FUNCTIONS.map(str::to_owned), measures())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut report = Report::new();
    let before = load_average()?;
    runtime.block_on(async {
        let stack = Stack::start(&built).await?;
        let quiet = Sms::of(&stack, &stack.world.home.clone()).await;
        let noisy = Sms::of(&stack, &stack.world.other.clone()).await;
        let carried = execute_steps(&stack, &quiet, &extent, &mut report).await?;
        incoming_calls(&stack, &extent, &mut report).await?;
        webhooks_of_slack(&stack, &extent, &mut report).await?;
        streamed_chats(&stack, &extent, &mut report).await?;
        // A twelfth of what the machine carries leaves room for the noise.
        let rate = (carried / (TIMES + 2)).clamp(1, extent.quiet);
        let control = Stack::start(&built).await?;
        let elsewhere = Sms::of(&control, &control.world.other.clone()).await;
        println!(
            "{rate} requests a second of a quiet organization, alone and beside {} of a noisy one …",
            rate * TIMES
        );
        let compared = neighbours::compare(
            At { stack: &stack, sms: &quiet },
            At { stack: &stack, sms: &noisy },
            At { stack: &control, sms: &elsewhere },
            rate,
            extent.turn,
            extent.turns,
        );
        report.neighbours(compared.await?, rate);
        Ok::<_, Error>(())
    })?;
    report.sentences.push(format!(
        "The machine's load average was {before} before the run, which other programs caused, and {} at its end.",
        load_average()?
    ));
    println!("\n{}\n{}", report.table, report.sentences.join("\n"));
    let writes = measures() && std::env::args().any(|argument| argument == REPORT) && report.wrong.is_empty();
    page::put(&report, writes)?;
    Ok(report.wrong)
}

/// Processes that ran or waited for a processor, on average over the last minute.
fn load_average() -> Result<String> {
    let told = std::fs::read_to_string("/proc/loadavg")?;
    Ok(told.split(' ').next().unwrap_or_default().to_owned())
}

/// Raises the rate step by step, and holds the highest one that the machine carries; returns it.
async fn execute_steps(stack: &Arc<Stack>, sms: &Sms, extent: &Extent, report: &mut Report) -> Result<u32> {
    let mut carried = 0;
    for &rate in extent.rates {
        if !execute_at(stack, sms, rate, extent.step, report).await? {
            break;
        }
        carried = rate;
    }
    let lower = extent.rates.iter().rev().copied().filter(|&rate| rate <= carried);
    for rate in lower {
        if execute_at(stack, sms, rate, extent.long, report).await? {
            return Ok(rate);
        }
    }
    Ok(carried)
}

/// Whether the machine carries the rate: all requests could be sent, and fewer than those of half a second are open at
/// the end.
async fn execute_at(stack: &Arc<Stack>, sms: &Sms, rate: u32, time: Duration, report: &mut Report) -> Result<bool> {
    println!("{rate} tool calls a second for {} s …", time.as_secs());
    let count = usize::try_from(u64::from(rate) * time.as_secs())?;
    let requests = sms.requests(stack, count, true);
    let said = execute::send(stack, &requests, rate).await;
    let is_carried = said.sent == count && said.backlog < usize::try_from(rate)?.div_ceil(2).max(2);
    // The requests that were not sent asked for nothing.
    let sent = requests.get(..said.sent).unwrap_or_default();
    let checked = execute::check(stack, sent, &said).await?;
    let load = format!("{rate}/s for {} s{}", time.as_secs(), if is_carried { "" } else { ": not carried" });
    let effects = format!("{} of {}, {} faults", checked.effects, said.sent, checked.faults);
    report.row("execute", &load, said.latencies(), &effects);
    if !is_carried {
        report.sentences.push(format!(
            "At {rate} tool calls a second {} were open when {} of {count} had been sent; {:.0} a second were answered.",
            said.backlog,
            said.sent,
            said.throughput()
        ));
    }
    report.wrong.extend(checked.wrong);
    stack.forget();
    Ok(is_carried)
}

async fn incoming_calls(stack: &Arc<Stack>, extent: &Extent, report: &mut Report) -> Result<()> {
    stack.world.attached(&preemptive_sms()).await;
    for (round, what) in ["no process yet", "again"].into_iter().enumerate() {
        println!("{} calls at once, {what} …", extent.calls);
        let calls = calls::come_in(stack, round * extent.calls, extent.calls).await?;
        let load = format!("{} at once, {} cold starts", extent.calls, calls.cold_starts);
        report.row("call-start, to the TwiML", &load, calls.twiml, &format!("{} of {}", calls.effects, extent.calls));
        report.sentences.push(format!(
            "The {} calls ({what}) had all their effects and deadlines behind them after {:.1} s.",
            extent.calls,
            calls.settled.as_secs_f64()
        ));
        report.wrong.extend(calls.wrong);
        stack.forget();
    }
    Ok(())
}

async fn webhooks_of_slack(stack: &Arc<Stack>, extent: &Extent, report: &mut Report) -> Result<()> {
    let (count, within) = (extent.webhooks, extent.webhooks_within);
    println!("{count} webhooks in {} s …", within.as_secs());
    let webhooks = webhooks::arrive(stack, count, within).await?;
    let load = format!("{count} in {} s", within.as_secs());
    report.row("trigger, to the answer", &load, webhooks.answers, "");
    report.row(
        "the same, to the run's effect",
        &load,
        webhooks.effects_after,
        &format!("{} of {count}", webhooks.effects),
    );
    report.wrong.extend(webhooks.wrong);
    stack.forget();
    Ok(())
}

async fn streamed_chats(stack: &Arc<Stack>, extent: &Extent, report: &mut Report) -> Result<()> {
    for _ in 0..2 {
        println!("{} streams at once …", extent.streams);
        let streams = streams::open(stack, extent.streams).await?;
        let load = format!("{} at once, {} cold starts", extent.streams, streams.cold_starts);
        report.row("stream, to the first event", &load, streams.first_event, "");
        report.row(
            "the same, to the end",
            &load,
            streams.whole,
            &format!("{} of {}", streams.finished, extent.streams),
        );
        report.wrong.extend(streams.wrong);
        stack.forget();
    }
    Ok(())
}

pub(crate) struct Report {
    pub(crate) table: Table,
    pub(crate) sentences: Vec<String>,
    wrong: Vec<String>,
}

impl Report {
    fn new() -> Self {
        let columns = [("what", ""), ("load", ""), ("p50", "ms"), ("p99", "ms"), ("most", "ms"), ("effects", "")];
        Self { table: Table::new(columns), sentences: Vec::new(), wrong: Vec::new() }
    }

    fn row(&mut self, what: &str, load: &str, latencies: Latencies, effects: &str) {
        let [median, p99, most] = latencies.cells();
        println!("  {what}, {load}: p50 {median} ms, p99 {p99} ms, most {most} ms; effects: {effects}");
        self.table.row([what.to_owned(), load.to_owned(), median, p99, most, effects.to_owned()]);
    }

    fn neighbours(&mut self, compared: Neighbours, rate: u32) {
        let Neighbours { alone, beside, control, requests, unsent, effects, wrong } = compared;
        let load = |what: &str| format!("{rate}/s {what}");
        self.row("execute, a quiet organization", &load("alone"), alone, "");
        self.row("the same", &load(&format!("beside {}/s of a noisy one", rate * TIMES)), beside, "");
        self.row("the same", &load(&format!("beside {}/s at another stack", rate * TIMES)), control, "");
        let ratio = |latencies: Latencies| latencies.p99 / alone.p99.max(f64::MIN_POSITIVE);
        let (beside_by, control_by) = (ratio(beside), ratio(control));
        let verdict = if beside_by <= BAR { "within" } else { "over" };
        // A factor below 1 is no gain: then the machine's own noise is larger than the growth.
        let own = if control_by >= beside_by {
            "so this run cannot tell a share of the product".to_owned()
        } else {
            format!("so what the two organizations share adds a factor of {:.2}", beside_by / control_by)
        };
        self.sentences.push(format!(
            "Beside the noisy organization the quiet one's p99 is {beside_by:.2} times its own, {verdict} the bar of {BAR}; beside the \
             same noise at another stack it is {control_by:.2} times, {own} ({requests} requests of the quiet organization, {unsent} of all \
             requests not carried; {effects} effects at its stack)."
        ));
        self.wrong.extend(wrong);
    }
}
