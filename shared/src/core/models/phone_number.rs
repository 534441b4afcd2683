//! Phone numbers: the value, and an organization's row.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::{AgentId, OrganizationId, PhoneNumberId, Timestamp};

/// A number in E.164: `+`, then 7 to 15 digits, the first not 0.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct E164(String);

shows_text!(E164);

#[derive(Debug, thiserror::Error)]
#[error("must be a phone number in E.164 form, such as +15550100001")]
pub struct NotE164;

crate::described!(E164 => {"type": "string", "description": "E.164."});

impl E164 {
    /// Whether it is the placeholder of a withheld number: networks and Twilio spell RESTRICTED, ANONYMOUS, BLOCKED,
    /// UNKNOWN and UNAVAILABLE on a telephone's keys.
    pub fn is_withheld(&self) -> bool {
        matches!(self.0.as_str(), "+7378742833" | "+266696687" | "+2562533" | "+8656696" | "+86282452253")
    }

    /// The last two digits, for logs and errors.
    pub fn masked(&self) -> String {
        let tail = self.0.get(self.0.len().saturating_sub(2)..).unwrap_or_default();
        format!("+…{tail}")
    }
}

impl FromStr for E164 {
    type Err = NotE164;

    /// Drops blanks, dashes, dots and brackets; guesses nothing. The 0 of `+44 (0)20 …` is not dialled from abroad, but belongs
    /// to Italian numbers.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let written: String = text.trim().chars().filter(|c| !matches!(c, ' ' | '\u{a0}')).collect();
        if written.contains("(0)") {
            return Err(NotE164);
        }
        let compact: String = written.chars().filter(|c| !matches!(c, '-' | '.' | '(' | ')')).collect();
        let digits = compact.strip_prefix('+').ok_or(NotE164)?;
        let valid = (7..=15).contains(&digits.len())
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && !digits.starts_with('0');
        if valid { Ok(Self(compact)) } else { Err(NotE164) }
    }
}

/// Never the whole number, because `Debug` ends up in logs.
impl fmt::Debug for E164 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.masked())
    }
}

/// A row of `phone_numbers`: a Twilio number of an organization.
#[declare::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PhoneNumber {
    pub id: PhoneNumberId,
    pub organization_id: OrganizationId,
    pub number: E164,
    pub label: String,
    pub agent_id: Option<AgentId>,
    /// The number called when the agent cannot take a call.
    pub fallback_number: Option<E164>,
    pub fallback_sentence: Option<String>,
    /// In which Twilio says sentences, in BCP 47.
    pub language: Option<String>,
    /// If set, calls are created at VAPI for the agent's assistant (provider bypass); otherwise Twilio's request is forwarded,
    /// and VAPI chooses the assistant.
    pub vapi_phone_number_id: Option<String>,
    /// Milliseconds to wait at the start of a call for results that become variables of the call.
    #[serde(default, skip_serializing_if = "none")]
    pub wait_ms: u32,
    /// Name or ARN of the secret with the number's Twilio account; the table holds no credentials.
    pub credentials_secret: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn none(wait_ms: &u32) -> bool {
    *wait_ms == 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn accepts_common_notations_and_guesses_nothing() {
        assert_eq!("+1 (555) 010-0001".parse::<E164>().unwrap().as_str(), "+15550100001");
        for bad in [
            "",
            "+",
            "15550100001",
            "+0123456789",
            "+123456",
            "+1234567890123456",
            "+1555abc0001",
            "+１５５５0100001",
            "+44 (0)20 7946 0000",
            "+44(\u{a0}0 ) 20 7946 0000",
        ] {
            assert!(bad.parse::<E164>().is_err(), "{bad}");
        }
    }

    #[test]
    fn debug_hides_the_number() {
        let number: E164 = "+15550100042".parse().unwrap();
        assert_eq!(format!("{number:?}"), "+…42");
    }

    proptest! {
        #[test]
        fn a_parsed_number_parses_to_itself(text in "\\PC{0,24}") {
            if let Ok(number) = text.parse::<E164>() {
                prop_assert!(number.as_str().starts_with('+'));
                prop_assert!(number.as_str()[1..].bytes().all(|byte| byte.is_ascii_digit()));
                prop_assert_eq!(number.as_str().parse::<E164>().unwrap(), number);
            }
        }
    }
}
