//! `cargo bench -p tests --bench query`: a question to a knowledge base of 5,000 entries.
//!
//! Compares its time with the budget of 20 ms and with a scan of the texts: first the search alone, then all of
//! `execute` over DynamoDB's emulator. A figure over budget is reported but does not fail: a busy machine measures
//! high.

#![expect(clippy::print_stdout, reason = "the report is what this is for")]
#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a bench stops at what is wrong")]

#[path = "../../shared/benches/measuring/mod.rs"]
mod measuring;

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use shared::{
    actions::query::{Builder, Index, IndexOperator},
    models::{Field, KnowledgeBaseId, KnowledgeEntry, OrganizationId, Timestamp},
};
use tests::World;

use crate::measuring::measures;

const ENTRIES: usize = 5_000;
const BUDGET: Duration = Duration::from_millis(20);
const ROUNDS: usize = 200;
const LOAD: usize = 2_500;

const CITIES: [&str; 8] = ["Porto", "Lisboa", "Faro", "Évora", "Braga", "Coimbra", "Aveiro", "Vila Nova de Gaia"];
const WORDS: [&str; 24] = [
    "house",
    "flat",
    "studio",
    "garden",
    "terrace",
    "river",
    "view",
    "beach",
    "station",
    "school",
    "quiet",
    "renovated",
    "kitchen",
    "garage",
    "pool",
    "balcony",
    "old",
    "town",
    "market",
    "modern",
    "light",
    "rooms",
    "lift",
    "heating",
];

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    println!("query: {} entries, {} rounds each, medians\n", entries_asked(), rounds());
    search_alone();
    runtime.block_on(through_execute());
}

fn rounds() -> usize {
    if measures() { ROUNDS } else { 1 }
}

fn entries_asked() -> usize {
    if measures() { ENTRIES } else { 200 }
}

fn search_alone() {
    let (fields, entries) = (fields(), entries());
    let started = Instant::now();
    let index = index(&fields, &entries);
    let built = started.elapsed();
    let texts: Vec<String> = entries.iter().map(|entry| entry.text.clone().unwrap_or_default()).collect();
    let (common, rare) = ("a quiet house with a view of the river", "listing 4711");
    println!("{:<44} {:>12} {:>22}", "the search alone", "time", "of the 20 ms budget");
    for (name, query, filtered) in [
        ("seven words, no filter", common, false),
        ("seven words, three filters", common, true),
        ("one entry's own number", rare, false),
        ("no words, three filters", "", true),
    ] {
        let took = median(|| {
            let conditions: Vec<_> = filters()
                .iter()
                .filter(|_| filtered)
                .map(|(field, operator, value)| index.condition(field, *operator, value).expect("a condition"))
                .collect();
            black_box(index.search(black_box(query), &conditions).matched);
        });
        row(name, took);
    }
    let took = median(|| {
        black_box(index.search(black_box(common), &[]).matched);
    });
    let read = median(|| {
        let words: Vec<&str> = common.split(' ').collect();
        let hits = texts.iter().filter(|text| {
            let text = text.to_lowercase();
            words.iter().any(|word| text.contains(word))
        });
        black_box(hits.count());
    });
    println!("{:<44} {:>12}", "reading through the texts instead", shown(read));
    println!("{:<44} {:>11.1}x", "  against the index", ratio(read, took));
    let text: usize = texts.iter().map(String::len).sum();
    println!("{:<44} {:>12}", "making the index (once per process and load)", shown(built));
    println!("{:<44} {:>9} kB", "  memory", index.size() / 1_000);
    println!("{:<44} {:>11.1}x\n", "  against the texts", figure(index.size()) / figure(text));
}

