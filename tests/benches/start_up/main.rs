//! `make bench`: the CPU time, memory and size of the functions' release binaries.
//!
//! Each binary runs as on Lambda (`infra/local/src/lambda.rs`), with DynamoDB (dynoxide), Secrets Manager and the
//! vendors' stand-ins behind it, all over plain HTTP. Only the binary's own process counts, so this program and the
//! services are built without optimization, as for the tests.
//!
//! Machines differ by half in speed. Times are therefore compared with reference programs (`reference.rs`), built in
//! the same way and asked in turn with the functions. A figure over budget is reported but does not fail. A function
//! that cannot be built or answers wrongly does fail.

#![expect(clippy::print_stdout, reason = "the report is what this is for")]
#![expect(clippy::indexing_slicing, reason = "of JSON, where a member that is not there is null")]

mod chart;
mod function;
mod jobs;
#[path = "../../../shared/benches/measuring/mod.rs"]
mod measuring;
mod page;
mod programs;
mod report;

use std::{
    path::Path,
    process::{Command, ExitCode},
    time::Instant,
};

use lambda_http::Error;
use tests::{measured::Table, programs::every_function};

use crate::{
    chart::Bar,
    function::Function,
    jobs::{CALLS, ECHO, Job, NODE_EXECUTE, NODE_LIST_TOOLS, Setting},
    measuring::measures,
    page::Page,
    programs::Programs,
    report::Spread,
};

type Result<T> = std::result::Result<T, Error>;

/// The default functions without `--all`: somebody waits for the first three, and the fourth does the most work.
const FUNCTIONS: [&str; 4] = ["call-start", "execute", "list-tools", "run-loop"];
/// Functions, each with the same one on Node.
const COMPARED: [(&str, &str); 2] = [("execute", NODE_EXECUTE), ("list-tools", NODE_LIST_TOOLS)];

/// The size of the measurement.
#[derive(Clone, Copy)]
struct Extent {
    /// Processes per function.
    starts: u32,
    /// Requests per process.
    requests: u32,
    /// After this request all one-time initialization is done.
    warm: u32,
}

const MEASURED: Extent = Extent { starts: 15, requests: 1000, warm: 10 };
/// Under `cargo test`: only checks that everything works.
const ONCE: Extent = Extent { starts: 1, requests: 1, warm: 1 };

/// Budgets in MB (10^6 bytes).
const SIZE: f64 = 7.0;
const SIZE_WHERE_NOBODY_WAITS: f64 = 12.0;
const PEAK: f64 = 16.0;
const PEAK_WHERE_NOBODY_WAITS: f64 = 32.0;
/// CPU time from process start to first answer, relative to the runtime alone.
const START: f64 = 3.5;
const START_OF_A_RUN: f64 = 7.0;
/// CPU time of `execute` without its calls, relative to the calls alone.
const OWN_SHARE: f64 = 0.5;
/// The kernel counts memory in batches of pages; smaller growth, in MB, is noise.
const GROWTH: f64 = 0.3;

