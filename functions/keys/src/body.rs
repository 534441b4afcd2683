//! Bodies of keys.
//!
//! ```json
//! {"api_key": "…", "webhook_bearer": "…"}
//! {"api_key": "…", "base_url": "https://openrouter.ai/api/v1", "model": "…"}
//! {"client_id": "…", "client_secret": "…", "token_url": "https://…", "base_url": "https://…", "model": "…", "scope": "…",
//!  "audience": "…"}
//! ```
//!
//! Those for `llm` also take `"verify_claims": true`.
//!
//! The first is for `vapi`; the others for `llm`, which speaks OpenAI's API: with a key, at OpenRouter unless another address
//! is given, or with the client credentials of OAuth.

use secrecy::SecretString;
use serde_json::{Value, json};
use shared::{
    Result,
    clients::{Outbound, llm::OPENROUTER, vapi::Account},
    error::Problems,
    fields::Fields,
};

/// In characters. Some issuers' keys are JWTs.
const LONGEST_KEY: usize = 4_000;
const LONGEST_URL: usize = 2_000;
const LONGEST_MODEL: usize = 200;
/// Characters of a scope or an audience.
const LONGEST_GRANT: usize = 1_000;

/// The allowed fields depend on the service.
pub(crate) struct AnyKey;

shared::described!(AnyKey => {"anyOf": [
    {"$ref": "#/components/schemas/VapiKey"}, {"$ref": "#/components/schemas/LlmKey"}, {"$ref": "#/components/schemas/LlmClient"}
]});

pub(crate) fn vapi(body: &Value) -> Result<Account> {
    let mut problems = Problems::default();
    let account = Fields::of(body, "", &mut problems).and_then(|mut fields| {
        let api_key = required_credential(&mut fields, "api_key");
        let webhook_bearer = credential(&mut fields, "webhook_bearer");
        fields.finish();
        Some(Account::new(SecretString::from(api_key?), webhook_bearer.map(SecretString::from)))
    });
    problems.into_result(account)
}

/// The content of the secret, and `verify_claims`.
pub(crate) fn llm(body: &Value, outbound: &Outbound) -> Result<(SecretString, bool)> {
    let mut problems = Problems::default();
    let content = Fields::of(body, "", &mut problems).map(|mut fields| {
        const OF_CLIENT: [&str; 3] = ["client_id", "client_secret", "token_url"];
        let oauth = OF_CLIENT.iter().any(|name| fields.get(name).is_some());
        let mut content = if oauth {
            if fields.misplaced("api_key") {
                fields.problem("api_key", "cannot be given beside client credentials");
            }
            let client_id = required_credential(&mut fields, "client_id");
            let client_secret = required_credential(&mut fields, "client_secret");
            let token_url = fields.required("token_url").and_then(|_| address(&mut fields, "token_url", outbound));
            let base_url = fields.required("base_url").and_then(|_| address(&mut fields, "base_url", outbound));
            let mut content =
                json!({"client_id": client_id, "client_secret": client_secret, "token_url": token_url, "base_url": base_url});
            for name in ["scope", "audience"] {
                if let (Some(text), Some(content)) = (fields.text(name, LONGEST_GRANT), content.as_object_mut()) {
                    content.insert(name.into(), text.into());
                }
            }
            content
        } else {
            for name in OF_CLIENT {
                fields.misplaced(name);
            }
            let api_key = required_credential(&mut fields, "api_key");
            let base_url = address(&mut fields, "base_url", outbound).unwrap_or_else(|| OPENROUTER.to_owned());
            json!({"api_key": api_key, "base_url": base_url})
        };
        let model = fields.text("model", LONGEST_MODEL);
        let verifies_claims = fields.boolean("verify_claims", false);
        fields.finish();
        if let (Some(model), Some(content)) = (model, content.as_object_mut()) {
            content.insert("model".into(), model.into());
        }
        (SecretString::from(content.to_string()), verifies_claims)
    });
    problems.into_result(content)
}

fn required_credential(fields: &mut Fields<'_>, name: &'static str) -> Option<String> {
    let text = fields.required_text(name, LONGEST_KEY)?;
    for_header(fields, name, text)
}

fn credential(fields: &mut Fields<'_>, name: &'static str) -> Option<String> {
    let text = fields.text(name, LONGEST_KEY)?;
    for_header(fields, name, text)
}

