//! `make bench`: the CPU time, memory and size of the functions' release binaries.
//!
//! Each binary runs against its own local Lambda runtime API, with DynamoDB (dynoxide), Secrets Manager and the
//! vendors' stand-ins behind it, all over plain HTTP. Only the binary's own process counts, so this program and the
//! services are built without optimization, as for the tests.
//!
//! Machines differ by half in speed. Times are therefore compared with reference programs (`reference.rs`), built in
//! the same way and asked in turn with the functions. A figure over budget is reported but does not fail. A function
//! that cannot be built or answers wrongly does fail.

#![expect(clippy::print_stdout, reason = "the report is what this is for")]
#![expect(clippy::indexing_slicing, reason = "of JSON, where a member that is not there is null")]

mod function;
mod http_server;
mod jobs;
#[path = "../../../shared/benches/measuring/mod.rs"]
mod measuring;
mod report;
mod runtime_api;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    time::Instant,
};

use lambda_http::Error;
use serde_json::Value;

use crate::{
    function::Function,
    jobs::{CALLS, ECHO, Job, Setting},
    measuring::measures,
    report::{Spread, Table},
};

type Result<T> = std::result::Result<T, Error>;

/// The default functions without `--all`: somebody waits for the first two, and the third does the most work.
const FUNCTIONS: [&str; 3] = ["call-start", "execute", "run-loop"];

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
/// Precedes a directory of binaries to measure instead of building them:
/// `cargo bench --workspace --bench start_up --profile dev -- --binaries /path`.
const BINARIES: &str = "--binaries";
/// The reference program, with the modes [`ECHO`] and [`CALLS`].
const REFERENCE: &str = "reference";

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
    let extent = if measures() { MEASURED } else { ONCE };
    let all = arguments.iter().any(|argument| argument == ALL) || !measures();
    let functions = if all { functions()? } else { FUNCTIONS.map(str::to_owned).to_vec() };
    let begun = Instant::now();
    let given = arguments.iter().skip_while(|argument| *argument != BINARIES).nth(1);
    let programs = Programs::build(&functions, given.map(Path::new))?;
    println!("built in {:.0} s", begun.elapsed().as_secs_f64());

    let begun = Instant::now();
    let setting = Setting::start()?;
    let jobs: Vec<Job> =
        setting.jobs().into_iter().filter(|job| programs.functions.contains_key(job.function)).collect();
    let mut over = Vec::new();
    measure_starts(extent, &programs, &jobs, &setting, &mut over)?;
    measure_stays(extent, &programs, &jobs, &setting, &mut over)?;
    println!("measured in {:.0} s", begun.elapsed().as_secs_f64());
    if !measures() {
        // A single request of unoptimized programs yields no meaningful figures.
        return Ok(());
    }
    if over.is_empty() {
        println!("all within budget");
    }
    for line in over {
        println!("over budget: {line}");
    }
    Ok(())
}

