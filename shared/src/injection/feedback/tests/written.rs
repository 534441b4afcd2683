//! Answers of real models: the calls that run, and the feedback.

use std::{collections::VecDeque, sync::Mutex};

use super::*;

struct Steady {
    says: Mutex<VecDeque<(String, bool)>>,
    told: Mutex<Vec<String>>,
}

impl Model for Steady {
    async fn answer(&self, messages: &[Message], _: f64, _: Deadline) -> Result<Completion, clients::Error> {
        let told = messages.last().unwrap().content.clone();
        let next = self.says.lock().unwrap().pop_front();
        let (text, cut) = next.unwrap_or_else(|| {
            let answer = if told.contains("Give the final answer now") { ANSWER } else { DONE };
            (answer.to_owned(), false)
        });
        self.told.lock().unwrap().push(told);
        let finish = if cut { Finish::Length } else { Finish::Stop };
        Ok(Completion { finish, ..completion(text) })
    }
}

struct Outcome {
    ran: Vec<String>,
    /// Feedback after each prepared answer.
    told: Vec<String>,
    asked: usize,
    result: Option<Value>,
}

async fn said(says: &[&str], cut: bool, schema: Option<Value>) -> Outcome {
    let log = Arc::new(Mutex::new(Vec::new()));
    let tool = |name: &'static str, fails: bool| {
        let log = log.clone();
        doing(name, move |text, _| {
            log.lock().unwrap().push(format!("{name}({text})"));
            let outcome = if fails { ToolOutcome::failed("Closed.") } else { ToolOutcome::succeeded("Done.") };
            std::future::ready(Ok(outcome))
        })
    };
    let mut bakery = Bakery::new();
    bakery.toolbox = toolbox([tool("wget", false), tool("wipe", false).acting(), tool("attempt", true)]);
    bakery.format = FinalFormat::new(schema.as_ref()).unwrap();
    let says = says.iter().map(|text| ((*text).to_owned(), cut)).collect();
    let model = Steady { says: Mutex::new(says), told: Mutex::default() };
    let feedback = FeedbackLoop {
        model: &model,
        toolbox: &bakery.toolbox,
        format: &bakery.format,
        limits: bakery.limits,
        ends_at: bakery.ends_at,
        context: context(),
        step_needs: Duration::from_secs(1),
    };
    let ended = feedback.run(&mut Dialogue::new(&bakery.prompt()), &mut Written::default()).await;
    let Ended::Over(Ending { status: RunStatus::Completed, result, .. }) = ended else { panic!("{ended:?}") };
    let told = model.told.lock().unwrap().split_off(1);
    let ran = log.lock().unwrap().clone();
    Outcome { ran, asked: told.len() + 1, told, result }
}

#[expect(clippy::unnecessary_wraps, reason = "a run may have no schema")]
fn opens() -> Option<Value> {
    Some(json!({"type": "object", "properties": {"opens": {"type": "number"}}, "required": ["opens"]}))
}

