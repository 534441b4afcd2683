//! Bounds of an answer, a conversation and the run's time.

use super::*;

#[tokio::test]
async fn when_the_time_is_over_nothing_is_run_any_more() {
    let mut bakery = Bakery::new();
    bakery.ends_at = Timestamp::now();
    for (last, result, wrong) in [
        (format!("The best is {ANSWER}"), Some(json!({"opens": 8})), None),
        (calling("look('b');"), None, Some("No tools can be called any more.")),
    ] {
        let model = Scripted::saying([calling("look('a');\norder('b');"), last]);
        let ran = bakery.run(&model).await;
        assert_eq!((bakery.counts(), ran.spent.calls), ((0, 0), 0));
        let told = &told(&model)[1];
        assert!(told.starts_with("No more tools can be called: the run has used up its time."), "{told}");
        assert_eq!((ran.ending().status, &ran.ending().result), (RunStatus::TimeLimit, &result));
        assert_eq!(ran.ending().error.as_deref().map(|error| error.contains(wrong.unwrap())), wrong.map(|_| true));
        assert!(model.had().iter().all(|had| *had <= LAST_ANSWER), "{:?}", model.had());
    }
}

/// Without a schema, the value inside a call would otherwise be accepted.
#[tokio::test]
async fn a_call_in_the_place_of_the_final_answer_is_not_the_answer() {
    let bakery = Bakery { format: FinalFormat::new(None).unwrap(), ..Bakery::new() };
    let late = calling("return look({\"text\": \"one more\"});");
    let model = Scripted::saying([DONE, &late, "```tool\nfind([1, 2])\n```", r#"{"said": "```tool\nlook('a')\n```"}"#]);
    let ran = bakery.run(&model).await;
    assert_eq!(ran.completed(), Some(&json!({"said": "```tool\nlook('a')\n```"})), "in a text it is a text");
    for correction in &told(&model)[2..] {
        let sentence = "This is not the final answer. No tools can be called any more.\n\n";
        assert!(correction.starts_with(sentence), "{correction}");
    }
    assert_eq!(bakery.counts(), (0, 0));
    let model = Scripted::saying([DONE, "```tool\nreturn finalResponse({\"opens\": 8});\n```"]);
    assert_eq!(bakery.run(&model).await.completed(), Some(&json!({"opens": 8})), "that one is meant");
}

/// The longest answer fits into one item, and its reply into another.
#[tokio::test]
async fn an_answer_that_repeats_itself_is_read_up_to_a_point() {
    const ITEM: usize = 400 * 1024;
    let bakery = Bakery::new();
    let many = calling(&"look('a');\nfind('b');\n".repeat(2_000));
    let long = format!("{many}{}", "ü".repeat(LONGEST_ANSWER));
    let model = Scripted::saying([long.as_str(), DONE, ANSWER]);
    let ran = bakery.run(&model).await;
    assert!(ran.completed().is_some());
    let (answer, reply) = (&ran.written.answers[0], &ran.written.replies[0]);
    assert!(answer.cut && answer.text.len() <= LONGEST_ANSWER);
    assert_eq!((reply.calls.len(), bakery.counts().0), (MOST_CALLS, 1));
    let unread = "\n\n3900 calls more were not read: one message is read up to its call 100.";
    assert!(reply.text.contains(unread), "{}", &reply.text[reply.text.len() - 500..]);
    assert!(serde_json::to_string(reply).unwrap().len() < ITEM);
}

#[tokio::test]
async fn a_conversation_outgrows_no_usual_model() {
    let mut bakery = Bakery::limited(RunLimits { calls: 100, ..RunLimits::default() });
    bakery.offer(doing("read", |_, _| std::future::ready(Ok(ToolOutcome::succeeded("x".repeat(10_000_000))))));
    let read = |turn: usize| {
        let calls: Vec<String> = (0..5).map(|call| format!("read('{turn} {call}');\n")).collect();
        calling(&calls.concat())
    };
    let model = Scripted::saying((0..12).map(read).chain([DONE.to_owned(), ANSWER.to_owned()]));
    let ran = bakery.run(&model).await;
    assert!(ran.completed().is_some());
    let (last, _) = model.asked().pop().unwrap();
    let size: usize = last.iter().map(|message| message.content.len()).sum();
    assert!((LONGEST_CONVERSATION..LONGEST_CONVERSATION + 12 * (FEWEST_RESULTS + 1_000)).contains(&size), "{size}");
    assert!(ran.written.replies[11].text.contains("of 10000000 bytes)"), "what was cut is told");
}

#[tokio::test]
async fn a_result_cut_for_lack_of_room_can_be_read_again() {
    let mut bakery = Bakery::new();
    let read = Arc::new(AtomicUsize::new(0));
    let counted = read.clone();
    bakery.offer(doing("read", move |_, _| {
        counted.fetch_add(1, SeqCst);
        std::future::ready(Ok(ToolOutcome::succeeded("x".repeat(60_000))))
    }));
    let five: Vec<String> = (0..5).map(|number| format!("read('{number}');\n")).collect();
    let alone = calling("read('3');");
    let model = Scripted::saying([calling(&five.concat()).as_str(), &alone, &alone, DONE, ANSWER]);
    let ran = bakery.run(&model).await;
    assert!(ran.completed().is_some());
    let told = told(&model);
    assert_eq!(told[1].matches("of 60000 bytes)").count(), 5);
    assert!(told[2].contains(&"x".repeat(60_000)) && told[3] == told[2]);
    assert_eq!(read.load(SeqCst), 6, "and is then known");
}

/// Some services reject empty messages.
#[tokio::test]
async fn an_answer_without_a_word_is_one_in_the_conversation() {
    let bakery = Bakery::new();
    let model = Scripted::saying([" \n", DONE, ANSWER]);
    let ran = bakery.run(&model).await;
    assert!(ran.completed().is_some());
    let (last, _) = model.asked().pop().unwrap();
    assert_eq!(last[2], Message::assistant("(no answer)"));
    let dialogue = Dialogue::resume(taken_up(&ran.written, bakery.prompt()), |_| true);
    assert_eq!(dialogue.messages, last, "also for who takes the run up");
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_asked_for_again_later() {
    let broken = clients::Error::new(UpstreamService::Llm, Failure::Undecodable("choices".into()));
    let ran = Bakery::new().run(&Scripted::new([Err(broken)])).await;
    assert!(matches!(ran.ended, Ended::Outage(Error::Upstream(_))), "{:?}", ran.ended);
}

#[tokio::test]
async fn the_usage_of_a_step_is_stored_with_it() {
    let mut first = completion(calling("look('a');"));
    first.usage.prompt_tokens = 70;
    first.usage.completion_tokens = 7;
    first.usage.cached_tokens = 64;
    first.usage.cost = Some(0.5);
    // Missing cost counts as zero.
    let model = Scripted::new([Ok(first.clone()), Ok(completion(DONE)), Ok(completion(ANSWER))]);
    let ran = Bakery::new().run(&model).await;
    let answer = &ran.written.answers[0];
    assert_eq!((answer.step, answer.prompt_tokens, answer.completion_tokens, answer.cached_tokens), (1, 70, 7, 64));
    assert_eq!((answer.text.as_str(), answer.model.as_str()), (first.text.as_str(), "scripted"));
    let spent =
        Spent { iterations: 2, calls: 1, prompt_tokens: 70, completion_tokens: 7, cached_tokens: 64, cost: 0.5 };
    assert_eq!(ran.spent, spent);
    assert_eq!(ran.written.answers.iter().map(|answer| answer.step).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(ran.written.replies.iter().map(|reply| reply.step).collect::<Vec<_>>(), [1, 2]);
}

#[tokio::test]
async fn the_model_and_the_tools_leave_time_to_record_their_results() {
    let seen = Arc::new(std::sync::Mutex::new(None));
    let given = seen.clone();
    let mut bakery = Bakery::new();
    bakery.offer(doing("watch", move |text, deadline| {
        *given.lock().unwrap() = Some(deadline.remaining());
        std::future::ready(Ok(ToolOutcome::succeeded(text)))
    }));
    let model = Scripted::saying([calling("watch('a');\nfinalResponse();").as_str(), ANSWER]);
    let feedback = bakery.feedback(&model);
    let deadline = Deadline::after(Duration::from_secs(20));
    let feedback = FeedbackLoop { context: feedback.context.until(deadline), ..feedback };
    let ended = feedback.run(&mut Dialogue::new(&bakery.prompt()), &mut Written::default()).await;
    assert!(matches!(ended, Ended::Over(_)), "{ended:?}");
    let had = [model.had(), seen.lock().unwrap().iter().copied().collect()].concat();
    assert_eq!(had.len(), 3);
    assert!(had.iter().all(|had| *had <= Duration::from_secs(12)), "{had:?}");
}
