//! Erasures of a number during a call.

use std::time::Duration;

use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{Event, World, phone};

use super::{erase, text, told};

fn kept(erased: &Value) -> [&Value; 3] {
    [&erased["calls_under_way"], &erased["deleted"]["calls"], &erased["complete"]]
}

#[tokio::test]
async fn a_caller_who_opts_out_is_listed_after_erasures_during_the_call_and_before_its_report() {
    let world = World::start().await;
    world.send("call-start", &world.incoming(&world.caller(&phone(1)))).await.expect(200);
    let call = text(&world.aws.rows("calls")[0]["id"]).to_owned();
    for status in ["in-progress", "ended"] {
        told(&world, &call, status).await;
        let first = erase(&world, &phone(1)).await;
        assert_eq!(kept(&first), [&json!([call]), &json!(0), &json!(false)], "{status}: {first}");
    }

    let said = json!({"messages": [{"role": "user", "message": "Please stop calling me."}]});
    let report = json!({"message": {"type": "end-of-call-report", "artifact": said, "call": {"id": call}}});
    let bearer = format!("Bearer {}", world.options.webhook_bearer.clone().unwrap());
    let event = Event::post("/api/vapi/events", &report).header("authorization", &bearer);
    world.send("calls", &event).await.expect(200);
    assert_eq!(world.aws.rows("do_not_call").len(), 1);
    let second = erase(&world, &phone(1)).await;
    assert_eq!(kept(&second), [&json!([]), &json!(1), &json!(true)], "{second}");
    assert_eq!(world.aws.rows("calls"), [] as [Value; 0]);
}

#[tokio::test]
async fn a_call_counts_as_under_way_until_its_report_and_the_end_of_its_transfer_and_for_twelve_hours_at_most() {
    let world = World::start().await;
    let ago = |hours| json!(Timestamp::now().minus(Duration::from_hours(hours)));
    let ended =
        |transfer: Value| json!({"status": "ended", "ended_at": ago(0), "cost_at": ago(0), "transfer": transfer});
    for (row, under_way) in [
        (json!({"status": "queued"}), true),
        (json!({"status": "ringing", "created_at": ago(11)}), true),
        (json!({"status": "ringing", "created_at": ago(13)}), false),
        (json!({"status": "forwarding"}), true),
        (ended(json!({"rung": []})), true),
        (ended(json!({"rung": [], "outcome": "no_answer"})), false),
        (json!({"status": "ended", "ended_at": ago(0)}), true),
        (json!({"status": "ended", "ended_at": ago(1)}), false),
        (json!({"status": "ended"}), false),
    ] {
        world.incoming_call(&world.home, "call-1", &phone(1));
        world.aws.change("calls", "call-1", row.clone());
        let calls = if under_way { json!(["call-1"]) } else { json!([]) };
        for number in [&world.home.phone_number, &phone(1)] {
            let erased = erase(&world, number).await;
            assert_eq!((&erased["calls_under_way"], &erased["complete"]), (&calls, &json!(!under_way)), "{row}");
        }
        assert_eq!(world.aws.row("calls", "call-1").is_some(), under_way, "{row}");
    }
}
