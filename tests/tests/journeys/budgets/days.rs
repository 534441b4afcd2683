//! The use of budgets by day.

use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{Answer, Event, World, ai_sms, automation::AMPLE};

use super::{FINISH, costing, start, usage, with_budgets};

async fn asked(world: &World, days: &str) -> Answer {
    let event = Event::get(&format!("/api/{}/usage", world.home.slug)).user(&world.home.user_id);
    world.send("usage", &event.query("days", days)).await
}

async fn days(world: &World, days: &str) -> Vec<Value> {
    asked(world, days).await.expect(200)["days"].as_array().unwrap().clone()
}

fn day_before(days: i64) -> String {
    Timestamp::from_millis(Timestamp::now().as_millis() - days * 86_400_000).day()
}

fn used(runs: Value, executions: Value, own: Value) -> [Value; 3] {
    [runs, executions, own]
}

fn of(day: &Value) -> [Value; 3] {
    ["runs", "executions", "own_cost"].map(|name| day[name].clone())
}

#[tokio::test]
async fn each_day_has_its_runs_executions_and_cost() {
    let world = with_budgets(json!({})).await;
    let nothing = used(Value::Null, Value::Null, Value::Null);
    let before = days(&world, "3").await;
    assert_eq!(
        before.iter().map(|day| day["date"].clone()).collect::<Vec<_>>(),
        [2, 1, 0].map(|ago| json!(day_before(ago)))
    );
    assert!(before.iter().all(|day| of(day) == nothing), "{before:?}");

    let sms = world.attached(&ai_sms()).await;
    for text in ["One", "Two"] {
        world.call_tool(&world.call(&sms, json!({"text": text}))).await.result();
    }
    world.llm.script([costing(0.25, FINISH)]);
    start(&world).await.expect(202);
    world.run_loop(AMPLE).await;
    let today = days(&world, "1").await.remove(0);
    let cost = ["own_cost", "platform_cost"].map(|name| today[name].as_f64().unwrap());
    assert_eq!((&today["runs"], &today["executions"], cost[0] + cost[1]), (&json!(1), &json!(2), 0.25), "{today}");

    // A day without use is zero once anything was counted before it; earlier days are unknown.
    for row in world.aws.rows("usage") {
        world.aws.change("usage", row["id"].as_str().unwrap(), json!({"since": day_before(2)}));
    }
    let known = days(&world, "5").await;
    assert_eq!(known[..2].iter().map(of).collect::<Vec<_>>(), [nothing.clone(), nothing]);
    assert_eq!(
        known[2..4].iter().map(of).collect::<Vec<_>>(),
        [used(json!(0), json!(0), json!(0)), used(json!(0), json!(0), json!(0))]
    );
    assert_eq!(known[4], today);
    assert_eq!(usage(&world).await.get("days"), None);
}

#[tokio::test]
async fn a_number_of_days_beyond_bounds_is_refused() {
    let world = World::start().await;
    for wrong in ["0", "91", "-1", "month"] {
        let refused = asked(&world, wrong).await.expect(422);
        assert_eq!(refused["errors"][0]["field"], "days", "{wrong}");
    }
    assert_eq!(days(&world, "90").await.len(), 90);
}
