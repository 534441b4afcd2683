//! Generated values in every notation, and random texts.

use std::fmt::Write;

use proptest::prelude::*;
use serde_json::{Map, Number, Value};

use super::{calls, errors, javascript};
use crate::{Entry, Parsed, parse};

fn json() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        any::<i64>().prop_map(Number::from),
        any::<u64>().prop_map(Number::from),
        (-1000_i64..1000).prop_map(Number::from),
        any::<f64>()
            .prop_filter("JavaScript has one number for 1 and 1.0", |number| number.is_finite()
                && number.fract() != 0.0)
            .prop_map(|number| Number::from_f64(number).unwrap()),
    ];
    let text = prop_oneof!["[ -~]{0,12}", "\\PC{0,8}", any::<String>(), "[\"'`\\\\$\\{\\}\r\n\t\u{0}/*)]{0,12}"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        number.prop_map(Value::Number),
        text.clone().prop_map(Value::String),
    ];
    let key = prop_oneof!["[a-z$_][a-zA-Z0-9$_]{0,6}", "[0-9]{1,3}", "__proto__|null|if|größe|名前", text];
    leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::btree_map(key.clone(), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Writes JavaScript according to a list of choices.
struct Writer {
    choices: Vec<u8>,
    at: usize,
    line: &'static str,
    text: String,
}

impl Writer {
    fn choose(&mut self, among: u8) -> u8 {
        self.at += 1;
        self.choices.get(self.at % self.choices.len()).copied().unwrap_or_default() % among
    }

    fn blank(&mut self) {
        let line = self.line;
        match self.choose(10) {
            0 => self.text.push(' '),
            1 => self.text.push_str(line),
            2 => self.text.push_str("/* ), ' ` \" // */"),
            3 => _ = write!(self.text, " // ]}} ' ` {line}"),
            4 => _ = write!(self.text, "\t{line}  \u{A0}"),
            5 => _ = write!(self.text, "/*{line}*/"),
            _ => {}
        }
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.text.push_str("null"),
            Value::Bool(value) => _ = write!(self.text, "{value}"),
            Value::Number(number) => self.number(number),
            Value::String(text) => self.string(text, true),
            Value::Array(items) => {
                self.text.push('[');
                for (index, item) in items.iter().enumerate() {
                    self.separate(index);
                    match (item, self.choose(3)) {
                        // An elision needs its comma.
                        (Value::Null, 0) if index + 1 < items.len() => {}
                        (Value::Null, 1) => self.text.push_str("undefined"),
                        _ => self.value(item),
                    }
                    self.blank();
                }
                self.end(items.is_empty());
                self.text.push(']');
            }
            Value::Object(members) => {
                self.text.push('{');
                for (index, (key, value)) in members.iter().enumerate() {
                    self.separate(index);
                    if self.choose(8) == 0 {
                        self.key(key);
                        self.text.push_str(": 'is written again',");
                    }
                    self.key(key);
                    self.blank();
                    self.text.push(':');
                    self.blank();
                    self.value(value);
                    self.blank();
                }
                self.end(members.is_empty());
                self.text.push('}');
            }
        }
    }

    fn separate(&mut self, index: usize) {
        if index > 0 {
            self.text.push(',');
        }
        self.blank();
    }

    fn end(&mut self, empty: bool) {
        if !empty && self.choose(3) == 0 {
            self.text.push(',');
        }
        self.blank();
    }

    fn key(&mut self, key: &str) {
        let name = key.chars().next().is_some_and(|first| first.is_ascii_alphabetic() || matches!(first, '_' | '$'))
            && key.chars().all(|part| part.is_ascii_alphanumeric() || matches!(part, '_' | '$'));
        let whole = key.parse::<u32>().is_ok_and(|whole| whole.to_string() == key);
        if (name || whole) && self.choose(3) > 0 { self.text.push_str(key) } else { self.string(key, false) }
    }

    fn number(&mut self, number: &Number) {
        if let Some(whole) = number.as_u64() {
            match self.choose(7) {
                0 => _ = write!(self.text, "0x{whole:X}"),
                1 => _ = write!(self.text, "0o{whole:o}"),
                2 => _ = write!(self.text, "0b{whole:b}"),
                3 => _ = write!(self.text, "+{whole}"),
                4 => _ = write!(self.text, "{whole}n"),
                5 if whole > 9 => _ = write!(self.text, "{}_{}", whole / 10, whole % 10),
                _ => _ = write!(self.text, "{whole}"),
            }
        } else {
            match (number.as_f64(), self.choose(3)) {
                (Some(double), 0) if !number.is_i64() => _ = write!(self.text, "{double:e}"),
                (Some(double), 1) if !number.is_i64() => _ = write!(self.text, "{double:E}"),
                _ => _ = write!(self.text, "{number}"),
            }
        }
    }

    fn string(&mut self, text: &str, back_ticks: bool) {
        let quote = ['"', '\'', '`'][usize::from(self.choose(if back_ticks { 3 } else { 2 }))];
        self.text.push(quote);
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            let choice = self.choose(12);
            let line = self.line;
            match character {
                '\n' if quote == '`' && choice < 6 => self.text.push_str(line),
                '\n' => self.text.push_str("\\n"),
                '\r' => self.text.push_str("\\r"),
                '\t' if choice < 6 => self.text.push_str("\\t"),
                '\0' if choice < 6 && !characters.peek().is_some_and(char::is_ascii_digit) => self.text.push_str("\\0"),
                '\\' => self.text.push_str("\\\\"),
                '$' if quote == '`' => self.text.push_str("\\$"),
                '"' | '\'' | '`' if character == quote || choice == 0 => _ = write!(self.text, "\\{character}"),
                _ if choice == 1 && u32::from(character) < 0x100 => {
                    _ = write!(self.text, "\\x{:02x}", u32::from(character));
                }
                _ if choice == 2 => _ = write!(self.text, "\\u{{{:X}}}", u32::from(character)),
                _ if choice == 3 => {
                    for unit in character.encode_utf16(&mut [0; 2]) {
                        _ = write!(self.text, "\\u{unit:04x}");
                    }
                }
                _ if choice == 4 => _ = write!(self.text, "\\{line}{character}"),
                _ => self.text.push(character),
            }
        }
        self.text.push(quote);
    }
}

