//! Settling after crashes between Secrets Manager and the tables.
//!
//! Every function that stores a secret is killed at each step, before and after its effect. At any moment a row or an
//! intent names every secret; after settling, a row does.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::large_futures,
    reason = "a test says what is wrong and stops"
)]

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tests::{Event, Fault, OWN_KEYS, Trouble, World};

const PREFIXES: [&str; 2] = ["switchboard/twilio/", "switchboard/organizations/"];

#[derive(Debug, Clone, Copy)]
enum Change {
    RegisterNumber,
    RenewCredentials,
    /// The same for a handmade row that names a secret of another kind.
    RenewCredentialsByHand,
    RemoveNumber,
    StoreKey,
    ReplaceKey,
    RemoveKey,
    StoreLlmKey,
    CreateTool,
    /// A tool without a counterpart at VAPI.
    CreatePreemptiveTool,
    ReplaceToolsSecret,
    RemoveToolsSecret,
    /// The first edit of a row of an older version.
    MoveToolsSecret,
    DeleteTool,
    CreateHook,
    AddHookSecret,
    RemoveHookSecret,
    DeleteHook,
    /// Notion sends its secret.
    ReceiveHookSecret,
}

fn lookup() -> Value {
    json!({
        "type": "api_request", "label": "Look up", "method": "GET", "url": "https://crm.example.com/",
        "headers": {"X-Api-Key": "s3cret-key", "X-Line": "s3cret-line"},
    })
}

/// Prepares the world for a tool's change; returns function and event.
async fn prepare_tool(world: &World, change: Change) -> (&'static str, Event) {
    let home = &world.home;
    let tools = format!("/api/{}/tools", home.slug);
    let (function, event) = match change {
        Change::CreateTool => ("create-tool", Event::post(&tools, &lookup())),
        Change::CreatePreemptiveTool => {
            let mut tool = lookup();
            (tool["execute_on_call_start"], tool["attach_to_agent"]) = (json!(true), json!(false));
            ("create-tool", Event::post(&tools, &tool))
        }
        _ => {
            let tool = world.attached(&lookup()).await;
            let id = tool["id"].as_str().unwrap();
            if let Change::MoveToolsSecret = change {
                let held = world.aws.row("tools", id).unwrap()["values_secret"].as_str().unwrap().to_owned();
                world.aws.forget_secret(&held);
                let mut config = tool["config_metadata"].clone();
                config["headers"] = json!({"X-Api-Key": {"mode": "fixed", "value": "s3cret-key"}});
                world.aws.change("tools", id, json!({"values_secret": null, "config_metadata": config}));
            }
            let path = format!("{tools}/{id}");
            let change = match change {
                Change::ReplaceToolsSecret => json!({"headers": {"X-Api-Key": "s3cret-new", "X-Line": "[secret]"}}),
                Change::RemoveToolsSecret => json!({"headers": null}),
                _ => json!({"label": "Look somebody up"}),
            };
            ("update-tool", Event::new("PATCH", &path).text(change.to_string()))
        }
    };
    let event = match change {
        Change::DeleteTool => ("delete", Event::new("DELETE", &event.path)),
        _ => (function, event),
    };
    (event.0, event.1.user(&home.user_id))
}

/// Prepares the world for a hook's change; returns function and event.
async fn prepare_hook(world: &World, change: Change) -> (&'static str, Event) {
    let path = format!("/api/{}/hooks", world.home.slug);
    let slack = json!({"service": "Slack", "secret": "first"});
    if let Change::CreateHook = change {
        return ("hooks", Event::post(&path, &slack).user(&world.home.user_id));
    }
    let made =
        world.hook(&if let Change::ReceiveHookSecret = change { json!({"service": "Notion"}) } else { slack }).await;
    if let Change::ReceiveHookSecret = change {
        let token = json!({"verification_token": "secret_of_notion"});
        return ("trigger", Event::post(&world.hook_path(&made), &token));
    }
    let one = format!("{path}/{}", made["id"].as_str().unwrap());
    let patch = |body: Value| Event::new("PATCH", &one).text(body.to_string()).user(&world.home.user_id);
    let event = match change {
        Change::AddHookSecret => patch(json!({"secret": "second"})),
        Change::RemoveHookSecret => {
            world.send("hooks", &patch(json!({"secret": "second"}))).await.expect(200);
            patch(json!({"remove_secret": made["secrets"][0]["id"]}))
        }
        _ => Event::new("DELETE", &one).user(&world.home.user_id),
    };
    ("hooks", event)
}

