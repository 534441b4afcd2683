//! The name by which a model calls a tool.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

const LONGEST: usize = 40;

/// 1 to 40 of `[a-zA-Z0-9_-]`, VAPI's rule for `name` of an apiRequest tool.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ToolName(String);

shows_text!(ToolName);

crate::described!(ToolName => {"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,40}$"});

#[derive(Debug, thiserror::Error)]
#[error("must be 1 to 40 of a-z, A-Z, 0-9, _ and -")]
pub struct NotAToolName;

impl ToolName {
    /// The `snake_case` name of a label: `Send SMS!` gives `send_sms`, `Größe` gives `grosse`. A label without letters
    /// and digits gives `tool`.
    pub fn from_label(label: &str) -> Self {
        Self::of_words(&deunicode::deunicode(label))
    }

    /// As [`ToolName::from_label`] for ASCII text; other letters are dropped. Without deunicode's table a function is
    /// half a megabyte smaller.
    pub fn of_words(text: &str) -> Self {
        let mut name = String::new();
        for character in text.chars() {
            if character.is_ascii_alphanumeric() {
                name.push(character.to_ascii_lowercase());
            } else if !name.is_empty() && !name.ends_with('_') {
                name.push('_');
            }
        }
        name.truncate(LONGEST);
        let name = name.trim_end_matches('_');
        Self(if name.is_empty() { "tool".to_owned() } else { name.to_owned() })
    }

    /// The same name with a suffix, still within 40 characters: `send_sms_2`.
    #[must_use]
    pub fn with_suffix(&self, suffix: &str) -> Self {
        let room = LONGEST.saturating_sub(suffix.len() + 1);
        let stem: String = self.0.chars().take(room).collect();
        Self(format!("{}_{suffix}", stem.trim_end_matches('_')))
    }
}

impl FromStr for ToolName {
    type Err = NotAToolName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if (1..=LONGEST).contains(&text.len()) && text.bytes().all(allowed) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NotAToolName)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_label_gives_a_valid_name() {
        for (label, name) in [
            ("Send confirmation SMS", "send_confirmation_sms"),
            ("  Größe -- prüfen!  ", "grosse_prufen"),
            ("日本", "ri_ben"),
            ("!!!", "tool"),
            ("", "tool"),
        ] {
            assert_eq!(ToolName::from_label(label).as_str(), name);
        }
    }

    #[test]
    fn letters_that_are_not_ascii_can_be_left_out() {
        for (words, name) in
            [("Search Homes for sale", "search_homes_for_sale"), ("search 日本", "search"), ("日本", "tool")]
        {
            assert_eq!(ToolName::of_words(words).as_str(), name);
        }
    }

    proptest! {
        #[test]
        fn any_label_and_any_suffix_give_a_valid_name(label in "\\PC{0,80}", number in 2..100_000u32) {
            let name = ToolName::from_label(&label);
            prop_assert!(name.as_str().parse::<ToolName>().is_ok());
            prop_assert!(ToolName::of_words(&label).as_str().parse::<ToolName>().is_ok());
            let suffixed = name.with_suffix(&number.to_string());
            prop_assert!(suffixed.as_str().parse::<ToolName>().is_ok());
            let ending = format!("_{number}");
            prop_assert!(suffixed.as_str().ends_with(&ending));
        }
    }
}
