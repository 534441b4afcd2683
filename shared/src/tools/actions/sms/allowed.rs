//! The allowed recipients of messages: models mistype digits, and callers ask for messages to others.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    actions::{
        Parameter,
        variables::{self, Encoding},
    },
    fields::{Fields, kind},
    models::E164,
    tool::Conversation,
};

const CALLER: &str = "{{caller_phone_number}}";
const MOST_ALLOWED: usize = 100;

/// Stored as `"caller_only"` or as a list; absent for anybody. Any other value is unreadable, so that it can never mean anybody.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum AllowedRecipients {
    #[default]
    Anybody,
    Only(Word),
    /// Numbers in E.164 form, or variables that yield one.
    These(Vec<String>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Word {
    CallerOnly,
}

pub(super) struct Allowed {
    /// `None`: anybody.
    numbers: Option<Vec<E164>>,
    /// The end of the error for other recipients. It must not reveal the allowed numbers to the model.
    otherwise: &'static str,
}

impl AllowedRecipients {
    pub(super) fn read(fields: &mut Fields<'_>) -> Self {
        match fields.get("allowed_recipients") {
            None => Self::Anybody,
            Some(Value::String(text)) if text == "caller_only" => Self::Only(Word::CallerOnly),
            Some(Value::Array(listed)) => {
                if listed.is_empty() {
                    fields.problem("allowed_recipients", "must hold at least one phone number");
                }
                if listed.len() > MOST_ALLOWED {
                    fields.problem("allowed_recipients", format!("must hold at most {MOST_ALLOWED} phone numbers"));
                }
                let mut numbers = Vec::new();
                for (index, value) in listed.iter().enumerate() {
                    super::check_number(&format!("allowed_recipients[{index}]"), value, fields);
                    numbers.extend(value.as_str().map(plain));
                }
                Self::These(numbers)
            }
            Some(Value::String(_)) => {
                fields.problem("allowed_recipients", "must be caller_only or a list of phone numbers");
                Self::Anybody
            }
            Some(other) => {
                let problem = format!("must be caller_only or a list of phone numbers, not {}", kind(other));
                fields.problem("allowed_recipients", problem);
                Self::Anybody
            }
        }
    }

    /// The author's own recipients must be allowed; otherwise every message to them would fail.
    pub(super) fn check(&self, recipients: &Parameter, fields: &mut Fields<'_>) {
        let listed = match self {
            Self::Anybody => return,
            Self::Only(Word::CallerOnly) => &[CALLER.to_owned()][..],
            Self::These(numbers) => numbers,
        };
        let mut hold = |path: &str, recipient: &Value| {
            if recipient.as_str().is_some_and(|recipient| !listed.contains(&plain(recipient))) {
                fields.problem(path, "is not among allowed_recipients; add it there or take it out here");
            }
        };
        let (path, fixed) = match recipients {
            Parameter::Fixed { value: Value::Array(values), .. } => ("recipients.value", values),
            Parameter::Fixed { value, .. } => return hold("recipients.value", value),
            Parameter::ArrayExtendable { fixed, .. } => ("recipients.fixedValues", fixed),
            Parameter::Ai { .. } => return,
        };
        for (index, recipient) in fixed.iter().enumerate() {
            hold(&format!("{path}[{index}]"), recipient);
        }
    }

    pub(super) fn is_unrestricted(&self) -> bool {
        *self == Self::Anybody
    }

    /// A variable without a value allows nobody.
    pub(super) fn in_conversation(&self, conversation: &Conversation) -> Allowed {
        let number = |text: &str| variables::fill_text(text, conversation, Encoding::Plain).ok()?.parse().ok();
        match self {
            Self::Anybody => Allowed { numbers: None, otherwise: "" },
            Self::Only(Word::CallerOnly) => Allowed {
                numbers: Some(number(CALLER).into_iter().collect()),
                otherwise: "this tool may only send to the number of the caller",
            },
            Self::These(listed) => Allowed {
                numbers: Some(listed.iter().filter_map(|text| number(text)).collect()),
                otherwise: if listed.iter().any(|text| text == CALLER) {
                    "this tool may only send to the number of the caller and to numbers that were set up for it"
                } else {
                    "this tool may only send to numbers that were set up for it"
                },
            },
        }
    }
}

impl Allowed {
    pub(super) fn admit(&self, number: E164) -> Result<E164, &'static str> {
        match &self.numbers {
            Some(numbers) if !numbers.contains(&number) => Err(self.otherwise),
            _ => Ok(number),
        }
    }
}

fn plain(text: &str) -> String {
    match text.parse::<E164>() {
        Ok(number) => number.to_string(),
        Err(_) => text.split_whitespace().collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::error::Problems;

    fn read(allowed: &Value) -> Result<AllowedRecipients, Vec<String>> {
        let (body, mut problems) = (json!({"allowed_recipients": allowed}), Problems::default());
        let mut fields = Fields::of(&body, "", &mut problems).unwrap();
        let read = AllowedRecipients::read(&mut fields);
        if problems.is_empty() { Ok(read) } else { Err(problems.iter().map(|problem| problem.field.clone()).collect()) }
    }

    fn conversation(caller: Option<&str>) -> Conversation {
        Conversation { caller: caller.map(str::to_owned), ..Conversation::default() }
    }

    #[test]
    fn a_list_is_numbers_and_variables_and_not_empty() {
        assert_eq!(read(&Value::Null), Ok(AllowedRecipients::Anybody));
        assert_eq!(read(&json!("caller_only")), Ok(AllowedRecipients::Only(Word::CallerOnly)));
        let listed = read(&json!(["+1 (555) 010-0001", "{{ caller_phone_number }}"])).unwrap();
        assert_eq!(json!(listed), json!(["+15550100001", "{{caller_phone_number}}"]));
        for allowed in [listed, AllowedRecipients::Only(Word::CallerOnly)] {
            assert_eq!(serde_json::from_value::<AllowedRecipients>(json!(allowed)).unwrap(), allowed);
        }
        for unknown in [json!("known_contacts"), json!({"group": "staff"}), json!([7])] {
            assert!(serde_json::from_value::<AllowedRecipients>(unknown).is_err());
        }
        assert_eq!(read(&json!("everybody")).unwrap_err(), ["allowed_recipients"]);
        assert_eq!(read(&json!(7)).unwrap_err(), ["allowed_recipients"]);
        assert_eq!(read(&json!([])).unwrap_err(), ["allowed_recipients"]);
        let wrong = read(&json!(["+15550100001", "5550100", 7, "{{now}}"])).unwrap_err();
        assert_eq!(wrong, ["allowed_recipients[1]", "allowed_recipients[2]", "allowed_recipients[3]"]);
    }

    #[test]
    fn a_withheld_number_belongs_to_no_caller() {
        let number: E164 = "+15550100001".parse().unwrap();
        for allowed in [AllowedRecipients::Only(Word::CallerOnly), AllowedRecipients::These(vec![CALLER.to_owned()])] {
            for caller in [None, Some("anonymous"), Some("+15550100002")] {
                assert!(allowed.in_conversation(&conversation(caller)).admit(number.clone()).is_err(), "{caller:?}");
            }
            assert!(allowed.in_conversation(&conversation(Some("+15550100001"))).admit(number.clone()).is_ok());
        }
        assert!(AllowedRecipients::Anybody.in_conversation(&conversation(None)).admit(number).is_ok());
    }
}
