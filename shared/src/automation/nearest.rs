//! The name that was meant.

/// Longer names are not compared letter by letter.
const LONGEST: usize = 100;

/// Of `names` the one that is nearest to what was written, if it is near: without case and separators the same, or a letter in
/// three wrong at most.
pub(super) fn nearest<'n>(written: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let written = folded(written);
    if written.is_empty() || written.len() > LONGEST {
        return None;
    }
    let most = (written.len() / 3).max(1);
    let near = names.into_iter().filter_map(|name| {
        let folded = folded(name);
        let apart = folded.len().abs_diff(written.len());
        if folded.len() > LONGEST || apart > most {
            return None;
        }
        Some((distance(&written, &folded), name)).filter(|(distance, _)| *distance <= most)
    });
    near.min().map(|(_, name)| name)
}

fn folded(name: &str) -> Vec<char> {
    name.chars().filter(|letter| !matches!(letter, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect()
}

/// Letters to insert, remove, replace or swap with their neighbour (optimal string alignment).
fn distance(one: &[char], other: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=other.len()).collect();
    let mut previous: Option<char> = None;
    for (row, letter) in one.iter().enumerate() {
        let mut current = vec![row + 1];
        let mut left: Option<char> = None;
        for (column, against) in other.iter().enumerate() {
            let at = |line: &[usize], index: usize| line.get(index).copied().unwrap_or(usize::MAX / 2);
            let replaced = at(&above, column) + usize::from(letter != against);
            let mut best = replaced.min(at(&above, column + 1) + 1).min(at(&current, column) + 1);
            if previous == Some(*against) && left == Some(*letter) && column > 0 {
                best = best.min(at(&before, column - 1) + 1);
            }
            current.push(best);
            left = Some(*against);
        }
        before = std::mem::replace(&mut above, current);
        previous = Some(*letter);
    }
    above.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_understood_and_another_word_is_not() {
        let names = ["event.text", "event.user", "event.channel", "Slack", "contains"];
        for (written, meant) in [
            ("event.txt", Some("event.text")),
            ("event.tetx", Some("event.text")),
            ("eventtext", None),
            ("slack", Some("Slack")),
            ("slak", Some("Slack")),
            ("Event_Channel", None),
            ("contain", Some("contains")),
            ("score", None),
            ("", None),
        ] {
            let found = nearest(written, names);
            match (written, meant) {
                // A separator that is missing is one letter.
                ("eventtext", _) => assert_eq!(found, Some("event.text")),
                ("Event_Channel", _) => assert_eq!(found, Some("event.channel")),
                _ => assert_eq!(found, meant, "{written}"),
            }
        }
        assert_eq!(nearest(&"a".repeat(5_000), names), None);
    }
}
