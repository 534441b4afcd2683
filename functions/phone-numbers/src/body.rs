//! Bodies of phone numbers.
//!
//! ```json
//! {"number": "+15550100001", "label": "Main line", "agent_id": "…", "fallback_number": "+15550100002",
//!  "vapi_phone_number_id": "…",
//!  "twilio": {"account_sid": "AC…", "auth_token": "…", "api_key_sid": "SK…", "api_key_secret": "…"}}
//! ```

use secrecy::SecretString;
use serde_json::Value;
use shared::{
    Result,
    clients::twilio::Account,
    declared::{Body, Given, Kept, Name, Setting, Text, Whole, read},
    described::json,
    fields::Fields,
    models::{AgentId, E164},
};
use uuid::Uuid;

const LONGEST_WAIT_MS: u32 = 4_000;

/// In characters.
const LONGEST_LABEL: usize = 100;
const LONGEST_SECRET: usize = 200;
const LONGEST_SENTENCE: usize = 300;

#[derive(Body)]
pub(crate) struct NewPhoneNumber {
    /// In E.164 form; blanks, dashes, dots and brackets are dropped.
    pub(crate) number: E164,
    pub(crate) label: Label,
    /// The agent that the number rings.
    pub(crate) agent_id: Option<AgentId>,
    /// Who is called when the agent cannot take a call; another number, in E.164 form.
    pub(crate) fallback_number: Option<E164>,
    /// What Twilio's voice says when the agent cannot take a call and there is no `fallback_number`, in place of an English
    /// apology.
    pub(crate) fallback_sentence: Option<Name<LONGEST_SENTENCE>>,
    /// In which Twilio's voice says sentences: the `fallback_sentence`, and those of transfers. A language of Twilio's `<Say>`,
    /// in BCP 47; without one, American English.
    pub(crate) language: Option<Language>,
    /// VAPI's id of the number. With it, calls are created at VAPI for the agent's assistant (provider bypass); without, Twilio's
    /// request is forwarded, and VAPI's assistant for the number answers. VAPI is asked whether it is the
    /// id of this number.
    pub(crate) vapi_phone_number_id: Option<Uuid>,
    /// How long the start of a call waits, in milliseconds, for tools that only read. Results by then are variables of
    /// the call, under the names of their tools. More than 0 needs `vapi_phone_number_id`.
    #[schema(default = 0)]
    pub(crate) wait_ms: Option<Whole<0, LONGEST_WAIT_MS>>,
    pub(crate) twilio: TwilioAccount,
}

#[derive(Body)]
#[schema(minProperties = 1)]
pub(crate) struct PhoneNumberChange {
    pub(crate) label: Kept<Label>,
    pub(crate) agent_id: Setting<AgentId>,
    pub(crate) fallback_number: Setting<E164>,
    pub(crate) fallback_sentence: Setting<Name<LONGEST_SENTENCE>>,
    pub(crate) language: Setting<Language>,
    pub(crate) vapi_phone_number_id: Setting<Uuid>,
    pub(crate) wait_ms: Setting<Whole<0, LONGEST_WAIT_MS>>,
    pub(crate) twilio: Kept<TwilioAccount>,
}

pub(crate) struct Label(pub(crate) String);

shared::described!(Label => {"type": "string", "minLength": 1, "maxLength": LONGEST_LABEL});

impl Given for Label {
    fn read(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        fields.get(name)?;
        fields.required_name(name, LONGEST_LABEL).map(Self)
    }
}

/// Messages are sent under the API key if there is one. The auth token is always needed: Twilio signs its requests to us
/// with it.
#[derive(Body)]
#[schema(dependentRequired = json!({"api_key_sid": ["api_key_secret"], "api_key_secret": ["api_key_sid"]}))]
pub(crate) struct TwilioAccount {
    account_sid: AccountSid,
    #[schema(minLength = 1, writeOnly = true)]
    auth_token: Text<LONGEST_SECRET>,
    api_key_sid: Option<KeySid>,
    #[schema(minLength = 1, writeOnly = true)]
    api_key_secret: Option<Text<LONGEST_SECRET>>,
}

shared::kinds_of_text! {
    AccountSid, 200, {"type": "string", "pattern": "^AC[0-9a-fA-F]{32}$"}, "must be AC and 32 hexadecimal digits",
    |sid| sid_of(sid, "AC");

    Language, 40, {"type": "string", "pattern": "^[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,2}$", "examples": ["pt-PT"]},
    "must be a language that Twilio speaks, such as pt-PT or es-MX", |language| language_of(language);

    KeySid, 200, {"type": "string", "pattern": "^SK[0-9a-fA-F]{32}$"}, "must be SK and 32 hexadecimal digits",
    |sid| sid_of(sid, "SK");
}

fn language_of(text: &str) -> Option<String> {
    let mut parts = text.split('-');
    let first = parts
        .next()
        .is_some_and(|part| matches!(part.len(), 2..=3) && part.bytes().all(|byte| byte.is_ascii_lowercase()));
    let further: Vec<&str> = parts.collect();
    let is_part = |part: &&str| matches!(part.len(), 2..=8) && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (first && further.len() <= 2 && further.iter().all(is_part)).then(|| text.to_owned())
}

/// A Twilio sid: two letters for its kind, then 32 hexadecimal digits.
fn sid_of(sid: &str, kind: &str) -> Option<String> {
    let digits = sid.strip_prefix(kind)?;
    (digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| sid.to_owned())
}

impl Given for TwilioAccount {
    const NOT_CLEARED: &'static str = "cannot be cleared; remove the phone number instead";

