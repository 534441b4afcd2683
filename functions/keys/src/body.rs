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
    declared::{Body, Given, Text, read},
    described::{Described, Json, Schemas},
    fields::Fields,
    models::KeySettings,
};

/// In characters.
const LONGEST_URL: usize = 2_000;
const LONGEST_MODEL: usize = 200;
/// Characters of a scope or an audience.
const LONGEST_GRANT: usize = 1_000;

/// The allowed fields depend on the service.
pub(crate) struct AnyKey;

impl Described for AnyKey {
    fn schema(schemas: &mut Schemas) -> Json {
        let any = [VapiKey::schema(schemas), LlmKey::schema(schemas), LlmClient::schema(schemas)];
        json!({"anyOf": any})
    }
}

#[derive(Body)]
struct VapiKey {
    /// A private key.
    api_key: Credential,
    /// Bearer token that the custom credential at VAPI sends to us, if tools are called with a credential.
    webhook_bearer: Option<Credential>,
}

#[derive(Body)]
struct LlmKey {
    api_key: Credential,
    #[schema(default = OPENROUTER)]
    base_url: Option<Address>,
    model: Option<Text<LONGEST_MODEL>>,
    verify_claims: Option<VerifiesClaims>,
}

#[derive(Body)]
struct LlmClient {
    client_id: Credential,
    client_secret: Credential,
    token_url: Address,
    base_url: Address,
    model: Option<Text<LONGEST_MODEL>>,
    /// Scope of the requested tokens, if the service requires one.
    scope: Option<Text<LONGEST_GRANT>>,
    audience: Option<Text<LONGEST_GRANT>>,
    verify_claims: Option<VerifiesClaims>,
}

shared::kinds_of_text! {
    /// Text that can stand in a header. Some issuers' keys are JWTs.
    Credential, 4_000, {"type": "string", "minLength": 1, "maxLength": 4_000, "pattern": "^[!-~]+$"},
    "must be of ASCII letters, digits and signs, without blanks",
    |text| text.bytes().all(|byte| byte.is_ascii_graphic()).then(|| text.to_owned());
}

/// An address that is yet to be [allowed](Address::allow).
struct Address(String);

#[derive(Clone, Copy)]
struct VerifiesClaims(bool);

shared::described! {
    Address => {"type": "string", "format": "uri"},
    VerifiesClaims => {"type": "boolean", "default": false, "description":
        "At the end of each call a model of this account reads what the agent said, beside the call's receipt, and names the\n\
         effects that the agent claimed. Those that no tool had are flagged on the call (`claim_check`). The words are not kept."},
}

impl Given for Address {
    fn read(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        fields.text(name, LONGEST_URL).map(Self)
    }
}

impl Given for VerifiesClaims {
    fn read(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        bool::read(fields, name).map(Self)
    }
}

impl Address {
    /// Takes an address that may be called, without a final slash.
    fn allow(given: &mut Option<Self>, name: &str, outbound: &Outbound, fields: &mut Fields<'_>) {
        let Some(Self(text)) = given else { return };
        match outbound.parse(text) {
            Ok(url) if url.query().is_some() || url.fragment().is_some() => {
                fields.problem(name, "must have no query and no fragment");
            }
            Ok(url) => url.as_str().trim_end_matches('/').clone_into(text),
            Err(problem) => fields.problem(name, problem),
        }
    }
}

pub(crate) fn vapi(body: &Value) -> Result<Account> {
    let VapiKey { api_key, webhook_bearer } = read(body, |_, _| ())?;
    Ok(Account::new(SecretString::from(api_key.0), webhook_bearer.map(|bearer| SecretString::from(bearer.0))))
}

/// The content of the secret, the part of it that is no secret, and `verify_claims`.
pub(crate) fn llm(body: &Value, outbound: &Outbound) -> Result<(SecretString, KeySettings, bool)> {
    const OF_CLIENT: [&str; 3] = ["client_id", "client_secret", "token_url"];
    let is_client = OF_CLIENT.iter().any(|name| body.get(name).is_some_and(|value| !value.is_null()));
    let (mut content, settings, verifies_claims) = if is_client {
        let client: LlmClient = read(body, |client: &mut LlmClientDraft, fields| {
            if fields.misplaced("api_key") {
                fields.problem("api_key", "cannot be given beside client credentials");
            }
            Address::allow(&mut client.token_url, "token_url", outbound, fields);
            Address::allow(&mut client.base_url, "base_url", outbound, fields);
        })?;
        let LlmClient { client_id, client_secret, token_url, base_url, model, scope, audience, verify_claims } = client;
        let settings = KeySettings {
            base_url: Some(base_url.0),
            model: model.map(String::from),
            token_url: Some(token_url.0),
            scope: scope.map(String::from),
            audience: audience.map(String::from),
            has_webhook_bearer: None,
        };
        (json!({"client_id": client_id.0, "client_secret": client_secret.0}), settings, verify_claims)
    } else {
        let LlmKey { api_key, base_url, model, verify_claims } = read(body, |key: &mut LlmKeyDraft, fields| {
            for name in OF_CLIENT {
                fields.misplaced(name);
            }
            Address::allow(&mut key.base_url, "base_url", outbound, fields);
        })?;
        let base_url = base_url.map_or_else(|| OPENROUTER.to_owned(), |url| url.0);
        let model = model.map(String::from);
        let settings = KeySettings { base_url: Some(base_url), model, ..KeySettings::default() };
        (json!({"api_key": api_key.0}), settings, verify_claims)
    };
    if let (Some(content), Value::Object(settings)) = (content.as_object_mut(), json!(settings)) {
        content.extend(settings);
    }
    Ok((SecretString::from(content.to_string()), settings, verifies_claims.is_some_and(|VerifiesClaims(is)| is)))
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
        let all = ["client_id", "client_secret", "token_url", "base_url", "model", "api_key", "color"];
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
        let nowhere = json!({"client_id": "us", "client_secret": "s", "token_url": " ", "base_url": ""});
        assert_eq!(wrong(llm(&nowhere, &guard())), ["token_url", "base_url"]);
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
