//! The document's schemas of tool configurations, against the handlers that read them.

use serde_json::{Value, json};
use tests::{World, ai_sms};
use uuid::Uuid;

use super::Document;

/// Handler and document accept the same configurations.
#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
async fn the_schema_of_a_configuration_is_the_handlers() {
    let document = Document::read();
    let world = World::start().await;
    let schema = json!({"$ref": "#/components/schemas/ToolConfig"});
    let validator = document.validator(&schema);
    let sms = || document.request_examples("createTool")["sms"].clone();
    let api = || document.request_examples("createTool")["api_request_with_arguments"].clone();
    let to_one_host = || {
        let mut config = api();
        config["allowed_hosts"] = json!(["book.example.com"]);
        config
    };
    let transfer = || document.request_examples("createTool")["transfer_call"].clone();
    let choice = || document.request_examples("createTool")["transfer_call_to_one_of_several"].clone();
    let changes: Vec<(Value, &str, Value)> = vec![
        (sms(), "/label", Value::Null),
        (sms(), "/label", json!("x".repeat(101))),
        (sms(), "/colour", json!("red")),
        (sms(), "/async", json!("yes")),
        (sms(), "/type", json!("fax")),
        (sms(), "/from", json!({"type": "specific_number"})),
        (sms(), "/from", json!({"type": "called_number", "number": "+15550100001"})),
        (sms(), "/text", json!({"mode": "ai"})),
        (sms(), "/text", json!({"mode": "fixed"})),
        (sms(), "/text", json!({"mode": "fixed", "value": ""})),
        (sms(), "/text", json!({"mode": "fixed", "value": "x".repeat(1_601)})),
        (sms(), "/text", json!({"mode": "ai", "prompt": "p", "schema": {"type": "integer"}})),
        (sms(), "/text", json!({"mode": "ai", "prompt": "p", "schema": {"minLength": 1}})),
        (sms(), "/text", json!({"mode": "sometimes"})),
        (sms(), "/text", json!({"mode": "array_extendable", "fixedValues": ["a"]})),
        (sms(), "/recipients", json!({"mode": "array_extendable"})),
        (
            sms(),
            "/recipients",
            json!({"mode": "array_extendable", "fixedValues": [], "aiExtension": {"enabled": false}}),
        ),
        (sms(), "/recipients", json!({"mode": "array_extendable", "aiExtension": {"enabled": true}})),
        (sms(), "/recipients", json!({"mode": "fixed", "value": []})),
        (sms(), "/recipients", json!({"mode": "fixed", "value": [7]})),
        (sms(), "/attach_to_agent", json!(false)),
        (sms(), "/limits", json!({"per_call": 0})),
        (sms(), "/limits", json!({"per_hour": 10_001})),
        (sms(), "/limits", json!({"per_hour": "9"})),
        (sms(), "/limits", json!({"per_day": 9})),
        (sms(), "/limits", json!([1])),
        (sms(), "/chat", json!({"least_role": "king"})),
        (sms(), "/chat", json!({"consent": "yes"})),
        (sms(), "/chat", json!({"ask": true})),
        (sms(), "/allowed_recipients", json!("everybody")),
        (sms(), "/allowed_recipients", json!([])),
        (sms(), "/allowed_recipients", json!([7])),
        (sms(), "/allowed_recipients", json!(["5550100"])),
        (api(), "/allowed_recipients", json!("caller_only")),
        (sms(), "/redact", json!("text")),
        (sms(), "/redact", json!([7])),
        (sms(), "/redact", json!(["text..name"])),
        (sms(), "/redact", json!([""])),
        (sms(), "/redact", json!(["x".repeat(201)])),
        (api(), "/method", json!("BREW")),
        (api(), "/url", json!("ftp://example.com/")),
        (api(), "/url", json!("https://{{caller_phone_number}}.example.com/")),
        (api(), "/url", json!({"mode": "array_extendable", "fixedValues": ["https://example.com"]})),
        (api(), "/headers", json!({"X Key": "k"})),
        (api(), "/headers", json!({"X-Key": {"mode": "fixed", "value": 7}})),
        (api(), "/body", json!({"n": 7})),
        (api(), "/body", json!({"n": {"mode": "fixed", "value": 7, "secret": "yes"}})),
        (api(), "/allowed_hosts", json!([])),
        (api(), "/allowed_hosts", json!("api.example.com")),
        (api(), "/allowed_hosts", json!(["https://api.example.com"])),
        (api(), "/allowed_hosts", json!([7])),
        (
            api(),
            "/body",
            json!({"n": {"mode": "ai", "prompt": "p", "schema": {"type": "object", "properties": {"x": {}}}}}),
        ),
        (transfer(), "/target", json!({"type": "number"})),
        (transfer(), "/target", json!({"type": "sip", "sipUri": "tel:1"})),
        (transfer(), "/target", json!({"type": "assistant", "assistantId": "x"})),
        (transfer(), "/messageStrategy", json!("song")),
        (transfer(), "/target", Value::Null),
        (transfer(), "/destinations", json!([{"type": "number", "number": "+15550100009", "label": "Desk"}])),
        (choice(), "/destinations", Value::Null),
        (choice(), "/destinations", json!([])),
        (choice(), "/destinations", json!({"type": "number", "number": "+15550100009", "label": "Desk"})),
        (choice(), "/destinations", json!([{"type": "number", "number": "+15550100009"}])),
        (choice(), "/destinations", json!([{"type": "number", "label": "Desk"}])),
        (choice(), "/destinations", json!([{"type": "sip", "sipUri": "tel:1", "label": "Desk"}])),
        (choice(), "/destinations", json!([{"type": "sip", "sipUri": "sip:x", "label": "x".repeat(61)}])),
        (choice(), "/destinations", json!([{"type": "sip", "sipUri": "sip:x", "label": "Desk", "colour": "red"}])),
    ];
    for (mut body, pointer, value) in changes {
        let name = &pointer[1..];
        match value {
            Value::Null => drop(body.as_object_mut().unwrap().remove(name)),
            value => body[name] = value,
        }
        let answer = world.create(&body).await;
        assert_eq!(answer.status, 422, "{pointer}: {}\n{body:#}", answer.body);
        assert!(!validator.is_valid(&body), "the handler refuses what the document allows: {pointer}\n{body:#}");
    }
    let allowed: Vec<(Value, &str, Value)> = vec![
        (sms(), "/description", Value::Null),
        (sms(), "/limits", json!({"per_call": 1, "per_hour": null})),
        (sms(), "/limits", json!({})),
        (sms(), "/chat", json!({"least_role": "owner", "consent": null})),
        (api(), "/limits", json!({"per_hour": 10_000})),
        (sms(), "/allowed_recipients", json!("caller_only")),
        (sms(), "/allowed_recipients", json!(["+1 (555) 010-0001", "{{ caller_phone_number }}"])),
        (sms(), "/text", json!("Hello {{caller_phone_number}}")),
        (sms(), "/recipients", json!("+15550100001")),
        (sms(), "/recipients", json!(["+15550100001", "{{called_phone_number}}"])),
        (sms(), "/recipients", json!({"mode": "fixed", "value": "+15550100001"})),
        (sms(), "/recipients", json!({"mode": "ai", "prompt": "Who gets it"})),
        (sms(), "/redact", json!(["text", "result.recipients.to", "*"])),
        (api(), "/method", json!("delete")),
        (to_one_host(), "/url", json!({"mode": "ai", "prompt": "The address"})),
        (api(), "/body", json!({"list": [1, 2], "deep": {"mode": "fixed", "value": {"a": [null, true]}}})),
        (transfer(), "/target", json!({"type": "assistant", "assistantId": world.home.assistant_id})),
        (
            choice(),
            "/destinations",
            json!([{"type": "assistant", "assistantId": world.home.assistant_id, "label": "Desk"}]),
        ),
        (choice(), "/messageStrategy", json!("none")),
    ];
    for (mut body, pointer, value) in allowed {
        body[&pointer[1..]] = value;
        document.hold(pointer, &schema, &body);
        let answer = world.create(&body).await;
        assert_eq!(answer.status, 201, "{pointer}: {}\n{body:#}", answer.body);
    }
}

