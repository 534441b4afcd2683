//! Starts the whole system on this machine and plays the demo once: see `--help`.

use std::{io::Write, process::ExitCode};

use local::{
    Error, LlmService, Progress, Result,
    arguments::{self, Command},
    demo, report,
    stack::{self, Options, Stack},
};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> ExitCode {
    let llm = LlmService::of(|name| std::env::var_os(name)?.into_string().ok());
    let command = match arguments::parse(std::env::args().skip(1), llm) {
        Ok(command) => command,
        Err(error) => return failed(&error),
    };
    let Command::Run { options, demo, once } = command else {
        print(arguments::HELP);
        return ExitCode::SUCCESS;
    };
    // Dropping the future ends everything it has started.
    tokio::select! {
        result = run(&options, demo, once) => match result {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failed(&error),
        },
        () = told_to_end() => {
            print("\nended\n");
            ExitCode::SUCCESS
        }
    }
}

async fn run(options: &Options, demo: bool, once: bool) -> Result<()> {
    let progress = Progress::new(stack::STEPS + if demo { demo::ACTS } else { 0 }, |line| print(&format!("{line}\n")));
    let mut stack = Stack::start(options, &progress).await?;
    let played = if demo { Some(play(&stack, &progress).await?) } else { None };
    if once {
        return Ok(());
    }
    report::show(&stack, played.as_ref(), &progress);
    print("Serving until Ctrl-C.\n");
    Err(stack.ended().await)
}

async fn play(stack: &Stack, progress: &Progress) -> Result<demo::Played> {
    let played = demo::play(stack, progress).await;
    if played.is_err() {
        // The functions' last log lines are still on their way.
        tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
        for line in stack.last_function_logs(12) {
            print(&format!("      {line}\n"));
        }
    }
    played
}

/// Ctrl-C, SIGTERM or SIGHUP.
async fn told_to_end() {
    let wait = async |kind| match signal(kind) {
        Ok(mut signals) => {
            signals.recv().await;
        }
        Err(_unsupported) => std::future::pending().await,
    };
    tokio::select! {
        () = wait(SignalKind::interrupt()) => {}
        () = wait(SignalKind::terminate()) => {}
        () = wait(SignalKind::hangup()) => {}
    }
}

fn failed(error: &Error) -> ExitCode {
    print(&format!("\nerror: {error}\n"));
    ExitCode::FAILURE
}

/// Unlike `print!`, does not panic when the reader is gone, as with `| head`.
fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _reader_gone = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
