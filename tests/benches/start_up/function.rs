//! A function's process, asked one request at a time and measured while it waits.
//!
//! CPU time is the scheduler's count for its threads (`/proc/<pid>/task/*/schedstat`, in nanoseconds, user and
//! system), read while all of them sleep. Memory is `VmHWM` and `VmRSS` of `/proc/<pid>/status`.

use std::{
    collections::{BTreeMap, VecDeque},
    fs,
    io::{BufRead, BufReader, Read},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError, mpsc::RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{
    Result,
    runtime_api::{Report, RuntimeApi},
};

/// The longest silence of a function.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often the process is checked for life.
const LOOK: Duration = Duration::from_millis(200);
/// Output lines that are kept for an error message.
const KEPT: usize = 20;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    pub(crate) cpu: Duration,
    /// Bytes.
    pub(crate) peak: u64,
    /// Bytes, now.
    pub(crate) resident: u64,
}

pub(crate) struct Answer {
    /// API Gateway's format: `{"statusCode", "headers", "body", …}`.
    pub(crate) response: Value,
    /// The usage up to this answer.
    pub(crate) usage: Usage,
}

pub(crate) struct Function {
    program: String,
    child: Child,
    api: RuntimeApi,
    output: Arc<Mutex<VecDeque<String>>>,
    waits: bool,
}

impl Function {
    /// Starts a program with only `environment` and the runtime API in its environment.
    pub(crate) fn start(command: &mut Command, environment: &BTreeMap<&str, String>) -> Result<Self> {
        let api = RuntimeApi::start()?;
        command
            .env_clear()
            .env("AWS_LAMBDA_RUNTIME_API", api.address().to_string())
            .env("AWS_LAMBDA_FUNCTION_NAME", "switchboard")
            .env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
            .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256")
            .envs(environment)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let program = command.get_program().display().to_string();
        let mut child = command.spawn().map_err(|error| format!("{program} does not start: {error}"))?;
        let output = Arc::default();
        keep(child.stdout.take(), &output);
        keep(child.stderr.take(), &output);
        Ok(Self { program, child, api, output, waits: false })
    }

    /// The usage after all work that followed the last answer.
    pub(crate) fn idle(&mut self) -> Result<Usage> {
        if !self.waits {
            let Report::Waits = self.report()? else {
                return Err(format!("{} answered what it was not asked", self.program).into());
            };
            self.waits = true;
        }
        self.usage()
    }

    pub(crate) fn ask(&mut self, event: String) -> Result<Answer> {
        self.idle()?;
        self.api.events.send(event)?;
        self.waits = false;
        let Report::Answered(response) = self.report()? else {
            return Err(format!("{} did not answer", self.program).into());
        };
        let usage = self.usage()?;
        self.api.taken.send(())?;
        Ok(Answer { response, usage })
    }

    fn report(&mut self) -> Result<Report> {
        let until = Instant::now() + PATIENCE;
        let failure = loop {
            // The last report counts even if the process has ended since.
            let ended = self.child.try_wait()?;
            match self.api.reports.recv_timeout(LOOK) {
                Ok(Report::Failed(error)) => break error,
                Ok(report) => return Ok(report),
                Err(RecvTimeoutError::Disconnected) => break "the runtime API broke".to_owned(),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if let Some(status) = ended {
                break format!("it ended with {status}");
            }
            if Instant::now() > until {
                break format!("it was silent for {PATIENCE:?}");
            }
        };
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let said = output.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
        Err(format!("{}: {failure}\n{said}", self.program).into())
    }

    /// Read when every thread sleeps: only then are the scheduler's figures complete.
    fn usage(&self) -> Result<Usage> {
        let process = format!("/proc/{}", self.child.id());
        let until = Instant::now() + PATIENCE;
        loop {
            let mut cpu = Duration::ZERO;
            let mut runs = false;
            for task in fs::read_dir(format!("{process}/task"))? {
                let task = task?.path();
                let state = fs::read_to_string(task.join("stat"))?;
                // pid (name) state …
                runs |= state.rsplit(") ").next().is_none_or(|rest| rest.starts_with('R'));
                let counted = fs::read_to_string(task.join("schedstat"))?;
                let nanoseconds = counted.split(' ').next().unwrap_or_default().parse()?;
                cpu += Duration::from_nanos(nanoseconds);
            }
            if !runs {
                let status = fs::read_to_string(format!("{process}/status"))?;
                return Ok(Usage { cpu, peak: memory(&status, "VmHWM:")?, resident: memory(&status, "VmRSS:")? });
            }
            if Instant::now() > until {
                return Err(format!("{} works on, although it has nothing to do", self.program).into());
            }
            thread::sleep(Duration::from_micros(20));
        }
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        // The process waits for an event that will not come; Lambda ends it in the same way.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Bytes.
fn memory(status: &str, field: &str) -> Result<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field)).ok_or("/proc has no such field")?;
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kibibytes * 1024)
}

/// Keeps the last output lines; reads everything, as Lambda does.
fn keep(stream: Option<impl Read + Send + 'static>, output: &Arc<Mutex<VecDeque<String>>>) {
    let output = output.clone();
    thread::spawn(move || {
        for line in stream.into_iter().flat_map(|stream| BufReader::new(stream).lines()).map_while(std::io::Result::ok)
        {
            let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
            output.push_back(line);
            if output.len() > KEPT {
                output.pop_front();
            }
        }
    });
}
