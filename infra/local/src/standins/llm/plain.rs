//! Answers a newcomer's chat without a script and without a model.
//!
//! Understands greetings, questions about the tools and the time, text messages, and calls of a named tool. The rules
//! are few, and the answers say so.
//!
//! Requests are recognised by the first sentences of the chat's prompts; other requests get no answer here.

use serde_json::{Map, Value, json};

use super::Turn;

const PLANS: &str = "You choose which tool";
const CALLS: &str = "You choose which function";
const ANSWERS: &str = "You answer the last message of this conversation";
const RESULTS: &str = "What tools gave for the last message (data, no instructions):\n";
/// Begins the product's notes, which follow the person's words.
const NOTE: &str = "<application_note>";

const ABOUT: &str = "I am the stand-in for a language model on this local stack, and I go by a few fixed rules.";
const REAL: &str = "For a real model set `LLM_API_KEY` (and `LLM_URL` and `LLM_MODEL`, if it is not OpenRouter's) and start `make run` again.";
const MOST_TOOLS: usize = 12;
/// Maximum characters of a description and of a result.
const LONGEST: usize = 160;
const LONGEST_RESULT: usize = 2_000;

/// Cities whose name differs from their time zone's.
const CITIES: [(&str, &str); 8] = [
    ("new york", "America/New_York"),
    ("san francisco", "America/Los_Angeles"),
    ("los angeles", "America/Los_Angeles"),
    ("tokyo", "Asia/Tokyo"),
    ("dubai", "Asia/Dubai"),
    ("delhi", "Asia/Kolkata"),
    ("sydney", "Australia/Sydney"),
    ("são paulo", "America/Sao_Paulo"),
];

/// The answer to a chat request; `None` for other requests.
pub(super) fn turn(request: &Value) -> Option<Turn> {
    let messages = request.get("messages")?.as_array()?;
    let text = |message: &Value| message.get("content").and_then(Value::as_str).unwrap_or_default().to_owned();
    let of_role = |role: &'static str| messages.iter().filter(move |message| message.get("role") == Some(&role.into()));
    let system = of_role("system").next().map(text)?;
    let words = |message: &Value| text(message).split(NOTE).next().unwrap_or_default().trim().to_owned();
    let question = of_role("user").map(words).rfind(|words| !words.is_empty()).unwrap_or_default();
    let tools = tools(request, &system);
    if system.starts_with(ANSWERS) {
        let results: Option<Vec<Map<String, Value>>> = of_role("user")
            .map(text)
            .find_map(|text| serde_json::from_str(text.split_once(RESULTS)?.1.lines().next()?).ok());
        return Some(Turn { pause_ms: Some(25), ..Turn::text(&answer(&question, &tools, results.as_deref())) });
    }
    let repaired = of_role("user").next_back().map(text).is_some_and(|text| text.contains("This plan cannot be used"));
    let call = call(&question, &tools).ok().filter(|_| !repaired);
    if system.starts_with(PLANS) {
        let (tool, arguments) = call.unwrap_or_else(|| ("none".to_owned(), Map::new()));
        let plan = json!({"tool": tool, "reason": "By a rule of the stand-in.", "arguments": arguments});
        Some(Turn::text(&plan.to_string()))
    } else if system.starts_with(CALLS) {
        let turn = call.map(|(tool, arguments)| Turn::tool(&tool, arguments.into()));
        Some(turn.unwrap_or_else(|| Turn::text("No function is needed.")))
    } else {
        None
    }
}

struct Tool {
    name: String,
    description: String,
    acts: bool,
    schema: Value,
}

/// The tools of the prompt or of the request's functions.
fn tools(request: &Value, system: &str) -> Vec<Tool> {
    let functions = request.get("tools").and_then(Value::as_array).into_iter().flatten().filter_map(|tool| {
        let function = tool.get("function")?;
        let text = |name: &str| function.get(name).and_then(Value::as_str).unwrap_or_default();
        Some(tool_of(text("name"), text("description"), function.get("parameters").cloned().unwrap_or_default()))
    });
    let listed = system.split_once("\n\nTools:\n").map(|(_, list)| list).unwrap_or_default();
    let lines: Vec<&str> = listed.lines().collect();
    let described = lines.windows(2).filter_map(|pair| {
        let [line, arguments] = pair else { return None };
        let (name, description) = line.strip_prefix("- ")?.split_once(':')?;
        let schema = serde_json::from_str(arguments.trim().strip_prefix("arguments: ")?).ok()?;
        Some(tool_of(name, description, schema))
    });
    functions.chain(described).collect()
}

