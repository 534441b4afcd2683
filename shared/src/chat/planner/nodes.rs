//! The nodes of the planner's graph, and their order.

mod ask;
mod execute;

use std::{collections::BTreeSet, fmt::Write as _, time::Duration};

use self::ask::Unanswered;
use super::{
    AgentState, ChatMessage, Observer, PlannerModel, Stop, StopSignal, TurnEvent, TurnStep, answer_text,
    plan::{self, Plan},
    prompt,
};
use crate::{
    Error, Result,
    clients::llm::{Completion, Finish, Message},
    models::{PendingCall, PlannedCall, ToolResult, TurnCall},
    tool::{CallContext, NotBound, Toolbox},
};

const PLAN_TEMPERATURE: f64 = 0.0;
const ANSWER_TEMPERATURE: f64 = 0.3;

const MOST_CALLS: usize = 5;
const TOO_LATE: &str = "Not called: it was asked for where the answer was due, when nothing could be called any more.";

const NO_ANSWER: &str = "I have no answer to this. Please put it in other words.";

/// Limits of a turn. The first one reached ends the turn with one last answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TurnLimits {
    pub iterations: u32,
    pub calls: u32,
    /// Prompt and completion tokens of all requests together.
    pub tokens: u64,
    /// In the gateway's credits.
    pub cost: f64,
}

impl Default for TurnLimits {
    fn default() -> Self {
        Self { iterations: 6, calls: 12, tokens: 200_000, cost: 1.0 }
    }
}

pub struct Planner<'a, M> {
    pub model: &'a M,
    /// Whether the model calls functions itself instead of writing a plan.
    pub function_calling: bool,
    pub toolbox: &'a Toolbox,
    pub limits: TurnLimits,
    /// Its subject is this turn; its deadline is that of the answer.
    pub context: CallContext<'a>,
    pub turn: u32,
    /// How long a waiting call waits for the person or the front end.
    pub wait_within: Duration,
    pub stop: StopSignal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PendingResolution<'a> {
    /// The person consented: exactly this call is carried out.
    Approved,
    Refused,
    /// The front end carried out the call, or reports its failure.
    Gave {
        content: &'a str,
        failed: bool,
    },
}

/// How a turn ended; each with the text for the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnEnd {
    Answered(String),
    /// A call waits for consent, which the text asks for, or for the front end, with an empty text:
    /// [`AgentState::pending`].
    Waiting(String),
    /// The turn was broken off. The text has the words so far and the calls made.
    BrokenOff(String),
}

impl TurnEnd {
    pub fn text(&self) -> &str {
        match self {
            Self::Answered(text) | Self::Waiting(text) | Self::BrokenOff(text) => text,
        }
    }
}

struct Turn<'p, 'a, 's, M, O> {
    planner: &'p Planner<'a, M>,
    state: &'s mut AgentState,
    observer: &'s mut O,
    repaired: bool,
    calls: u32,
    unconfirmed: BTreeSet<String>,
    planned_before: Vec<PlannedCall>,
    said: String,
    stop: Option<Stop>,
}

enum Said {
    Answer(String),
    Plan(Plan),
}

impl<'a, M: PlannerModel> Planner<'a, M> {
    /// Answers the last message of `state` and appends the answer.
    ///
    /// # Errors
    /// When the model cannot be asked and nothing has been done: the same message may be sent again.
    pub async fn run<O: Observer>(&self, state: &mut AgentState, observer: &mut O) -> Result<TurnEnd> {
        let mut turn = self.begin(state, observer);
        let ended = async {
            let plan = turn.plan().await?;
            query_execution_node(&mut turn, plan).await
        };
        let ended = ended.await;
        turn.over(ended)
    }

    /// Continues a turn that broke off ([`AgentState::go_on`]): carries out the rest of its plan, then answers.
    ///
    /// # Errors
    /// As [`Planner::run`].
    pub async fn go_on<O: Observer>(&self, state: &mut AgentState, observer: &mut O) -> Result<TurnEnd> {
        let mut turn = self.begin(state, observer);
        let unknown =
            turn.state.tool_results.iter().filter(|call| call.effect && call.outcome == TurnCall::Unconfirmed);
        turn.unconfirmed = unknown.map(|call| call.tool.clone()).collect();
        let calls = std::mem::take(&mut turn.state.rest);
        turn.planned_before.clone_from(&calls);
        let ended = query_execution_node(&mut turn, Plan { calls }).await;
        turn.over(ended)
    }

