//! The nodes of the graph, and the way through them.

mod ask;
mod execute;

use std::{collections::BTreeSet, fmt::Write as _, time::Duration};

use self::ask::Unanswered;
use super::{
    AgentState, ChatMessage, Event, Observer, PlannerModel, Step, Stop, StopSignal, answer_text,
    plan::{self, Plan},
    prompt,
};
use crate::{
    Error, Result,
    clients::llm::{Completion, Finish, Message},
    models::{PendingCall, PlannedCall, ToolResult, TurnCall},
    tool::{CallContext, NotBound, Toolbox},
};

/// How freely the model writes when it chooses tools, and when it answers.
const PLAN_TEMPERATURE: f64 = 0.0;
const ANSWER_TEMPERATURE: f64 = 0.3;

/// Calls of one plan.
const MOST_CALLS: usize = 5;
/// What is said of a call that was asked for when it was time to answer.
const TOO_LATE: &str = "Not called: it was asked for where the answer was due, when nothing could be called any more.";

/// What is left for a person to read where the model said nothing.
const NO_ANSWER: &str = "I have no answer to this. Please put it in other words.";

/// What a turn may use. Whichever is reached first ends it with one last answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TurnLimits {
    /// How often tools may be chosen.
    pub iterations: u32,
    /// Calls of tools.
    pub calls: u32,
    /// Prompt and completion, of all requests together.
    pub tokens: u64,
    /// In the gateway's credits.
    pub cost: f64,
}

impl Default for TurnLimits {
    fn default() -> Self {
        Self { iterations: 6, calls: 12, tokens: 200_000, cost: 1.0 }
    }
}

/// What answers turns.
pub struct Planner<'a, M> {
    pub model: &'a M,
    /// Whether the model calls functions by itself, in place of writing a plan.
    pub function_calling: bool,
    pub toolbox: &'a Toolbox,
    pub limits: TurnLimits,
    /// Its subject is this turn; its deadline is when the answer must be there.
    pub context: CallContext<'a>,
    /// The turn, counted from 1 in its thread.
    pub turn: u32,
    /// How long a person, or the front end, may take when a call waits.
    pub wait_within: Duration,
    /// Ends the turn before its time.
    pub stop: StopSignal,
}

/// What has become of a call that waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decided<'a> {
    /// The person consented: exactly this call is carried out.
    Approved,
    Refused,
    /// The front end carried it out, or says that it failed.
    Gave {
        content: &'a str,
        failed: bool,
    },
}

/// How a turn ended; each has the text for the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    Answered(String),
    /// A call waits for consent, which the text asks for, or for the front end: [`AgentState::pending`]. Then there is no text.
    Waiting(String),
    /// It was broken off. The text is what had been said, and what had been done.
    BrokenOff(String),
}

impl Ended {
    pub fn text(&self) -> &str {
        match self {
            Self::Answered(text) | Self::Waiting(text) | Self::BrokenOff(text) => text,
        }
    }
}

/// A turn on its way.
struct Turn<'p, 'a, 's, M, O> {
    planner: &'p Planner<'a, M>,
    state: &'s mut AgentState,
    observer: &'s mut O,
    /// The plan has been asked about once.
    repaired: bool,
    /// Calls that were made.
    calls: u32,
    /// Tools of which, when this turn broke off, nobody knew whether they had acted.
    unconfirmed: BTreeSet<String>,
    /// Calls that it had planned by then.
    planned_before: Vec<PlannedCall>,
    /// What the person has read of the answer so far.
    said: String,
    /// Why the model is not asked again.
    stop: Option<Stop>,
}

/// What came of a request for an answer.
enum Said {
    Answer(String),
    /// Another tool first.
    Plan(Plan),
}

impl<'a, M: PlannerModel> Planner<'a, M> {
    /// Answers the last message of `state`, which then ends with the answer.
    ///
    /// # Errors
    /// If the model cannot be asked, and nothing has been done yet: the same message may be sent again.
    pub async fn run<O: Observer>(&self, state: &mut AgentState, observer: &mut O) -> Result<Ended> {
        let mut turn = self.begin(state, observer);
        let ended = async {
            let plan = turn.plan().await?;
            query_execution_node(&mut turn, plan).await
        };
        let ended = ended.await;
        turn.over(ended)
    }

    /// Goes on where a turn broke off ([`AgentState::go_on`]): with what is left of its plan, and then with an answer.
    ///
    /// # Errors
    /// As [`Planner::run`].
    pub async fn go_on<O: Observer>(&self, state: &mut AgentState, observer: &mut O) -> Result<Ended> {
        let mut turn = self.begin(state, observer);
        let unknown =
            turn.state.tool_results.iter().filter(|call| call.effect && call.outcome == TurnCall::Unconfirmed);
        turn.unconfirmed = unknown.map(|call| call.tool.clone()).collect();
        let calls = std::mem::take(&mut turn.state.rest);
        turn.planned_before.clone_from(&calls);
        let ended = query_execution_node(&mut turn, Plan { calls }).await;
        turn.over(ended)
    }

