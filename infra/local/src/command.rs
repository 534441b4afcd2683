//! Runs child processes and reads their output line by line.

use std::process::Stdio;

use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    process::Command,
};

use crate::{Error, Result};

pub(crate) struct Ended {
    pub(crate) success: bool,
    pub(crate) stdout: Vec<String>,
    pub(crate) stderr: Vec<String>,
}

/// Runs `command` to its end and passes each output line to `seen` at once. Dropping the future kills the program.
///
/// # Errors
/// If the command cannot be started or read, with the operating system's reason.
pub(crate) async fn run(command: &mut Command, what: &str, seen: impl Fn(Stream, &str) + Sync) -> Result<Ended> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(Error::file(format!("start {what}")))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr, status) = tokio::join!(
        lines(stdout, |line| seen(Stream::Stdout, line)),
        lines(stderr, |line| seen(Stream::Stderr, line)),
        child.wait()
    );
    let failed = Error::file(format!("run {what}"));
    let status = status.map_err(failed)?;
    Ok(Ended { success: status.success(), stdout, stderr })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

async fn lines(source: Option<impl AsyncRead + Unpin>, seen: impl Fn(&str)) -> Vec<String> {
    let mut all = Vec::new();
    each_line(source, |line| {
        seen(line);
        all.push(line.to_owned());
    })
    .await;
    all
}

/// Passes each line of a pipe to `seen` until the pipe ends.
pub(crate) async fn each_line(source: Option<impl AsyncRead + Unpin>, mut seen: impl FnMut(&str)) {
    let Some(source) = source else { return };
    let mut source = BufReader::new(source);
    let mut line = Vec::new();
    // A read error counts as the end of the pipe: the exit code shows whether the program failed.
    while matches!(source.read_until(b'\n', &mut line).await, Ok(read) if read > 0) {
        seen(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
}
