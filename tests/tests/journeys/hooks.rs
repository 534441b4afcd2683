//! Hooks: making, showing, changing and deleting them; their secrets; handshakes.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::large_futures,
    reason = "a test says what is wrong and stops"
)]

use serde_json::{Value, json};
use tests::{Event, Options, SLACK_SECRET, World, http_server::Server, slack_message, standins, webhooks::Signer};

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is not text"))
}

const SECRETS: &str = "switchboard/organizations/hooks/";

async fn patch(world: &World, hook: &Value, body: &Value) -> tests::Answer {
    world.hooks(&world.home, "PATCH", &format!("/{}", text(&hook["id"])), body).await
}

#[tokio::test]
async fn a_hook_has_an_address_and_its_secret_is_never_shown() {
    let world = World::start().await;
    let made = world.hook(&json!({"service": "Slack", "secret": SLACK_SECRET, "label": "Ours"})).await;
    let id = text(&made["id"]);
    assert_eq!(text(&made["url"]), format!("{}/api/hooks/slack/{id}", world.options.public_url));
    assert_eq!(
        (&made["service"], &made["scheme"], &made["status"]),
        (&json!("slack"), &json!("slack"), &json!("active"))
    );
    assert!(made.get("secret").is_none(), "{made}");
    let listed = world.hooks(&world.home, "GET", "", &Value::Null).await.expect(200);
    let one = world.hooks(&world.home, "GET", &format!("/{id}"), &Value::Null).await.expect(200);
    assert_eq!((&listed["items"][0], &one["label"]), (&one, &json!("Ours")));
    let everything = format!("{listed} {:?}", world.aws.rows("hooks"));
    assert!(!everything.contains(SLACK_SECRET));
    let names = world.aws.secret_names(SECRETS);
    assert_eq!(names.len(), 1);
    assert_eq!(world.aws.secret(&names[0]).unwrap(), json!({"secret": SLACK_SECRET}));

    for path in [format!("/{id}"), "/1".to_owned()] {
        for (method, body) in [("GET", Value::Null), ("PATCH", json!({"label": "x"})), ("DELETE", Value::Null)] {
            assert_eq!(world.hooks(&world.other, method, &path, &body).await.status, 404);
        }
    }
    world.hooks(&world.home, "DELETE", &format!("/{id}"), &Value::Null).await.expect(200);
    assert!(world.aws.rows("hooks").is_empty() && world.aws.secret_names(SECRETS).is_empty());
    assert!(world.aws.rows("intents").is_empty());
    assert_eq!(world.slack_says(&made, "Ev1", "urgent").await.status, 401);
    assert_eq!(world.hooks(&world.home, "DELETE", &format!("/{id}"), &Value::Null).await.status, 404);
}

#[tokio::test]
async fn a_secret_of_ours_is_shown_once_and_signs() {
    let world = World::start().await;
    world.service("My own shop", None);
    world.service_capabilities(
        "My own shop",
        &json!({"supports_webhooks": true, "webhook_events": ["order.created"], "webhook_payload_schemas": {}}),
    );
    for (service, start) in [("Webhooks", "whsec_"), ("my own shop", "whsec_"), ("GitHub", "")] {
        let made = world.hook(&json!({"service": service})).await;
        let secret = text(&made["secret"]).to_owned();
        assert!(secret.starts_with(start) && secret.len() >= 40, "{secret}");
        let shown = world.hooks(&world.home, "GET", &format!("/{}", text(&made["id"])), &Value::Null).await.expect(200);
        assert!(!shown.to_string().contains(&secret));
        let body = json!({"type": "order.created", "data": {"number": 7}});
        let signer =
            if service == "GitHub" { Signer::Github(&secret, "push") } else { Signer::StandardWebhooks(&secret) };
        world.deliver_signed(&made, signer, &body).await.expect(200);
    }
    let types: Vec<Value> = world.aws.rows("events").iter().map(|row| row["event_type"].clone()).collect();
    assert_eq!(types.iter().filter(|name| **name == "order.created").count(), 2, "{types:?}");
}