fn written(arguments: &[Vec<Value>], choices: Vec<u8>) -> String {
    let lines = ["\n", "\r\n", "\r"];
    let mut writer = Writer { choices, at: 0, line: "\n", text: String::new() };
    writer.line = lines[usize::from(writer.choose(3))];
    let (line, marks) = (writer.line, "`".repeat(3 + usize::from(writer.choose(3))));
    let tool = ["tool", "Tool  ", " TOOL\t"][usize::from(writer.choose(3))];
    _ = write!(writer.text, "Prose `with` code.{line}{line}  {marks}{tool}{line}");
    for arguments in arguments {
        for word in ["return", "await"] {
            if writer.choose(2) == 0 {
                writer.text.push_str(word);
                writer.text.push(' ');
                if word != "return" {
                    writer.blank();
                }
            }
        }
        writer.text.push_str("call");
        writer.blank();
        writer.text.push('(');
        for (index, argument) in arguments.iter().enumerate() {
            writer.separate(index);
            writer.value(argument);
            writer.blank();
        }
        writer.end(arguments.is_empty());
        writer.text.push(')');
        writer.blank();
        let end = [";", line, ";\n"][usize::from(writer.choose(3))];
        writer.text.push_str(end);
    }
    _ = write!(writer.text, "{line} {marks}{line}More prose (`with` code).");
    writer.text
}