    /// Continues after a waiting call was decided. With consent exactly that call is carried out, once.
    ///
    /// # Errors
    /// As [`Planner::run`].
    pub async fn resume<O: Observer>(
        &self,
        pending: &PendingCall,
        decided: PendingResolution<'_>,
        state: &mut AgentState,
        observer: &mut O,
    ) -> Result<TurnEnd> {
        let mut turn = self.begin(state, observer);
        let ended = async {
            turn.step(TurnStep::Execute);
            let calls = turn.decided(pending, decided).await?;
            query_execution_node(&mut turn, Plan { calls }).await
        };
        let ended = ended.await;
        turn.over(ended)
    }

    fn begin<'p, 's, O>(&'p self, state: &'s mut AgentState, observer: &'s mut O) -> Turn<'p, 'a, 's, M, O> {
        let made = |call: &&ToolResult| !matches!(call.outcome, TurnCall::NotCalled | TurnCall::Refused);
        let calls = u32::try_from(state.tool_results.iter().filter(made).count()).unwrap_or(u32::MAX);
        Turn {
            planner: self,
            state,
            observer,
            repaired: false,
            calls,
            unconfirmed: BTreeSet::new(),
            planned_before: Vec::new(),
            said: String::new(),
            stop: None,
        }
    }
}

/// Carries out the chosen tools and answers, until the answer requests no further tool.
async fn query_execution_node<M: PlannerModel, O: Observer>(
    turn: &mut Turn<'_, '_, '_, M, O>,
    mut plan: Plan,
) -> Result<TurnEnd, Unanswered> {
    loop {
        if !plan.calls.is_empty()
            && let Some(question) = turn.execute(plan).await?
        {
            return Ok(turn.wait(question));
        }
        match turn.answer().await? {
            Said::Answer(text) => return Ok(validate_node(turn, text)),
            Said::Plan(next) => plan = next,
        }
    }
}

fn validate_node<M: PlannerModel, O: Observer>(turn: &mut Turn<'_, '_, '_, M, O>, text: String) -> TurnEnd {
    turn.step(TurnStep::Validate);
    turn.observer.event(TurnEvent::Message(&text));
    TurnEnd::Answered(text)
}

impl<M: PlannerModel, O: Observer> Turn<'_, '_, '_, M, O> {
    fn step(&mut self, step: TurnStep) {
        self.state.current_step = step;
        self.observer.event(TurnEvent::Progress { node: step.node(), step });
    }

    async fn plan(&mut self) -> Result<Plan, Unanswered> {
        self.step(TurnStep::Plan);
        self.state.iteration += 1;
        let planner = self.planner;
        let messages = prompt::planning(self.state, planner.toolbox, planner.function_calling);
        let tools = self.functions(true);
        let completion = self.ask(&messages, PLAN_TEMPERATURE, &tools, false).await?;
        self.usable(self.read(&completion), &completion, messages).await
    }

    fn functions(&self, may_call: bool) -> Vec<serde_json::Value> {
        let native = may_call && self.planner.function_calling;
        if native { prompt::functions(self.planner.toolbox) } else { Vec::new() }
    }

    fn read(&self, completion: &Completion) -> Result<Plan, String> {
        let broken_off = matches!(completion.finish, Finish::Length | Finish::ContentFilter);
        if broken_off && completion.tool_calls.is_empty() && completion.text.trim().is_empty() {
            return Err("Your message is empty: it was cut off or filtered.".to_owned());
        }
        if self.planner.function_calling && !completion.tool_calls.is_empty() {
            return plan::of_functions(completion);
        }
        if self.planner.function_calling {
            // Beside its calls such a model sometimes writes a plan too; it is ignored.
            let answer_text::Read { text, plans } = answer_text::read(&completion.text);
            return if text.is_empty() { plan::of_values(&plans) } else { Ok(Plan::default()) };
        }
        plan::read(&completion.text, |name| self.is_offered(name))
    }

