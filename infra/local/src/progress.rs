//! Progress of long steps for the user, in plain lines that also suit a log.

use std::{
    fmt,
    pin::pin,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::time::timeout;

/// The minimum time between two details of a step.
const DETAIL_EVERY: Duration = Duration::from_secs(2);

/// The longest silence before the user is told that the step still runs.
const SILENT_FOR: Duration = Duration::from_secs(10);

/// Maximum characters of a detail: one line of a terminal.
const DETAIL_LENGTH: usize = 100;

pub struct Progress {
    steps: usize,
    begun: AtomicUsize,
    print: Box<dyn Fn(&str) + Send + Sync>,
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress").field("steps", &self.steps).field("begun", &self.begun).finish_non_exhaustive()
    }
}

impl Progress {
    /// `print` receives each line without its line end.
    pub fn new(steps: usize, print: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { steps, begun: AtomicUsize::new(0), print: Box::new(print) }
    }

    /// Prints nothing; for tests.
    pub fn silent() -> Self {
        Self::new(0, |_line| {})
    }

    pub(crate) fn step(&self, what: &str) -> Step<'_> {
        let number = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
        self.line(&format!("[{number}/{}] {what}", self.steps));
        Step { progress: self, begun: Instant::now(), said: Mutex::new(Instant::now()) }
    }

    pub(crate) fn line(&self, text: &str) {
        (self.print)(text);
    }
}

pub(crate) struct Step<'a> {
    progress: &'a Progress,
    begun: Instant,
    said: Mutex<Instant>,
}

impl Step<'_> {
    /// Prints the current activity, unless the step printed a line a moment ago.
    pub(crate) fn detail(&self, text: &str) {
        self.say(text, DETAIL_EVERY);
    }

    /// Waits for `work` and prints `what` after every ten seconds without a line.
    pub(crate) async fn wait<T>(&self, what: &str, work: impl Future<Output = T>) -> T {
        self.wait_for(SILENT_FOR, what, work).await
    }

    async fn wait_for<T>(&self, silent_for: Duration, what: &str, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            match timeout(silent_for, &mut work).await {
                Ok(done) => return done,
                Err(_still_at_it) => self.say(what, silent_for),
            }
        }
    }

    fn say(&self, text: &str, silent_for: Duration) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.elapsed() >= silent_for && !text.trim().is_empty() {
            *said = Instant::now();
            let text: String = text.trim().chars().take(DETAIL_LENGTH).collect();
            self.progress.line(&format!("      {:>3} s  {text}", self.begun.elapsed().as_secs()));
        }
    }

    /// Prints a line that must not be dropped, such as a compiler's message.
    pub(crate) fn notice(&self, text: &str) {
        self.progress.line(text);
    }

    pub(crate) fn done(self, result: &str) {
        self.progress.line(&format!("      {result} · {:.1} s", self.begun.elapsed().as_secs_f64()));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn steps_are_numbered_and_details_do_not_flood() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&lines);
        let progress = Progress::new(2, move |line| sink.lock().unwrap().push(line.to_owned()));
        let step = progress.step("first");
        step.detail("too early to be worth a line");
        step.done("made it");
        let step = progress.step("second");
        *step.said.lock().unwrap() -= DETAIL_EVERY;
        step.detail("compiling");
        step.detail("compiling more");
        let lines = lines.lock().unwrap();
        assert_eq!(lines[0], "[1/2] first");
        assert!(lines[1].starts_with("      made it · "), "{lines:?}");
        assert_eq!(lines[2], "[2/2] second");
        assert!(lines[3].ends_with("  compiling"), "{lines:?}");
        assert_eq!(lines.len(), 4);
    }

    #[tokio::test]
    async fn a_wait_sends_events_and_ends_with_the_result() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&lines);
        let progress = Progress::new(1, move |line| sink.lock().unwrap().push(line.to_owned()));
        let step = progress.step("first");
        let begun = Instant::now();
        let work = async {
            while lines.lock().unwrap().len() < 2 && begun.elapsed() < Duration::from_secs(10) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            7
        };
        let what = format!("installing {}", "x".repeat(200));
        assert_eq!(step.wait_for(Duration::from_millis(5), &what, work).await, 7);
        let lines = lines.lock().unwrap();
        assert!(lines[1].contains("installing xxx") && lines[1].len() < 120, "{lines:?}");
    }
}
