//! Hooks of the organizations' own: schemes, senders, floods, and the fields learned from events.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test says what is wrong and stops")]

use base64::{Engine, prelude::BASE64_STANDARD};
use ring::hmac::{HMAC_SHA256, HMAC_SHA512, Key, sign};
use serde_json::{Value, json};
use tests::{Answer, Event, World, webhooks::Signer};

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is not text"))
}

fn listening(config: &Value) -> Value {
    json!({
        "name": "Orders", "trigger_type": "webhook", "trigger_config": config,
        "actions": [{"id": "now", "tool": "current_time", "parameters": {}}], "fingerprints": {"current_time": "built-in"},
    })
}

/// A request to the hook with this body and these headers, not signed.
fn event(world: &World, hook: &Value, body: &str, headers: &[(&str, &str)]) -> Event {
    let event = Event::new("POST", &world.hook_path(hook)).text(body);
    headers.iter().fold(event, |event, (name, value)| event.header(name, value))
}

async fn post(world: &World, hook: &Value, body: &str, headers: &[(&str, &str)]) -> Answer {
    world.send("trigger", &event(world, hook, body, headers)).await
}

fn mac(hook: &Value, body: &str) -> Vec<u8> {
    sign(&Key::new(HMAC_SHA256, text(&hook["secret"]).as_bytes()), body.as_bytes()).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

fn runs(world: &World) -> usize {
    world.aws.rows("automation_runs").iter().filter(|row| row["part"] == "run").count()
}

#[tokio::test]
async fn an_own_hook_starts_the_automations_that_name_it() {
    let world = World::start().await;
    world.slack_service();
    let hook = world.hook(&json!({"service": "Acme Shop", "label": "Our shop"})).await;
    assert_eq!(
        (&hook["service"], &hook["hook"], &hook["scheme"]),
        (&json!("own.acme_shop"), &json!("acme_shop"), &json!("standard_webhooks"))
    );
    let all = world.active(&listening(&json!({"hook": "acme shop"}))).await;
    let paid =
        json!({"hook": "acme_shop", "event_type": "order.paid", "filters": {"path": "total", "op": ">", "value": 100}});
    let mut paid = listening(&paid);
    paid["name"] = json!("Paid");
    let paid = world.active(&paid).await;
    let signer = Signer::StandardWebhooks(text(&hook["secret"]));
    world.deliver_signed(&hook, signer, &json!({"type": "order.paid", "total": 120})).await.expect(200);
    world.deliver_signed(&hook, signer, &json!({"type": "order.created", "total": 900})).await.expect(200);
    world.deliver_signed(&hook, signer, &json!({"total": 1})).await.expect(200);
    let started = |automation: &str| {
        world
            .aws
            .rows("automation_runs")
            .iter()
            .filter(|row| row["automation_id"] == automation && row["part"] == "run")
            .count()
    };
    assert_eq!((started(&all), started(&paid)), (3, 1));
    let events = world.aws.rows("events");
    assert!(events.iter().all(|event| event["service"] == "own.acme_shop"), "{events:?}");
    // An automation of a service with this name gets none of them.
    assert_eq!(world.hooks(&world.home, "GET", "", &Value::Null).await.expect(200)["items"][0].get("secret"), None);
}

#[tokio::test]
async fn each_scheme_takes_its_own_proof_and_nothing_else() {
    let world = World::start().await;
    let body = r#"{"type": "ping", "n": 1}"#;
    let shop =
        world.hook(&json!({"service": "shop", "scheme": "hmac", "header": "X-Shop-Hmac", "encoding": "base64"})).await;
    let good = BASE64_STANDARD.encode(mac(&shop, body));
    for (signature, status) in [
        (good.as_str(), 200),
        (&hex(&mac(&shop, body)), 401),
        (&BASE64_STANDARD.encode(mac(&shop, "other")), 401),
        ("", 401),
    ] {
        assert_eq!(post(&world, &shop, body, &[("x-shop-hmac", signature)]).await.status, status, "{signature}");
    }
    assert_eq!(post(&world, &shop, body, &[]).await.status, 401);
    // API Gateway joins repeated headers.
    assert_eq!(post(&world, &shop, body, &[("x-shop-hmac", &format!("{good},{good}"))]).await.status, 401);

    let prefixed = json!({"service": "git", "scheme": "hmac", "header": "X-Sig", "algorithm": "sha512", "prefix": "v1=", "secret": "a secret of theirs"});
    let prefixed = world.hook(&prefixed).await;
    assert_eq!(prefixed.get("secret"), None, "a given secret is not shown");
    let signature = hex(sign(&Key::new(HMAC_SHA512, b"a secret of theirs"), body.as_bytes()).as_ref());
    assert_eq!(post(&world, &prefixed, body, &[("x-sig", &format!("v1={signature}"))]).await.status, 200);
    assert_eq!(post(&world, &prefixed, body, &[("x-sig", &format!("v1= {signature}"))]).await.status, 200);
    assert_eq!(post(&world, &prefixed, body, &[("x-sig", &signature)]).await.status, 401);

    let bearer = world.hook(&json!({"service": "crm", "scheme": "bearer"})).await;
    let secret = text(&bearer["secret"]);
    for (header, value, status) in [
        ("authorization", format!("Bearer {secret}"), 200),
        ("authorization", format!("bearer  {secret}"), 200),
        ("authorization", format!("Bearer {secret}x"), 401),
        ("authorization", secret.to_owned(), 401),
        ("x-api-key", secret.to_owned(), 401),
    ] {
        assert_eq!(post(&world, &bearer, body, &[(header, &value)]).await.status, status, "{header} {value}");
    }
    let key = world.hook(&json!({"service": "erp", "scheme": "bearer", "header": "X-Api-Key"})).await;
    assert_eq!(post(&world, &key, body, &[("x-api-key", text(&key["secret"]))]).await.status, 200);

    let basic = world.hook(&json!({"service": "fax", "scheme": "basic", "user": "gate"})).await;
    let shown = |user: &str, password: &str| format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}")));
    let password = text(&basic["secret"]);
    for (value, status) in [(shown("gate", password), 200), (shown("date", password), 401), (shown("gate", ""), 401)] {
        assert_eq!(post(&world, &basic, body, &[("authorization", &value)]).await.status, status);
    }
    // A second secret, and then the first no more.
    let path = format!("/{}", text(&bearer["id"]));
    let rotated = world.hooks(&world.home, "PATCH", &path, &json!({"rotate": true})).await.expect(200);
    let remove = json!({"remove_secret": rotated["secrets"][0]["id"]});
    world.hooks(&world.home, "PATCH", &path, &remove).await.expect(200);
    for (secret, status) in [(text(&rotated["secret"]), 200), (secret, 401)] {
        assert_eq!(post(&world, &bearer, body, &[("authorization", &format!("Bearer {secret}"))]).await.status, status);
    }
}

