//! Changes one step of which fails, and changes settled late.

use local::standins;
use serde_json::json;
use tests::{Answer, Event, Fault, Trouble, World, vapi_differences};

use super::{Change, prepare};

/// The failing step and the kind of failure.
#[derive(Debug, Clone, Copy)]
struct Failure {
    at_vapi: bool,
    step: u32,
    how: How,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// Only this step is refused.
    Refused,
    /// The step takes effect, but its answer is lost.
    AnswerLost,
    /// This step and all later ones on its side are refused.
    RefusedFromThenOn,
}

/// Runs the function with the failing step. `None` if it ended before.
async fn failed(
    world: &World,
    function: &str,
    event: &Event,
    Failure { at_vapi, step, how }: Failure,
) -> Option<Answer> {
    let times = if how == How::RefusedFromThenOn { 10_000 } else { 1 };
    world.aws.clear_operations();
    let (reached, answer) = if at_vapi {
        if step > 0 {
            world.vapi.inject(standins::Fault::delay(0).times(step));
        }
        let fault = match how {
            How::AnswerLost => standins::Fault::body(json!("not JSON")).with_effect(standins::Effect::First),
            _ => standins::Fault::status(400),
        };
        let fault = fault.times(times);
        world.vapi.inject(fault.clone());
        let answer = world.send(function, event).await;
        (!world.vapi.faults().contains(&fault), answer)
    } else {
        let fault = match how {
            // All attempts of the SDK.
            How::AnswerLost => Fault::new("*", "*", Trouble::DropAfter).times(3),
            _ => Fault::new("*", "*", Trouble::Error("AccessDeniedException")).times(times),
        };
        world.aws.inject(fault.after(step));
        let answer = world.send(function, event).await;
        (world.aws.operations().len() > step as usize, answer)
    };
    world.vapi.clear_faults();
    world.aws.clear_faults();
    reached.then_some(answer)
}

/// Whether an intent may stay open after a single failed step: it could not be closed, or a lease was acquired
/// without an answer and settling waits for its expiry.
fn may_stay_open(world: &World, failure: Failure) -> bool {
    // Parallel operations may precede the step in the log.
    let sent = world.aws.operations();
    let at = sent.iter().skip(failure.step.saturating_sub(1) as usize).take(3);
    let mut at = at.map(|operation| (operation.action.as_str(), operation.body.to_string()));
    !failure.at_vapi
        && at.any(|(action, body)| match action {
            "DeleteItem" => body.contains("intents"),
            "UpdateItem" => failure.how == How::AnswerLost && body.contains("lease_token"),
            _ => false,
        })
}

/// Makes each step of the change fail. The answer is that step's error unless the change was completed; both sides
/// agree at once, or an intent stays on record and is settled later. Returns the number of failed steps.
async fn fail(change: Change) -> u32 {
    let mut failures = 0;
    for how in [How::Refused, How::AnswerLost, How::RefusedFromThenOn] {
        for at_vapi in [false, true] {
            let mut world = World::start().await;
            for step in 0.. {
                let failure = Failure { at_vapi, step, how };
                let at = format!("{change:?} {failure:?}");
                let (function, event) = prepare(&world, change).await;
                world.restart();
                let Some(answer) = failed(&world, function, &event, failure).await else { break };
                failures += 1;
                let codes: &[&str] = match (at_vapi, how) {
                    (true, _) => &["upstream"],
                    // The SDK repeats an operation that was carried out, whose condition then fails.
                    (false, How::AnswerLost) => &["unavailable", "upstream", "conflict"],
                    (false, _) => &["internal", "unavailable", "upstream"],
                };
                let code = answer.body["code"].as_str().unwrap_or_default();
                assert!(answer.status < 300 || codes.contains(&code), "{at}: {} {}", answer.status, answer.body);
                let differences = vapi_differences::differences(&world);
                let may_stay_open = how == How::RefusedFromThenOn || may_stay_open(&world, failure);
                let on_record = may_stay_open && !world.aws.rows("intents").is_empty();
                assert!(on_record || differences == [""; 0], "{at}: {differences:?} {}", answer.body);
                world.later();
                let report = world.settle().await;
                assert_eq!(report["left"], json!([]), "{at}: {report}");
                assert_eq!(vapi_differences::differences(&world), [""; 0], "{at}: {report}");
            }
        }
    }
    failures
}

#[tokio::test]
async fn a_creation_whose_steps_fail_is_settled_at_once() {
    assert!(Box::pin(fail(Change::Create)).await >= 20);
}

#[tokio::test]
async fn a_preemptive_creation_whose_steps_fail_is_settled_at_once() {
    assert!(Box::pin(fail(Change::CreatePreemptive)).await >= 10);
}

