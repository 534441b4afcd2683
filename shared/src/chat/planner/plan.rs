//! Reads the calls that a model requests, tolerantly.
//!
//! `{"tool": "sales_report" | "none", "reason": "…", "arguments": {…}}`, alone, in a fence, or within prose; a list of
//! such plans is several calls. A mistake is named in one sentence, for one question to the model.

use serde_json::{Map, Value};

use crate::{
    clients::llm::{Completion, ToolCall},
    fields::kind,
    models::PlannedCall,
};

/// Places of a text that are tried as the beginning of JSON.
const MOST_BEGINNINGS: usize = 200;

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Plan {
    /// Empty: no tool is needed.
    pub(super) calls: Vec<PlannedCall>,
}

/// Reads a plan that a model wrote as text. `is_tool` knows the offered tools.
///
/// # Errors
/// One sentence that names the mistake.
pub(super) fn read(text: &str, is_tool: impl Fn(&str) -> bool) -> Result<Plan, String> {
    if let Some(value) = written_plan(text) {
        return of_value(&value);
    }
    // Prose alone means that no tool is needed, unless it names a tool.
    let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_' && letter != '-');
    if !text.contains('{') && !words.into_iter().any(|word| !word.is_empty() && is_tool(word)) {
        return Ok(Plan::default());
    }
    Err("There is no plan in your message that can be read.".to_owned())
}

pub(super) fn of_values(values: &[Value]) -> Result<Plan, String> {
    let mut calls = Vec::new();
    for value in values {
        if value.is_null() {
            return Err("The plan was cut off.".to_owned());
        }
        calls.extend(of_value(value)?.calls);
    }
    Ok(Plan { calls })
}

/// Reads the functions that a model called itself.
///
/// # Errors
/// As [`read`].
pub(super) fn of_functions(completion: &Completion) -> Result<Plan, String> {
    let call = |call: &ToolCall| {
        let written = call.arguments.trim();
        let arguments = if written.is_empty() { Value::Null } else { Value::from(written) };
        Ok(PlannedCall {
            tool: call.name.clone(),
            reason: String::new(),
            arguments: arguments_of(Some(&arguments), &call.name)?,
            ..PlannedCall::default()
        })
    };
    let calls = completion.tool_calls.iter().map(call).collect::<Result<_, String>>()?;
    Ok(Plan { calls })
}

fn unfenced(text: &str) -> &str {
    let Some(inner) = text.strip_prefix("```").and_then(|text| text.strip_suffix("```")) else { return text };
    let after_language = inner.split_once('\n').map_or(inner, |(_language, rest)| rest);
    after_language.trim()
}

/// The first JSON in a text that looks like a plan; otherwise the whole text, if it is JSON.
fn written_plan(text: &str) -> Option<Value> {
    if let Ok(value) = serde_json::from_str::<Value>(unfenced(text.trim())) {
        return Some(value).filter(|value| value.is_object() || value.is_array());
    }
    let mut from = 0;
    for _ in 0..MOST_BEGINNINGS {
        let rest = text.get(from..)?;
        let at = from + rest.find(['{', '['])?;
        let mut values = serde_json::Deserializer::from_str(text.get(at..)?).into_iter::<Value>();
        if let Some(Ok(value)) = values.next() {
            if is_plan(&value) {
                return Some(value);
            }
            // This JSON is data, so its content is not a plan either.
            from = at + values.byte_offset();
        } else {
            from = at + 1;
        }
    }
    None
}

fn is_plan(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.contains_key("tool") || members.contains_key("tool_name"),
        Value::Array(items) => !items.is_empty() && items.iter().all(|item| item.is_object() && is_plan(item)),
        _ => false,
    }
}

/// Whether JSON in an answer is a plan, not data that mentions a tool.
pub(super) fn is_call(value: &Value) -> bool {
    match value {
        Value::Object(members) => {
            let named = [members.get("tool"), members.get("tool_name")];
            let named = named.into_iter().flatten().next();
            let may_be_name = named.is_some_and(|tool| tool.is_string() || tool.is_null() || tool.is_object());
            may_be_name
                && (members.len() == 1 || ["arguments", "args", "reason"].iter().any(|it| members.contains_key(*it)))
        }
        Value::Array(items) => !items.is_empty() && items.iter().all(|item| item.is_object() && is_call(item)),
        _ => false,
    }
}

fn of_value(value: &Value) -> Result<Plan, String> {
    let calls = match value {
        Value::Array(items) => items.iter().filter_map(|item| call(item).transpose()).collect(),
        value => call(value).map(|call| call.into_iter().collect()),
    };
    Ok(Plan { calls: calls? })
}

