use std::{
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use serde_json::json;
use tokio::{sync::Semaphore, task::yield_now};

use super::*;
use crate::{
    Deadline, Error,
    injection::{
        parser,
        testing::{TestTool, calling, context, doing, tool, toolbox},
    },
    tool::{CALL_WITHIN, ToolOutcome, Unavailable},
};

const AMPLE: Room = Room { per_answer: 100, in_all: 100, bytes: LONGEST_RESULTS };

fn entries(statements: &str) -> Vec<Entry> {
    parser::parse(&calling(statements)).entries
}

/// A tool with a constant outcome, and a counter of its calls.
fn counted(name: &str, outcome: impl Fn() -> ToolOutcome + Send + Sync + 'static) -> (TestTool, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let tool = doing(name, move |_, _| {
        counted.fetch_add(1, SeqCst);
        std::future::ready(Ok(outcome()))
    });
    (tool, count)
}

async fn executed_in(room: Room, toolbox: &Toolbox, statements: &str) -> Executed {
    make_calls(toolbox, entries(statements), room, |_, _| None, &context()).await.unwrap()
}

async fn executed(toolbox: &Toolbox, statements: &str) -> Vec<CallResult> {
    executed_in(AMPLE, toolbox, statements).await.results
}

fn outcomes(results: &[CallResult]) -> Vec<CallOutcome> {
    results.iter().map(|result| result.outcome).collect()
}

fn texts(results: &[CallResult]) -> Vec<&str> {
    results.iter().map(|result| result.text.as_str()).collect()
}

#[tokio::test]
async fn results_stand_in_the_order_of_the_calls_though_the_last_ends_first() {
    let ended = Arc::new(Mutex::new(Vec::new()));
    let may_end: Arc<[Semaphore; 4]> = Arc::new([0, 0, 0, 1].map(Semaphore::new));
    let seen = ended.clone();
    // Each call waits for the next one.
    let look = doing("look", move |text, _| {
        let (ended, may_end) = (seen.clone(), may_end.clone());
        async move {
            let number: usize = text.parse().unwrap();
            may_end[number].acquire().await.unwrap().forget();
            ended.lock().unwrap().push(number);
            if let Some(before) = number.checked_sub(1) {
                may_end[before].add_permits(1);
            }
            Ok(ToolOutcome::succeeded(format!("page {text}")))
        }
    });
    let results =
        executed(&toolbox([look]), "return look('0');\nreturn look('1');\nreturn look('2');\nreturn look('3');").await;
    assert_eq!(*ended.lock().unwrap(), [3, 2, 1, 0]);
    assert_eq!(texts(&results), ["page 0", "page 1", "page 2", "page 3"]);
}

#[tokio::test]
async fn five_calls_run_at_once_and_never_more() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = most.clone();
    let look = doing("look", move |_, _| {
        let (now, most) = (now.clone(), seen.clone());
        async move {
            most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
            // Enough yields for all permitted calls to start.
            for _ in 0..20 {
                yield_now().await;
            }
            now.fetch_sub(1, SeqCst);
            Ok(ToolOutcome::succeeded("seen"))
        }
    });
    let statements: Vec<String> = (0..12).map(|number| format!("return look('{number}');\n")).collect();
    let results = executed(&toolbox([look]), &statements.concat()).await;
    assert_eq!(outcomes(&results), [CallOutcome::Succeeded; 12]);
    assert_eq!(most.load(SeqCst), 5);
}

