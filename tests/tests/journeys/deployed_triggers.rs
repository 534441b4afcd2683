//! Events by Pipedream's triggers, which come and go with their automations.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::large_futures,
    reason = "a test says what is wrong and stops"
)]

use axum::{Router, http::StatusCode, routing::post as route};
use local::standins::Fault as VendorFault;
use serde_json::{Value, json};
use tests::{Event, Fault, Options, World, http_server::Server, logs::Logs, metrics::Metrics, webhooks::Signer};

const DEPLOY: &str = "/triggers/deploy";
const NEW_ADDRESS: &str = "https://calls.acme.example";

/// Gmail's events as the catalogue has them, and Slack to post to.
fn gmail(world: &World) {
    world.catalogue_service("gmail.json");
    world.service("Gmail", Some("gmail"));
    world.slack_service();
}

/// A world with Gmail as the catalogue has it, connected.
async fn world() -> World {
    let world = World::start().await;
    gmail(&world);
    world
}

/// Posts the subjects of invoices that arrive under this label.
fn invoices(world: &World, label: &str) -> Value {
    json!({
        "name": "Invoices", "trigger_type": "webhook",
        "trigger_config": {
            "service": "Gmail", "event_type": "message.received", "params": {"labels": [label]},
            "filters": {
                "path": "parsedHeaders.subject", "op": "contains", "value": "invoice", "case_insensitive": true,
            },
        },
        "actions": [{
            "id": "tell", "tool": "slack_post_message",
            "parameters": {"channel": "C024BE91L", "text": "{{parsedHeaders.subject}}"},
        }],
        "fingerprints": {"slack_post_message": world.fingerprint("slack_post_message")},
    })
}

/// A message of Ana's as the trigger brings it.
fn message(id: &str, subject: &str) -> Value {
    json!({"id": id, "parsedHeaders": {"subject": subject, "from": {"name": "Ana", "email": "ana@example.com"}}})
}

async fn saved(world: &World, definition: &Value) -> String {
    let saved = world.deploy(definition).await.expect(201);
    saved["automation"]["id"].as_str().unwrap().to_owned()
}

async fn post(world: &World, id: &str, verb: &str, body: &Value) -> tests::Answer {
    world.automation("POST", &format!("/{id}/{verb}"), body).await
}

/// The one hook, with the address that Pipedream posts to.
fn hook_of(world: &World) -> Value {
    let mut hook = world.aws.rows("hooks").remove(0);
    hook["url"] = json!(world.pipedream.triggers()[0].webhook_url());
    hook
}

/// No open intent and no deployed trigger may be left.
fn nothing_left(world: &World) {
    assert_eq!(world.pipedream.triggers(), []);
    for table in ["deployed_triggers", "hooks", "intents"] {
        assert_eq!(world.aws.rows(table), [] as [Value; 0], "{table}");
    }
}

#[tokio::test]
async fn a_trigger_is_deployed_with_the_automation_and_its_events_run_it() {
    let world = world().await;
    let id = saved(&world, &invoices(&world, "INBOX")).await;
    assert_eq!(world.pipedream.triggers(), []);
    post(&world, &id, "activate", &json!({"version": 1})).await.expect(200);
    let triggers = world.pipedream.triggers();
    let [trigger] = &triggers[..] else { panic!("{triggers:?}") };
    assert_eq!(trigger.component_key, "gmail-new-email-received");
    assert_eq!(trigger.external_user_id, world.home.organization_id);
    assert!(!trigger.emit_on_deploy, "what came before is old");
    assert_eq!(
        trigger.configured_props,
        json!({
            "gmail": {"authProvisionId": "apn_gmailh"}, "labels": ["INBOX"], "triggerType": "polling", "withTextPayload": false,
        })
    );
    assert_eq!(world.aws.rows("intents"), [] as [Value; 0]);
    let hook = hook_of(&world);
    assert!(trigger.webhook_url().ends_with(&format!("/api/hooks/pipedream/{}", hook["id"].as_str().unwrap())));
    assert!(!json!(world.aws.rows("hooks")).to_string().contains(trigger.signing_key()));

    let key = trigger.signing_key();
    let mail = message("18c2", "Invoice 2026-117");
    for _delivery in 0..2 {
        world.deliver_signed(&hook, Signer::Pipedream(key), &mail).await.expect(200);
    }
    let other = message("18c3", "Lunch?");
    world.deliver_signed(&hook, Signer::Pipedream(key), &other).await.expect(200);
    assert_eq!(world.runs_of(&id).len(), 1);
    let answer = world.deliver_signed(&hook, Signer::Pipedream("another key"), &mail).await;
    assert_eq!(answer.status, 401);

    // The same version again changes nothing.
    post(&world, &id, "activate", &json!({"version": 1})).await.expect(200);
    assert_eq!(world.pipedream.triggers(), triggers);
    post(&world, &id, "pause", &Value::Null).await.expect(200);
    nothing_left(&world);
}

