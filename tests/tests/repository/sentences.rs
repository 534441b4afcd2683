//! The sentences that people and models read, one file an area in `docs/sentences`, so that a reader hears the product's voice.
//!
//! `UPDATE=1` writes the files. Operations' texts stand in `docs/openapi.yaml`, services' tools in `infra/catalogue`.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use std::{collections::BTreeMap, fmt::Write as _, str::FromStr};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::Lit;

use crate::{
    generated::hold,
    structure::source::{below, read, rust},
};

/// Each area with its folders; a file belongs to the first area that has its folder.
const AREAS: [(&str, &[&str]); 6] = [
    ("console", &["functions/console"]),
    ("operator", &["functions/operator", "functions/settle", "infra/local/src"]),
    ("chat", &["shared/src/chat", "functions/chat", "functions/stream"]),
    (
        "automations",
        &[
            "shared/src/automation",
            "shared/src/injection",
            "shared/src/authoring_tools",
            "shared/parser/src",
            "functions/deploy",
            "functions/discover",
            "functions/mcp",
            "functions/runs",
            "functions/run-loop",
            "functions/schedule",
            "functions/trigger",
            "functions/hooks",
        ],
    ),
    (
        "calls",
        &["shared/src/clients", "functions/call-start", "functions/calls", "functions/execute", "functions/run-tool"],
    ),
    ("tools", &["shared/src", "functions"]),
];

/// Fewer words are a name, a unit, or a part of a list.
const FEWEST_WORDS: usize = 3;

/// Files whose texts nobody reads as sentences: stand-ins, tests and their data.
const SILENT: [&str; 5] = ["infra/local/src/standins", "/tests", "testing.rs", "build.rs", "tests.rs"];

fn area(path: &str) -> &'static str {
    let fits =
        |folder: &&str| path.strip_prefix(*folder).is_some_and(|rest| rest.starts_with('/') || rest.starts_with(".rs"));
    AREAS.iter().find(|(_, folders)| folders.iter().any(fits)).map(|(area, _)| *area).unwrap()
}

#[derive(Default)]
struct Texts {
    sentences: Vec<String>,
    logs: Vec<String>,
}

impl Texts {
    /// Literals in the order of the code, without documentation and tests.
    fn read(&mut self, tokens: TokenStream, in_log: bool) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at += 1;
            match token {
                TokenTree::Punct(mark) if mark.as_char() == '#' => {
                    at += usize::from(matches!(tokens.get(at), Some(TokenTree::Punct(mark)) if mark.as_char() == '!'));
                    let Some(TokenTree::Group(attribute)) = tokens.get(at) else { continue };
                    let text = attribute.stream().to_string();
                    if text.starts_with("doc ")
                        || text.starts_with("doc=")
                        || text.starts_with("expect")
                        || text.starts_with("allow")
                    {
                        at += 1;
                    } else if text.replace(' ', "") == "cfg(test)" {
                        at = item_end(&tokens, at + 1);
                    }
                }
                TokenTree::Ident(name) if name == "tracing" => {
                    let group = tokens[at..].iter().take(5).position(|token| matches!(token, TokenTree::Group(_)));
                    if let Some(offset) = group
                        && let TokenTree::Group(arguments) = &tokens[at + offset]
                        && arguments.delimiter() == Delimiter::Parenthesis
                    {
                        self.read(arguments.stream(), true);
                        at += offset + 1;
                    }
                }
                TokenTree::Group(group) => self.read(group.stream(), in_log),
                TokenTree::Literal(literal) => {
                    if let Lit::Str(text) = Lit::new(literal.clone()) {
                        let texts = if in_log { &mut self.logs } else { &mut self.sentences };
                        texts.extend(
                            sentence(&text.value())
                                .filter(|sentence| !texts.contains(sentence))
                                .into_iter()
                                .collect::<Vec<_>>(),
                        );
                    }
                }
                _ => {}
            }
        }
    }
}

/// The position after an item: after its block, or its semicolon.
fn item_end(tokens: &[TokenTree], from: usize) -> usize {
    let ends = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(mark) => mark.as_char() == ';',
        _ => false,
    };
    tokens[from..].iter().position(ends).map_or(tokens.len(), |offset| from + offset + 1)
}

/// The text in one line, if it is a sentence and not an expression of DynamoDB, JSON or a pattern.
fn sentence(text: &str) -> Option<String> {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = line.split(' ').filter(|word| word.chars().filter(|letter| letter.is_alphabetic()).count() > 1).count();
    let expression = ["{\"", "[{", "SET ", "ADD ", "REMOVE ", "attribute_", "<svg", "(?", "#"]
        .iter()
        .any(|start| line.starts_with(start))
        || [" = :", "attribute_exists", "attribute_not_exists", "if_not_exists", " :", "charset="]
            .iter()
            .any(|part| line.contains(part));
    (words >= FEWEST_WORDS && !expression).then_some(line)
}

/// The texts of a page's module: between tags, and in quotes. Code between them does not begin with a capital letter, or has
/// marks that no sentence has.
fn of_page(code: &str) -> Vec<String> {
    let (mut spoken, mut rest) = (String::new(), code);
    while let Some((before, comment)) = rest.split_once("/*") {
        spoken += before;
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    spoken += rest;
    let lines =
        spoken.lines().map(str::trim_start).filter(|line| !line.starts_with("//") && !line.starts_with("import "));
    let spoken = lines.collect::<Vec<_>>().join("\n");
    let mut found = Vec::new();
    for part in spoken.split(['<', '>', '`', '"', '\'', '{', '}']) {
        let is_code = part.contains([';', '=', '[', ']', '_'])
            || part.contains(" && ")
            || part.contains(" || ")
            || part.contains("=>");
        let begins = part
            .trim_start()
            .chars()
            .next()
            .is_some_and(|first| first.is_uppercase() || !part.contains(['(', ')', ':', ',']));
        if let Some(sentence) = sentence(part)
            && begins
            && !is_code
            && !found.contains(&sentence)
        {
            found.push(sentence);
        }
    }
    found
}

#[test]
fn the_sentences_of_each_area_are_as_its_file_shows_them() {
    let mut areas: BTreeMap<&str, String> = BTreeMap::new();
    let mut add = |area, path: &str, sentences: Vec<String>| {
        if sentences.is_empty() {
            return;
        }
        let text = areas.entry(area).or_default();
        writeln!(text, "\n{path}").unwrap();
        for sentence in sentences {
            writeln!(text, "  {sentence}").unwrap();
        }
    };
    for file in
        ["shared/src", "shared/parser/src", "functions", "infra/local/src"].iter().flat_map(|folder| rust(folder))
    {
        if SILENT.iter().any(|part| file.path.contains(part)) {
            continue;
        }
        let mut texts = Texts::default();
        texts.read(TokenStream::from_str(&file.text).unwrap_or_else(|error| panic!("{}: {error}", file.path)), false);
        add(area(&file.path), &file.path, texts.sentences);
        add("logs", &file.path, texts.logs);
    }
    for path in below("functions/console/assets", "js") {
        if !path.ends_with("htm-preact.js") && !path.ends_with("icons.js") {
            add("console", &path, of_page(&read(&path)));
        }
    }
    assert!(areas.values().all(|text| text.lines().count() > 20), "every area says something");
    for (area, text) in areas {
        let text = format!(
            "The sentences of {area}, by file. A test writes this: UPDATE=1 cargo test -p tests --test repository sentences\n{text}"
        );
        hold(&format!("docs/sentences/{area}.txt"), &text, "sentences");
    }
}