    fn read(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        let (value, path) = (fields.get(name)?, fields.path(name));
        let mut fields = Fields::of(value, path, fields.problems())?;
        let draft = <Self as Body>::draft(&mut fields);
        let mut given =
            |name| fields.get(name).is_some_and(|value| value.as_str().is_none_or(|text| !text.trim().is_empty()));
        match (given("api_key_sid"), given("api_key_secret")) {
            (true, false) => fields.problem("api_key_secret", "is required beside api_key_sid"),
            (false, true) => fields.problem("api_key_sid", "is required beside api_key_secret"),
            _ => {}
        }
        fields.finish();
        <Self as Body>::whole(draft)
    }
}

impl From<TwilioAccount> for Account {
    fn from(TwilioAccount { account_sid, auth_token, api_key_sid, api_key_secret }: TwilioAccount) -> Self {
        let key = api_key_sid.zip(api_key_secret).map(|(sid, secret)| (sid.0, SecretString::from(secret.0)));
        Self::new(account_sid.0, SecretString::from(auth_token.0), key)
    }
}

/// The problem of a fallback number that equals the number.
pub(crate) const SAME_NUMBER: &str = "must be another number: a call that cannot be taken would come back";

/// The problem of a wait without VAPI's id of the number.
pub(crate) const NO_VARIABLES: &str =
    "needs vapi_phone_number_id: only a call that we create at VAPI has variables; give the id, or leave wait_ms at 0";

pub(crate) fn new_number(body: &Value) -> Result<NewPhoneNumber> {
    read(body, |new: &mut NewPhoneNumberDraft, fields| {
        if new.number.is_some() && new.number == new.fallback_number {
            fields.problem("fallback_number", SAME_NUMBER);
        }
        if new.wait_ms.is_some_and(|Whole(wait)| wait > 0) && new.vapi_phone_number_id.is_none() {
            fields.problem("wait_ms", NO_VARIABLES);
        }
    })
}

pub(crate) fn change(body: &Value) -> Result<PhoneNumberChange> {
    read(body, |_, fields| {
        if fields.misplaced("number") {
            fields.problem("number", "cannot be changed; register the other number");
        }
        if body.as_object().is_some_and(serde_json::Map::is_empty) {
            fields.problem(
                "body",
                "changes nothing; send label, agent_id, fallback_number, fallback_sentence, language, vapi_phone_number_id, \
                 wait_ms or twilio",
            );
        }
    })
}

#[cfg(test)]
mod tests {
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
        assert_eq!(wrong(with(json!({"api_key_sid": KEY, "api_key_secret": " "}))), ["twilio.api_key_secret"]);
        assert_eq!(wrong(with(json!({"api_key_sid": "", "api_key_secret": "s"}))), ["twilio.api_key_sid"]);
    }

    #[test]
    fn a_number_does_not_fall_back_to_itself() {
        let twilio = json!({"account_sid": SID, "auth_token": "t"});
        let body =
            json!({"number": "+15550100001", "label": "x", "twilio": twilio, "fallback_number": "+1 555 010-0001"});
        assert_eq!(wrong(new_number(&body)), ["fallback_number"]);
    }

    #[test]
    fn a_language_is_one_as_twilio_writes_it() {
        let with = |language: &str| change(&json!({"language": language}));
        for good in ["pt-PT", "es-MX", "cmn-CN", "arb", "en-GB-WLS", "es-419"] {
            assert_eq!(with(good).unwrap().language.after(None::<String>).as_deref(), Some(good));
        }
        for bad in ["Portuguese", "pt_PT", "PT", "pt-", "p", "pt-PT-x-y", "pt-PT\"/>", "en-é"] {
            assert_eq!(wrong(with(bad)), ["language"], "{bad}");
        }
        let long = json!({"fallback_sentence": "x".repeat(301), "language": 1});
        assert_eq!(wrong(change(&long)), ["fallback_sentence", "language"]);
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
        assert_eq!(with(json!({})).unwrap().wait_ms, None);
        assert_eq!(with(json!({"wait_ms": 4_000, "vapi_phone_number_id": id})).unwrap().wait_ms, Some(Whole(4_000)));
        for bad in [json!(4_001), json!(-1), json!("1"), json!(1.5)] {
            assert_eq!(wrong(with(json!({"wait_ms": bad, "vapi_phone_number_id": id}))), ["wait_ms"], "{bad}");
        }
        assert_eq!(wrong(with(json!({"wait_ms": 1}))), ["wait_ms"]);
        assert_eq!(change(&json!({"wait_ms": 0})).unwrap().wait_ms, Setting::Set(Whole(0)));
    }

    #[test]
    fn a_change_keeps_absent_fields_and_clears_null_ones() {
        let changed = change(&json!({"agent_id": null, "fallback_number": "+15550100002"})).unwrap();
        assert!(changed.label.0.is_none() && changed.twilio.0.is_none());
        assert_eq!(changed.agent_id, Setting::Cleared);
        assert_eq!(changed.fallback_number, Setting::Set("+15550100002".parse().unwrap()));
        assert_eq!(change(&json!({"label": "x"})).unwrap().agent_id, Setting::Kept);
        let body = json!({"label": null, "twilio": null, "number": "+15550100003", "agent_id": 5});
        assert_eq!(wrong(change(&body)), ["label", "agent_id", "twilio", "number"]);
        assert_eq!(wrong(change(&json!({}))), ["body"]);
        assert_eq!(wrong(change(&json!({"label": " "}))), ["label"]);
        assert_eq!(wrong(change(&json!("x"))), ["body"]);
    }
}