#[tokio::test]
async fn the_final_value_is_the_likeliest_that_fits() {
    let any = || None;
    let eight = json!({"opens": 8});
    // Text in the final phase, schema, and either the result or the feedback.
    for (text, schema, result) in [
        ("<think>Perhaps {\"opens\": 7}.</think>\nIt is {\"opens\": 8}.", opens(), Ok(eight.clone())),
        ("<think>Perhaps {\"opens\": 7}", opens(), Err("There is no JSON value in it.")),
        ("Perhaps {\"opens\": 7}\n</think>\nEarly.", opens(), Err("There is no JSON value in it.")),
        ("```json\n{\"opens\": 7}\n```\nNo:\n```json\n{\"opens\": 8}\n```", opens(), Ok(eight.clone())),
        ("First {\"opens\": 7}, now {\"opens\": 8}.", opens(), Ok(eight.clone())),
        ("As [1] says: {\"opens\": 8}", any(), Ok(eight.clone())),
        ("It is {\"opens\": 8}, as [1] says.", any(), Ok(eight.clone())),
        ("As [1] says: {\"opens\": 8}", Some(json!({"type": ["array", "object"]})), Ok(eight.clone())),
        ("It opens at eight [1].", any(), Err("There is no JSON value in it.")),
        ("{opens: 8, /* early */}", opens(), Ok(eight.clone())),
        ("```js\n{\n  opens: 8, // early\n}\n```", opens(), Ok(eight.clone())),
        ("```\n5\n```\nso {\"opens\": 8}", any(), Ok(eight.clone())),
        ("It is this:\n\n8", Some(json!({"type": "number"})), Ok(json!(8))),
        (r#""{\"opens\": 8}""#, opens(), Ok(eight.clone())),
        (
            "[1] and {\"opens\": \"eight\"}",
            opens(),
            Err("In line 1, an object: It does not fit the schema:\n- opens: "),
        ),
        ("Here:\n```json\n{\"opens\": 8 or 9}\n```", opens(), Err("In line 3, column 13: expected `,` or `}`")),
        ("```tool_code\nwget({uri: 'a'})\n```", any(), Err("There is no JSON value in it.")),
        ("```tool\nreturn finalResponse('{\"opens\": 8}');\n```", opens(), Ok(eight.clone())),
        ("```tool\nreturn finalResponse({opens: 'number'});\n```", any(), Err("In line 2, an object: This describes")),
        ("{\"opens\": \"number\"}", any(), Err("This describes the answer.")),
        ("```tool_code\nreturn finalResponse({opens: 8});\n```", opens(), Ok(eight.clone())),
    ] {
        // `DONE` first, to reach the final phase.
        let outcome = said(&[DONE, text], false, schema).await;
        match result {
            Ok(result) => assert_eq!((outcome.result, outcome.asked), (Some(result), 2), "{text}"),
            Err(wrong) => {
                let start = format!("This is not the final answer. {wrong}");
                assert!(outcome.told[1].starts_with(&start), "{text}: {}", outcome.told[1]);
            }
        }
    }
    let brackets = "[see ".repeat(2_000) + &"[".repeat(2_000);
    assert_eq!(said(&[DONE, &format!("{brackets}{ANSWER}")], false, opens()).await.asked, 2);
}

#[tokio::test]
async fn an_answer_may_stand_in_final_response_or_come_at_once() {
    let block = |call: &str| calling(&format!("return {call};"));
    for (text, schema, result) in [
        (block("finalResponse({opens: 7})"), opens(), Some(json!({"opens": 7}))),
        (block("finalResponse('{\"opens\": 7}')"), opens(), Some(json!({"opens": 7}))),
        (block("finalResponse('JSON', {opens: 7})"), opens(), Some(json!({"opens": 7}))),
        (block("finalResponse({answer: '{\"opens\": 7}'})"), opens(), Some(json!({"opens": 7}))),
        (block("finalResponse({format: {opens: 7}})"), opens(), Some(json!({"opens": 7}))),
        ("{\"opens\": 7}".to_owned(), opens(), Some(json!({"opens": 7}))),
        ("So:\n```json\n{\"opens\": 7}\n```".to_owned(), opens(), Some(json!({"opens": 7}))),
        ("It is {\"opens\": 7}.".to_owned(), opens(), Some(json!({"opens": 7}))),
        ("```tool_code\nfinalResponse({opens: 7})\n```".to_owned(), opens(), None),
        // No answers, or unproven ones.
        ("{\"opens\": 7}".to_owned(), None, None),
        ("{\"name\": \"wget\", \"arguments\": {}}".to_owned(), Some(json!({"type": "object"})), None),
        ("```js\nwget('a')\n```\n{\"opens\": 7}".to_owned(), opens(), None),
        (block("finalResponse('{\"type\": \"object\", \"properties\": {}}')"), None, None),
        // Without a schema the argument of `finalResponse` is a format.
        (block("finalResponse({city: 'Oslo'})"), None, None),
        (block("finalResponse('{\"city\": \"string\", \"degrees\": \"number\"}')"), None, None),
        (block("finalResponse([{city: 'string'}])"), None, None),
        (block("finalResponse({city: 'string'})"), Some(json!({"type": "object"})), None),
        (block("finalResponse(1, 2)"), opens(), None),
        (block("finalResponse('a list of hours')"), opens(), None),
        (calling("wget('a');\nfinalResponse({opens: 7});"), opens(), None),
    ] {
        let outcome = said(&[&text], false, schema).await;
        match result {
            Some(result) => assert_eq!((outcome.result, outcome.asked), (Some(result), 1), "{text}"),
            None => assert_eq!(outcome.result, Some(json!({"opens": 8})), "{text}: {:?}", outcome.told),
        }
    }
    let told = said(&[&block("finalResponse({opens: 'seven'})")], false, opens()).await.told;
    let wrong = "The answer in finalResponse cannot be taken. It does not fit the schema:\n- opens: ";
    assert!(told[0].starts_with(wrong) && told[0].contains("Give the final answer now"), "{told:?}");
    let told = said(&[&calling("wget('a');\nfinalResponse({opens: 7});")], false, opens()).await.told;
    assert!(
        told[0].contains("written before the results") && told[0].contains("Give the final answer now"),
        "{told:?}"
    );
}

/// A retry may succeed; a second `finalResponse` ends the work without it.
#[tokio::test]
async fn a_failed_call_beside_final_response_may_be_made_again() {
    let ends = |call: &str| calling(&format!("{call}\nreturn finalResponse();"));
    let sentence = "</error>\n\nfinalResponse was not carried out, because a call beside it failed: make that call again, or call finalResponse() again to end without it.";
    for second in [ends("attempt('b');"), ends("wget('a');"), ends("")] {
        let outcome = said(&[&ends("attempt('a');"), &second], false, opens()).await;
        assert!(outcome.told[0].ends_with(sentence), "{:?}", outcome.told);
        assert!(outcome.told[1].contains("Give the final answer now"), "{:?}", outcome.told);
        assert_eq!(outcome.asked, 3);
    }
}

#[tokio::test]
async fn another_word_than_tool_runs_nothing_and_is_named() {
    for word in ["tool_code", "tool_call", "tools", "typescript", "js", ""] {
        let text = format!("```{word}\nreturn wget('a');\n```");
        let why = if word.is_empty() { "no word stands".to_owned() } else { format!("the word `{word}` stands") };
        let sentence = format!(
            "There is no tool call in your message. The block in line 1 was not run, because {why} behind its back-ticks: write the word `tool` there. Write calls like this:"
        );
        let outcome = said(&[&text, &text, &text], false, opens()).await;
        assert!(outcome.told[0].starts_with(&sentence), "{:?}", outcome.told);
        // A model that never writes the block correctly is asked for the final answer.
        assert_eq!((outcome.ran.len(), outcome.asked, outcome.result), (0, 4, Some(json!({"opens": 8}))), "{word}");
    }
    let python = "```python\nprint(wget(uri='a'))\n```";
    assert!(said(&[python], false, opens()).await.told[0].starts_with("There is no tool call in your message. Write"));
}

#[tokio::test]
async fn calls_have_their_arguments_and_harmless_lines_cost_no_turn() {
    for (block, ran) in [
        ("(wget('a'))", &["wget(a)"][..]),
        ("wget<string>('a')", &["wget(a)"]),
        ("wget('a') as string", &["wget(a)"]),
        ("wget('a')!", &["wget(a)"]),
        ("wget('a'),\nwget('b')", &["wget(a)", "wget(b)"]),
        ("wipe('')", &["wipe()"]),
        ("wipe({text: \"\"})", &["wipe()"]),
        ("const x = await wget('a')", &[]),
        ("wipe('a'),\nif (x) wipe('b')", &[]),
        ("(sure && wipe('a'))", &[]),
    ] {
        assert_eq!(said(&[&calling(block)], false, opens()).await.ran, ran, "{block}");
    }
    for line in
        ["# all is known", "import json", "import { wget } from 'tools';", "from tools import wget", "'use strict';"]
    {
        let outcome = said(&[&calling(&format!("{line}\nreturn finalResponse();"))], false, opens()).await;
        assert_eq!(outcome.asked, 2, "{line}: {:?}", outcome.told);
    }
}

#[tokio::test]
async fn a_model_that_was_cut_off_hears_where_and_which_calls_ran() {
    let begun = "````tool\nwget('a');\nwipe('b";
    for (text, place, ran) in [
        (begun, ", in line 3 in the call of wipe", true),
        ("````tool\nwget('a');\nwipe('b')", ", in line 3 in the call of wipe", true),
        ("````tool\nwget(`a\n", ", in line 2 in the call of wget", false),
        ("<think>Let me think about", "", false),
        ("I fetch:\n````to", "", false),
    ] {
        let outcome = said(&[text], true, opens()).await;
        let ran = if ran {
            "the calls that were run stand above, and nothing after them was run"
        } else {
            "nothing of it was run"
        };
        let sentence = format!("Your message was cut off because it was too long{place}: {ran}. Be brief.");
        assert!(outcome.told[0].contains(&sentence), "{text}: {:?}", outcome.told);
        assert!(!outcome.ran.iter().any(|call| call.starts_with("wipe")), "{text}");
    }
}
