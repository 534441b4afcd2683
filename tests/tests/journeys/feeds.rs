//! Feeds and the organization's own requests as polled sources: each entry once, asked for only if something changed.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    http::{HeaderMap, StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{Options, World, api_request, http_server::Server};

/// A page with an entity tag, which follows its content.
type Page = Arc<Mutex<String>>;

/// A page that the server calls compressed, although no client asks for that.
const COMPRESSED: &str = "\u{1b}packed";

struct Site {
    world: World,
    server: Server,
    page: Page,
}

impl Site {
    async fn start() -> Self {
        let page = Page::default();
        let given = page.clone();
        let routes = Router::new().route(
            "/page",
            get(move |asked: HeaderMap| async move {
                let body = given.lock().unwrap().clone();
                let etag = format!("\"{}\"", body.len());
                if asked.get(header::IF_NONE_MATCH).is_some_and(|known| known == etag.as_str()) {
                    return StatusCode::NOT_MODIFIED.into_response();
                }
                let encoding = if body == COMPRESSED { "br" } else { "identity" };
                ([(header::ETAG, etag), (header::CONTENT_ENCODING, encoding.to_owned())], body).into_response()
            }),
        );
        let server = Server::start(routes).await;
        let open_hosts = vec![server.address.to_string()];
        let world = World::with(Options { open_hosts, ..Options::default() }).await;
        Self { world, server, page }
    }

    fn url(&self) -> String {
        format!("{}/page", self.server.url)
    }

    fn shows(&self, body: impl Into<String>) {
        *self.page.lock().unwrap() = body.into();
    }

    /// A feed with these entries, the newest first.
    fn publishes(&self, ids: impl IntoIterator<Item = u32>) {
        let entries: Vec<String> =
            ids.into_iter().map(|id| format!("<item><guid>{id}</guid><title>Post {id}</title></item>")).collect();
        let entries = entries.concat();
        self.shows(format!("<rss version=\"2.0\"><channel><title>Blog</title>{entries}</channel></rss>"));
    }

    /// An active automation after its first poll.
    async fn polled(&self, config: &Value, fingerprint: (&str, &str)) -> String {
        let id = self.world.active(&definition(config, fingerprint)).await;
        assert_eq!(self.world.run_scheduled().await, 0);
        assert_eq!(self.runs(), BTreeSet::new(), "the first answer is old");
        id
    }

    async fn of_feed(&self) -> String {
        self.publishes([2, 1]);
        let config = json!({"source_tool": "read_feed", "tool_params": {"uri": self.url()}});
        self.polled(&config, ("read_feed", "built-in")).await
    }

    async fn ask(&self) {
        let later = Timestamp::now().plus(Duration::from_secs(400 * 24 * 3_600));
        if self.world.aws.fire_schedules(later) == 1 {
            assert_eq!(self.world.run_scheduled().await, 0);
            return;
        }
        let batch = self.world.aws.receive("scheduled", 60).unwrap();
        assert_eq!(self.world.run_scheduled_batch(batch).await, 0);
    }

    /// The titles of the items that started a run.
    fn runs(&self) -> BTreeSet<String> {
        let rows = self.world.aws.rows("automation_runs");
        let plans = rows.iter().filter_map(|row| serde_json::from_str::<Value>(row["trigger_data"].as_str()?).ok());
        let titles: Vec<String> = plans.map(|item| item["title"].as_str().unwrap().to_owned()).collect();
        let once: BTreeSet<String> = titles.iter().cloned().collect();
        assert_eq!(titles.len(), once.len(), "once each: {titles:?}");
        once
    }

    /// Whether the last request was answered without a body.
    fn asked_for_changes(&self) -> bool {
        self.server.seen().last().unwrap().headers.contains_key("if-none-match")
    }

    async fn last_error(&self, id: &str) -> Value {
        self.world.automation("GET", &format!("/{id}"), &Value::Null).await.expect(200)["last_error"].clone()
    }
}

fn definition(config: &Value, (tool, fingerprint): (&str, &str)) -> Value {
    json!({
        "name": "New posts", "trigger_type": "polling", "trigger_config": config,
        "actions": [{"id": "now", "tool": "current_time", "parameters": {}, "condition": {"path": "title", "op": "exists"}}],
        "fingerprints": {tool: fingerprint, "current_time": "built-in"},
    })
}

