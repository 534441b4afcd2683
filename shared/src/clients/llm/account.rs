//! An account at an LLM gateway, with its owner.

use ring::digest;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use crate::models::OrganizationId;

/// The default base URL of accounts with a key.
pub const OPENROUTER: &str = "https://openrouter.ai/api/v1";

/// The content of a secret: `{"api_key", "base_url"?, "model"?}` or `{"client_id", "client_secret", "token_url", "base_url",
/// "model"?, "scope"?, "audience"?}`. The owner comes from elsewhere.
#[derive(Debug, Deserialize)]
pub struct Credentials {
    #[serde(flatten)]
    key: Key,
    base_url: Option<String>,
    model: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum Key {
    Client(Client),
    Api { api_key: SecretString },
}

/// OAuth client credentials (RFC 6749, 4.4).
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Client {
    pub(super) client_id: String,
    pub(super) client_secret: SecretString,
    pub(super) token_url: String,
    pub(super) scope: Option<String>,
    pub(super) audience: Option<String>,
}

/// An account. Addresses of an organization's account are guarded; the owner alone decides, never the secret.
#[derive(Debug, Clone)]
pub struct Account {
    pub(super) whose: Whose,
    pub(super) key: Key,
    pub(super) base_url: String,
    pub(super) model: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Whose {
    Platform,
    Organization(OrganizationId),
}

/// Cache key of a token: the owner and a digest of the account, so that no other owner and no changed account receives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TokenOwner(Whose, [u8; 32]);

impl Account {
    /// The platform's account; `None` if its key is empty. `model`: the default if neither secret nor request names one.
    pub fn of_platform(credentials: Credentials, model: &str) -> Option<Self> {
        match &credentials.key {
            Key::Api { api_key } if api_key.expose_secret().trim().is_empty() => None,
            _ => Some(Self::of(Whose::Platform, credentials, model)),
        }
    }

    pub fn own(organization: OrganizationId, credentials: Credentials, model: &str) -> Self {
        Self::of(Whose::Organization(organization), credentials, model)
    }

    fn of(whose: Whose, Credentials { key, base_url, model: own }: Credentials, model: &str) -> Self {
        let given = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        let base_url = given(base_url).map_or(OPENROUTER.to_owned(), |url| url.trim_end_matches('/').to_owned());
        Self { whose, key, base_url, model: given(own).unwrap_or_else(|| model.to_owned()) }
    }

    pub fn is_own(&self) -> bool {
        matches!(self.whose, Whose::Organization(_))
    }

    /// For requests that name no model.
    pub fn model(&self) -> &str {
        &self.model
    }

    pub(super) fn holder(&self) -> TokenOwner {
        let mut content = digest::Context::new(&digest::SHA256);
        let mut add = |text: &str| {
            content.update(&text.len().to_be_bytes());
            content.update(text.as_bytes());
        };
        add(&self.base_url);
        match &self.key {
            Key::Api { api_key } => add(api_key.expose_secret()),
            Key::Client(Client { client_id, client_secret, token_url, scope, audience }) => {
                add(client_id);
                add(client_secret.expose_secret());
                add(token_url);
                add(scope.as_deref().unwrap_or_default());
                add(audience.as_deref().unwrap_or_default());
            }
        }
        TokenOwner(self.whose, content.finish().as_ref().first_chunk().copied().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn credentials(content: Value) -> Credentials {
        serde_json::from_value(content).unwrap()
    }

    fn client() -> Value {
        json!({"client_id": "c", "client_secret": "s", "token_url": "https://id.example/t", "base_url": "https://l.example"})
    }

    #[test]
    fn fields_that_a_secret_omits_have_defaults() {
        let account = Account::of_platform(credentials(json!({"api_key": "k"})), "openrouter/auto").unwrap();
        assert_eq!((account.base_url.as_str(), account.model.as_str()), (OPENROUTER, "openrouter/auto"));
        let given = json!({"api_key": "k", "base_url": "https://l.example/v1/", "model": "small"});
        let account = Account::own(OrganizationId::generate(), credentials(given), "openrouter/auto");
        assert_eq!((account.base_url.as_str(), account.model.as_str()), ("https://l.example/v1", "small"));
        let blank = json!({"api_key": "k", "base_url": "", "model": " "});
        let account = Account::of_platform(credentials(blank), "m").unwrap();
        assert_eq!((account.base_url.as_str(), account.model.as_str()), (OPENROUTER, "m"));
    }

    #[test]
    fn an_empty_key_is_no_account() {
        for empty in ["", " "] {
            assert!(
                Account::of_platform(credentials(json!({"api_key": empty, "base_url": OPENROUTER})), "m").is_none()
            );
        }
        assert!(serde_json::from_value::<Credentials>(json!({"base_url": OPENROUTER})).is_err());
    }

    #[test]
    fn a_secret_cannot_say_whose_it_is() {
        let organization = OrganizationId::generate();
        let mut content = client();
        content["whose"] = json!("Platform");
        assert_eq!(Account::own(organization, credentials(content), "m").whose, Whose::Organization(organization));
    }

    #[test]
    fn no_two_accounts_share_a_token() {
        let organization = OrganizationId::generate();
        let own = |content: Value| Account::own(organization, credentials(content), "m").holder();
        assert_eq!(own(client()), own(client()));
        assert_ne!(own(client()), Account::own(OrganizationId::generate(), credentials(client()), "m").holder());
        assert_ne!(own(client()), Account::of_platform(credentials(client()), "m").unwrap().holder());
        for field in ["client_id", "client_secret", "token_url", "base_url", "scope", "audience"] {
            let mut other = client();
            other[field] = json!("https://other.example");
            assert_ne!(own(client()), own(other), "{field}");
        }
        let split = |id: &str, secret: &str| {
            let mut content = client();
            content["client_id"] = json!(id);
            content["client_secret"] = json!(secret);
            own(content)
        };
        assert_ne!(split("ab", "c"), split("a", "bc"));
    }

    #[test]
    fn nothing_secret_is_shown() {
        for content in [json!({"api_key": "s3cret"}), client()] {
            let shown = format!("{:?}", Account::of_platform(credentials(content), "m"));
            assert!(!shown.contains("s3cret") && !shown.contains("\"s\""), "{shown}");
        }
    }
}
