//! Polled sources: the first answer is old, then each new item runs once.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test says what is wrong and stops")]

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Router, http::StatusCode, response::IntoResponse, routing::get};
use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{Event, Fault, Options, Trouble, World, http_server::Server};

/// The source's answer: a status, and its body.
type Feed = Arc<Mutex<(u16, Value)>>;

struct Polled {
    world: World,
    feed: Feed,
    server: Server,
    id: String,
}

/// Sets the source's items, `{"id", "title"}` each, newest first.
fn set(feed: &Feed, ids: &[u32]) {
    let items: Vec<Value> = ids.iter().map(|id| json!({"id": id, "title": format!("Item {id}")})).collect();
    *feed.lock().unwrap() = (200, json!({"page": {"items": items}, "others": [1, 2]}));
}

fn definition(world: &World, config: &Value) -> Value {
    let mut trigger = json!({"service": "Feed", "source_tool": "feed_list"});
    trigger.as_object_mut().unwrap().extend(config.as_object().unwrap().clone());
    json!({
        "name": "New items", "trigger_type": "polling", "trigger_config": trigger, "prompt": "Tell of it", "tools": [],
        "fingerprints": {"feed_list": world.fingerprint("feed_list")},
    })
}

impl Polled {
    /// An active automation after its first poll, which returned the items 1 and 2.
    async fn start(config: &Value) -> Self {
        let feed = Feed::default();
        set(&feed, &[2, 1]);
        let given = feed.clone();
        let routes = Router::new().route(
            "/items",
            get(move || async move {
                let (status, body) = given.lock().unwrap().clone();
                let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
                (StatusCode::from_u16(status).unwrap(), body).into_response()
            }),
        );
        let server = Server::start(routes).await;
        let open_hosts = vec![server.address.to_string()];
        let world = World::with(Options { open_hosts, ..Options::default() }).await;
        world.service("Feed", None);
        world.service_capabilities(
            "Feed",
            &json!({
                "supports_polling": true,
                "polling_endpoints": {"item.new": {"source_tool": "feed_list", "items": "page.items", "id": "id"}},
            }),
        );
        let binding = json!({"type": "api_request", "method": "GET", "url": format!("{}/items", server.url)});
        world.service_tool_with("Feed", "feed_list", &json!({"effect": false, "binding": binding}));
        let saved = world.deploy(&definition(&world, config)).await.expect(201);
        let id = saved["automation"]["id"].as_str().unwrap().to_owned();
        let polled = Self { world, feed, server, id };
        polled.activate().await;
        assert_eq!(polled.world.run_scheduled().await, 0);
        polled
    }

    async fn activate(&self) {
        let path = format!("/{}/activate", self.id);
        self.world.automation("POST", &path, &json!({"version": 1})).await.expect(200);
    }

    async fn pause(&self) {
        self.world.automation("POST", &format!("/{}/pause", self.id), &Value::Null).await.expect(200);
    }

    async fn shown(&self) -> Value {
        self.world.automation("GET", &format!("/{}", self.id), &Value::Null).await.expect(200)
    }

    /// Polls the source with these items.
    async fn poll(&self, ids: &[u32]) {
        set(&self.feed, ids);
        self.ask().await;
    }

    async fn ask(&self) {
        let ages = Timestamp::now().plus(Duration::from_secs(400 * 24 * 3_600));
        if self.world.aws.fire_schedules(ages) == 1 {
            assert_eq!(self.world.run_scheduled().await, 0);
            return;
        }
        // It is due within a minute, and waits on the queue.
        let batch = self.world.aws.receive("scheduled", 60).unwrap();
        assert_eq!(self.world.run_scheduled_batch(batch).await, 0);
    }

    fn row(&self) -> Value {
        self.world.aws.row("schedules", &self.id).unwrap()
    }

    /// The message of the next occurrence.
    fn message(&self) -> String {
        let organization = &self.world.home.organization_id;
        let at = &self.row()["next_run_at"];
        json!({"organization_id": organization, "automation_id": self.id, "scheduled_for": at}).to_string()
    }

    fn next(&self) -> Timestamp {
        self.row()["next_run_at"].as_str().unwrap().parse().unwrap()
    }

    /// The data of the started runs.
    fn runs(&self) -> Vec<Value> {
        let rows = self.world.aws.rows("automation_runs");
        let plans = rows.iter().filter_map(|row| serde_json::from_str(row["trigger_data"].as_str()?).ok());
        plans.collect()
    }

    fn titles(&self) -> BTreeSet<String> {
        self.runs().iter().map(|item| item["title"].as_str().unwrap().to_owned()).collect()
    }
}

