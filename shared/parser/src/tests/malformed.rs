use super::{block, brief, errors, wrong};
use crate::{Entry, MOST_MALFORMED, parse};

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

#[test]
fn entries_keep_their_order() {
    let parsed = parse(&block("a(1)\nb(\nreturn c(2)\nd.e()\nf(3)"));
    let order: Vec<_> = parsed.entries.iter().map(|entry| matches!(entry, Entry::Call(_))).collect();
    assert_eq!(order, [true, false, true, false, true]);
    assert_eq!(brief(&parsed), ["a(1)", "c(2)", "f(3)"]);
}

/// Found by fuzzing: the statement in the open text was told of after the end of the text, which stands behind it.
#[test]
fn what_stands_in_a_text_that_does_not_end_is_no_statement() {
    for text in ["f(`a\ng(2)\n\\", "f(`a\ng(2)\n${", "f('a\\\ng(2) \\1'\n", "f('a\\\ng(2) \\1"] {
        let parsed = parse(&format!("```tool\n{text}"));
        assert_eq!((brief(&parsed).len(), errors(&parsed).len()), (0, 1), "{text:?}: {parsed:?}");
    }
}

#[test]
fn the_rest_of_many_errors_is_counted() {
    let many = |count: usize| parse(&block(&format!("{}good(1)", "bad.bad(1)\n".repeat(count))));
    let just = many(MOST_MALFORMED);
    assert_eq!(errors(&just).len(), MOST_MALFORMED);
    assert!(!errors(&just)[MOST_MALFORMED - 1].contains("more"));
    let more = many(MOST_MALFORMED + 13);
    assert_eq!(errors(&more).len(), MOST_MALFORMED + 1);
    assert_eq!(
        errors(&more)[MOST_MALFORMED],
        "line 52, column 1: expected calls from here on, too (statements that are none: 13 more), found `bad.bad(1)`"
    );
    assert_eq!(brief(&more), ["good(1)"]);
}
