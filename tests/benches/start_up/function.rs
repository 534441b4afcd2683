//! A function's process, asked one request at a time and measured while it waits.
//!
//! CPU time is the scheduler's count for its threads (`/proc/<pid>/task/*/schedstat`, in nanoseconds, user and
//! system), read while all of them sleep. Memory is `VmHWM` and `VmRSS` of `/proc/<pid>/status`.

use std::{
    collections::BTreeMap,
    fs,
    future::Future,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use tests::{
    functions,
    lambda::{self, Answers, Configuration},
};
use tokio::{runtime::Handle, time::timeout};

use crate::Result;

/// The longest silence of a function.
const PATIENCE: Duration = Duration::from_secs(30);
/// The time of an invocation: the template's time-out of run-loop, which stops shortly before its end.
const TIME: Duration = Duration::from_secs(300);

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
    process: u32,
    function: functions::Function,
    runtime: Handle,
}

impl Function {
    /// Starts a program with only `environment` and Lambda's variables in its environment.
    pub(crate) fn start(
        runtime: &Handle,
        command: &Command,
        environment: &BTreeMap<&'static str, String>,
    ) -> Result<Self> {
        let program = command.get_program().display().to_string();
        let configuration = Configuration {
            name: "switchboard".to_owned(),
            arn: "arn:aws:lambda:eu-central-1:123456789012:function:switchboard".to_owned(),
            memory: 256,
            time_out: TIME,
            answers: Answers::Whole,
        };
        let (function, process) = runtime.block_on(async {
            let function = functions::Function::start(command, environment.clone(), configuration);
            function.lambda.provision().await;
            let process = function.newest_process();
            (function, process)
        });
        let process = process.ok_or_else(|| format!("{program} does not start: {}", function.said()))?;
        Ok(Self { program, process, function, runtime: runtime.clone() })
    }

    /// The usage after all work that followed the last answer.
    pub(crate) fn idle(&mut self) -> Result<Usage> {
        let waits = self.within(self.function.lambda.rest())?;
        if !waits {
            return Err(self.failure("it ended"));
        }
        self.usage()
    }

    pub(crate) fn ask(&mut self, event: String) -> Result<Answer> {
        self.idle()?;
        let answer = self.within(async {
            let answer = self.function.lambda.invoke(event.into(), lambda::trace()).await?;
            answer.unconfirmed().await
        })?;
        let Some((response, confirm)) = answer else { return Err(self.failure("it did not answer")) };
        let usage = self.usage()?;
        // A process that has ended since is found by the next request.
        let _ended = confirm.send(());
        Ok(Answer { response: serde_json::from_slice(&response).unwrap_or_default(), usage })
    }

    fn within<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        let done = self.runtime.block_on(async { timeout(PATIENCE, work).await });
        done.map_err(|_late| self.failure(&format!("it was silent for {PATIENCE:?}")))
    }

    fn failure(&self, what: &str) -> lambda_http::Error {
        format!("{}: {what}\n{}", self.program, self.function.said()).into()
    }

    /// Read when every thread sleeps: only then are the scheduler's figures complete.
    fn usage(&self) -> Result<Usage> {
        let process = format!("/proc/{}", self.process);
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

/// Bytes.
fn memory(status: &str, field: &str) -> Result<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field)).ok_or("/proc has no such field")?;
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kibibytes * 1024)
}
