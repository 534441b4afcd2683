//! Bodies of phone numbers.
//!
//! ```json
//! {"number": "+15550100001", "label": "Main line", "agent_id": "…", "fallback_number": "+15550100002",
//!  "vapi_phone_number_id": "…",
//!  "twilio": {"account_sid": "AC…", "auth_token": "…", "api_key_sid": "SK…", "api_key_secret": "…"}}
//! ```

use std::{fmt::Display, str::FromStr};

use secrecy::SecretString;
use serde_json::Value;
use shared::{
    Result,
    clients::twilio::Account,
    error::Problems,
    fields::Fields,
    models::{AgentId, E164},
};
use uuid::Uuid;

const LONGEST_WAIT_MS: u32 = 4_000;

/// In characters.
const LONGEST_LABEL: usize = 100;
const LONGEST_SECRET: usize = 200;

/// Body of a POST.
pub(crate) struct NewNumber {
    pub(crate) number: E164,
    pub(crate) label: String,
    pub(crate) agent_id: Option<AgentId>,
    pub(crate) fallback_number: Option<E164>,
    pub(crate) vapi_phone_number_id: Option<Uuid>,
    pub(crate) wait_ms: u32,
    pub(crate) account: Account,
}

shared::described! {
    NewNumber => {"$ref": "#/components/schemas/NewPhoneNumber"},
    Change => {"$ref": "#/components/schemas/PhoneNumberChange"},
}

/// A change of an optional value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Setting<T> {
    /// Absent from the body.
    Kept,
    /// JSON `null`.
    Cleared,
    Set(T),
}

impl<T> Setting<T> {
    /// The value after the change.
    pub(crate) fn after(self, before: Option<T>) -> Option<T> {
        match self {
            Self::Kept => before,
            Self::Cleared => None,
            Self::Set(value) => Some(value),
        }
    }

    /// The same change of the value's text.
    pub(crate) fn text(self) -> Setting<String>
    where
        T: ToString,
    {
        match self {
            Self::Kept => Setting::Kept,
            Self::Cleared => Setting::Cleared,
            Self::Set(value) => Setting::Set(value.to_string()),
        }
    }

    pub(crate) fn given(&self) -> Option<&T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Kept | Self::Cleared => None,
        }
    }

    fn read(fields: &mut Fields<'_>, name: &'static str) -> Self
    where
        T: FromStr<Err: Display>,
    {
        if fields.cleared(name) { Self::Cleared } else { fields.parse(name).map_or(Self::Kept, Self::Set) }
    }
}

/// Body of a PATCH.
pub(crate) struct Change {
    pub(crate) label: Option<String>,
    pub(crate) agent_id: Setting<AgentId>,
    pub(crate) fallback_number: Setting<E164>,
    pub(crate) vapi_phone_number_id: Setting<Uuid>,
    pub(crate) wait_ms: Option<u32>,
    pub(crate) account: Option<Account>,
}

pub(crate) fn new_number(body: &Value) -> Result<NewNumber> {
    let mut problems = Problems::default();
    let read = Fields::of(body, "", &mut problems).and_then(|mut fields| {
        let number: Option<E164> = fields.required_parse("number");
        let label = fields.required_name("label", LONGEST_LABEL);
        let agent_id = fields.parse("agent_id");
        let fallback_number: Option<E164> = fields.parse("fallback_number");
        if number.is_some() && number == fallback_number {
            fields.problem("fallback_number", SAME_NUMBER);
        }
        let vapi_phone_number_id = fields.parse("vapi_phone_number_id");
        let wait_ms = fields.whole("wait_ms", 0..=LONGEST_WAIT_MS).unwrap_or_default();
        if wait_ms > 0 && vapi_phone_number_id.is_none() {
            fields.problem("wait_ms", NO_VARIABLES);
        }
        let account = fields.required("twilio").and_then(|value| account(value, &mut fields));
        fields.finish();
        Some(NewNumber {
            number: number?,
            label: label?,
            agent_id,
            fallback_number,
            vapi_phone_number_id,
            wait_ms,
            account: account?,
        })
    });
    problems.into_result(read)
}

