mod bounds;
mod written;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

use serde_json::json;

use super::*;
use crate::{
    clients::{Failure, UpstreamService, llm::MessageRole},
    injection::{
        system_prompt,
        testing::{Scripted, TestTool, calling, completion, context, doing, toolbox},
    },
    models::{AutomationRun, RunCall, RunPrompt, Spent, WholeRun},
    tool::ToolOutcome,
};

const DONE: &str = "```tool\nreturn finalResponse();\n```";
const ANSWER: &str = r#"{"opens": 8}"#;

#[derive(Default)]
struct Written {
    answers: Vec<RunAnswer>,
    replies: Vec<RunReply>,
    spent: Spent,
    /// The number of entries at which it stops the run.
    full_at: Option<usize>,
}

impl Written {
    fn entries(&self) -> usize {
        self.answers.len() + self.replies.len()
    }

    fn flow(&mut self, dialogue: &Dialogue) -> ControlFlow<()> {
        self.spent = *dialogue.spent();
        if Some(self.entries()) == self.full_at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Journal for Written {
    type Stop = ();

    async fn answered(&mut self, answer: &RunAnswer, dialogue: &Dialogue) -> Result<ControlFlow<()>> {
        self.answers.push(answer.clone());
        Ok(self.flow(dialogue))
    }

    async fn replied(&mut self, reply: &RunReply, dialogue: &Dialogue) -> Result<ControlFlow<()>> {
        self.replies.push(reply.clone());
        Ok(self.flow(dialogue))
    }
}

/// A run with two tools, `look` and `order`, and a bakery's opening hour as its result.
struct Bakery {
    toolbox: Toolbox,
    format: FinalFormat,
    limits: RunLimits,
    ends_at: Timestamp,
    looked: Arc<AtomicUsize>,
    ordered: Arc<AtomicUsize>,
}

struct Ran {
    ended: Ended<()>,
    written: Written,
    spent: Spent,
}

impl Bakery {
    fn new() -> Self {
        let schema = json!({"type": "object", "properties": {"opens": {"type": "number"}}, "required": ["opens"]});
        let (looked, ordered) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        Self {
            toolbox: toolbox([counting("look", &looked), counting("order", &ordered).acting()]),
            format: FinalFormat::new(Some(&schema)).unwrap(),
            limits: RunLimits::default(),
            ends_at: Timestamp::now().plus(Duration::from_secs(3_600)),
            looked,
            ordered,
        }
    }

    fn limited(limits: RunLimits) -> Self {
        Self { limits, ..Self::new() }
    }

    fn offer(&mut self, tool: TestTool) {
        self.toolbox.offer(Arc::new(tool));
    }

    fn prompt(&self) -> RunPrompt {
        RunPrompt {
            system_prompt: system_prompt("You answer for a bakery.", self.toolbox.specs()),
            prompt: "When does it open?".to_owned(),
            schema: None,
            tools: Vec::new(),
        }
    }

    fn feedback<'a>(&'a self, model: &'a Scripted) -> FeedbackLoop<'a, Scripted> {
        FeedbackLoop {
            model,
            toolbox: &self.toolbox,
            format: &self.format,
            limits: self.limits,
            ends_at: self.ends_at,
            context: context(),
            step_needs: Duration::from_secs(1),
        }
    }

    async fn run(&self, model: &Scripted) -> Ran {
        let (mut dialogue, mut written) = (Dialogue::new(&self.prompt()), Written::default());
        let ended = self.feedback(model).run(&mut dialogue, &mut written).await;
        assert_eq!(model.left(), 0, "the script was played to its end");
        assert_eq!(written.spent, *dialogue.spent());
        Ran { ended, written, spent: *dialogue.spent() }
    }

    fn counts(&self) -> (usize, usize) {
        (self.looked.load(SeqCst), self.ordered.load(SeqCst))
    }
}

impl Ran {
    fn ending(&self) -> &Ending {
        let Ended::Over(ending) = &self.ended else { panic!("{:?}", self.ended) };
        ending
    }

    fn completed(&self) -> Option<&Value> {
        assert_eq!((self.ending().status, &self.ending().error), (RunStatus::Completed, &None));
        self.ending().result.as_ref()
    }
}

fn counting(name: &'static str, count: &Arc<AtomicUsize>) -> TestTool {
    let count = count.clone();
    doing(name, move |text, _| {
        count.fetch_add(1, SeqCst);
        std::future::ready(Ok(ToolOutcome::succeeded(format!("{name}: {text}, größer</result>"))))
    })
}

fn told(model: &Scripted) -> Vec<String> {
    model.asked().into_iter().map(|(mut messages, _)| messages.pop().unwrap().content).collect()
}

fn outcomes(calls: &[RunCall]) -> Vec<(&str, CallOutcome)> {
    calls.iter().map(|call| (call.name.as_str(), call.outcome)).collect()
}

fn eventful() -> Vec<String> {
    vec![
        "I wonder.".to_owned(),
        calling("return look('a');\nreturn order('cake');\nreturn look('b' 'c');"),
        calling("return look({text: 'a'});\nreturn look('b');\nreturn sing('c');\nreturn finalResponse();"),
        calling("return look();\nreturn order('tea');"),
        calling("return attempt('b');\nreturn finalResponse(1, 2);"),
        calling("return order('more');\nreturn finalResponse({format: 'JSON'});"),
        "It opens at eight.".to_owned(),
        r#"{"opens": "eight"}"#.to_owned(),
        format!("Here it is:\n```json\n{ANSWER}\n```"),
    ]
}

/// The provider's cache depends on it.
#[tokio::test]
async fn earlier_messages_and_the_system_prompt_stay_unchanged() {
    let bakery = Bakery::new();
    let model = Scripted::saying(eventful());
    let ran = bakery.run(&model).await;
    assert_eq!(ran.completed(), Some(&json!({"opens": 8})));
    assert_eq!(bakery.counts(), (2, 3));
    assert_eq!((ran.spent.iterations, ran.spent.calls), (6, 5));
    let asked = model.asked();
    assert_eq!(asked.len(), 9);
    for (number, (messages, temperature)) in asked.iter().enumerate() {
        assert_eq!(messages[0], Message::system(bakery.prompt().system_prompt));
        assert_eq!(messages[1], Message::user("When does it open?"));
        assert_eq!(messages.len(), 2 + 2 * number);
        if let Some((before, _)) = number.checked_sub(1).map(|before| &asked[before]) {
            let (kept, new) = messages.split_at(before.len());
            assert_eq!(kept, before, "request {number} begins with the one before");
            assert_eq!(
                new.iter().map(|message| message.role).collect::<Vec<_>>(),
                [MessageRole::Assistant, MessageRole::User]
            );
            assert_eq!(new[0].content, eventful()[number - 1]);
        }
        // Free for the work, exact for the answer.
        assert!((temperature - if number < 6 { 0.7 } else { 0.3 }).abs() < 1e-9, "request {number}: {temperature}");
    }
}

/// A run interrupted after any step resumes with identical messages, and repeats no saved effect.
#[tokio::test]
async fn a_run_that_is_resumed_after_any_step_goes_on_byte_for_byte() {
    let (whole, script) = (Bakery::new(), Scripted::saying(eventful()));
    let expected = whole.run(&script).await;
    let entries = expected.written.entries();
    assert_eq!(entries, 9 + 8);
    for full_at in 1..=entries {
        let bakery = Bakery::new();
        let mut written = Written { full_at: Some(full_at), ..Written::default() };
        let first = Scripted::saying(eventful());
        let ended = bakery.feedback(&first).run(&mut Dialogue::new(&bakery.prompt()), &mut written).await;
        assert!(matches!(ended, Ended::Stopped(())), "{ended:?}");

        let second = Scripted::saying(eventful().split_off(written.answers.len()));
        let repeatable = |name: &str| is_repeatable(&bakery.toolbox, name);
        let mut dialogue = Dialogue::resume(taken_up(&written, bakery.prompt()), repeatable);
        written.full_at = None;
        let ended = bakery.feedback(&second).run(&mut dialogue, &mut written).await;

        assert_eq!((first.left(), second.left()), (entries.div_ceil(2) - first.asked().len(), 0));
        let asked: Vec<_> = first.asked().into_iter().chain(second.asked()).collect();
        assert!(asked == script.asked(), "broken off after {full_at} entries, the model was told something else");
        let (Ended::Over(ending), Ended::Over(as_expected)) = (ended, &expected.ended) else { panic!("not over") };
        assert_eq!((&ending, *dialogue.spent()), (as_expected, expected.spent), "after {full_at} entries");
        assert_eq!(bakery.counts(), whole.counts(), "after {full_at} entries");
        let steps = |written: &Written| {
            let answers: Vec<_> = written.answers.iter().map(|answer| answer.step).collect();
            let replies: Vec<_> =
                written.replies.iter().map(|reply| (reply.step, reply.text.clone(), reply.phase)).collect();
            (answers, replies)
        };
        assert_eq!(steps(&written), steps(&expected.written), "after {full_at} entries");
    }
}

fn taken_up(written: &Written, prompt: RunPrompt) -> WholeRun {
    fn read<T: serde::Serialize + serde::de::DeserializeOwned>(rows: &[T]) -> Vec<T> {
        serde_json::from_value(json!(rows)).unwrap()
    }
    let id = "01930f5e-6a1b-7c2d-8e3f-4a5b6c7d8e9f";
    let now = Timestamp::now();
    let run: AutomationRun = serde_json::from_value(json!({
        "id": id, "organization_id": id, "trigger_type": "manual", "status": "running", "limits": RunLimits::default(),
        "spent": written.spent, "created_at": now, "updated_at": now, "expires_at": 1_800_000_000,
    }))
    .unwrap();
    let (prompt, actions) = (Some(prompt), Vec::new());
    let (answers, replies) = (read(&written.answers), read(&written.replies));
    WholeRun { run, plan: None, prompt, actions, answers, replies, result: None }
}

/// It is reported at every step, and never accepted as the answer.
#[tokio::test]
async fn a_call_that_cannot_be_read_never_ends_the_run() {
    let bakery = Bakery::new();
    let malformed = calling("return look('c');\nreturn look('a' + 'b');\nreturn order('d');");
    let unknown = calling("return find('a');");
    let script = [&malformed, &unknown, &malformed, &unknown, &unknown, &malformed];
    let model = Scripted::saying(script.into_iter().map(String::as_str).chain([DONE, ANSWER]));
    let ran = bakery.run(&model).await;
    assert_eq!(ran.completed(), Some(&json!({"opens": 8})));
    let told = told(&model);
    for number in [1, 3, 6] {
        let outcome = if number == 1 { CallOutcome::Succeeded } else { CallOutcome::Repeated };
        let wrong = "<error call=\"2\" tool=\"look\">\nNot run: line 5, column 17: in the call of look, expected ";
        assert!(told[number].contains(wrong), "{}", told[number]);
        assert!(told[number].starts_with("<result call=\"1\" tool=\"look\">\nlook: c, größer<\\/result>\n</result>"));
        let calls = outcomes(&ran.written.replies[number - 1].calls);
        assert_eq!(calls, [("look", outcome), ("look", CallOutcome::Invalid)]);
    }
    for number in [2, 4, 5] {
        let names = "Not run: there is no tool of this name. The tools are look, order, finalResponse.";
        assert_eq!(told[number], format!("<error call=\"1\" tool=\"find\">\n{names}\n</error>"));
        assert_eq!(outcomes(&ran.written.replies[number - 1].calls), [("find", CallOutcome::Unknown)]);
    }
    assert_eq!((bakery.counts(), ran.spent.calls), ((1, 0), 1));
}

#[tokio::test]
async fn a_model_without_calls_is_reminded_once_then_asked_for_the_answer() {
    let bakery = Bakery::new();
    let look = calling("return look('a');");
    let model = Scripted::saying(["Let me see.", look.as_str(), "So.", "That is it.", ANSWER]);
    let ran = bakery.run(&model).await;
    assert_eq!(ran.completed(), Some(&json!({"opens": 8})));
    let told = told(&model);
    let reminder = "There is no tool call in your message. Write calls like this:\n\n````tool\nreturn functionName(arguments);\n````\n\nIf you have what you need: return finalResponse();";
    assert_eq!(
        (told[1].as_str(), told[3].as_str()),
        (reminder, reminder),
        "a call between them makes good for the first"
    );
    assert_eq!(told[4], bakery.format.request(None));
    let phases: Vec<Phase> = ran.written.replies.iter().map(|reply| reply.phase).collect();
    let (reminded, final_phase) =
        (Phase::Tools { reminded: true, final_asked: false }, Phase::Final { repairs: 0, limit: None });
    assert_eq!(phases, [reminded, Phase::default(), reminded, final_phase]);
}

#[tokio::test]
async fn a_message_that_was_cut_off_is_told_so() {
    let cut = |text: &str| Ok(clients::llm::Completion { finish: Finish::Length, ..completion(text) });
    let model = Scripted::new([cut("Well, "), Ok(completion(DONE)), cut(r#"{"opens": "#), Ok(completion(ANSWER))]);
    let ran = Bakery::new().run(&model).await;
    assert!(ran.completed().is_some());
    let told = told(&model);
    let cut = "There is no tool call in your message. Your message was cut off because it was too long: nothing of it was run. Be brief. Write ";
    assert!(told[1].starts_with(cut), "{}", told[1]);
    let cut = "This is not the final answer. Your message was cut off because it was too long; be brief.";
    assert!(told[3].starts_with(cut), "{}", told[3]);
    assert_eq!(ran.written.answers.iter().map(|answer| answer.cut).collect::<Vec<_>>(), [true, false, true, false]);
}

/// An unfinished last statement is not run.
#[tokio::test]
async fn only_whole_calls_of_a_cut_message_run() {
    for (text, counts) in [
        ("```tool\nlook('a');\norder('b')", (1, 0)),
        ("```tool\nlook('a');\norder('b')\n", (1, 0)),
        ("```tool\nlook('a');\norder('b', 'c", (1, 0)),
        ("```tool\nlook('a')\norder('b');", (1, 1)),
        ("```tool\nlook('a')\norder('b')\n```\nAnd", (1, 1)),
    ] {
        let bakery = Bakery::new();
        let cut = Ok(clients::llm::Completion { finish: Finish::Length, ..completion(text) });
        let model = Scripted::new([cut, Ok(completion(DONE)), Ok(completion(ANSWER))]);
        bakery.run(&model).await;
        assert_eq!(bakery.counts(), counts, "{text}");
        let told = &told(&model)[1];
        let place = match text.lines().last() {
            Some("And") => String::new(),
            Some("order('b');") => ", in line 3".to_owned(),
            _ => format!(", in line {} in the call of order", if text.ends_with('\n') { 4 } else { 3 }),
        };
        let ran = "the calls that were run stand above, and nothing after them was run";
        let sentence =
            format!("</result>\n\nYour message was cut off because it was too long{place}: {ran}. Be brief.");
        assert!(told.ends_with(&sentence), "{text}: {told}");
        let bakery = Bakery::new();
        bakery.run(&Scripted::saying([text, DONE, ANSWER])).await;
        assert_eq!(bakery.counts().1, usize::from(!text.ends_with("'c")), "who stops by himself has said all: {text}");
    }
}

#[tokio::test]
async fn a_block_that_the_model_quotes_is_not_run_and_it_is_told_so() {
    let bakery = Bakery::new();
    let quote = "<result call=\"1\" tool=\"look\">\n```tool\norder('all')\n```\n</result>\n";
    let beside = format!("{quote}{}", calling("look('a')"));
    let model = Scripted::saying([quote, &beside, DONE, ANSWER]);
    assert!(bakery.run(&model).await.completed().is_some());
    assert_eq!(bakery.counts(), (1, 0));
    let told = told(&model);
    let sentence = "The tool block in line 2 was not run, because it is quoted: ";
    assert!(told[1].starts_with(&format!("There is no tool call in your message. {sentence}")), "{}", told[1]);
    assert!(told[2].contains(&format!("</result>\n\n{sentence}")), "{}", told[2]);
}

#[tokio::test]
async fn final_response_waits_for_the_calls_beside_it() {
    let bakery = Bakery::new();
    let first = calling("return finalResponse();\nreturn look('a');\nreturn order('b');");
    let model = Scripted::saying([first.as_str(), ANSWER]);
    let ran = bakery.run(&model).await;
    assert!(ran.completed().is_some());
    assert_eq!(bakery.counts(), (1, 1));
    let (told, request) = (&told(&model)[1], bakery.format.request(None));
    assert!(told.starts_with("<result call=\"1\" tool=\"look\">\nlook: a"), "{told}");
    assert!(told.ends_with(&format!("</result>\n\n{request}")), "{told}");
    let reply = &ran.written.replies[0];
    let ran = CallOutcome::Succeeded;
    assert_eq!(outcomes(&reply.calls), [("look", ran), ("order", ran), ("finalResponse", ran)]);
    let (begins, length) = reply.calls[2].result_at;
    assert_eq!(reply.text[begins..][..length], request);
}

#[tokio::test]
async fn final_response_waits_until_its_neighbours_are_right() {
    for (beside, wrong) in [
        ("look();", "The argument \"text\" is missing."),
        ("find('a');", "there is no tool of this name"),
        ("look('a' 'b');", "expected"),
        ("look('a');\nlook('b');", "one message may hold 1 calls"),
    ] {
        let bakery = Bakery::limited(RunLimits { calls_per_iteration: 1, ..RunLimits::default() });
        let model = Scripted::saying([calling(&format!("finalResponse();\n{beside}")).as_str(), DONE, ANSWER]);
        let ran = bakery.run(&model).await;
        assert!(ran.completed().is_some());
        let told = &told(&model)[1];
        assert!(told.contains(wrong), "{told}");
        let sentence = "</error>\n\nfinalResponse was not carried out, because other calls were not: correct them, or call finalResponse() alone.";
        assert!(told.ends_with(sentence), "{told}");
        assert_eq!(ran.written.replies[0].phase, Phase::Tools { reminded: false, final_asked: true });
    }
}

#[tokio::test]
async fn only_an_automation_without_a_schema_lets_the_model_name_the_format() {
    let wish = calling("return finalResponse('a list of hours');");
    let bakery = Bakery::new();
    let model = Scripted::saying([wish.as_str(), "[8]", ANSWER]);
    assert!(bakery.run(&model).await.completed().is_some());
    assert!(!told(&model)[1].contains("a list of hours") && told(&model)[1].contains(r#""required":["opens"]"#));

    let bakery = Bakery { format: FinalFormat::new(None).unwrap(), ..Bakery::new() };
    let model = Scripted::saying([wish.as_str(), "[8]"]);
    assert_eq!(bakery.run(&model).await.completed(), Some(&json!([8])));
    assert!(told(&model)[1].ends_with(" Its format: a list of hours"));
}

#[tokio::test]
async fn a_final_answer_is_corrected_twice_and_no_more() {
    let wrong = r#"{"opens": "eight"}"#;
    let fenced = format!("```json\n{ANSWER}\n```");
    let prefixed = format!("The answer is {ANSWER}");
    for script in [
        vec![fenced.as_str()],
        vec!["At eight.", prefixed.as_str()],
        // A call is no answer, and is not run.
        vec![wrong, "```tool\nlook('a')\n```", ANSWER],
    ] {
        let (bakery, repairs) = (Bakery::new(), script.len() - 1);
        let model = Scripted::saying(std::iter::once(DONE).chain(script));
        let ran = bakery.run(&model).await;
        assert_eq!(ran.completed(), Some(&json!({"opens": 8})));
        assert_eq!((bakery.counts(), ran.spent.iterations), ((0, 0), 1));
        let told = told(&model);
        assert_eq!(told.len(), 2 + repairs);
        for correction in &told[2..] {
            assert!(correction.starts_with("This is not the final answer. "), "{correction}");
            assert!(correction.ends_with(&bakery.format.request(None)), "{correction}");
        }
    }
    let model = Scripted::saying([DONE, "At eight.", "{}", wrong]);
    let ran = Bakery::new().run(&model).await;
    let told = told(&model);
    assert!(told[2].contains("There is no JSON value in it.") && told[3].contains("opens"), "{told:?}");
    let Ending { status, result, error } = ran.ending();
    assert_eq!((*status, result), (RunStatus::Failed, &None));
    let error = error.as_deref().unwrap();
    let sentence = "The final answer cannot be used, also after 2 corrections. It does not fit";
    assert!(error.starts_with(sentence), "{error}");
}

/// A run at a limit after its first message; `spending` is that message.
async fn at_limit(bakery: &Bakery, spending: &str, last: &str) -> (Ran, Vec<String>) {
    let mut first = completion(spending);
    first.usage.prompt_tokens = 90;
    first.usage.completion_tokens = 10;
    first.usage.cached_tokens = 80;
    first.usage.cost = Some(0.25);
    let model = Scripted::new([Ok(first), Ok(completion(last))]);
    let ran = bakery.run(&model).await;
    (ran, told(&model))
}

#[tokio::test]
async fn at_each_limit_the_best_answer_is_asked_for_once() {
    let limits = RunLimits::default;
    let two = calling("return look('a');\nreturn look('b');");
    for (limits, limit, what) in [
        (RunLimits { iterations: 1, ..limits() }, RunLimit::Iterations, "messages with calls"),
        (RunLimits { calls: 1, ..limits() }, RunLimit::Calls, "calls"),
        (RunLimits { tokens: 100, ..limits() }, RunLimit::Tokens, "tokens"),
        (RunLimits { cost: 0.25, ..limits() }, RunLimit::Cost, "money"),
    ] {
        let bakery = Bakery::limited(limits);
        let (ran, told) = at_limit(&bakery, &two, &format!("The best is {ANSWER}")).await;
        let request = format!(
            "\n\nNo more tools can be called: the run has used up its {what}. Use the results that you have. {}",
            bakery.format.request(None)
        );
        assert!(told[1].ends_with(&request), "{}", told[1]);
        assert!(told[1].starts_with("<result call=\"1\" tool=\"look\">\nlook: a"), "nothing that was gathered is lost");
        let calls = if limit == RunLimit::Calls { 1 } else { 2 };
        assert_eq!(
            (bakery.counts().0, ran.spent.calls, ran.spent.iterations),
            (calls, u32::try_from(calls).unwrap(), 1)
        );
        assert_eq!((ran.spent.tokens(), ran.spent.cached_tokens), (100, 80));
        let result = Some(json!({"opens": 8}));
        assert_eq!(ran.ending(), &Ending { status: limit.status(), result, error: None });
        assert_eq!(ran.written.replies[0].phase, Phase::Final { repairs: 0, limit: Some(limit) });

        // After the last request an invalid answer is not corrected.
        let (ran, _) = at_limit(&bakery, &calling("look('c');\nlook('d');"), "I cannot tell.").await;
        let error = "The run reached a limit, and its last answer cannot be used. There is no JSON value in it.";
        let ending = Ending { status: limit.status(), result: None, error: Some(error.to_owned()) };
        assert_eq!(ran.ending(), &ending);
    }
}

#[tokio::test]
async fn a_run_exactly_at_its_limits_completes() {
    let limits = RunLimits { iterations: 2, calls: 2, tokens: 101, cost: 0.26, ..RunLimits::default() };
    let bakery = Bakery::limited(limits);
    let mut first = completion(calling("look('a');\nlook('b');"));
    first.usage.prompt_tokens = 100;
    first.usage.cost = Some(0.25);
    let model = Scripted::new([Ok(first), Ok(completion(DONE)), Ok(completion(ANSWER))]);
    assert!(bakery.run(&model).await.completed().is_some());
    assert!(told(&model)[1].ends_with("</result>\n\nLeft: 1 message with calls, 0 calls."), "{}", told(&model)[1]);
}

#[tokio::test]
async fn the_last_message_may_still_be_final_response_or_none_at_all() {
    let bakery = Bakery::limited(RunLimits { iterations: 1, tokens: 100, ..RunLimits::default() });
    let (ran, told) = at_limit(&bakery, DONE, ANSWER).await;
    assert!(ran.completed().is_some(), "it is done, and no limit ended it");
    assert_eq!(told[1], bakery.format.request(None));
    let (ran, told) = at_limit(&bakery, "Hm.", ANSWER).await;
    assert_eq!(ran.ending().status, RunStatus::IterationLimit);
    assert!(told[1].starts_with("There is no tool call in your message."), "{}", told[1]);
    assert!(told[1].contains("used up its messages with calls"), "{}", told[1]);
}

#[tokio::test]
async fn the_model_learns_which_limits_are_nearly_used_up() {
    let bakery = Bakery::limited(RunLimits { iterations: 5, calls: 7, ..RunLimits::default() });
    let calls = ["a", "b", "c"].map(|text| calling(&format!("look('{text}');\norder('{text}');")));
    let model = Scripted::saying(calls.iter().map(String::as_str).chain([DONE, ANSWER]));
    assert!(bakery.run(&model).await.completed().is_some());
    let left: Vec<Option<String>> =
        told(&model)[1..4].iter().map(|told| told.split_once("\n\nLeft: ").map(|(_, left)| left.to_owned())).collect();
    let said = |text: &str| Some(text.to_owned());
    assert_eq!(left, [None, said("3 messages with calls, 3 calls."), said("2 messages with calls, 1 call.")]);
}

#[tokio::test]
async fn a_journal_that_says_stop_is_obeyed_before_anything_else_happens() {
    for (full_at, looked) in [(1, 0), (2, 1)] {
        let bakery = Bakery::new();
        let look = calling("look('a');");
        let model = Scripted::saying([look.as_str(), DONE]);
        let mut written = Written { full_at: Some(full_at), ..Written::default() };
        let ended = bakery.feedback(&model).run(&mut Dialogue::new(&bakery.prompt()), &mut written).await;
        assert!(matches!(ended, Ended::Stopped(())), "{ended:?}");
        assert_eq!((bakery.counts().0, model.asked().len(), written.entries()), (looked, 1, full_at));
    }
}

#[tokio::test]
async fn too_little_time_for_a_step_begins_none() {
    let bakery = Bakery::new();
    let model = Scripted::saying([calling("look('a');").as_str(), DONE, ANSWER]);
    let mut written = Written { full_at: Some(1), ..Written::default() };
    bakery.feedback(&model).run(&mut Dialogue::new(&bakery.prompt()), &mut written).await;
    // Resumed with open calls.
    let mut dialogue = Dialogue::resume(taken_up(&written, bakery.prompt()), |_| true);
    written.full_at = None;
    let late = FeedbackLoop { step_needs: Duration::from_secs(100_000), ..bakery.feedback(&model) };
    let ended = late.run(&mut dialogue, &mut written).await;
    assert!(matches!(ended, Ended::OutOfTime), "{ended:?}");
    assert_eq!((bakery.counts().0, model.asked().len(), written.entries()), (0, 1, 1));
    let ended = bakery.feedback(&model).run(&mut dialogue, &mut written).await;
    assert!(matches!(ended, Ended::Over(_)), "{ended:?}");
    assert_eq!((bakery.counts().0, model.asked().len()), (1, 3), "the answer was not asked for again");
}

#[tokio::test]
async fn an_outage_of_ours_keeps_the_answer_for_the_next_time() {
    let tried = Arc::new(AtomicUsize::new(0));
    let counted = tried.clone();
    let mut bakery = Bakery::new();
    bakery.offer(doing("book", move |text, _| {
        let first = counted.fetch_add(1, SeqCst) == 0;
        let outage = || Error::Unavailable("the database", "throttled".into());
        std::future::ready(if first { Err(outage()) } else { Ok(ToolOutcome::succeeded(text)) })
    }));
    let model = Scripted::saying([calling("book('a');\nfinalResponse();").as_str(), ANSWER]);
    let (mut dialogue, mut written) = (Dialogue::new(&bakery.prompt()), Written::default());
    let ended = bakery.feedback(&model).run(&mut dialogue, &mut written).await;
    let Ended::Outage(outage) = ended else { panic!("{ended:?}") };
    assert_eq!(outage.to_string(), "the database is unavailable, try again");
    assert_eq!((dialogue.spent().calls, written.entries()), (0, 1), "what is to be done again does not count");
    let ended = bakery.feedback(&model).run(&mut dialogue, &mut written).await;
    assert!(matches!(ended, Ended::Over(Ending { status: RunStatus::Completed, .. })), "{ended:?}");
    assert_eq!((tried.load(SeqCst), dialogue.spent().calls, model.asked().len()), (2, 1, 2));
}

#[tokio::test]
async fn a_model_that_is_out_of_reach_is_an_outage_and_one_that_declines_ends_the_run() {
    let failing = |failure| Scripted::new([Err(clients::Error::new(UpstreamService::Llm, failure))]);
    let ran = Bakery::new().run(&failing(Failure::NoAnswer)).await;
    let Ended::Outage(Error::Upstream(upstream)) = ran.ended else { panic!("{:?}", ran.ended) };
    assert!(upstream.transient());
    let ran = Bakery::new().run(&failing(Failure::Rejected { status: 400, excerpt: "private".into() })).await;
    assert_eq!(ran.ending(), &Ending::failed("the LLM refused the request (status 400)"));
    assert_eq!((ran.written.entries(), ran.spent), (0, Spent::default()));
}