    fn is_offered(&self, name: &str) -> bool {
        self.planner.toolbox.get(name).is_some()
    }

    /// Asks the model once per turn to correct a plan that cannot be read or whose arguments do not fit.
    async fn usable(
        &mut self,
        plan: Result<Plan, String>,
        completion: &Completion,
        mut messages: Vec<Message>,
    ) -> Result<Plan, Unanswered> {
        let problem = match &plan {
            Err(problem) => Some(problem.clone()),
            Ok(plan) => self.too_much(plan).or_else(|| self.wrong_arguments(plan)),
        };
        let Some(problem) = problem else { return Ok(plan.unwrap_or_default()) };
        if self.repaired {
            return Ok(self.as_it_is(plan));
        }
        self.repaired = true;
        messages.push(Message::assistant(as_text(completion)));
        messages.push(prompt::repair(&problem, self.planner.function_calling));
        let tools = self.functions(true);
        let second = self.ask(&messages, PLAN_TEMPERATURE, &tools, false).await?;
        let plan = self.read(&second);
        Ok(self.as_it_is(plan))
    }

    /// Accepts a plan as it is; the answer reports its mistakes.
    fn as_it_is(&mut self, plan: Result<Plan, String>) -> Plan {
        if let Ok(plan) = &plan
            && let Some(problem) = self.too_much(plan)
        {
            self.leave(plan.calls.clone(), &format!("Not called: {problem}"));
            return Plan::default();
        }
        plan.unwrap_or_else(|problem| {
            self.state.problems.push(format!(
                "No tool was called: the choice of a tool could not be read ({problem}). Answer from the conversation alone, and if \
                 a tool would have been needed, say that it could not be used this time."
            ));
            Plan::default()
        })
    }

    /// Why a plan exceeds the number of calls. None of its calls is made then.
    fn too_much(&self, plan: &Plan) -> Option<String> {
        let (calls, left) = (plan.calls.len(), self.planner.limits.calls.saturating_sub(self.calls));
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        if calls <= MOST_CALLS.min(left) {
            return None;
        }
        let limit = if left < MOST_CALLS {
            format!("this turn has {left} calls left")
        } else {
            format!("a plan may have {MOST_CALLS}; you are asked again for the others")
        };
        Some(format!("The plan has {calls} calls, and {limit}. None of them was made."))
    }

    /// The mistake in the first call whose arguments do not fit. An unknown tool is not corrected: the answer reports
    /// it.
    fn wrong_arguments(&self, plan: &Plan) -> Option<String> {
        let toolbox = self.planner.toolbox;
        plan.calls.iter().find_map(|call| match toolbox.check(&call.tool, &call.arguments) {
            Err(NotBound::Invalid(sentence)) => Some(format!("The arguments of {} do not fit: {sentence}", call.tool)),
            _ => None,
        })
    }

    fn answering(&self, more: bool) -> Vec<Message> {
        prompt::answering(self.state, self.planner.toolbox, more, self.planner.function_calling)
    }

    /// Asks for the answer. It may request another tool after a call, while the limits allow one.
    async fn answer(&mut self) -> Result<Said, Unanswered> {
        self.step(TurnStep::Answer);
        self.said.clear();
        let more = self.may_call_more();
        let messages = self.answering(more);
        let tools = self.functions(more);
        let completion = self.ask(&messages, ANSWER_TEMPERATURE, &tools, true).await?;
        let (text, asked) = self.meant(&completion);
        match asked {
            // The model may still request a tool, unless the person has just refused a call.
            Some(plan)
                if text.is_empty() && (more || (self.is_within_limits() && self.state.tool_results.is_empty())) =>
            {
                self.step(TurnStep::Plan);
                self.state.iteration += 1;
                Ok(Said::Plan(self.usable(plan, &completion, messages).await?))
            }
            asked => self.last_answer(text, asked, &completion, messages).await.map(Said::Answer),
        }
    }

    /// Separates a model's answer from its requests for tools. Every answer passes through here.
    fn meant(&mut self, completion: &Completion) -> (String, Option<Result<Plan, String>>) {
        self.state.cut = completion.finish == Finish::Length;
        let answer_text::Read { text, plans } = answer_text::read(&completion.text);
        if !completion.tool_calls.is_empty() {
            return (String::new(), Some(plan::of_functions(completion)));
        }
        let asked = (!plans.is_empty()).then(|| plan::of_values(&plans));
        // "None" is neither a call nor an answer.
        (text, asked)
    }

