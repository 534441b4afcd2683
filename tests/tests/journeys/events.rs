//! Events of services: the runs that they start, and refusals.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::large_futures,
    reason = "a test says what is wrong and stops"
)]

pub(crate) mod services;

use services::manual_body;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{
    Event, Fault, SLACK_SECRET, SLACK_TENANT, World, phone, slack_message,
    webhooks::{Signer, signed_at},
};

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is not text"))
}

/// A world with an automation for urgent messages, and a hook for messages; gives both.
async fn world() -> (World, String, Value) {
    let world = World::start().await;
    world.slack_service();
    let automation = world.active(&world.urgent_messages()).await;
    let hook = world.slack_hook().await;
    (world, automation, hook)
}

#[tokio::test]
async fn an_event_begins_a_run_of_the_automation_that_listens() {
    let (world, automation, hook) = world().await;
    assert_eq!(world.slack_says(&hook, "Ev1", "Urgent: pump 3 leaks").await.expect(200), json!({}));
    let runs = world.runs_of(&automation);
    assert_eq!(runs.len(), 1);
    assert_eq!((&runs[0]["trigger_type"], &runs[0]["status"]), (&json!("webhook"), &json!("queued")));
    let plan = world.aws.rows("automation_runs").into_iter().find(|row| row["part"] == "plan").unwrap();
    let given: Value = serde_json::from_str(text(&plan["trigger_data"])).unwrap();
    assert_eq!(given, slack_message("Ev1", "Urgent: pump 3 leaks"), "the whole body");
    assert_eq!(world.aws.messages("runs").len(), 1);

    let listed = world.events("").await.expect(200);
    let event = &listed["items"][0];
    assert_eq!((&event["service"], &event["event_type"]), (&json!("slack"), &json!("message")));
    assert_eq!((&event["status"], &event["hook_id"]), (&json!("dispatched"), &hook["id"]));
    assert_eq!(event["matched"], json!([{"automation_id": automation, "run_id": runs[0]["id"]}]));
    let of = |automation: &str| format!("?automation_id={automation}");
    assert_eq!(world.events(&of(&automation)).await.expect(200)["items"].as_array().unwrap().len(), 1);
    assert_eq!(world.events(&of("0193a9f1-0000-7000-8000-000000000001")).await.expect(200)["items"], json!([]));
    assert_eq!(world.events("?automation_id=all").await.wrong_fields(), ["automation_id"]);
    assert_eq!((&event["unmatched"], &event["why"]), (&json!([]), &Value::Null));
    assert_eq!(runs[0]["event_id"], event["id"]);
    let one = world.events(&format!("/{}", text(&event["id"]))).await.expect(200);
    assert_eq!(one["data"]["event"]["text"], "Urgent: pump 3 leaks");
    assert_eq!(world.events("?matched=false").await.expect(200)["items"], json!([]));
}

/// The day of a filter is that of the person who activated the automation.
#[tokio::test]
async fn a_filter_on_the_day_follows_the_zone_of_the_person() {
    let now = Timestamp::now().to_string();
    let (day, hour) = (&now[..10], now[11..13].parse::<u32>().unwrap());
    // One of them has another day than UTC.
    let zone = if hour < 11 { "Etc/GMT+12" } else { "Pacific/Kiritimati" };
    let world = World::start().await;
    world.slack_service();
    let user = &world.home.user_id;
    let mut row = world.aws.rows("organization_members").into_iter().find(|row| row["user_id"] == *user).unwrap();
    row["timezone"] = json!(zone);
    world.aws.put("organization_members", &row);
    let mut definition = world.urgent_messages();
    definition["trigger_config"]["filters"] = json!({"path": "today", "op": "!=", "value": day});
    let automation = world.active(&definition).await;
    let hook = world.slack_hook().await;
    world.slack_says(&hook, "Ev1", "lunch?").await.expect(200);
    let seen = world.events("").await.expect(200);
    assert_eq!(world.runs_of(&automation).len(), 1, "{zone}: {seen}");
}

