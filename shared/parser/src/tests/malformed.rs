use super::{brief, errors, wrong};
use crate::{Entry, parse};

#[test]
fn a_sentence_for_the_model() {
    let parsed = parse("Well:\n\n```tool\nreturn wget(\"https://example.com\" timeoutMs: 5)\n```");
    assert_eq!(
        errors(&parsed),
        ["line 4, column 35: in the call of wget, expected `,` or `)` after an argument, found `timeoutMs: 5)`"]
    );
    let Entry::Malformed(malformed) = &parsed.entries[0] else { panic!("{parsed:?}") };
    assert_eq!((malformed.name.as_deref(), &malformed.text[..]), (Some("wget"), "timeoutMs: 5)"));
}

#[test]
fn a_long_text_is_cut_short() {
    let (_, errors) = wrong(&format!("f(é{})", "é".repeat(100)));
    assert!(errors[0].ends_with(&format!("found `{}…`", "é".repeat(48))), "{errors:?}");
    assert!(errors[0].contains(&format!("`{}…` is a name", "é".repeat(40))), "{errors:?}");
}

/// Found by fuzzing: a name of any length stood in the sentence.
#[test]
fn a_long_name_is_cut_short() {
    let (_, errors) = wrong(&format!("{}({{", "f".repeat(2_000)));
    assert!(errors[0].contains(&format!("in the call of {}…, ", "f".repeat(48))), "{errors:?}");
    assert!(errors[0].len() < 300, "{errors:?}");
}

/// Found by fuzzing: the statement inside an open string was reported after the end of the string.
#[test]
fn a_call_within_an_unclosed_text_is_not_a_statement() {
    for text in ["f(`a\ng(2)\n\\", "f(`a\ng(2)\n${", "f('a\\\ng(2) \\1'\n", "f('a\\\ng(2) \\1"] {
        let parsed = parse(&format!("```tool\n{text}"));
        assert_eq!((brief(&parsed).len(), errors(&parsed).len()), (0, 1), "{text:?}: {parsed:?}");
    }
}

#[test]
fn the_first_unreadable_statement_is_reported_once_and_ends_the_reading() {
    let parsed = parse("```tool\na(1)\nb(\nc(2)\nd.e()\n```\nand\n```tool\nf(3)\n```");
    let [Entry::Call(first), Entry::Malformed(second)] = &parsed.entries[..] else { panic!("{parsed:?}") };
    assert_eq!((first.name.as_str(), second.name.as_deref()), ("a", Some("b")));
    assert_eq!((parsed.blocks, parsed.unclosed), (1, None));
}

/// Suggested replacements for common mistakes.
#[test]
fn each_mistake_gets_the_sentence_that_fits() {
    for (call, sentence) in [
        ("wget(https://a.example/x)", "expected an address in quotes, `\"https://…\"`, found `https://a.example/x)`"),
        ("wget({uri: http://a.example})", "expected an address in quotes, `\"http://…\"`, found `http://a.example})`"),
        ("wget(<https://a.example>)", "an address in quotes, `\"https://…\"`, without `<` and `>`, found `<https://"),
        ("wget(&quot;https://a.example&quot;)", "text stands in quotes, `\"`, not in `&quot;`, found `&quot;"),
        ("say(\"say \"hi\" to Ana\")", "after an argument: within a text, `\"` is written `\\\"`, found `hi\" to"),
        (
            "say({text: 'it's nine'})",
            "after a member of an object: within a text, `'` is written `\\'`, found `s nine'",
        ),
        (
            "say(\"Dear Ana,\nbye\")",
            "`\"` at the end of the text, before the end of the line (`\\n` for a new line, or back",
        ),
        (
            "say(\"\"\"Dear Ana\nbye\"\"\")",
            "text in one pair of quotes, or in back-ticks if it has several lines, not in three",
        ),
        ("say('''Dear Ana''')", "text in one pair of quotes, or in back-ticks if it has several lines, not in three"),
        ("say(“hi”)", "straight quotes"),
        ("const x = await wget('a')", "expected a call by itself, without a variable: what it gives comes in the next"),
    ] {
        let (calls, errors) = wrong(call);
        assert_eq!((calls.len(), errors.len()), (0, 1), "{call}: {errors:?}");
        assert!(errors[0].contains(sentence), "{call}: {errors:?}");
    }
}

/// Whether the end of the answer caused the error.
#[test]
fn a_call_that_the_end_of_the_answer_cut_off_is_told_apart() {
    for (text, is_cut) in [
        ("f('a", true),
        ("f(`a\nb", true),
        ("f({a: [1,", true),
        ("f(", true),
        ("f(1) /* x", true),
        ("f('a\n", false),
        ("f(x, 'a", false),
        ("f('a\n```\n", false),
    ] {
        let parsed = parse(&format!("```tool\n{text}"));
        let Some(Entry::Malformed(malformed)) = parsed.entries.last() else { panic!("{text}: {parsed:?}") };
        assert_eq!(malformed.is_cut, is_cut, "{text}");
    }
}
