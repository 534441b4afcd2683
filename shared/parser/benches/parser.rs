//! `cargo bench -p tool-calls --bench parser`, or `make bench`: bytes that the parser reads in a second, as it is deployed.
//!
//! Every input has its size in its name. What each is to reach is in docs/adr/0009-tool-call-parser.md.

use std::{hint::black_box, time::Duration};

use criterion::{BenchmarkId, Criterion, Throughput};
use tool_calls::parse;

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

/// `unit` again and again, to a megabyte.
fn megabyte(unit: &str) -> String {
    let mut text = unit.repeat(MEGABYTE / unit.len() + 1);
    text.truncate(MEGABYTE - MEGABYTE % unit.len());
    text
}

/// So many calls, each of them one of [`CALLS`], in one block.
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
}
