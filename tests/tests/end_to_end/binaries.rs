//! No function's program contains prose or schemas of the document.

use std::{
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::Value;
use shared::http::Document;
use tests::declared::{DECLARED, Declared};

/// Shorter sentences may stand in a program for reasons of their own.
const LONG: usize = 30;

/// Every first line of a summary or description.
fn prose(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let said = value.as_str().filter(|_| name == "summary" || name == "description");
                found.extend(
                    said.and_then(|text| text.lines().next()).filter(|line| line.len() >= LONG).map(str::to_owned),
                );
                prose(value, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| prose(item, found)),
        _ => {}
    }
}

/// Which of these texts stand in a file.
fn found(program: &Path, texts: &[String]) -> Vec<String> {
    let mut grep = Command::new("grep");
    grep.args(["--text", "--only-matching", "--fixed-strings", "--file=-"]).arg(program);
    let mut grep = grep.env("LC_ALL", "C").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    grep.stdin.take().unwrap().write_all(texts.join("\n").as_bytes()).unwrap();
    let answer = grep.wait_with_output().unwrap();
    assert!(answer.status.code().is_some_and(|code| code < 2), "{}: {}", program.display(), answer.status);
    String::from_utf8_lossy(&answer.stdout).lines().map(str::to_owned).collect()
}

fn is_without_prose(program: &Path, test: &Path, declared: &Declared) {
    let mut document = Document::default();
    (declared.describe)(&mut document);
    let mut texts = vec!["#/components/".to_owned()];
    for operation in &document.operations {
        prose(&operation.value(), &mut texts);
    }
    for schema in document.schemas.into_named().values() {
        prose(schema, &mut texts);
    }
    assert!(texts.len() > 1, "{} says nothing of itself", declared.function);
    assert_eq!(found(program, &texts), Vec::<String>::new(), "{}", declared.function);
    // The test calls `describe`, so its own program has all of it.
    assert!(!found(test, &texts).is_empty(), "{}", declared.function);
}

/// The programs that the stack has just built stand beside the test's own folder.
pub(crate) fn have_no_prose() {
    let test = std::env::current_exe().unwrap();
    let programs = test.ancestors().nth(2).unwrap();
    for declared in &DECLARED {
        is_without_prose(&programs.join(declared.function), &test, declared);
    }
}
