//! A function's program as a local process.

use std::{io, process::Stdio};

use tokio::{
    process::{Child, Command},
    task::JoinHandle,
};
use uuid::Uuid;

use super::{Configuration, environments::Log};
use crate::command::each_line;

/// Sets the variables that every Lambda runtime reads.
pub fn as_lambda(command: &mut Command, function: &Configuration, runtime_api: &str) {
    command
        .env("AWS_LAMBDA_RUNTIME_API", runtime_api)
        .env("AWS_LAMBDA_FUNCTION_NAME", &function.name)
        .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", function.memory.to_string())
        .env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
        .env("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand")
        .env("AWS_LAMBDA_LOG_GROUP_NAME", format!("/aws/lambda/{}", function.name))
        .env("AWS_LAMBDA_LOG_STREAM_NAME", Uuid::new_v4().simple().to_string());
}

/// Starts a program; its output goes to `log`. Aborting the task kills the program.
///
/// # Errors
/// If the operating system does not start it.
pub fn run(command: Command, log: Log) -> io::Result<JoinHandle<String>> {
    Ok(follow(spawn(command)?, log))
}

/// Starts a program for [`follow`].
///
/// # Errors
/// If the operating system does not start it.
pub fn spawn(mut command: Command) -> io::Result<Child> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).spawn()
}

/// Passes a program's output to `log` until it ends. Aborting the task kills the program.
pub fn follow(mut child: Child, log: Log) -> JoinHandle<String> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    tokio::spawn(async move {
        let ((), (), status) =
            tokio::join!(each_line(stdout, |line| log(line)), each_line(stderr, |line| log(line)), child.wait());
        match status {
            Ok(status) => format!("The process ended by itself: {status}"),
            Err(error) => format!("The process is lost: {error}"),
        }
    })
}
