//! Tests of the parser, by topic.

mod answers;
mod asked;
mod fences;
mod generated;
mod javascript;
mod linear;
mod literals;
mod malformed;
mod quotations;
mod statements;

use serde_json::Value;

use crate::{Entry, Parsed, ToolCall, parse};

fn block(calls: &str) -> String {
    format!("```tool\n{calls}\n```\n")
}

fn calls(parsed: &Parsed) -> Vec<&ToolCall> {
    let calls = parsed.entries.iter().filter_map(|entry| match entry {
        Entry::Call(call) => Some(call),
        Entry::Malformed(_) => None,
    });
    calls.collect()
}

/// The errors for the model.
fn errors(parsed: &Parsed) -> Vec<String> {
    let malformed = parsed.entries.iter().filter_map(|entry| match entry {
        Entry::Call(_) => None,
        Entry::Malformed(malformed) => Some(malformed.to_string()),
    });
    malformed.collect()
}

/// `name(arguments)` of each call; the answer must have no error.
fn good(answer: &str) -> Vec<String> {
    let parsed = parse(answer);
    assert_eq!(errors(&parsed), Vec::<String>::new(), "{answer}");
    brief(&parsed)
}

fn brief(parsed: &Parsed) -> Vec<String> {
    let brief = |call: &&ToolCall| {
        let arguments: Vec<String> = call.arguments.iter().map(Value::to_string).collect();
        format!("{}({})", call.name, arguments.join(", "))
    };
    calls(parsed).iter().map(brief).collect()
}

fn wrong(calls: &str) -> (Vec<String>, Vec<String>) {
    let parsed = parse(&block(calls));
    (brief(&parsed), errors(&parsed))
}

fn value(literal: &str) -> Value {
    let parsed = parse(&block(&format!("f({literal})")));
    assert_eq!(errors(&parsed), Vec::<String>::new(), "{literal}");
    let [call] = calls(&parsed)[..] else { panic!("{literal}: {parsed:?}") };
    let [value] = &call.arguments[..] else { panic!("{literal}: {call:?}") };
    value.clone()
}

fn refused(literal: &str) -> String {
    let (calls, errors) = wrong(&format!("f({literal})"));
    assert_eq!((calls.len(), errors.len()), (0, 1), "{literal}: {calls:?} {errors:?}");
    errors.concat()
}