#[tokio::test]
async fn an_attachment_whose_steps_fail_is_settled_at_once() {
    assert!(Box::pin(fail(Change::Attach)).await >= 30);
}

#[tokio::test]
async fn a_preemptive_attachment_whose_steps_fail_is_settled_at_once() {
    assert!(Box::pin(fail(Change::AttachPreemptive)).await >= 15);
}

#[tokio::test]
async fn a_detachment_whose_steps_fail_is_settled_at_once() {
    assert!(Box::pin(fail(Change::Detach)).await >= 30);
}

#[tokio::test]
async fn a_preemptive_detachment_whose_steps_fail_is_settled_at_once() {
    assert!(Box::pin(fail(Change::DetachPreemptive)).await >= 15);
}

#[tokio::test]
async fn an_edit_whose_steps_fail_is_settled_at_once() {
    assert!(Box::pin(fail(Change::Edit)).await >= 25);
}

#[tokio::test]
async fn a_new_name_whose_steps_fail_is_settled_at_once() {
    assert!(Box::pin(fail(Change::Rename)).await >= 25);
}

#[tokio::test]
async fn an_edit_to_preemptive_whose_steps_fail_is_settled_at_once() {
    assert!(Box::pin(fail(Change::ToPreemptive)).await >= 30);
}

#[tokio::test]
async fn an_edit_to_attachable_whose_steps_fail_is_settled_at_once() {
    assert!(Box::pin(fail(Change::ToAttachable)).await >= 30);
}

#[tokio::test]
async fn a_deletion_whose_steps_fail_is_settled_at_once() {
    assert!(Box::pin(fail(Change::Delete)).await >= 35);
}

#[tokio::test]
async fn a_preemptive_deletion_whose_steps_fail_is_settled_at_once() {
    assert!(Box::pin(fail(Change::DeletePreemptive)).await >= 15);
}

#[tokio::test]
async fn a_bases_first_attaching_whose_steps_fail_is_settled_at_once() {
    assert!(Box::pin(fail(Change::AttachBase)).await >= 50);
}

#[tokio::test]
async fn a_bases_second_attaching_whose_steps_fail_is_settled_at_once() {
    assert!(Box::pin(fail(Change::AttachBaseToAnother)).await >= 40);
}

#[tokio::test]
async fn a_bases_last_detaching_whose_steps_fail_is_settled_at_once() {
    assert!(Box::pin(fail(Change::DetachBase)).await >= 50);
}

#[tokio::test]
async fn a_bases_detaching_whose_steps_fail_is_settled_at_once() {
    assert!(Box::pin(fail(Change::DetachBaseOfOne)).await >= 50);
}

#[tokio::test]
async fn an_agents_removal_whose_steps_fail_is_settled_at_once() {
    assert!(Box::pin(fail(Change::RemoveAgent)).await >= 30);
}

/// The transaction that ends a detachment releases the lease: after it, another change may be under way.
#[tokio::test]
async fn a_detachment_that_was_made_is_not_settled_without_its_lease() {
    let world = World::start().await;
    let tool = world.attached(&tests::ai_sms()).await;
    world.vapi.clear_requests();
    world.aws.inject(Fault::new("TransactWriteItems", "agent_tools", Trouble::DropAfter).times(3));
    let answer = world.detach(tool["id"].as_str().unwrap()).await;
    assert_eq!(answer.status, 503, "{}", answer.body);
    let sent: Vec<String> = world.vapi.requests().iter().map(|request| request.method.clone()).collect();
    assert_eq!(sent, ["GET", "PATCH"], "VAPI is left alone afterwards");
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
}

#[tokio::test]
async fn an_old_detachment_does_not_undo_a_later_attachment() {
    let world = World::start().await;
    let tool = world.attached(&tests::ai_sms()).await;
    let id = tool["id"].as_str().unwrap();
    let path = format!("/api/{}/agents/{}/tools/detach", world.home.slug, world.home.agent_id);
    let detach = Event::post(&path, &json!({"tool_id": id})).user(&world.home.user_id);
    world.aws.inject(Fault::new("TransactWriteItems", "agent_tools", Trouble::StallBefore));
    tokio::select! {
        biased;
        () = world.aws.stalled() => {}
        answer = world.send("detach", &detach) => panic!("it was not killed: {}", answer.body),
    }
    world.aws.clear_faults();
    assert_eq!(world.tool_ids(), [""; 0], "it died between VAPI and the row");
    world.later();
    world.attach(id).await.expect(200);
    world.later();
    let report = world.settle().await;
    assert_eq!(report["settled"][0]["outcome"], "the tool was attached again since", "{report}");
    assert_eq!(world.tool_ids(), [tool["external_tool_id"].as_str().unwrap()]);
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
}
