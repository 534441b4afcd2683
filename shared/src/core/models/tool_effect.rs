//! The declared effect of a tool.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The change that a call causes outside. Approval rules, quotas and consent read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolEffect {
    None,
    Email,
    Sms,
    /// A message in a chat, or a notification.
    Message,
    /// A charge, a refund, an invoice.
    Payment,
    /// A record is created, changed or deleted; no person gets a message.
    Record,
    Other,
    /// An acting tool of an older row or with a newer version's word. Every approval rule applies to it.
    #[default]
    #[serde(other)]
    Undeclared,
}

crate::described!(ToolEffect => {
    "enum": ["none", "email", "sms", "message", "payment", "record", "other", "undeclared"]
});

impl ToolEffect {
    pub const OF_ACTING: [Self; 6] = [Self::Email, Self::Sms, Self::Message, Self::Payment, Self::Record, Self::Other];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Email => "email",
            Self::Sms => "sms",
            Self::Message => "message",
            Self::Payment => "payment",
            Self::Record => "record",
            Self::Other => "other",
            Self::Undeclared => "undeclared",
        }
    }

    pub const fn acts(self) -> bool {
        !matches!(self, Self::None)
    }

    pub const fn is_message(self) -> bool {
        matches!(self, Self::Email | Self::Sms | Self::Message)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be one of none, email, sms, message, payment, record, other")]
pub struct NotAnEffect;

impl FromStr for ToolEffect {
    type Err = NotAnEffect;

    fn from_str(word: &str) -> Result<Self, NotAnEffect> {
        std::iter::once(Self::None).chain(Self::OF_ACTING).find(|effect| effect.as_str() == word).ok_or(NotAnEffect)
    }
}

impl fmt::Display for ToolEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_effect_is_read_back_and_an_unknown_word_is_undeclared() {
        for effect in std::iter::once(ToolEffect::None).chain(ToolEffect::OF_ACTING) {
            assert_eq!(effect.as_str().parse(), Ok(effect));
            assert_eq!(json!(effect), effect.as_str());
        }
        assert_eq!(serde_json::from_value::<ToolEffect>(json!("telepathy")).unwrap(), ToolEffect::Undeclared);
        assert_eq!("undeclared".parse::<ToolEffect>(), Err(NotAnEffect), "nobody declares that");
    }
}
