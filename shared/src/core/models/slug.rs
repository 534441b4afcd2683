//! An organization's name in URLs.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// 1 to 63 of `a-z`, `0-9` and `-`, as in `/api/{slug}/…`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Slug(String);

shows_text!(Slug);

#[derive(Debug, thiserror::Error)]
#[error("must be 1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit")]
pub struct NotASlug;

impl FromStr for Slug {
    type Err = NotASlug;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let valid = (1..=63).contains(&text.len())
            && text.bytes().all(allowed)
            && !text.starts_with('-')
            && !text.ends_with('-');
        if valid { Ok(Self(text.to_owned())) } else { Err(NotASlug) }
    }
}
