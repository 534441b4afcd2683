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

/// Found by fuzzing: the statement in the open text was told of after the end of the text, which stands behind it.
#[test]
fn what_stands_in_a_text_that_does_not_end_is_no_statement() {
    for text in ["f(`a\ng(2)\n\\", "f(`a\ng(2)\n${", "f('a\\\ng(2) \\1'\n", "f('a\\\ng(2) \\1"] {
        let parsed = parse(&format!("```tool\n{text}"));
        assert_eq!((brief(&parsed).len(), errors(&parsed).len()), (0, 1), "{text:?}: {parsed:?}");
    }
}

#[test]
fn what_cannot_be_read_is_told_once_and_is_the_last() {
    let parsed = parse("```tool\na(1)\nb(\nc(2)\nd.e()\n```\nand\n```tool\nf(3)\n```");
    let [Entry::Call(first), Entry::Malformed(second)] = &parsed.entries[..] else { panic!("{parsed:?}") };
    assert_eq!((first.name.as_str(), second.name.as_deref()), ("a", Some("b")));
    assert_eq!((parsed.blocks, parsed.unclosed), (1, None));
}