/// Prepares the world; returns function and event.
fn prepare(world: &World, change: Change) -> (&'static str, Event) {
    let home = &world.home;
    let numbers = format!("/api/{}/phone-numbers", home.slug);
    let (one, key) = (format!("{numbers}/{}", home.phone_number_id), format!("/api/{}/keys/vapi", home.slug));
    let twilio = json!({"account_sid": home.twilio_sid, "auth_token": home.twilio_token});
    let own = |key: &str| json!({"api_key": key}).to_string();
    let (function, event) = match change {
        Change::RegisterNumber => {
            world.aws.delete("phone_numbers", &home.phone_number_id);
            world.aws.delete("phone_numbers", &format!("number#{}", home.phone_number));
            let number =
                json!({"number": home.phone_number, "label": "Main line", "agent_id": home.agent_id, "twilio": twilio});
            ("phone-numbers", Event::post(&numbers, &number))
        }
        Change::RenewCredentials | Change::RenewCredentialsByHand => {
            ("phone-numbers", Event::new("PATCH", &one).text(json!({"twilio": twilio}).to_string()))
        }
        Change::RemoveNumber => ("phone-numbers", Event::new("DELETE", &one)),
        Change::StoreKey => ("keys", Event::new("PUT", &key).text(own(OWN_KEYS[0]))),
        Change::ReplaceKey => ("keys", Event::new("PUT", &key).text(own(OWN_KEYS[1]))),
        Change::RemoveKey => ("keys", Event::new("DELETE", &key)),
        Change::StoreLlmKey => ("keys", Event::new("PUT", &key.replace("/vapi", "/llm")).text(own("sk-1"))),
        _ => panic!("{change:?} is a change of a tool"),
    };
    if let Change::StoreKey | Change::ReplaceKey | Change::RemoveKey = change {
        world.aws.delete("agents", &home.agent_id);
    }
    if let Change::ReplaceKey | Change::RemoveKey = change {
        world.own_key(home, &json!({"api_key": OWN_KEYS[0]}));
    }
    if let Change::RenewCredentialsByHand = change {
        world.aws.put_secret("by-hand", &twilio);
        world.aws.change("phone_numbers", &home.phone_number_id, json!({"credentials_secret": "by-hand"}));
    }
    if let Change::RegisterNumber | Change::RenewCredentialsByHand = change {
        world.aws.forget_secret(&format!("{}{}", PREFIXES[0], home.phone_number_id));
    }
    (function, event.user(&home.user_id))
}

/// The existing secrets under our prefixes.
fn there(world: &World) -> BTreeSet<String> {
    PREFIXES.iter().flat_map(|prefix| world.aws.secret_names(prefix)).collect()
}