fn measure_starts(
    extent: Extent,
    programs: &Programs,
    jobs: &[Job],
    setting: &Setting,
    over: &mut Vec<String>,
) -> Result<()> {
    let starts_of_each = extent.starts;
    let references = setting.references();
    let measured: Vec<&Job> = programs
        .functions
        .keys()
        .filter_map(|function| jobs.iter().find(|job| job.function == function))
        .chain(&references)
        .collect();
    let mut starts: Vec<Start> = measured.iter().map(|_| Start::default()).collect();
    for number in 0..starts_of_each {
        for (job, start) in measured.iter().zip(&mut starts) {
            start.add(programs.command(job), job, number, setting)?;
        }
    }
    setting.forget();
    let alone = measured.iter().position(|job| job.function == ECHO).ok_or("the runtime alone was not measured")?;
    let alone = starts[alone].cpu.clone();

    let mut table =
        Table::new(["start", "size", "CPU to the first answer", "of it, to ready", "in the runtime's", "peak"]);
    table.row(["", "MB", "ms", "ms", "times", "MB"].map(str::to_owned));
    for (job, start) in measured.iter().zip(starts) {
        let times = Spread::of(start.cpu.iter().zip(&alone).map(|(its, alone)| its / alone))?.median;
        let peak = Spread::of(start.peak)?.median;
        let size = if job.is_reference() { String::new() } else { format!("{:.2}", programs.size(job.function)?) };
        if !job.is_reference() {
            let (most, size_most) =
                if somebody_waits(job.function) { (START, SIZE) } else { (START_OF_A_RUN, SIZE_WHERE_NOBODY_WAITS) };
            budget(over, job.function, "size", programs.size(job.function)?, size_most, "MB");
            budget(over, job.function, "CPU to the first answer (median)", times, most, "times the runtime's");
        }
        table.row([
            job.function.trim_start_matches('-').to_owned(),
            size,
            Spread::of(start.cpu)?.to_string(),
            Spread::of(start.ready_cpu)?.to_string(),
            format!("{times:.2}"),
            format!("{peak:.2}"),
        ]);
    }
    for function in programs.functions.keys().filter(|name| !measured.iter().any(|job| job.function == *name)) {
        let size = format!("{:.2}", programs.size(function)?);
        table.row([function, &size, "no request known for it", "", "", ""].map(str::to_owned));
    }
    println!("\n{starts_of_each} starts of each, in turn: least / median / most\n{table}");
    Ok(())
}

fn measure_stays(
    extent: Extent,
    programs: &Programs,
    jobs: &[Job],
    setting: &Setting,
    over: &mut Vec<String>,
) -> Result<()> {
    let Extent { requests, warm, .. } = extent;
    let references = setting.references();
    let mut stays = Vec::new();
    for job in jobs.iter().chain(&references) {
        stays.push(Stay::begin(programs.command(job), job, setting, extent)?);
    }
    for number in 1..=requests {
        for stay in &mut stays {
            stay.ask(number)?;
        }
        setting.forget();
    }
    let calls = stays.iter().find(|stay| stay.job.function == CALLS).ok_or("the calls alone were not measured")?;
    let calls = calls.cpu.clone();

    let mut table = Table::new([
        "warm",
        "job",
        "CPU to the answer",
        "in the calls'",
        "CPU in all",
        "peak at 10",
        "at 1000",
        "resident",
    ]);
    table.row(["", "", "ms a request", "times", "ms", "MB", "MB", "MB"].map(str::to_owned));
    let mut own = None;
    for stay in stays {
        let Stay { job, cpu, whole_cpu, peak_warm, peak_last, resident, .. } = stay;
        if job.function == "execute" && own.is_none() {
            own = Some(Spread::of(cpu.iter().zip(&calls).map(|(its, calls)| its - calls))?.median);
        }
        if !job.is_reference() {
            let what = format!("{} ({})", job.function, job.name);
            let most = if somebody_waits(job.function) { PEAK } else { PEAK_WHERE_NOBODY_WAITS };
            budget(over, &what, "peak memory at the 1000th request", peak_last, most, "MB");
            budget(over, &what, "growth from the 10th to the 1000th request", peak_last - peak_warm, GROWTH, "MB");
        }
        table.row([
            job.function.trim_start_matches('-').to_owned(),
            job.name.to_owned(),
            Spread::of(cpu.iter().copied())?.to_string(),
            format!("{:.2}", Spread::of(cpu.iter().zip(&calls).map(|(its, calls)| its / calls))?.median),
            Spread::of(whole_cpu)?.to_string(),
            format!("{peak_warm:.2}"),
            format!("{peak_last:.2}"),
            format!("{resident:.2}"),
        ]);
    }
    println!("requests {warm} to {requests} of one process each, in turn: least / median / most\n{table}");
    if let Some(own) = own {
        let calls = Spread::of(calls)?.median;
        println!(
            "execute's own time, without the runtime, DynamoDB and the API: {own:.2} ms CPU, {:.2} of its calls'",
            own / calls
        );
        budget(over, "execute", "own time (median)", own / calls, OWN_SHARE, "of its calls'");
    }
    Ok(())
}

/// Whether a caller or a dashboard waits for the function.
fn somebody_waits(function: &str) -> bool {
    !matches!(function, "run-loop" | "runs" | "settle")
}