/// Text that can stand in a header.
fn for_header(fields: &mut Fields<'_>, name: &str, text: String) -> Option<String> {
    if text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Some(text);
    }
    fields.problem(name, "must be of ASCII letters, digits and signs, without blanks");
    None
}

/// An address that may be called, without a final slash.
fn address(fields: &mut Fields<'_>, name: &'static str, outbound: &Outbound) -> Option<String> {
    let text = fields.text(name, LONGEST_URL)?;
    match outbound.parse(&text) {
        Ok(url) if url.query().is_some() || url.fragment().is_some() => {
            fields.problem(name, "must have no query and no fragment");
            None
        }
        Ok(url) => Some(url.as_str().trim_end_matches('/').to_owned()),
        Err(problem) => {
            fields.problem(name, problem);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;
    use shared::Error;

    use super::*;

    fn guard() -> Outbound {
        Outbound::new(vec!["127.0.0.1:4571".to_owned()]).unwrap()
    }

    fn wrong<T>(read: Result<T>) -> Vec<String> {
        match read {
            Err(Error::Invalid(problems)) => problems.iter().map(|problem| problem.field.clone()).collect(),
            _ => panic!("accepted"),
        }
    }

    fn stored(body: &Value) -> Value {
        serde_json::from_str(llm(body, &guard()).unwrap().0.expose_secret()).unwrap()
    }

    #[test]
    fn every_wrong_field_is_named_at_once_and_no_key_is_repeated() {
        assert_eq!(wrong(vapi(&json!({}))), ["api_key"]);
        assert_eq!(wrong(vapi(&json!([]))), ["body"]);
        assert_eq!(
            wrong(vapi(&json!({"api_key": " ", "webhook_bearer": 7, "x": 1}))),
            ["api_key", "webhook_bearer", "x"]
        );
        let refused = vapi(&json!({"api_key": "t0p secret"}));
        let Err(error) = &refused else { panic!("accepted") };
        assert!(!error.to_string().contains("t0p"), "{error}");
        assert_eq!(wrong(refused), ["api_key"]);
        assert_eq!(wrong(vapi(&json!({"api_key": "k\r\nx: y", "webhook_bearer": "é"}))), ["api_key", "webhook_bearer"]);
        assert_eq!(wrong(llm(&json!({}), &guard())), ["api_key"]);
        let body = json!({"client_id": 1, "api_key": "k", "model": [], "color": "red"});
        let all = ["api_key", "client_id", "client_secret", "token_url", "base_url", "model", "color"];
        assert_eq!(wrong(llm(&body, &guard())), all);
    }

    #[test]
    fn a_key_alone_is_openrouters() {
        assert_eq!(stored(&json!({"api_key": " sk-1 "})), json!({"api_key": "sk-1", "base_url": OPENROUTER}));
        let elsewhere = json!({"api_key": "sk-1", "base_url": "https://llm.example.com/v1/", "model": "small"});
        let expected = json!({"api_key": "sk-1", "base_url": "https://llm.example.com/v1", "model": "small"});
        assert_eq!(stored(&elsewhere), expected);
    }

    #[test]
    fn client_credentials_say_where_their_tokens_come_from() {
        let body = json!({
            "client_id": "us", "client_secret": "s", "token_url": "https://id.example.com/token",
            "base_url": "https://llm.example.com",
        });
        assert_eq!(stored(&body), body);
        let mut whole = body;
        whole["scope"] = json!("chat models");
        whole["audience"] = json!("https://llm.example.com");
        assert_eq!(stored(&whole), whole);
        assert_eq!(wrong(llm(&json!({"api_key": "k", "scope": "chat"}), &guard())), ["scope"], "a key has none");
    }

    #[test]
    fn only_public_https_addresses_and_open_hosts_are_taken() {
        for bad in [
            "http://llm.example.com",
            "https://127.0.0.1/",
            "https://169.254.169.254/",
            "https://u:p@llm.example.com",
            "https://llm.example.com/?key=1",
            "llm.example.com",
        ] {
            assert_eq!(wrong(llm(&json!({"api_key": "k", "base_url": bad}), &guard())), ["base_url"], "{bad}");
            let body =
                json!({"client_id": "c", "client_secret": "s", "token_url": bad, "base_url": "https://x.example"});
            assert_eq!(wrong(llm(&body, &guard())), ["token_url"], "{bad}");
        }
        assert_eq!(
            stored(&json!({"api_key": "k", "base_url": "http://127.0.0.1:4571/v1"}))["base_url"],
            "http://127.0.0.1:4571/v1"
        );
    }
}