/// The problem of a fallback number that equals the number.
pub(crate) const SAME_NUMBER: &str = "must be another number: a call that cannot be taken would come back";

/// The problem of a wait without VAPI's id of the number.
pub(crate) const NO_VARIABLES: &str =
    "needs vapi_phone_number_id: only a call that we create at VAPI has variables; give the id, or leave wait_ms at 0";

pub(crate) fn change(body: &Value) -> Result<Change> {
    let mut problems = Problems::default();
    let read = Fields::of(body, "", &mut problems).map(|mut fields| {
        if fields.misplaced("number") {
            fields.problem("number", "cannot be changed; register the other number");
        }
        let label = if fields.cleared("label") {
            fields.problem("label", "cannot be cleared");
            None
        } else {
            let given = fields.get("label").is_some();
            if given { fields.required_name("label", LONGEST_LABEL) } else { None }
        };
        let agent_id = Setting::read(&mut fields, "agent_id");
        let fallback_number = Setting::read(&mut fields, "fallback_number");
        let vapi_phone_number_id = Setting::read(&mut fields, "vapi_phone_number_id");
        let wait_ms = if fields.cleared("wait_ms") { Some(0) } else { fields.whole("wait_ms", 0..=LONGEST_WAIT_MS) };
        let account = if fields.cleared("twilio") {
            fields.problem("twilio", "cannot be cleared; remove the phone number instead");
            None
        } else {
            fields.get("twilio").and_then(|value| account(value, &mut fields))
        };
        if body.as_object().is_some_and(serde_json::Map::is_empty) {
            fields.problem(
                "body",
                "changes nothing; send label, agent_id, fallback_number, vapi_phone_number_id, wait_ms or twilio",
            );
        }
        fields.finish();
        Change { label, agent_id, fallback_number, vapi_phone_number_id, wait_ms, account }
    });
    problems.into_result(read)
}

fn account(value: &Value, fields: &mut Fields<'_>) -> Option<Account> {
    let path = fields.path("twilio");
    let mut twilio = Fields::of(value, path, fields.problems())?;
    let account_sid = twilio.required_text("account_sid", LONGEST_SECRET);
    let account_sid = account_sid.and_then(|sid| checked(&mut twilio, "account_sid", sid, "AC"));
    let auth_token = twilio.required_text("auth_token", LONGEST_SECRET);
    let key_sid = twilio.text("api_key_sid", LONGEST_SECRET);
    let key_sid = key_sid.and_then(|sid| checked(&mut twilio, "api_key_sid", sid, "SK"));
    let key_secret = twilio.text("api_key_secret", LONGEST_SECRET);
    let given = |fields: &mut Fields<'_>, name| fields.get(name).is_some();
    match (given(&mut twilio, "api_key_sid"), given(&mut twilio, "api_key_secret")) {
        (true, false) => twilio.problem("api_key_secret", "is required beside api_key_sid"),
        (false, true) => twilio.problem("api_key_sid", "is required beside api_key_secret"),
        _ => {}
    }
    twilio.finish();
    Some(Account::new(account_sid?, SecretString::from(auth_token?), key_sid.zip(key_secret.map(SecretString::from))))
}

