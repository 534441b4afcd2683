//! `make bench`: what the functions cost, measured on their real release binaries against the budgets of the design.
//!
//! Each binary runs against a Lambda runtime API of its own on this machine, with DynamoDB (dynoxide), Secrets Manager and
//! the vendors' stand-ins behind it, all over plain HTTP. A figure over its budget is said so and fails nothing: it is a
//! measurement, and a busy machine measures high. What fails is a function that cannot be built or answers wrongly.

#![expect(clippy::print_stdout, reason = "the report is what this is for")]
#![expect(clippy::indexing_slicing, reason = "of JSON, where a member that is not there is null")]

mod function;
mod http_server;
mod reference;
mod report;
mod requests;
mod runtime_api;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use lambda_http::Error;

use crate::{
    function::Function,
    report::{Spread, Table},
    requests::{Job, Setting},
};

type Result<T> = std::result::Result<T, Error>;

/// Processes that are started for each function.
const STARTS: u32 = 15;
/// Requests to one process.
const REQUESTS: u32 = 1000;
/// By then everything that is made once has been made.
const WARM: u32 = 10;

/// The budgets: MB (10^6 bytes) and milliseconds.
const SIZE: f64 = 6.0;
const START_CPU: f64 = 4.0;
const PEAK: f64 = 16.0;
const OWN_CPU: f64 = 0.3;
/// The kernel counts memory in batches of pages; what grows by less has not grown.
const GROWTH: f64 = 0.3;

/// The argument before a directory of binaries to measure in place of those of this workspace's release profile:
/// `cargo bench -p tests --bench start_up -- --binaries /path`.
const BINARIES: &str = "--binaries";

fn main() -> ExitCode {
    // As the functions' own main: one thread.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = runtime.map_err(Into::into).and_then(|runtime| match reference::asked_for() {
        Some(serving) => runtime.block_on(serving),
        None => measure(&runtime),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("the measurement broke: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(runtime: &tokio::runtime::Runtime) -> Result<()> {
    let functions = functions()?;
    let mut arguments = std::env::args().skip_while(|argument| argument != BINARIES).skip(1);
    let directory = match arguments.next() {
        Some(directory) => PathBuf::from(directory),
        None => build(&functions)?,
    };
    let setting = runtime.block_on(Setting::start(&directory))?;
    let mut over = Vec::new();

    measure_starts(&functions, &directory, &setting, &mut over)?;
    measure_stays(&directory, &setting, &mut over)?;
    measure_own_time(&directory, &setting, &mut over)?;
    if over.is_empty() {
        println!("all within budget");
    }
    for line in over {
        println!("over budget: {line}");
    }
    Ok(())
}

fn measure_starts(functions: &[String], directory: &Path, setting: &Setting, over: &mut Vec<String>) -> Result<()> {
    let jobs = setting.jobs();
    let mut table = Table::new(["start", "size", "CPU to the first answer", "of it, to ready", "wall", "peak"]);
    table.row(["", "MB", "ms", "ms", "ms", "MB"].map(str::to_owned));
    for name in functions {
        let binary = directory.join(name);
        let size = megabytes(fs::metadata(&binary).map_err(|error| format!("{}: {error}", binary.display()))?.len());
        budget(over, name, "size", size, SIZE, "MB");
        let Some(job) = jobs.iter().find(|job| job.function == name) else {
            table.row([name, &format!("{size:.2}"), "no request known for it", "", "", ""].map(str::to_owned));
            continue;
        };
        let start = start(&binary, job, setting)?;
        budget(over, name, "CPU to the first answer (median)", start.cpu.median, START_CPU, "ms");
        table.row([
            name.clone(),
            format!("{size:.2}"),
            start.cpu.to_string(),
            start.ready_cpu.to_string(),
            start.wall.to_string(),
            format!("{:.2}", start.peak.median),
        ]);
    }
    println!(
        "\n{STARTS} starts: least / median / most; budget: {SIZE} MB, {START_CPU} ms CPU over plain HTTP\n{table}"
    );
    Ok(())
}

fn measure_stays(directory: &Path, setting: &Setting, over: &mut Vec<String>) -> Result<()> {
    let mut table =
        Table::new(["warm", "job", "CPU to the answer", "CPU in all", "wall", "peak at 10", "at 1000", "resident"]);
    table.row(["", "", "ms a request", "ms", "ms", "MB", "MB", "MB"].map(str::to_owned));
    for job in setting.jobs().iter().chain(&setting.references()?) {
        let stay = stay(&mut program(directory, job)?, job, setting)?;
        if !job.is_reference() {
            let what = format!("{} ({})", job.function, job.name);
            budget(over, &what, "peak memory at the 1000th request", stay.peak_last, PEAK, "MB");
            let growth = stay.peak_last - stay.peak_warm;
            budget(over, &what, "growth from the 10th to the 1000th request", growth, GROWTH, "MB");
        }
        table.row([
            job.function.trim_start_matches('-').to_owned(),
            job.name.to_owned(),
            stay.cpu.to_string(),
            stay.whole_cpu.to_string(),
            stay.wall.to_string(),
            format!("{:.2}", stay.peak_warm),
            format!("{:.2}", stay.peak_last),
            format!("{:.2}", stay.resident),
        ]);
    }
    println!(
        "requests {WARM} to {REQUESTS} of one process: least / median / most; budget: {PEAK} MB, the same at both\n{table}"
    );

    Ok(())
}

/// What `execute` takes for itself: over a function that only makes the same calls. Both are asked in turn, so that what
/// else the machine does meets both alike.
fn measure_own_time(directory: &Path, setting: &Setting, over: &mut Vec<String>) -> Result<()> {
    if cfg!(debug_assertions) {
        println!("execute's own time is not known: what it is compared with was built without optimization");
        return Ok(());
    }
    let (jobs, references) = (setting.jobs(), setting.references()?);
    let (Some(execute), Some(calls)) = (
        jobs.iter().find(|job| job.function == "execute"),
        references.iter().find(|job| job.function == reference::CALLS),
    ) else {
        return Ok(());
    };
    let mut pair = Vec::new();
    for job in [execute, calls] {
        pair.push((Function::start(&mut program(directory, job)?, &setting.environment())?, job));
    }
    let mut own = Vec::new();
    for number in 1..=REQUESTS {
        let mut took = Vec::new();
        for (function, job) in &mut pair {
            let before = function.idle()?;
            let answer = function.ask(job.event(number))?;
            job.check(&answer.response)?;
            took.push(milliseconds(answer.usage.cpu.saturating_sub(before.cpu)));
        }
        setting.forget();
        if number >= WARM {
            own.push(took[0] - took[1]);
        }
    }
    let own = Spread::of(own)?.median;
    println!("execute's own time, without the runtime, DynamoDB and the API: {own:.2} ms CPU; budget: {OWN_CPU} ms");
    budget(over, "execute", "own time (median)", own, OWN_CPU, "ms");
    Ok(())
}

/// The program that does a job: a function's binary, or this one in place of a function.
fn program(directory: &Path, job: &Job) -> Result<Command> {
    if !job.is_reference() {
        return Ok(Command::new(directory.join(job.function)));
    }
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(job.function);
    Ok(command)
}

/// The functions, by their directories.
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

/// Builds the functions as they are deployed; gives the directory of their binaries.
fn build(functions: &[String]) -> Result<PathBuf> {
    println!("building {} …", functions.join(", "));
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).args(["build", "--release", "--bins"]);
    cargo.args(functions.iter().flat_map(|name| ["--package", name]));
    if !cargo.status()?.success() {
        return Err("the functions do not build".into());
    }
    // This program is target/release/deps/start_up-….
    let itself = std::env::current_exe()?;
    let target = itself.ancestors().nth(3).ok_or("this program is not in a target directory")?;
    Ok(target.join("release"))
}