#[tokio::test]
async fn other_params_are_another_trigger_and_a_deletion_takes_it_along() {
    let world = world().await;
    let id = saved(&world, &invoices(&world, "INBOX")).await;
    post(&world, &id, "activate", &json!({"version": 1})).await.expect(200);
    let first = world.pipedream.triggers().remove(0);
    world.put_automation(&id, "*", &invoices(&world, "Label_7")).await.expect(200);
    assert_eq!(world.pipedream.triggers(), std::slice::from_ref(&first), "what is only saved runs nothing");
    post(&world, &id, "activate", &json!({"version": 2})).await.expect(200);
    let second = world.pipedream.triggers();
    assert_eq!((second.len(), &second[0].configured_props["labels"]), (1, &json!(["Label_7"])));
    assert_ne!((&second[0].id, second[0].webhook_url()), (&first.id, first.webhook_url()));
    world.automation("DELETE", &format!("/{id}"), &Value::Null).await;
    nothing_left(&world);
}

/// Pipedream cannot be reached to delete the trigger of the version before.
#[tokio::test]
async fn events_of_the_version_before_do_not_start_the_present_one() {
    let world = world().await;
    let id = saved(&world, &invoices(&world, "INBOX")).await;
    post(&world, &id, "activate", &json!({"version": 1})).await.expect(200);
    let (hook, key) = (hook_of(&world), world.pipedream.triggers()[0].signing_key().to_owned());
    let before = message("18c1", "Invoice 2026-116");
    world.deliver_signed(&hook, Signer::Pipedream(&key), &before).await.expect(200);
    world.put_automation(&id, "*", &invoices(&world, "Label_7")).await.expect(200);
    world.pipedream.inject(VendorFault::status(503).on("DELETE", "/deployed-triggers").times(9));
    post(&world, &id, "activate", &json!({"version": 2})).await;
    assert_eq!(world.aws.rows("automations")[0]["active_version"], 2);
    assert_eq!(world.pipedream.triggers().len(), 1);
    let mail = message("18c2", "Invoice 2026-117");
    for mail in [&mail, &mail, &before] {
        world.deliver_signed(&hook, Signer::Pipedream(&key), mail).await.expect(200);
    }
    assert_eq!(world.runs_of(&id).len(), 1, "the run of the version before");
    let mut events = world.aws.rows("events");
    events.sort_by_key(|event| event["created_at"].to_string());
    let [first, second] = &events[..] else { panic!("two events: {events:?}") };
    assert_eq!(first["matched"].as_array().unwrap().len(), 1, "{first}");
    assert_eq!(second["unmatched"][0]["why"], "It does not listen to this event any more.", "{second}");
}

#[tokio::test]
async fn a_trigger_that_pipedream_refuses_pauses_the_automation_with_the_reason() {
    let world = world().await;
    let id = saved(&world, &invoices(&world, "INBOX")).await;
    world.pipedream.inject(VendorFault::status(400).on("POST", DEPLOY));
    let refused = post(&world, &id, "activate", &json!({"version": 1})).await.expect(409);
    assert!(refused["detail"].as_str().unwrap().contains("Pipedream did not deploy"), "{refused}");
    let row = world.aws.rows("automations").remove(0);
    assert_eq!(row["status"], "paused");
    assert!(row["pause_reason"].as_str().unwrap().contains("Pipedream did not deploy"), "{row}");
    nothing_left(&world);
    post(&world, &id, "activate", &json!({"version": 1})).await.expect(200);
    assert_eq!(world.pipedream.triggers().len(), 1);
    assert_eq!(world.aws.rows("automations")[0].get("pause_reason"), None);
}