/// A Twilio sid: two letters for its kind, then 32 hexadecimal digits.
fn checked(fields: &mut Fields<'_>, name: &str, sid: String, kind: &str) -> Option<String> {
    let digits = sid.strip_prefix(kind);
    if digits.is_some_and(|digits| digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())) {
        return Some(sid);
    }
    fields.problem(name, format!("must be {kind} and 32 hexadecimal digits"));
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shared::Error;

    use super::*;

    const SID: &str = "AC0123456789abcdef0123456789abcdef";
    const KEY: &str = "SK0123456789abcdef0123456789abcdef";

    fn wrong<T>(read: Result<T>) -> Vec<String> {
        match read {
            Err(Error::Invalid(problems)) => problems.iter().map(|problem| problem.field.clone()).collect(),
            _ => panic!("accepted"),
        }
    }

    #[test]
    fn every_wrong_field_is_named_at_once_and_no_secret_is_repeated() {
        assert_eq!(wrong(new_number(&json!({}))), ["number", "label", "twilio"]);
        let body = json!({
            "number": "5550100001", "label": "x".repeat(101), "agent_id": "1", "fallback_number": 7, "color": "red",
            "twilio": {"account_sid": "AC1", "auth_token": "t0psecret".repeat(40), "api_key_sid": SID, "api_key_secret": 5, "x": 1},
        });
        let refused = new_number(&body);
        let Err(error) = &refused else { panic!("accepted") };
        assert!(!error.to_string().contains("t0psecret"), "{error}");
        assert_eq!(
            wrong(refused),
            [
                "number",
                "label",
                "agent_id",
                "fallback_number",
                "twilio.account_sid",
                "twilio.auth_token",
                "twilio.api_key_sid",
                "twilio.api_key_secret",
                "twilio.x",
                "color",
            ]
        );
    }

    #[test]
    fn an_api_key_has_both_its_halves() {
        let with = |key: Value| {
            let mut twilio = json!({"account_sid": SID, "auth_token": "t"});
            twilio.as_object_mut().unwrap().extend(key.as_object().unwrap().clone());
            new_number(&json!({"number": "+15550100001", "label": "x", "twilio": twilio}))
        };
        assert!(with(json!({"api_key_sid": KEY, "api_key_secret": "s"})).is_ok());
        assert_eq!(wrong(with(json!({"api_key_sid": KEY}))), ["twilio.api_key_secret"]);
        assert_eq!(wrong(with(json!({"api_key_secret": "s"}))), ["twilio.api_key_sid"]);
    }

    #[test]
    fn a_number_does_not_fall_back_to_itself() {
        let twilio = json!({"account_sid": SID, "auth_token": "t"});
        let body =
            json!({"number": "+15550100001", "label": "x", "twilio": twilio, "fallback_number": "+1 555 010-0001"});
        assert_eq!(wrong(new_number(&body)), ["fallback_number"]);
    }

    #[test]
    fn a_wait_is_short_and_needs_a_call_that_we_create() {
        let with = |more: Value| {
            let mut body =
                json!({"number": "+15550100001", "label": "x", "twilio": {"account_sid": SID, "auth_token": "t"}});
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            new_number(&body)
        };
        let id = "01930f5e-6a1b-7c2d-8e3f-4a5b6c7d8e9f";
        assert_eq!(with(json!({})).unwrap().wait_ms, 0);
        assert_eq!(with(json!({"wait_ms": 4_000, "vapi_phone_number_id": id})).unwrap().wait_ms, 4_000);
        for bad in [json!(4_001), json!(-1), json!("1"), json!(1.5)] {
            assert_eq!(wrong(with(json!({"wait_ms": bad, "vapi_phone_number_id": id}))), ["wait_ms"], "{bad}");
        }
        assert_eq!(wrong(with(json!({"wait_ms": 1}))), ["wait_ms"]);
        assert_eq!(change(&json!({"wait_ms": 0})).unwrap().wait_ms, Some(0));
    }

    #[test]
    fn a_change_keeps_absent_fields_and_clears_null_ones() {
        let changed = change(&json!({"agent_id": null, "fallback_number": "+15550100002"})).unwrap();
        assert!(changed.label.is_none() && changed.account.is_none());
        assert_eq!(changed.agent_id, Setting::Cleared);
        assert_eq!(changed.fallback_number, Setting::Set("+15550100002".parse().unwrap()));
        assert_eq!(change(&json!({"label": "x"})).unwrap().agent_id, Setting::Kept);
        let body = json!({"label": null, "twilio": null, "number": "+15550100003", "agent_id": 5});
        assert_eq!(wrong(change(&body)), ["number", "label", "agent_id", "twilio"]);
        assert_eq!(wrong(change(&json!({}))), ["body"]);
        assert_eq!(wrong(change(&json!({"label": " "}))), ["label"]);
        assert_eq!(wrong(change(&json!("x"))), ["body"]);
    }
}
