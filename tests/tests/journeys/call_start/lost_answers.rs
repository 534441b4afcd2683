//! Answers of the database that are lost while a call starts.

use super::*;

/// The SDK repeats an update whose answer is lost.
#[tokio::test]
async fn a_lost_answer_of_the_database_tells_the_context_once() {
    for operation in 0..4 {
        let crm = crm();
        let world = world(&crm).await;
        lookup(&world, &crm, "customer").await;
        let call = call_id(&world.send("call-start", &world.incoming(&world.caller(&phone(1)))).await);
        answers(&crm, "customer", &json!({"name": "Ana"}));
        world.aws.inject(tests::Fault::new("UpdateItem", "calls", tests::Trouble::DropAfter).after(operation));
        assert_eq!(world.run_queued().await, 0);
        assert_eq!(told(&world, &call).len(), 1, "update {operation}");
        assert!(world.aws.row("calls", &call).unwrap()["context_injected_at"].is_string(), "update {operation}");
    }
}
