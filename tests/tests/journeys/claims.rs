//! `verify_claims`: the words of an agent are compared with the effects of its tools.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use std::{
    path::Path,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{
    Answer, Event, Options, World,
    automation::AMPLE,
    claims::{Score, measure, transcripts},
    clients::until,
    phone,
    standins::{
        self, Fault, Standin,
        llm::{Llm, Turn},
        vapi::ToolCall,
    },
};

const CALL: &str = "55555555-5555-4555-8555-555555555555";
const SECRET_WORD: &str = "swordfish";

/// A call in which one SMS was sent, and an own LLM account.
struct Claims {
    world: World,
    own: Standin<Llm>,
    tool: Value,
}

impl Claims {
    async fn of(verify: bool) -> Self {
        let own = standins::llm::start(
            ([127, 0, 0, 1], 0).into(),
            standins::llm::Options { api_key: "own-key".into(), ..Default::default() },
        );
        let own = own.unwrap();
        let world = World::with(Options { open_hosts: vec![own.address().to_string()], ..Options::default() }).await;
        let key = json!({"api_key": "own-key", "base_url": own.url, "verify_claims": verify});
        let stored = world.keys(&world.home, "PUT", "/llm", &key).await.expect(200);
        assert_eq!(stored["verify_claims"], verify);
        let tool = world.attached(&tests::ai_sms()).await;
        world.incoming_call(&world.home, CALL, &phone(1));
        let call = world.call(&tool, json!({"text": "Your table is booked.", "recipients": [phone(1)]}));
        world.call_tool(&ToolCall { call_id: Some(CALL.into()), ..call }).await.result();
        Self { world, own, tool }
    }

    /// VAPI's report of the call's end, with these sentences.
    async fn report(&self, said: &[(&str, &str)]) -> Answer {
        self.report_of(CALL, said).await
    }

    async fn report_of(&self, call: &str, said: &[(&str, &str)]) -> Answer {
        let messages: Vec<Value> =
            said.iter().map(|(role, text)| json!({"role": role, "message": text, "time": 1.0})).collect();
        let report = json!({"message": {
            "type": "end-of-call-report", "endedReason": "customer-ended-call", "call": {"id": call},
            "artifact": {"messages": messages},
        }});
        let bearer = format!("Bearer {}", self.world.options.webhook_bearer.as_ref().unwrap());
        self.world.send("calls", &Event::post("/api/vapi/events", &report).header("authorization", &bearer)).await
    }

    async fn said(&self) -> Answer {
        self.report(&[
            ("system", "You are an agent."),
            ("bot", "I sent you the text."),
            ("user", &format!("Thanks, my word is {SECRET_WORD}.")),
            ("bot", "And I told the kitchen."),
        ])
        .await
    }

    fn reports(&self, claims: &Value) {
        self.own.script([Turn::tool("report_claims", json!({"claims": claims}))]);
    }

    async fn check(&self) -> Value {
        self.world.calls(&format!("/{CALL}")).await.expect(200)["claim_check"].clone()
    }

    fn asked(&self) -> Vec<Value> {
        self.own.requests().into_iter().map(|request| request.body).collect()
    }

    fn name(&self) -> &str {
        self.tool["name"].as_str().unwrap()
    }
}

#[tokio::test]
async fn a_claim_without_proof_is_flagged_and_no_word_is_kept() {
    let claims = Claims::of(true).await;
    claims.reports(&json!([
        {"sentence": 1, "tool": claims.name(), "line": 1}, {"sentence": 2, "tool": null, "line": null},
    ]));
    claims.said().await.expect(200);
    let check = claims.check().await;
    assert_eq!((&check["status"], &check["claims"]), (&json!("checked"), &json!(2)));
    assert_eq!(check["unproven"], json!([{"tool": null}]));
    assert!(check["cost"].as_f64().unwrap() > 0.0);
    let [asked] = claims.asked().try_into().unwrap();
    let told: Value = serde_json::from_str(asked["messages"][1]["content"].as_str().unwrap()).unwrap();
    let sentences =
        json!([{"sentence": 1, "text": "I sent you the text."}, {"sentence": 2, "text": "And I told the kitchen."}]);
    assert_eq!((&told["agent_said"], &told["tools"]), (&sentences, &json!([claims.name()])));
    assert_eq!(
        (&told["receipt"][0]["tool"], &told["receipt"][0]["status"]),
        (&json!(claims.name()), &json!("succeeded"))
    );
    assert!(!asked.to_string().contains(SECRET_WORD) && !asked.to_string().contains(&phone(1)), "{asked}");
    let tables = ["calls", "executions", "events", "audit_entries", "usage", "idempotency"];
    let everything = tables.map(|table| json!(claims.world.aws.rows(table)).to_string()).concat();
    for word in [SECRET_WORD, "told the kitchen", "sent you the text"] {
        assert!(!everything.contains(word), "{word}");
    }
    let spent = json!(claims.world.aws.rows("usage")).to_string();
    assert!(spent.contains("own_cost_per_month"), "{spent}");
}