#[tokio::test]
async fn a_tool_that_does_not_answer_is_reported_by_its_possible_effect() {
    let silent = |name: &str| doing(name, |_, _| pending());
    let tools = toolbox([silent("look"), silent("send").acting(), tool("echo")]);
    let calls = entries("return look('a');\nreturn send('b');\nreturn echo('c');");
    let context = CallContext { deadline: Deadline::after(CALL_NEEDS + Duration::from_secs(1)), ..context() };
    let results = make_calls(&tools, calls, AMPLE, |_, _| None, &context).await.unwrap().results;
    let [reads, acts, echo] = texts(&results)[..] else { panic!("{results:?}") };
    assert!(
        reads.starts_with("The tool did not answer within ") && acts.starts_with("The tool did not answer within ")
    );
    assert!(reads.ends_with(" s; try again, or do without it."), "{reads}");
    assert!(acts.ends_with(" s. It may have acted all the same; do not repeat the call."), "{acts}");
    assert_eq!(echo, r#"{"text":"c"}"#);
    assert_eq!(outcomes(&results), [CallOutcome::Failed, CallOutcome::Failed, CallOutcome::Succeeded]);
}

#[tokio::test]
async fn a_call_gets_its_share_of_the_time_and_none_beyond_the_runs() {
    let times = Arc::new(Mutex::new(Vec::new()));
    let seen = times.clone();
    let look = doing("look", move |_, deadline| {
        seen.lock().unwrap().push(deadline.remaining());
        std::future::ready(Ok(ToolOutcome::succeeded("")))
    });
    let tools = toolbox([look]);
    for seconds in [10_000, 30] {
        let context = CallContext { deadline: Deadline::after(Duration::from_secs(seconds)), ..context() };
        make_calls(&tools, entries("look('a')"), AMPLE, |_, _| None, &context).await.unwrap();
    }
    let times = times.lock().unwrap();
    assert!(times[0] <= CALL_WITHIN && times[0] > Duration::from_secs(30), "{times:?}");
    assert!(times[1] <= Duration::from_secs(30), "{times:?}");
}

#[tokio::test]
async fn a_call_that_no_time_is_left_for_does_not_begin() {
    let (send, sent) = counted("send", || ToolOutcome::succeeded("sent"));
    let (look, looked) = counted("look", || ToolOutcome::succeeded("seen"));
    let tools = toolbox([send.acting(), look]);
    let context = CallContext { deadline: Deadline::after(Duration::ZERO), ..context() };
    let calls = entries("send('a');\nlook('b');\nlook('b');");
    let results = make_calls(&tools, calls, AMPLE, |_, _| None, &context).await.unwrap().results;
    let sentence = "Not run: the calls before it took too long. Make this call again in your next message.";
    assert_eq!(texts(&results), [sentence; 3]);
    assert_eq!(outcomes(&results), [CallOutcome::NotRun; 3]);
    assert_eq!((sent.load(SeqCst), looked.load(SeqCst)), (0, 0));
}

#[tokio::test]
async fn a_tool_that_panics_says_so_and_the_others_run() {
    /// Panics before returning a future.
    fn at_once(_: String, _: Deadline) -> std::future::Ready<Result<ToolOutcome>> {
        panic!("at once")
    }
    let hasty = doing("hasty", at_once);
    let late = doing("late", |_, _| async {
        yield_now().await;
        panic!("later")
    });
    let results =
        executed(&toolbox([hasty, late, tool("echo")]), "hasty('a');\nlate('b');\necho('c');\nhasty('d');").await;
    let sentence = "The tool failed for a fault of its own; do not call it again.";
    assert_eq!(texts(&results), [sentence, sentence, r#"{"text":"c"}"#, sentence]);
    assert_eq!(
        outcomes(&results),
        [CallOutcome::Failed, CallOutcome::Failed, CallOutcome::Succeeded, CallOutcome::Failed]
    );
}

#[tokio::test]
async fn an_outage_of_one_call_does_not_break_the_others_off() {
    let done = Arc::new(AtomicUsize::new(0));
    let seen = done.clone();
    let send = doing("send", move |_, _| {
        let done = seen.clone();
        async move {
            for _ in 0..20 {
                yield_now().await;
            }
            done.fetch_add(1, SeqCst);
            Ok(ToolOutcome::succeeded("sent"))
        }
    });
    let down = doing("down", |_, _| async { Err(Error::Unavailable("the database", "throttled".into())) });
    let tools = toolbox([send.acting(), down]);
    let calls = entries("send('a');\ndown('b');\nsend('c');");
    let outage = make_calls(&tools, calls, AMPLE, |_, _| None, &context()).await.unwrap_err();
    assert_eq!(outage.to_string(), "the database is unavailable, try again");
    assert_eq!(done.load(SeqCst), 2, "what has begun to act is let end, so that its outcome is known");
}

/// A wrong argument is reported, and the tool is not run.
#[tokio::test]
async fn arguments_that_do_not_fit_are_told_with_the_signature() {
    let (look, count) = counted("look", || ToolOutcome::succeeded("seen"));
    let (tools, statements) = (toolbox([look]), "look();\nlook('a', 'b');\nlook(7);\nlook({text: 'a', more: 1})");
    let Executed { results, counted, out_of_calls } = executed_in(AMPLE, &tools, statements).await;
    let signature = "The signature is look(text: string): string.";
    assert_eq!(
        texts(&results),
        [
            format!("Not run: The argument \"text\" is missing. {signature}"),
            format!("Not run: There are 2 arguments, and at most 1 can be given. {signature}"),
            format!("Not run: The argument \"text\" must be text, not a number. {signature}"),
            format!("Not run: There is no parameter \"more\". {signature}"),
        ]
    );
    assert_eq!(outcomes(&results), [CallOutcome::Invalid; 4]);
    assert_eq!(results[2].arguments.as_deref(), Some("[7]"), "as they were written");
    assert_eq!((counted, out_of_calls, count.load(SeqCst)), (0, false, 0));
}

#[tokio::test]
async fn a_tool_that_was_not_offered_is_answered_with_those_that_were() {
    let mut tools = toolbox([tool("look"), tool("ask")]);
    tools.withhold("tell", Unavailable::NotFound);
    let Executed { results, counted, .. } = executed_in(AMPLE, &tools, "wget('a');\nLook('b');\ntell('c');").await;
    let unknown = "Not run: there is no tool of this name. The tools are ask, look, finalResponse.";
    assert_eq!(texts(&results), [unknown, unknown, "Not run: this tool was deleted; do without it."]);
    assert_eq!(outcomes(&results), [CallOutcome::Unknown; 3]);
    assert_eq!((results[0].name.as_str(), counted), ("wget", 0));
    assert_eq!(tools.specs().map(|spec| spec.name.as_str()).collect::<Vec<_>>(), ["ask", "look"]);
}

#[tokio::test]
async fn calls_run_up_to_the_first_unreadable_statement() {
    let (look, count) = counted("look", || ToolOutcome::succeeded("seen"));
    let tools = toolbox([look]);
    let statements =
        "return look('a');\nif (!sure)\n{\n  return look('b');\n}\nreturn look('c');\n```\n```tool\nlook('d')";
    let results = executed(&tools, statements).await;
    assert_eq!(outcomes(&results), [CallOutcome::Succeeded, CallOutcome::Invalid]);
    assert_eq!(
        results[1].text,
        "Not run: line 5, column 1: expected a call, `name(argument, …)`: nothing else is executed, no `if`, found `if (!sure)`. Nothing from there on was run, neither the rest of its block nor a block behind it."
    );
    assert_eq!((results[1].name.as_str(), results[1].arguments.as_deref(), count.load(SeqCst)), ("", None, 1));

    let results = executed(&tools, "return look('a' 'b');").await;
    assert!(results[0].text.starts_with("Not run: line 4, column 17: in the call of look, expected "), "{results:?}");
    assert_eq!((results[0].name.as_str(), count.load(SeqCst)), ("look", 1));
}

#[tokio::test]
async fn a_result_is_cut_where_it_is_too_long_and_says_so() {
    let look = doing("look", |text, _| {
        // Two-byte characters after one byte, so that the cut falls inside a character.
        let long = format!("x{}", "ä".repeat(text.parse().unwrap()));
        std::future::ready(Ok(ToolOutcome::succeeded(long)))
    });
    let list = doing("list", |text, _| {
        let rows: Vec<Value> = (0..text.parse().unwrap()).map(|number: u32| json!({"number": number})).collect();
        std::future::ready(Ok(ToolOutcome::succeeded(Value::Array(rows))))
    });
    let tools = toolbox([look, list]);
    let results = executed(&tools, "look('32767');\nlook('5000000');\nlist('100000')").await;
    assert_eq!(results[0].text.len(), LONGEST_RESULT - 1, "what fits is whole");
    let (kept, note) = results[1].text.split_once('…').unwrap();
    assert_eq!(note, format!(" (cut: the first {} of 10000001 bytes)", kept.len()));
    assert!(kept.strip_prefix('x').unwrap().chars().all(|character| character == 'ä'));
    assert!((LONGEST_RESULT - 100..=LONGEST_RESULT).contains(&results[1].text.len()), "{note}");
    // The cut part is freed while other calls of the message still run.
    assert!(results[1].text.capacity() <= 2 * LONGEST_RESULT, "{}", results[1].text.capacity());
    let rows: Vec<Value> = serde_json::from_str(&results[2].text).expect("what is no text stays JSON");
    assert_eq!(rows[0], json!({"number": 0}));
    assert_eq!(rows.last(), Some(&json!(format!("… (cut: {} more)", 100_001 - rows.len()))));
    assert!((LONGEST_RESULT - 100..=LONGEST_RESULT).contains(&results[2].text.len()), "{}", results[2].text.len());
}

#[tokio::test]
async fn the_results_of_one_message_share_its_size_limit() {
    let long = || std::future::ready(Ok(ToolOutcome::succeeded("ä".repeat(100_000))));
    let tools = toolbox([doing("look", move |_, _| long())]);
    for calls in [4, 5, 20, 90] {
        let statements: Vec<String> = (0..calls).map(|number| format!("look('{number}');\n")).collect();
        let results = executed(&tools, &statements.concat()).await;
        let lengths: Vec<usize> = results.iter().map(|result| result.text.len()).collect();
        let all: usize = lengths.iter().sum();
        assert!(all <= LONGEST_RESULTS && all > LONGEST_RESULTS * 9 / 10, "{calls} calls: {all} bytes");
        assert!(lengths.iter().all(|length| *length <= LONGEST_RESULT), "{lengths:?}");
        assert!(results.iter().all(|result| result.text.ends_with(" of 200000 bytes)")), "each says so");
    }
}

#[tokio::test]
async fn the_same_reading_call_of_one_message_is_made_once() {
    let (look, looked) = counted("look", || ToolOutcome::succeeded("seen"));
    let (miss, missed) = counted("miss", || ToolOutcome::failed("Nothing there."));
    let (send, sent) = counted("send", || ToolOutcome::succeeded("sent"));
    let tools = toolbox([look, miss, send.acting()]);
    let statements = "look('a');\nlook({text: `a`});\nlook('b');\nmiss('a');\nmiss('a');\nsend('a');\nsend('a');";
    let Executed { results, counted, .. } = executed_in(AMPLE, &tools, statements).await;
    let (ran, again, failed) = (CallOutcome::Succeeded, CallOutcome::Repeated, CallOutcome::Failed);
    assert_eq!(outcomes(&results), [ran, again, ran, failed, failed, ran, ran]);
    assert_eq!(texts(&results), ["seen", "seen", "seen", "Nothing there.", "Nothing there.", "sent", "sent"]);
    assert_eq!(
        [looked, missed, sent].map(|count| count.load(SeqCst)),
        [2, 1, 2],
        "whoever acts, acts as often as asked"
    );
    assert_eq!(counted, 5);
}

#[tokio::test]
async fn a_repeatable_read_is_asked_again() {
    let (poll, polled) = counted("poll", || ToolOutcome::succeeded("now"));
    let tools = toolbox([poll.with(|spec| spec.repeatable = false)]);
    let earlier = |_: &str, _: &str| Some("before".to_owned());
    let calls = entries("poll('a');\npoll('a');");
    let results = make_calls(&tools, calls, AMPLE, earlier, &context()).await.unwrap().results;
    assert_eq!((texts(&results), polled.load(SeqCst)), (vec!["now", "now"], 2));
    assert_eq!(outcomes(&results), [CallOutcome::Succeeded; 2]);
}

#[tokio::test]
async fn an_error_of_a_tool_is_a_failed_call_and_no_outage() {
    let wrong = doing("wrong", |_, _| async { Err(Error::NotFound("spreadsheet")) });
    let results = executed(&toolbox([wrong, tool("echo")]), "wrong('a');\necho('b');").await;
    assert_eq!(texts(&results), ["The tool failed: spreadsheet not found.", r#"{"text":"b"}"#]);
    assert_eq!(outcomes(&results), [CallOutcome::Failed, CallOutcome::Succeeded]);
}

#[tokio::test]
async fn a_reading_call_of_an_earlier_message_is_answered_from_the_record() {
    let (look, looked) = counted("look", || ToolOutcome::succeeded("seen"));
    let (send, sent) = counted("send", || ToolOutcome::succeeded("sent"));
    let tools = toolbox([look, send.acting()]);
    let earlier = |name: &str, arguments: &str| {
        assert_ne!(name, "send", "what acts has no record");
        (arguments == r#"{"text":"a"}"#).then(|| format!("{name} as before"))
    };
    // A recorded result is available even when no more calls are allowed.
    let room = Room { per_answer: 2, in_all: 2, bytes: LONGEST_RESULTS };
    let calls = entries("send('a');\nlook('b');\nlook('a');");
    let executed = make_calls(&tools, calls, room, earlier, &context()).await.unwrap();
    assert_eq!(texts(&executed.results), ["sent", "seen", "look as before"]);
    assert_eq!(executed.results[2].outcome, CallOutcome::Repeated);
    assert_eq!((executed.counted, executed.out_of_calls), (2, false));
    assert_eq!((looked.load(SeqCst), sent.load(SeqCst)), (1, 1));
}

#[tokio::test]
async fn calls_beyond_the_room_are_told_which_room_it_was() {
    let (look, count) = counted("look", || ToolOutcome::succeeded("seen"));
    let tools = toolbox([look]);
    // Calls that are not run do not count.
    let statements = "look();\nlook('a');\nlook('a');\nnone();\nlook('b');\nlook('c');";
    let executed = executed_in(Room { per_answer: 2, in_all: 50, bytes: LONGEST_RESULTS }, &tools, statements).await;
    let last = executed.results.last().unwrap();
    assert_eq!(last.text, "Not run: one message may hold 2 calls. Make this call in your next message.");
    assert_eq!(outcomes(&executed.results)[4..], [CallOutcome::Succeeded, CallOutcome::NotRun]);
    assert_eq!((executed.counted, executed.out_of_calls, count.swap(0, SeqCst)), (2, false, 2));

    let executed = executed_in(Room { per_answer: 10, in_all: 1, bytes: LONGEST_RESULTS }, &tools, statements).await;
    assert_eq!(executed.results[4].text, "Not run: the calls of this run are used up.");
    assert_eq!(outcomes(&executed.results)[4..], [CallOutcome::NotRun; 2]);
    assert_eq!((executed.counted, executed.out_of_calls, count.swap(0, SeqCst)), (1, true, 1));

    let executed = executed_in(Room { per_answer: 10, in_all: 0, bytes: LONGEST_RESULTS }, &tools, "none();").await;
    assert!(!executed.out_of_calls, "nobody asked for more");
}
