//! Runs of automations: items of a loop, and runs in a list.

use std::time::Duration;

use serde_json::{Value, json};
use tests::{
    Options, World,
    automation::whole,
    standins::{Fault, Standin, twilio},
};

use crate::{
    SMALL,
    curve::{
        Cost,
        Expected::{Flat, Linear},
        Scenario, measured, once,
    },
    rows::{PAGE, fill, full},
};

pub(crate) const AMPLE: Duration = Duration::from_secs(3_600);

pub(crate) const LOOP: &str = "items of a loop";

pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario {
        grows: LOOP,
        most: 1_000,
        small: [4, 16],
        operations: &[
            ("a run, each item one call that only reads", Linear("each item is called and its result stored")),
            ("a run, each item one effect", Linear("each item is claimed, carried out and its result stored")),
        ],
        measure: |size| Box::pin(items(size)),
    },
    Scenario {
        grows: "runs in the history",
        most: 1_000,
        small: SMALL,
        operations: &[
            ("a page of all", Flat),
            ("a page of one automation's", Flat),
            ("a run is started by hand", Flat),
        ],
        measure: |size| Box::pin(history(size)),
    },
];

/// A world with a ledger that answers at once, on a thread of its own.
pub(crate) async fn ledger() -> (World, Standin<twilio::Twilio>) {
    let crm = twilio::start("127.0.0.1:0".parse().unwrap(), twilio::Options::default()).unwrap();
    crm.inject(Fault::body(json!({"entered": true})).times(1_000_000));
    let ample = || "1000000000".to_owned();
    let variables = vec![("RUNS_PER_HOUR", ample()), ("EXECUTIONS_PER_HOUR", ample())];
    let open_hosts = vec![crm.address().to_string()];
    let world = World::with(Options { variables, open_hosts, ..Options::default() }).await;
    world.ledger_service(&crm.url);
    (world, crm)
}

async fn items(size: usize) -> Vec<Cost> {
    let (world, _crm) = ledger().await;
    let mut costs = Vec::new();
    for tool in ["ledger_read", "ledger_post"] {
        let each = json!({
            "id": "each", "for_each": "{{trigger_data.rows}}", "as": "row", "key": "{{row.id}}", "max_items": 1_000,
            "actions": [{"id": "enter", "tool": tool, "parameters": {"entry": "{{row.name}}"}}],
        });
        let mut definition = world.manual(&json!([each]));
        definition["quotas"] = json!({"effects_per_run": 1_000});
        let automation = world.activate(&definition).await;
        let rows = |size: usize| -> Value {
            (1..=size).map(|number| json!({"id": number, "name": format!("e{number}")})).collect()
        };
        // What is read once a process is read now.
        world.start_automation(&automation, "first", &json!({"rows": rows(2)})).await;
        assert_eq!(world.run_loop(AMPLE).await, 0);
        let run = world.start_automation(&automation, "measured", &json!({"rows": rows(size)})).await;
        let (cost, failures) = once(&world, world.run_loop(AMPLE)).await;
        let run = whole(&world, run.id).await.run;
        assert_eq!((failures, run.actions_executed, run.error.as_ref()), (0, u32::try_from(size).unwrap(), None));
        costs.push(cost);
    }
    costs
}

async fn history(size: usize) -> Vec<Cost> {
    let (world, _crm) = ledger().await;
    let action = json!({"id": "a", "tool": "ledger_read", "parameters": {"entry": "e"}});
    let automation = world.activate(&world.manual(&json!([action]))).await;
    world.start_automation(&automation, "first", &json!({})).await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let row = world.aws.rows("automation_runs").into_iter().find(|row| row["part"] == "run").unwrap();
    fill(&world, "automation_runs", &row, size, |_| json!({}));
    let all = format!("?limit={PAGE}");
    let all = measured(&world, async |_| full(&world.runs(&all).await.expect(200))).await;
    let own = format!("/{}/runs?limit={PAGE}", automation.id);
    let own = measured(&world, async |_| full(&world.automation("GET", &own, &Value::Null).await.expect(200))).await;
    let by_hand = measured(&world, async |_| {
        let answer = world.run_by_hand(&automation.id.to_string(), &json!({})).await;
        assert!(matches!(answer.status, 201 | 202), "{}", answer.body);
    })
    .await;
    vec![all, own, by_hand]
}