#[tokio::test]
async fn the_effects_before_a_transfer_prove_the_words_of_the_call_after_it() {
    let claims = Claims::of(true).await;
    claims.world.incoming_call(&claims.world.home, "again", &phone(1));
    let former = json!({"returned_from": "gone", "former_calls": [CALL, "gone"]});
    claims.world.aws.change("calls", "again", former);
    claims.reports(&json!([{"sentence": 1, "tool": claims.name(), "line": 1}]));
    claims.report_of("again", &[("bot", "I sent you the text before.")]).await.expect(200);
    let check = claims.world.calls("/again").await.expect(200)["claim_check"].clone();
    assert_eq!((&check["status"], &check["claims"], &check["unproven"]), (&json!("checked"), &json!(1), &json!([])));
}

#[tokio::test]
async fn a_report_that_comes_twice_is_checked_once() {
    let claims = Claims::of(true).await;
    claims.reports(&json!([]));
    claims.said().await.expect(200);
    claims.said().await.expect(200);
    assert_eq!((claims.asked().len(), &claims.check().await["claims"]), (1, &json!(0)));
}

#[tokio::test]
async fn nothing_is_asked_unless_the_organization_wants_it() {
    let claims = Claims::of(false).await;
    claims.said().await.expect(200);
    assert_eq!((claims.asked().len(), claims.check().await), (0, Value::Null));
    // Neither is a call without a sentence of the agent's.
    let claims = Claims::of(true).await;
    claims.report(&[("user", "Hello?")]).await.expect(200);
    assert_eq!((claims.asked().len(), claims.check().await), (0, Value::Null));
}

#[tokio::test]
async fn a_model_that_fails_leaves_the_report_taken_and_the_check_failed() {
    let claims = Claims::of(true).await;
    claims.own.inject(Fault::status(401).times(10));
    claims.said().await.expect(200);
    assert_eq!(claims.check().await["status"], "failed");
    assert_eq!(claims.world.calls(&format!("/{CALL}")).await.expect(200)["status"], "ended");

    let claims = Claims::of(true).await;
    claims.own.script([Turn::text("I think that all is well.")]);
    claims.said().await.expect(200);
    assert_eq!(claims.check().await["status"], "failed");
    let claims = Claims::of(true).await;
    claims.reports(&json!([{"sentence": 7, "tool": null, "line": 1}]));
    claims.said().await.expect(200);
    assert_eq!(claims.check().await["status"], "failed");
}

#[tokio::test]
async fn a_used_up_budget_asks_no_model() {
    let mut claims = Claims::of(true).await;
    let home = &claims.world.home.organization_id;
    claims.world.aws.change("organizations", home, json!({"budgets": {"own_cost_per_month": 0}}));
    claims.world.restart();
    claims.said().await.expect(200);
    assert_eq!((claims.asked().len(), &claims.check().await["status"]), (0, &json!("over_budget")));
}

/// The first example in the page that has these words, as it stands there.
pub(crate) fn example(words: &str) -> Value {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs/automations.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut blocks = page.split("```json\n").skip(1).map(|rest| rest.split("\n```").next().unwrap());
    serde_json::from_str(blocks.find(|block| block.contains(words)).unwrap()).unwrap()
}

#[tokio::test]
async fn an_automation_hears_of_unproven_claims_alone() {
    for (proof, texts) in [(None, 1), (Some(1), 0)] {
        let claims = Claims::of(true).await;
        let world = &claims.world;
        world.catalogue_service("calls");
        let mut sms = example("\"Text the receipt\"");
        sms["from"]["phone_number_id"] = json!(world.home.phone_number_id);
        world.tool(&sms).await;
        let automation = world.active(&example("\"Unproven claims\"")).await;
        let before = world.twilio.messages().len();
        claims.reports(&json!([{"sentence": 1, "tool": claims.name(), "line": proof}]));
        claims.said().await.expect(200);
        assert_eq!(world.run_scheduled_within(30).await, 0);
        assert_eq!(world.run_loop(AMPLE).await, 0);
        assert_eq!(world.runs_of(&automation).len(), texts);
        let sent = world.twilio.messages().split_off(before);
        assert_eq!(sent.len(), texts, "{sent:?}");
        if let Some(text) = sent.first() {
            assert!(text.body.contains("no tool did (1)") && text.body.contains(CALL), "{}", text.body);
        }
    }
}