/// Figures of starts, each of a process of its own.
struct Start {
    cpu: Spread,
    /// CPU until it asked for the first event.
    ready_cpu: Spread,
    wall: Spread,
    peak: Spread,
}

fn start(binary: &Path, job: &Job, setting: &Setting) -> Result<Start> {
    let (mut cpu, mut ready_cpu, mut wall, mut peak) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for number in 0..STARTS {
        let mut function = Function::start(&mut Command::new(binary), &setting.environment())?;
        // The event is there before the function asks, as on a cold start; asking for it and waiting costs no CPU.
        let ready = function.idle()?;
        let answer = function.ask(job.event(number))?;
        job.check(&answer.response)?;
        cpu.push(milliseconds(answer.usage.cpu));
        ready_cpu.push(milliseconds(ready.cpu));
        wall.push(milliseconds(answer.since_start));
        peak.push(megabytes(answer.usage.peak));
    }
    setting.forget();
    Ok(Start {
        cpu: Spread::of(cpu)?,
        ready_cpu: Spread::of(ready_cpu)?,
        wall: Spread::of(wall)?,
        peak: Spread::of(peak)?,
    })
}

/// Figures of one process that answers many requests.
struct Stay {
    /// From the event to the answer.
    cpu: Spread,
    /// With what follows the answer.
    whole_cpu: Spread,
    wall: Spread,
    peak_warm: f64,
    peak_last: f64,
    resident: f64,
}

fn stay(command: &mut Command, job: &Job, setting: &Setting) -> Result<Stay> {
    let mut function = Function::start(command, &setting.environment())?;
    let (mut cpu, mut whole_cpu, mut wall, mut peak_warm) = (Vec::new(), Vec::new(), Vec::new(), 0.0);
    let mut before = function.idle()?;
    for number in 1..=REQUESTS {
        let answer = function.ask(job.event(STARTS + number))?;
        job.check(&answer.response)?;
        let after = function.idle()?;
        if number == WARM {
            peak_warm = megabytes(after.peak);
        }
        if number >= WARM {
            cpu.push(milliseconds(answer.usage.cpu.saturating_sub(before.cpu)));
            whole_cpu.push(milliseconds(after.cpu.saturating_sub(before.cpu)));
            wall.push(milliseconds(answer.wall));
        }
        before = after;
        setting.forget();
    }
    let (peak_last, resident) = (megabytes(before.peak), megabytes(before.resident));
    Ok(Stay {
        cpu: Spread::of(cpu)?,
        whole_cpu: Spread::of(whole_cpu)?,
        wall: Spread::of(wall)?,
        peak_warm,
        peak_last,
        resident,
    })
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
