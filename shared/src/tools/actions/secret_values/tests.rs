use serde_json::json;

use super::*;
use crate::actions::ToolConfig;

fn action(fields: &Value) -> ToolAction {
    let mut config = json!({"type": "api_request", "label": "L", "method": "POST", "url": "https://a.example/"});
    config.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    ToolConfig::parse(&config).unwrap().action
}

fn shown(action: &ToolAction) -> Value {
    json!(action.masked())
}

#[test]
fn a_secret_is_known_by_its_mark_its_name_or_its_place() {
    let action = action(&json!({
        "url": "https://a.example/s3cret-key/x?phone=%2B1&key=in-the-url",
        "headers": {
            "Accept": "text/csv", "X-Line": "line-one", "X-Caller": "{{caller_phone_number}}",
            "X-Tenant": {"mode": "fixed", "value": "blue", "secret": false}, "X-Why": {"mode": "ai", "prompt": "Why"},
            "Authorization": "Bearer s3cret-key",
        },
        "body": {
            "room": "terrace", "pin": {"mode": "fixed", "value": 4711}, "login": {"mode": "fixed", "value": {"user": "ana", "otp": "1"}},
            "echo": "the key is s3cret-key", "marked": {"mode": "fixed", "value": "x", "secret": true},
            "tokens": {"mode": "array_extendable", "fixedValues": ["one"], "aiExtension": {"enabled": false}},
            "needs_otp": {"mode": "fixed", "value": true}, "api_key": "",
        },
    }));
    let fixed = |value: Value| json!({"mode": "fixed", "value": value});
    let secret = json!({"mode": "fixed", "value": "[secret]", "secret": true});
    let expected = json!({
        "type": "api_request", "method": "POST",
        "url": fixed("https://a.example/[secret]/x?phone=%2B1&key=[secret]".into()),
        "headers": {
            "Accept": fixed("text/csv".into()), "X-Line": secret, "X-Caller": fixed("{{caller_phone_number}}".into()),
            "X-Tenant": {"mode": "fixed", "value": "blue", "secret": false},
            "X-Why": {"mode": "ai", "prompt": "Why", "schema": {"type": "string"}, "required": true},
            "Authorization": secret,
        },
        "body": {
            "room": fixed("terrace".into()), "pin": secret, "login": fixed(json!({"user": "ana", "otp": "[secret]"})),
            "echo": fixed("the key is [secret]".into()), "marked": secret,
            "tokens": {"mode": "array_extendable", "fixedValues": ["[secret]"], "aiExtension": {"enabled": false}},
            "needs_otp": fixed(true.into()), "api_key": fixed("".into()),
        },
    });
    assert_eq!(shown(&action), expected);
    assert_eq!(json!(action.masked().masked()), expected, "what is masked stays as it is");
}

#[test]
fn a_public_address_does_not_reveal_the_secret_of_a_header() {
    let action = action(&json!({
        "url": {"mode": "fixed", "value": "https://a.example/accounts/AC12345678/orders-7", "secret": false},
        "headers": {"X-Account": "AC12345678"},
    }));
    let hidden = action.hidden_texts(&Conversation::default());
    assert_eq!(hidden.replaced("/accounts/AC12345678/orders-7"), "/accounts/[secret]/orders-7");
}

#[test]
fn a_header_does_not_hide_a_public_value_that_it_repeats() {
    let action = action(&json!({
        "body": {
            "tenant": {"mode": "fixed", "value": "acme-7", "secret": false},
            "site": {"mode": "fixed", "value": "https://b.example/k7Gw2pQz/x", "secret": false},
        },
        "headers": {"X-Tenant": "acme-7", "X-Line": "Line acme-7", "Referer": "https://b.example/k7Gw2pQz/x", "X-Key": "k7Gw2pQz-1"},
    }));
    let hidden = action.hidden_texts(&Conversation::default());
    let shown = r#"{"tenant":"acme-7","site":"https://b.example/k7Gw2pQz/x"}"#;
    assert_eq!(hidden.replaced(shown), shown);
    assert_eq!(hidden.replaced("Line acme-7, k7Gw2pQz-1"), "[secret], [secret]");
}

