//! `make growth`: what an operation costs while the things it works on become many.
//!
//! Real handlers run over DynamoDB's emulator and the vendors' stand-ins, at sizes of three powers of ten. The counts of
//! requests, bytes and capacity units are the same on every machine, and an unexpected growth of one of them fails. CPU time
//! is shown beside them. `--report <file>` writes the table into a page, and its chart beside it; `--only <words>` measures
//! the curves with these words in their names.

#![expect(clippy::print_stdout, reason = "the report is what this is for")]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a bench stops at what is wrong"
)]

mod automations;
mod chart;
mod chat;
mod cpu;
mod curve;
#[path = "../../../shared/benches/measuring/mod.rs"]
mod measuring;
mod organization;
mod report;
mod rows;
mod runs;
mod tools;

use std::{path::PathBuf, process::ExitCode, time::Instant};

use tests::metrics::Metrics;

use crate::{
    curve::{Curve, Scenario},
    measuring::measures,
};

const SMALL: [usize; 2] = [8, 32];
const FULL: [usize; 3] = [10, 100, 1_000];

fn main() -> ExitCode {
    // One thread: its CPU time is that of the functions.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // Kept, so that they are not printed.
    let _metrics = Metrics::capture();
    let asked = argument("--only");
    let all = [runs::SCENARIOS, chat::SCENARIOS, tools::SCENARIOS, organization::SCENARIOS, automations::SCENARIOS];
    let scenarios = all.into_iter().flatten();
    let scenarios =
        scenarios.filter(|scenario| asked.as_ref().is_none_or(|words| scenario.grows.contains(words.as_str())));
    let page = argument("--report").map(PathBuf::from);
    let mut curves = Vec::new();
    for scenario in scenarios {
        curves.extend(runtime.block_on(curves_of(scenario)));
        // After each: a measurement that is broken off has written its beginning.
        if let Some(page) = &page {
            report::write(page, &curves);
        }
    }
    println!("\n{}\n\n{}", report::table(&curves), report::of_items(&curves));
    let mistakes: Vec<String> = curves.iter().filter_map(Curve::mistake).collect();
    for mistake in &mistakes {
        println!("{mistake}");
    }
    if mistakes.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn argument(name: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != name).nth(1)
}

async fn curves_of(scenario: &Scenario) -> Vec<Curve> {
    let sizes: &[usize] = if measures() { &FULL } else { &scenario.small };
    let begin = |(operation, expected): &(&'static str, _)| Curve {
        grows: scenario.grows,
        operation,
        expected: *expected,
        points: Vec::new(),
    };
    let mut curves: Vec<Curve> = scenario.operations.iter().map(begin).collect();
    for &size in sizes.iter().filter(|size| **size <= scenario.most || !measures()) {
        let started = Instant::now();
        let costs = (scenario.measure)(size).await;
        eprintln!("{size} {}: {:.1} s", scenario.grows, started.elapsed().as_secs_f64());
        assert_eq!(costs.len(), curves.len(), "a cost for each operation");
        for (curve, cost) in curves.iter_mut().zip(costs) {
            curve.points.push((size, cost));
        }
    }
    curves
}