const ALL: &str = "--all";
/// Writes the figures into `docs/performance.md`.
const REPORT: &str = "--report";
/// Precedes a directory of binaries to measure instead of building them:
/// `cargo bench --workspace --bench start_up --profile dev -- --binaries /path`.
const BINARIES: &str = "--binaries";

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("the measurement broke: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let given = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let extent = if measures() { MEASURED } else { ONCE };
    let functions = if given(ALL) || !measures() { every_function()? } else { FUNCTIONS.map(str::to_owned).to_vec() };
    let begun = Instant::now();
    let binaries = arguments.iter().skip_while(|argument| *argument != BINARIES).nth(1);
    let programs = Programs::build(&functions, binaries.map(Path::new))?;
    println!("built in {:.0} s", begun.elapsed().as_secs_f64());

    let begun = Instant::now();
    let setting = Setting::start()?;
    let mut jobs: Vec<Job> =
        setting.jobs().into_iter().filter(|job| programs.functions.contains_key(job.function)).collect();
    jobs.extend(setting.references());
    if programs.node.is_some() {
        jobs.extend(setting.node_jobs());
        for (ours, nodes) in COMPARED {
            check_same_requests(&programs, job_of(&jobs, ours)?, job_of(&jobs, nodes)?, &setting)?;
        }
    }
    let mut over = Vec::new();
    let starts = measure_starts(extent, &programs, &jobs, &setting, &mut over)?;
    println!("\n{}\n{}", starts.title, starts.table);
    println!("{}", starts.compared.join("\n"));
    let stays = measure_stays(extent, &programs, &jobs, &setting, &mut over)?;
    println!("\n{}\n{}", stays.title, stays.table);
    println!("{}", stays.compared.join("\n"));
    println!("measured in {:.0} s", begun.elapsed().as_secs_f64());
    if measures() {
        if over.is_empty() {
            over.push("all within budget".to_owned());
        }
        println!("{}", over.join("\n"));
    }
    // A single request of unoptimized programs yields no meaningful figures; the page is made all the same, to see that it can be.
    let page = Page { starts, stays, over, node: programs.node.map(|node| node.version) };
    page.put(measures() && given(REPORT))
}

/// A table of figures with the sentences below it.
struct Measured {
    title: String,
    table: Table,
    /// Sentences.
    compared: Vec<String>,
    bars: Vec<Bar>,
}

fn job_of<'a, 'b>(jobs: &'a [Job<'b>], function: &str) -> Result<&'a Job<'b>> {
    Ok(jobs.iter().find(|job| job.function == function).ok_or_else(|| format!("there is no request to {function}"))?)
}

/// # Errors
/// If one of the two asks AWS for more than the other: their figures could not be compared.
fn check_same_requests(programs: &Programs, ours: &Job, nodes: &Job, setting: &Setting) -> Result<()> {
    let requests = |job: &Job| -> Result<Vec<String>> {
        setting.forget();
        let mut function = Function::start(setting.runtime(), &programs.command(job), &setting.environment())?;
        job.check(&function.ask(job.event(0))?.response)?;
        function.idle()?;
        Ok(setting.requests())
    };
    let (ours_asked, nodes_asked) = (requests(ours)?, requests(nodes)?);
    if ours_asked == nodes_asked {
        return Ok(());
    }
    Err(format!("{} asks {ours_asked:?}, but {} asks {nodes_asked:?}", ours.function, nodes.function).into())
}

fn measure_starts(
    extent: Extent,
    programs: &Programs,
    jobs: &[Job],
    setting: &Setting,
    over: &mut Vec<String>,
) -> Result<Measured> {
    let starts_of_each = extent.starts;
    // The first job of each program.
    let mut measured: Vec<&Job> = Vec::new();
    for job in jobs {
        if measured.iter().all(|other| other.function != job.function) {
            measured.push(job);
        }
    }
    measured.sort_by_key(|job| (!job.is_ours(), job.is_ours().then_some(job.function)));
    let mut starts: Vec<Start> = measured.iter().map(|_| Start::default()).collect();
    for number in 0..starts_of_each {
        for (job, start) in measured.iter().zip(&mut starts) {
            start.add(&programs.command(job), job, number, setting)?;
        }
    }
    setting.forget();
    let of = |function: &str| measured.iter().position(|job| job.function == function).and_then(|at| starts.get(at));
    let alone = of(ECHO).ok_or("the runtime alone was not measured")?;

    let mut table = Table::new([
        ("start", ""),
        ("size", "MB"),
        ("CPU to the first answer", "ms"),
        ("of it, to ready", "ms"),
        ("in the runtime's", "times"),
        ("peak", "MB"),
    ]);
    let mut bars = Vec::new();
    for (job, start) in measured.iter().zip(&starts) {
        let times = ratio(&start.cpu, &alone.cpu)?;
        let (cpu, peak) = (Spread::of(start.cpu.iter().copied())?, Spread::of(start.peak.iter().copied())?.median);
        let size = programs.size(job.function)?;
        if let Some(size) = size.filter(|_| job.is_ours()) {
            let (most, size_most) =
                if somebody_waits(job.function) { (START, SIZE) } else { (START_OF_A_RUN, SIZE_WHERE_NOBODY_WAITS) };
            budget(over, job.function, "size", size, size_most, "MB");
            budget(over, job.function, "CPU to the first answer (median)", times, most, "times the runtime's");
        }
        bars.push(Bar { function: job.function, cpu: cpu.median, peak });
        table.row([
            job.shown_function().to_owned(),
            size.map(|size| format!("{size:.2}")).unwrap_or_default(),
            cpu.to_string(),
            Spread::of(start.ready_cpu.iter().copied())?.to_string(),
            format!("{times:.2}"),
            format!("{peak:.2}"),
        ]);
    }
    for function in programs.functions.keys().filter(|name| !measured.iter().any(|job| job.function == *name)) {
        let size = programs.size(function)?.map(|size| format!("{size:.2}")).unwrap_or_default();
        table.row([function, &size, "no request known for it", "", "", ""].map(str::to_owned));
    }
    let mut compared = Vec::new();
    for (ours, nodes) in COMPARED {
        if let (Some(its), Some(nodes)) = (of(ours), of(nodes)) {
            let (cpu, peak) = (part(&its.cpu, &nodes.cpu)?, part(&its.peak, &nodes.peak)?);
            compared.push(format!("{ours}: CPU to the first answer {cpu} of Node's, peak memory {peak}"));
        }
    }
    let title = format!("{starts_of_each} starts of each, in turn: least / median / most");
    Ok(Measured { title, table, compared, bars })
}