/// Handler and document accept the same changes, each tested separately.
#[tokio::test]
async fn the_schema_of_changes_is_the_handlers() {
    let document = Document::read();
    let world = World::start().await;
    let validator = document.validator(&json!({"$ref": "#/components/schemas/ToolChanges"}));
    let tool = world.tool(&ai_sms()).await;
    for (changes, right) in [
        (json!({}), true),
        (json!({"type": "sms", "description": null, "name": null, "version": null}), true),
        (json!({"name": "text_the-caller9"}), true),
        (json!({"recipients": ["+15550100001"], "async": true}), true),
        (json!({"allowed_recipients": ["+15550100001"], "limits": {"per_call": 1}}), true),
        (json!({"allowed_recipients": null, "limits": null}), true),
        (json!({"allowed_recipients": 5}), false),
        (json!({"limits": {"per_call": 0}}), false),
        (json!({"redact": ["text"]}), true),
        (json!({"redact": null}), true),
        (json!({"redact": "text"}), false),
        (json!([]), false),
        (json!({"label": null}), false),
        (json!({"label": ""}), false),
        (json!({"type": "fax"}), false),
        (json!({"colour": "red"}), false),
        (json!({"id": Uuid::nil().to_string()}), false),
        (json!({"name": "no spaces"}), false),
        (json!({"name": "x".repeat(41)}), false),
        (json!({"name": 7}), false),
        (json!({"version": -1}), false),
        (json!({"version": "0"}), false),
        (json!({"text": {"mode": "ai"}}), false),
        (json!({"from": {"type": "specific_number"}}), false),
    ] {
        let answer = world.update(&tool, &changes).await;
        assert_eq!(answer.status, if right { 200 } else { 422 }, "{changes}: {}", answer.body);
        assert_eq!(validator.is_valid(&changes), right, "{changes}");
    }
}