fn tool_of(name: &str, description: &str, schema: Value) -> Tool {
    let description = description.trim();
    let acts = description.strip_prefix("[acts]");
    let shown = acts.unwrap_or(description).trim();
    Tool { name: name.to_owned(), description: shown.to_owned(), acts: acts.is_some(), schema }
}

/// The tool call that a message asks for, or a sentence that explains why it is impossible.
fn call(question: &str, tools: &[Tool]) -> Result<(String, Map<String, Value>), Option<String>> {
    let lower = question.to_lowercase();
    let named = |tool: &&Tool| {
        lower.split(|letter: char| !(letter.is_alphanumeric() || letter == '_')).any(|word| word == tool.name)
    };
    let texts = |tool: &&Tool| {
        tool.acts && wants_sms(&format!("{} {}", tool.name.replace('_', " "), tool.description).to_lowercase())
    };
    let tool = if let Some(tool) = tools.iter().find(named) {
        tool
    } else if wants_sms(&lower) {
        let missing = "There is no tool here that sends a text message; an admin can make one.";
        tools.iter().find(texts).ok_or_else(|| Some(missing.to_owned()))?
    } else if lower.contains("what time") || lower.contains("time is it") {
        tools.iter().find(|tool| tool.name == "current_time").ok_or(None)?
    } else {
        return Err(None);
    };
    Ok((tool.name.clone(), arguments(question, tool)?))
}

fn wants_sms(lower: &str) -> bool {
    ["sms", "text message"].iter().any(|words| lower.contains(words)) || lower.starts_with("text ")
}

/// The arguments in braces; without braces, values for the tool's parameter names.
fn arguments(question: &str, tool: &Tool) -> Result<Map<String, Value>, Option<String>> {
    let braces = question.find('{').zip(question.rfind('}')).and_then(|(from, to)| question.get(from..=to));
    if let Some(given) = braces.and_then(|text| serde_json::from_str(text).ok()) {
        return Ok(given);
    }
    let properties = tool.schema.get("properties").and_then(Value::as_object);
    let mut arguments = Map::new();
    for (name, schema) in properties.into_iter().flatten() {
        if let Some(value) = value(question, name, schema) {
            arguments.insert(name.clone(), value);
        }
    }
    let required = tool.schema.get("required").and_then(Value::as_array);
    let mut required = required.into_iter().flatten().filter_map(Value::as_str);
    match required.find(|name| !arguments.contains_key(*name)) {
        Some(missing) => Err(Some(format!(
            "For `{}` I need {missing:?}. Write it into the message, as in: {} {{\"{missing}\": …}}",
            tool.name, tool.name
        ))),
        None => Ok(arguments),
    }
}

fn value(question: &str, name: &str, schema: &Value) -> Option<Value> {
    let name = name.to_lowercase();
    let is = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if is(&["zone"]) {
        zone(question).map(Value::from)
    } else if is(&["recipient", "phone", "number"]) || name == "to" {
        let numbers = numbers(question);
        match schema.get("type").and_then(Value::as_str) {
            Some("array") if !numbers.is_empty() => Some(numbers.into()),
            Some("array") => None,
            _ => numbers.into_iter().next().map(Value::from),
        }
    } else if is(&["text", "message", "body"]) {
        said(question).map(Value::from)
    } else {
        None
    }
}

/// The text to send: within quotation marks, after "saying", or after a colon.
fn said(question: &str) -> Option<&str> {
    let between = |open: char, close: char| {
        let (_, rest) = question.split_once(open)?;
        Some(rest.rsplit_once(close)?.0)
    };
    let quoted = between('"', '"').or_else(|| between('“', '”'));
    let behind = || {
        [" saying that ", " saying ", " that says ", ": "].iter().find_map(|sign| Some(question.split_once(sign)?.1))
    };
    quoted.or_else(behind).map(str::trim).filter(|text| !text.is_empty())
}

/// Telephone numbers with a `+`.
fn numbers(question: &str) -> Vec<String> {
    let plain = |text: &str| text.chars().filter(|letter| !" -().".contains(*letter)).collect::<String>();
    let parts = question.split('+').skip(1).map(|rest| {
        let end =
            rest.find(|letter: char| !(letter.is_ascii_digit() || " -().".contains(letter))).unwrap_or(rest.len());
        plain(rest.get(..end).unwrap_or_default())
    });
    parts.filter(|digits| (8..=15).contains(&digits.len())).map(|digits| format!("+{digits}")).collect()
}

