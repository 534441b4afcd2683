//! Runs as the API lists and shows them.

use std::time::Duration;

use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{
    Options, World, api_request,
    secret_names::{HARMLESS, SECRET, assert_shown, texts},
    standins::{self, llm::Turn, twilio},
};

use super::{SIX_MEGABYTES, calls, carry_on, part, patients, text};

#[tokio::test]
async fn runs_are_listed_by_page_newest_first_without_their_steps() {
    let world = World::start().await;
    let mut started = Vec::new();
    for number in 0..5 {
        let body = json!({"prompt": format!("Number {number}")});
        // The id of one with a key says nothing of when it was made.
        let key = format!("key {number}");
        let answer =
            if number % 2 == 0 { world.start_run(&body).await } else { world.start_run_once(&key, &body).await };
        started.insert(0, answer.expect(202));
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    world.start_run_as(&world.other, &json!({"prompt": "Theirs"})).await.expect(202);
    assert_eq!(world.runs("").await.expect(200), json!({"items": started, "next_cursor": null}));
    let (mut seen, mut query) = (Vec::new(), "?limit=2".to_owned());
    loop {
        let page = world.runs(&query).await.expect(200);
        seen.extend(page["items"].as_array().unwrap().clone());
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        let theirs = world.runs_as(&world.other, &format!("?cursor={cursor}")).await;
        assert!(theirs.status == 422 || theirs.body["items"].as_array().unwrap().len() <= 1, "{}", theirs.body);
        query = format!("?limit=2&cursor={cursor}");
    }
    assert_eq!(seen, started);
    for (query, field) in [("?limit=0", "limit"), ("?limit=201", "limit"), ("?cursor=x", "cursor")] {
        assert_eq!(world.runs(query).await.wrong_fields(), [field]);
    }
}

#[tokio::test]
async fn a_run_is_shown_step_by_step() {
    let world = World::start().await;
    let tool = world
        .tool(&json!({"type": "api_request", "label": "Look up", "method": "GET", "url": "https://nobody.example/"}))
        .await;
    let run = world.start_run(&json!({"prompt": "Look it up.", "tools": [tool["id"]]})).await.expect(202);
    let id = text(&run["id"]);
    let empty = world.run(id).await.expect(200);
    assert_eq!((&empty["steps"], &empty["result"], &empty["schema"]), (&json!([]), &Value::Null, &Value::Null));
    assert_eq!(empty["prompt"], "Look it up.");

    world.llm.script([
        Turn::text("I will look it up."),
        calls("return look_up();\nreturn no_such_tool(1);"),
        calls("return finalResponse();"),
        Turn::text("{\"found\": false}"),
    ]);
    carry_on(&world).await;
    let shown = world.run(id).await.expect(200);
    assert_eq!((&shown["status"], &shown["result"]), (&json!("completed"), &json!({"found": false})));
    assert!(shown["duration_ms"].is_u64() && shown["started_at"].is_string() && shown["finished_at"].is_string());
    let steps = shown["steps"].as_array().unwrap();
    let phases: Vec<&str> = steps.iter().map(|step| text(&step["phase"])).collect();
    assert_eq!(phases, ["tools", "tools", "tools", "final"]);
    assert_eq!(steps.iter().map(|step| step["step"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(steps[0]["answer"], "I will look it up.");
    assert!(text(&steps[0]["reply"]).contains("no tool call"), "{}", steps[0]);
    let called = &steps[1]["calls"];
    assert_eq!((&called[0]["name"], &called[0]["outcome"]), (&json!("look_up"), &json!("failed")), "{called:#}");
    assert_eq!((&called[1]["name"], &called[1]["outcome"]), (&json!("no_such_tool"), &json!("unknown")));
    assert!(!text(&called[0]["result"]).is_empty() && called[0]["arguments"] == json!({}), "{called:#}");
    let reply = text(&steps[1]["reply"]);
    assert!(reply.contains("<error call=\"1\" tool=\"look_up\">\n…\n</error>"), "{reply}");
    assert!(!reply.contains(text(&called[0]["result"])), "a result stands with its call: {reply}");
    assert!(text(&steps[2]["calls"][0]["result"]).contains("final answer"), "{}", steps[2]);
    assert_eq!((&steps[3]["reply"], &steps[3]["calls"]), (&Value::Null, &json!([])));

    let sum = |name: &str| steps.iter().map(|step| step[name].as_u64().unwrap()).sum::<u64>();
    assert_eq!(shown["spent"]["prompt_tokens"], sum("prompt_tokens"));
    assert_eq!(shown["spent"]["tokens"], sum("prompt_tokens") + sum("completion_tokens"));
    let row = world.runs("").await.expect(200)["items"][0].clone();
    assert!(row.as_object().unwrap().iter().all(|(name, value)| shown[name] == *value), "{row} {shown}");
    for internal in ["organization_id", "lease_token", "lease_until", "attempts", "request_hash", "expires_at", "part"]
    {
        assert!(shown.get(internal).is_none() && row.get(internal).is_none(), "{internal}");
    }
}

#[tokio::test]
async fn steps_are_redacted_and_the_result_is_not() {
    let world = World::start().await;
    let tool = patients(&world).await;
    let prompt =
        "Is the brace of Ada Lovelace here? Mail ada@example.com, call +1 415 555 0101, api_key=blue-horse-seven.";
    let run = world.start_run(&json!({"prompt": prompt, "tools": [tool["id"]]})).await.expect(202);
    let result = json!({"patient": "Ada Lovelace", "phone": "+14155550101"});
    world.llm.script([
        calls("// Ada Lovelace, (415) 555-0101\nreturn find_patients({query: \"brace\\x20Lovelace\"});"),
        calls("return find_people(\"Grace O\\'Hopper\");\nreturn find_patients(\"Grace O\\'Hopper\" + 1);"),
        Turn::text("Ada Lovelace asked for \"brace Lovelace\"."),
        calls("return finalResponse();"),
        Turn::text(&result.to_string()),
    ]);
    carry_on(&world).await;
    assert!(world.llm.script_left().is_empty());
    let shown = world.run(text(&run["id"])).await.expect(200);
    assert_eq!(shown["result"], result, "the organization's own");
    let mut rest = shown.clone();
    rest["result"] = Value::Null;
    let rest = rest.to_string();
    for hidden in ["0101", "ada@example.com", "blue-horse", "brace Lovelace"] {
        assert!(!rest.contains(hidden), "{hidden}: {shown:#}");
    }
    for instead in ["[number]", "[email]", "[secret]", "[redacted]"] {
        assert!(rest.contains(instead), "{instead}: {shown:#}");
    }
    // In how many ways a call can be written: it is shown by its fields, or not at all.
    for escaped in ["x20", "Hopper"] {
        assert!(!rest.contains(escaped), "{escaped}: {shown:#}");
    }
    let answers: Vec<&str> = shown["steps"].as_array().unwrap().iter().map(|step| text(&step["answer"])).collect();
    assert_eq!(answers[..2], ["[redacted]"; 2]);
    assert!(answers[2].contains("asked for \"[redacted]\""), "{answers:?}");
    let results: Vec<&Value> =
        shown["steps"][1]["calls"].as_array().unwrap().iter().map(|call| &call["result"]).collect();
    assert_eq!(results, ["[redacted]", "[redacted]"]);
    let call = &shown["steps"][0]["calls"][0];
    assert_eq!(call["arguments"], json!({"query": "[redacted]"}));
    assert_eq!(call["result"], json!({"entries": "[redacted]", "matched": 1}), "field by field");
    let raw = part(&world, &run, "0001#reply").unwrap();
    assert!(text(&raw["text"]).contains("Ada Lovelace"), "the run itself goes on with all of it");
}

#[tokio::test]
async fn a_long_value_is_cut_with_a_marker() {
    let world = World::start().await;
    let run = world.start_run(&json!({"prompt": "long ".repeat(15_000)})).await.expect(202);
    world.llm.script([
        Turn::text(&"word ".repeat(3_000)),
        calls("return finalResponse();"),
        Turn::text(&json!({"essay": "word ".repeat(3_000)}).to_string()),
    ]);
    carry_on(&world).await;
    let shown = world.run(text(&run["id"])).await.expect(200);
    let (answer, prompt) = (text(&shown["steps"][0]["answer"]), text(&shown["prompt"]));
    assert!(answer.ends_with(" of 15000 bytes)") && (4_000..4_200).contains(&answer.len()), "{} bytes", answer.len());
    assert!(
        prompt.contains("… (cut: the first ") && (12_000..17_000).contains(&prompt.len()),
        "{} bytes",
        prompt.len()
    );
    assert_eq!(text(&shown["result"]["essay"]).len(), 15_000, "the result is whole");
}

#[tokio::test]
async fn a_long_run_is_shown_within_lambdas_limit() {
    let world = World::start().await;
    let run = world.start_run(&json!({"prompt": "Hello"})).await.expect(202);
    let now = Timestamp::now();
    // Quotes double on their way out, and again.
    let words = "say \"so\" \\ ".repeat(1_500);
    for step in 1..=100 {
        let id = &run["id"];
        world.aws.put("automation_runs", &json!({
            "id": id, "part": format!("{step:04}#answer"), "step": step, "text": words, "started_at": now, "duration_ms": 5,
        }));
        let call = json!({"name": "x", "arguments": json!({"a": words[..700]}).to_string(), "outcome": "succeeded",
            "result_at": [0, words.len()], "duration_ms": 1});
        world.aws.put(
            "automation_runs",
            &json!({
                "id": id, "part": format!("{step:04}#reply"), "step": step, "text": words, "calls": vec![call; 45],
                "phase": {"phase": "tools", "reminded": false},
            }),
        );
    }
    let shown = world.run(text(&run["id"])).await.expect(200);
    let sent = json!({"statusCode": 200, "body": shown.to_string()}).to_string().len();
    assert!(sent < SIX_MEGABYTES, "{sent} bytes");
    assert!(sent > SIX_MEGABYTES / 12, "as much as will do: {sent} bytes");
    let steps = shown["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 100);
    let last = &steps[99];
    assert_eq!((last["calls"].as_array().unwrap().len(), &last["calls_left_out"]), (40, &json!(5)));
    assert!(text(&last["calls"][39]["result"]).ends_with(" bytes)"), "{}", last["calls"][39]);
    assert!(text(&last["answer"]).ends_with(" bytes)"), "{}", last["answer"]);
}

#[tokio::test]
async fn every_name_of_a_secret_hides_its_value() {
    let crm = twilio::start("127.0.0.1:0".parse().unwrap(), twilio::Options::default()).unwrap();
    let world = World::with(Options { open_hosts: vec![crm.address().to_string()], ..Options::default() }).await;
    for (names, expected) in [(&SECRET[..], false), (&HARMLESS[..], true)] {
        let (given, answered) = (texts(names, "given"), texts(names, "answered"));
        let mut config = api_request("POST", &crm.url);
        config["body"] = names.iter().map(|name| ((*name).to_owned(), json!({"mode": "ai", "prompt": "p"}))).collect();
        let tool = world.tool(&config).await;
        let run = world.start_run(&json!({"prompt": "Look it up.", "tools": [tool["id"]]})).await.expect(202);
        let arguments: Value = given.iter().map(|(name, text)| (format!("body_{name}"), text.clone())).collect();
        crm.inject(standins::Fault::status(200).with_body(json!(answered)));
        let name = text(&tool["name"]).replace('-', "_");
        world.llm.script([
            calls(&format!("return {name}({arguments});")),
            Turn::text(&format!("It was {}.", given.values().map(text).collect::<Vec<_>>().join(" "))),
            calls("return finalResponse();"),
            Turn::text("1"),
        ]);
        carry_on(&world).await;
        let shown = world.run(text(&run["id"])).await.expect(200);
        let call = &shown["steps"][0]["calls"][0];
        assert_eq!(
            (&call["outcome"], call["arguments"].as_object().unwrap().len()),
            (&json!("succeeded"), names.len()),
            "{call}"
        );
        assert_eq!(call["result"].as_object().unwrap().len(), names.len(), "{call}");
        assert_shown(call, &given, expected);
        assert_shown(call, &answered, expected);
        for step in [&shown["steps"][0]["answer"], &shown["steps"][1]["answer"]] {
            assert_shown(step, &given, expected);
        }
        assert_shown(&shown, &answered, expected);
    }
}