#[tokio::test]
async fn an_event_that_begins_nothing_says_why() {
    let (world, automation, hook) = world().await;
    world.slack_says(&hook, "Ev1", "lunch?").await.expect(200);
    let mut reaction = slack_message("Ev2", "");
    reaction["event"]["type"] = json!("reaction_added");
    world.deliver_signed(&hook, Signer::Slack(SLACK_SECRET), &reaction).await.expect(200);
    assert!(world.runs_of(&automation).is_empty() && world.aws.messages("runs").is_empty());

    let listed = world.events("?matched=false").await.expect(200);
    let [newest, older] = &listed["items"].as_array().unwrap()[..] else { panic!("{listed}") };
    assert_eq!((&newest["event_type"], &newest["unmatched"]), (&json!("reaction_added"), &json!([])));
    assert!(text(&newest["why"]).contains("No active automation listens"));
    assert_eq!((&older["unmatched"][0]["automation_id"], &older["why"]), (&json!(automation), &Value::Null));
    let why = text(&older["unmatched"][0]["why"]);
    assert!(why.contains("event.text contains") && why.contains("urgent") && why.contains("lunch?"), "{why}");
    assert_eq!(world.events("?matched=yes").await.wrong_fields(), ["matched"]);
}

#[tokio::test]
async fn events_are_filtered_by_time_service_and_effect() {
    let world = World::start().await;
    let at = |minute: i64| Timestamp::from_millis(1_795_000_000_000 + minute * 60_000).to_string();
    let all: Vec<String> = (0..6)
        .map(|minute| {
            let id = format!("0193a9f0-0000-7000-8000-{minute:012}");
            let mut row = json!({
                "id": id, "organization_id": world.home.organization_id, "hook_id": id, "status": "dispatched",
                "service": if minute < 4 { "slack" } else { "google_calendar" }, "event_type": "message",
                "created_at": at(minute), "updated_at": at(minute), "expires_at": 4_000_000_000_i64,
            });
            row["automations"] = json!([format!("0193a9f1-0000-7000-8000-{:012}", minute % 3)]);
            if minute % 2 == 0 {
                row["unmatched_of"] = json!(world.home.organization_id);
            }
            world.aws.put("events", &row);
            id
        })
        .collect();
    let (second, fifth) = (at(1), at(4));
    for (query, expected) in [
        (vec![], vec![5, 4, 3, 2, 1, 0]),
        (vec![("since", &*fifth)], vec![5, 4]),
        (vec![("until", &second)], vec![1, 0]),
        (vec![("since", &second), ("until", &fifth)], vec![4, 3, 2, 1]),
        (vec![("service", "slack")], vec![3, 2, 1, 0]),
        (vec![("service", "Google_Calendar")], vec![5, 4]),
        (vec![("service", "stripe")], vec![]),
        (vec![("matched", "false")], vec![4, 2, 0]),
        (vec![("matched", "false"), ("since", &second), ("service", "slack")], vec![2]),
        (vec![("matched", "false"), ("until", &second)], vec![0]),
        (vec![("automation_id", "0193a9f1-0000-7000-8000-000000000001")], vec![4, 1]),
        (vec![("automation_id", "0193a9f1-0000-7000-8000-000000000001"), ("matched", "false")], vec![4]),
    ] {
        // With pages of one item, too.
        for limit in ["50", "1"] {
            let (mut found, mut cursor) = (Vec::new(), String::new());
            loop {
                let event = Event::get(&format!("/api/{}/events", world.home.slug)).user(&world.home.user_id);
                let event =
                    query.iter().fold(event.query("limit", limit), |event, (name, value)| event.query(name, value));
                let event = if cursor.is_empty() { event } else { event.query("cursor", &cursor) };
                let page = world.send("hooks", &event).await.expect(200);
                found.extend(page["items"].as_array().unwrap().iter().map(|row| text(&row["id"]).to_owned()));
                match page["next_cursor"].as_str() {
                    Some(next) => next.clone_into(&mut cursor),
                    None => break,
                }
            }
            let expected: Vec<_> = expected.iter().map(|at: &usize| all[*at].clone()).collect();
            assert_eq!(found, expected, "{query:?}, {limit} a page");
        }
    }
    for (field, query) in [("since", "?since=today"), ("service", "?service=-"), ("matched", "?matched=true")] {
        assert_eq!(world.events(query).await.wrong_fields(), [field]);
    }
}

