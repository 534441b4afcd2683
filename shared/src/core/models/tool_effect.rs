//! The declared effect of a tool.

use serde::{Deserialize, Serialize};

use crate::names::Names;

/// The change that a call causes outside. Approval rules, quotas and consent read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, Names)]
#[serde(rename_all = "snake_case")]
pub enum ToolEffect {
    None,
    Email,
    Sms,
    /// A message in a chat, or a notification.
    Message,
    /// A phone call to a person.
    Call,
    /// A charge, a refund, an invoice.
    Payment,
    /// A record is created, changed or deleted; no person gets a message.
    Record,
    Other,
    /// An acting tool of an older row or with a newer version's word. Every approval rule applies to it.
    #[default]
    #[serde(other)]
    #[names(never_given)]
    Undeclared,
}

crate::described!(ToolEffect => {"enum": (ToolEffect::NAMES)});

impl ToolEffect {
    pub const OF_ACTING: [Self; 7] =
        [Self::Email, Self::Sms, Self::Message, Self::Call, Self::Payment, Self::Record, Self::Other];

    pub const fn acts(self) -> bool {
        !matches!(self, Self::None)
    }

    /// Whether it reaches a person.
    pub const fn is_message(self) -> bool {
        matches!(self, Self::Email | Self::Sms | Self::Message | Self::Call)
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
        assert!("undeclared".parse::<ToolEffect>().is_err(), "nobody declares that");
    }
}
