//! Shared parts of the LLM client's contract tests: accounts, a conversation, a secrecy check.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong and stops")]

use local::standins::{
    Fault, Standin,
    llm::{self as standin, Options},
};
use serde_json::{Value, json};
use shared::{
    clients::{
        Error, Llm, Outbound, http_client,
        llm::{Account, Message},
    },
    error::chain,
    models::OrganizationId,
};

use tests::clients::anywhere;

pub(crate) const PRIVATE: &str = "My name is Ada Lovelace and my number is +15550100001.";
pub(crate) const MODEL: &str = "openrouter/auto";

pub(crate) fn start() -> Standin<standin::Llm> {
    standin::start(anywhere(), Options::default()).unwrap()
}

/// A client whose guard allows these hosts.
pub(crate) fn client(open: &[&str]) -> Llm {
    let open = open.iter().map(|url| url.trim_start_matches("http://").to_owned()).collect();
    Llm::new(http_client().unwrap(), Outbound::new(open).unwrap())
}

pub(crate) fn platforms(content: Value) -> Account {
    Account::of_platform(serde_json::from_value(content).unwrap(), MODEL).unwrap()
}

pub(crate) fn own(organization: OrganizationId, content: Value) -> Account {
    Account::own(organization, serde_json::from_value(content).unwrap(), MODEL)
}

/// The platform's account with a key.
pub(crate) fn keyed(url: &str) -> Account {
    platforms(json!({"api_key": "llm-local-key", "base_url": format!("{url}/v1")}))
}

pub(crate) fn client_credentials(url: &str) -> Value {
    json!({
        "client_id": "llm-client", "client_secret": "llm-client-secret",
        "token_url": format!("{url}/oauth/token"), "base_url": format!("{url}/v1"),
    })
}

pub(crate) fn conversation() -> Vec<Message> {
    vec![Message::system("Be brief."), Message::user(PRIVATE)]
}

/// Asserts that neither the conversation nor a secret appears in errors or the log.
pub(crate) fn said_in_confidence(error: &Error) {
    for text in [error.to_string(), chain(error), error.public(), format!("{error:?}")] {
        for private in ["Lovelace", "5550100001", "llm-local-key", "llm-client-secret", "llm_at_"] {
            assert!(!text.contains(private), "{private} is in: {text}");
        }
    }
}

pub(crate) fn chat(fault: Fault) -> Fault {
    fault.on("POST", "/chat/completions")
}