#[tokio::test]
async fn a_hook_without_a_secret_takes_allowed_senders_only_and_warns() {
    let world = World::start().await;
    let unsigned = json!({"service": "doorbell", "scheme": "none", "allowed_addresses": ["198.51.100.0/24"]});
    let hook = world.hook(&unsigned).await;
    assert!(text(&hook["warning"]).contains("not signed"), "{hook}");
    assert_eq!((&hook["status"], hook.get("secret")), (&json!("active"), None));
    for (source, status) in [("198.51.100.9", 200), ("198.51.101.9", 401), ("::1", 401), ("nonsense", 401)] {
        let event = event(&world, &hook, &json!({"from": source}).to_string(), &[]).from_address(source);
        assert_eq!(world.send("trigger", &event).await.status, status, "{source}");
    }
    for change in [json!({"rotate": true}), json!({"secret": "0123456789abcdef"})] {
        let refused = world.hooks(&world.home, "PATCH", &format!("/{}", text(&hook["id"])), &change).await;
        assert_eq!(refused.status, 422, "{change}");
    }
    // The list also restricts hooks with a secret.
    let both = json!({"service": "gate", "scheme": "bearer", "allowed_addresses": ["198.51.100.7"]});
    let both = world.hook(&both).await;
    let bearer = format!("Bearer {}", text(&both["secret"]));
    for (source, status) in [("198.51.100.7", 200), ("198.51.100.8", 401)] {
        let event = event(&world, &both, "{}", &[("authorization", &bearer)]).from_address(source);
        assert_eq!(world.send("trigger", &event).await.status, status, "{source}");
    }
}