#[tokio::test]
async fn a_deployment_whose_answer_is_lost_is_found_and_not_repeated() {
    let world = world().await;
    let id = saved(&world, &invoices(&world, "INBOX")).await;
    world.pipedream.inject(VendorFault::drop_after().on("POST", DEPLOY));
    post(&world, &id, "activate", &json!({"version": 1})).await.expect(200);
    let triggers = world.pipedream.triggers();
    assert_eq!(triggers.len(), 1, "{triggers:?}");
    let hook = hook_of(&world);
    assert_eq!(
        (&hook["status"], world.aws.rows("deployed_triggers")[0]["trigger_id"].clone()),
        (&json!("active"), json!(triggers[0].id))
    );
    let mail = message("18c2", "Invoice");
    world.deliver_signed(&hook, Signer::Pipedream(triggers[0].signing_key()), &mail).await.expect(200);
    assert_eq!(world.runs_of(&id).len(), 1);
}

#[tokio::test]
async fn a_refusal_of_our_credentials_does_not_pause_automations() {
    for status in [403, 404] {
        let world = world().await;
        let id = saved(&world, &invoices(&world, "INBOX")).await;
        world.pipedream.inject(VendorFault::status(status).on("POST", DEPLOY));
        post(&world, &id, "activate", &json!({"version": 1})).await.expect(200);
        assert_eq!(world.aws.rows("automations")[0]["status"], "active", "{status}");
        world.settle().await;
        assert_eq!(world.pipedream.triggers().len(), 1, "{status}");
    }
}

#[tokio::test]
async fn a_key_that_is_not_told_is_made_anew() {
    let world = world().await;
    world.pipedream.hide_signing_keys();
    let id = saved(&world, &invoices(&world, "INBOX")).await;
    post(&world, &id, "activate", &json!({"version": 1})).await.expect(200);
    let trigger = world.pipedream.triggers().remove(0);
    let mail = message("18c2", "Invoice");
    world.deliver_signed(&hook_of(&world), Signer::Pipedream(trigger.signing_key()), &mail).await.expect(200);
    assert_eq!(world.runs_of(&id).len(), 1);
}

#[tokio::test]
async fn a_trigger_that_is_deployed_again_signs_with_its_own_key() {
    let mut world = world().await;
    let id = saved(&world, &invoices(&world, "INBOX")).await;
    // The lease, the request, then the deployed trigger, which is not recorded any more.
    world.aws.inject(Fault::throttled("UpdateItem", "deployed_triggers").after(2).times(1_000));
    post(&world, &id, "activate", &json!({"version": 1})).await.expect(200);
    assert_eq!(world.aws.rows("hooks")[0]["secrets"].as_array().unwrap().len(), 1);
    world.aws.clear_faults();
    world.pipedream.lose_triggers();
    world.restart();
    world.later();
    world.settle().await;
    let triggers = world.pipedream.triggers();
    assert_eq!(triggers.len(), 1, "{triggers:?}");
    let mail = message("18c2", "Invoice");
    world.deliver_signed(&hook_of(&world), Signer::Pipedream(triggers[0].signing_key()), &mail).await.expect(200);
    assert_eq!(world.runs_of(&id).len(), 1);
}

/// After a crash at any write, settling makes both sides agree.
#[tokio::test]
async fn settling_repairs_a_crash_at_any_point() {
    for (action, table) in [
        ("PutItem", "deployed_triggers"),
        ("UpdateItem", "deployed_triggers"),
        ("TransactWriteItems", "hooks"),
        ("DeleteItem", "deployed_triggers"),
    ] {
        let mut world = world().await;
        let id = saved(&world, &invoices(&world, "INBOX")).await;
        let deleting = action == "DeleteItem";
        if deleting {
            post(&world, &id, "activate", &json!({"version": 1})).await.expect(200);
        }
        world.aws.inject(Fault::throttled(action, table).times(1_000));
        let (verb, body) = if deleting { ("pause", Value::Null) } else { ("activate", json!({"version": 1})) };
        // The automation's change stands even if its trigger failed.
        post(&world, &id, verb, &body).await.expect(200);
        assert_eq!(world.aws.rows("intents").len(), 1, "{action} {table}");
        world.aws.clear_faults();
        world.restart();
        world.later();
        world.settle().await;
        if deleting {
            nothing_left(&world);
        } else {
            assert_eq!(world.aws.rows("intents"), [] as [Value; 0], "{action} {table}");
            let triggers = world.pipedream.triggers();
            assert_eq!(triggers.len(), 1, "{action} {table}: {triggers:?}");
            assert_eq!(world.aws.rows("deployed_triggers")[0]["trigger_id"], json!(triggers[0].id));
            assert_eq!(world.aws.rows("hooks")[0]["status"], "active");
        }
    }
}