/// The secrets in rows.
fn named(world: &World) -> BTreeSet<String> {
    let numbers = world.aws.rows("phone_numbers");
    let numbers = numbers.iter().filter_map(|row| row["credentials_secret"].as_str()).map(str::to_owned);
    let organizations = world.aws.rows("organizations");
    let keys = organizations.iter().flat_map(|row| {
        row["own_keys"].as_object().into_iter().flatten().map(|(service, key)| {
            format!("{}{service}/{}/{}", PREFIXES[1], row["id"].as_str().unwrap(), key["id"].as_str().unwrap())
        })
    });
    let tools = world.aws.rows("tools");
    let tools = tools.iter().filter_map(|row| row["values_secret"].as_str()).map(str::to_owned);
    let hooks = world.aws.rows("hooks");
    let hooks =
        hooks.iter().flat_map(|row| {
            let (organization, hook) = (row["organization_id"].as_str().unwrap(), row["id"].as_str().unwrap());
            row["secrets"].as_array().into_iter().flatten().map(move |secret| {
                format!("{}hooks/{organization}/{hook}/{}", PREFIXES[1], secret["id"].as_str().unwrap())
            })
        });
    numbers
        .chain(keys)
        .chain(tools)
        .chain(hooks)
        .filter(|name| PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
        .collect()
}

/// The secrets in intents.
fn recorded(world: &World) -> BTreeSet<String> {
    world.aws.rows("intents").iter().filter_map(|row| row["secret"].as_str()).map(str::to_owned).collect()
}

/// Runs the function up to the step and kills it there. False if it ended before.
async fn killed(world: &World, function: &str, event: &Event, step: u32, took_effect: bool) -> bool {
    let trouble = if took_effect { Trouble::StallAfter } else { Trouble::StallBefore };
    world.aws.inject(Fault::new("*", "*", trouble).after(step));
    let died = tokio::select! {
        biased;
        () = world.aws.stalled() => true,
        _ = world.send(function, event) => false,
    };
    world.aws.clear_faults();
    if died {
        // Operations in parallel with the fatal step still arrive.
        world.aws.idle().await;
    }
    died
}

/// Kills the change at each of its steps; returns the number of kills, and how many of them left work to settle.
async fn walk(change: Change) -> (u32, u32) {
    let (mut kills, mut left) = (0, 0);
    for took_effect in [false, true] {
        for step in 0.. {
            let world = World::start().await;
            let (function, event) = match change {
                Change::CreateTool
                | Change::CreatePreemptiveTool
                | Change::ReplaceToolsSecret
                | Change::RemoveToolsSecret
                | Change::MoveToolsSecret
                | Change::DeleteTool => prepare_tool(&world, change).await,
                Change::CreateHook
                | Change::AddHookSecret
                | Change::RemoveHookSecret
                | Change::DeleteHook
                | Change::ReceiveHookSecret => prepare_hook(&world, change).await,
                _ => prepare(&world, change),
            };
            if !killed(&world, function, &event, step, took_effect).await {
                assert_eq!(
                    (there(&world), recorded(&world).len()),
                    (named(&world), 0),
                    "{change:?} when nothing kills it"
                );
                break;
            }
            kills += 1;
            let at = format!("{change:?} {step} {took_effect}");
            let known: BTreeSet<String> = named(&world).union(&recorded(&world)).cloned().collect();
            assert!(
                there(&world).is_subset(&known),
                "{at}: a secret that nothing knows of: {:?} {known:?}",
                there(&world)
            );
            assert!(named(&world).is_subset(&there(&world)), "{at}: a row without its secret");
            world.later();
            let report = world.settle().await;
            left += u32::from(report["settled"] != json!([]));
            assert_eq!(report["left"], json!([]), "{at}: {report}");
            assert_eq!((there(&world), recorded(&world).len()), (named(&world), 0), "{at}: {report}");
            // Nothing is left to settle, and the change can be repeated.
            assert_eq!(world.settle().await["settled"], json!([]));
            let again = world.send(function, &event).await;
            assert!(again.status < 500, "{at}: {}", again.body);
            assert_eq!((there(&world), recorded(&world).len()), (named(&world), 0), "{at} and again");
        }
    }
    (kills, left)
}

#[tokio::test]
async fn a_registration_killed_at_any_step_leaves_no_orphan() {
    let (kills, left) = Box::pin(walk(Change::RegisterNumber)).await;
    assert!(kills >= 14 && left >= 4, "{kills} {left}");
}

#[tokio::test]
async fn new_credentials_killed_at_any_step_leave_no_orphan() {
    let (kills, left) = Box::pin(walk(Change::RenewCredentials)).await;
    assert!(kills >= 16 && left >= 7, "{kills} {left}");
    let (kills, left) = Box::pin(walk(Change::RenewCredentialsByHand)).await;
    assert!(kills >= 10 && left >= 4, "{kills} {left}");
}

#[tokio::test]
async fn a_removal_killed_at_any_step_leaves_no_orphan_and_no_number_without_credentials() {
    let (kills, left) = Box::pin(walk(Change::RemoveNumber)).await;
    assert!(kills >= 12 && left >= 3, "{kills} {left}");
}

#[tokio::test]
async fn a_key_killed_at_any_step_leaves_no_orphan() {
    let (kills, left) = Box::pin(walk(Change::StoreKey)).await;
    assert!(kills >= 14 && left >= 4, "{kills} {left}");
}

#[tokio::test]
async fn a_replaced_key_killed_at_any_step_leaves_no_orphan_and_no_organization_without_its_key() {
    let (kills, left) = Box::pin(walk(Change::ReplaceKey)).await;
    assert!(kills >= 18 && left >= 7, "{kills} {left}");
}

#[tokio::test]
async fn a_removed_key_killed_at_any_step_leaves_no_orphan() {
    let (kills, left) = Box::pin(walk(Change::RemoveKey)).await;
    assert!(kills >= 14 && left >= 3, "{kills} {left}");
}

#[tokio::test]
async fn an_llms_key_killed_at_any_step_leaves_no_orphan() {
    let (kills, left) = Box::pin(walk(Change::StoreLlmKey)).await;
    assert!(kills >= 12 && left >= 4, "{kills} {left}");
}

#[tokio::test]
async fn a_tool_with_a_secret_killed_at_any_step_of_its_making_leaves_no_orphan() {
    let (kills, left) = Box::pin(walk(Change::CreateTool)).await;
    assert!(kills >= 14 && left >= 6, "{kills} {left}");
    let (kills, left) = Box::pin(walk(Change::CreatePreemptiveTool)).await;
    assert!(kills >= 10 && left >= 4, "{kills} {left}");
}

#[tokio::test]
async fn a_tools_replaced_secret_killed_at_any_step_leaves_no_orphan_and_no_tool_without_its_secret() {
    let (kills, left) = Box::pin(walk(Change::ReplaceToolsSecret)).await;
    assert!(kills >= 18 && left >= 8, "{kills} {left}");
    let (kills, left) = Box::pin(walk(Change::MoveToolsSecret)).await;
    assert!(kills >= 14 && left >= 6, "{kills} {left}");
}

#[tokio::test]
async fn a_tools_removed_secret_killed_at_any_step_leaves_no_orphan() {
    let (kills, left) = Box::pin(walk(Change::RemoveToolsSecret)).await;
    assert!(kills >= 14 && left >= 5, "{kills} {left}");
    let (kills, left) = Box::pin(walk(Change::DeleteTool)).await;
    assert!(kills >= 14 && left >= 5, "{kills} {left}");
}

#[tokio::test]
async fn a_hooks_secret_killed_at_any_step_leaves_no_orphan_and_no_hook_without_its_secret() {
    for (change, least) in [
        (Change::CreateHook, 3),
        (Change::AddHookSecret, 3),
        (Change::RemoveHookSecret, 2),
        (Change::DeleteHook, 2),
        (Change::ReceiveHookSecret, 3),
    ] {
        let (kills, left) = Box::pin(walk(change)).await;
        assert!(kills >= 8 && left >= least, "{change:?}: {kills} {left}");
    }
}

#[tokio::test]
async fn a_secret_that_is_just_being_stored_is_left_alone() {
    let world = World::start().await;
    let (function, event) = prepare(&world, Change::StoreKey);
    for step in 0.. {
        assert!(killed(&world, function, &event, step, true).await, "it gets as far as the secret");
        if there(&world).iter().any(|name| name.starts_with(PREFIXES[1])) {
            break;
        }
    }
    let before = there(&world);
    assert_eq!(world.settle().await, json!({"settled": [], "left": []}));
    assert_eq!((there(&world), named(&world).len()), (before, 2));
    world.later();
    world.settle().await;
    assert_eq!(there(&world), named(&world));
}

#[tokio::test]
async fn a_secret_that_cannot_be_deleted_stays_on_record() {
    let world = World::start().await;
    let number = uuid::Uuid::now_v7();
    let secret = format!("{}{number}", PREFIXES[0]);
    world.aws.put_secret(&secret, &json!({}));
    world.aws.put(
        "intents",
        &json!({
            "id": uuid::Uuid::now_v7(), "organization_id": world.home.organization_id, "change": "store_secret",
            "secret": secret, "of": {"phone_number": number},
            "created_at": "2026-01-01T00:00:00.000Z", "owner_until": 1,
        }),
    );
    world.aws.inject(Fault::new("DeleteSecret", "*", Trouble::Error("AccessDeniedException")));
    assert_eq!(world.settle().await["left"][0]["change"], "store_secret");
    assert!(world.aws.secret(&secret).is_some());
    world.later();
    assert_eq!(world.settle().await["settled"][0]["outcome"], "the secret was deleted");
    assert!(world.aws.secret(&secret).is_none());
}

/// An intent's secret must match its owner; any other secret is kept.
#[tokio::test]
async fn a_secret_that_is_not_named_as_its_owners_is_never_deleted() {
    let world = World::start().await;
    let (ours, theirs) = (&world.home.organization_id, &world.other.organization_id);
    let [id, other] = [uuid::Uuid::now_v7(), uuid::Uuid::now_v7()];
    let names = [
        (format!("switchboard/organizations/tools/{theirs}/{id}/{other}"), json!({"tool": id})),
        (format!("switchboard/organizations/tools/{ours}/{other}/{id}"), json!({"tool": id})),
        (format!("switchboard/organizations/hooks/{theirs}/{id}/{id}"), json!({"hook": {"hook": id, "id": id}})),
        (format!("switchboard/organizations/llm/{theirs}/{id}"), json!({"own_key": {"service": "llm", "id": id}})),
        (format!("{}{other}", PREFIXES[0]), json!({"phone_number": id})),
        ("switchboard/vapi".to_owned(), json!({"tool": id})),
    ];
    for (secret, of) in &names {
        world.aws.put_secret(secret, &json!({}));
        world.aws.put(
            "intents",
            &json!({
                "id": uuid::Uuid::now_v7(), "organization_id": ours, "change": "store_secret", "secret": secret, "of": of,
                "created_at": "2026-01-01T00:00:00.000Z", "owner_until": 1,
            }),
        );
    }
    let report = world.settle().await;
    assert_eq!(report["left"].as_array().unwrap().len(), names.len(), "{report}");
    for (secret, _) in &names {
        assert!(world.aws.secret(secret).is_some(), "{secret}");
    }
}

/// A row may name its secret by ARN, which ends in six characters beyond the name. Rows of other organizations do not
/// count.
#[tokio::test]
async fn a_row_names_its_secret_by_name_or_arn_and_for_its_own_organization_only() {
    let world = World::start().await;
    let (home, other) = (&world.home, &world.other);
    let name = format!("{}{}", PREFIXES[0], home.phone_number_id);
    let arn = format!("arn:aws:secretsmanager:eu-central-1:123456789012:secret:{name}-AbCdEf");
    let intent =
        |organization: &str, number: &str| {
            world.aws.put("intents", &json!({
            "id": uuid::Uuid::now_v7(), "organization_id": organization, "change": "store_secret", "secret": name,
            "of": {"phone_number": number}, "created_at": "2026-01-01T00:00:00.000Z", "owner_until": 1,
        }));
        };
    for named in [&name, &arn] {
        world.aws.change("phone_numbers", &home.phone_number_id, json!({"credentials_secret": named}));
        intent(&home.organization_id, &home.phone_number_id);
        assert_eq!(world.settle().await["settled"][0]["outcome"], "the secret is in use");
        assert!(world.aws.secret(&name).is_some());
    }
    intent(&other.organization_id, &home.phone_number_id);
    let report: Value = world.settle().await;
    assert_eq!(report["settled"][0]["outcome"], "the secret was deleted", "{report}");
}
