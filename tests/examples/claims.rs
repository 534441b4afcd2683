//! Measures a real model on the transcripts of `docs/examples/claims`:
//! `make claims LLM_API_KEY=… LLM_MODEL=… LLM_URL=…`.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program for people, with its own variables"
)]

use std::env;

use local::LlmService;
use serde_json::json;
use shared::clients::{
    Outbound, http_client,
    llm::{Account, Llm},
};
use tests::claims::{Score, measure, transcripts};

#[tokio::main]
async fn main() {
    let Some(LlmService { api_key, url, model }) = LlmService::of(|name| env::var(name).ok()) else {
        println!(
            "Give the key of an LLM: make claims LLM_API_KEY=… [LLM_MODEL=openai/gpt-4o-mini] [LLM_URL=https://…]"
        );
        std::process::exit(2);
    };
    let model = model.unwrap_or_else(|| "openai/gpt-4o-mini".to_owned());
    let credentials = json!({"api_key": api_key, "base_url": url});
    let account = Account::of_platform(serde_json::from_value(credentials).unwrap(), &model).unwrap();
    let llm = Llm::new(http_client().unwrap(), Outbound::new(Vec::new()).unwrap());
    let mut total = Score::default();
    for transcript in transcripts() {
        let mut score = Score::default();
        match measure(&transcript, &llm, &account, &mut score).await {
            Ok(()) => {}
            Err(error) => {
                println!("{}: {}", transcript.name, shared::error::chain(&error));
                std::process::exit(1);
            }
        }
        if score.wrong + score.missed + score.unanswered > 0 {
            println!("{}: {} wrong, {} missed ({})", transcript.name, score.wrong, score.missed, transcript.title);
        }
        total.right += score.right;
        total.wrong += score.wrong;
        total.missed += score.missed;
        total.unanswered += score.unanswered;
    }
    println!(
        "{model}: precision {:.2}, recall {:.2} of {} unproven claims; {} answers were no report",
        total.precision(),
        total.recall(),
        total.right + total.missed,
        total.unanswered
    );
}