fn titles<const N: usize>(ids: [u32; N]) -> BTreeSet<String> {
    ids.map(|id| format!("Item {id}")).into()
}

#[tokio::test]
async fn the_first_answer_is_old_and_then_each_new_item_is_a_run() {
    let polled = Polled::start(&json!({"polling_interval_minutes": 15})).await;
    assert_eq!(polled.runs(), [""; 0]);
    let shown = polled.shown().await;
    assert!(shown["last_poll"].is_string() && shown["last_error"].is_null(), "{shown}");
    let (next, first) = (polled.next(), polled.message());
    assert_eq!(shown["next_run_at"], json!(next));
    assert!(next > Timestamp::now() && next < Timestamp::now().plus(Duration::from_secs(901)), "{next}");

    polled.poll(&[4, 3, 2, 1]).await;
    assert_eq!(polled.titles(), titles([3, 4]));
    // An item that returned, and a changed one.
    polled.poll(&[5, 4, 2]).await;
    polled.poll(&[5, 4, 3, 1]).await;
    assert_eq!((polled.titles(), polled.runs().len()), (titles([3, 4, 5]), 3));
    assert_eq!(polled.world.aws.messages("runs").len(), 3);
    assert_eq!(polled.world.executions().last().unwrap()["trigger"], "automation");
    let of_run = polled.world.aws.rows("automation_runs");
    let of_run = of_run.iter().find(|row| row["automation_id"] == polled.id.as_str()).unwrap();
    assert_eq!(of_run["trigger_type"], "polling");
    // The same message again asks nobody.
    let asked = polled.server.seen().len();
    polled.world.aws.post("scheduled", &first);
    assert_eq!(polled.world.run_scheduled().await, 0);
    assert_eq!(polled.server.seen().len(), asked);
}

#[tokio::test]
async fn the_filter_looks_at_each_item() {
    let filter = json!({"path": "title", "op": "contains", "value": "{{wanted}}"});
    let polled = Polled::start(&json!({"filter": filter})).await;
    // The definition has no variables, so the filter matches nothing.
    polled.poll(&[3, 2, 1]).await;
    assert_eq!(polled.runs(), [""; 0]);
    let filter = json!({"path": "title", "op": "ends_with", "value": "4"});
    let polled = Polled::start(&json!({"filter": filter})).await;
    polled.poll(&[5, 4, 3, 2, 1]).await;
    polled.poll(&[5, 4, 3, 2, 1]).await;
    assert_eq!(polled.titles(), titles([4]));
}

#[tokio::test]
async fn an_item_with_which_the_filter_compares_too_much_is_left_out_and_reported() {
    let in_text = json!({"path": "text", "op": "matches", "value": "([aeiou ]*[^x]*){30}q"});
    let filter = json!({"operator": "OR", "clauses": [
        {"path": "title", "op": "exists"}, {"path": "list", "op": "any", "value": in_text},
    ]});
    let polled = Polled::start(&json!({"filter": filter})).await;
    let list: Vec<u32> = (0..500).collect();
    let items = json!([{"id": 4, "title": "Item 4"}, {"id": 3, "list": list, "text": "a".repeat(2_000)}]);
    *polled.feed.lock().unwrap() = (200, json!({"page": {"items": items}, "others": [1, 2]}));
    polled.ask().await;
    assert_eq!(polled.titles(), titles([4]));
    let left_out = "1 of the new items were left out: the filter compares more than 100 MB with each of them. Use fewer clauses or values.";
    assert_eq!(polled.shown().await["last_error"], left_out);
    polled.poll(&[5, 4]).await;
    assert_eq!((polled.titles(), polled.shown().await["last_error"].clone()), (titles([4, 5]), Value::Null));
}

#[tokio::test]
async fn items_are_put_together_as_the_definition_says() {
    for (mode, expected) in [
        ("latest", json!([{"id": 9, "title": "Item 9"}])),
        (
            "batch",
            json!([{"count": 3, "items": [
                {"id": 9, "title": "Item 9"}, {"id": 8, "title": "Item 8"}, {"id": 7, "title": "Item 7"},
            ]}]),
        ),
        (
            "summary",
            json!([{"count": 3, "text": "- Item 9\n- Item 8\n- Item 7", "items": [
                {"id": 9, "title": "Item 9"}, {"id": 8, "title": "Item 8"}, {"id": 7, "title": "Item 7"},
            ]}]),
        ),
    ] {
        let polled = Polled::start(&json!({"aggregation_mode": mode})).await;
        polled.poll(&[9, 8, 7, 2, 1]).await;
        polled.poll(&[9, 8, 7, 2, 1]).await;
        assert_eq!(json!(polled.runs()), expected, "{mode}");
    }
}