#[tokio::test]
async fn a_second_secret_is_accepted_beside_the_first_until_the_old_one_goes() {
    let world = World::start().await;
    let hook = world.slack_hook().await;
    let first = hook["secrets"][0]["id"].clone();
    assert_eq!(patch(&world, &hook, &json!({"label": "a\u{202E}b"})).await.wrong_fields(), ["label"]);
    assert_eq!(patch(&world, &hook, &json!({"secret": " "})).await.wrong_fields(), ["secret"]);
    let changed = patch(&world, &hook, &json!({"secret": "the-next-secret", "label": "Rotating"})).await.expect(200);
    assert_eq!((changed["secrets"].as_array().unwrap().len(), &changed["label"]), (2, &json!("Rotating")));
    assert!(!changed.to_string().contains("the-next-secret"));
    let says = async |secret: &str, id: &str| {
        world.deliver_signed(&hook, Signer::Slack(secret), &slack_message(id, "Hello")).await.status
    };
    assert_eq!((says(SLACK_SECRET, "Ev1").await, says("the-next-secret", "Ev2").await), (200, 200));
    assert_eq!(patch(&world, &hook, &json!({"secret": "a-third"})).await.status, 409);
    patch(&world, &hook, &json!({"remove_secret": first})).await.expect(200);
    assert_eq!((says(SLACK_SECRET, "Ev3").await, says("the-next-secret", "Ev4").await), (401, 200));
    assert_eq!(patch(&world, &hook, &json!({"remove_secret": first})).await.wrong_fields(), ["remove_secret"]);
    let last = changed["secrets"][1]["id"].clone();
    assert_eq!(patch(&world, &hook, &json!({"remove_secret": last})).await.status, 409, "the only one stays");
    assert_eq!(world.aws.secret_names(SECRETS).len(), 1);
    assert!(world.aws.rows("intents").is_empty());

    let ours = world.hook(&json!({"service": "Webhooks"})).await;
    let rotated = patch(&world, &ours, &json!({"rotate": true})).await.expect(200);
    assert_ne!(rotated["secret"], ours["secret"]);
    for secret in [&ours["secret"], &rotated["secret"]] {
        world.deliver_signed(&ours, Signer::StandardWebhooks(text(secret)), &json!({"of": secret})).await.expect(200);
    }
}

#[tokio::test]
async fn a_pending_hook_becomes_active_with_its_secret() {
    let world = World::start().await;
    let hook = world.hook(&json!({"service": "Stripe"})).await;
    assert_eq!((&hook["status"], &hook["secrets"]), (&json!("pending"), &json!([])));
    let event = json!({"id": "evt_1", "type": "invoice.paid", "object": "event"});
    assert_eq!(world.deliver_signed(&hook, Signer::Stripe(""), &event).await.status, 401);
    let active = patch(&world, &hook, &json!({"secret": "whsec_of_stripe"})).await.expect(200);
    assert_eq!(active["status"], "active");
    world.deliver_signed(&hook, Signer::Stripe("whsec_of_stripe"), &event).await.expect(200);
}

#[tokio::test]
async fn notions_token_is_taken_once_shown_once_and_never_replaced() {
    let world = World::start().await;
    let hook = world.hook(&json!({"service": "Notion"})).await;
    assert_eq!(hook["status"], "pending");
    let token = |value: &str| json!({"verification_token": value});
    // Not at the shared address.
    let shared = world.signed("/api/hooks/notion", Signer::Unsigned, &token("secret_attacker"));
    assert_eq!(world.send("trigger", &shared).await.status, 401);
    assert_eq!(patch(&world, &hook, &json!({"reveal": true})).await.status, 409);
    world.deliver_signed(&hook, Signer::Unsigned, &token("secret_of_notion")).await.expect(200);
    for late in ["secret_attacker", "secret_of_notion"] {
        assert_eq!(world.deliver_signed(&hook, Signer::Unsigned, &token(late)).await.status, 401);
    }
    let shown = world.hooks(&world.home, "GET", &format!("/{}", text(&hook["id"])), &Value::Null).await.expect(200);
    assert_eq!((&shown["status"], &shown["unseen_secret"]), (&json!("active"), &json!(true)));
    assert!(!shown.to_string().contains("secret_of_notion"));
    let revealed = patch(&world, &hook, &json!({"reveal": true})).await.expect(200);
    assert_eq!(revealed["secret"], "secret_of_notion");
    assert_eq!(patch(&world, &hook, &json!({"reveal": true})).await.status, 409);
    let event = json!({"id": "e1", "type": "page.created", "workspace_id": "w", "integration_id": "i"});
    world.deliver_signed(&hook, Signer::Notion("secret_of_notion"), &event).await.expect(200);
    assert_eq!(world.deliver_signed(&hook, Signer::Notion("secret_attacker"), &event).await.status, 401);
}

