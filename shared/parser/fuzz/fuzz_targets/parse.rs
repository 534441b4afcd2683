#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tool_calls::{DEEPEST, Entry, parse};

fuzz_target!(|answer: &str| {
    let parsed = parse(answer);
    let unified = answer.replace("\r\n", "\n");
    let lines: Vec<&str> = unified.split(['\n', '\r']).collect();
    let mut before = (1, 1);
    for (index, entry) in parsed.entries.iter().enumerate() {
        let place = match entry {
            Entry::Call(call) => {
                let there: String = lines[call.line - 1].chars().skip(call.column - 1).collect();
                assert!(there.starts_with(&call.name), "a call is where its name stands");
                assert!(call.arguments.iter().all(|value| depth(value) <= DEEPEST));
                (call.line, call.column)
            }
            Entry::Malformed(wrong) => {
                assert_eq!(index + 1, parsed.entries.len(), "nothing is read behind what is malformed");
                assert!(wrong.to_string().len() < 1000, "a sentence is short");
                (wrong.line, wrong.column)
            }
        };
        assert!(before <= place, "entries stand in their order");
        assert!((1..=lines[place.0 - 1].chars().count() + 1).contains(&place.1), "a place lies in the text");
        before = place;
    }
    for line in [parsed.unclosed, parsed.quoted].into_iter().flatten() {
        assert!((1..=lines.len()).contains(&line));
    }
    is_read_as_written(&parsed.entries);
});

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Each call, printed with JSON arguments, parses to the same call.
fn is_read_as_written(entries: &[Entry]) {
    for entry in entries {
        let Entry::Call(call) = entry else { continue };
        let arguments: Vec<String> = call.arguments.iter().map(Value::to_string).collect();
        let written = format!("```tool\n{}({})\n```", call.name, arguments.join(", "));
        let again = parse(&written);
        let [Entry::Call(read)] = &again.entries[..] else { panic!("{written}: {again:?}") };
        assert_eq!((&read.name, &read.arguments), (&call.name, &call.arguments), "{written}");
    }
}