/// The account with which the only trigger listens.
fn listens_with(world: &World) -> Value {
    let triggers = world.pipedream.triggers();
    let [trigger] = &triggers[..] else { panic!("{triggers:?}") };
    trigger.configured_props["gmail"]["authProvisionId"].clone()
}

async fn of_gmail(world: &World, method: &str, path: &str, body: &Value) -> tests::Answer {
    let path = format!("/api/{}/services/gmail/{path}", world.home.slug);
    let event = Event::new(method, &path).user(&world.home.user_id);
    world.send("discover", &if body.is_null() { event } else { event.text(body.to_string()) }).await
}

#[tokio::test]
async fn a_trigger_listens_with_the_account_that_acts_now() {
    let world = world().await;
    let id = saved(&world, &invoices(&world, "INBOX")).await;
    post(&world, &id, "activate", &json!({"version": 1})).await.expect(200);
    let first = world.pipedream.triggers().remove(0);
    world.pipedream.connect("apn_b", &world.home.organization_id, "gmail");
    of_gmail(&world, "PUT", "account", &json!({"account_id": "apn_gmailh"})).await.expect(200);
    let settle = async || {
        world.later();
        world.settle().await;
        assert_eq!(world.aws.rows("intents"), [] as [Value; 0]);
    };
    settle().await;
    assert_eq!(world.pipedream.triggers(), [first], "the same account is not deployed again");
    of_gmail(&world, "PUT", "account", &json!({"account_id": "apn_b"})).await.expect(200);
    settle().await;
    assert_eq!(listens_with(&world), "apn_b");
    let (hook, key) = (hook_of(&world), world.pipedream.triggers()[0].signing_key().to_owned());
    world.deliver_signed(&hook, Signer::Pipedream(&key), &message("18c2", "Invoice")).await.expect(200);
    assert_eq!(world.runs_of(&id).len(), 1);

    let delete = async |account: &str| {
        let path = format!("/api/{}/services/gmail/connection", world.home.slug);
        let event = Event::new("DELETE", &path).user(&world.home.user_id).query("account", account);
        world.send("discover", &event).await.expect(204);
    };
    delete("apn_b").await;
    settle().await;
    assert_eq!(listens_with(&world), "apn_gmailh");
    delete("apn_gmailh").await;
    // The pause wakes `settle` once more.
    world.later();
    world.settle().await;
    settle().await;
    nothing_left(&world);
    let row = world.aws.rows("automations").remove(0);
    assert_eq!(row["status"], "paused");
    assert!(row["pause_reason"].as_str().unwrap().contains("Gmail is not connected"), "{row}");
}

/// A person connects on Pipedream's page, which sends no request here.
#[tokio::test]
async fn a_trigger_follows_an_account_that_was_connected_by_a_link_and_other_services_leave_it_alone() {
    let world = world().await;
    let id = saved(&world, &invoices(&world, "INBOX")).await;
    post(&world, &id, "activate", &json!({"version": 1})).await.expect(200);
    let path = format!("/api/{}/services/slack/connect", world.home.slug);
    world.send("discover", &Event::new("POST", &path).user(&world.home.user_id)).await.expect(200);
    assert_eq!(world.aws.rows("intents"), [] as [Value; 0], "Slack is another service");
    world.pipedream.expire("apn_gmailh");
    of_gmail(&world, "POST", "connect", &Value::Null).await.expect(200);
    world.pipedream.connect("apn_new", &world.home.organization_id, "gmail");
    world.settle().await;
    assert_eq!(listens_with(&world), "apn_gmailh", "the person may still be on the page");
    world.later();
    world.settle().await;
    assert_eq!(listens_with(&world), "apn_new");
}

#[tokio::test]
async fn without_an_account_nothing_is_activated() {
    let world = World::start().await;
    gmail(&world);
    world.pipedream.expire("apn_gmailh");
    let definition = invoices(&world, "INBOX");
    let id = saved(&world, &definition).await;
    post(&world, &id, "activate", &json!({"version": 1})).await.expect(422);
    nothing_left(&world);
}

/// A new public address, and what `settle` does once every process knows it.
async fn readdress(world: &mut World) {
    NEW_ADDRESS.clone_into(&mut world.options.public_url);
    world.restart();
    world.settle().await;
    world.aws.change("tools", "reissue", json!({"seen_at": "2026-01-01T00:00:00.000Z"}));
    world.settle().await;
}