fn measure_stays(
    extent: Extent,
    programs: &Programs,
    jobs: &[Job],
    setting: &Setting,
    over: &mut Vec<String>,
) -> Result<Measured> {
    let Extent { requests, warm, .. } = extent;
    let mut stays = Vec::new();
    for job in jobs {
        stays.push(Stay::begin(&programs.command(job), job, setting, extent)?);
    }
    for number in 1..=requests {
        for stay in &mut stays {
            stay.ask(number)?;
        }
        setting.forget();
    }
    let of = |function: &str| stays.iter().find(|stay| stay.job.function == function);
    let calls = &of(CALLS).ok_or("the calls alone were not measured")?.cpu;

    let mut table = Table::new([
        ("warm", ""),
        ("job", ""),
        ("CPU to the answer", "ms a request"),
        ("in the calls'", "times"),
        ("CPU in all", "ms"),
        ("peak at 10", "MB"),
        ("at 1000", "MB"),
        ("resident", "MB"),
    ]);
    for stay in &stays {
        let Stay { job, cpu, whole_cpu, peak_warm, peak_last, resident, .. } = stay;
        if job.is_ours() {
            let what = format!("{} ({})", job.function, job.name);
            let most = if somebody_waits(job.function) { PEAK } else { PEAK_WHERE_NOBODY_WAITS };
            budget(over, &what, "peak memory at the 1000th request", *peak_last, most, "MB");
            budget(over, &what, "growth from the 10th to the 1000th request", peak_last - peak_warm, GROWTH, "MB");
        }
        table.row([
            job.shown_function().to_owned(),
            job.name.to_owned(),
            Spread::of(cpu.iter().copied())?.to_string(),
            format!("{:.2}", ratio(cpu, calls)?),
            Spread::of(whole_cpu.iter().copied())?.to_string(),
            format!("{peak_warm:.2}"),
            format!("{peak_last:.2}"),
            format!("{resident:.2}"),
        ]);
    }
    let mut compared = Vec::new();
    if let Some(execute) = of("execute") {
        let own = Spread::of(execute.cpu.iter().zip(calls).map(|(its, calls)| its - calls))?.median;
        let share = own / Spread::of(calls.iter().copied())?.median;
        compared.push(format!(
            "execute's own time, without the runtime, DynamoDB and the API: {own:.2} ms CPU, {share:.2} of its calls'"
        ));
        budget(over, "execute", "own time (median)", share, OWN_SHARE, "of its calls'");
    }
    for (ours, nodes) in COMPARED {
        if let (Some(its), Some(nodes)) = (of(ours), of(nodes)) {
            let (cpu, peak) = (part(&its.whole_cpu, &nodes.whole_cpu)?, part(&[its.peak_last], &[nodes.peak_last])?);
            compared.push(format!("{ours}: CPU of a warm request {cpu} of Node's, peak memory {peak}"));
        }
    }
    let title = format!("Requests {warm} to {requests} of one process each, in turn: least / median / most");
    Ok(Measured { title, table, compared, bars: Vec::new() })
}

