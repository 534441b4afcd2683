//! `make bench ALL=1`: the feedback loop's own time per iteration, without the model and DynamoDB, against the budget of 0.2
//! ms; and the memory of a run whose tools return far more than the model receives. A figure over its budget is said so and
//! fails nothing: a busy machine measures high.
//!
//! An iteration is an answer of some prose and a block of calls: it is parsed, the calls are checked and run, their results
//! become the next message. Time is the scheduler's count for the thread (`/proc`, so on Linux alone). Memory is the `VmHWM` of
//! a process of its own for each run, above its earlier level, after a run of small results.

#![expect(clippy::print_stdout, reason = "the report is what this is for")]
#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a bench stops at what is wrong")]

mod measuring;

use std::{
    env, fs,
    ops::ControlFlow,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use futures_util::future::{BoxFuture, ready};
use serde_json::{Map, Value, json};
use shared::{
    Deadline, Result,
    clients::{
        self, Outbound,
        llm::{Completion, Finish, Message, Usage},
    },
    injection::{Dialogue, Ended, FeedbackLoop, FinalFormat, Journal, Model, Wget, system_prompt},
    models::{ExecutionOrigin, OrganizationId, RunAnswer, RunId, RunLimits, RunPrompt, RunReply, RunStatus, Timestamp},
    tool::{CallContext, CallableTool, Conversation, Subject, ToolOutcome, ToolSpec, Toolbox},
};

use crate::measuring::measures;

const BUDGET: Duration = Duration::from_micros(200);
const ROUNDS: usize = 200;
const WARM_UP: usize = 20;

const KILOBYTE: usize = 1024;
const MEGABYTE: usize = 1024 * KILOBYTE;

/// Begins a process that measures its memory: `--memory <iterations> <calls> <bytes of a result>`.
const MEMORY: &str = "--memory";

const PROSE: &str = "The page lists the opening hours of the shop, and says that it is closed on public holidays. I would \
                     first look at the calendar, then ask the customer which day suits them, and offer two times.\n\n";

const PAGE: &str =
    "<p>Sundays from 8 (until noon), größere Bestellungen bis Freitag.</p>\n<li><a href=\"/cakes\">Cakes</a></li>\n";

/// A run's iterations, the calls of each, and the bytes that each call gets.
#[derive(Clone, Copy)]
struct Shape {
    iterations: usize,
    calls: usize,
    bytes: usize,
}

/// Plays a script, and records the final length of the conversation.
struct Script {
    answers: Vec<String>,
    asked: AtomicUsize,
    conversation: AtomicUsize,
}

impl Model for Script {
    async fn answer(&self, messages: &[Message], _: f64, _: Deadline) -> Result<Completion, clients::Error> {
        self.conversation.store(messages.iter().map(|message| message.content.len()).sum(), Relaxed);
        let text = self.answers[self.asked.fetch_add(1, Relaxed)].clone();
        let usage = Usage { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2, ..Usage::default() };
        let (tool_calls, model) = (Vec::new(), "scripted".to_owned());
        Ok(Completion { text, tool_calls, finish: Finish::Stop, usage, model, id: None })
    }
}

/// Returns the same page for every request.
struct Page {
    wget: Wget,
    bytes: usize,
}

impl CallableTool for Page {
    fn spec(&self) -> &ToolSpec {
        self.wget.spec()
    }

    fn call<'a>(&'a self, _: Map<String, Value>, _: &'a CallContext<'a>) -> BoxFuture<'a, Result<ToolOutcome>> {
        let mut page = PAGE.repeat(self.bytes / PAGE.len() + 1);
        page.truncate(page.floor_char_boundary(self.bytes));
        Box::pin(ready(Ok(ToolOutcome::succeeded(page))))
    }
}

/// Nothing is written down.
struct NoJournal;

impl Journal for NoJournal {
    type Stop = ();

    async fn answered(&mut self, _: &RunAnswer, _: &Dialogue) -> Result<ControlFlow<()>> {
        Ok(ControlFlow::Continue(()))
    }

    async fn replied(&mut self, _: &RunReply, _: &Dialogue) -> Result<ControlFlow<()>> {
        Ok(ControlFlow::Continue(()))
    }
}

fn main() {
    let arguments: Vec<String> = env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == MEMORY) {
        let number = |behind: usize| arguments[at + behind].parse().expect("a number");
        let shape = Shape { iterations: number(1), calls: number(2), bytes: number(3) };
        run(Shape { bytes: KILOBYTE, ..shape });
        let Measured { memory, conversation, .. } = run(shape);
        println!("{memory} {conversation}");
        return;
    }
    let rounds = if measures() { ROUNDS } else { 1 };
    println!("feedback: {rounds} runs each, medians of CPU time\n");
    println!("{:<44} {:>12} {:>22}", "an iteration", "time", "of the 0.2 ms budget");
    for (iterations, calls, bytes) in [
        (20, 3, 4 * KILOBYTE),
        // A run's last iterations take no longer than its first.
        (100, 3, 4 * KILOBYTE),
        (20, 1, 4 * KILOBYTE),
        (20, 10, 4 * KILOBYTE),
        // As much as one message may hold.
        (20, 4, 64 * KILOBYTE),
    ] {
        time(Shape { iterations, calls, bytes }, rounds);
    }
    println!("\n{:<44} {:>12} {:>16} {:>12}", "a run's memory", "peak", "conversation", "beside it");
    let sizes = [64 * KILOBYTE, MEGABYTE, 10 * MEGABYTE];
    for &bytes in &sizes[..if measures() { sizes.len() } else { 1 }] {
        for iterations in [1, 20] {
            grow(Shape { iterations, calls: 3, bytes });
        }
    }
}