#[tokio::test]
async fn below_admin_nobody_learns_an_address_that_is_a_hooks_only_proof() {
    let world = World::start().await;
    world.slack_service();
    let pending = [world.hook(&json!({"service": "Notion"})).await, world.hook(&json!({"service": "Slack"})).await];
    let unsigned = json!({"service": "doorbell", "scheme": "none", "allowed_addresses": ["192.0.2.0/24"]});
    let unsigned = world.hook(&unsigned).await;
    world.deliver_signed(&unsigned, Signer::Unsigned, &json!({"type": "rang"})).await.expect(200);
    let event = text(&world.aws.rows("events")[0]["id"]).to_owned();
    let automation = world.deploy(&world.urgent_messages()).await.expect(201);
    assert_eq!(automation["diagnostics"][0]["code"], "waits_for_hook");
    let id = text(&automation["automation"]["id"]);

    let addresses: Vec<&str> = pending.iter().chain([&unsigned]).map(|hook| text(&hook["id"])).collect();
    let read = async |role: &str, path: &str| {
        let user = world.member(&world.home, Some(role));
        let function = if path.starts_with("automations") { "deploy" } else { "hooks" };
        world.send(function, &Event::get(&format!("/api/{}/{path}", world.home.slug)).user(&user)).await
    };
    let one_event = format!("events/{event}");
    for role in ["viewer", "member"] {
        assert_eq!(read(role, "hooks").await.status, 403, "{role}");
        for address in &addresses {
            assert_eq!(read(role, &format!("hooks/{address}")).await.status, 403, "{role}");
        }
        for path in ["events".to_owned(), one_event.clone(), format!("automations/{id}")] {
            let shown = read(role, &path).await.expect(200).to_string();
            assert!(!addresses.iter().any(|address| shown.contains(address)), "{role} {path}: {shown}");
        }
    }
    let hint = text(&automation["diagnostics"][0]["hint"]);
    assert!(!addresses.iter().any(|address| hint.contains(address)), "{hint}");
    assert_eq!(read("admin", "hooks").await.expect(200)["items"].as_array().unwrap().len(), 3);
    assert_eq!(read("admin", &one_event).await.expect(200)["hook_id"], unsigned["id"]);
}

#[tokio::test]
async fn microsofts_question_is_answered_at_a_hooks_own_address_only() {
    let world = World::start().await;
    let hook = world.hook(&json!({"service": "Outlook"})).await;
    let asks = |path: &str| Event::new("POST", path).query("validationToken", "Are+you+there%3F%26%3Cb%3E");
    let path = world.hook_path(&hook);
    let answer = world.send("trigger", &asks(&path)).await;
    assert_eq!((answer.status, answer.content_type.as_str()), (200, "text/plain"));
    assert_eq!(answer.body, "Are you there?&<b>");
    let nobodys = path.replace(text(&hook["id"]), &uuid::Uuid::now_v7().to_string());
    for path in ["/api/hooks/outlook", &nobodys, "/api/hooks/outlook/1"] {
        let refused = world.send("trigger", &asks(path)).await;
        assert_eq!((refused.status, refused.body), (401, Value::Null), "{path}");
    }
    let notification = json!({"value": [{
        "id": "n1", "subscriptionId": "s1", "clientState": hook["secret"], "changeType": "created",
        "resource": "users/u/messages/m", "resourceData": {"@odata.type": "#Microsoft.Graph.Message", "id": "m"},
    }]});
    world.deliver_signed(&hook, Signer::Unsigned, &notification).await.expect(200);
    let row = world.aws.rows("events").remove(0);
    assert_eq!(row["event_type"], "message.created");
    assert!(!row.to_string().contains(text(&hook["secret"])));
}

