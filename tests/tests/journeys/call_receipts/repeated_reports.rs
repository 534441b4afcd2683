//! VAPI repeats a report that met an outage, because the guide gives its server a `backoffPlan`.

use tests::standins::vapi::{self, Outgoing, ServerMessage};

use super::*;

const GUIDE: &str = include_str!("../../../../docs/getting-started.md");

/// The assistant's `server` in the guide.
fn server_of_guide(world: &World, credential: &str) -> Value {
    let (_, after) = GUIDE.split_once("\\\"server\\\": ").unwrap();
    let (server, _) = after.split_once(",\n    \\\"serverMessages").unwrap();
    let server = server.replace("\\\"", "\"").replace("$API", &world.options.public_url);
    serde_json::from_str(&server.replace("$CREDENTIAL", credential)).unwrap()
}

/// VAPI's report of the end of a new call, at an assistant with the server of the guide, and VAPI's id of the call.
async fn report_of_new_call(world: &World) -> (String, Outgoing) {
    let bearer = format!("Bearer {}", world.options.webhook_bearer.as_ref().unwrap());
    world.vapi.put_credential("of-the-guide", "Authorization", &bearer);
    let server = json!({"server": server_of_guide(world, "of-the-guide")});
    world.at_vapi("PATCH", &format!("/assistant/{}", world.home.assistant_id), &server).await;
    let answer = world.send("call-start", &world.incoming(&world.caller(&phone(2)))).await.expect(200);
    let (before, _) = answer.as_str().unwrap().split_once("/transport").unwrap();
    let id = before.rsplit('/').next().unwrap().to_owned();
    let event = vapi::Event::report("customer-ended-call", 0.12);
    let outgoing =
        world.vapi.server_message(&id, &ServerMessage { url: None, ..ServerMessage::new(event, "") }).unwrap();
    assert_eq!(outgoing.url, format!("{}/api/vapi/events", world.options.public_url));
    (id, outgoing)
}

#[tokio::test]
async fn the_end_of_a_call_survives_an_outage_with_the_server_of_the_guide() {
    let (world, ..) = world().await;
    let automation = listener(&world).await;
    let (id, mut outgoing) = report_of_new_call(&world).await;
    let said = json!([{"role": "user", "message": "No. Please do not call me again."}]);
    outgoing.body.as_mut().unwrap()["message"]["artifact"]["messages"] = said;
    world.aws.inject(Fault::new("UpdateItem", "calls", tests::aws::Trouble::Error("InternalServerError")).times(999));
    let mut statuses = Vec::new();
    loop {
        let seconds = if statuses.len() < 2 { 1 } else { 28 };
        let event = Event::post("/api/vapi/events", outgoing.body.as_ref().unwrap());
        let event = event.within(Duration::from_secs(seconds));
        let event = outgoing.headers.iter().fold(event, |event, (name, value)| event.header(name, value));
        statuses.push(world.send("calls", &event).await.status);
        let attempts = u32::try_from(statuses.len()).unwrap();
        let Some(_pause) = outgoing.pause(attempts, statuses.last().copied()) else { break };
        if attempts == 2 {
            world.aws.clear_faults();
        }
    }
    assert!(statuses.len() == 3 && statuses[0] >= 500 && statuses[2] == 200, "{statuses:?}");
    let call = world.aws.row("calls", &id).unwrap();
    assert_ne!(call["ended_at"], Value::Null);
    assert_eq!(call["cost"].as_f64(), Some(0.12));
    assert_eq!(world.aws.rows("do_not_call").len(), 1);
    assert_eq!(world.run_scheduled_within(SOON).await, 0);
    assert_eq!(world.runs_of(&automation).len(), 1);
}

/// A wrong bearer stays wrong.
#[tokio::test]
async fn the_plan_of_the_guide_repeats_outages_alone() {
    let (world, ..) = world().await;
    let (_id, outgoing) = report_of_new_call(&world).await;
    let repeated = |status: Option<u16>| outgoing.pause(1, status).is_some();
    assert!([None, Some(429), Some(500), Some(503), Some(504)].into_iter().all(repeated));
    assert!(![Some(200), Some(400), Some(401)].into_iter().any(repeated));
    let pauses = (1..9).map_while(|attempts| outgoing.pause(attempts, Some(503))).map(|pause| pause.as_secs());
    assert_eq!(pauses.collect::<Vec<_>>(), [2, 4, 8, 16, 32]);
}