/// A call; `None` when the plan says that no tool is needed.
fn call(value: &Value) -> Result<Option<PlannedCall>, String> {
    let Value::Object(members) = value else {
        return Err(format!(
            "A plan must be a JSON object with \"tool\", \"reason\" and \"arguments\", not {}.",
            kind(value)
        ));
    };
    let (tool, nested) = match members.get("tool").or_else(|| members.get("tool_name")) {
        None => return Err("The plan has no \"tool\": name one, or \"none\".".to_owned()),
        Some(Value::Null) => return Ok(None),
        Some(Value::String(name)) => (name.trim(), None),
        // The notation of function calls elsewhere.
        Some(Value::Object(function)) => match function.get("name").and_then(Value::as_str) {
            Some(name) => (name.trim(), function.get("arguments")),
            None => return Err("\"tool\" must be the name of a tool, or \"none\", not an object.".to_owned()),
        },
        Some(other) => return Err(format!("\"tool\" must be the name of a tool, or \"none\", not {}.", kind(other))),
    };
    let tool = tool.strip_prefix("functions.").unwrap_or(tool).trim_end_matches("()");
    if ["", "none", "null", "no_tool"].iter().any(|none| tool.eq_ignore_ascii_case(none)) {
        return Ok(None);
    }
    let given = members.get("arguments").or(nested).or_else(|| members.get("args"));
    let reason = members.get("reason").and_then(Value::as_str).unwrap_or_default().to_owned();
    let arguments = arguments_of(given, tool)?;
    Ok(Some(PlannedCall { tool: tool.to_owned(), reason, arguments, ..PlannedCall::default() }))
}

fn arguments_of(given: Option<&Value>, tool: &str) -> Result<Map<String, Value>, String> {
    let must = |what: &str| Err(format!("The arguments of {tool} must be a JSON object, not {what}."));
    match given {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(arguments)) => Ok(arguments.clone()),
        Some(Value::String(text)) if text.trim().is_empty() => Ok(Map::new()),
        Some(Value::String(text)) => match serde_json::from_str::<Value>(text) {
            Ok(Value::Object(arguments)) => Ok(arguments),
            Ok(Value::Null) => Ok(Map::new()),
            Ok(other) => must(kind(&other)),
            Err(_no_json) => must("text that is not JSON"),
        },
        Some(other) => must(kind(other)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SALES: &str = r#"{"tool": "sales_report", "reason": "asked for it", "arguments": {"year": 2024}}"#;

    fn is_tool(name: &str) -> bool {
        ["sales_report", "send_sms"].contains(&name)
    }

    fn tools(text: &str) -> Result<Vec<(String, Value)>, String> {
        let plan = read(text, is_tool)?;
        Ok(plan.calls.into_iter().map(|call| (call.tool, Value::Object(call.arguments))).collect())
    }

    #[test]
    fn a_plan_is_found_within_other_text() {
        let sales = vec![("sales_report".to_owned(), json!({"year": 2024}))];
        for text in [
            SALES.to_owned(),
            format!("```json\n{SALES}\n```"),
            format!("```\n{SALES}\n```"),
            format!("Sure! Here is my plan {{as JSON}}:\n\n```json\n{SALES}\n```\nShall I go on?"),
            format!("I looked at {{\"year\": 2024}} first. {SALES}"),
            format!("[{SALES}]"),
            format!("\u{feff}[1] {SALES}"),
            r#"{"tool": "sales_report", "arguments": "{\"year\": 2024}"}"#.to_owned(),
            r#"{"tool": "functions.sales_report()", "args": {"year": 2024}}"#.to_owned(),
            r#"{"tool": {"name": "sales_report", "arguments": {"year": 2024}}}"#.to_owned(),
            r#"{"tool_name": " sales_report ", "arguments": {"year": 2024}, "confidence": 0.9}"#.to_owned(),
        ] {
            assert_eq!(tools(&text), Ok(sales.clone()), "{text}");
        }
    }

    #[test]
    fn every_spelling_of_no_tool_means_no_tool() {
        for text in [
            r#"{"tool": "none", "reason": "a greeting", "arguments": {}}"#,
            r#"{"tool": "NONE"}"#,
            r#"{"tool": null, "arguments": null}"#,
            r#"{"tool": ""}"#,
            r#"[{"tool": "none"}]"#,
            "[]",
            "Hello! How can I help you?",
            "",
        ] {
            assert_eq!(tools(text), Ok(Vec::new()), "{text}");
        }
    }

    #[test]
    fn a_list_is_several_calls() {
        let two = format!("[{SALES}, {{\"tool\": \"send_sms\"}}, {{\"tool\": \"none\"}}]");
        let names: Vec<String> = tools(&two).unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["sales_report", "send_sms"]);
        let many = format!("[{}]", [SALES; 9].join(","));
        assert_eq!(tools(&many).unwrap().len(), 9, "what is too much is not cut in silence");
    }

    #[test]
    fn an_impossible_plan_is_refused_with_its_mistake() {
        for (text, named) in [
            (r#"{"tool": 7}"#, "\"tool\" must be the name of a tool, or \"none\", not a number"),
            (r#"{"tool": ["sales_report"]}"#, "not a list"),
            (r#"{"tool": {"id": 1}}"#, "not an object"),
            (
                r#"{"tool": "sales_report", "arguments": [2024]}"#,
                "arguments of sales_report must be a JSON object, not a list",
            ),
            (r#"{"tool": "sales_report", "arguments": "year 2024"}"#, "text that is not JSON"),
            (r#"{"tool": "sales_report", "arguments": 2024}"#, "not a number"),
            (r#"{"reason": "none needed"}"#, "has no \"tool\""),
            ("[1, 2]", "must be a JSON object"),
            ("I will call sales_report for 2024.", "no plan"),
            ("{\"tool\": \"sales_report\"", "no plan"),
            ("{{{{", "no plan"),
        ] {
            let told = tools(text).unwrap_err();
            assert!(told.contains(named), "{text}: {told}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused_never_a_panic(text in "[\\[\\]{}\":,a-z0-9 `\\n\\\\]{0,80}") {
            let _ = read(&text, is_tool);
        }
    }
}
