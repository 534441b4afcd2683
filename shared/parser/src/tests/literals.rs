use serde_json::{Value, json};

use super::{block, good, refused, value};

#[test]
fn text_with_every_escape() {
    for (literal, expected) in [
        (r#""""#, ""),
        ("''", ""),
        ("``", ""),
        (r#""it's""#, "it's"),
        (r#"'"'"#, "\""),
        (r"'\n\t\b\v\f\r\0'", "\n\t\u{8}\u{B}\u{C}\r\0"),
        (r"`\n\t\b\v\f\r\0`", "\n\t\u{8}\u{B}\u{C}\r\0"),
        (r#""\'\"\`\\\/\a\$\{""#, "'\"`\\/a${"),
        (r"'\x41\xe9\u00e9\u{1F600}\u{000041}'", "Aéé😀A"),
        (r"'\ud83d\ude00 \u{d83d}\u{de00} \uD83D\u{DE00}'", "😀 😀 😀"),
        (r"'\ud83d'", "\u{FFFD}"),
        (r"'\ude00\ud83dx'", "\u{FFFD}\u{FFFD}x"),
        (r"'\ud83d\ud83d\ude00'", "\u{FFFD}😀"),
        (r"'\ud83d\n'", "\u{FFFD}\n"),
        ("'a\\\nb\\\r\nc\\\rd\\\u{2028}e'", "abcde"),
        ("`a\nb\r\nc\rd\u{2028}`", "a\nb\nc\nd\u{2028}"),
        ("`a\\\r\nb`", "ab"),
        (r"`\``", "`"),
        (r"`$ $$ {x} \${x} $\{x}`", "$ $$ {x} ${x} ${x}"),
        ("`a 'b' \"c\"`", "a 'b' \"c\""),
        ("'日本 😀'", "日本 😀"),
        (r"'\日'", "日"),
        ("'// no comment /* none */ ) ] }'", "// no comment /* none */ ) ] }"),
        ("'\\\n'", ""),
    ] {
        assert_eq!(value(literal), json!(expected), "{literal}");
    }
}

#[test]
fn text_of_every_length_ends_where_it_ends() {
    // Characters close to a delimiter in bits or value are ordinary text.
    for character in ["a", "\t", "\u{B}", "\u{C}", "#", "&", "]", "[", "\u{8D}", "¢", "§", "Ü", "😀", "`"] {
        for length in 0..40 {
            let text = character.repeat(length);
            for quote in ['"', '\''] {
                assert_eq!(value(&format!("{quote}{text}{quote}")), json!(text), "{text:?}");
                assert_eq!(
                    value(&format!("{quote}{text}\\{quote}{text}\\\n{text}{quote}")),
                    json!(format!("{text}{quote}{text}{text}"))
                );
                for end in ["\n", "\r"] {
                    refused(&format!("{quote}{text}{end}{quote}"));
                }
            }
        }
    }
}

#[test]
fn text_that_is_refused() {
    for (literal, expected) in [
        ("'a\nb'", "`'` at the end of the text, before the end of the line"),
        ("\"a\r\nb\"", "`\"` at the end of the text"),
        ("'a\rb'", "`'` at the end of the text"),
        (r"'\1'", "no digit after `\\`"),
        (r"'\01'", "no digit after `\\`"),
        (r"`\8`", "no digit after `\\`"),
        (r"'\x4'", "two hexadecimal digits"),
        (r"'\u12'", "four hexadecimal digits"),
        (r"'\u{}'", "four hexadecimal digits"),
        (r"'\u{110000}'", "four hexadecimal digits"),
        (r"'\u{41'", "four hexadecimal digits"),
        ("`a${b}`", "text without `${…}`"),
        ("“a”", "straight quotes"),
        ("'a' + 'b'", "nothing is computed"),
        ("'a'.length", "nothing is computed"),
        ("'a' 'b'", "`,` or `)` after an argument, found `'b')`"),
        ("String.raw`a`", "`String` is a name"),
    ] {
        assert!(refused(literal).contains(expected), "{literal}: {}", refused(literal));
    }
}

#[test]
fn numbers_in_every_form() {
    for (literal, expected) in [
        ("0", json!(0)),
        ("-0", json!(0)),
        ("-0.0", json!(0)),
        ("42", json!(42)),
        ("+1", json!(1)),
        ("-1", json!(-1)),
        ("- 1", json!(-1)),
        ("-/**/.5", json!(-0.5)),
        (".5", json!(0.5)),
        ("5.", json!(5)),
        ("5.e-1", json!(0.5)),
        ("1.25", json!(1.25)),
        ("1e3", json!(1000)),
        ("1E+3", json!(1000)),
        ("2.5e-3", json!(0.0025)),
        ("1e300", json!(1e300)),
        ("1e-400", json!(0)),
        ("0.1e1", json!(1)),
        ("0xFf", json!(255)),
        ("0XfF", json!(255)),
        ("0o17", json!(15)),
        ("0b101", json!(5)),
        ("-0x10", json!(-16)),
        ("1_000_000", json!(1_000_000)),
        ("1_0.2_5e1_0", json!(102_500_000_000_u64)),
        ("0xFF_FF", json!(65_535)),
        ("1n", json!(1)),
        ("-9007199254740993n", json!(-9_007_199_254_740_993_i64)),
        ("0x1Fn", json!(31)),
        ("9007199254740993", json!(9_007_199_254_740_993_u64)),
        ("18446744073709551615", json!(u64::MAX)),
        ("-9223372036854775808", json!(i64::MIN)),
        ("18446744073709551616", json!(18_446_744_073_709_551_616.0)),
        ("-9223372036854775809", json!(i64::MIN)),
        ("0xFFFFFFFFFFFFFFFF", json!(u64::MAX)),
    ] {
        assert_eq!(value(literal), expected, "{literal}");
    }
}

#[test]
fn numbers_that_are_refused() {
    for (literal, expected) in [
        ("1e999", "JSON has no `Infinity`"),
        ("NaN", "JSON has no `NaN`"),
        ("Infinity", "JSON has no `Infinity`"),
        ("-Infinity", "JSON has no `Infinity`"),
        ("007", "does not begin with 0"),
        ("0_1", "does not begin with 0"),
        ("1__0", "either side of each `_`"),
        ("1_", "either side of each `_`"),
        ("1_.5", "either side of each `_`"),
        ("1._5", "either side of each `_`"),
        ("0x", "digits of the number"),
        ("0b2", "digits of the number"),
        ("1e", "digits in the exponent"),
        ("3px", "nothing behind it"),
        ("0b12", "nothing behind it"),
        ("1.5n", "nothing behind it"),
        ("1.2.3", "`,` or `)`"),
        ("18446744073709551616n", "at most 64 bits"),
        ("0x10000000000000000", "at most 64 bits"),
        ("{1.5: 2}", "a key in quotes"),
        ("--1", "a number after the sign"),
        ("-x", "a number after the sign"),
        ("+", "a number after the sign"),
        ("1 + 1", "nothing is computed"),
        ("5 * 60 * 1000", "nothing is computed"),
    ] {
        assert!(refused(literal).contains(expected), "{literal}: {}", refused(literal));
    }
}

#[test]
fn lists_and_objects() {
    for (literal, expected) in [
        ("[]", json!([])),
        ("[ ]", json!([])),
        ("[,]", json!([null])),
        ("[1,,2,]", json!([1, null, 2])),
        ("[,,]", json!([null, null])),
        ("[undefined, null]", json!([null, null])),
        ("{}", json!({})),
        ("{a: undefined, b: null}", json!({"b": null})),
        (
            "{a: 1, 'b c': 2, \"d\": 3, $e_1: 4, ключ: 5, if: 6, null: 7}",
            json!({"a": 1, "b c": 2, "d": 3, "$e_1": 4, "ключ": 5, "if": 6, "null": 7}),
        ),
        ("{e\u{301}: 1}", json!({"e\u{301}": 1})),
        ("{__proto__: {a: 1}, constructor: 2}", json!({"__proto__": {"a": 1}, "constructor": 2})),
        ("{1: 1, 0x10: 4, 5n: 7}", json!({"1": 1, "16": 4, "5": 7})),
        ("{a: 1, a: 2}", json!({"a": 2})),
        ("{a: 1, a: undefined}", json!({})),
        ("{a: [{b: {c: [1]}}], /* x */ d: 'y', // z\n}", json!({"a": [{"b": {"c": [1]}}], "d": "y"})),
        ("[true, false]", json!([true, false])),
    ] {
        assert_eq!(value(literal), expected, "{literal}");
    }
}

#[test]
fn undefined_as_an_argument_is_null() {
    assert_eq!(good(&block("f(undefined, 1, undefined)")), ["f(null, 1, null)"]);
}

#[test]
fn an_expression_in_place_of_a_literal_is_refused() {
    for (literal, expected) in [
        ("x", "`x` is a name"),
        ("url", "`url` is a name"),
        ("x.y", "`x` is a name"),
        ("{a}", "a value must be written out"),
        ("{a, b: 1}", "a value must be written out"),
        ("{[a]: 1}", "not computed"),
        ("{a() { return 1 }}", "no methods"),
        ("{get a() { return 1 }}", "`:` and a value after `get`: no methods"),
        ("{...a}", "nothing can be spread"),
        ("[...a]", "nothing can be spread"),
        ("...a", "nothing can be spread"),
        ("{`a`: 1}", "a key in `\"` or `'`"),
        ("{,}", "a key of the object"),
        ("{-1: 2}", "a key of the object"),
        ("{a: 1 b: 2}", "`,` or `}` after a member"),
        ("{a = 1}", "`:` and a value after `a`"),
        ("{\"a\", 1}", "a value must be written out"),
        ("/a+/g", "write a pattern as text"),
        ("g(1)", "`g(…)` is a call"),
        ("await g(1)", "`await …`"),
        ("new Date()", "`new …`"),
        ("x => x", "functions are not executed"),
        ("(x) => x", "functions and parentheses"),
        ("function () {}", "functions are not executed"),
        ("async () => 1", "functions are not executed"),
        ("(1)", "parentheses"),
        ("!0", "nothing is computed"),
        ("true ? 1 : 2", "nothing is computed"),
        ("url = 'x'", "`{url: …}`"),
        ("url: 'x'", "`{url: …}`"),
        ("True", "`true`"),
        ("None", "`null`"),
        (",", "a value"),
        ("1,,2", "a value"),
        ("1;", "`,` or `)`"),
        ("@", "a value"),
    ] {
        assert!(refused(literal).contains(expected), "{literal}: {}", refused(literal));
    }
}

#[test]
fn only_so_deep() {
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let objects = |depth: usize| format!("{}1{}", "{a:".repeat(depth), "}".repeat(depth));
    let mut nested = &value(&deep(crate::DEEPEST));
    for _ in 1..crate::DEEPEST {
        nested = &nested[0];
    }
    assert_eq!(*nested, json!([]));
    assert_ne!(value(&objects(crate::DEEPEST)), Value::Null);
    assert!(refused(&deep(crate::DEEPEST + 1)).contains("at most 64 lists and objects"));
    assert!(refused(&objects(crate::DEEPEST + 1)).contains("at most 64 lists and objects"));
    let wide = format!("[{}]", vec!["[[]]"; 1000].join(","));
    assert_eq!(value(&wide).as_array().map(Vec::len), Some(1000));
}
