//! Another agent took the call over before it was transferred.

use serde_json::{Value, json};
use tests::{
    World, aws,
    standins::{
        twilio::{Heard, Rings},
        vapi::ToolCall,
    },
};

use super::{Transfer, id_of};

/// The home organization gets the other one's agent.
fn colleague(world: &World) -> String {
    world.aws.change("agents", &world.other.agent_id, json!({"organization_id": world.home.organization_id}));
    world.other.agent_id.clone()
}

/// The first agent hands the call over.
async fn handed(world: World) -> Transfer {
    let transfer = Transfer::in_world(world, &json!({})).await;
    let world = &transfer.world;
    assert!(world.vapi.connect_media(&transfer.id));
    let target = json!({"type": "assistant", "assistantId": world.other.assistant_id});
    let tool = world.attached(&json!({"type": "transfer_call", "label": "Billing", "target": target})).await;
    let asked = ToolCall { call_id: Some(transfer.id.clone()), ..world.call(&tool, json!({})) };
    world.call_tool(&asked).await.result();
    assert_eq!(world.vapi.heard(&transfer.id).last().unwrap()["type"], "handoff");
    transfer
}

/// The call in which the caller is back.
async fn returned(transfer: &Transfer) -> Value {
    transfer.asked().await.result();
    let heard = transfer.follow(&[Rings::NoAnswer]).await;
    let Some(Heard::Streamed(stream)) = heard.last() else { panic!("{heard:?}") };
    transfer.world.aws.row("calls", &id_of(stream)).unwrap()
}

#[tokio::test]
async fn the_caller_returns_to_the_agent_that_took_the_call_over() {
    let world = World::start().await;
    let colleague = colleague(&world);
    let at_vapi = world.vapi.set_number(&world.home.phone_number, &world.home.assistant_id).unwrap();
    world.aws.change("phone_numbers", &world.home.phone_number_id, json!({"vapi_phone_number_id": at_vapi}));
    let transfer = handed(world).await;
    assert_eq!(transfer.row()["handed_to"], json!(colleague));
    assert_eq!(returned(&transfer).await["agent_id"], json!(colleague));
    let created = transfer.world.vapi.requests().into_iter().filter(|request| request.path == "/call");
    let created: Vec<Value> = created.map(|request| request.body["assistantId"].clone()).collect();
    assert_eq!(created, [json!(transfer.world.home.assistant_id), json!(transfer.world.other.assistant_id)]);
}

/// VAPI chooses the assistant of a forwarded call by its number.
#[tokio::test]
async fn a_forwarded_caller_returns_to_the_first_agent_which_did_not_make_the_transfer() {
    let world = World::start().await;
    colleague(&world);
    let transfer = handed(world).await;
    let again = returned(&transfer).await;
    assert_eq!(again["agent_id"], json!(transfer.world.home.agent_id));
    let told = transfer.told(again["id"].as_str().unwrap()).await.join("\n");
    assert!(told.contains("was transferred a moment ago") && !told.contains("You transferred"), "{told}");
}

#[tokio::test]
async fn a_handoff_that_cannot_be_recorded_succeeds() {
    let world = World::start().await;
    colleague(&world);
    world.aws.inject(aws::Fault::new("UpdateItem", "calls", aws::Trouble::Error("AccessDeniedException")));
    let transfer = handed(world).await;
    assert_eq!((transfer.world.aws.faults_left(), transfer.row().get("handed_to")), (0, None));
}