#[test]
fn a_value_that_is_marked_as_secret_is_hidden_although_another_field_shows_it() {
    let action = action(&json!({
        "body": {"account": {"mode": "fixed", "value": "AC-12345", "secret": false}},
        "headers": {"X-Account": {"mode": "fixed", "value": "AC-12345", "secret": true}},
    }));
    assert_eq!(action.hidden_texts(&Conversation::default()).replaced("AC-12345"), "[secret]");
}

#[test]
fn a_public_value_is_shown_with_its_variables_filled_in() {
    let action = action(&json!({
        "body": {
            "note": {"mode": "fixed", "value": "guest of {{called_phone_number}}", "secret": false},
            "other": "room of {{called_phone_number}}",
        },
    }));
    let conversation = Conversation { called: Some("+15550100002".parse().unwrap()), ..Conversation::default() };
    let hidden = action.hidden_texts(&conversation);
    let told = "guest of +15550100002, room of +15550100002, +15550100002";
    assert_eq!(hidden.replaced(told), "guest of +15550100002, [secret], +15550100002");
}

#[test]
fn a_secret_address_shows_its_host_and_its_variables_of_the_call() {
    let action = action(&json!({
        "url": {"mode": "fixed", "value": "https://hooks.example/T0/s3cret", "secret": true},
        "headers": {"Authorization": "Bearer s3cret-{{ caller_phone_number }}"},
    }));
    let shown = shown(&action);
    assert_eq!(shown["url"]["value"], "https://hooks.example/[secret]");
    assert_eq!(shown["headers"]["Authorization"]["value"], "[secret]{{caller_phone_number}}");
}

#[test]
fn secrets_are_taken_out_and_come_back_whole() {
    let fields = json!({
        "url": "https://a.example/?sig=in-the-url", "headers": {"X-Line": "line-one"},
        "body": {"login": {"mode": "fixed", "value": {"pin": 1}}, "room": "terrace"},
    });
    let whole = action(&fields);
    let mut masked = whole.clone();
    let secrets = masked.take_secrets(None).unwrap();
    let stored =
        json!({"url": "https://a.example/?sig=in-the-url", "headers.X-Line": "line-one", "body.login": {"pin": 1}});
    assert_eq!(json!(secrets), stored);
    assert!(!json!(masked).to_string().contains("line-one"));
    assert!(!format!("{secrets:?}").contains("line-one"), "{secrets:?}");
    let back = masked.with_secrets(&secrets);
    assert_eq!(json!(back.static_config()), json!(whole.static_config()));
}

#[test]
fn a_masked_value_sent_back_is_kept_and_no_other() {
    let before =
        action(&json!({"headers": {"X-Line": "line-one", "X-Api-Key": "k-1"}, "url": "https://a.example/?sig=s-1"}));
    let shown = shown(&before);
    let mut edited = action(&json!({
        "url": shown["url"], "headers": {"X-Line": "[secret]", "X-Api-Key": "k-2", "X-New": "line-two"},
    }));
    let secrets = json!(edited.take_secrets(Some(&before)).unwrap());
    let expected = json!({
        "url": "https://a.example/?sig=s-1", "headers.X-Line": "line-one", "headers.X-Api-Key": "k-2", "headers.X-New": "line-two",
    });
    assert_eq!(secrets, expected);

    for wrong in [
        json!({"headers": {"X-Other": "[secret]"}}),
        json!({"headers": {"X-Line": "Bearer [secret]"}}),
        json!({"headers": {"X-Line": {"mode": "fixed", "value": "[secret]", "secret": false}}}),
        json!({"body": {"X-Line": "[secret]"}}),
        json!({"url": "https://a.example/?sig=[secret]&more=1"}),
    ] {
        assert!(action(&wrong).take_secrets(Some(&before)).is_err(), "{wrong}");
    }
    assert!(action(&json!({"headers": {"X-Line": "[secret]"}})).take_secrets(None).is_err());
    let long = json!({"headers": {"X-Line": "a"}, "body": {"token": "x".repeat(60_000)}});
    assert!(action(&long).take_secrets(None).is_err());
}