/// The median of the ratios of figures from the same turns.
fn ratio(figures: &[f64], others: &[f64]) -> Result<f64> {
    Ok(Spread::of(figures.iter().zip(others).map(|(figure, other)| figure / other))?.median)
}

/// `1/30`: the part that our figures are of Node's.
fn part(ours: &[f64], nodes: &[f64]) -> Result<String> {
    let times = ratio(nodes, ours)?;
    Ok(if times < 10.0 { format!("1/{times:.1}") } else { format!("1/{times:.0}") })
}

/// Whether a caller or a dashboard waits for the function.
fn somebody_waits(function: &str) -> bool {
    !matches!(function, "run-loop" | "runs" | "settle")
}

#[derive(Default)]
struct Start {
    cpu: Vec<f64>,
    /// CPU time up to the request for the first event.
    ready_cpu: Vec<f64>,
    peak: Vec<f64>,
}

impl Start {
    fn add(&mut self, command: &Command, job: &Job, number: u32, setting: &Setting) -> Result<()> {
        let mut function = Function::start(setting.runtime(), command, &setting.environment())?;
        // The event is ready before the function asks, as on a cold start; asking and waiting cost no CPU time.
        let ready = function.idle()?;
        let answer = function.ask(job.event(number))?;
        job.check(&answer.response)?;
        self.cpu.push(milliseconds(answer.usage.cpu));
        self.ready_cpu.push(milliseconds(ready.cpu));
        self.peak.push(megabytes(answer.usage.peak));
        Ok(())
    }
}

/// Figures of one process over many requests.
struct Stay<'a> {
    job: &'a Job<'a>,
    process: Function,
    extent: Extent,
    /// CPU time from event to answer.
    cpu: Vec<f64>,
    /// Including the work after the answer.
    whole_cpu: Vec<f64>,
    peak_warm: f64,
    peak_last: f64,
    resident: f64,
}

impl<'a> Stay<'a> {
    fn begin(command: &Command, job: &'a Job<'a>, setting: &Setting, extent: Extent) -> Result<Self> {
        let process = Function::start(setting.runtime(), command, &setting.environment())?;
        let (cpu, whole_cpu) = (Vec::new(), Vec::new());
        Ok(Self { job, process, extent, cpu, whole_cpu, peak_warm: 0.0, peak_last: 0.0, resident: 0.0 })
    }

    fn ask(&mut self, number: u32) -> Result<()> {
        let before = self.process.idle()?;
        let answer = self.process.ask(self.job.event(self.extent.starts + number))?;
        self.job.check(&answer.response)?;
        let after = self.process.idle()?;
        if number == self.extent.warm {
            self.peak_warm = megabytes(after.peak);
        }
        if number >= self.extent.warm {
            self.cpu.push(milliseconds(answer.usage.cpu.saturating_sub(before.cpu)));
            self.whole_cpu.push(milliseconds(after.cpu.saturating_sub(before.cpu)));
        }
        (self.peak_last, self.resident) = (megabytes(after.peak), megabytes(after.resident));
        Ok(())
    }
}

fn budget(over: &mut Vec<String>, what: &str, figure: &str, value: f64, most: f64, unit: &str) {
    if value > most {
        over.push(format!("over budget: {what}: {figure} {value:.2} {unit}, budget {most} {unit}"));
    }
}

fn milliseconds(duration: std::time::Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

#[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1_000_000.0
}