    /// Asks for an answer without calls. Requested calls are noted; a reply that only requests calls is asked once
    /// more for words.
    async fn last_answer(
        &mut self,
        text: String,
        asked: Option<Result<Plan, String>>,
        completion: &Completion,
        mut messages: Vec<Message>,
    ) -> Result<String, Unanswered> {
        let Some(asked) = asked else { return Ok(or_nothing(text)) };
        self.leave(asked.unwrap_or_default().calls, TOO_LATE);
        if !text.is_empty() || !self.may_spend() {
            return Ok(or_nothing(text));
        }
        messages.push(Message::assistant(as_text(completion)));
        messages.push(prompt::in_words());
        self.said.clear();
        let second = self.ask(&messages, ANSWER_TEMPERATURE, &[], true).await?;
        Ok(or_nothing(self.meant(&second).0))
    }

    fn may_call_more(&self) -> bool {
        self.state.tool_results.iter().any(|result| result.outcome != TurnCall::Refused) && self.is_within_limits()
    }

    fn is_within_limits(&self) -> bool {
        let limits = self.planner.limits;
        self.state.iteration < limits.iterations && self.calls < limits.calls && self.may_spend()
    }

    fn may_spend(&self) -> bool {
        let (limits, spent) = (self.planner.limits, &self.state.spent);
        spent.tokens() < limits.tokens && spent.cost < limits.cost
    }

    /// Writes the end into the state. After a failure the text tells the calls already made; the person could not know
    /// them otherwise.
    fn over(mut self, ended: Result<TurnEnd, Unanswered>) -> Result<TurnEnd> {
        let ended = match ended {
            Ok(ended) => ended,
            Err(Unanswered::Stopped(Stop::Requested)) if !self.said.trim().is_empty() => {
                let mut text = std::mem::take(&mut self.said);
                text.push_str("\n\n(Stopped.)");
                self.list_calls(&mut text);
                self.observer.event(TurnEvent::Message(&text));
                TurnEnd::BrokenOff(text)
            }
            Err(unanswered) => {
                let acted = self.state.tool_results.iter().any(ToolResult::acted);
                let why = match unanswered {
                    Unanswered::Stopped(Stop::Requested) => "it was stopped".to_owned(),
                    Unanswered::Stopped(Stop::OverBudget(over)) if !acted => return Err(over.into()),
                    Unanswered::Stopped(Stop::OverBudget(over)) => over.to_string(),
                    Unanswered::Failed(error) if !acted => return Err(error),
                    Unanswered::Failed(error) => {
                        tracing::warn!("a turn was interrupted: {}", crate::error::chain(&error));
                        error.to_string()
                    }
                };
                let text = self.report(&why);
                self.observer.event(TurnEvent::Message(&text));
                TurnEnd::BrokenOff(text)
            }
        };
        if !ended.text().is_empty() {
            self.state.messages.push(ChatMessage::assistant(ended.text()));
        }
        Ok(ended)
    }

    fn report(&self, why: &str) -> String {
        let mut text = self.said.clone();
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        // Writing to a string cannot fail.
        let _ = write!(text, "I could not finish this answer: {why}.");
        self.list_calls(&mut text);
        text
    }

    fn list_calls(&self, text: &mut String) {
        for result in &self.state.tool_results {
            let _ = write!(text, "\n- {}: {}", result.tool, result.outcome.as_str());
        }
        if !self.state.tool_results.is_empty() {
            text.push_str("\nNothing else was done.");
        }
    }
}

fn or_nothing(text: String) -> String {
    if text.is_empty() { NO_ANSWER.to_owned() } else { text }
}

/// A model's reply as text for the conversation with it; function calls become a plan.
fn as_text(completion: &Completion) -> String {
    if completion.tool_calls.is_empty() {
        return completion.text.clone();
    }
    let calls = completion.tool_calls.iter().map(|call| format!("{}({})", call.name, call.arguments));
    calls.collect::<Vec<_>>().join("\n")
}

impl From<Error> for Unanswered {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}
