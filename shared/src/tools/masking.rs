//! What a preview does not show: values whose name says that they are secret.

use serde_json::Value;
use url::Url;

/// What stands in the place of a secret.
pub(super) const MASK: &str = "***";

const SECRETIVE: [&str; 12] = [
    "access_key",
    "api_key",
    "apikey",
    "authorization",
    "credential",
    "passphrase",
    "passwd",
    "password",
    "private_key",
    "secret",
    "signature",
    "token",
];

/// Whether a header, a field or a part of a query by this name holds a secret.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace(['-', '.'], "_");
    name == "key" || name.ends_with("_key") || SECRETIVE.iter().any(|word| name.contains(word))
}

/// The value with every text masked that stands under the name of a secret.
pub(super) fn masked(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(masked).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, member)| {
                let hidden = member.is_string() && is_secret(name);
                (name.clone(), if hidden { MASK.into() } else { masked(member) })
            })
            .collect(),
        other => other.clone(),
    }
}

/// The address with the secrets of its query masked.
pub(super) fn masked_url(url: &Url) -> Url {
    let mut shown = url.clone();
    if url.query_pairs().any(|(name, _)| is_secret(&name)) {
        let mut query = shown.query_pairs_mut();
        query.clear();
        for (name, value) in url.query_pairs() {
            query.append_pair(&name, if is_secret(&name) { MASK } else { &value });
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_masked_at_every_depth_and_nothing_else_is() {
        let value = json!({"user": "ana", "max_tokens": 7, "auth": {"X-Api-Key": "k", "list": [{"accessToken": "t"}]}, "keyboard": "qwerty"});
        let shown = json!({"user": "ana", "max_tokens": 7, "auth": {"X-Api-Key": "***", "list": [{"accessToken": "***"}]}, "keyboard": "qwerty"});
        assert_eq!(masked(&value), shown);
    }

    #[test]
    fn an_address_without_secrets_is_shown_as_it_is() {
        let shown = |url: &str| masked_url(&Url::parse(url).unwrap()).to_string();
        assert_eq!(shown("https://a.example/x?phone=%2B1&q=a%20b"), "https://a.example/x?phone=%2B1&q=a%20b");
        assert_eq!(shown("https://a.example/x?phone=%2B1&key=s3cret"), "https://a.example/x?phone=%2B1&key=***");
    }
}
