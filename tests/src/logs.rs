//! Captures the log of a handler.

use std::{cell::RefCell, io, sync::Once};

use serde_json::Value;
use tracing_subscriber::fmt::MakeWriter;

thread_local! {
    static CAUGHT: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// Installs one subscriber for all threads. A subscriber of a single thread could miss events: tracing caches, for
/// the whole process, that an event's first thread had no interest in it.
pub(crate) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let subscriber = tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_max_level(tracing::Level::INFO)
            .with_writer(Lines);
        tracing::subscriber::set_global_default(subscriber.finish()).expect("nobody else logs in a test");
    });
}

/// Captures the log of this thread until dropped.
pub struct Logs(());

impl Logs {
    pub fn capture() -> Self {
        install();
        CAUGHT.with_borrow_mut(|caught| *caught = Some(Vec::new()));
        Self(())
    }

    pub fn text(&self) -> String {
        CAUGHT.with_borrow(|caught| String::from_utf8_lossy(caught.as_deref().unwrap_or_default()).into_owned())
    }

    /// The lines of the workspace's own crates, as JSON.
    pub fn ours(&self) -> Vec<Value> {
        let ours = ["agents", "attach", "create_tool", "execute", "list_tools", "phone_numbers", "shared"];
        let own =
            |line: &Value| line["target"].as_str().is_some_and(|target| ours.iter().any(|own| target.starts_with(own)));
        self.text()
            .lines()
            .map(|line| serde_json::from_str(line).expect("a line of the log is JSON"))
            .filter(own)
            .collect()
    }

    /// The lines of one level, `ERROR` or `WARN`.
    pub fn at(&self, level: &str) -> Vec<Value> {
        self.ours().into_iter().filter(|line| line["level"] == level).collect()
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        CAUGHT.with_borrow_mut(|caught| *caught = None);
    }
}

#[derive(Clone, Copy)]
struct Lines;

impl MakeWriter<'_> for Lines {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        *self
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        CAUGHT.with_borrow_mut(|caught| {
            if let Some(caught) = caught {
                caught.extend_from_slice(bytes);
            }
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
