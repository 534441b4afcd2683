use proptest::prelude::*;
use serde_json::json;

use super::{
    super::{DEEPEST, WINDOW, redactor::window},
    *,
};
use crate::models::Tool;

fn tool(redact: &Value, static_config: &Value) -> Tool {
    let id = "01930f5e-6a1b-7c2d-8e3f-4a5b6c7d8e9f";
    let properties = json!({"text": {}, "to": {}, "guest": {}, "result": {}, "token": {}, "a.b": {}});
    serde_json::from_value(json!({
        "id": id, "name": "t", "label": "T", "organization_id": id, "type": "api_request", "static_config": static_config,
        "function_schema": {"name": "t", "parameters": {"properties": properties}}, "config_metadata": {"redact": redact},
        "created_at": "2026-11-20T16:20:52.123Z", "updated_at": "2026-11-20T16:20:52.123Z",
    }))
    .unwrap()
}

fn run(arguments: &Value, result: Option<&Value>, error: Option<&str>) -> Execution {
    let id = "01930f5e-6a1b-7c2d-8e3f-4a5b6c7d8e9f";
    serde_json::from_value(json!({
        "id": id, "organization_id": id, "tool_id": id, "status": "failed", "started_at": "2026-11-20T16:20:52.123Z",
        "duration_ms": 12, "expires_at": 1_800_000_000, "arguments": arguments, "result": result, "error": error,
    }))
    .unwrap()
}

fn unredacted(row: Execution, tool: &Tool) -> Unredacted {
    let hidden = HiddenTexts::of_config(&tool.static_config);
    Unredacted::new(row, Marks::stored(tool), hidden, &tool.function_schema["parameters"])
}

fn redacted(redact: &Value, arguments: &Value, result: &Value) -> (Value, Value) {
    let kept = unredacted(run(arguments, Some(result), None), &tool(redact, &json!({}))).redacted();
    (Value::Object(kept.arguments), kept.result.unwrap_or_default())
}

#[test]
fn numbers_addresses_and_credentials_are_always_hidden() {
    let (arguments, result) = redacted(
        &json!(null),
        &json!({"text": "Call +1 415 555 0100", "to": ["ana@example.com", 4_155_550_100_i64], "token": "abc", "guest": {"pin": 1234}}),
        &json!({"+14155550100": {"n": 3, "at": 38.722_252_4, "api_key": ["x"], "password": null}, "+14155550101": true}),
    );
    assert_eq!(
        arguments,
        json!({"text": "Call [number]", "to": ["[email]", "[number]"], "token": "[secret]", "guest": {"pin": "[secret]"}})
    );
    let first = json!({"n": 3, "at": 38.722_252_4, "api_key": "[secret]", "password": null});
    assert_eq!(result, json!({"[number]": first, "[number] 1": true}));
}

#[test]
fn marked_fields_are_hidden_by_their_paths() {
    let arguments = json!({"text": "Hi", "guest": {"name": "Ana", "n": 2}, "a.b": {"c": 1, "d": 2}, "result": 5});
    let result = json!({"customers": [{"name": "Eva", "town": "Faro"}], "name": "kept", "text": "kept"});
    let shown = |redact: Value| redacted(&redact, &arguments, &result);
    let (kept, _) = shown(json!(["text", "guest.name", "a.b.c", "nothing.there"]));
    let hidden = json!({"text": HIDDEN, "guest": {"name": HIDDEN, "n": 2}, "a.b": {"c": HIDDEN, "d": 2}, "result": 5});
    assert_eq!(kept, hidden);
    let (kept, back) = shown(json!(["result.customers.name"]));
    assert_eq!(kept, arguments);
    assert_eq!(back, json!({"customers": [{"name": HIDDEN, "town": "Faro"}], "name": "kept", "text": "kept"}));
    let (kept, back) = shown(json!(["result"]));
    assert_eq!((&kept["result"], &kept["text"], &back), (&json!(HIDDEN), &json!("Hi"), &json!(HIDDEN)));
    let (kept, back) = shown(json!(["*"]));
    assert_eq!(kept, json!({"text": HIDDEN, "guest": HIDDEN, "a.b": HIDDEN, "result": HIDDEN}));
    assert_eq!(back, HIDDEN);
    assert_eq!(shown(json!("text")), (kept, back), "marks that cannot be read hide everything");
}

