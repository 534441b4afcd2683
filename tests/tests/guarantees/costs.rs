//! The AWS cost of a tool call and of a phone call, against `docs/operations.md`.
//!
//! DynamoDB's units and SQS requests are measured; the sums are recomputed from the page's own prices and figures.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tests::{
    Event, Options, World, ai_sms, api_request,
    aws::{Operation, Received},
    page_tables::{number, page, table},
    phone, preemptive_sms,
    standins::{Fault, twilio},
};

const PAGE: &str = "docs/operations.md";

/// The billed units of one event.
#[derive(Debug, Clone, PartialEq)]
struct Counted {
    read_units: f64,
    write_units: f64,
    queue_requests: f64,
    secrets_asked: u32,
    /// Write units, by the table. A transaction over several counts for the first.
    by_table: BTreeMap<String, f64>,
}

impl Counted {
    fn of(operations: &[Operation]) -> Self {
        let units = |reads: bool| {
            let those = operations.iter().filter(|operation| operation.is_dynamodb() && is_read(operation) == reads);
            those.map(|operation| operation.units).sum::<f64>()
        };
        let sent = operations.iter().filter(|operation| operation.action.starts_with("SendMessage")).count();
        let secrets = operations.iter().filter(|operation| operation.action == "GetSecretValue").count();
        let unmetered: Vec<_> = operations.iter().filter(|op| op.is_dynamodb() && op.units == 0.0).collect();
        assert!(unmetered.is_empty(), "{unmetered:?}");
        let queue_requests = u32::try_from(sent).unwrap().into();
        let mut by_table = BTreeMap::new();
        for written in operations.iter().filter(|operation| operation.is_dynamodb() && !is_read(operation)) {
            *by_table.entry(written.on[0].clone()).or_default() += written.units;
        }
        let secrets_asked = u32::try_from(secrets).unwrap();
        Self { read_units: units(true), write_units: units(false), queue_requests, secrets_asked, by_table }
    }

    /// Adds delivery by a queue: Lambda's poller receives and deletes the message.
    fn delivered(mut self) -> Self {
        self.queue_requests += 2.0;
        self
    }
}

fn is_read(operation: &Operation) -> bool {
    ["GetItem", "BatchGetItem", "Query", "Scan", "TransactGetItems"].contains(&operation.action.as_str())
}

struct Meter {
    world: World,
    /// Each event finds a new process.
    cold: bool,
}

impl Meter {
    fn begin(&mut self) {
        if self.cold {
            self.world.restart();
        }
        self.world.aws.clear_operations();
    }

    async fn request(&mut self, function: &str, event: &Event) -> (Counted, Value) {
        self.begin();
        let answer = self.world.send(function, event).await;
        (Counted::of(&self.world.aws.operations()), answer.expect(200).clone())
    }

    async fn batch(&mut self, batch: Received) -> Counted {
        self.begin();
        assert_eq!(self.world.run_batch(batch).await, 0);
        Counted::of(&self.world.aws.operations()).delivered()
    }
}

/// VAPI's report of an event.
fn reported(world: &World, message: &Value) -> Event {
    let bearer = format!("Bearer {}", world.options.webhook_bearer.clone().unwrap());
    Event::post("/api/vapi/events", &json!({ "message": message })).header("authorization", &bearer)
}