fn posts(ids: impl IntoIterator<Item = u32>) -> BTreeSet<String> {
    ids.into_iter().map(|id| format!("Post {id}")).collect()
}

#[tokio::test]
async fn each_entry_of_a_feed_starts_one_run() {
    let site = Site::start().await;
    let id = site.of_feed().await;
    site.publishes([4, 3, 2]);
    site.ask().await;
    assert_eq!(site.runs(), posts([3, 4]));
    // Nothing changed: the server says so, and the answer has no body.
    for _twice in 0..2 {
        site.ask().await;
        assert!(site.asked_for_changes());
    }
    assert_eq!((site.runs(), site.last_error(&id).await), (posts([3, 4]), Value::Null));
    site.publishes([5, 1, 4, 3, 2]);
    site.ask().await;
    assert_eq!(site.runs(), posts([3, 4, 5]));
}

#[tokio::test]
async fn entries_that_are_left_for_the_next_poll_are_asked_for_again() {
    let site = Site::start().await;
    site.of_feed().await;
    site.publishes((1..=250).rev());
    for _each in 0..3 {
        site.ask().await;
    }
    assert_eq!(site.runs(), posts(3..=250));
    site.ask().await;
    assert!(site.asked_for_changes());
}

#[tokio::test]
async fn what_is_no_feed_is_a_failure_and_its_entries_come_later() {
    let site = Site::start().await;
    let id = site.of_feed().await;
    let bomb = "<!DOCTYPE x [<!ENTITY a \"aaaa\">]><rss><channel><item><title>&a;</title>".to_owned();
    for (body, reason) in [
        ("<html><body>We moved</body></html>".to_owned(), "neither RSS nor Atom"),
        (bomb, "ends in the middle"),
        (format!("<rss><channel>{}</channel></rss>", "<item/>".repeat(100_000)), "more than 5000 entries"),
        ("<rss><channel>".to_owned() + &" ".repeat(5_000_000), "more than 4 MB"),
        (COMPRESSED.to_owned(), "compressed content (br)"),
    ] {
        site.shows(body);
        site.ask().await;
        let told = site.last_error(&id).await;
        assert!(told.as_str().unwrap().contains(reason), "{told}");
    }
    assert_eq!(site.runs(), posts([]));
    site.publishes([3, 2, 1]);
    site.ask().await;
    assert_eq!((site.runs(), site.last_error(&id).await), (posts([3]), Value::Null));
}

#[tokio::test]
async fn a_request_of_the_organization_is_polled_at_its_paths() {
    let site = Site::start().await;
    let order = |id: u32| json!({"number": {"value": id}, "id": 1, "title": format!("Post {id}")});
    let orders = |ids: &[u32]| {
        let items: Vec<Value> = ids.iter().map(|id| order(*id)).collect();
        json!({"data": {"orders": items}, "errors": [], "pages": [1, 2]}).to_string()
    };
    site.shows(orders(&[2, 1]));
    let tool = site.world.tool(&api_request("GET", &site.url())).await;
    let name = tool["name"].as_str().unwrap();
    let config = json!({"source_tool": name, "items": "data.orders", "id": "number.value"});
    let id = site.polled(&config, (name, "v0")).await;
    site.shows(orders(&[3, 4, 2, 1]));
    site.ask().await;
    assert_eq!(site.runs(), posts([3, 4]));
    site.ask().await;
    assert!(site.asked_for_changes());
    // A changed order is the same order.
    site.shows(orders(&[3, 4, 2, 1]).replace("\"errors\":[]", "\"errors\":[1]"));
    site.ask().await;
    assert_eq!(site.runs(), posts([3, 4]));
    site.shows("{\"data\": {}}");
    site.ask().await;
    assert!(site.last_error(&id).await.as_str().unwrap().contains("without a list of items at data.orders"));
    site.shows(COMPRESSED);
    site.ask().await;
    let told = site.last_error(&id).await;
    assert!(told.as_str().unwrap().contains("compressed content (br)"), "{told}");
}