#[tokio::test]
async fn the_latest_is_one_run_however_much_is_new() {
    let polled = Polled::start(&json!({"aggregation_mode": "latest"})).await;
    let many: Vec<u32> = (1..=250).rev().collect();
    polled.poll(&many).await;
    polled.ask().await;
    polled.ask().await;
    assert_eq!(json!(polled.runs()), json!([{"id": 250, "title": "Item 250"}]));
    let more: Vec<u32> = (1..=251).rev().collect();
    polled.poll(&more).await;
    assert_eq!(polled.titles(), titles([250, 251]));
}

#[tokio::test]
async fn an_item_of_another_source_is_another_one() {
    let mut polled = Polled::start(&json!({})).await;
    polled.poll(&[3, 2, 1]).await;
    assert_eq!(polled.titles(), titles([3]));
    polled.world.service_capabilities(
        "Feed",
        &json!({
            "supports_polling": true,
            "polling_endpoints": {"item.new": {"source_tool": "feed_list", "items": "page.entries", "id": "id"}},
        }),
    );
    polled.world.restart();
    let entries = |ids: &[u32]| {
        let entries: Vec<Value> = ids.iter().map(|id| json!({"id": id, "title": format!("Entry {id}")})).collect();
        (200, json!({"page": {"entries": entries}}))
    };
    *polled.feed.lock().unwrap() = entries(&[2, 1]);
    polled.ask().await;
    *polled.feed.lock().unwrap() = entries(&[3, 2, 1]);
    polled.ask().await;
    assert_eq!(polled.titles(), BTreeSet::from(["Item 3".to_owned(), "Entry 3".to_owned()]));
    let row = polled.row().to_string();
    assert!(!row.contains("feed_list") && !row.contains("page.entries"), "configuration is kept as a hash: {row}");
}

#[tokio::test]
async fn old_items_of_another_account_start_nothing_and_a_reconnected_account_loses_none() {
    let mut polled = Polled::start(&json!({})).await;
    polled.world.service("Feed", Some("slack"));
    polled.world.restart();
    let acts = async |world: &World, account: &str| {
        let home = &world.home;
        world.pipedream.connect(account, &home.organization_id, "slack");
        let path = format!("/api/{}/services/feed/account", home.slug);
        let choose = Event::new("PUT", &path).user(&home.user_id).text(json!({"account_id": account}).to_string());
        world.send("discover", &choose).await.expect(200);
    };
    // The cursor does not know an account yet.
    polled.poll(&[3, 2, 1]).await;
    assert_eq!(polled.titles(), titles([3]));
    acts(&polled.world, "apn_b").await;
    polled.poll(&[12, 11]).await;
    assert_eq!(polled.titles(), titles([3]), "what the other account had before is old");
    polled.poll(&[3, 13, 12, 11]).await;
    assert_eq!((polled.titles(), polled.runs().len()), (titles([3, 13]), 3), "its item 3 is another one");
    // Another id with the same name.
    acts(&polled.world, "apn_apn_b").await;
    polled.poll(&[14, 3, 13, 12, 11]).await;
    assert_eq!((polled.titles(), polled.runs().len()), (titles([3, 13, 14]), 4));
    assert!(!polled.row().to_string().contains("b@slack.example"), "the account is kept as a hash");
}

#[tokio::test]
async fn a_failing_source_is_polled_less_often_with_the_reason() {
    let polled = Polled::start(&json!({"polling_interval_minutes": 60})).await;
    *polled.feed.lock().unwrap() = (500, json!({"message": "out of paper"}));
    let mut waits = Vec::new();
    for failures in 1..=7 {
        let before = polled.next();
        polled.ask().await;
        assert_eq!(polled.row()["failures"], failures);
        waits.push((polled.next().as_millis() - before.as_millis()) / 60_000);
    }
    assert_eq!(waits, [120, 240, 480, 960, 1_440, 1_440, 1_440], "twice as long each time, and at most a day");
    let error = polled.shown().await["last_error"].as_str().unwrap().to_owned();
    assert!(error.contains("feed_list") && error.contains("out of paper"), "{error}");
    // Nothing is lost by it.
    let before = polled.next();
    polled.poll(&[3, 2, 1]).await;
    assert_eq!(polled.titles(), titles([3]));
    assert_eq!((polled.shown().await.get("last_error"), &polled.row()["failures"]), (Some(&Value::Null), &json!(0)));
    assert_eq!(polled.next(), before.plus(Duration::from_secs(3_600)));
}