#[test]
fn more_than_can_be_looked_for_hides_every_text() {
    let guests: Vec<String> = (0..600).map(|number| format!("guest {number}")).collect();
    let result = json!({"ok": true, "said": "guest 299 comes"});
    let (_, back) = redacted(&json!(["guest"]), &json!({"guest": guests}), &result);
    assert_eq!(back, json!({HIDDEN: true, "[redacted] 1": HIDDEN}));
}

#[test]
fn a_marked_value_is_hidden_in_the_result() {
    let arguments = json!({"text": "Root \"canal\" on Monday", "guest": {"name": "Ana Ruiz", "room": 4711}});
    let result = json!({"echo": "You said: Root \"canal\" on Monday", "raw": r#"{"text":"Root \"canal\" on Monday"}"#, "Ana Ruiz": 4711});
    let row = run(&arguments, Some(&result), Some("Nobody is called Ana Ruiz."));
    let kept = unredacted(row, &tool(&json!(["text", "guest"]), &json!({}))).redacted();
    let back = json!({"echo": "You said: [redacted]", "raw": r#"{"text":"[redacted]"}"#, HIDDEN: HIDDEN});
    assert_eq!((kept.result.unwrap(), kept.error.unwrap()), (back, "Nobody is called [redacted].".to_owned()));
}

#[test]
fn credentials_that_were_given_are_hidden_where_they_come_back() {
    let arguments = json!({"token": "t0k3n-x", "guest": {"password": "hunter2"}});
    let (_, result) = redacted(&json!(null), &arguments, &json!({"said": "t0k3n-x and hunter2"}));
    assert_eq!(result, json!({"said": "[secret] and [secret]"}));
}

#[test]
fn many_made_up_arguments_do_not_make_the_row_too_large() {
    let mut row = run(&json!({}), None, None);
    row.ignored_arguments = (0..5_000).map(|n| format!("{n} {}", "x".repeat(500))).collect();
    row.arguments = row.ignored_arguments.iter().map(|name| (name.clone(), json!(1))).collect();
    let kept = unredacted(row, &tool(&json!(null), &json!({}))).redacted();
    assert_eq!(
        (kept.ignored_arguments.len(), kept.ignored_arguments.last().unwrap().as_str()),
        (51, "… (cut: 4950 more)")
    );
    assert!(serde_json::to_string(&kept).unwrap().len() < 20_000);
}

#[test]
fn credentials_of_the_configuration_are_hidden_where_they_come_back() {
    let fixed = json!({"url": "https://x", "headers": {"x-line": "Bearer crm-key"}, "body": {"api_key": "book-key", "room": "terrace"}});
    let row =
        run(&json!({"text": "use crm-key"}), Some(&json!({"a": "Bearer crm-key", "b": ["book-key terrace"]})), None);
    let kept = unredacted(row, &tool(&json!(null), &fixed)).redacted();
    assert_eq!(kept.arguments["text"], "use [secret]");
    assert_eq!(kept.result.unwrap(), json!({"a": "[secret]", "b": ["[secret] terrace"]}));
}

#[test]
fn an_argument_that_the_tool_does_not_have_is_named_only() {
    let arguments = json!({"Text": "Top secret diagnosis", "+14155550100": 1, "no_arguments": "x", "text": "Hi"});
    let (kept, _) = redacted(&json!(["text"]), &arguments, &json!(1));
    assert_eq!(kept, json!({"Text": "[ignored]", "[number]": "[ignored]", "text": HIDDEN}));
}

#[test]
fn a_large_value_is_cut_with_a_marker() {
    let long = "word ".repeat(1_000);
    let many: Vec<Value> = (0..2_000).map(|n| json!({"n": n})).collect();
    let (arguments, result) = redacted(&json!(null), &json!({"guest": many, "text": long}), &json!(long));
    assert!(arguments.to_string().len() < 2 * BUDGET && result.to_string().len() < BUDGET + 60);
    assert!(result.as_str().unwrap().ends_with("word… (cut: the first 2044 of 5000 bytes)"), "{result}");
    let items = arguments["guest"].as_array().unwrap();
    assert_eq!(items.last().unwrap(), &json!(format!("… (cut: {} more)", 2_000 - (items.len() - 1))));
    assert_eq!(arguments["…"], "… (cut: 1 more)");
    let deep = (0..40).fold(json!("end"), |inner, _| json!([inner]));
    let (_, result) = redacted(&json!(null), &json!({}), &deep);
    assert!(result.to_string().contains("… (cut: deeper levels)"), "{result}");
}

#[test]
fn values_that_the_table_does_not_accept_are_rewritten() {
    let (_, result) = redacted(&json!(null), &json!({}), &json!({"": 1, "big": 1e300, "small": -1e-200, "n": 0.5}));
    assert_eq!(result, json!({"[no name]": 1, "big": "1e+300", "small": "-1e-200", "n": 0.5}));
}

#[test]
fn a_number_that_a_cut_falls_into_is_hidden_too() {
    for padding in WINDOW - 40..WINDOW + 2 {
        let text = format!("{} +1 415 555 0100", "x".repeat(padding));
        let kept = window(&text, WINDOW);
        assert!(!kept.contains(|c: char| c.is_ascii_digit()) || text.len() <= WINDOW, "{padding}");
    }
}

#[test]
fn a_debug_line_shows_nothing_of_a_run() {
    let row = run(&json!({"text": "+14155550100"}), None, None);
    let line = format!("{:?}", unredacted(row, &tool(&json!(null), &json!({}))));
    assert_eq!(line, "Unredacted(ExecutionId(01930f5e-6a1b-7c2d-8e3f-4a5b6c7d8e9f))");
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,20}".prop_map(Value::from),
        // As a number, as text, in a sentence, inside JSON.
        (1_000_000_i64..999_999_999_999).prop_map(Value::from),
        "\\+[1-9][0-9]{6,14}".prop_map(Value::from),
        "call [0-9]{3}[ -.][0-9]{3}[ -.][0-9]{4}, yes".prop_map(Value::from),
        r#"\{"n":"\+[1-9][0-9]{9}"\}"#.prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{0,4}|\\+[0-9]{9}", inner, 0..5)
                .prop_map(|members| members.into_iter().collect()),
        ]
    })
}