#[tokio::test]
async fn the_same_event_five_times_at_once_is_one_run() {
    let (world, automation, hook) = world().await;
    let sent = (0..5).map(|_| world.slack_says(&hook, "Ev1", "urgent"));
    for answer in join_all(sent).await {
        answer.expect(200);
    }
    let mut again = slack_message("Ev1", "urgent");
    again["token"] = json!("signed anew, other bytes");
    world.deliver_signed(&hook, Signer::Slack(SLACK_SECRET), &again).await.expect(200);
    assert_eq!(world.runs_of(&automation).len(), 1);
    assert_eq!(world.aws.rows("events").len(), 1);
    world.aws.clear_operations();
    let queued = world.aws.messages("runs").len();
    world.slack_says(&hook, "Ev1", "urgent").await.expect(200);
    assert_eq!(world.aws.messages("runs").len(), queued, "one that is dispatched does nothing");
}

#[tokio::test]
async fn a_redelivery_completes_an_event_after_a_crash() {
    for (action, table) in [
        ("TransactWriteItems", "automation_runs"),
        ("SendMessage", "runs"),
        ("UpdateItem", "events"),
        ("Query", "automations"),
    ] {
        let (world, automation, hook) = world().await;
        let event = world.signed(&world.hook_path(&hook), Signer::Slack(SLACK_SECRET), &slack_message("Ev1", "urgent"));
        world.aws.inject(Fault::throttled(action, table));
        let failed = world.send("trigger", &event).await;
        assert!(failed.status >= 500, "{action}: {}", failed.status);
        let row = world.aws.rows("events").remove(0);
        assert_eq!(row["status"], "received", "{action}");
        let seen = world.events("").await.expect(200);
        assert!(text(&seen["items"][0]["why"]).contains("sends it again"));
        world.send("trigger", &event).await.expect(200);
        assert_eq!(world.runs_of(&automation).len(), 1, "{action}");
        assert_eq!(world.runs_of(&automation)[0]["status"], "queued", "{action}");
        assert!(!world.aws.messages("runs").is_empty(), "{action}");
        assert_eq!(world.aws.rows("events")[0]["status"], "dispatched", "{action}");
    }
}

#[tokio::test]
async fn an_event_that_runs_out_of_time_is_redelivered() {
    let (world, automation, hook) = world().await;
    let event = world.signed(&world.hook_path(&hook), Signer::Slack(SLACK_SECRET), &slack_message("Ev1", "urgent"));
    world.aws.inject(Fault::new("Query", "automations", tests::Trouble::StallBefore).times(9));
    let late = world.send("trigger", &event.clone().within(Duration::from_secs(3))).await;
    assert_eq!((late.status, &late.body["code"]), (503, &json!("unavailable")));
    world.aws.clear_faults();
    world.send("trigger", &event).await.expect(200);
    assert_eq!(world.runs_of(&automation).len(), 1);
}

#[tokio::test]
async fn an_unsigned_event_is_refused_and_all_refusals_are_alike() {
    let (world, automation, hook) = world().await;
    let path = world.hook_path(&hook);
    let body = slack_message("Ev1", "urgent");
    let good = world.signed(&path, Signer::Slack(SLACK_SECRET), &body);
    let theirs = json!({"service": "Slack", "secret": "another-secret"});
    let theirs = world.hooks(&world.other, "POST", "", &theirs).await.expect(201);
    let nobodys = path.replace(text(&hook["id"]), &uuid::Uuid::now_v7().to_string());
    let old = Timestamp::from_millis(Timestamp::now().as_millis() - 301_000);
    let base = world.options.public_url.clone();
    let at = |at| signed_at(&base, &path, Signer::Slack(SLACK_SECRET), &body.to_string(), at);
    let mut no_secret = world.hook(&json!({"service": "Slack"})).await;
    no_secret = json!({"url": no_secret["url"]});
    for (name, event) in [
        ("unsigned", world.signed(&path, Signer::Unsigned, &body)),
        ("another secret", world.signed(&path, Signer::Slack("guess"), &body)),
        ("an empty secret", world.signed(&path, Signer::Slack(""), &body)),
        ("another body", good.clone().text(slack_message("Ev1", "urgent!").to_string())),
        ("old", at(old)),
        ("of the future", at(Timestamp::now().plus(Duration::from_secs(310)))),
        ("no hook", world.signed(&nobodys, Signer::Slack(SLACK_SECRET), &body)),
        ("no hook's id", world.signed("/api/hooks/slack/1", Signer::Slack(SLACK_SECRET), &body)),
        ("another tenant's hook", world.signed(&world.hook_path(&theirs), Signer::Slack(SLACK_SECRET), &body)),
        (
            "another service",
            world.signed(&path.replace("/slack/", "/github/"), Signer::Github(SLACK_SECRET, "issues"), &body),
        ),
        ("unknown service", world.signed("/api/hooks/slak", Signer::Slack(SLACK_SECRET), &body)),
        ("unknown service, unsigned", world.signed("/api/hooks/nobody", Signer::Unsigned, &body)),
        ("nobody's tenant", world.signed("/api/hooks/slack", Signer::Slack(SLACK_SECRET), &body)),
        ("a hook without a secret", world.signed(&world.hook_path(&no_secret), Signer::Slack(""), &body)),
        ("no body", world.signed(&path, Signer::Unsigned, &Value::Null)),
    ] {
        let refused = world.send("trigger", &event).await;
        assert_eq!((refused.status, &refused.body, &refused.content_type[..]), (401, &Value::Null, ""), "{name}");
    }
    assert!(world.aws.rows("events").is_empty() && world.runs_of(&automation).is_empty());
    world.send("trigger", &good).await.expect(200);
}

