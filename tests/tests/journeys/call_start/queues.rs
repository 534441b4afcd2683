//! Tools of a call's start have a queue of their own, beside that of `async` tools.

use tests::api_request;

use super::*;

#[tokio::test]
async fn a_slow_async_tool_that_holds_its_queues_batches_keeps_no_start_waiting() {
    let crm = crm();
    let world = world(&crm).await;
    lookup(&world, &crm, "customer").await;
    let mut slow = api_request("GET", &format!("{}/slow", crm.url));
    slow["label"] = json!("slow");
    slow["async"] = json!(true);
    let slow = world.attached(&slow).await;
    crm.inject(Fault::held().with_body(json!("late")).on("GET", "/slow"));
    answers(&crm, "customer", &json!("Ana"));

    world.call_tool(&world.call(&slow, json!({}))).await.result();
    assert!(world.aws.messages("start-tools").is_empty());
    let batch = world.aws.receive("executions", 0).unwrap();
    let mut slow = std::pin::pin!(world.run_batch(batch));
    let start = async {
        let call = call_id(&world.send("call-start", &world.incoming(&world.caller(&phone(1)))).await);
        assert!(world.aws.messages("executions").is_empty());
        let batch = world.aws.receive("start-tools", 0).unwrap();
        assert_eq!(world.run_batch(batch).await, 0);
        told(&world, &call)
    };
    let told = tokio::select! {
        _ = &mut slow => panic!("the slow tool is over"),
        told = start => told,
    };
    assert_eq!(told, [format!("{HEADING}\ncustomer: \"Ana\"")]);
    crm.release();
    assert_eq!(slow.await, 0);
    let ran = world.executions().into_iter().find(|run| run["trigger"] == "conversation").unwrap();
    assert_eq!(ran["status"], "succeeded");
}

/// An older version put them there, and so does this one until a deployment has given it the queue.
#[tokio::test]
async fn a_start_on_the_queue_of_async_tools_is_carried_out() {
    let crm = crm();
    let variables = vec![("START_TOOLS_QUEUE_URL", String::new())];
    let open_hosts = vec![crm.address().to_string()];
    let world = World::with(Options { open_hosts, variables, ..Options::default() }).await;
    lookup(&world, &crm, "customer").await;
    let sms = world.attached(&preemptive_sms()).await;
    let call = call_id(&world.send("call-start", &world.incoming(&world.caller(&phone(1)))).await);
    assert_eq!((world.aws.messages("start-tools").len(), world.aws.messages("executions").len()), (0, 3));
    answers(&crm, "customer", &json!("Ana"));
    while let Some(batch) = world.aws.receive("executions", 3) {
        assert_eq!(world.run_batch(batch).await, 0);
    }
    let said = told(&world, &call).join("\n");
    assert!(said.contains("customer: \"Ana\"") && said.contains(sms["label"].as_str().unwrap()), "{said}");
    assert_eq!(world.twilio.messages().len(), 1);
}