async fn through_execute() {
    let world = World::start().await;
    let rows: Vec<Value> = entries()
        .into_iter()
        .map(|entry| {
            let mut row = json!(entry.values);
            row["id"] = json!(entry.id);
            row["text"] = json!(entry.text);
            row
        })
        .collect();
    let base = world.knowledge_base(&json!(fields()), &json!([])).await;
    let path = format!("/{}/entries", base["id"].as_str().expect("an id"));
    for part in rows.chunks(LOAD) {
        world.knowledge("POST", &path, &json!({"entries": part})).await.expect(200);
    }
    let config = json!({"type": "query", "label": "Find a home", "knowledge_base_id": base["id"]});
    let tool = world.attached(&config).await;
    let arguments = json!({"query": "a quiet house with a view of the river", "price_at_most": 500_000, "city_one_of": ["Porto", "Faro"]});
    let ask = async || {
        let event = world.vapi_event(&world.call(&tool, arguments.clone()));
        let started = Instant::now();
        let answer = world.send("execute", &event).await;
        let took = answer.at - started;
        assert!(answer.result()["matched"].as_u64() > Some(0), "{}", answer.body);
        took
    };
    let cold = ask().await;
    let mut warm = Vec::with_capacity(rounds());
    for _ in 0..rounds() {
        warm.push(ask().await);
    }
    warm.sort_unstable();
    println!("{:<44} {:>12} {:>22}", "the whole of execute, over the emulator", "time", "of the 20 ms budget");
    row("warm", warm[rounds() / 2]);
    row("warm, the slowest of a hundred", warm[rounds() * 99 / 100]);
    row("the first of a process", cold);
    println!("{:<44} {:>11.1}x", "  against a warm one", ratio(cold, warm[rounds() / 2]));
}

fn fields() -> Vec<Field> {
    let fields = json!([
        {"name": "city", "type": "text", "label": "City"}, {"name": "price", "type": "number"},
        {"name": "bedrooms", "type": "number"}, {"name": "garden", "type": "boolean"},
    ]);
    serde_json::from_value(fields).expect("fields")
}

fn filters() -> [(&'static str, IndexOperator, Value); 3] {
    [
        ("city", IndexOperator::OneOf, json!(["Porto", "Faro"])),
        ("price", IndexOperator::AtMost, json!(500_000)),
        ("bedrooms", IndexOperator::AtLeast, json!(2)),
    ]
}

/// Homes of about sixty words each, the same in every run.
fn entries() -> Vec<KnowledgeEntry> {
    let (base, organization, now) = (KnowledgeBaseId::generate(), OrganizationId::generate(), Timestamp::now());
    let mut state: usize = 1;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    (0..entries_asked())
        .map(|number| {
            let words: Vec<&str> =
                (0..60).map(|_| WORDS[next(WORDS.len()) * next(WORDS.len()) / WORDS.len()]).collect();
            let values = json!({
                "city": CITIES[next(CITIES.len())], "price": 100_000 + 1_000 * next(900), "bedrooms": 1 + next(5),
                "garden": next(2) == 0,
            });
            KnowledgeEntry {
                knowledge_base_id: base,
                id: format!("home-{number}").parse().expect("an id"),
                organization_id: organization,
                values: serde_json::from_value(values).expect("values"),
                text: Some(format!("Listing {number}. A {}.", words.join(" "))),
                created_at: now,
                updated_at: now,
            }
        })
        .collect()
}

fn index(fields: &[Field], entries: &[KnowledgeEntry]) -> Index {
    let mut builder = Builder::new(fields);
    for entry in entries {
        builder.add(entry);
    }
    builder.finish()
}

fn median(mut work: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..rounds())
        .map(|_| {
            let started = Instant::now();
            work();
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[rounds() / 2]
}

fn row(name: &str, took: Duration) {
    let over = if took > BUDGET { "  over the budget" } else { "" };
    println!("  {name:<42} {:>12} {:>21.1}%{over}", shown(took), 100.0 * ratio(took, BUDGET));
}

fn shown(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1_000.0)
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}

#[expect(clippy::cast_precision_loss, reason = "figures for reading")]
fn figure(bytes: usize) -> f64 {
    bytes as f64
}
