//! The pages for people: examples are valid, and repeated statements agree.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use std::{path::Path, process::Command};

use serde_json::Value;

/// Pages with examples. The end-to-end test runs most of their commands.
const PAGES: [&str; 11] = [
    "README.md",
    "docs/getting-started.md",
    "docs/automations.md",
    "docs/chat.md",
    "docs/console.md",
    "docs/data.md",
    "docs/deployment.md",
    "docs/local.md",
    "docs/mcp.md",
    "docs/runs.md",
    "infra/catalogue/README.md",
];

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The code blocks of this language.
fn code(page: &str, language: &str) -> Vec<String> {
    let text = read(page);
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).map(|rest| rest.split("\n```").next().unwrap().to_owned()).collect()
}

#[test]
fn the_pages_json_can_be_read() {
    let mut seen = 0;
    for page in PAGES {
        for json in code(page, "json") {
            // A member of an object, shown without the braces.
            let whole = if json.starts_with('"') { format!("{{{json}}}") } else { json.clone() };
            let read: Result<Value, _> = serde_json::from_str(&whole);
            assert!(read.is_ok(), "{page}: {read:?} in\n{json}");
            seen += 1;
        }
    }
    assert!(seen > 0, "there is none any more");
}

#[test]
fn the_pages_commands_are_commands_of_a_plain_shell() {
    for page in PAGES {
        for commands in code(page, "sh") {
            let checked = Command::new("sh").args(["-n", "-c", &commands]).output().unwrap();
            assert!(checked.status.success(), "{page}: {}\n{commands}", String::from_utf8_lossy(&checked.stderr));
        }
    }
}

#[test]
fn the_page_that_a_refusal_of_a_schema_names_lists_the_keywords_of_the_code() {
    let module = read("shared/src/core/json_schema.rs");
    let rows: Vec<&str> = module.lines().filter_map(|line| line.strip_prefix("//! | ")).collect();
    assert!(rows.len() > 5, "{rows:?}");
    let page = "docs/runs.md";
    assert!(read("shared/src/automation/validation.rs").contains(&format!("the keywords that {page} lists")));
    let text = read(page);
    for row in rows {
        assert!(text.contains(row), "{page} lacks: {row}");
    }
}

#[test]
fn field_is_the_same_by_hand_and_in_the_local_stacks_shell() {
    let page = code("docs/getting-started.md", "sh");
    let field = page.iter().find(|code| code.starts_with("field()")).expect("the page defines it");
    assert!(read("infra/local/src/state_files.rs").contains(field), "infra/local/src/state_files.rs has another");
}
