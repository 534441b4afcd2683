//! Chats with the planner: a plan in text and function calls must behave alike.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::large_futures,
    reason = "a test says what is wrong and stops"
)]

mod consent;
mod crashes;
mod entry_points;
mod honesty;
mod threads;

use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{
    Options, World, sms_without_call,
    standins::{Fault as Standin, llm::Turn},
};

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is not text"))
}

/// How a model chooses tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Written,
    Functions,
}

pub(crate) const WAYS: [Way; 2] = [Way::Written, Way::Functions];

impl Way {
    pub(crate) async fn world(self) -> World {
        let variables = vec![("PLANNER_FUNCTION_CALLING", (self == Self::Functions).to_string())];
        World::with(Options { variables, ..Options::default() }).await
    }

    /// The model's turn that calls a tool.
    pub(crate) fn call(self, tool: &str, arguments: Value) -> Turn {
        match self {
            Self::Written => {
                Turn::text(&json!({"tool": tool, "reason": "it is asked for", "arguments": arguments}).to_string())
            }
            Self::Functions => Turn::tool(tool, arguments),
        }
    }

    /// The model's turn without a tool.
    pub(crate) fn none(self) -> Turn {
        match self {
            Self::Written => Turn::text(r#"{"tool": "none", "reason": "a greeting", "arguments": {}}"#),
            Self::Functions => Turn::text("No function is needed for a greeting."),
        }
    }
}

/// A lookup tool: `find` with a `query`.
pub(crate) async fn find(world: &World) -> Value {
    let base =
        world.knowledge_base(&json!([]), &json!([{"id": "h1", "text": "The sales of 2024 were 7 million"}])).await;
    world.tool(&json!({"type": "query", "label": "Find", "knowledge_base_id": base["id"]})).await
}

/// A tool with an effect: `send_confirmation` with a `text`.
pub(crate) async fn send(world: &World) -> Value {
    world.tool(&sms_without_call(&world.home)).await
}

pub(crate) fn sent(world: &World) -> usize {
    world.twilio.requests().iter().filter(|request| request.method == "POST").count()
}

/// The messages of a request to the model, each as `role: content`.
pub(crate) fn said(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().unwrap().iter();
    messages.map(|message| format!("{}: {}", text(&message["role"]), text(&message["content"]))).collect()
}

#[tokio::test]
async fn a_question_without_a_tool_is_two_requests_and_one_answer() {
    for way in WAYS {
        let world = way.world().await;
        find(&world).await;
        world.llm.script([way.none(), Turn::text("Hello! How can I help?")]);
        let answer = world.chat("Hi").await.expect(200);
        assert_eq!((&answer["message"], &answer["role"]), (&json!("Hello! How can I help?"), &json!("assistant")));
        assert_eq!((&answer["thread_id"], answer.get("widget")), (&json!("default"), None));
        let metadata = &answer["metadata"];
        let told = (&metadata["conversation_id"], &metadata["iteration_count"], &metadata["current_step"]);
        assert_eq!(told, (&json!("default"), &json!(1), &json!("validate")), "{metadata}");
        assert_eq!(metadata["tools"], json!([]));
        assert!(text(&answer["timestamp"]).ends_with('Z'));

        let asked = world.asked_of_model();
        assert_eq!((asked.len(), world.llm.script_left().len()), (2, 0), "{way:?}");
        // A temperature of zero is sent.
        assert_eq!((&asked[0]["temperature"], &asked[1]["temperature"]), (&json!(0.0), &json!(0.3)));
        assert_eq!(asked[0].get("tools").is_some(), way == Way::Functions, "{way:?}");
        assert_eq!(asked[1].get("tools"), None, "an answer that needs no tool is offered none");
        let described = asked[0].to_string();
        assert!(described.contains("find") && described.contains("query") && described.contains("current_time"));
    }
}

#[tokio::test]
async fn a_tools_description_has_the_time_of_the_turn() {
    for way in WAYS {
        let world = way.world().await;
        let mut config = sms_without_call(&world.home);
        config["description"] = json!("Today is {{now}} in the practice.");
        config["text"]["prompt"] = json!("It is {{now}}");
        world.tool(&config).await;
        world.llm.script([way.none(), Turn::text("Hello!")]);
        world.chat("Hi").await.expect(200);
        let asked = world.asked_of_model()[0].to_string();
        let (before, _) = asked.split_once(" in the practice").unwrap();
        let time = before.rsplit(' ').next().unwrap();
        assert!(time.parse::<Timestamp>().is_ok() && !asked.contains("now }}"), "{way:?}: {asked}");
    }
}

/// However many tools there are, a turn reads no more of them than it could offer, besides the search.
#[tokio::test]
async fn forty_tools_are_all_offered_and_of_more_those_that_fit() {
    for count in [40, 41] {
        let world = Way::Functions.world().await;
        let tool = send(&world).await;
        let row = world.aws.row("tools", text(&tool["id"])).unwrap();
        for number in 1..count {
            let mut row = row.clone();
            row["id"] = json!(uuid::Uuid::now_v7());
            row["name"] = json!(format!("send_{number}"));
            row["function_schema"]["name"] = row["name"].clone();
            row["created_at"] = json!(format!("2026-01-01T00:00:00.{number:03}Z"));
            world.aws.put("tools", &row);
        }
        world.aws.clear_operations();
        world.llm.script([Way::Functions.none(), Turn::text("Hello!")]);
        world.chat("Hi").await.expect(200);
        let offered = world.asked_of_model()[0]["tools"].clone();
        let names = offered.as_array().unwrap().iter().map(|tool| text(&tool["function"]["name"]));
        let own = names.filter(|name| name.starts_with("send_")).count();
        assert_eq!(own, if count == 40 { 40 } else { 0 }, "a greeting fits none of them: {offered}");
        let reads = world.aws.dynamodb().into_iter().filter(|read| read.action == "Query" && read.on == ["tools"]);
        assert_eq!(reads.filter(|read| read.body["Limit"] == 41).count(), 1);
    }
}

#[tokio::test]
async fn a_plan_in_any_clothes_costs_no_more() {
    let plan = r#"{"tool": "find", "reason": "r", "arguments": {"query": "sales"}}"#;
    for (written, called) in [
        (format!("```json\n{plan}\n```"), 1),
        (format!("Here is what I would do:\n\n{plan}\n\nShall I?"), 1),
        (format!("[{plan}]"), 1),
        (
            r#"```json
{"tool": "none"}
```"#
                .to_owned(),
            0,
        ),
        // An unknown tool: the answer says so, without another request for a plan.
        (r#"{"tool": "teleport", "reason": "r", "arguments": {}}"#.to_owned(), 0),
    ] {
        let world = Way::Written.world().await;
        find(&world).await;
        world.llm.script([Turn::text(&written), Turn::text("Here you are.")]);
        let answer = world.chat("What were the sales?").await.expect(200);
        assert_eq!((text(&answer["message"]), world.asked_of_model().len()), ("Here you are.", 2), "{written}");
        let succeeded = json!([{"tool": "find", "outcome": "succeeded"}]);
        let none = if written.contains("teleport") {
            json!([{"tool": "teleport", "outcome": "not_called"}])
        } else {
            json!([])
        };
        assert_eq!(answer["metadata"]["tools"], if called == 1 { succeeded } else { none }, "{written}");
        if written.contains("teleport") {
            let told = said(&world.asked_of_model()[1]).join("\n");
            assert!(told.contains("there is no tool of this name"), "{told}");
        }
    }
}

#[tokio::test]
async fn a_tool_is_chosen_run_and_answered_from() {
    for way in WAYS {
        let world = way.world().await;
        find(&world).await;
        world.llm.script([way.call("find", json!({"query": "sales 2024"})), Turn::text("They were 7 million.")]);
        let answer = world.chat("What were the sales in 2024?").await.expect(200);
        assert_eq!(answer["message"], "They were 7 million.");
        assert_eq!(answer["metadata"]["tools"], json!([{"tool": "find", "outcome": "succeeded"}]), "{way:?}");
        let asked = world.asked_of_model();
        assert_eq!(asked.len(), 2, "{way:?}");
        let last = said(&asked[1]);
        let results = last.iter().find(|message| message.contains("What tools gave for the last message")).unwrap();
        let note = "user: What were the sales in 2024?\n\n<application_note>\nWhat tools gave for the last message";
        assert!(results.starts_with(note) && results.contains("The sales of 2024 were 7 million"), "{results}");
        // The stored state is the same in both ways.
        let item = world.aws.rows("threads").into_iter().find(|item| item["part"] == "m#000002").unwrap();
        let kept: Value = serde_json::from_str(text(&item["tool_results"])).unwrap();
        assert_eq!((&kept[0]["tool"], &kept[0]["arguments"]), (&json!("find"), &json!({"query": "sales 2024"})));
        let execution = &world.aws.rows("executions")[0];
        assert_eq!((&execution["status"], &execution["trigger"]), (&json!("succeeded"), &json!("conversation")));
    }
}

#[tokio::test]
async fn a_question_that_needs_several_tools_gets_them_one_after_the_other() {
    for way in WAYS {
        let world = way.world().await;
        find(&world).await;
        send(&world).await;
        world.llm.script([
            way.call("find", json!({"query": "sales"})),
            way.call("send_confirmation", json!({"text": "The sales were 7 million"})),
            Turn::text("I looked it up and sent the SMS."),
        ]);
        let answer = world.chat("Send Ada the sales of 2024").await.expect(200);
        assert_eq!(answer["message"], "I looked it up and sent the SMS.", "{way:?}");
        let tools = json!([
            {"tool": "find", "outcome": "succeeded"}, {"tool": "send_confirmation", "outcome": "succeeded"},
        ]);
        assert_eq!((&answer["metadata"]["tools"], &answer["metadata"]["iteration_count"]), (&tools, &json!(2)));
        assert_eq!((sent(&world), world.asked_of_model().len()), (1, 3));
    }
}

#[tokio::test]
async fn a_model_that_never_stops_choosing_is_stopped() {
    for way in WAYS {
        let world = way.world().await;
        find(&world).await;
        let again = way.call("find", json!({"query": "more"}));
        // After six choices no tool is offered, and the model's words are the answer.
        let turns = vec![again; 6].into_iter().chain([Turn::text("That is all I found.")]);
        world.llm.script(turns);
        let answer = world.chat("Tell me everything").await.expect(200);
        assert_eq!(answer["message"], "That is all I found.", "{way:?}");
        assert_eq!(answer["metadata"]["iteration_count"], 6);
        assert_eq!(world.asked_of_model()[6].get("tools"), None);
    }
}

#[tokio::test]
async fn wrong_arguments_are_asked_about_once() {
    for way in WAYS {
        let world = way.world().await;
        find(&world).await;
        world.llm.script([
            way.call("find", json!({"question": 7})),
            way.call("find", json!({"query": "sales"})),
            Turn::text("They were 7 million."),
        ]);
        let answer = world.chat("What were the sales?").await.expect(200);
        assert_eq!(answer["metadata"]["tools"], json!([{"tool": "find", "outcome": "succeeded"}]), "{way:?}");
        let repair = said(&world.asked_of_model()[1]).pop().unwrap();
        let note = "user: <application_note>\nThis plan cannot be used. The arguments of find do not fit";
        assert!(repair.starts_with(note), "{repair}");

        // Still wrong: the tool is not called, and the answer gets the reason.
        world.llm.clear_requests();
        world.llm.script([
            way.call("find", json!({})),
            way.call("find", json!({"query": ["x"]})),
            Turn::text("I could not look it up."),
        ]);
        let answer = world.chat("And now?").await.expect(200);
        assert_eq!(answer["metadata"]["tools"], json!([{"tool": "find", "outcome": "not_called"}]), "{way:?}");
        let asked = world.asked_of_model();
        assert_eq!(asked.len(), 3);
        assert!(said(&asked[2]).join("\n").contains("Not called: "), "{asked:?}");
    }
}

#[tokio::test]
async fn a_plan_of_wrong_types_is_asked_about_once_and_then_done_without() {
    for wrong in
        [r#"{"tool": 7}"#, r#"{"tool": "find", "arguments": [1]}"#, "[1, 2]", "I would call find.", "{\"tool\": "]
    {
        let world = Way::Written.world().await;
        find(&world).await;
        world.llm.script([Turn::text(wrong), Turn::text(wrong), Turn::text("I could not use a tool this time.")]);
        let answer = world.chat("What were the sales?").await.expect(200);
        assert_eq!(answer["message"], "I could not use a tool this time.", "{wrong}");
        let asked = world.asked_of_model();
        assert_eq!(asked.len(), 3, "{wrong}");
        assert!(said(&asked[2]).join("\n").contains("No tool was called"), "{wrong}");
    }
}

/// As from a model that spends all its tokens on reasoning.
#[tokio::test]
async fn an_empty_choice_that_was_cut_off_or_filtered_is_asked_about_once() {
    for (way, reason) in WAYS.into_iter().flat_map(|way| ["length", "content_filter"].map(|reason| (way, reason))) {
        let world = way.world().await;
        find(&world).await;
        let empty = Turn { finish_reason: Some(reason.to_owned()), ..Turn::text("") };
        world.llm.script([empty, way.call("find", json!({"query": "sales"})), Turn::text("They were 7 million.")]);
        let answer = world.chat("What were the sales?").await.expect(200);
        assert_eq!(answer["metadata"]["tools"], json!([{"tool": "find", "outcome": "succeeded"}]), "{way:?} {reason}");
        let repair = said(&world.asked_of_model()[1]);
        assert_eq!(repair[repair.len() - 2], "assistant: (no answer)");
        assert!(repair.last().unwrap().contains("Your message is empty"), "{repair:?}");
    }
}

#[tokio::test]
async fn a_tool_that_fails_leads_to_an_answer_that_can_say_so() {
    for way in WAYS {
        let world = way.world().await;
        send(&world).await;
        world.twilio.inject(Standin::status(400));
        world.llm.script([way.call("send_confirmation", json!({"text": "Hi"})), Turn::text("It could not be sent.")]);
        let answer = world.chat("Send Hi").await.expect(200);
        assert_eq!(answer["metadata"]["tools"], json!([{"tool": "send_confirmation", "outcome": "failed"}]), "{way:?}");
        let told = said(&world.asked_of_model()[1]).join("\n");
        assert!(told.contains(r#""outcome":"failed""#), "{told}");
    }
}

#[tokio::test]
async fn the_planner_sees_the_whole_conversation() {
    for way in WAYS {
        let world = way.world().await;
        find(&world).await;
        world.llm.script([way.call("find", json!({"query": "sales 2024"})), Turn::text("7 million.")]);
        world.chat("What were the sales in 2024?").await.expect(200);
        world.llm.clear_requests();
        world.llm.script([way.call("find", json!({"query": "sales 2023"})), Turn::text("I do not know.")]);
        world.chat("And for last year?").await.expect(200);
        let plan = said(&world.asked_of_model()[0]);
        let place = |wanted: &str| {
            plan.iter().position(|message| message.starts_with(wanted)).unwrap_or_else(|| panic!("{plan:#?}"))
        };
        let places =
            ["user: What were the sales in 2024?", "assistant: 7 million.", "user: And for last year?"].map(place);
        assert!(places.is_sorted(), "{plan:#?}");
        assert!(plan.iter().any(|message| message.contains("What tools gave for earlier messages")), "{plan:#?}");
    }
}

#[tokio::test]
async fn a_result_may_be_drawn() {
    let table = json!({"type": "table", "columns": ["year", "sum"], "rows": [[2024, 7]]});
    let service =
        tests::standins::twilio::start("127.0.0.1:0".parse().unwrap(), tests::standins::twilio::Options::default())
            .unwrap();
    service.inject(Standin::body(json!({"widget": table, "sum": 7})).times(9));
    for way in WAYS {
        let options = Options {
            open_hosts: vec![service.address().to_string()],
            variables: vec![("PLANNER_FUNCTION_CALLING", (way == Way::Functions).to_string())],
            ..Options::default()
        };
        let world = World::with(options).await;
        let row = world.tool(&tests::api_request("GET", &service.url)).await;
        let name = text(&row["name"]).replace('-', "_");
        world.llm.script([way.call(&name, json!({})), Turn::text("Here is the table.")]);
        let answer = world.chat("Show me").await.expect(200);
        assert_eq!(answer["widget"], table, "{answer}");
        let shown = world.threads(&world.home.user_id, "GET", "/default").await.expect(200);
        assert_eq!(shown["items"][0]["widget"], table);
    }
}