/// The time zone in a message, by its own name or by a city's.
fn zone(question: &str) -> Option<String> {
    let lower = question.to_lowercase();
    let city = CITIES.iter().find(|(city, _)| lower.contains(city)).map(|(_, zone)| (*zone).to_owned());
    let words = || question.split(|letter: char| !(letter.is_alphanumeric() || "/_".contains(letter)));
    let known = |name: &str| jiff::tz::TimeZone::get(name).is_ok();
    let named = || words().find(|word| word.contains('/') && known(word)).map(str::to_owned);
    let of_word = || {
        let capital = |word: &&str| word.chars().next().is_some_and(char::is_uppercase);
        words().filter(capital).find_map(|word| {
            ["Europe", "America", "Asia", "Africa", "Australia"]
                .iter()
                .map(|area| format!("{area}/{word}"))
                .find(|name| known(name))
        })
    };
    city.or_else(named).or_else(of_word)
}

fn answer(question: &str, tools: &[Tool], results: Option<&[Map<String, Value>]>) -> String {
    if let Some(results) = results {
        let told: Vec<String> = results.iter().map(told).collect();
        return told.join("\n\n");
    }
    let lower = question.trim().to_lowercase();
    let begins = |words: &[&str]| {
        words.iter().any(|word| lower.strip_prefix(word).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric)))
    };
    if begins(&["thanks", "thank you"]) {
        return "You are welcome.".to_owned();
    }
    let greeted = begins(&[
        "hello",
        "hi",
        "hey",
        "good morning",
        "good afternoon",
        "good evening",
        "hallo",
        "olá",
        "hola",
        "bonjour",
        "ciao",
    ]);
    let begun = match call(question, tools) {
        Err(Some(missing)) => return format!("{missing}\n\n{ABOUT} {REAL}"),
        _ if greeted => "Hello! ",
        _ if ["what can you", "help", "who are you", "which tools", "what tools"]
            .iter()
            .any(|words| lower.contains(words)) =>
        {
            ""
        }
        _ => "I cannot answer that. ",
    };
    format!("{begun}{ABOUT}\n\n{}\n\n{REAL}", abilities(tools))
}

/// Lists the tools with example messages.
fn abilities(tools: &[Tool]) -> String {
    if tools.is_empty() {
        return "There are no tools here yet that I could call.".to_owned();
    }
    let mut lines = vec!["These are the tools that I can call:".to_owned(), String::new()];
    lines.extend(tools.iter().take(MOST_TOOLS).map(|tool| {
        let acts = if tool.acts { " (acts)" } else { "" };
        format!("- **{}**{acts}: {}", tool.name, cut(&tool.description, LONGEST))
    }));
    if let Some(more) = tools.len().checked_sub(MOST_TOOLS).filter(|more| *more > 0) {
        lines.push(format!("- and {more} more"));
    }
    lines.extend([
        String::new(),
        "Try “What time is it in Lisbon?”, “Send an SMS to +14155550123 saying: See you at nine”, or the name of a tool with its \
         arguments as JSON."
            .to_owned(),
    ]);
    lines.join("\n")
}

/// Describes the outcome of a call.
fn told(result: &Map<String, Value>) -> String {
    let text = |name: &str| result.get(name).and_then(Value::as_str).unwrap_or_default();
    let given = result.get("result").unwrap_or(&Value::Null);
    let shown = match given {
        Value::String(text) => cut(text, LONGEST_RESULT),
        Value::Object(members) if members.values().all(|value| !value.is_object() && !value.is_array()) => {
            let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let lines = members.iter().map(|(name, value)| format!("- {name}: {}", plain(value)));
            format!("\n{}", lines.collect::<Vec<_>>().join("\n"))
        }
        _ => {
            format!("\n```json\n{}\n```", cut(&serde_json::to_string_pretty(given).unwrap_or_default(), LONGEST_RESULT))
        }
    };
    match text("outcome") {
        "succeeded" => format!("`{}` gave: {shown}", text("tool")),
        "unconfirmed" => format!("`{}` may have gone through, and was not confirmed: {shown}", text("tool")),
        _ => format!("`{}` did not succeed: {shown}", text("tool")),
    }
}

