//! Names of secrets in real APIs, and similar names that are not secret.
//!
//! Every part that hides secrets is tested with the same lists.

use serde_json::{Map, Value, json};

pub const SECRET: [&str; 44] = [
    "access_token",
    "accessToken",
    "api-key",
    "api.key",
    "apikey",
    "auth",
    "authorization",
    "bearer",
    "card_pin",
    "client_secret",
    "clientSecret",
    "cookie",
    "credentials",
    "csrf",
    "cvc",
    "cvv2",
    "jwt",
    "key",
    "license_key",
    "Ocp-Apim-Subscription-Key",
    "otp",
    "otp_code",
    "pass",
    "passcode",
    "passphrase",
    "passwd",
    "password",
    "PHPSESSID",
    "pin",
    "pinCode",
    "private_key",
    "Proxy-Authorization",
    "pwd",
    "refresh_token",
    "security_code",
    "session",
    "session_id",
    "Set-Cookie",
    "sig",
    "ssn",
    "subscription_key",
    "webhook_secret",
    "X-Amz-Signature",
    "x-api-key",
];

pub const HARMLESS: [&str; 16] = [
    "author",
    "compass",
    "key_points",
    "keyboard",
    "laptop",
    "max_tokens",
    "monkey",
    "passenger",
    "pinned",
    "secretary",
    "session_length",
    "sessions",
    "shipping",
    "token_count",
    "token_type",
    "yoga_session",
];

/// A distinct text for each name, for searching.
pub fn texts(names: &[&str], kind: &str) -> Map<String, Value> {
    names
        .iter()
        .enumerate()
        .map(|(number, name)| ((*name).to_owned(), json!(format!("{kind}-{number}-text"))))
        .collect()
}

/// Asserts that all of the texts, or none, appear in `shown`.
///
/// # Panics
/// If not, with the names.
#[track_caller]
pub fn assert_shown(shown: &Value, texts: &Map<String, Value>, expected: bool) {
    let shown = shown.to_string();
    let wrong = texts.iter().filter(|(_, text)| shown.contains(text.as_str().unwrap_or_default()) != expected);
    let names: Vec<&String> = wrong.map(|(name, _)| name).collect();
    assert!(names.is_empty(), "{names:?} in {shown}");
}
