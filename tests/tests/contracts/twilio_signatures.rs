//! The check of Twilio's signatures against vectors on which Twilio's own libraries agree.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use secrecy::SecretString;
use serde_json::Value;
use shared::webhooks::twilio_signature::is_valid;

#[test]
fn the_vectors_are_let_in_or_not_as_twilios_libraries_do() {
    let fixture: Value = serde_json::from_str(include_str!("../../fixtures/twilio_signatures.json")).unwrap();
    let mut checked = 0;
    for vector in fixture["vectors"].as_array().unwrap() {
        let text = |name: &str| vector[name].as_str().unwrap_or_default();
        // A shared key instead of the auth token is an option that no number here uses.
        if text("algorithm") != "HMAC_SHA1" {
            continue;
        }
        let body = vector["raw_body"].as_str().unwrap_or(text("form_body"));
        let token = SecretString::from(text("auth_token").to_owned());
        let let_in = is_valid(&token, &[text("request_url")], body.as_bytes(), text("signature"));
        assert_eq!(let_in, vector["valid"].as_bool().unwrap(), "{}", text("name"));
        checked += 1;
    }
    assert!(checked >= 12, "{checked}");
}