#[tokio::test]
async fn a_channel_of_google_calendars_is_opened_and_tells_of_changes() {
    let world = World::start().await;
    let hook = world.hook(&json!({"service": "Google Calendar", "tenant": "4ba78bf0"})).await;
    let token = text(&hook["secret"]);
    let state = |state: &str, number: &str| json!({"channel-id": "4ba78bf0", "resource-id": "r", "resource-state": state, "message-number": number});
    world.deliver_signed(&hook, Signer::GoogleCalendar(token), &state("sync", "1")).await.expect(200);
    assert!(world.aws.rows("events").is_empty());
    for path in [world.hook_path(&hook), "/api/hooks/google_calendar".to_owned()] {
        let event = world.signed(&path, Signer::GoogleCalendar(token), &state("exists", "2"));
        world.send("trigger", &event).await.expect(200);
        let forged = world.signed(&path, Signer::GoogleCalendar("guess"), &state("exists", "3"));
        assert_eq!(world.send("trigger", &forged).await.status, 401);
    }
    assert_eq!(world.aws.rows("events").len(), 1);
}

#[tokio::test]
async fn a_replaced_secret_keeps_the_state_of_the_hook() {
    let world = World::start().await;
    let hook = world.hook(&json!({"service": "Google Calendar", "tenant": "4ba78bf0"})).await;
    let rotated = patch(&world, &hook, &json!({"rotate": true})).await.expect(200);
    for name in world.aws.secret_names(SECRETS) {
        assert_eq!(world.aws.secret(&name).unwrap()["channel_id"], "4ba78bf0");
    }
    let change = |channel: &str| json!({"channel-id": channel, "resource-id": "r", "resource-state": "exists", "message-number": "2"});
    let next = Signer::GoogleCalendar(text(&rotated["secret"]));
    assert_eq!(world.deliver_signed(&hook, next, &change("another")).await.status, 401);
    let next = Signer::GoogleCalendar(text(&rotated["secret"]));
    world.deliver_signed(&hook, next, &change("4ba78bf0")).await.expect(200);
}

#[tokio::test]
async fn a_tenant_is_one_active_hooks_of_all_organizations() {
    let world = World::start().await;
    let new = |secret: &str| {
        let mut body = json!({"service": "Slack", "tenant": "A0MDYCDME#T061EG9R6"});
        if !secret.is_empty() {
            body["secret"] = json!(secret);
        }
        body
    };
    // A pending hook delays nobody.
    for _pending in 0..12 {
        let theirs = world.hooks(&world.other, "POST", "", &new("")).await.expect(201);
        assert_eq!(theirs["status"], "pending");
    }
    let ours = world.hook(&new(SLACK_SECRET)).await;
    let listed = world.hooks(&world.other, "GET", "", &Value::Null).await.expect(200);
    let pending = text(&listed["items"][0]["id"]).to_owned();
    let activated = json!({"secret": "of their own"});
    let path = format!("/{pending}");
    let taken = world.hooks(&world.other, "PATCH", &path, &activated).await;
    assert_eq!(taken.status, 409);
    assert!(text(&taken.body["detail"]).contains("delete that hook"), "{}", taken.body);
    assert_eq!(world.aws.secret_names(SECRETS).len(), 1, "and its secret is gone again");
    let message = slack_message("Ev1", "Hello");
    let shared = world.signed("/api/hooks/slack", Signer::Slack(SLACK_SECRET), &message);
    world.send("trigger", &shared).await.expect(200);
    assert_eq!(world.aws.rows("events")[0]["organization_id"], world.home.organization_id.as_str());
    // The tenant is free after the hook's end or deletion.
    let mut gone = slack_message("Ev2", "");
    gone["event"] = json!({"type": "app_uninstalled"});
    world.deliver_signed(&ours, Signer::Slack(SLACK_SECRET), &gone).await.expect(200);
    let again = world.hook(&new(SLACK_SECRET)).await;
    assert_eq!(patch(&world, &ours, &json!({"secret": "next"})).await.status, 409, "the ended one");
    world.hooks(&world.home, "DELETE", &format!("/{}", text(&again["id"])), &Value::Null).await.expect(200);
    world.hooks(&world.other, "PATCH", &path, &activated).await.expect(200);
    let deleted = world.hooks(&world.home, "DELETE", &format!("/{}", text(&ours["id"])), &Value::Null).await;
    assert_eq!(deleted.status, 200, "what is not active holds no tenant");
    assert_eq!(world.hooks(&world.home, "POST", "", &new(SLACK_SECRET)).await.status, 409);
}