/// The addresses to which the only trigger posts.
fn addresses(world: &World) -> Vec<String> {
    let triggers = world.pipedream.triggers();
    let [trigger] = &triggers[..] else { panic!("{triggers:?}") };
    trigger.webhooks.iter().map(|webhook| webhook.url.clone()).collect()
}

#[tokio::test]
async fn a_deployed_trigger_follows_a_new_public_address_and_an_event_at_both_runs_once() {
    // A row of an older version does not name the address.
    for is_old_row in [false, true] {
        let mut world = world().await;
        let id = saved(&world, &invoices(&world, "INBOX")).await;
        post(&world, &id, "activate", &json!({"version": 1})).await.expect(200);
        let before = world.pipedream.triggers().remove(0);
        let path = world.hook_path(&hook_of(&world));
        if is_old_row {
            let mut row = world.aws.rows("deployed_triggers").remove(0);
            assert!(row.as_object_mut().unwrap().remove("webhook_url").is_some(), "{row}");
            world.aws.put("deployed_triggers", &row);
        }
        readdress(&mut world).await;
        assert_eq!(addresses(&world), [format!("{NEW_ADDRESS}{path}")], "{is_old_row}");
        let after = world.pipedream.triggers().remove(0);
        assert_eq!(after.id, before.id, "it goes on where it was");
        assert_eq!(world.aws.rows("deployed_triggers")[0]["webhook_url"], after.webhook_url());
        assert_eq!(world.aws.rows("intents"), [] as [Value; 0]);
        let mail = message("18c2", "Invoice 2026-117");
        for key in [before.signing_key(), after.signing_key()] {
            let event = world.signed(&path, Signer::Pipedream(key), &mail);
            world.send("trigger", &event).await.expect(200);
        }
        assert_eq!(world.runs_of(&id).len(), 1);
    }
}

#[tokio::test]
async fn a_trigger_whose_new_key_cannot_be_stored_keeps_its_old_address_until_it_is() {
    let mut world = world().await;
    let id = saved(&world, &invoices(&world, "INBOX")).await;
    post(&world, &id, "activate", &json!({"version": 1})).await.expect(200);
    let before = world.pipedream.triggers().remove(0);
    let path = world.hook_path(&hook_of(&world));
    world.aws.inject(Fault::throttled("TransactWriteItems", "hooks").times(1_000));
    readdress(&mut world).await;
    let new = format!("{NEW_ADDRESS}{path}");
    assert_eq!(addresses(&world), [before.webhook_url(), new.as_str()]);
    let event = world.signed(&path, Signer::Pipedream(before.signing_key()), &message("18c2", "Invoice"));
    world.send("trigger", &event).await.expect(200);
    assert_eq!(world.runs_of(&id).len(), 1);
    world.aws.clear_faults();
    world.restart();
    world.later();
    world.settle().await;
    assert_eq!(addresses(&world), [new]);
    assert_eq!(world.aws.rows("intents"), [] as [Value; 0]);
}

#[tokio::test]
async fn a_trigger_whose_webhooks_are_renewed_with_its_address_is_believed_with_the_newest_key() {
    let mut world = world().await;
    let id = saved(&world, &invoices(&world, "INBOX")).await;
    post(&world, &id, "activate", &json!({"version": 1})).await.expect(200);
    let path = world.hook_path(&hook_of(&world));
    world.pipedream.renew_webhooks();
    readdress(&mut world).await;
    let after = world.pipedream.triggers().remove(0);
    let event = world.signed(&path, Signer::Pipedream(after.signing_key()), &message("18c2", "Invoice"));
    world.send("trigger", &event).await.expect(200);
    assert_eq!(world.runs_of(&id).len(), 1);
}

#[tokio::test]
async fn another_activation_gives_a_trigger_its_new_address_too() {
    let mut world = world().await;
    let id = saved(&world, &invoices(&world, "INBOX")).await;
    post(&world, &id, "activate", &json!({"version": 1})).await.expect(200);
    let path = world.hook_path(&hook_of(&world));
    NEW_ADDRESS.clone_into(&mut world.options.public_url);
    world.restart();
    post(&world, &id, "activate", &json!({"version": 1})).await.expect(200);
    assert_eq!(addresses(&world), [format!("{NEW_ADDRESS}{path}")]);
}