/// The row does not expire, and no erasure looks for it.
#[tokio::test]
async fn the_error_of_a_source_is_kept_and_shown_without_numbers_and_addresses() {
    let polled = Polled::start(&json!({})).await;
    let said = "no customer ada@example.com at +1 415 555 0101";
    *polled.feed.lock().unwrap() = (422, json!({"message": said}));
    polled.ask().await;
    let hides = |text: &str| !text.contains("ada@") && !text.contains("555 0101");
    let row = polled.row();
    assert!(row["last_error"].is_string() && hides(&row.to_string()), "{row}");
    let shown = polled.shown().await;
    let error = shown["last_error"].as_str().unwrap();
    assert!(error.contains("feed_list") && error.contains("no customer [email] at [number]"), "{error}");
    assert_eq!(shown["last_error"], row["last_error"]);
    // As an older version stored it.
    polled.world.aws.change("schedules", &polled.id, json!({"last_error": said}));
    assert_eq!(polled.shown().await["last_error"], "no customer [email] at [number]");
    *polled.feed.lock().unwrap() = (422, json!({"message": "too long ".repeat(400)}));
    polled.ask().await;
    assert_eq!(polled.shown().await["last_error"], polled.row()["last_error"]);
}

#[tokio::test]
async fn a_source_tool_that_is_another_one_pauses_the_automation_and_says_so() {
    let other = json!({"type": "object", "properties": {"page": {"type": "string"}}, "required": ["page"]});
    for (change, said) in [
        (json!({"effect": false, "parameters": other}), "has changed"),
        (json!({"is_active": false}), "switched off"),
        // It acts now.
        (json!({"effect": true}), "has changed"),
    ] {
        let polled = Polled::start(&json!({})).await;
        let asked = polled.server.seen().len();
        polled.world.service_tool_with("Feed", "feed_list", &change);
        polled.ask().await;
        let shown = polled.shown().await;
        assert_eq!((&shown["status"], polled.server.seen().len()), (&json!("paused"), asked));
        let reason = shown["pause_reason"].as_str().unwrap();
        assert!(reason.contains("feed_list") && reason.contains(said), "{reason}");
        assert_eq!((shown.get("next_run_at"), polled.world.aws.schedules().len()), (Some(&Value::Null), 0));
        assert_eq!(polled.row().get("due"), None);
        let row = polled.world.aws.row("automations", &polled.id).unwrap();
        assert!(row.get("paused_by_run").is_none(), "no run caused it: {row}");
    }
}

#[tokio::test]
async fn items_of_a_pause_are_taken_unless_missed_is_skip() {
    for (missed, expected) in [("run_once", vec!["Item 3", "Item 4"]), ("skip", vec!["Item 4"])] {
        let polled = Polled::start(&json!({"missed": missed})).await;
        polled.pause().await;
        set(&polled.feed, &[3, 2, 1]);
        polled.activate().await;
        assert_eq!(polled.world.run_scheduled().await, 0);
        polled.poll(&[4, 3, 2, 1]).await;
        assert_eq!(polled.titles().into_iter().collect::<Vec<_>>(), expected, "{missed}");
    }
}

#[tokio::test]
async fn more_than_one_poll_takes_is_taken_by_the_next_ones() {
    let polled = Polled::start(&json!({"polling_interval_minutes": 10_080})).await;
    let many: Vec<u32> = (1..=250).collect();
    polled.poll(&many).await;
    assert_eq!(polled.runs().len(), 100);
    assert!(polled.next() < Timestamp::now().plus(Duration::from_secs(70)), "not next week");
    while polled.runs().len() < 248 {
        let before = polled.runs().len();
        // A minute later.
        let batch = polled.world.aws.receive("scheduled", 60).unwrap();
        assert_eq!(polled.world.run_scheduled_batch(batch).await, 0);
        assert!(polled.runs().len() > before);
    }
    polled.ask().await;
    assert_eq!(polled.titles().len(), 248);
}

