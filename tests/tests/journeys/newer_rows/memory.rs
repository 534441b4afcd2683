//! Values in memories of automations.

use serde_json::{Value, json};
use tests::{
    World,
    automation::{AMPLE, whole},
};

use super::{CONTENT, extended, text};

/// A value with an attribute of a newer version keeps it; an unreadable value delays the run, which stores nothing.
pub(super) async fn a_remembered_value(world: &World) {
    let write = json!({"id": "mark", "tool": "remember", "parameters": {"key": "k", "value": "{{trigger_data.n}}"}});
    let automation = world.activate(&world.manual(&json!([write]))).await;
    let run = async |name: &str, n: u64| {
        let run = world.start_automation(&automation, name, &json!({"n": n})).await;
        world.run_loop(AMPLE).await;
        whole(world, run.id).await.run
    };
    run("1", 1).await;
    let stored = || -> Value {
        let rows = world.aws.rows("automation_memory");
        rows.into_iter().find(|row| row.get("key").is_some()).unwrap()
    };
    world.aws.put("automation_memory", &extended(stored(), &json!({"newer": CONTENT})));
    run("2", 2).await;
    let row = stored();
    assert_eq!((text(&row["value"]), text(&row["newer"]), &row["version"]), ("2", CONTENT, &json!(2)));

    world.aws.put("automation_memory", &extended(row.clone(), &json!({"value": {"of": CONTENT}})));
    let third = run("3", 3).await;
    assert!(!third.error.unwrap_or_default().contains(CONTENT));
    assert_eq!(stored()["value"]["of"], CONTENT);
}