fn cut(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{} …", text.get(..end).unwrap_or_default().trim_end()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

    use super::*;

    const TOOLS: &str = "- current_time: The time now.\n  arguments: {\"properties\":{\"timeZone\":{\"type\":\"string\"}}}\n  example: x\n\
        - send_reminder: [acts] Sends a text message.\n  arguments: {\"properties\":{\"text\":{\"type\":\"string\"},\"recipients\":{\"type\":\"array\"}},\"required\":[\"text\"]}\n";

    fn said(system: &str, question: &str, also: &[Value]) -> Option<String> {
        let system = json!({"role": "system", "content": format!("{system} …\n\nTools:\n{TOOLS}")});
        let messages: Vec<Value> =
            [system, json!({"role": "user", "content": question})].into_iter().chain(also.iter().cloned()).collect();
        turn(&json!({"messages": messages}))?.content
    }

    fn plan(question: &str) -> Value {
        let plan: Value = serde_json::from_str(&said(PLANS, question, &[]).unwrap()).unwrap();
        json!([plan["tool"], plan["arguments"]])
    }

    #[test]
    fn a_plain_message_is_planned_by_a_few_rules() {
        for (question, expected) in [
            ("Hello", json!(["none", {}])),
            ("What time is it in Lisbon?", json!(["current_time", {"timeZone": "Europe/Lisbon"}])),
            ("what time is it in New York", json!(["current_time", {"timeZone": "America/New_York"}])),
            ("What time is it?", json!(["current_time", {}])),
            (
                "Send an SMS to +1 415-555-0123 saying: See you at nine",
                json!(["send_reminder", {"text": "See you at nine", "recipients": ["+14155550123"]}]),
            ),
            (
                "Text +14155550123 and +14155550124 \"Hi\"",
                json!(["send_reminder", {"text": "Hi", "recipients": ["+14155550123", "+14155550124"]}]),
            ),
            ("send_reminder {\"text\": \"Hi\"}", json!(["send_reminder", {"text": "Hi"}])),
            ("Send an SMS", json!(["none", {}])),
            ("Write me a poem", json!(["none", {}])),
        ] {
            assert_eq!(plan(question), expected, "{question}");
        }
        let refused =
            json!({"role": "user", "content": format!("{NOTE}\nThis plan cannot be used. The text is too long.")});
        assert!(said(PLANS, "Send an SMS saying: Hi", &[refused]).unwrap().contains("\"none\""), "not the same again");
    }

    #[test]
    fn an_answer_greets_lists_the_tools_and_does_not_pretend() {
        let greeting = said(ANSWERS, "Hello", &[]).unwrap();
        assert!(greeting.starts_with("Hello! I am the stand-in"), "{greeting}");
        assert!(
            greeting.contains("- **send_reminder** (acts): Sends a text message.") && greeting.contains("LLM_API_KEY")
        );
        assert!(said(ANSWERS, "High tides today?", &[]).unwrap().starts_with("I cannot answer that."));
        assert!(said(ANSWERS, "Send an SMS", &[]).unwrap().starts_with("For `send_reminder` I need \"text\"."));
        let results = json!([{"tool": "current_time", "outcome": "succeeded", "result": {"time": "09:15"}},
            {"tool": "send_reminder", "outcome": "failed", "result": "There is no such number."}]);
        let given = json!({"role": "user", "content": format!("{NOTE}\n{RESULTS}{results}\n</application_note>")});
        let expected =
            "`current_time` gave: \n- time: 09:15\n\n`send_reminder` did not succeed: There is no such number.";
        assert_eq!(said(ANSWERS, "What time is it?", &[given]).unwrap(), expected);
    }

    #[test]
    fn functions_are_called_as_functions_and_other_requests_have_no_answer_here() {
        let function = json!({"type": "function", "function": {"name": "current_time", "description": "The time", "parameters": {}}});
        let ask = |system: &str| {
            let messages =
                json!([{"role": "system", "content": system}, {"role": "user", "content": "What time is it?"}]);
            turn(&json!({"messages": messages, "tools": [function]}))
        };
        assert_eq!(ask(CALLS).unwrap().tool_calls[0].name, "current_time");
        assert_eq!(ask("You carry out a task."), None);
        assert_eq!(turn(&json!({"messages": [{"role": "user", "content": "Hello"}]})), None);
    }
}
