//! Automations of an organization and their versions, and the events that they listen to.

use serde_json::{Value, json};
use tests::World;
use uuid::Uuid;

use crate::{
    SMALL,
    curve::{
        Cost,
        Expected::{Flat, Linear},
        Scenario, measured, once,
    },
    rows::{PAGE, copy, earlier, full, world},
};

const FILTERS: &str = "each filter is read and evaluated: a request for each megabyte";

pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario {
        grows: "automations of an organization",
        most: 1_000,
        small: SMALL,
        operations: &[
            ("a page of the automations", Flat),
            (
                "an automation is saved",
                Linear("a name that others have is told, so all names are read: a request for each megabyte"),
            ),
            ("an automation is activated", Flat),
        ],
        measure: |size| Box::pin(automations(size)),
    },
    Scenario {
        grows: "versions of an automation",
        most: 1_000,
        small: SMALL,
        operations: &[
            ("a page of the versions", Flat),
            ("a version is activated", Flat),
            (
                "a version is added",
                Linear(
                    "content that an earlier version has is not stored again, so all are read: a request for each megabyte",
                ),
            ),
        ],
        measure: |size| Box::pin(versions(size)),
    },
    Scenario {
        grows: "automations on an event",
        most: 1_000,
        small: SMALL,
        operations: &[("an event for none of them", Linear(FILTERS)), ("an event for one of them", Linear(FILTERS))],
        measure: |size| Box::pin(listening(size)),
    },
    Scenario {
        grows: "automations that an event starts",
        most: 100,
        small: [4, 16],
        operations: &[("the event", Linear("each automation has a run of its own"))],
        measure: |size| Box::pin(started(size)),
    },
];

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is not text"))
}

/// Copies an automation with its versions until there are `size` of them.
fn copied(world: &World, automation: &str, size: usize) {
    let row = world.aws.row("automations", automation).unwrap();
    let of = |version: &Value| version["automation_id"] == automation;
    let versions: Vec<Value> = world.aws.rows("automation_versions").into_iter().filter(of).collect();
    for number in 1..size {
        let named = json!({"name": format!("{} {number}", text(&row["name"]))});
        let row = copy(&row, number, &named);
        for version in &versions {
            let mut version = version.clone();
            version["automation_id"] = row["id"].clone();
            world.aws.put("automation_versions", &version);
        }
        world.aws.put("automations", &row);
    }
}

async fn automations(size: usize) -> Vec<Cost> {
    let world = world().await;
    world.slack_service();
    let mut definition = world.urgent_messages();
    let first = world.active(&definition).await;
    copied(&world, &first, size);
    let page = format!("?limit={PAGE}");
    let page = measured(&world, async |_| full(&world.automation("GET", &page, &Value::Null).await.expect(200))).await;
    let mut saved = Vec::new();
    let save = measured(&world, async |time| {
        definition["name"] = json!(format!("New {time}"));
        let answer = world.deploy(&definition).await.expect(201);
        saved.push(text(&answer["automation"]["id"]).to_owned());
    })
    .await;
    let activate = measured(&world, async |time| {
        world.automation("POST", &format!("/{}/activate", saved[time]), &json!({"version": 1})).await.expect(200);
    })
    .await;
    vec![page, save, activate]
}

async fn versions(size: usize) -> Vec<Cost> {
    let world = world().await;
    world.slack_service();
    let mut definition = world.urgent_messages();
    let automation = world.active(&definition).await;
    let version = world.aws.rows("automation_versions").remove(0);
    for number in 2..=size {
        let hash = format!("{:064x}", Uuid::now_v7().as_u128());
        let changes = json!({"version": number, "content_hash": hash, "created_at": earlier(number)});
        let mut row = copy(&version, number, &changes);
        row.as_object_mut().unwrap().remove("id");
        world.aws.put("automation_versions", &row);
    }
    world.aws.change("automations", &automation, json!({"version": size}));
    let page = format!("/{automation}/versions?limit={PAGE}");
    let page = measured(&world, async |_| full(&world.automation("GET", &page, &Value::Null).await.expect(200))).await;
    let activate = measured(&world, async |time| {
        let version = json!({"version": size - time});
        world.automation("POST", &format!("/{automation}/activate"), &version).await.expect(200);
    })
    .await;
    let add = measured(&world, async |time| {
        definition["description"] = json!(format!("Tells the team, number {time}."));
        let shown = world.automation("GET", &format!("/{automation}"), &Value::Null).await;
        let etag = shown.headers["etag"].clone();
        shown.expect(200);
        world.put_automation(&automation, &etag, &definition).await.expect(200);
    })
    .await;
    vec![page, activate, add]
}

async fn listening(size: usize) -> Vec<Cost> {
    let world = world().await;
    world.slack_service();
    let all = world.active(&world.urgent_messages()).await;
    let mut one = world.urgent_messages();
    one["trigger_config"]["filters"]["value"] = json!("solo");
    let one = world.active(&one).await;
    copied(&world, &all, size);
    let hook = world.slack_hook().await;
    let none = told(&world, &hook, "lunch?").await;
    let alone = told(&world, &hook, "Solo").await;
    assert!(!world.runs_of(&one).is_empty());
    vec![none, alone]
}

/// The cost of an event. A busy machine may take longer for it than a service waits: then another event follows.
async fn told(world: &World, hook: &Value, words: &str) -> Cost {
    for number in 0..8 {
        let id = format!("{words} {number}");
        let (cost, answer) = once(world, world.slack_says(hook, &id, words)).await;
        // The first one reads what is read once a process.
        if number > 0 && answer.status == 200 {
            return cost;
        }
    }
    panic!("no event was taken");
}

async fn started(size: usize) -> Vec<Cost> {
    let world = world().await;
    world.slack_service();
    let all = world.active(&world.urgent_messages()).await;
    copied(&world, &all, size);
    let hook = world.slack_hook().await;
    world.slack_says(&hook, "First", "Urgent: pump 3 leaks").await.expect(200);
    let (event, answer) = once(&world, world.slack_says(&hook, "Measured", "Urgent: pump 4 leaks")).await;
    answer.expect(200);
    let runs = world.aws.rows("automation_runs").iter().filter(|row| row["part"] == "run").count();
    assert_eq!(runs, 2 * size, "two events");
    vec![event]
}