#[tokio::test]
async fn gmails_token_must_be_of_the_service_account_that_was_named() {
    let world = World::start().await;
    let account = "push@acme.iam.gserviceaccount.com";
    let hook = world.hook(&json!({"service": "Gmail", "service_account": account})).await;
    let pushed = json!({"message": {"data": "eyJlbWFpbEFkZHJlc3MiOiJhQGIuYyIsImhpc3RvcnlJZCI6N30=", "messageId": "1"}});
    let by = |account| Signer::Google(&world.issuer, account);
    assert_eq!(world.deliver_signed(&hook, by("push@attacker.iam.gserviceaccount.com"), &pushed).await.status, 401);
    let elsewhere = world.signed("/api/hooks/gmail", by(account), &pushed);
    let elsewhere = Event { path: world.hook_path(&hook), ..elsewhere };
    assert_eq!(world.send("trigger", &elsewhere).await.status, 401, "for another audience");
    world.deliver_signed(&hook, by(account), &pushed).await.expect(200);
    assert_eq!(world.aws.rows("events").len(), 1);
}

/// The local stack's stand-in for Google: its keys are fetched, its pushes verified.
#[tokio::test]
async fn a_push_of_googles_stand_in_is_taken_for_its_audience_and_account_only() {
    let google = standins::google::start(([127, 0, 0, 1], 0).into()).unwrap();
    let mut options = Options::default();
    options.variables.push(("GOOGLE_KEYS_URL", google.keys_url()));
    let world = World::with(options).await;
    let account = "push@acme.iam.gserviceaccount.com";
    let hook = world.hook(&json!({"service": "Gmail", "service_account": account})).await;
    let path = world.hook_path(&hook);
    // Receives the pushes, which the test then passes to the function.
    let receiver = Server::start(axum::Router::new().fallback(async || "")).await;

    let audience = text(&hook["url"]);
    for (message, account, audience) in [
        ("1", account, audience),
        ("1", account, audience),
        ("2", "push@attacker.iam.gserviceaccount.com", audience),
        ("3", account, "https://elsewhere.example/hook"),
    ] {
        let push = json!({
            "url": format!("{}{path}", receiver.url), "service_account": account, "audience": audience,
            "email_address": "ops@acme.example", "history_id": 9_876_543_210_u64, "message_id": message,
        });
        let told = shared::clients::http_client()
            .unwrap()
            .post(format!("{}/simulate/gmail-push", google.url))
            .json(&push)
            .send()
            .await
            .unwrap();
        assert_eq!(told.json::<Value>().await.unwrap()["status"], 200);
    }
    let mut statuses = Vec::new();
    for push in receiver.seen() {
        let event = push
            .headers
            .iter()
            .fold(Event::new("POST", &push.target), |event, (name, value)| event.header(name, value));
        statuses.push(world.send("trigger", &event.text(&push.body)).await.status);
    }
    assert_eq!(statuses, [200, 200, 401, 401]);
    assert_eq!(world.aws.rows("events").len(), 1, "a message that is delivered again is the same event");
    let asked = google.requests();
    assert_eq!(asked.iter().filter(|request| request.path == "/oauth2/v3/certs").count(), 1, "{asked:?}");
}

