//! The events that an observer receives during a turn. Streams are made of them.

use std::{
    collections::VecDeque,
    future::ready,
    ops::ControlFlow,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::*;
use crate::{
    Deadline, Result,
    clients::{
        self,
        llm::{Completion, CompletionRequest, Finish, Usage},
    },
    models::{ExecutionOrigin, OrganizationId, Role, ThreadId, ToolEffect, UserId, WaitsFor},
    tool::{CallContext, CallableTool, Conversation, Origin, Parameters, Subject, ToolOutcome, ToolSpec, Toolbox},
};

/// Answers with prepared texts, word by word on request.
struct Scripted(Mutex<VecDeque<&'static str>>);

impl PlannerModel for Scripted {
    async fn answer(
        &self,
        _request: &CompletionRequest<'_>,
        tokens: Option<Tokens<'_>>,
        _deadline: Deadline,
    ) -> Result<Completion, clients::Error> {
        let text = self.0.lock().unwrap().pop_front().expect("the script is not over");
        if let Some(tokens) = tokens {
            for word in text.split_inclusive(' ') {
                tokens(word);
                tokio::task::yield_now().await;
            }
        }
        Ok(Completion {
            text: text.to_owned(),
            tool_calls: Vec::new(),
            finish: Finish::Stop,
            usage: Usage { cost: Some(0.25), ..Usage::default() },
            model: "scripted".to_owned(),
            id: None,
        })
    }
}

struct Look(ToolSpec);

impl CallableTool for Look {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(&'a self, _: Map<String, Value>, _: &'a CallContext<'a>) -> BoxFuture<'a, Result<ToolOutcome>> {
        let list = json!({"widget": {"type": "list", "items": ["one"]}});
        Box::pin(ready(Ok(ToolOutcome::succeeded(list))))
    }
}

#[derive(Default)]
struct Notes {
    told: Vec<String>,
    cost: f64,
    stop_at: Option<&'static str>,
    stop: StopSignal,
}

impl Observer for Notes {
    fn wants_tokens(&self) -> bool {
        true
    }

    fn event(&mut self, event: TurnEvent<'_>) {
        self.told.push(match event {
            TurnEvent::Progress { node, step } => format!("{node} {}", step.as_str()),
            TurnEvent::Token(text) => format!("token {text:?}"),
            TurnEvent::ToolCall { tool, arguments, .. } => format!("call {tool} {}", json!(arguments)),
            TurnEvent::ToolResult { result, .. } => format!("result {}", result.outcome.as_str()),
            TurnEvent::Widget(widget) => format!("widget {}", json!(widget)["type"]),
            TurnEvent::FrontEndCall { tool, arguments, .. } => format!("front end {tool} {}", json!(arguments)),
            TurnEvent::Consent(pending) => format!("consent {}", pending.tool.name),
            TurnEvent::Message(text) => format!("message {text:?}"),
        });
        if self.stop_at.is_some() && self.told.last().map(String::as_str) == self.stop_at {
            self.stop.give();
        }
    }

    async fn spent(&mut self, cost: f64) -> ControlFlow<Stop> {
        self.cost += cost;
        ControlFlow::Continue(())
    }
}

fn look(name: &str) -> Arc<dyn CallableTool> {
    Arc::new(Look(ToolSpec {
        name: name.to_owned(),
        description: "Looks something up.".to_owned(),
        parameters: Parameters::new([("q", json!({"type": "string"}), true)]),
        returns: json!({}),
        own_examples: Vec::new(),
        effect: ToolEffect::None,
        repeatable: true,
    }))
}

async fn turn(script: &[&'static str], mut notes: Notes) -> (TurnEnd, AgentState, Notes) {
    let mut toolbox = Toolbox::default();
    toolbox.offer(look("look"));
    toolbox.offer_from(look("show"), Origin::FrontEnd);
    let user = UserId::new("ada");
    let organization = OrganizationId::generate();
    let no_call = Conversation::default();
    let planner = Planner {
        model: &Scripted(Mutex::new(script.iter().copied().collect())),
        function_calling: false,
        toolbox: &toolbox,
        limits: TurnLimits::default(),
        context: CallContext {
            organization,
            user: Some(&user),
            subject: Subject::Turn { thread: ThreadId::generate(), turn: 1 },
            automation: None,
            delivery: None,
            conversation: &no_call,
            trigger: ExecutionOrigin::Conversation,
            refused: None,
            deadline: Deadline::after(Duration::from_secs(60)),
        },
        turn: 1,
        wait_within: Duration::from_secs(60),
        stop: notes.stop.clone(),
    };
    let who = UserContext { user_id: user.clone(), user_email: None, user_role: Role::Member };
    let mut state = AgentState::new(vec![ChatMessage::user("What is there?")], who);
    let ended = planner.run(&mut state, &mut notes).await.unwrap();
    (ended, state, notes)
}

const LOOK: &str = r#"{"tool": "look", "reason": "r", "arguments": {"q": "x"}}"#;

#[tokio::test]
async fn an_observer_is_told_of_each_step_as_it_happens() {
    let (ended, state, notes) = turn(&[LOOK, LOOK, "There is one."], Notes::default()).await;
    assert_eq!(ended, TurnEnd::Answered("There is one.".to_owned()));
    let looked = ["query_execution execute", r#"call look {"q":"x"}"#, r#"widget "list""#, "result succeeded"];
    let expected: Vec<&str> = ["query_execution plan"]
        .into_iter()
        .chain(looked)
        // It requests the tool again instead of answering; no word of that is shown.
        .chain(["query_execution answer", "query_execution plan"])
        .chain(looked)
        .chain([
            "query_execution answer",
            r#"token "There ""#,
            r#"token "is ""#,
            r#"token "one.""#,
            "validate validate",
            r#"message "There is one.""#,
        ])
        .collect();
    assert_eq!(notes.told, expected);
    assert!((notes.cost - 0.75).abs() < f64::EPSILON && (state.spent.cost - 0.75).abs() < f64::EPSILON);
    assert_eq!((state.iteration, state.current_step, state.messages.len()), (2, TurnStep::Validate, 2));
}

#[tokio::test]
async fn an_answer_that_only_begins_like_a_plan_is_told_whole() {
    let (_, _, notes) = turn(&[r#"{"tool": "none"}"#, "[1] is a list."], Notes::default()).await;
    let tokens = notes.told.iter().filter_map(|told| told.strip_prefix("token \"")?.strip_suffix('"'));
    assert_eq!(tokens.collect::<String>(), "[1] is a list.");
}

#[tokio::test]
async fn a_stopped_turn_lists_its_actions() {
    let stopped = Notes { stop_at: Some("query_execution answer"), ..Notes::default() };
    let (ended, state, notes) = turn(&[LOOK], stopped).await;
    let TurnEnd::BrokenOff(text) = &ended else { panic!("{ended:?}") };
    assert!(text.contains("it was stopped") && text.contains("- look: succeeded"), "{text}");
    assert_eq!(notes.told.last(), Some(&format!("message {text:?}")));
    assert_eq!(state.messages.last(), Some(&ChatMessage::assistant(text)));
}

#[tokio::test]
async fn a_turn_stopped_in_the_middle_of_a_word_keeps_its_text() {
    let stopped = Notes { stop_at: Some(r#"token "is ""#), ..Notes::default() };
    let (ended, state, notes) = turn(&[r#"{"tool": "none"}"#, "There is more than one."], stopped).await;
    assert_eq!(ended, TurnEnd::BrokenOff("There is \n\n(Stopped.)".to_owned()));
    assert!(!notes.told.iter().any(|told| told.contains("more")), "{:?}", notes.told);
    assert_eq!(state.messages.last(), Some(&ChatMessage::assistant(ended.text())));
}

#[tokio::test]
async fn a_tool_of_the_front_end_is_left_to_it() {
    let show = r#"[{"tool": "show", "arguments": {"q": "x"}}, {"tool": "look", "arguments": {"q": "y"}}]"#;
    let (ended, state, notes) = turn(&[show], Notes::default()).await;
    assert_eq!(ended, TurnEnd::Waiting(String::new()));
    let expected = ["query_execution plan", "query_execution execute", r#"front end show {"q":"x"}"#];
    assert_eq!((notes.told, state.messages.len(), state.tool_results.len()), (expected.map(Into::into).into(), 1, 0));
    let pending = state.pending.unwrap();
    assert_eq!((pending.waits_for, pending.tool.name.as_str()), (WaitsFor::FrontEnd, "show"));
    // The calls after it continue later.
    let rest: Vec<&str> = pending.rest.iter().map(|call| call.tool.as_str()).collect();
    assert_eq!(rest, ["look"]);
}
