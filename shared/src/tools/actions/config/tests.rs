use serde_json::json;

use super::*;
use crate::Error;

fn problems(body: &Value) -> Vec<String> {
    match ToolConfig::parse(body) {
        Err(Error::Invalid(problems)) => problems.iter().map(|problem| problem.field.clone()).collect(),
        other => panic!("{other:?}"),
    }
}

fn sms() -> Value {
    json!({
        "type": "sms", "label": "Send SMS", "from": {"type": "called_number"},
        "text": {"mode": "ai", "prompt": "The message"},
        "recipients": {"mode": "fixed", "value": ["{{caller_phone_number}}"]},
    })
}

fn with(mut body: Value, changes: &Value) -> Value {
    for (name, value) in changes.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

#[test]
fn a_model_sees_only_its_own_parameters() {
    let config = ToolConfig::parse(&sms()).unwrap();
    let name: ToolName = "send_sms".parse().unwrap();
    assert_eq!(
        config.function_schema(&name),
        json!({
            "name": "send_sms", "description": "Send SMS",
            "parameters": {
                "type": "object",
                "properties": {"text": {"type": "string", "description": "The message"}},
                "required": ["text"],
            },
        })
    );
    assert_eq!(
        config.static_config(),
        json!({"from": {"type": "called_number"}, "recipients": ["{{caller_phone_number}}"]})
    );
}

#[test]
fn every_type_survives_the_round_trip_through_the_table() {
    let id = uuid::Uuid::nil();
    for body in [
        sms(),
        json!({"type": "apiRequest", "label": "L", "description": "D", "method": "post", "url": "https://api.example.com/{{caller_phone_number}}",
               "headers": {"x-key": {"mode": "fixed", "value": "s3cret"}}, "body": {"n": {"mode": "ai", "prompt": "p", "schema": {"type": "integer"}}}}),
        json!({"type": "externalApp", "label": "L", "pipedreamMetadata": {"app": "gmail", "accountId": "apn_1", "actionKey": "gmail-send-email",
               "dynamicPropsId": "dyp_1"}, "preloadedParams": {"x": 1}, "params": {"to": {"mode": "ai", "prompt": "p"}}}),
        json!({"type": "transferCall", "label": "L", "target": {"type": "number", "number": "+15550100009"}, "messageStrategy": "summary"}),
        json!({"type": "transfer_call", "label": "L", "message": "M", "destinations": [
            {"type": "number", "number": "+15550100009", "label": "Desk", "description": "by day"},
            {"type": "assistant", "assistantId": id, "label": "Night"}]}),
        json!({"type": "query", "label": "L", "knowledge_base_id": id}),
        json!({"type": "query", "label": "L", "knowledge_base_id": id, "filters": {"price": ["at_most"], "sold": {"equals": {"mode": "fixed", "value": false}}}}),
    ] {
        let config = ToolConfig::parse(&body).unwrap();
        let stored = config.to_json();
        assert_eq!(ToolConfig::parse(&stored).unwrap(), config, "{stored}");
        assert_eq!(stored["type"], config.kind().as_str());
    }
}

#[test]
fn preloaded_and_dynamic_props_are_kept() {
    let body = json!({"type": "pipedream_action", "label": "L", "preloadedParams": {"sheetId": "s"}, "params": {},
        "pipedreamMetadata": {"app": "google_sheets", "accountId": "apn_1", "actionKey": "k", "dynamicPropsId": "dyp_1"}});
    let stored = ToolConfig::parse(&body).unwrap().to_json();
    assert_eq!(stored["preloadedParams"], json!({"sheetId": "s"}));
    assert_eq!(stored["pipedreamMetadata"]["dynamicPropsId"], "dyp_1");
}

#[test]
fn array_extendable_works_for_every_type() {
    let list =
        json!({"mode": "array_extendable", "fixedValues": ["a"], "aiExtension": {"enabled": true, "prompt": "more"}});
    let api = json!({"type": "api_request", "label": "L", "method": "POST", "url": "https://x.example.com", "body": {"tags": list}});
    let schema = ToolConfig::parse(&api).unwrap().function_schema(&"l".parse().unwrap());
    assert_eq!(schema["parameters"]["properties"]["body_tags"]["type"], "array");
    assert_eq!(schema["parameters"]["required"], json!([]));
}

#[test]
fn a_tool_without_arguments_shows_one_dummy_because_vapi_wants_one() {
    let body = with(sms(), &json!({"text": {"mode": "fixed", "value": "Hello"}}));
    let schema = ToolConfig::parse(&body).unwrap().function_schema(&"x".parse().unwrap());
    let properties = schema["parameters"]["properties"].as_object().unwrap();
    assert_eq!(properties.keys().collect::<Vec<_>>(), [crate::models::NO_ARGUMENTS]);
}

#[test]
fn a_preemptive_tool_cannot_have_ai_parameters() {
    let preemptive = json!({"attach_to_agent": false, "execute_on_call_start": true});
    assert_eq!(problems(&with(sms(), &preemptive)), ["text"]);
    assert_eq!(problems(&with(sms(), &json!({"attach_to_agent": false}))), ["execute_on_call_start", "text"]);
    let fixed = with(with(sms(), &preemptive), &json!({"text": {"mode": "fixed", "value": "Hi"}}));
    assert!(ToolConfig::parse(&fixed).is_ok());
}

#[test]
fn everything_wrong_is_named_at_once() {
    let body = json!({
        "type": "sms", "label": "", "from": {"type": "specific_number"}, "text": {"mode": "ai"},
        "recipients": {"mode": "fixed", "value": ["12345", "{{nobody}}"]}, "async": "yes", "colour": "red",
    });
    let mut named = problems(&body);
    named.sort();
    assert_eq!(
        named,
        [
            "async",
            "colour",
            "from.phone_number_id",
            "label",
            "recipients.value[0]",
            "recipients.value[1]",
            "text.prompt"
        ]
    );
    assert_eq!(problems(&json!({"label": "x"})), ["type"]);
    assert_eq!(problems(&json!({"label": "x", "type": "fax"})), ["type"]);
    assert_eq!(problems(&json!([1])), ["body"]);
    let api = json!({"type": "api_request", "label": "L", "method": "BREW", "url": "ftp://x", "headers": {"Host": "evil", "Accept-Encoding": "gzip", "ok": 5}});
    let mut named = problems(&api);
    named.sort();
    assert_eq!(named, ["headers.Accept-Encoding", "headers.Host", "headers.ok", "method", "url.value"]);
}

#[test]
fn a_fixed_content_type_is_that_of_the_body_that_will_be_sent() {
    let api = |content_type: &str, body: Value| {
        json!({"type": "api_request", "label": "L", "method": "POST", "url": "https://x.example.com/",
            "headers": {"content-type": content_type}, "body": body})
    };
    let ai = |schema: Value| json!({"mode": "ai", "prompt": "p", "schema": schema});
    let flat = json!({"a": "x", "b": {"mode": "fixed", "value": 5}, "c": ai(json!({"type": "integer"}))});
    let nested = json!({
        "a": {"mode": "fixed", "value": {"b": 1}}, "b": ["x"], "c": ai(json!({"type": "object"})),
        "d": ai(json!({"type": "array", "items": {"type": "string"}})),
        "e": {"mode": "array_extendable", "fixedValues": ["a"]}, "f": "x",
    });
    let form = "Application/x-www-form-urlencoded; charset=UTF-8";
    for json in
        ["application/json", "application/json; charset=utf-8", "application/vnd.api+json", "{{now}}", "[secret]"]
    {
        assert!(ToolConfig::parse(&api(json, nested.clone())).is_ok(), "{json}");
    }
    assert!(ToolConfig::parse(&api(form, flat.clone())).is_ok());
    assert_eq!(problems(&api(form, nested.clone())), ["body.a", "body.b", "body.c", "body.d", "body.e"]);
    for other in ["text/plain", "application/xml", "multipart/form-data; boundary=x", ""] {
        assert_eq!(problems(&api(other, flat.clone())), ["headers.content-type.value"], "{other}");
        assert!(ToolConfig::parse(&api(other, json!({}))).is_ok(), "no body, no contradiction: {other}");
        let read = with(api(other, nested.clone()), &json!({"method": "GET"}));
        assert!(ToolConfig::parse(&read).is_ok(), "its members are the query: {other}");
    }
}

/// Anthropic refuses a whole request for one such name.
#[test]
fn a_model_fills_in_no_parameter_whose_name_has_a_dollar_sign() {
    let ai = json!({"mode": "ai", "prompt": "p"});
    let more =
        json!({"mode": "array_extendable", "fixedValues": ["a"], "aiExtension": {"enabled": true, "prompt": "more"}});
    let api = json!({"type": "api_request", "label": "L", "method": "GET", "url": "https://x.example.com/",
        "headers": {"x$a": ai}, "body": {"$filter": "price lt 5", "$top": ai, "$select": more}});
    assert_eq!(problems(&api), ["headers.x$a", "body.$select", "body.$top"]);
    let action = json!({"type": "pipedream_action", "label": "L", "params": {"$to": ai, "$from": "a"},
        "pipedreamMetadata": {"app": "gmail", "accountId": "apn_1", "actionKey": "k"}});
    assert_eq!(problems(&action), ["params.$to"]);
    // Older rows may hold such names.
    let url = json!({"mode": "fixed", "value": "https://x.example.com/"});
    let stored = with(api, &json!({"url": url, "headers": {"x$a": ai}, "body": {"$top": ai}}));
    assert!(serde_json::from_value::<ToolConfig>(stored).is_ok());
}

#[test]
fn a_header_and_an_address_are_one_line_of_text() {
    let number = json!({"mode": "ai", "prompt": "p", "schema": {"type": "integer"}});
    let api = json!({"type": "api_request", "label": "L", "method": "GET", "url": number, "allowed_hosts": ["x.example.com"], "headers": {
        "x-number": number, "x-lines": "a\nb", "x-bell": {"mode": "fixed", "value": "a\u{7}"}, "x-padded": " key\r\n",
        "x-umlaut": "Köln", "x-text": {"mode": "ai", "prompt": "p"},
    }});
    assert_eq!(
        problems(&api),
        ["url.schema.type", "headers.x-bell.value", "headers.x-lines.value", "headers.x-number.schema.type"]
    );
}

#[test]
fn variables_must_not_choose_the_host() {
    let api = json!({"type": "api_request", "label": "L", "method": "GET", "url": "https://{{caller_phone_number}}.example.com/"});
    assert_eq!(problems(&api), ["url.value"]);
}

#[test]
fn marks_are_paths_into_arguments_and_results() {
    let marked = |redact: &Value| with(sms(), &json!({"redact": redact}));
    let config = ToolConfig::parse(&marked(&json!(["text", " result.recipients.to ", "result", "*", "text"]))).unwrap();
    assert_eq!(config.to_json()["redact"], json!(["*", "result", "result.recipients.to", "text"]));
    for none in [json!(null), json!([])] {
        assert!(ToolConfig::parse(&marked(&none)).unwrap().to_json().get("redact").is_none());
    }
    assert_eq!(problems(&marked(&json!("text"))), ["redact"]);
    assert_eq!(problems(&marked(&json!(vec!["text"; 51]))), ["redact"]);
    let wrong = json!(["body", "texts", "text.", "", 7, "x".repeat(201), "text"]);
    let named = ["redact[0]", "redact[1]", "redact[2]", "redact[3]", "redact[4]", "redact[5]"];
    assert_eq!(problems(&marked(&wrong)), named, "a mark that fits no argument would hide nothing");
    let query = |redact: &Value| json!({"type": "query", "label": "L", "knowledge_base_id": uuid::Uuid::nil(), "redact": redact});
    assert!(ToolConfig::parse(&query(&json!(["query", "price_at_most"]))).is_ok(), "filters are derived later");
    assert_eq!(problems(&query(&json!(["price"]))), ["redact[0]"]);
}

#[test]
fn tools_with_an_unknown_effect_may_declare_it() {
    let api = |method: &str, effect: Value| {
        let body = json!({"type": "api_request", "label": "L", "method": method, "url": "https://example.com/"});
        if effect.is_null() { body } else { with(body, &json!({"effect": effect})) }
    };
    let effect = |body: &Value| ToolConfig::parse(body).unwrap().effect();
    assert_eq!(effect(&api("POST", json!("payment"))), ToolEffect::Payment);
    assert_eq!(effect(&api("POST", Value::Null)), ToolEffect::Undeclared);
    assert_eq!(
        (effect(&api("GET", Value::Null)), effect(&api("GET", json!("none")))),
        (ToolEffect::None, ToolEffect::None)
    );
    assert_eq!(effect(&sms()), ToolEffect::Sms);
    let config = ToolConfig::parse(&api("POST", json!("email"))).unwrap();
    assert_eq!(config.to_json()["effect"], "email");
    for wrong in [
        api("POST", json!("none")),
        api("GET", json!("record")),
        api("POST", json!("telepathy")),
        api("POST", json!(true)),
        with(sms(), &json!({"effect": "sms"})),
    ] {
        assert_eq!(problems(&wrong), ["effect"], "{wrong}");
    }
}