/// Fragments of answers.
fn soup() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(vec![
            "```tool\n", "````tool\n", "```", "\n```\n", "\n````\n", "~~~tool\n", "\n~~~\n", "```js\n", "`", "'", "\"", "\\", "\\u{", "\\ud83d",
            "\\\n", "${", "(", ")", "[", "]", "{", "}", ",", ":", ";", ".", "...", "=", "=>", "+", "-", "_", "//", "/*", "*/", "\n", "\r\n", "\r",
            " ", "\t", "return ", "await ", "const x = ", "if (x) {", "function ", "f(", "wget(", "true", "null", "undefined", "NaN", "x", "1", "0x",
            "1e", ".5", "1n", "é", "😀", "\u{A0}", "\u{2028}", "\u{FEFF}", "\0", "<a>", "</a>", "<b\n", "<!--", "-->", "<![CDATA[", "]]>",
            "</think>", "“", "”", "~~", "> ", "- ", "\n```\n\n```tool\nf(1)\n```\n",
        ]).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

/// Lines and columns are inside the text and ascend, and counts match.
fn is_sound(answer: &str, parsed: &Parsed) {
    let unified = answer.replace("\r\n", "\n");
    let lines: Vec<&str> = unified.split(['\n', '\r']).collect();
    let mut before = (1, 1);
    for entry in &parsed.entries {
        let (line, column) = match entry {
            Entry::Call(call) => (call.line, call.column),
            Entry::Malformed(malformed) => {
                assert!(
                    malformed.text.chars().count() <= 49 && !malformed.text.contains(['\n', '\r']),
                    "{malformed:?}"
                );
                assert!(malformed.to_string().len() < 600, "{malformed}");
                (malformed.line, malformed.column)
            }
        };
        assert!((line, column) >= before, "{answer:?}: {parsed:?}");
        before = (line, column);
        let length = lines.get(line - 1).map(|line| line.chars().count());
        assert!(length.is_some_and(|length| (1..=length + 1).contains(&column)), "{answer:?}: {line}, {column}");
        if let Entry::Call(call) = entry {
            let at: String = lines[line - 1].chars().skip(column - 1).collect();
            assert!(at.starts_with(&call.name), "{answer:?}: {call:?}");
        }
    }
    assert!(parsed.unclosed.is_none_or(|line| (1..=lines.len()).contains(&line)), "{answer:?}");
    let read = parsed.entries.iter().take_while(|entry| matches!(entry, Entry::Call(_))).count();
    assert!(parsed.entries.len() <= read + 1, "what is malformed is the last: {answer:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_written_call_is_read_back(
        arguments in prop::collection::vec(prop::collection::vec(json(), 0..4), 1..4),
        choices in prop::collection::vec(any::<u8>(), 1..200),
    ) {
        let answer = written(&arguments, choices);
        let parsed = parse(&answer);
        prop_assert_eq!(errors(&parsed), Vec::<String>::new(), "{}", answer);
        let read: Vec<_> = calls(&parsed).iter().map(|call| call.arguments.clone()).collect();
        prop_assert_eq!(&read, &arguments, "{}", answer);
        prop_assert_eq!(javascript::calls_of(javascript::block_of(&answer)).len(), arguments.len(), "{}", answer);
        prop_assert_eq!((parsed.blocks, parsed.unclosed), (1, None));
        is_sound(&answer, &parsed);
    }

    #[test]
    fn no_text_is_too_much(answer in any::<String>()) {
        is_sound(&answer, &parse(&answer));
    }

    #[test]
    fn no_soup_is_too_much(answer in soup(), opened in any::<bool>()) {
        let answer = if opened { format!("```tool\nf({answer}") } else { answer };
        is_sound(&answer, &parse(&answer));
    }

    #[test]
    fn text_after_a_call_does_not_discard_the_call(garbage in "[a-z(\\[{}\\]),:;.'\"=+ 0-9-]{1,30}") {
        let answer = format!("```tool\nreturn first(1);\n{garbage}\n```");
        let parsed = parse(&answer);
        let first = calls(&parsed).first().map(|call| call.name.clone());
        prop_assert_eq!(first.as_deref(), Some("first"), "{}", answer);
    }
}
