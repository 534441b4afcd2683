//! Requests on a fixed schedule, and their latencies.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until},
};

/// One answer, timed from the intended start of its request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timed<T> {
    pub(crate) intended: Instant,
    pub(crate) latency: Duration,
    pub(crate) answer: T,
}

/// The answers of a schedule.
pub(crate) struct Outcome<T> {
    /// In order of the intended starts.
    pub(crate) answers: Vec<Timed<T>>,
    /// Requests that were sent.
    pub(crate) sent: usize,
    /// Requests without an answer at the last intended start.
    pub(crate) backlog: usize,
    /// From the first intended start to the last answer.
    pub(crate) took: Duration,
}

impl<T> Outcome<T> {
    pub(crate) fn latencies(&self) -> Latencies {
        Latencies::of(self.answers.iter().map(|timed| timed.latency))
    }

    /// Answers within a second.
    pub(crate) fn throughput(&self) -> f64 {
        let answers = u32::try_from(self.answers.len()).unwrap_or(u32::MAX);
        f64::from(answers) / self.took.as_secs_f64()
    }
}

/// Sends each of `requests` at its own time, also while earlier ones are open: the `n`th after `n` times `every`. Sends no
/// further one when more than `most` have no answer.
pub(crate) async fn open_loop<R, T, F>(
    requests: Vec<R>,
    every: Duration,
    most: usize,
    send: impl Fn(R) -> F + Send + Sync + 'static,
) -> Outcome<T>
where
    R: Send + 'static,
    T: Send + 'static,
    F: Future<Output = T> + Send,
{
    let send = Arc::new(send);
    let open = Arc::new(AtomicUsize::new(0));
    let begun = Instant::now();
    let (mut sent, mut tasks) = (0, JoinSet::new());
    for (number, request) in requests.into_iter().enumerate() {
        let intended = begun + every * u32::try_from(number).unwrap_or(u32::MAX);
        sleep_until(intended).await;
        if open.fetch_add(1, Ordering::Relaxed) > most {
            open.fetch_sub(1, Ordering::Relaxed);
            break;
        }
        sent += 1;
        let (send, open) = (Arc::clone(&send), Arc::clone(&open));
        tasks.spawn(async move {
            let answer = send(request).await;
            open.fetch_sub(1, Ordering::Relaxed);
            (number, Timed { intended, latency: intended.elapsed(), answer })
        });
    }
    let backlog = open.load(Ordering::Relaxed);
    let mut answers = tasks.join_all().await;
    answers.sort_by_key(|(number, _)| *number);
    let answers = answers.into_iter().map(|(_, timed)| timed).collect();
    Outcome { answers, sent, backlog, took: begun.elapsed() }
}

/// Percentiles in milliseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Latencies {
    pub(crate) median: f64,
    pub(crate) p99: f64,
    pub(crate) most: f64,
}

impl Latencies {
    /// Zero without latencies.
    pub(crate) fn of(latencies: impl IntoIterator<Item = Duration>) -> Self {
        let mut sorted: Vec<Duration> = latencies.into_iter().collect();
        sorted.sort_unstable();
        // The least latency that this many of a hundred do not exceed.
        let percentile = |of_hundred: usize| {
            let rank = (sorted.len() * of_hundred).div_ceil(100);
            sorted.get(rank.saturating_sub(1)).map_or(0.0, |latency| latency.as_secs_f64() * 1_000.0)
        };
        Self { median: percentile(50), p99: percentile(99), most: percentile(100) }
    }

    /// As cells of a table.
    pub(crate) fn cells(self) -> [String; 3] {
        [self.median, self.p99, self.most].map(|milliseconds| format!("{milliseconds:.1}"))
    }
}