/// The units of a complete phone call, its second in the same processes, or each of its events in a process of its own.
async fn measured(cold: bool) -> BTreeMap<&'static str, Counted> {
    let crm = twilio::start("127.0.0.1:0".parse().unwrap(), twilio::Options::default()).unwrap();
    crm.inject(
        Fault::body(json!({"name": "Ana Ruiz", "since": 2019, "balance": "12.50 EUR", "language": "es"})).times(99),
    );
    let world = World::with(Options { open_hosts: vec![crm.address().to_string()], ..Options::default() }).await;
    let mut lookup = api_request("GET", &format!("{}/customer?phone={{{{caller_phone_number}}}}", crm.url));
    lookup["label"] = json!("Customer");
    lookup["attach_to_agent"] = json!(false);
    lookup["execute_on_call_start"] = json!(true);
    world.attached(&lookup).await;
    world.attached(&preemptive_sms()).await;
    let reading = world.attached(&api_request("GET", &format!("{}/orders", crm.url))).await;
    let acting = world.attached(&ai_sms()).await;
    world.aws.meter();

    let mut meter = Meter { world, cold };
    let mut counted = BTreeMap::new();
    for number in [1, 2] {
        counted.clear();
        let incoming = meter.world.incoming(&meter.world.caller(&phone(number)));
        let (cost, twiml) = meter.request("call-start", &incoming).await;
        counted.insert("`call-start`, two tools", cost);
        let (before, _) = twiml.as_str().unwrap().split_once("/transport").unwrap();
        let id = before.rsplit('/').next().unwrap().to_owned();

        // Each message in a batch of its own, which costs the most.
        let batch = meter.world.aws.receive("start-tools", 0).unwrap();
        let both = meter.batch(batch).await;
        let each = Counted {
            read_units: both.read_units / 2.0,
            write_units: both.write_units / 2.0,
            queue_requests: (both.queue_requests - 2.0) / 2.0 + 2.0,
            secrets_asked: both.secrets_asked,
            by_table: both.by_table.into_iter().map(|(table, units)| (table, units / 2.0)).collect(),
        };
        counted.insert("`run-tool`, a tool of the call's start", each);
        let deadline = meter.world.aws.receive("start-tools", 3).unwrap();
        counted.insert("`run-tool`, the latest moment to tell", meter.batch(deadline).await);

        let update = json!({"type": "status-update", "status": "in-progress", "call": {"id": id}});
        let update = reported(&meter.world, &update);
        counted.insert("`calls`, an event of VAPI's", meter.request("calls", &update).await.0);
        for (path, tool, arguments) in [
            ("`execute`, reading", &reading, json!({})),
            ("`execute`, with an effect", &acting, json!({"text": "Your table is booked for Friday at eight."})),
        ] {
            let mut call = meter.world.call(tool, arguments);
            call.call_id = Some(id.clone());
            call.customer_number = phone(number);
            let event = meter.world.vapi_event(&call);
            counted.insert(path, meter.request("execute", &event).await.0);
            if tool == &acting {
                counted.insert("`execute`, the same again", meter.request("execute", &event).await.0);
            }
        }
        let update = json!({"type": "status-update", "status": "ended", "endedReason": "customer-ended-call", "call": {"id": id}});
        let update = reported(&meter.world, &update);
        meter.request("calls", &update).await;
        let report = json!({
            "type": "end-of-call-report", "endedReason": "customer-ended-call", "cost": 0.12, "call": {"id": id},
            "startedAt": "2026-11-20T10:00:00.000Z", "endedAt": "2026-11-20T10:02:30.000Z",
        });
        let report = reported(&meter.world, &report);
        counted.insert("`calls`, the report at the end", meter.request("calls", &report).await.0);
    }
    counted
}

/// A row of the page: API requests, invocations, milliseconds, read units, write units, queue requests, kilobytes of
/// log.
struct Row([f64; 7]);

/// US dollars for Lambda, DynamoDB, API, queues and logs.
fn dollars(row: &Row, price: &BTreeMap<String, Vec<String>>) -> [f64; 5] {
    let price = |what: &str| number(&price.get(what).unwrap_or_else(|| panic!("no price of {what}"))[0]);
    let million = |what: &str| price(what) / 1e6;
    let Row([requests, invocations, milliseconds, read, written, queue, log]) = row;
    // 256 MB, the template's memory of every function.
    let gigabyte_seconds = milliseconds / 1000.0 * 0.25;
    [
        invocations * million("a million invocations") + gigabyte_seconds * million("a million GB-seconds, arm64"),
        read * million("a million read units") + written * million("a million write units"),
        requests * million("a million requests to the HTTP API"),
        queue * million("a million requests to SQS"),
        log / 1e6 * price("a GB of logs"),
    ]
}