fn time(shape: Shape, rounds: usize) {
    let warm_up = WARM_UP.min(rounds);
    let mut times: Vec<Duration> = (0..warm_up + rounds).map(|_| run(shape).cpu).skip(warm_up).collect();
    times.sort_unstable();
    let iterations = u32::try_from(shape.iterations).expect("a small number");
    let each = times[rounds / 2] / iterations;
    let over = if each > BUDGET { "  over the budget" } else { "" };
    let share = 100.0 * each.as_secs_f64() / BUDGET.as_secs_f64();
    println!("  {:<42} {:>9.4} ms {share:>21.1}%{over}", shape.name(), each.as_secs_f64() * 1_000.0);
}

fn grow(shape: Shape) {
    let Shape { iterations, calls, bytes } = shape;
    let own = env::current_exe().expect("this program");
    let arguments = [iterations, calls, bytes].map(|number| number.to_string());
    let output = Command::new(own).arg(MEMORY).args(arguments).output().expect("a process of its own");
    let said = String::from_utf8_lossy(&output.stdout);
    let (peak, conversation) = said.trim().split_once(' ').expect("two numbers");
    let (peak, conversation): (usize, usize) =
        (peak.parse().expect("a number"), conversation.parse().expect("a number"));
    let beside = peak.saturating_sub(conversation);
    println!(
        "  {:<42} {:>9} kB {:>13} kB {:>9} kB",
        shape.name(),
        peak / KILOBYTE,
        conversation / KILOBYTE,
        beside / KILOBYTE
    );
}

/// Cost of a run: peak memory and the final size of its conversation, in bytes.
struct Measured {
    cpu: Duration,
    memory: usize,
    conversation: usize,
}

fn run(shape: Shape) -> Measured {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let outbound = Outbound::new(Vec::new()).expect("a client");
    let mut toolbox = Toolbox::default();
    toolbox.offer(Arc::new(Page { wget: Wget::new(outbound), bytes: shape.bytes }));
    let schema = json!({"type": "object", "properties": {"opens": {"type": "number"}}, "required": ["opens"]});
    let format = FinalFormat::new(Some(&schema)).expect("a schema");
    let prompt = RunPrompt {
        system_prompt: system_prompt("You answer for a bakery.", toolbox.specs()),
        prompt: "When does it open?".to_owned(),
        schema: None,
        tools: Vec::new(),
    };
    let model = Script { answers: shape.answers(), asked: AtomicUsize::new(0), conversation: AtomicUsize::new(0) };
    let feedback = FeedbackLoop {
        model: &model,
        toolbox: &toolbox,
        format: &format,
        limits: RunLimits { iterations: 1_000, calls: 10_000, ..RunLimits::HIGHEST },
        ends_at: Timestamp::now().plus(Duration::from_secs(3_600)),
        context: CallContext {
            organization: OrganizationId::generate(),
            user: None,
            subject: Subject::Run(RunId::generate()),
            automation: None,
            delivery: None,
            conversation: &Conversation::default(),
            trigger: ExecutionOrigin::Automation,
            refused: None,
            deadline: Deadline::after(Duration::from_secs(3_600)),
        },
        step_needs: Duration::from_secs(1),
    };
    let mut dialogue = Dialogue::new(&prompt);
    let resident = memory("VmRSS:");
    let begun = cpu();
    let ended = runtime.block_on(feedback.run(&mut dialogue, &mut NoJournal));
    let (ended_at, peak) = (cpu(), memory("VmHWM:"));
    assert!(matches!(&ended, Ended::Over(ending) if ending.status == RunStatus::Completed), "{ended:?}");
    let calls = usize::try_from(dialogue.spent().calls).expect("a small number");
    assert_eq!(calls, shape.iterations * shape.calls, "every call was made");
    Measured {
        cpu: ended_at.saturating_sub(begun),
        memory: peak.saturating_sub(resident),
        conversation: model.conversation.load(Relaxed),
    }
}

impl Shape {
    /// Messages with calls, no call like another; then the final answer.
    fn answers(self) -> Vec<String> {
        let calls = |iteration: usize| {
            let call =
                |call| format!("return wget(\"https://shop.example/{iteration}/{call}_(hours)\", 5000, 'text');\n");
            let calls: Vec<String> = (0..self.calls).map(call).collect();
            format!("{}```tool\n{}```\n", PROSE.repeat(3), calls.concat())
        };
        let last = ["```tool\nreturn finalResponse();\n```".to_owned(), "{\"opens\": 8}".to_owned()];
        (0..self.iterations).map(calls).chain(last).collect()
    }

    fn name(self) -> String {
        let Self { iterations, calls, bytes } = self;
        let (iterations, calls) = (plural(iterations, "iteration"), plural(calls, "call"));
        format!("{iterations} with {calls} of {} kB", bytes / KILOBYTE)
    }
}

fn plural(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// CPU time of this thread so far. It sleeps before, for only then are the scheduler's figures complete.
fn cpu() -> Duration {
    thread::sleep(Duration::from_micros(20));
    let counted = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux' figures");
    Duration::from_nanos(counted.split(' ').next().and_then(|first| first.parse().ok()).expect("nanoseconds"))
}

/// Bytes.
fn memory(field: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("Linux' figures");
    let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("the field");
    KILOBYTE * line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number")
}