#[tokio::test]
async fn a_replayed_body_is_the_same_event_and_an_unreadable_one_none() {
    let world = World::start().await;
    let hook =
        world.hook(&json!({"service": "shop", "scheme": "hmac", "header": "x-sig", "event_field": "meta.topic"})).await;
    let automation = world.active(&listening(&json!({"hook": "shop", "event_type": "paid"}))).await;
    let body = r#"{"meta": {"topic": "paid"}, "id": 7}"#;
    let signature = hex(&mac(&hook, body));
    for _ in 0..3 {
        post(&world, &hook, body, &[("x-sig", &signature)]).await.expect(200);
    }
    assert_eq!((world.aws.rows("events").len(), runs(&world)), (1, 1), "{automation}");
    for body in ["not json", "{", "\u{0}"] {
        let refused = post(&world, &hook, body, &[("x-sig", &hex(&mac(&hook, body)))]).await;
        assert_eq!(refused.status, 400, "{body}");
        assert_eq!(post(&world, &hook, body, &[("x-sig", "00")]).await.status, 401, "nobody learns what can be read");
    }
    let form = "meta=1&name=Ada+Lovelace";
    let headers = [("content-type", "application/x-www-form-urlencoded"), ("x-sig", &hex(&mac(&hook, form)) as &str)];
    post(&world, &hook, form, &headers).await.expect(200);
    let data: Vec<Value> = world.aws.rows("events").iter().map(|event| event["data"].clone()).collect();
    assert!(data.iter().any(|data| text(data).contains("Ada Lovelace")), "{data:?}");
    // Another organization's hook has another secret, and its own address.
    let theirs =
        world.hooks(&world.other, "POST", "", &json!({"service": "shop", "scheme": "hmac", "header": "x-sig"})).await;
    let theirs = theirs.expect(201);
    assert_eq!(post(&world, &theirs, body, &[("x-sig", &signature)]).await.status, 401);
    assert_eq!(world.hooks(&world.other, "GET", &format!("/{}", text(&hook["id"])), &Value::Null).await.status, 404);
}

