//! `make bench ALL=1`: the own time of tool search, without DynamoDB: the index of the first search of a process, against 300
//! ms for 10,000 tools; a search, against 20 ms; a service with 500 tools in JSON and as text, against 5 ms. Each from 100 to
//! 10,000 tools, and how it grows: a hundred times the tools may take a hundred times as long, and not much more.

#![expect(clippy::print_stdout, reason = "the report is what this is for")]
#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a bench stops at what is wrong")]

mod measuring;

use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use criterion::{BenchmarkId, Criterion, Throughput};
use serde_json::json;
use shared::{
    connections::Connection,
    discovery::{Segment, ServiceOverview, ServiceOverviews, ShownConnection, ToolIndex, TriggerKinds},
    models::{ConnectionKind, ListedServiceTool, Service, ServiceId, Timestamp},
};

use crate::measuring::measures;

const SIZES: [usize; 3] = [100, 1_000, 10_000];
/// Tools of a service, except the shown tool.
const OF_A_SERVICE: usize = 100;
const SHOWN: usize = 500;

const VERBS: [&str; 12] =
    ["create", "update", "delete", "list", "get", "search", "send", "archive", "export", "import", "approve", "cancel"];
const NOUNS: [&str; 20] = [
    "message", "channel", "invoice", "contact", "deal", "ticket", "event", "calendar", "row", "sheet", "page",
    "database", "issue", "comment", "refund", "payment", "order", "file", "folder", "report",
];
const PROSE: [&str; 24] = [
    "of",
    "the",
    "workspace",
    "with",
    "its",
    "owner",
    "and",
    "status",
    "by",
    "name",
    "or",
    "identifier",
    "returns",
    "newest",
    "first",
    "optionally",
    "only",
    "those",
    "since",
    "a",
    "date",
    "including",
    "attachments",
    "labels",
];

const QUERIES: [(&str, &str); 4] = [
    ("three words", "create an invoice for a contact"),
    ("eight words", "search newest messages of a channel with attachments, labels and their owner"),
    ("one tool's name", "service_7_update_ticket_42"),
    ("typing errors", "creat invoce calender atachments"),
];

fn service(number: usize) -> Service {
    let now = Timestamp::now();
    let name = format!("Service {number}");
    Service {
        id: ServiceId::of_name(&name),
        name,
        description: String::new(),
        categories: vec!["work".to_owned()],
        connection: ConnectionKind::None,
        is_active: true,
        tools: 100,
        edition: "1".to_owned(),
        created_at: now,
        updated_at: now,
    }
}

fn tools(service: &Service, count: usize) -> Vec<ListedServiceTool> {
    let prefix = service.name.to_lowercase().replace(' ', "_");
    let of = |number: usize| {
        let (verb, noun) = (VERBS[number % VERBS.len()], NOUNS[(number / VERBS.len() + number) % NOUNS.len()]);
        let prose: Vec<&str> = (0..25).map(|word| PROSE[(number * 7 + word * word) % PROSE.len()]).collect();
        serde_json::from_value(json!({
            "name": format!("{prefix}_{verb}_{noun}_{number}"), "title": format!("{verb} {noun}"),
            "description": format!("Can {verb} a {noun} {}.", prose.join(" ")), "service_name": service.name, "category": "write",
            "is_active": true, "fingerprint": "0123456789abcdef0123456789abcdef", "version": "1", "effect": true,
            "destructive": false, "parameter_names": [format!("{noun}_id"), "fields", "limit"],
        }))
        .expect("a tool")
    };
    (0..count).map(of).collect()
}

fn catalogue(tools_in_all: usize) -> Vec<(Service, Vec<ListedServiceTool>)> {
    (0..tools_in_all / OF_A_SERVICE)
        .map(service)
        .map(|service| {
            let tools = tools(&service, OF_A_SERVICE);
            (service, tools)
        })
        .collect()
}

fn index(catalogue: Vec<(Service, Vec<ListedServiceTool>)>) -> ToolIndex {
    let segments = catalogue
        .into_iter()
        .map(|(service, tools)| Arc::new(Segment::of_service(service, tools, Some(TriggerKinds::default()))));
    ToolIndex { segments: segments.collect(), ..ToolIndex::default() }
}

fn search(index: &ToolIndex, query: &str) -> usize {
    let all: Vec<&Segment> = index.segments.iter().map(AsRef::as_ref).collect();
    index.rank(query, &all, |_, _| true).found.len()
}

fn overview(count: usize) -> ServiceOverviews {
    let shown = service(1);
    let listed = Segment::of_service(shown.clone(), tools(&shown, count), Some(TriggerKinds::default())).tools;
    let overview = ServiceOverview {
        name: shown.name.clone(),
        description: String::new(),
        categories: Vec::new(),
        connection_kind: ConnectionKind::None,
        connection: ShownConnection::new(&shown, Connection::NotNeeded),
        total: listed.len(),
        tools: listed,
        arrivals: Vec::new(),
        capabilities: None,
        capabilities_problem: None,
    };
    ServiceOverviews { services: vec![overview], problems: Vec::new(), next_cursor: None, guide: None }
}

fn main() {
    let mut criterion =
        Criterion::default().sample_size(10).measurement_time(Duration::from_secs(2)).configure_from_args();
    let mut group = criterion.benchmark_group("index");
    let [few, _, many] = if measures() { SIZES } else { [SIZES[0]; 3] };
    let sizes = SIZES.into_iter().filter(|size| *size <= many);
    for size in sizes.clone() {
        let catalogue = catalogue(size);
        group.throughput(Throughput::Elements(size as u64));
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| bencher.iter(|| index(catalogue.clone())));
    }
    group.finish();
    let mut group = criterion.benchmark_group("search");
    for size in sizes {
        let index = index(catalogue(size));
        group.throughput(Throughput::Elements(size as u64));
        for (name, query) in QUERIES {
            assert!(search(&index, query) > 0, "{query}");
            let id = BenchmarkId::new(name, size);
            group.bench_function(id, |bencher| bencher.iter(|| search(&index, black_box(query))));
        }
    }
    group.finish();
    let mut group = criterion.benchmark_group("a service");
    let shown = overview(SHOWN);
    group.bench_function("as JSON", |bencher| bencher.iter(|| serde_json::to_vec(black_box(&shown))));
    group.bench_function("as text", |bencher| bencher.iter(|| black_box(&shown).to_text()));
    group.finish();
    criterion.final_summary();

    println!("{:<24} {:>12} {:>12} {:>12}", "from 100 to 10,000", "100", "10,000", "times");
    report("index", few, many, |size| {
        let catalogue = catalogue(size);
        median(|| {
            black_box(index(catalogue.clone()));
        })
    });
    for (name, query) in QUERIES {
        report(name, few, many, |size| {
            let index = index(catalogue(size));
            median(|| {
                black_box(search(&index, query));
            })
        });
    }
}

fn report(name: &str, few: usize, many: usize, time: impl Fn(usize) -> Duration) {
    let (of_few, of_many) = (time(few), time(many));
    let times = of_many.as_secs_f64() / of_few.as_secs_f64();
    println!("{name:<24} {of_few:>12.1?} {of_many:>12.1?} {times:>12.0}");
}

fn median(mut run: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..if measures() { 11 } else { 1 })
        .map(|_| {
            let started = Instant::now();
            run();
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}