#[tokio::test]
async fn a_body_alone_never_says_whose_it_is() {
    let world = World::start().await;
    world.slack_service();
    let automation = world.active(&world.urgent_messages()).await;
    let ours = world.hook(&json!({"service": "slack", "secret": SLACK_SECRET, "tenant": SLACK_TENANT})).await;
    let theirs = json!({"service": "slack", "secret": "their-own-secret", "tenant": "A0OTHER#T0OTHER"});
    let theirs = world.hooks(&world.other, "POST", "", &theirs).await.expect(201);
    let body = slack_message("Ev1", "urgent");
    // Signed by another tenant than the body's.
    let forged = world.signed("/api/hooks/slack", Signer::Slack("their-own-secret"), &body);
    assert_eq!(world.send("trigger", &forged).await.status, 401);
    // Through their own hook it is authentic, but its tenant is another's.
    let by_theirs = world.deliver_signed(&theirs, Signer::Slack("their-own-secret"), &body).await;
    by_theirs.expect(200);
    // A tenant belongs to one hook, even for others with the app's secret.
    let claim = json!({"service": "slack", "secret": SLACK_SECRET, "tenant": SLACK_TENANT});
    for tenant in [&world.other, &world.home] {
        let refused = world.hooks(tenant, "POST", "", &claim).await.expect(409);
        assert!(refused["detail"].as_str().unwrap().contains("tenant"), "{refused}");
    }
    assert!(world.aws.rows("events").is_empty() && world.runs_of(&automation).is_empty());

    // The shared address and the hook's own: the same event.
    for path in ["/api/hooks/slack", &world.hook_path(&ours)] {
        world.send("trigger", &world.signed(path, Signer::Slack(SLACK_SECRET), &body)).await.expect(200);
    }
    assert_eq!(world.runs_of(&automation).len(), 1);
    assert_eq!(world.events("").await.expect(200)["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn an_event_of_another_tenant_is_not_found() {
    let (world, _, hook) = world().await;
    world.slack_says(&hook, "Ev1", "lunch?").await.expect(200);
    let id = text(&world.events("").await.expect(200)["items"][0]["id"]).to_owned();
    let asked = |path: &str| Event::get(&format!("/api/{}/events{path}", world.other.slug)).user(&world.other.user_id);
    assert_eq!(world.send("hooks", &asked(&format!("/{id}"))).await.status, 404);
    for query in ["", "?matched=false"] {
        let event = asked("");
        let event = if query.is_empty() { event } else { event.query("matched", "false") };
        assert_eq!(world.send("hooks", &event).await.expect(200)["items"], json!([]));
    }
}

#[tokio::test]
async fn a_definition_that_cannot_be_read_lets_nothing_through() {
    let (world, automation, hook) = world().await;
    let version = world.aws.rows("automation_versions").remove(0);
    let mut broken = version.clone();
    broken["definition"] = json!("no JSON");
    world.aws.put("automation_versions", &broken);
    world.slack_says(&hook, "Ev1", "urgent").await.expect(200);
    assert!(world.runs_of(&automation).is_empty());
    world.aws.put("automation_versions", &version);
    world.slack_says(&hook, "Ev2", "urgent").await.expect(200);
    assert_eq!(world.runs_of(&automation).len(), 1);
}

/// Another version of the program may be able to read it.
#[tokio::test]
async fn a_filter_that_cannot_be_read_is_tried_again_for_a_day() {
    let (world, automation, hook) = world().await;
    let readable = world.aws.row("automations", &automation).unwrap()["trigger_filter"].clone();
    let filters = ["no JSON", "{}", r#"{"path": "event.text", "op": "resembles", "value": "urgent"}"#, "[]", "true"];
    for (at, filter) in filters.into_iter().enumerate() {
        world.aws.change("automations", &automation, json!({"trigger_filter": filter}));
        world.slack_says(&hook, &format!("Ev{at}"), "urgent").await.expect(200);
        assert_eq!(world.run_scheduled().await, 0, "{filter}");
        assert!(world.runs_of(&automation).is_empty(), "{filter}");
        let event = world.events("").await.expect(200)["items"][0].clone();
        assert_eq!((&event["status"], &event["waiting"]), (&json!("received"), &json!([automation])), "{event}");
    }
    let oldest = world.aws.rows("events").into_iter().min_by_key(|row| text(&row["created_at"]).to_owned()).unwrap();
    let a_day_ago = Timestamp::now().minus(Duration::from_secs(25 * 60 * 60));
    world.aws.change("events", text(&oldest["id"]), json!({"created_at": a_day_ago}));
    assert_eq!(world.run_scheduled_within(901).await, 0);
    let given_up = world.events("?matched=false").await.expect(200)["items"].clone();
    assert_eq!(given_up.as_array().unwrap().len(), 1, "{given_up}");
    assert!(text(&given_up[0]["unmatched"][0]["why"]).contains("cannot be read"), "{given_up}");

    world.aws.change("automations", &automation, json!({"trigger_filter": readable}));
    assert_eq!(world.run_scheduled_within(901).await, 0);
    assert_eq!(world.runs_of(&automation).len(), filters.len() - 1);
    assert!(world.aws.messages("scheduled").is_empty());
}

#[tokio::test]
async fn a_filter_knows_the_variables_and_the_user() {
    let world = World::start().await;
    world.slack_service();
    let mut definition = world.urgent_messages();
    definition["trigger_config"]["filters"] = json!({"path": "event.channel", "op": "==", "value": "{{team}}"});
    let automation = world.active(&definition).await;
    let hook = world.slack_hook().await;
    let mut message = slack_message("Ev1", "Hello");
    world.deliver_signed(&hook, Signer::Slack(SLACK_SECRET), &message).await.expect(200);
    assert!(world.runs_of(&automation).is_empty());
    message["event"]["channel"] = json!("C024BE91L");
    message["event_id"] = json!("Ev2");
    world.deliver_signed(&hook, Signer::Slack(SLACK_SECRET), &message).await.expect(200);
    assert_eq!(world.runs_of(&automation).len(), 1);
}

#[tokio::test]
async fn paused_automations_do_not_run_and_those_of_others_never_do() {
    let (world, automation, hook) = world().await;
    world.automation("POST", &format!("/{automation}/pause"), &json!({})).await.expect(200);
    world.slack_says(&hook, "Ev1", "urgent").await.expect(200);
    assert!(world.runs_of(&automation).is_empty());
    let theirs = json!({"service": "Slack", "secret": "theirs"});
    let theirs = world.hooks(&world.other, "POST", "", &theirs).await.expect(201);
    world.automation("POST", &format!("/{automation}/activate"), &json!({"version": 1})).await.expect(200);
    world.deliver_signed(&theirs, Signer::Slack("theirs"), &slack_message("Ev2", "urgent")).await.expect(200);
    assert!(world.aws.messages("runs").is_empty());
}

#[tokio::test]
async fn slacks_challenge_is_answered_if_it_is_signed() {
    let (world, _, hook) = world().await;
    let body = json!({"token": "t", "challenge": "3eZbrw1a", "type": "url_verification"});
    let unsigned = world.deliver_signed(&hook, Signer::Unsigned, &body).await;
    assert_eq!((unsigned.status, unsigned.body), (401, Value::Null));
    let answered = world.deliver_signed(&hook, Signer::Slack(SLACK_SECRET), &body).await.expect(200);
    assert_eq!(answered, json!({"challenge": "3eZbrw1a"}));
    assert!(world.aws.rows("events").is_empty());
}

#[tokio::test]
async fn actions_of_our_own_bot_and_pings_are_not_events() {
    let (world, automation, hook) = world().await;
    for (name, change) in [("app_id", json!("A0MDYCDME")), ("user", json!("U0BOT1234")), ("text", json!("urgent"))] {
        let mut message = slack_message("Ev1", "urgent");
        message["event"]["bot_id"] = json!("B1");
        message["event"][name] = change;
        world.deliver_signed(&hook, Signer::Slack(SLACK_SECRET), &message).await.expect(200);
    }
    let limited = json!({"type": "app_rate_limited", "team_id": "T061EG9R6", "minute_rate_limited": 1_518_467_820});
    world.deliver_signed(&hook, Signer::Slack(SLACK_SECRET), &limited).await.expect(200);
    assert!(world.aws.rows("events").is_empty());
    // Other bots' messages count.
    let mut alert = slack_message("Ev2", "urgent");
    (alert["event"]["bot_id"], alert["event"]["app_id"]) = (json!("B2"), json!("A0OTHER"));
    world.deliver_signed(&hook, Signer::Slack(SLACK_SECRET), &alert).await.expect(200);
    assert_eq!(world.runs_of(&automation).len(), 1);

    let github = world.hook(&json!({"service": "GitHub"})).await;
    let secret = text(&github["secret"]);
    world.deliver_signed(&github, Signer::Github(secret, "ping"), &json!({"zen": "Keep it simple."})).await.expect(200);
    assert_eq!(world.aws.rows("events").len(), 1);
    let unusable = world.deliver_signed(&github, Signer::Github(secret, "issues"), &json!("text")).await;
    assert_eq!(unusable.status, 200, "an event without an action is one");
}

#[tokio::test]
async fn an_app_that_was_uninstalled_ends_the_hook() {
    let (world, automation, all) = world().await;
    let hook = world.hook(&json!({"service": "Slack", "secret": SLACK_SECRET, "tenant": SLACK_TENANT})).await;
    let mut gone = slack_message("Ev1", "");
    gone["event"] = json!({"type": "tokens_revoked", "tokens": {"oauth": ["U1"], "bot": []}});
    world.deliver_signed(&hook, Signer::Slack(SLACK_SECRET), &gone).await.expect(200);
    world.slack_says(&hook, "Ev2", "urgent").await.expect(200);
    assert_eq!(world.runs_of(&automation).len(), 1, "a user's token is not the app's");
    gone["event"] = json!({"type": "app_uninstalled"});
    world.deliver_signed(&hook, Signer::Slack(SLACK_SECRET), &gone).await.expect(200);
    let shown = world.hooks(&world.home, "GET", &format!("/{}", text(&hook["id"])), &Value::Null).await.expect(200);
    assert_eq!(shown["status"], "ended");
    assert_eq!(world.slack_says(&hook, "Ev3", "urgent").await.status, 401);
    assert_eq!(world.runs_of(&automation).len(), 1);
    // A hook for every workspace continues with the others' events.
    world.deliver_signed(&all, Signer::Slack(SLACK_SECRET), &gone).await.expect(200);
    world.slack_says(&all, "Ev4", "urgent").await.expect(200);
    assert_eq!(world.runs_of(&automation).len(), 2);
}

#[tokio::test]
async fn one_signed_delivery_of_github_is_one_event_under_any_id() {
    let world = World::start().await;
    world.catalogue_service("github");
    let automation = world.active(&manual_body("GitHub", "issues.opened", &Value::Null)).await;
    let hook = world.hook(&json!({"service": "GitHub"})).await;
    let secret = text(&hook["secret"]);
    let body = json!({"action": "opened", "issue": {"number": 7, "title": "Pump 3 leaks"}});
    let event = world.signed(&world.hook_path(&hook), Signer::Github(secret, "issues"), &body);
    for id in ["1", "2", "3"] {
        world.send("trigger", &event.clone().header("x-github-delivery", id)).await.expect(200);
    }
    world.send("trigger", &event.header("x-github-event", "push")).await.expect(200);
    assert_eq!((world.runs_of(&automation).len(), world.aws.rows("events").len()), (1, 1));
    let other = json!({"action": "opened", "issue": {"number": 8, "title": "Pump 3 leaks"}});
    world.deliver_signed(&hook, Signer::Github(secret, "issues"), &other).await.expect(200);
    assert_eq!(world.runs_of(&automation).len(), 2);
}

#[tokio::test]
async fn a_base64_body_is_verified_decoded() {
    use base64::{Engine, prelude::BASE64_STANDARD};
    let (world, automation, hook) = world().await;
    let event = world.signed(&world.hook_path(&hook), Signer::Slack(SLACK_SECRET), &slack_message("Ev1", "urgent"));
    let mut raw = event.to_json();
    raw["isBase64Encoded"] = json!(true);
    raw["body"] = json!(BASE64_STANDARD.encode(event.body.unwrap()));
    world.send_json("trigger", &raw).await.expect(200);
    assert_eq!(world.runs_of(&automation).len(), 1);
    // API Gateway joins two headers.
    let joined = format!("{}, v0=00", raw["headers"]["x-slack-signature"].as_str().unwrap());
    raw["headers"]["x-slack-signature"] = json!(joined);
    assert_eq!(world.send_json("trigger", &raw).await.status, 401);
}

#[tokio::test]
async fn a_filter_sees_the_whole_of_a_large_event_and_no_run_is_given_a_part_of_it() {
    let (world, automation, hook) = world().await;
    for (id, end, said) in [("Ev1", "urgent", "200 KB at most"), ("Ev2", "lunch", "contains")] {
        let text_of = format!("{}{end}", "word ".repeat(200_000));
        world.slack_says(&hook, id, &text_of).await.expect(200);
        assert!(world.runs_of(&automation).is_empty());
        let listed = world.events("?matched=false").await.expect(200);
        let why = text(&listed["items"][0]["unmatched"][0]["why"]);
        assert!(why.contains(said), "{why}");
    }
    for row in world.aws.rows("events") {
        assert!(text(&row["data"]).len() <= 200_000 && text(&row["data"]).contains("(cut: "), "it says so");
    }
    world.slack_says(&hook, "Ev3", &format!("{} urgent", "word ".repeat(35_000))).await.expect(200);
    assert_eq!(world.runs_of(&automation).len(), 1);
}

#[tokio::test]
async fn slacks_token_is_in_no_row() {
    let (world, automation, hook) = world().await;
    let mut message = slack_message("Ev1", "urgent");
    message["token"] = json!("XXYYZZ-verification");
    world.deliver_signed(&hook, Signer::Slack(SLACK_SECRET), &message).await.expect(200);
    assert_eq!(world.runs_of(&automation).len(), 1);
    let rows = json!([world.aws.rows("events"), world.aws.rows("automation_runs")]).to_string();
    assert!(!rows.contains("XXYYZZ-verification"));
}

#[tokio::test]
async fn events_are_shown_redacted_and_kept_for_a_time() {
    let (world, _, hook) = world().await;
    world.slack_says(&hook, "Ev1", &format!("call {} or ana@example.com", phone(7))).await.expect(200);
    let listed = world.events("?matched=false").await.expect(200);
    let one = world.events(&format!("/{}", text(&listed["items"][0]["id"]))).await.expect(200);
    let shown = format!("{listed} {one}");
    assert!(!shown.contains(&phone(7)) && !shown.contains("ana@example.com"), "{shown}");
    let row = world.aws.rows("events").remove(0);
    let days = (row["expires_at"].as_i64().unwrap() - Timestamp::now().as_seconds()) / 86_400;
    assert!((29..=30).contains(&days), "{days}");
    world.aws.change("events", text(&row["id"]), json!({"expires_at": 1}));
    assert_eq!(world.events("").await.expect(200)["items"], json!([]));
    assert_eq!(world.events(&format!("/{}", text(&row["id"]))).await.status, 404);
}

#[tokio::test]
async fn a_batch_of_hubspots_is_an_event_each_and_routed_by_portal() {
    let world = World::start().await;
    world.catalogue_service("hubspot");
    let automation = world.active(&manual_body("HubSpot", "contact.creation", &Value::Null)).await;
    let secret = "yyyyyyyy-yyyy";
    let ours = json!({"service": "HubSpot", "secret": secret, "tenant": "62515"});
    world.hook(&ours).await;
    let theirs = json!({"service": "HubSpot", "secret": secret, "tenant": "70000"});
    world.hooks(&world.other, "POST", "", &theirs).await.expect(201);
    let event = |id: u64, portal: u64| {
        json!({
            "eventId": id, "subscriptionId": 26, "portalId": portal, "occurredAt": 1_795_298_398_123_u64,
            "subscriptionType": "contact.creation", "attemptNumber": 0, "objectId": 7,
        })
    };
    let batch = json!([event(1, 62515), event(2, 70000), event(3, 62515), event(4, 99999)]);
    world.send("trigger", &world.signed("/api/hooks/hubspot", Signer::Hubspot(secret), &batch)).await.expect(200);
    let rows = world.aws.rows("events");
    let of = |tenant: &str| rows.iter().filter(|row| row["organization_id"] == tenant).count();
    assert_eq!((of(&world.home.organization_id), of(&world.other.organization_id), rows.len()), (2, 1, 3));
    assert_eq!(world.runs_of(&automation).len(), 2);
    // More portals than are read at once, with one unreadable item.
    let mut batch: Vec<Value> = (0..40).map(|number| event(100 + number, 1_000 + number)).collect();
    batch.push(json!({"portalId": 62515, "subscriptionType": {"of": "a newer version"}}));
    batch.push(event(4, 62515));
    batch.push(event(5, 70000));
    let batch = Value::Array(batch);
    world.send("trigger", &world.signed("/api/hooks/hubspot", Signer::Hubspot(secret), &batch)).await.expect(200);
    assert_eq!((world.runs_of(&automation).len(), world.aws.rows("events").len()), (3, 5));
    let unreadable = json!([{"portalId": 62515}]);
    let answer = world.send("trigger", &world.signed("/api/hooks/hubspot", Signer::Hubspot(secret), &unreadable)).await;
    assert_eq!(answer.status, 400);
}

#[tokio::test]
async fn many_events_at_once_are_a_run_each_in_the_organizations_group() {
    const EVENTS: usize = 200;
    let world = World::start().await;
    world.slack_service();
    let mut definition = world.urgent_messages();
    definition["quotas"] = json!({"runs_per_hour": 1_000});
    let automation = world.active(&definition).await;
    let hook = world.slack_hook().await;
    let sent = (0..EVENTS).map(|number| {
        let (world, hook) = (&world, &hook);
        async move { world.slack_says(hook, &format!("Ev{number}"), "urgent").await }
    });
    for answer in join_all(sent).await {
        // An event without a timely answer comes again.
        assert!([200, 503].contains(&answer.status), "{}", answer.body);
    }
    for number in 0..EVENTS {
        world.slack_says(&hook, &format!("Ev{number}"), "urgent").await.expect(200);
    }
    assert_eq!(world.runs_of(&automation).len(), EVENTS);
    let sent = world.aws.operations().into_iter().filter(|operation| operation.action == "SendMessage");
    let groups: Vec<Value> = sent.map(|operation| operation.body["MessageGroupId"].clone()).collect();
    assert!(groups.len() >= EVENTS && groups.iter().all(|group| *group == json!(world.home.organization_id)));
}

#[tokio::test]
async fn an_event_is_matched_by_one_query_of_an_index() {
    let (world, _, hook) = world().await;
    world.slack_says(&hook, "Ev0", "urgent").await.expect(200);
    world.aws.clear_operations();
    world.slack_says(&hook, "Ev1", "urgent").await.expect(200);
    let asked: Vec<_> =
        world.aws.operations().into_iter().filter(|it| it.on.contains(&"automations".to_owned())).collect();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!((&asked[0].action[..], &asked[0].body["IndexName"]), ("Query", &json!("by_trigger")));
    assert!(world.aws.operations().iter().all(|operation| operation.action != "Scan"));
}
