//! Copies the functions' log lines from `CloudWatch` to one file.

use std::{
    collections::HashMap,
    fs::{self, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{task::JoinHandle, time::sleep};

use crate::{Error, Result, aws::Aws, deploy::STACK};

const EVERY: Duration = Duration::from_secs(1);

/// How late an event may appear after a newer one, in milliseconds.
const OVERLAP: i64 = 2000;

/// Copies the functions' log lines to a file as they come, until dropped.
#[derive(Debug)]
pub(crate) struct FunctionLogs {
    task: JoinHandle<()>,
}

impl FunctionLogs {
    /// Empties `file` first.
    pub(crate) fn follow(aws: &Aws, functions: Vec<String>, file: PathBuf) -> Result<Self> {
        fs::write(&file, "").map_err(Error::file(format!("write {}", file.display())))?;
        let aws = aws.clone();
        let task = tokio::spawn(async move {
            let mut groups: Vec<LogGroup> = functions.into_iter().map(LogGroup::new).collect();
            loop {
                for group in &mut groups {
                    // A group without lines yet, or an AWS that is shutting down: the next pass tries again.
                    if let Ok(lines) = group.new_lines(&aws).await
                        && append(&file, &lines).is_err()
                    {
                        return;
                    }
                }
                sleep(EVERY).await;
            }
        });
        Ok(Self { task })
    }
}

impl Drop for FunctionLogs {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The log file, for functions whose lines do not go through `CloudWatch`.
#[derive(Debug, Clone)]
pub(crate) struct LogFile(PathBuf);

impl LogFile {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self(file)
    }

    /// Appends a line. If the disk is full, only the line is lost.
    pub(crate) fn write(&self, function: &str, line: &str) {
        let _full = append(&self.0, &[format!("{function} {}\n", line.trim_end())]);
    }
}

/// A function's log group and the position up to which it was read.
struct LogGroup {
    function: String,
    /// Time of the newest event, in milliseconds since 1970.
    newest: i64,
    /// The events since [`OVERLAP`] before the newest, which the next query returns again.
    seen: HashMap<String, i64>,
}

impl LogGroup {
    fn new(function: String) -> Self {
        Self { function, newest: 0, seen: HashMap::new() }
    }

    async fn new_lines(&mut self, aws: &Aws) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        let start = (self.newest - OVERLAP).max(0);
        let mut next = None;
        loop {
            let group = format!("/aws/lambda/{STACK}-{}", self.function);
            let mut request = json!({"logGroupName": group, "startTime": start});
            if let (Some(next), Some(fields)) = (next, request.as_object_mut()) {
                fields.insert("nextToken".to_owned(), Value::String(next));
            }
            let page = aws.json("logs", "Logs_20140328.FilterLogEvents", &request).await?;
            lines.extend(
                page.get("events").and_then(Value::as_array).into_iter().flatten().filter_map(|event| self.line(event)),
            );
            next = page.get("nextToken").and_then(Value::as_str).map(str::to_owned);
            if next.is_none() {
                break;
            }
        }
        let (newest, seen) = (self.newest, &mut self.seen);
        seen.retain(|_event, time| *time >= newest - OVERLAP);
        Ok(lines)
    }

    /// An event as a line of the file, unless it is there already. Events have no id, so their whole content
    /// identifies them.
    fn line(&mut self, event: &Value) -> Option<String> {
        let time = event.get("timestamp")?.as_i64()?;
        self.newest = self.newest.max(time);
        if self.seen.insert(event.to_string(), time).is_some() {
            return None;
        }
        Some(format!("{} {}\n", self.function, event.get("message")?.as_str()?.trim_end()))
    }
}

fn append(file: &Path, lines: &[String]) -> std::io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    OpenOptions::new().append(true).open(file)?.write_all(lines.concat().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_written_once() {
        let mut group = LogGroup::new("attach".to_owned());
        let event = |stream: &str, message: &str| json!({"logStreamName": stream, "timestamp": 5, "message": message});
        assert_eq!(group.line(&event("1", "hello\n")).as_deref(), Some("attach hello\n"));
        assert_eq!(group.line(&event("1", "hello\n")), None);
        assert_eq!(group.line(&event("2", "hello\n")).as_deref(), Some("attach hello\n"));
        assert_eq!(group.newest, 5);
    }
}
