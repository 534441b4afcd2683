//! `cargo bench -p tool-calls --bench parser`, or `make bench`: bytes parsed per second, built as deployed.
//!
//! Names of inputs contain their sizes; docs/adr/0009-tool-call-parser.md has the targets. If node is installed, the last
//! comparison is with a parser by regular expressions on V8 (`regex.mjs`) in the same run.

#[path = "../../benches/measuring/mod.rs"]
mod measuring;

use std::{
    env, fs,
    hint::black_box,
    process::{self, Command},
    time::{Duration, Instant},
};

use criterion::{BenchmarkId, Criterion, Throughput};
use tool_calls::parse;

use crate::measuring::measures;

const MEGABYTE: usize = 1 << 20;

const PLAIN: &str = "The page lists the opening hours of the shop, and says that it is closed on public holidays. I would \
                     first look at the calendar, then ask the customer which day suits them, and offer two times.\n\n";

const CODE: &str = "Call `fetch` with the `url` and look at `response.status`; with `429` wait as long as `Retry-After` says \
                    and try again, at most `3` times. A `for` loop does that:\n\n\
                    ```js\nfor (let i = 0; i < 3; i += 1) {\n  const response = await fetch(`${base}/orders/${id}`);\n  \
                    if (response.status !== 429) return response.json();\n}\n```\n\n\
                    - `base` is the address of the service, such as `https://api.example.com`.\n- `id` is the order's number.\n\n";

const CALLS: [&str; 6] = [
    "return wget(\"https://en.wikipedia.org/wiki/Rust_(programming_language)\", 5000);\n",
    "return await search({query: 'opening hours of the museum', limit: 10, tags: [\"culture\", \"city\"], exact: true});\n",
    "createEvent('Call with Ana \\u{1F4DE}', {start: \"2026-03-01T09:30:00Z\", minutes: 45, invite: ['ana@example.com', 'bo@example.com']});\n",
    "// the customer asked for it\nsendMessage(\"+351210000000\", `Hello Ana,\nyour appointment is on Monday.\nIt's at 9:30.`);\n",
    "updateRow(\"orders\", 48213, {\"status\": \"paid\", \"total\": 129.95, \"items\": [{sku: 'A-1', n: 2}, {sku: 'B-7', n: 1}], \"note\": null});\n",
    "return finalResponse();\n",
];

const JSON: &str = "updateRow(\"orders\", 48213, {\"status\": \"paid\", \"total\": 129.95, \"items\": [{\"sku\": \"A-1\", \"n\": 2}, {\"sku\": \"B-7\", \"n\": 1}], \"note\": null});\n";

fn megabyte(unit: &str) -> String {
    let mut text = unit.repeat(MEGABYTE / unit.len() + 1);
    text.truncate(MEGABYTE - MEGABYTE % unit.len());
    text
}

/// A block filled with the calls of [`CALLS`].
fn dense(bytes: usize) -> String {
    let mut text = "```tool\n".to_owned();
    for call in CALLS.iter().cycle() {
        if text.len() + call.len() > bytes {
            break;
        }
        text.push_str(call);
    }
    text + "```\n"
}

fn blocks(call: &str, bytes: usize) -> String {
    let block = format!("I look it up.\n\n```tool\n{call}```\n\n");
    block.repeat(bytes / block.len())
}

/// Compares the best half second of both parsers.
#[expect(clippy::print_stdout, reason = "it is what a benchmark is for")]
fn against_v8() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/regex.mjs");
    let file = env::temp_dir().join(format!("tool-calls-{}.txt", process::id()));
    for (name, text) in [
        ("prose", megabyte(PLAIN)),
        ("prose and a call", megabyte(PLAIN) + "```tool\nreturn finalResponse();\n```\n"),
        ("dense calls, one per block", blocks(CALLS[0], 1 << 16)),
        ("calls full of objects", dense(1 << 16)),
        ("calls full of objects in JSON", blocks(JSON, 1 << 16)),
        ("back-ticks in one run", megabyte("`")),
        ("back-ticks in threes on lines", megabyte("```\n")),
    ] {
        let seconds = if measures() { "0.5" } else { "0.01" };
        let node =
            fs::write(&file, &text).and_then(|()| Command::new("node").arg(script).arg(&file).arg(seconds).output());
        let Ok(theirs) = node.map(|output| String::from_utf8_lossy(&output.stdout).trim().parse::<f64>()) else {
            println!("there is no node to compare with");
            break;
        };
        let (begun, mut best) = (Instant::now(), f64::MAX);
        loop {
            let one = Instant::now();
            black_box(parse(black_box(&text)));
            best = best.min(one.elapsed().as_secs_f64());
            if begun.elapsed() > Duration::from_millis(500) || !measures() {
                break;
            }
        }
        let size = f64::from(u32::try_from(text.len()).unwrap_or(u32::MAX));
        let (ours, theirs) = (size / best / 1e6, theirs.unwrap_or(f64::NAN) / 1e6);
        println!("{name}: {ours:.0} MB/s, {:.2} times as fast as V8's {theirs:.0}", ours / theirs);
    }
    // A temporary file; errors do not matter.
    let _ = fs::remove_file(&file);
}

fn main() {
    let answer = format!("{}{}```tool\n{}{}```\n", PLAIN.repeat(6), CODE, CALLS[0], CALLS[1]);
    let literal = format!("```tool\nreturn save(`{}`)\n```\n", PLAIN.repeat(5_000));
    let inputs = [
        ("prose", megabyte(PLAIN)),
        ("prose with code", megabyte(CODE)),
        ("prose with code and one call", megabyte(CODE) + "```tool\nreturn finalResponse();\n```\n"),
        ("an answer with two calls", answer),
        ("dense calls of two arguments", format!("```tool\n{}```\n", megabyte(CALLS[0]))),
        ("dense calls of two arguments", format!("```tool\n{}```\n", CALLS[0].repeat(50))),
        ("dense calls with objects", dense(MEGABYTE)),
        ("dense calls with objects", dense(4096)),
        ("one long text as an argument", literal),
        ("back-ticks in one run", megabyte("`")),
        ("back-ticks in pairs", megabyte("`` ")),
        ("back-ticks in threes", megabyte("``` ")),
        ("back-ticks in threes on lines", megabyte("```\n")),
        ("statements that are no calls", format!("```tool\n{}```\n", megabyte("if (x) f(y);\n"))),
        ("parentheses", format!("```tool\nf{}", megabyte("("))),
    ];
    let mut criterion = Criterion::default()
        .without_plots()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2))
        .sample_size(20)
        .configure_from_args();
    let mut group = criterion.benchmark_group("parser");
    for (name, text) in inputs {
        group.throughput(Throughput::BytesDecimal(text.len() as u64));
        let id = BenchmarkId::new(name, format!("{} B", text.len()));
        group.bench_with_input(id, text.as_str(), |bencher, text| bencher.iter(|| parse(black_box(text))));
    }
    group.finish();
    criterion.final_summary();
    against_v8();
}