#[tokio::test]
async fn a_flood_is_refused_counted_and_told_and_other_hooks_feel_nothing() {
    let world = World::start().await;
    let hook = world.hook(&json!({"service": "shop", "scheme": "bearer"})).await;
    let other = world.hook(&json!({"service": "crm", "scheme": "bearer"})).await;
    let headers = |hook: &Value| format!("Bearer {}", text(&hook["secret"]));
    post(&world, &hook, r#"{"n": 0}"#, &[("authorization", &headers(&hook))]).await.expect(200);
    let counter = world.aws.rows("idempotency").into_iter().find(|row| text(&row["id"]).contains("#minute#")).unwrap();
    // The minute may end meanwhile: its counter and the next one's are full.
    for minutes in 0..2 {
        let now = shared::models::Timestamp::now().plus(std::time::Duration::from_secs(60 * minutes));
        let mut full = counter.clone();
        let before = text(&counter["id"]).rsplit_once('#').unwrap().0.to_owned();
        (full["id"], full["count"]) = (json!(format!("{before}#{}", now.minute())), json!(300));
        world.aws.put("idempotency", &full);
    }
    for n in 1..3 {
        let refused = post(&world, &hook, &json!({"n": n}).to_string(), &[("authorization", &headers(&hook))]).await;
        assert_eq!((refused.status, refused.retry_after.as_deref()), (429, Some("60")));
    }
    assert_eq!(post(&world, &hook, r#"{"n": 9}"#, &[("authorization", "Bearer x")]).await.status, 401);
    let shown = world.hooks(&world.home, "GET", &format!("/{}", text(&hook["id"])), &Value::Null).await.expect(200);
    assert_eq!((&shown["throttled"], shown["throttled_at"].is_string()), (&json!(2), true), "{shown}");
    post(&world, &other, r#"{"n": 1}"#, &[("authorization", &headers(&other))]).await.expect(200);
    assert_eq!(world.aws.rows("events").len(), 2);
}

#[tokio::test]
async fn a_hook_with_a_scheme_of_a_newer_version_is_not_open_but_unavailable() {
    let world = World::start().await;
    let hook = world.hook(&json!({"service": "shop", "scheme": "bearer"})).await;
    for change in [json!({"scheme": "quantum"}), json!({"own": {"encoding": "base58"}})] {
        let mut row = world.aws.row("hooks", text(&hook["id"])).unwrap();
        row.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        world.aws.put("hooks", &row);
        let bearer = format!("Bearer {}", text(&hook["secret"]));
        assert_eq!(post(&world, &hook, "{}", &[("authorization", &bearer)]).await.status, 503, "{change}");
        let path = format!("/{}", text(&hook["id"]));
        assert_eq!(world.hooks(&world.home, "GET", &path, &Value::Null).await.status, 503);
        assert_eq!(world.hooks(&world.home, "GET", "", &Value::Null).await.expect(200)["items"], json!([]));
    }
    assert!(world.aws.rows("events").is_empty());
}

#[tokio::test]
async fn names_of_services_are_not_taken() {
    let world = World::start().await;
    world.slack_service();
    for (body, field, said) in [
        (json!({"service": "Slakc"}), "service", "did you mean Slack?"),
        (
            json!({"service": "Slack", "scheme": "none", "allowed_addresses": ["10.0.0.1"]}),
            "scheme",
            "scheme of its own",
        ),
        (json!({"service": "own.shop", "scheme": "bearer"}), "service", "must not begin with own."),
    ] {
        let refused = world.hooks(&world.home, "POST", "", &body).await;
        assert!(refused.wrong_fields().contains(&field.to_owned()), "{body}: {}", refused.body);
        assert!(refused.body.to_string().contains(said), "{body}: {}", refused.body);
    }
    let meant = world.hook(&json!({"service": "Slakc", "scheme": "bearer"})).await;
    assert_eq!(meant["service"], "own.slakc");
    // A service of the catalogue that calls no hook.
    world.catalogue_service("zendesk");
    let refused = world.hooks(&world.home, "POST", "", &json!({"service": "Zendesk"})).await;
    assert_eq!(refused.wrong_fields(), ["service"]);
    assert!(refused.body.to_string().contains("give its scheme too"), "{}", refused.body);
    let own = world.hook(&json!({"service": "Zendesk", "scheme": "bearer"})).await;
    assert_eq!(own["service"], "own.zendesk");
}

#[tokio::test]
async fn paths_are_checked_against_the_events_that_came_and_the_fields_are_shown() {
    let world = World::start().await;
    let told = |answer: &Value| -> Vec<String> {
        let all = answer["diagnostics"].as_array().unwrap();
        all.iter()
            .map(|one| format!("{} {} {}", text(&one["severity"]), text(&one["pointer"]), text(&one["code"])))
            .collect()
    };
    let mut definition = listening(&json!({"hook": "shop"}));
    definition["dry_run"] = json!(true);
    definition["actions"] =
        json!([{"id": "now", "tool": "current_time", "parameters": {"timeZone": "{{order.zone}}"}}]);
    let unknown = world.deploy(&definition).await.expect(200);
    let pointer = "/trigger_config/hook";
    assert_eq!(told(&unknown), [format!("warning {pointer} not_checked"), format!("warning {pointer} waits_for_hook")]);
    let hook = world.hook(&json!({"service": "shop", "scheme": "bearer"})).await;
    let misspelt = listening(&json!({"hook": "shpo"}));
    let misspelt = world
        .deploy(&{
            let mut dry = misspelt;
            dry["dry_run"] = json!(true);
            dry
        })
        .await
        .expect(200);
    let waits = misspelt["diagnostics"].as_array().unwrap().iter().find(|one| one["code"] == "waits_for_hook").unwrap();
    assert_eq!((&waits["did_you_mean"], &waits["allowed"]), (&json!("shop"), &json!(["shop"])));

    let bearer = format!("Bearer {}", text(&hook["secret"]));
    let body = json!({"order": {"zone": "Europe/Berlin", "email": "ada@example.com"}, "rows": [{"sku": "a"}]});
    post(&world, &hook, &body.to_string(), &[("authorization", &bearer)]).await.expect(200);
    let known = world.deploy(&definition).await.expect(200);
    assert_eq!(told(&known), Vec::<String>::new(), "{known}");
    definition["actions"][0]["parameters"]["timeZone"] = json!("{{order.zoen}}");
    let wrong = world.deploy(&definition).await.expect(200);
    assert_eq!(told(&wrong), ["warning /actions/0/parameters/timeZone unknown_path"]);
    assert!(text(&wrong["diagnostics"][0]["message"]).contains("sample of events"), "{wrong}");

    let shown = world.hooks(&world.home, "GET", &format!("/{}", text(&hook["id"])), &Value::Null).await.expect(200);
    let fields: Vec<&str> =
        shown["payload"]["fields"].as_array().unwrap().iter().map(|field| text(&field["path"])).collect();
    assert_eq!(fields, ["order", "order.email", "order.zone", "rows", "rows[0]", "rows[0].sku"]);
    assert_eq!(shown["payload"]["example"]["order"], json!({"zone": "Europe/Berlin", "email": "[email]"}));
}

#[tokio::test]
async fn an_event_that_the_catalogue_does_not_list_can_be_used() {
    let world = World::start().await;
    world.slack_service();
    let hook = world.slack_hook().await;
    let mut definition = world.urgent_messages();
    definition["dry_run"] = json!(true);
    definition["trigger_config"] = json!({"service": "Slack", "event_type": "reaction_added"});
    definition["actions"][0] =
        json!({"id": "now", "tool": "current_time", "parameters": {"timeZone": "{{event.zone}}"}});
    definition["fingerprints"] = json!({"current_time": "built-in"});
    let event = |answer: &Value| {
        answer["diagnostics"].as_array().unwrap().iter().find(|one| one["code"] == "unknown_event").cloned()
    };
    let warned = event(&world.deploy(&definition).await.expect(200)).unwrap();
    assert_eq!((&warned["severity"], warned.get("allowed")), (&json!("warning"), None), "{warned}");
    let mut message = tests::slack_message("Ev7", "x");
    message["event"] = json!({"type": "reaction_added", "user": "U1", "reaction": "eyes", "zone": "UTC"});
    world.deliver_signed(&hook, Signer::Slack(tests::SLACK_SECRET), &message).await.expect(200);
    let answer = world.deploy(&definition).await.expect(200);
    let warned = event(&answer).unwrap();
    assert!(warned["allowed"].to_string().contains("event.reaction"), "{warned}");
    assert_eq!(answer["result"], "ok", "{answer}");
    // A misspelt name is still an error.
    definition["trigger_config"]["event_type"] = json!("mesage");
    let error = event(&world.deploy(&definition).await.expect(200)).unwrap();
    assert_eq!((&error["severity"], &error["did_you_mean"]), (&json!("error"), &json!("message")));
}