#[tokio::test]
async fn a_crash_anywhere_neither_loses_an_item_nor_doubles_it() {
    for mode in ["per_item", "batch"] {
        let mut kills = 0;
        for trouble in [Trouble::StallBefore, Trouble::StallAfter] {
            for step in 0.. {
                let polled = Polled::start(&json!({"aggregation_mode": mode})).await;
                set(&polled.feed, &[4, 3, 2, 1]);
                let sent = polled.message();
                polled.world.aws.inject(Fault::new("*", "*", trouble.clone()).after(step));
                let died = tokio::select! {
                    biased;
                    () = polled.world.aws.stalled() => true,
                    () = polled.ask() => false,
                };
                polled.world.aws.clear_faults();
                if died {
                    kills += 1;
                    // Before the repetition the source has gained an item and lost another.
                    set(&polled.feed, &[5, 4, 3, 2]);
                    polled.world.aws.post("scheduled", &sent);
                    assert_eq!(polled.world.run_scheduled().await, 0);
                }
                // Until nothing is on its way.
                set(&polled.feed, &[5, 4, 3, 2]);
                for _ in 0..3 {
                    polled.world.settle().await;
                    while let Some(batch) = polled.world.aws.receive("scheduled", 60) {
                        assert_eq!(polled.world.run_scheduled_batch(batch).await, 0);
                    }
                    polled.ask().await;
                }
                let mut items: Vec<u64> = match mode {
                    "batch" => polled.runs().iter().flat_map(|run| run["items"].as_array().unwrap().clone()).collect(),
                    _ => polled.runs(),
                }
                .iter()
                .map(|item| item["id"].as_u64().unwrap())
                .collect();
                items.sort_unstable();
                assert_eq!(items, [3, 4, 5], "{mode} {trouble:?} {step}");
                if !died {
                    break;
                }
            }
        }
        assert!(kills > 20, "{mode}: {kills}");
    }
}

/// Items of 100 KB together are all compared, and none is lost.
#[tokio::test]
async fn an_answer_of_100_kb_is_compared_as_a_whole() {
    let polled = Polled::start(&json!({})).await;
    let items: Vec<Value> =
        (1..=500).rev().map(|id| json!({"id": id, "title": format!("Item {id}"), "text": "x".repeat(170)})).collect();
    let body = json!({"page": {"items": items}, "others": [1, 2]});
    assert!(body.to_string().len() > 100_000);
    *polled.feed.lock().unwrap() = (200, body);
    for _each in 0..6 {
        polled.ask().await;
    }
    let expected: BTreeSet<String> = (3..=500).map(|id| format!("Item {id}")).collect();
    assert_eq!((polled.titles(), polled.runs().len()), (expected, 498));
}

#[tokio::test]
async fn more_items_than_are_compared_are_a_failure_with_the_repair() {
    let polled = Polled::start(&json!({})).await;
    // The newest come last.
    polled.poll(&(1..=1_001).collect::<Vec<u32>>()).await;
    let error = polled.shown().await["last_error"].as_str().unwrap_or_default().to_owned();
    assert!(error.contains("more than 1000 items") && error.contains("Ask it for fewer"), "{error}");
    assert_eq!(polled.titles(), titles([]));
}

#[tokio::test]
async fn a_broken_or_an_overlong_answer_is_a_failure_and_not_fewer_items() {
    let polled = Polled::start(&json!({})).await;
    let whole = json!({"page": {"items": [{"id": 3, "title": "Item 3"}, {"id": 4, "title": "Item 4"}]}}).to_string();
    for body in [json!(whole[..whole.len() - 20]), json!("x".repeat(1_100_000))] {
        *polled.feed.lock().unwrap() = (200, body);
        polled.ask().await;
        assert!(polled.shown().await["last_error"].is_string());
        assert_eq!(polled.runs(), [""; 0]);
    }
    polled.poll(&[4, 3]).await;
    assert_eq!(polled.titles(), titles([3, 4]));
}

/// Without the unreadable clause, the filter would accept other items.
#[tokio::test]
async fn a_source_whose_filter_cannot_be_read_waits_for_a_version_that_can() {
    let clause = |value: &str| json!({"path": "title", "op": "contains", "value": value});
    let filter = json!({"operator": "AND", "clauses": [clause("3"), clause("Item")]});
    let polled = Polled::start(&json!({"filter": filter})).await;
    let world = &polled.world;
    let version = world.aws.rows("automation_versions").remove(0);
    let mut newer: Value = serde_json::from_str(version["definition"].as_str().unwrap()).unwrap();
    newer["trigger_config"]["filter"]["clauses"][0]["op"] = json!("newer");
    let mut spoiled = version.clone();
    spoiled["definition"] = json!(newer.to_string());
    world.aws.put("automation_versions", &spoiled);
    set(&polled.feed, &[4, 3, 2, 1]);
    let before = polled.row();
    world.aws.post("scheduled", &polled.message());
    assert_eq!(world.run_scheduled().await, 0, "no dead letter: the sweep queues it again");
    assert_eq!((polled.runs(), polled.row()), (Vec::new(), before));
    // A pause does not need the trigger; an activation does.
    polled.pause().await;
    assert_eq!(polled.row().get("due"), None);
    world.aws.put("automation_versions", &version);
    polled.activate().await;
    polled.ask().await;
    assert_eq!(polled.titles(), titles([3]));
}