fn functions() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../functions"))? {
        let entry = entry?;
        if entry.path().join("Cargo.toml").exists() {
            names.push(entry.file_name().into_string().map_err(|name| format!("{} is no name", name.display()))?);
        }
    }
    names.sort();
    Ok(names)
}

/// The binaries; release builds if they are measured.
struct Programs {
    functions: BTreeMap<String, PathBuf>,
    reference: PathBuf,
}

impl Programs {
    /// Builds the functions as for a deployment, and the reference program; or takes all of them from a directory.
    fn build(functions: &[String], given: Option<&Path>) -> Result<Self> {
        if let Some(directory) = given {
            let functions = functions.iter().map(|name| (name.clone(), directory.join(name))).collect();
            return Ok(Self { functions, reference: directory.join(REFERENCE) });
        }
        println!("building the binaries of {} …", functions.join(", "));
        let (mut built, reference) = if measures() {
            let packages = functions.iter().map(|name| format!("--package={name}"));
            let built = cargo("build", ["--release".to_owned(), "--bins".to_owned()].into_iter().chain(packages))?;
            // Built separately: otherwise the tests' dependencies change the features of the functions' dependencies.
            let alone = ["--release".to_owned(), "--package=execute".to_owned(), format!("--bench={REFERENCE}")];
            (built, cargo("build", alone)?.remove(REFERENCE))
        } else {
            // The same build as for the local stack and the tests, so that nothing is compiled twice.
            let built = cargo("build", ["--workspace", "--bins"].map(str::to_owned))?;
            let tests = ["--workspace", "--no-run", "--lib", "--test=*", "--bench=*"].map(str::to_owned);
            (built, cargo("test", tests)?.remove(REFERENCE))
        };
        built.retain(|name, _| functions.contains(name));
        if built.len() != functions.len() {
            return Err("not every function has a binary of its name".into());
        }
        Ok(Self { functions: built, reference: reference.ok_or("there is no program to compare with")? })
    }

    fn command(&self, job: &Job) -> Command {
        if let Some(binary) = self.functions.get(job.function) {
            return Command::new(binary);
        }
        let mut command = Command::new(&self.reference);
        command.arg(job.function);
        command
    }

    /// In MB.
    fn size(&self, function: &str) -> Result<f64> {
        let binary = &self.functions[function];
        let file = fs::metadata(binary).map_err(|error| format!("{}: {error}", binary.display()))?;
        Ok(megabytes(file.len()))
    }
}

/// Builds; returns the programs by name.
fn cargo(what: &str, arguments: impl IntoIterator<Item = String>) -> Result<BTreeMap<String, PathBuf>> {
    let mut command = Command::new(env!("CARGO"));
    // Cargo sets these variables for programs it starts; build scripts that watch them would run again.
    for (name, _) in
        std::env::vars().filter(|(name, _)| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
    {
        command.env_remove(name);
    }
    let output = command
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .args([what, "--message-format=json-render-diagnostics"])
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err("it does not build".into());
    }
    let messages = output.stdout.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    let program = |message: Value| {
        Some((message["target"]["name"].as_str()?.to_owned(), PathBuf::from(message["executable"].as_str()?)))
    };
    Ok(messages.filter_map(program).collect())
}

#[derive(Default)]
struct Start {
    cpu: Vec<f64>,
    /// CPU time up to the request for the first event.
    ready_cpu: Vec<f64>,
    peak: Vec<f64>,
}

impl Start {
    fn add(&mut self, mut command: Command, job: &Job, number: u32, setting: &Setting) -> Result<()> {
        let mut function = Function::start(&mut command, &setting.environment())?;
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
    fn begin(mut command: Command, job: &'a Job<'a>, setting: &Setting, extent: Extent) -> Result<Self> {
        let process = Function::start(&mut command, &setting.environment())?;
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
        over.push(format!("{what}: {figure} {value:.2} {unit}, budget {most} {unit}"));
    }
}

fn milliseconds(duration: std::time::Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

#[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1_000_000.0
}
