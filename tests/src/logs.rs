//! What a handler logs.

use std::{
    io,
    sync::{Arc, Mutex},
};

use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

/// Catches the log of everything that runs on this thread until it is dropped.
pub struct Logs {
    lines: Lines,
    _guard: DefaultGuard,
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Logs {
    pub fn capture() -> Self {
        let lines = Lines::default();
        let subscriber = tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_max_level(tracing::Level::DEBUG)
            .with_writer(lines.clone())
            .finish();
        Self { lines, _guard: tracing::subscriber::set_default(subscriber) }
    }

    /// Everything so far.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.lines.0.lock().unwrap()).into_owned()
    }

    /// The lines of our own crates, as JSON.
    pub fn ours(&self) -> Vec<serde_json::Value> {
        let lines = self.text();
        let lines = lines.lines().map(|line| serde_json::from_str(line).expect("a line of the log is JSON"));
        let ours = ["attach", "create", "execute", "list", "shared"];
        lines
            .filter(|line: &serde_json::Value| {
                line["target"].as_str().is_some_and(|target| ours.iter().any(|name| target.starts_with(name)))
            })
            .collect()
    }

    /// Lines of a level, `ERROR` or `WARN`.
    pub fn at(&self, level: &str) -> Vec<serde_json::Value> {
        self.ours().into_iter().filter(|line| line["level"] == level).collect()
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