#[tokio::test]
async fn a_polled_source_is_checked_when_it_is_saved() {
    let site = Site::start().await;
    site.publishes([2, 1]);
    let codes = |report: &Value| -> Vec<String> {
        let all = report["diagnostics"].as_array().unwrap().iter();
        all.map(|one| format!("{} {}", one["code"].as_str().unwrap(), one["pointer"].as_str().unwrap())).collect()
    };
    let mut config = json!({"source_tool": "read_feed", "tool_params": {"uri": site.url()}});
    let mut checked = definition(&config, ("read_feed", "built-in"));
    checked["dry_run"] = json!(true);
    checked["actions"][0]["condition"]["path"] = json!("headline");
    let report = site.world.deploy(&checked).await.expect(200);
    assert_eq!(codes(&report), ["unknown_path /actions/0/condition/path"], "{report}");

    config["items"] = json!("{{entries}}");
    let report = site.world.deploy(&definition(&config, ("read_feed", "built-in"))).await.expect(422);
    assert_eq!(codes(&report), ["invalid_value /trigger_config/items"], "{report}");
    let wget = json!({"source_tool": "wget", "tool_params": {"uri": site.url()}});
    let report = site.world.deploy(&definition(&wget, ("wget", "built-in"))).await.expect(422);
    assert_eq!(codes(&report), ["wrong_service /trigger_config/source_tool"], "{report}");
    site.world.slack_service();
    site.world.service_tool_with("Slack", "slack_list", &json!({"effect": false}));
    let fingerprint = site.world.fingerprint("slack_list");
    let slack = json!({"source_tool": "slack_list"});
    let report = site.world.deploy(&definition(&slack, ("slack_list", &fingerprint))).await.expect(422);
    assert!(codes(&report).contains(&"wrong_service /trigger_config/source_tool".to_owned()), "{report}");
}

#[tokio::test]
async fn a_feed_is_read_by_an_action_too() {
    let site = Site::start().await;
    site.publishes((1..=80).rev());
    let definition = json!({
        "name": "Digest", "trigger_type": "manual", "variables": {"feed": site.url()},
        "actions": [
            {"id": "read", "tool": "read_feed", "parameters": {"uri": "{{feed}}", "limit": 3}, "output_as": "news"},
            {"id": "now", "tool": "current_time", "parameters": {}, "condition": {"path": "news.entries[2].title", "op": "==", "value": "Post 78"}},
        ],
        "fingerprints": {"read_feed": "built-in", "current_time": "built-in"},
    });
    let id = site.world.active(&definition).await;
    let run = site.world.run_by_hand(&id, &json!({})).await.expect(202);
    for _each in 0..3 {
        site.world.run_loop(Duration::from_secs(30)).await;
    }
    let path = format!("/api/{}/runs/{}", site.world.home.slug, run["id"].as_str().unwrap());
    let shown =
        site.world.send("runs", &tests::Event::new("GET", &path).user(&site.world.home.user_id)).await.expect(200);
    let statuses: Vec<&Value> = shown["actions"].as_array().unwrap().iter().map(|action| &action["status"]).collect();
    assert_eq!(statuses, ["succeeded", "succeeded"], "{shown}");
}

#[tokio::test]
async fn a_built_in_source_that_this_version_lacks_is_not_gone() {
    let site = Site::start().await;
    let id = site.of_feed().await;
    let world = &site.world;
    let version = world.aws.rows("automation_versions").remove(0);
    let newer: Value = serde_json::from_str(&version.to_string().replace("read_feed", "newer_feed")).unwrap();
    world.aws.put("automation_versions", &newer);
    site.publishes([3, 2, 1]);
    let at = world.aws.row("schedules", &id).unwrap()["next_run_at"].clone();
    let organization = &world.home.organization_id;
    let message = json!({"organization_id": organization, "automation_id": id, "scheduled_for": at});
    world.aws.post("scheduled", &message.to_string());
    assert_eq!(world.run_scheduled().await, 0, "no dead letter: the sweep queues it again");
    assert_eq!(json!(world.automation_row(&id).await.status), json!("active"));
    world.aws.put("automation_versions", &version);
    site.ask().await;
    assert_eq!(site.runs(), posts([3]));
}