    /// Goes on where a call waited: with consent, exactly that call is carried out, once.
    ///
    /// # Errors
    /// As [`Planner::run`].
    pub async fn resume<O: Observer>(
        &self,
        pending: &PendingCall,
        decided: Decided<'_>,
        state: &mut AgentState,
        observer: &mut O,
    ) -> Result<Ended> {
        let mut turn = self.begin(state, observer);
        let ended = async {
            turn.step(Step::Execute);
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

/// Runs the tools that were chosen and answers, until the answer asks for no further tool.
async fn query_execution_node<M: PlannerModel, O: Observer>(
    turn: &mut Turn<'_, '_, '_, M, O>,
    mut plan: Plan,
) -> Result<Ended, Unanswered> {
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

/// Tells the answer.
fn validate_node<M: PlannerModel, O: Observer>(turn: &mut Turn<'_, '_, '_, M, O>, text: String) -> Ended {
    turn.step(Step::Validate);
    turn.observer.event(Event::Message(&text));
    Ended::Answered(text)
}

impl<M: PlannerModel, O: Observer> Turn<'_, '_, '_, M, O> {
    fn step(&mut self, step: Step) {
        self.state.current_step = step;
        self.observer.event(Event::Progress { node: step.node(), step });
    }

    /// Asks which tools are needed.
    async fn plan(&mut self) -> Result<Plan, Unanswered> {
        self.step(Step::Plan);
        self.state.iteration += 1;
        let planner = self.planner;
        let messages = prompt::planning(self.state, planner.toolbox, planner.function_calling);
        let tools = self.functions(true);
        let completion = self.ask(&messages, PLAN_TEMPERATURE, &tools, false).await?;
        self.usable(self.read(&completion), &completion, messages).await
    }

    /// The functions that a model which calls them by itself is offered.
    fn functions(&self, may_call: bool) -> Vec<serde_json::Value> {
        let native = may_call && self.planner.function_calling;
        if native { prompt::functions(self.planner.toolbox) } else { Vec::new() }
    }

    fn read(&self, completion: &Completion) -> Result<Plan, String> {
        if self.planner.function_calling && !completion.tool_calls.is_empty() {
            return plan::of_functions(completion);
        }
        if self.planner.function_calling {
            // What it says beside its calls is no plan: some write one all the same.
            let answer_text::Read { text, plans } = answer_text::read(&completion.text);
            return if text.is_empty() { plan::of_values(&plans) } else { Ok(Plan::default()) };
        }
        plan::read(&completion.text, |name| self.is_offered(name))
    }

    fn is_offered(&self, name: &str) -> bool {
        self.planner.toolbox.get(name).is_some()
    }

    /// A plan that can be carried out: what cannot be read, or has arguments that do not fit, is asked about once in a turn.
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

    /// A plan that is not asked about any more: what is wrong with it is said in the answer.
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

    /// Why a plan has more calls than can be made: then none of them is.
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

    /// What is wrong with the arguments of the first call that does not fit. That there is no such tool is no mistake to be
    /// asked about: the answer says it.
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

    /// Asks for the answer, which may ask for another tool where one has been called and there is room for more.
    async fn answer(&mut self) -> Result<Said, Unanswered> {
        self.step(Step::Answer);
        self.said.clear();
        let more = self.may_call_more();
        let messages = self.answering(more);
        let tools = self.functions(more);
        let completion = self.ask(&messages, ANSWER_TEMPERATURE, &tools, true).await?;
        let (text, asked) = self.meant(&completion);
        match asked {
            // One that needs a tool after all may have it, unless the person has just said no.
            Some(plan)
                if text.is_empty() && (more || (self.is_within_limits() && self.state.tool_results.is_empty())) =>
            {
                self.step(Step::Plan);
                self.state.iteration += 1;
                Ok(Said::Plan(self.usable(plan, &completion, messages).await?))
            }
            asked => self.last_answer(text, asked, &completion, messages).await.map(Said::Answer),
        }
    }

    /// What a model says to the person, and what it asks for in its place or beside it. Whatever becomes an answer comes through
    /// here.
    fn meant(&mut self, completion: &Completion) -> (String, Option<Result<Plan, String>>) {
        self.state.cut = completion.finish == Finish::Length;
        let answer_text::Read { text, plans } = answer_text::read(&completion.text);
        if !completion.tool_calls.is_empty() {
            return (String::new(), Some(plan::of_functions(completion)));
        }
        let asked = (!plans.is_empty()).then(|| plan::of_values(&plans));
        // "None" is no call, and no answer either.
        (text, asked)
    }

    /// An answer where nothing more is called: what was asked for is noted, and one that only asked is asked once more, for words.
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

    /// Writes the end into the state. What failed after something had been done is told with what was done; the person could
    /// not know otherwise.
    fn over(mut self, ended: Result<Ended, Unanswered>) -> Result<Ended> {
        let ended = match ended {
            Ok(ended) => ended,
            Err(Unanswered::Stopped(Stop::Requested)) if !self.said.trim().is_empty() => {
                let mut text = std::mem::take(&mut self.said);
                text.push_str("\n\n(Stopped.)");
                self.list_calls(&mut text);
                self.observer.event(Event::Message(&text));
                Ended::BrokenOff(text)
            }
            Err(unanswered) => {
                let acted = self.state.tool_results.iter().any(ToolResult::acted);
                let why = match unanswered {
                    Unanswered::Stopped(Stop::Requested) => "it was stopped".to_owned(),
                    Unanswered::Stopped(Stop::OverBudget(over)) if !acted => return Err(over.into()),
                    Unanswered::Stopped(Stop::OverBudget(over)) => over.to_string(),
                    Unanswered::Failed(error) if !acted => return Err(error),
                    Unanswered::Failed(error) => {
                        tracing::warn!("a turn was broken off: {}", crate::error::chain(&error));
                        error.to_string()
                    }
                };
                let text = self.report(&why);
                self.observer.event(Event::Message(&text));
                Ended::BrokenOff(text)
            }
        };
        if !ended.text().is_empty() {
            self.state.messages.push(ChatMessage::assistant(ended.text()));
        }
        Ok(ended)
    }

    /// What was done, without a model.
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

/// An answer has words.
fn or_nothing(text: String) -> String {
    if text.is_empty() { NO_ANSWER.to_owned() } else { text }
}

/// What a model said, for the conversation with it: calls of functions as the plan that they are.
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