/// The model's time is not that of a live call.
#[tokio::test]
async fn a_slow_model_holds_the_report_for_eight_seconds_at_most() {
    let claims = Claims::of(true).await;
    claims.own.inject(Fault::delay(30_000));
    let begun = Instant::now();
    claims.said().await.expect(200);
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert_eq!(claims.check().await["status"], "failed");
}

#[tokio::test]
async fn a_fifth_check_at_once_is_not_made() {
    let claims = Claims::of(true).await;
    let calls: Vec<String> = (0..6).map(|number| format!("call-{number}")).collect();
    for call in &calls {
        claims.world.incoming_call(&claims.world.home, call, &phone(1));
    }
    claims.own.inject(Fault::held().times(6));
    claims.own.script((0..6).map(|_| Turn::tool("report_claims", json!({"claims": []}))));
    let said = [("bot", "I sent you the text.")];
    let reports = calls.iter().map(|call| claims.report_of(call, &said));
    let count = |wanted: &str| {
        let rows = claims.world.aws.rows("calls");
        rows.iter().filter(|row| row["claim_check"]["status"] == wanted).count()
    };
    let decided = async {
        until(|| claims.asked().len() + count("busy") + count("failed") >= calls.len()).await;
        claims.own.release();
    };
    let minute = Timestamp::now().minute();
    let (answers, ()) = tokio::join!(join_all(reports), decided);
    for answer in answers {
        answer.expect(200);
    }
    let one_minute = Timestamp::now().minute() == minute;
    let (checked, busy) = (count("checked"), count("busy"));
    assert!(checked >= 4 && checked + busy == 6 && (checked == 4 || !one_minute), "{checked} {busy}");
    assert_eq!(claims.asked().len(), checked);
    // They gave their room back.
    claims.own.clear_faults();
    claims.reports(&json!([]));
    claims.said().await.expect(200);
    assert_eq!(claims.check().await["status"], "checked");
}

/// The model here answers with the labels, so the measure itself is measured.
#[tokio::test]
async fn the_labelled_transcripts_are_measured() {
    let own = standins::llm::start(([127, 0, 0, 1], 0).into(), standins::llm::Options::default()).unwrap();
    let transcripts = transcripts();
    assert_eq!(transcripts.len(), 60);
    let credentials = json!({"api_key": standins::llm::Options::default().api_key, "base_url": own.url});
    let account =
        shared::clients::llm::Account::of_platform(serde_json::from_value(credentials).unwrap(), "m").unwrap();
    let llm = shared::clients::llm::Llm::new(
        shared::clients::http_client().unwrap(),
        shared::clients::Outbound::new(vec![own.address().to_string()]).unwrap(),
    );
    let (mut right, mut blind) = (Score::default(), Score::default());
    for transcript in &transcripts {
        assert!(!transcript.title.is_empty() && transcript.language.len() == 2, "{}", transcript.name);
        let labels: Vec<Value> = transcript
            .claims
            .iter()
            .map(|claim| json!({"sentence": claim.sentence, "tool": claim.tool, "line": claim.line}))
            .collect();
        own.script([
            Turn::tool("report_claims", json!({"claims": labels})),
            Turn::tool("report_claims", json!({"claims": []})),
        ]);
        let before = right;
        measure(transcript, &llm, &account, &mut right).await.unwrap();
        assert_eq!(
            (right.wrong, right.missed, right.unanswered),
            (before.wrong, before.missed, before.unanswered),
            "{}",
            transcript.name
        );
        measure(transcript, &llm, &account, &mut blind).await.unwrap();
    }
    assert!(right.right >= 25 && blind.missed == right.right && blind.right == 0, "{right:?} {blind:?}");
    assert!((right.precision() - 1.0).abs() < 1e-9 && (right.recall() - 1.0).abs() < 1e-9 && blind.recall() < 1e-9);
}