#[tokio::test]
async fn the_measured_cost_of_calls_matches_the_operators_page() {
    let page = self::page(PAGE);
    let paths = table(&page, "### Units of each path");
    let mut wrong = Vec::new();
    let measured = measured(false).await;
    for (path, counted) in &measured {
        let Some(row) = paths.get(*path) else {
            wrong.push(format!("{path}: no row; measured {counted:?}"));
            continue;
        };
        let [read_units, write_units, queue_requests] = [3, 4, 5].map(|column: usize| number(&row[column]));
        // Secrets are cached: see the next test.
        let by_table = counted.by_table.clone();
        let said = Counted { read_units, write_units, queue_requests, secrets_asked: 0, by_table };
        if said != *counted {
            wrong.push(format!("{path}: measured {counted:?}, the page says {said:?}"));
        }
    }
    assert!(wrong.is_empty(), "docs/operations.md, \"Units of each path\":\n{}", wrong.join("\n"));
    assert_eq!(paths.len(), measured.len(), "a row that nothing measures");
    let mut of_a_call: BTreeMap<&str, f64> = BTreeMap::new();
    for (count, path) in PHONE_CALL {
        for (table, units) in &measured[path].by_table {
            *of_a_call.entry(table).or_default() += count * units;
        }
    }
    let lines: Vec<String> = of_a_call.iter().map(|(table, units)| format!("| `{table}` | {units} |")).collect();
    let said = table(&self::page("docs/scale.md"), "### Writes of one call");
    let said: Vec<String> = said.iter().map(|(table, cells)| format!("| {table} | {} |", cells[0])).collect();
    assert_eq!(said, lines, "docs/scale.md, \"Writes of one call\", must say:\n{}", lines.join("\n"));
}

/// A phone call of the page: how often it takes each path.
const PHONE_CALL: [(f64, &str); 7] = [
    (1.0, "`call-start`, two tools"),
    (2.0, "`run-tool`, a tool of the call's start"),
    (1.0, "`run-tool`, the latest moment to tell"),
    (1.0, "`execute`, reading"),
    (2.0, "`execute`, with an effect"),
    (2.0, "`calls`, an event of VAPI's"),
    (1.0, "`calls`, the report at the end"),
];

/// Secrets are cached, the deployment's own for a minute and others for five.
#[tokio::test]
async fn the_secrets_that_new_processes_ask_for_match_the_operators_page() {
    let page = self::page(PAGE);
    let paths = table(&page, "### Units of each path");
    let asked: BTreeMap<&str, f64> =
        measured(true).await.iter().map(|(path, counted)| (*path, f64::from(counted.secrets_asked))).collect();
    let said: BTreeMap<&str, f64> = paths.iter().map(|(path, row)| (path.as_str(), number(&row[7]))).collect();
    assert_eq!(said, asked, "docs/operations.md, \"Units of each path\"");
    let of_a_call: f64 = PHONE_CALL.iter().map(|(count, path)| count * asked[path]).sum();
    let price = number(&table(&page, "### Prices")["10,000 requests to Secrets Manager"][0]) / 1e4;
    let sentence = format!("{of_a_call} requests for a phone call, {:.3} USD for a thousand", of_a_call * price * 1e3);
    assert!(page.contains(&sentence), "docs/operations.md, \"Cost of a call\", must say: {sentence}");

    let mut world = World::start().await;
    world.restart();
    world.aws.clear_operations();
    world.settle().await;
    let asked = world.aws.operations().iter().filter(|operation| operation.action == "GetSecretValue").count();
    assert_eq!(asked, 1, "docs/operations.md, \"Other costs\", says 8,640 a month");
}

#[test]
fn the_sums_of_the_page_for_operators_are_those_of_its_figures() {
    let page = self::page(PAGE);
    let prices = table(&page, "### Prices");
    let paths = table(&page, "### Units of each path");
    let row = |path: &str| {
        let cells: Vec<f64> = paths[path].iter().take(7).map(|cell| number(cell)).collect();
        dollars(&Row(cells.try_into().unwrap()), &prices)
    };
    let sums = [
        ("a million tool calls that read", 1e6, vec![(1.0, "`execute`, reading")]),
        ("a million tool calls with an effect", 1e6, vec![(1.0, "`execute`, with an effect")]),
        ("a thousand phone calls", 1e3, PHONE_CALL.to_vec()),
    ];
    let said = table(&page, "### Cost of a call");
    let mut wrong = Vec::new();
    for (what, times, parts) in sums {
        let mut columns = [0.0; 5];
        for (count, path) in parts {
            for (column, cost) in columns.iter_mut().zip(row(path)) {
                *column += times * count * cost;
            }
        }
        let total: f64 = columns.iter().sum();
        let cells: Vec<String> = columns.iter().chain([&total]).map(|cost| format!("{cost:.3}")).collect();
        if said.get(what) != Some(&cells) {
            wrong.push(format!("| {what} | {} |", cells.join(" | ")));
        }
    }
    assert!(wrong.is_empty(), "docs/operations.md, \"Cost of a call\", must say:\n{}", wrong.join("\n"));
}
