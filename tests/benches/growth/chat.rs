//! The length of a conversation.

use serde_json::json;
use shared::models::{OrganizationId, ThreadId, UserId};
use tests::{World, standins::llm::Turn};

use crate::{
    SMALL,
    curve::{Cost, Expected::Flat, Scenario, measured},
    rows::{PAGE, full, world},
};

pub(crate) const SCENARIOS: &[Scenario] = &[Scenario {
    grows: "messages of a conversation",
    most: 1_000,
    small: SMALL,
    operations: &[("a turn", Flat), ("a page of the messages", Flat)],
    measure: |size| Box::pin(conversation(size)),
}];

async fn conversation(size: usize) -> Vec<Cost> {
    let world = world().await;
    say(&world, "Hello").await;
    lengthen(&world, size);
    // The first turn summarizes a long conversation.
    let turn = measured(&world, async |_| say(&world, "Do you remember?").await).await;
    let page = format!("/long?limit={PAGE}");
    let user = world.home.user_id.clone();
    let page = measured(&world, async |_| full(&world.threads(&user, "GET", &page).await.expect(200))).await;
    vec![turn, page]
}

async fn say(world: &World, message: &str) {
    let plan = r#"{"tool": "none", "reason": "a greeting", "arguments": {}}"#;
    world.llm.script([Turn::text(plan), Turn::text("Hello!")]);
    world.chat_with(&json!({"message": message, "thread_id": "long"})).await.expect(200);
}

/// Gives the conversation `size` messages, all but the last ones summarized, as turns leave it.
fn lengthen(world: &World, size: usize) {
    const VERBATIM: usize = 4;
    let organization: OrganizationId = world.home.organization_id.parse().unwrap();
    let thread = ThreadId::of_name(organization, &UserId::new(&world.home.user_id), "long").to_string();
    let rows = world.aws.rows("threads").into_iter().filter(|row| row["id"] == thread.as_str());
    let (threads, messages): (Vec<_>, Vec<_>) = rows.partition(|row| row["part"] == "thread");
    let [mut thread] = <[_; 1]>::try_from(threads).unwrap();
    for number in 1..=size {
        let role = if number % 2 == 1 { "user" } else { "assistant" };
        let mut message = messages.iter().find(|message| message["role"] == role).unwrap().clone();
        message["part"] = json!(format!("m#{number:06}"));
        message["number"] = json!(number);
        message["turn"] = json!(number.div_ceil(2));
        world.aws.put("threads", &message);
    }
    thread["messages"] = json!(size);
    thread["turns"] = json!(size / 2);
    thread["summary"] =
        json!({"text": "They spoke of many things.", "until": size - VERBATIM, "at": thread["created_at"]});
    world.aws.put("threads", &thread);
}