/// The longest run of digits in a value; fractions are measures.
fn longest_number(value: &Value) -> usize {
    let in_text = |text: &str| text.split(|c: char| !c.is_ascii_digit()).map(str::len).max().unwrap_or(0);
    match value {
        Value::String(text) => in_text(text),
        Value::Number(number) if number.is_f64() => 0,
        Value::Number(number) => in_text(&number.to_string()),
        Value::Array(items) => items.iter().map(longest_number).max().unwrap_or(0),
        Value::Object(members) => {
            members.iter().map(|(name, value)| in_text(name).max(longest_number(value))).max().unwrap_or(0)
        }
        _ => 0,
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

proptest! {
    #[test]
    fn a_phone_number_survives_nowhere_in_a_value(value in anything()) {
        let (arguments, result) = redacted(&json!(null), &json!({"text": value}), &value);
        prop_assert!(longest_number(&arguments) < 7, "{}", arguments);
        prop_assert!(longest_number(&result) < 7, "{}", result);
        prop_assert!(depth(&result) <= DEEPEST + 1);
    }

    #[test]
    fn stored_arguments_and_results_have_limits(value in prop::collection::vec("[ -~é]{0,300}", 0..20)) {
        let (_, result) = redacted(&json!(null), &json!({}), &json!(value));
        let kept: usize = result.as_array().unwrap().iter().map(|text| text.as_str().unwrap().len()).sum();
        // Each text may have its own marker.
        prop_assert!(kept <= BUDGET + 20 * 56, "{}", kept);
    }

    #[test]
    fn a_marked_text_is_in_no_field(text in "[a-zA-Z\"\\\\ ]{4,40}", before in "[a-z ]{0,8}") {
        prop_assume!(text.trim().len() >= 4 && !HIDDEN.contains(text.trim()) && !before.contains(text.trim()));
        let echo = json!({"said": format!("{before}{text}."), "raw": json!({"m": text}).to_string()});
        let (arguments, result) = redacted(&json!(["text"]), &json!({"text": text, "to": text}), &echo);
        for field in [&arguments["text"], &arguments["to"], &result["said"], &result["raw"]] {
            prop_assert!(!field.as_str().unwrap().contains(text.trim()), "{}", field);
        }
    }
}
