use serde_json::{Value, json};

use crate::{Place, blocks, values, work::looked_at};

fn found(text: &str) -> Vec<(Value, Place, usize)> {
    values(text, "finalResponse").0.into_iter().map(|found| (found.value, found.place, found.line)).collect()
}

#[test]
fn values_are_found_where_they_stand() {
    let object = json!({"a": 1});
    for (text, expected) in [
        (r#"{"a": 1}"#, vec![(object.clone(), Place::Whole, 1)]),
        ("\u{feff} {a: 1, /* one */}\n", vec![(object.clone(), Place::Whole, 1)]),
        (r#""text""#, vec![(json!("text"), Place::Whole, 1)]),
        ("So:\n```json\n{\"a\": 1}\n```\nOr not.", vec![(object.clone(), Place::Block, 2)]),
        ("So: ```js\n{a: 1,}\n```", vec![(object.clone(), Place::Block, 1)]),
        ("So {a: 1}.", vec![(object.clone(), Place::Within, 1)]),
        ("[1] and\n{a: 1}", vec![(json!([1]), Place::Within, 1), (object.clone(), Place::Within, 2)]),
        ("[see {a: 1}] {x}", vec![(object.clone(), Place::Within, 1)]),
        ("So:\n\n8", vec![(json!(8), Place::Line, 3)]),
        ("```\nSo {a: 1}\n```", vec![(object.clone(), Place::Within, 2)]),
        ("{a: [{b: 2}], oops, {a: 1}", vec![(json!([{"b": 2}]), Place::Within, 1), (object.clone(), Place::Within, 1)]),
        // Arguments of other calls are no answers.
        ("```tool_code\nwget({a: 2})\n```", vec![]),
        ("wget('x', [1], {a: 2}) and wget(url={a: 2}) and {a: 1}", vec![(object.clone(), Place::Within, 1)]),
        ("wget(url) gave {a: 1}", vec![(object.clone(), Place::Within, 1)]),
        ("```tool_code\nreturn finalResponse({a: 1})\n```", vec![(object.clone(), Place::Within, 2)]),
        // Nor are thoughts.
        ("<think>{a: 2}</think>\n{a: 1}", vec![(object.clone(), Place::Whole, 1)]),
        ("<thinking>\n{a: 2}\n</thinking>\nSo {a: 1}.", vec![(object.clone(), Place::Within, 4)]),
        ("{a: 2}</think>So {a: 1}.", vec![(object.clone(), Place::Within, 1)]),
        ("<think>{a: 2}", vec![]),
        (r#"{"a": "write </think> at the end"}"#, vec![(json!({"a": "write </think> at the end"}), Place::Whole, 1)]),
        ("So {a: 1}. <think> is a tag.", vec![(object.clone(), Place::Within, 1)]),
        (r#"It is {"a": "<think>x</think>"}."#, vec![]),
        ("", vec![]),
    ] {
        assert_eq!(found(text), expected, "{text}");
    }
}

#[test]
fn an_unreadable_call_is_reported() {
    for (text, sentence) in [
        (
            "```json\n{\"a\": 8 or 9}\n```",
            "line 2, column 9: expected `,` or `}` after a member of an object, found `or 9}`",
        ),
        (
            "So {\"a\": } {b}",
            "line 1, column 14: expected `:` and a value after `b`: a value must be written out, found `}`",
        ),
        ("See [the page].", ""),
    ] {
        let malformed = values(text, "").1.map(|malformed| malformed.to_string()).unwrap_or_default();
        assert_eq!(malformed, sentence, "{text}");
    }
}

#[test]
fn blocks_of_every_language() {
    let text = "```js\na\n```\nSo: ```tool_code\nb\n```\n~~~\n```tool\nc\n~~~\n**```tool**\nd";
    let words: Vec<_> = blocks(text).iter().map(|block| (block.word, block.inside.trim(), block.line)).collect();
    assert_eq!(words, [("js", "a", 1), ("tool_code", "b", 4), ("", "```tool\nc", 7), ("tool", "d", 11)]);
}

/// Linear for any number of brackets, thoughts and blocks.
#[test]
fn work_is_linear_in_the_length() {
    const UNITS: &[&str] = &[
        "[",
        "{",
        "(",
        "f(",
        "[1,",
        "[[],",
        "[[",
        "{a:",
        "{a:[",
        "{\"a\":\"[",
        "\",[,",
        "[\"",
        "f([",
        "f({a:",
        "f(x ",
        "[]",
        "{}",
        "[ x ",
        "{a:1} ",
        "f()",
        "f([])",
        ")",
        "f(1",
        "<think>",
        "</think>",
        "<think></think>",
        "<think>\n",
        "think",
        "```\n",
        "```js\n",
        "```json\n{\n```\n",
        "```json\n{}\n```\n",
        "x ```js\n",
        "\n1",
        "[`",
        "[/*",
        "[//",
        "['\\",
        "[{a:(",
        "finalResponse(",
    ];
    for opening in ["", "```json\n", "[", "<think>\n", "f("] {
        for unit in UNITS {
            let work = |length: usize| {
                let text = opening.to_owned() + &unit.repeat(length / unit.len());
                let before = looked_at();
                values(&text, "finalResponse");
                looked_at() - before
            };
            let (short, long) = (work(8_000), work(16_000));
            assert!(long <= 2 * short + 5_000, "{opening:?} and {unit:?}: {short} then {long}");
            assert!(long <= 60 * 16_000, "{opening:?} and {unit:?}: {} for each byte", long / 16_000);
        }
    }
}