#[tokio::test]
async fn everything_wrong_with_a_hook_is_named_at_once() {
    let world = World::start().await;
    for (body, wrong) in [
        (json!({}), vec!["service"]),
        (json!({"service": "Slack!", "color": "red"}), vec!["color", "service"]),
        (json!({"service": "Slack", "tenant": "T061EG9R6", "audience": "x"}), vec!["audience", "tenant"]),
        (json!({"service": "Webhooks", "tenant": "x", "secret": "short"}), vec!["secret", "tenant"]),
        (json!({"service": "Gmail"}), vec!["service_account"]),
        // A push for a known account could claim anybody's mailbox.
        (json!({"service": "Gmail", "service_account": "push@p", "tenant": "ana@example.com"}), vec!["tenant"]),
        (json!({"service": "Pipedream"}), vec!["service"]),
    ] {
        let answer = world.hooks(&world.home, "POST", "", &body).await;
        assert_eq!(answer.wrong_fields(), wrong, "{body}");
    }
    let hook = world.slack_hook().await;
    for (body, wrong) in [
        (json!({"rotate": true}), vec!["rotate"]),
        (json!({"secret": "x", "reveal": true}), vec!["secret"]),
        (json!({"remove_secret": "x", "service": "GitHub"}), vec!["remove_secret", "service"]),
    ] {
        assert_eq!(patch(&world, &hook, &body).await.wrong_fields(), wrong, "{body}");
    }
}

#[tokio::test]
async fn a_hook_of_an_automation_goes_with_the_automation() {
    let world = World::start().await;
    world.slack_service();
    let automation = world.active(&world.urgent_messages()).await;
    let hook = world.pipedream_hook(&automation, "whsk_1").await;
    assert_eq!(patch(&world, &hook, &json!({"label": "Mine"})).await.status, 409);
    let deleted = world.hooks(&world.home, "DELETE", &format!("/{}", text(&hook["id"])), &Value::Null).await;
    assert_eq!(deleted.status, 409);
}

#[tokio::test]
async fn a_service_that_calls_no_hook_gets_none_and_says_how_its_events_arrive() {
    let world = World::start().await;
    for file in tests::catalogue::files().unwrap().keys() {
        world.catalogue_service(file);
    }
    for (service, said) in [
        ("Slakc", "did you mean Slack?"),
        ("Git Hub", "did you mean GitHub?"),
        ("Airtable", "polling"),
        ("Oura", "polling"),
        ("Google Sheets", "activated"),
        ("Push Notifications", "no events"),
    ] {
        let refused = world.hooks(&world.home, "POST", "", &json!({"service": service})).await;
        assert_eq!(refused.wrong_fields(), ["service"], "{service}");
        assert!(refused.body.to_string().contains(said), "{service}: {}", refused.body);
    }
    assert!(world.aws.rows("hooks").is_empty());
    for service in ["Slack", "git-hub", "GITHUB", "Twilio", "telegram", "Linear", "Webhooks", "Outlook"] {
        let answer = world.hooks(&world.home, "POST", "", &json!({"service": service})).await;
        assert_eq!(answer.status == 201, service != "git-hub", "{service}: {}", answer.body);
    }
}

#[tokio::test]
async fn a_hook_of_an_older_version_takes_the_same_events() {
    let world = World::start().await;
    let hook = world.hook(&json!({"service": "Webhooks"})).await;
    // A row of an older version, which had no scheme for Linear.
    let mut row = world.aws.rows("hooks").into_iter().find(|row| row["id"] == hook["id"]).unwrap();
    row.as_object_mut().unwrap().remove("scheme");
    row["service"] = json!("linear");
    world.aws.put("hooks", &row);
    let old = json!({"url": text(&hook["url"]).replace("/webhooks/", "/linear/")});
    let body = json!({"type": "issue.created"});
    world.deliver_signed(&old, Signer::StandardWebhooks(text(&hook["secret"])), &body).await.expect(200);
    assert_eq!(world.aws.rows("events")[0]["event_type"], "issue.created");
}
