//! Erasures of a number in several requests.

use std::time::Duration;

use serde_json::{Value, json};
use tests::{World, phone, standins::llm::Turn};

use super::{deleted, done, erase, erasure, run_over, text, traces};

#[tokio::test]
async fn an_erasure_that_ran_out_of_time_goes_on_where_it_stopped() {
    let world = World::start().await;
    traces(&world).await;
    world.llm.script(done());
    run_over(&world, "Call +14155550101 back.", &[]).await;
    let body = json!({"phone_number": phone(1)});
    let hurried =
        world.send("erasures", &erasure(&world, &body).within(Duration::from_millis(3_400))).await.expect(200);
    assert_eq!((&hurried["deleted"], &hurried["complete"]), (&deleted([1, 2, 0, 0, 0, 0]), &json!(false)));
    let body = json!({"phone_number": phone(1), "cursor": hurried["next_cursor"]});
    let rest = world.send("erasures", &erasure(&world, &body)).await.expect(200);
    assert_eq!((&rest["deleted"]["runs"], &rest["complete"]), (&json!(1), &json!(true)), "{rest}");
    assert_eq!(rest["next_cursor"], Value::Null);
}

#[tokio::test]
async fn an_erasure_that_found_a_run_under_way_is_not_complete_at_its_last_page() {
    let world = World::start().await;
    let run = world.start_run(&json!({"prompt": format!("Call {}.", phone(1))})).await.expect(202);
    world.llm.script([Turn::text(r#"{"tool": "none"}"#), Turn::text("I see.")]);
    let said = json!({"message": format!("Her number is {}", phone(1)), "thread_id": "about-her"});
    world.chat_with(&said).await.expect(200);
    // A conversation that is being answered stops the erasure after the runs.
    let thread = world.aws.rows("threads").into_iter().find(|row| row["part"] == "thread").unwrap();
    let mut answering = thread.clone();
    answering["lease_token"] = json!("somebody");
    answering["lease_until"] = json!(99_999_999_999_999_i64);
    world.aws.put("threads", &answering);
    let first = erase(&world, &phone(1)).await;
    assert_eq!((&first["runs_under_way"], &first["complete"]), (&json!([run["id"]]), &json!(false)), "{first}");
    world.aws.put("threads", &thread);
    let body = json!({"phone_number": phone(1), "cursor": first["next_cursor"]});
    let last = world.send("erasures", &erasure(&world, &body)).await.expect(200);
    assert_eq!((&last["deleted"]["threads"], &last["next_cursor"]), (&json!(1), &Value::Null), "{last}");
    assert_eq!(last["complete"], json!(false), "the run still has the number: {last}");
    world.cancel_run(text(&run["id"])).await.expect(200);
    let again = erase(&world, &phone(1)).await;
    assert_eq!((&again["deleted"]["runs"], &again["complete"]), (&json!(1), &json!(true)), "{again}");
}
