//! The report that is printed when everything runs.

use std::path::Path;

use serde_json::{Value, json};

use crate::{demo::Played, progress::Progress, stack::Stack};

/// Wider table values are broken into lines of this many characters.
const WIDTH: usize = 84;

/// Prints addresses, token, and commands to try.
pub fn show(stack: &Stack, played: Option<&Played>, progress: &Progress) {
    let about = &stack.description;
    let state = shown(stack.state_dir());
    let row = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let asks_standin = about.llm_url.starts_with(&about.standins.llm);
    progress.line("\nEverything runs:");
    let mut rows = vec![row("API", &about.api_url)];
    if let Some(stream_url) = &about.stream_url {
        rows.extend([
            row("streamed answers", stream_url),
            row("console", &about.console_url),
            row("sign in there as", &about.console_user.email),
            row("with the password", &about.console_user.password),
        ]);
    }
    rows.extend([
        row("VAPI stand-in", &about.standins.vapi),
        row("Twilio stand-in", &about.standins.twilio),
        row("Pipedream stand-in", &about.standins.pipedream),
        row("LLM stand-in", &about.standins.llm),
        row("LLM that is asked", if asks_standin { "the stand-in" } else { &about.llm_url }),
        row("CRM stand-in", &about.standins.crm),
        row("web site", &about.standins.site),
        row("Google stand-in", &about.standins.google),
        row("AWS (ministack)", &about.endpoint_url),
        row("organization", &about.slug),
        row("agent", &about.agent_id),
        row("phone number", &about.phone_number),
        row("all of this as JSON", &format!("{state}/stack.json")),
        row("the same as shell variables", &format!("{state}/shell")),
        row("environment of the functions", &format!("{state}/env")),
        row("docs/getting-started.md, here", &format!("{state}/trial")),
        row("logs", &format!("{state}/functions.log, {state}/ministack.log")),
    ]);
    progress.line(&table(&rows));
    progress.line(&format!("\nA token of the demo user, good for 24 hours:\n\nexport TOKEN={}\n", about.token));
    progress.line("Commands to try in another terminal:\n");
    for (what, command) in commands(stack, played).into_iter().chain(chat(stack)) {
        progress.line(&format!("# {what}\n{command}\n"));
    }
}

/// A path relative to the working directory, if it lies within.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path).display().to_string()
}

fn commands(stack: &Stack, played: Option<&Played>) -> Vec<(&'static str, String)> {
    let about = &stack.description;
    let api = format!("{}/api/{}", about.api_url, about.slug);
    let token = "-H \"authorization: Bearer $TOKEN\"";
    let json_body = "-H 'content-type: application/json'";
    let mut tool = stack.data.demo.tool.clone();
    if let Some(fields) = tool.as_object_mut() {
        fields.insert("label".to_owned(), "Send directions".into());
    }
    let answer = format!("{}/tool.json", shown(stack.state_dir()));
    let id = format!("python3 -c 'import json; print(json.load(open(\"{answer}\"))[\"id\"])'");
    let mut commands = vec![
        ("the organization's tools", format!("curl -s {token} {api}/tools")),
        ("the agent's tools", format!("curl -s {token} {api}/agents/{}/tools", about.agent_id)),
        (
            "create another tool",
            format!("curl -s {token} {json_body} {api}/tools -d '{}' | tee {answer}", quoted(&tool)),
        ),
        (
            "attach it",
            format!(
                "curl -s {token} {json_body} {api}/agents/{}/tools/attach -d \"{{\\\"tool_id\\\": \\\"$({id})\\\"}}\"",
                about.agent_id
            ),
        ),
    ];
    if let Some(played) = played {
        let call = json!({
            "assistant_id": about.assistant_id,
            "tool_name": played.tool_name,
            "arguments": stack.data.demo.arguments,
            "customer_number": stack.data.demo.caller,
            "phone_number": about.phone_number,
        });
        let address = format!("{}/simulate/tool-call", about.standins.vapi);
        commands.push((
            "let VAPI call the demo's tool in a new call",
            format!("curl -s {json_body} {address} -d '{}'", quoted(&call)),
        ));
    }
    commands.push(("what Twilio received", format!("curl -s {}/messages", about.standins.twilio)));
    commands.push(("what VAPI received", format!("curl -s {}/requests", about.standins.vapi)));
    commands
}

/// A chat to try, if the stack streams.
fn chat(stack: &Stack) -> Vec<(&'static str, String)> {
    let about = &stack.description;
    let Some(stream_url) = &about.stream_url else { return Vec::new() };
    vec![(
        "a chat to try, here or in the console",
        format!(
            "curl -sN -H \"authorization: Bearer $TOKEN\" -H 'content-type: application/json' {stream_url}/agent/stream \
             -d '{}'",
            quoted(&json!({"message": "Hello!"}))
        ),
    )]
}

/// JSON, escaped for single quotes in a shell.
fn quoted(value: &Value) -> String {
    value.to_string().replace('\'', r"'\''")
}

pub(crate) fn rows(object: &Value, fields: &[&str]) -> Vec<(String, String)> {
    fields
        .iter()
        .filter_map(|&field| {
            let value = object.get(field)?;
            Some((field.to_owned(), value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        })
        .collect()
}

pub(crate) fn table(rows: &[(String, String)]) -> String {
    let rows: Vec<(&str, Vec<String>)> = rows.iter().map(|(name, value)| (name.as_str(), wrapped(value))).collect();
    let left = rows.iter().map(|(name, _value)| name.chars().count()).max().unwrap_or_default();
    let right = rows.iter().flat_map(|(_name, lines)| lines).map(|line| line.chars().count()).max().unwrap_or_default();
    let rule = |start, middle, end| format!("  {start}{}{middle}{}{end}", "─".repeat(left + 2), "─".repeat(right + 2));
    let mut lines = vec![rule('┌', '┬', '┐')];
    for (name, values) in rows {
        for (number, value) in values.iter().enumerate() {
            let name = if number == 0 { name } else { "" };
            lines.push(format!("  │ {name:<left$} │ {value:<right$} │"));
        }
    }
    lines.push(rule('└', '┴', '┘'));
    lines.join("\n")
}

fn wrapped(value: &str) -> Vec<String> {
    let characters: Vec<char> = value.chars().collect();
    if characters.is_empty() {
        return vec![String::new()];
    }
    characters.chunks(WIDTH).map(|chunk| chunk.iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_aligned_and_breaks_wide_cells() {
        let text = table(&[("id".to_owned(), "1".to_owned()), ("text".to_owned(), "x".repeat(WIDTH + 1))]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5);
        let width = lines[0].chars().count();
        assert!(lines.iter().all(|line| line.chars().count() == width), "{text}");
        assert!(lines[3].contains("│ x "), "{text}");
    }

    #[test]
    fn quotes_of_the_shell_survive_in_json() {
        assert_eq!(quoted(&json!({"a": "it's"})), r#"{"a":"it'\''s"}"#);
    }
}