#[tokio::test]
async fn a_trigger_that_pipedream_lost_is_deployed_at_the_new_address() {
    let mut world = world().await;
    let id = saved(&world, &invoices(&world, "INBOX")).await;
    post(&world, &id, "activate", &json!({"version": 1})).await.expect(200);
    world.pipedream.lose_triggers();
    readdress(&mut world).await;
    assert_eq!(world.pipedream.triggers(), []);
    world.later();
    world.settle().await;
    assert!(addresses(&world)[0].starts_with(NEW_ADDRESS));
    let (hook, key) = (hook_of(&world), world.pipedream.triggers()[0].signing_key().to_owned());
    world.deliver_signed(&hook, Signer::Pipedream(&key), &message("18c2", "Invoice")).await.expect(200);
    assert_eq!(world.runs_of(&id).len(), 1);
}

/// The trigger is gone at Pipedream, and Gmail refuses the account.
#[tokio::test]
async fn an_automation_whose_trigger_cannot_move_is_paused_and_its_owners_are_told_once() {
    let owners = Server::start(Router::new().route("/alerts", route(async || StatusCode::NO_CONTENT))).await;
    let variables =
        vec![("ALERT_HOOK_URL", format!("{}/alerts", owners.url)), ("ALERT_SECRET", "switchboard/alerts".to_owned())];
    let open_hosts = vec![owners.address.to_string()];
    let mut world = World::with(Options { variables, open_hosts, ..Options::default() }).await;
    world.aws.put_secret("switchboard/alerts", &json!({"key": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}));
    gmail(&world);
    let id = saved(&world, &invoices(&world, "INBOX")).await;
    post(&world, &id, "activate", &json!({"version": 1})).await.expect(200);
    world.pipedream.lose_triggers();
    world.pipedream.expire("apn_gmailh");
    let (metrics, logs) = (Metrics::capture(), Logs::capture());
    readdress(&mut world).await;
    world.later();
    let report = world.settle().await;
    assert!(
        report["settled"].to_string().contains("an automation was paused, because its trigger was refused"),
        "{report}"
    );
    world.later();
    world.settle().await;
    nothing_left(&world);
    let row = world.aws.rows("automations").remove(0);
    assert_eq!(row["status"], "paused");
    assert!(row["pause_reason"].as_str().unwrap().starts_with("Gmail refuses the account"), "{row}");
    assert!(row.get("paused_by_run").is_none(), "no run caused it: {row}");
    let paused = |line: &Value| line["message"] == "an automation was paused";
    let lines: Vec<Value> = logs.at("WARN").into_iter().filter(paused).collect();
    let told = (metrics.sum("AutomationsPaused"), lines.len(), &lines[0]["automation.id"]);
    assert_eq!(told, (1.0, 1, &json!(id)), "{lines:?}");
    let seen = owners.seen();
    assert_eq!(seen.len(), 1);
    let alert: Value = serde_json::from_str(&seen[0].body).unwrap();
    assert_eq!((&alert["data"]["automation_id"], &alert["data"]["reason"]), (&json!(id), &row["pause_reason"]));
}

#[tokio::test]
async fn events_of_a_definition_that_cannot_be_read_are_recorded() {
    let world = world().await;
    let id = saved(&world, &invoices(&world, "INBOX")).await;
    post(&world, &id, "activate", &json!({"version": 1})).await.expect(200);
    let (hook, key) = (hook_of(&world), world.pipedream.triggers()[0].signing_key().to_owned());
    let version = world.aws.rows("automation_versions").remove(0);
    for (pointer, mail) in [("/actions/0", "18c1"), ("/trigger_config", "18c2")] {
        let mut newer: Value = serde_json::from_str(version["definition"].as_str().unwrap()).unwrap();
        newer.pointer_mut(pointer).unwrap()["newer"] = json!(true);
        let mut row = version.clone();
        row["definition"] = json!(newer.to_string());
        world.aws.put("automation_versions", &row);
        let mail = message(mail, "Invoice 2026-117");
        world.deliver_signed(&hook, Signer::Pipedream(&key), &mail).await.expect(200);
    }
    let events = world.events("").await.expect(200);
    let matched = events["items"].as_array().unwrap().iter().map(|event| event["matched"].as_array().unwrap().len());
    assert_eq!(matched.collect::<Vec<_>>(), [1, 1], "{events}");
}
