//! Words in comparable form: without case, accents and plural.

/// Text without case and accents, with single spaces: the compared form of field values.
pub fn folded(text: &str) -> String {
    fold(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Calls `take` for each word. Scripts without spaces between words, and Korean, whose particles join words, yield a word per
/// character.
pub fn words(text: &str, mut take: impl FnMut(&str)) {
    for run in fold(text).split(|letter: char| !letter.is_alphanumeric()) {
        let mut rest = run;
        while let Some(at) = rest.find(stands_alone) {
            let (word, from) = rest.split_at(at);
            let end = from.char_indices().nth(1).map_or(from.len(), |(end, _)| end);
            let (character, beyond) = from.split_at(end);
            one(word, &mut take);
            take(character);
            rest = beyond;
        }
        one(rest, &mut take);
    }
}

fn one(word: &str, take: &mut impl FnMut(&str)) {
    // A single letter is a remnant, as of `garden's`.
    if word.chars().nth(1).is_none() && !word.chars().any(char::is_numeric) {
        return;
    }
    let (stem, ending) = singular(word);
    if ending.is_empty() { take(stem) } else { take(&format!("{stem}{ending}")) }
}

/// Chinese, Japanese and Korean.
fn stands_alone(letter: char) -> bool {
    matches!(letter, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Lower case without accents for Latin alphabets of Europe; other letters stay. (`deunicode` would cover all of Unicode, but add
/// more than half a megabyte to the function on the phone.)
fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for letter in text.chars().flat_map(char::to_lowercase) {
        match letter {
            'à'..='å' | 'ā' | 'ă' | 'ą' | 'ǎ' => folded.push('a'),
            'æ' => folded.push_str("ae"),
            'ç' | 'ć' | 'ĉ' | 'ċ' | 'č' => folded.push('c'),
            'ď' | 'đ' | 'ð' => folded.push('d'),
            'è'..='ë' | 'ē' | 'ĕ' | 'ė' | 'ę' | 'ě' => folded.push('e'),
            'ĝ' | 'ğ' | 'ġ' | 'ģ' => folded.push('g'),
            'ĥ' | 'ħ' => folded.push('h'),
            'ì'..='ï' | 'ĩ' | 'ī' | 'ĭ' | 'į' | 'ı' => folded.push('i'),
            'ĵ' => folded.push('j'),
            'ķ' => folded.push('k'),
            'ĺ' | 'ļ' | 'ľ' | 'ŀ' | 'ł' => folded.push('l'),
            'ñ' | 'ń' | 'ņ' | 'ň' => folded.push('n'),
            'ò'..='ö' | 'ø' | 'ō' | 'ŏ' | 'ő' => folded.push('o'),
            'œ' => folded.push_str("oe"),
            'ŕ' | 'ŗ' | 'ř' => folded.push('r'),
            'ś' | 'ŝ' | 'ş' | 'š' | 'ș' => folded.push('s'),
            'ß' => folded.push_str("ss"),
            'ţ' | 'ť' | 'ŧ' | 'ț' => folded.push('t'),
            'þ' => folded.push_str("th"),
            'ù'..='ü' | 'ũ' | 'ū' | 'ŭ' | 'ů' | 'ű' | 'ų' => folded.push('u'),
            'ŵ' => folded.push('w'),
            'ý' | 'ÿ' | 'ŷ' => folded.push('y'),
            'ź' | 'ż' | 'ž' => folded.push('z'),
            // A combining accent.
            '\u{300}'..='\u{36f}' => {}
            other => folded.push(other),
        }
    }
    folded
}

/// Removes a plural ending by the three rules of Harman's S-stemmer (How Effective Is Suffixing?, 1991), useful for English,
/// Spanish and Portuguese and harmless for others. The word is both parts together.
fn singular(word: &str) -> (&str, &'static str) {
    let ends = |endings: &[&str]| endings.iter().any(|ending| word.ends_with(ending));
    if word.len() < 4 || !word.ends_with('s') {
        return (word, "");
    }
    match word {
        _ if word.ends_with("ies") && !ends(&["eies", "aies"]) => (word.get(..word.len() - 3).unwrap_or(word), "y"),
        _ if word.ends_with("es") && !ends(&["aes", "ees", "oes"]) => (word.get(..word.len() - 1).unwrap_or(word), ""),
        _ if !ends(&["us", "ss"]) => (word.get(..word.len() - 1).unwrap_or(word), ""),
        _ => (word, ""),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(text: &str) -> Vec<String> {
        let mut all = Vec::new();
        words(text, |word| all.push(word.to_owned()));
        all
    }

    #[test]
    fn case_accents_and_plural_do_not_matter() {
        assert_eq!(all("São João's GARDENS, 3 bedrooms"), ["sao", "joao", "garden", "3", "bedroom"]);
        assert_eq!(all("properties houses glass bus"), all("property house glass bus"));
        assert_eq!(all("casas vistas"), all("casa vista"));
        assert_eq!(all("Größe, Łódź, A\u{301}gueda, İzmir"), ["grosse", "lodz", "agueda", "izmir"]);
        assert_eq!(all("Σπίτι у моря"), ["σπίτι", "моря"]);
        assert_eq!(all("東京の家 3LDK"), ["東", "京", "の", "家", "3ldk"]);
        assert_eq!(all("  -- !"), Vec::<String>::new());
        assert_eq!(folded("  Vila  Nova\tde GAIA "), "vila nova de gaia");
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(text in "\\PC{0,60}") {
            for word in all(&text) {
                prop_assert!(!word.is_empty() && word.chars().all(char::is_alphanumeric));
                prop_assert_eq!(fold(&word), word);
            }
        }
    }
}
