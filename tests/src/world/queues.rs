//! The functions behind queues and the schedule, and the passage of time.

use std::{
    future::{self, Future as _},
    task::Poll,
    time::Duration,
};

use serde_json::{Value, json};
use shared::{Deadline, queue};

use super::{World, id};
use crate::{Fault, automation::AMPLE, aws::Received};

impl World {
    /// Delivers the due messages of both queues of `run-tool`, in batches, until each was tried once; returns the
    /// number of failures.
    pub async fn run_queued(&self) -> usize {
        let mut failed = 0;
        let mut batches = Vec::new();
        for queue in ["start-tools", "executions"] {
            while let Some(batch) = self.aws.receive(queue, 0) {
                batches.push(batch);
            }
        }
        for batch in batches {
            failed += self.run_batch(batch).await;
        }
        failed
    }

    /// Delivers one batch to `run-tool`; returns the number of failed messages.
    pub async fn run_batch(&self, batch: Received) -> usize {
        let event = serde_json::from_value(batch.event()).expect("an event of SQS's");
        let deadline = Deadline::after(Duration::from_secs(60));
        let run_tool = &self.process.run_tool;
        let handle = |message| run_tool::handle(run_tool, message, deadline);
        let report = Box::pin(queue::answer("run-tool", event, handle)).await;
        batch.answered(&serde_json::to_value(report).expect("a report is JSON"))
    }

    /// Delivers the due messages of the queue of runs until none is left, each with this much time; returns the
    /// number of failures.
    pub async fn run_loop(&self, within: Duration) -> usize {
        let mut failed = 0;
        while let Some(batch) = self.aws.receive("runs", 0) {
            failed += self.run_loop_batch(batch, within).await;
        }
        failed
    }

    /// Delivers one batch to `run-loop`; returns the number of failed messages.
    pub async fn run_loop_batch(&self, batch: Received, within: Duration) -> usize {
        let event = serde_json::from_value(batch.event()).expect("an event of SQS's");
        let run_loop = &self.process.run_loop;
        let handle = |message| run_loop::handle(run_loop, message, Deadline::after(within));
        let report = Box::pin(queue::answer("run-loop", event, handle)).await;
        batch.answered(&serde_json::to_value(report).expect("a report is JSON"))
    }

    /// Delivers every message of the queue of runs, delayed ones too, until none is left; at most 50 times, because a message that
    /// comes before the end of a pause comes again.
    ///
    /// # Panics
    /// If a message fails.
    pub async fn deliver_runs(&self) {
        for _ in 0..50 {
            let Some(batch) = self.aws.receive("runs", 900) else { return };
            assert_eq!(self.run_loop_batch(batch, AMPLE).await, 0);
        }
    }

    /// As [`World::deliver_runs`], with every pause between attempts over at once.
    ///
    /// # Panics
    /// If a message fails.
    pub async fn deliver_runs_without_pauses(&self) {
        for _ in 0..50 {
            let Some(batch) = self.aws.receive("runs", 900) else { return };
            assert_eq!(self.run_loop_batch(batch, AMPLE).await, 0);
            self.later();
        }
    }

    /// Delivers a batch of runs and kills the process where the fault makes it hang. The batch does not come again; the message
    /// for a successor does. False if the batch ended before.
    ///
    /// # Panics
    /// If the queue is empty.
    pub async fn kill_run(&self, fault: Fault) -> bool {
        self.aws.inject(fault);
        let batch = self.aws.receive("runs", 900).expect("a run is queued");
        let killed = tokio::select! {
            _ = self.run_loop_batch(batch, AMPLE) => false,
            () = self.aws.stalled() => true,
        };
        self.aws.clear_faults();
        self.later();
        killed
    }

    /// Delivers a batch of runs and kills the process at its await with this number, counted from 0. After that there is another
    /// process, the batch comes again, and claims lapse. False if the batch ended before.
    ///
    /// # Panics
    /// If the queue is empty.
    pub async fn kill_run_at(&mut self, mut awaits: u32) -> bool {
        let batch = self.aws.receive("runs", 900).expect("a run is queued");
        let event = serde_json::from_value(batch.event()).expect("an event of SQS's");
        let run_loop = &self.process.run_loop;
        let handle = |message| run_loop::handle(run_loop, message, Deadline::after(AMPLE));
        let mut work = Box::pin(queue::answer("run-loop", event, handle));
        let report = future::poll_fn(|context| match work.as_mut().poll(context) {
            Poll::Ready(report) => Poll::Ready(Some(report)),
            Poll::Pending if awaits == 0 => Poll::Ready(None),
            Poll::Pending => {
                awaits -= 1;
                Poll::Pending
            }
        });
        let report = report.await;
        drop(work);
        if let Some(report) = report {
            batch.answered(&serde_json::to_value(report).expect("a report is JSON"));
            return false;
        }
        self.restart();
        self.aws.idle().await;
        batch.failed();
        self.later();
        self.aws.lapse("idempotency", "lease_until");
        true
    }

    /// Delivers the due messages of the queue of occurrences; returns the number of failures.
    pub async fn run_scheduled(&self) -> usize {
        self.run_scheduled_within(0).await
    }

    /// As [`World::run_scheduled`], with the messages that are due within `seconds`.
    pub async fn run_scheduled_within(&self, seconds: i64) -> usize {
        let mut failed = 0;
        let mut batches = Vec::new();
        while let Some(batch) = self.aws.receive("scheduled", seconds) {
            batches.push(batch);
        }
        for batch in batches {
            failed += self.run_scheduled_batch(batch).await;
        }
        failed
    }

    /// Delivers one batch to `schedule`; returns the number of failed messages.
    pub async fn run_scheduled_batch(&self, batch: Received) -> usize {
        let event = serde_json::from_value(batch.event()).expect("an event of SQS's");
        let schedule = &self.process.schedule;
        let handle = |message| schedule::handle(schedule, message, Deadline::after(Duration::from_secs(60)));
        let report = Box::pin(queue::answer("schedule", event, handle)).await;
        batch.answered(&serde_json::to_value(report).expect("a report is JSON"))
    }

    /// Runs `settle`; returns its report.
    pub async fn settle(&self) -> Value {
        let report = settle::handle(&self.process.settle, Deadline::after(Duration::from_secs(200))).await;
        serde_json::to_value(report.expect("settle runs")).expect("a report is JSON")
    }

    /// Lets time pass: leases and the ownership of intents and names expire.
    pub fn later(&self) {
        let limits = [
            ("intents", "owner_until"),
            ("agents", "lease_until"),
            ("agents", "removing_until"),
            ("knowledge_bases", "lease_until"),
            ("tools", "lease_until"),
            ("tools", "reserved_until"),
            ("deployed_triggers", "lease_until"),
        ];
        for (table, attribute) in limits {
            for row in self.aws.rows(table).iter().filter(|row| row.get(attribute).is_some()) {
                self.aws.change(table, id(row), json!({attribute: 1}));
            }
        }
        for attribute in ["lease_until", "resume_at"] {
            self.aws.lapse("automation_runs", attribute);
        }
    }
}
