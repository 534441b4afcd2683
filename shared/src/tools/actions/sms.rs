//! `sms`: sends text messages through Twilio.
//!
//! ```json
//! {"type": "sms", "from": {"type": "called_number" | "specific_number", "phone_number_id": "…"},
//!  "text": Parameter, "recipients": Parameter, "allowed_recipients"?: "caller_only" | ["+1…" | "{{caller_phone_number}}", …]}
//! ```
//!
//! `allowed_recipients` restricts the model and the author alike; without it a message may go to any number.

mod allowed;

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use self::allowed::AllowedRecipients;
use super::{
    ActionCall, EffectPart, Parameter,
    no_request::{NoRequest, NotRun, without_secret},
    parameters::{Place, fixed_text, object, parameter},
    variables::Encoding,
};
use crate::{
    Result,
    clients::twilio::{self, Account, LONGEST_TEXT, SentMessage},
    error::found,
    fields::Fields,
    models::{E164, Fault, PhoneNumber, PhoneNumberId, RecipientState},
    tool::{CallContext, Conversation, RecipientOutcome, ToolOutcome},
};

/// Per message.
const MOST_RECIPIENTS: usize = 20;
const NOT_OURS: &str = "The message was not sent: \"from\" must be one of the organization's registered phone numbers \
                        (GET /api/{slug}/phone-numbers); leave it out to send from the usual one.";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sms {
    pub from: Sender,
    text: Parameter,
    recipients: Parameter,
    #[serde(rename = "allowed_recipients", default, skip_serializing_if = "AllowedRecipients::is_unrestricted")]
    allowed: AllowedRecipients,
    /// The argument `from` may name another number of the organization.
    #[serde(skip)]
    takes_from: bool,
}

/// Always a number of the organization's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Sender {
    CalledNumber,
    SpecificNumber { phone_number_id: PhoneNumberId },
}

impl Sms {
    pub(super) fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let from = Self::read_from(fields);
        let text = parameter(fields, "text");
        let recipients = parameter(fields, "recipients");
        let allowed = AllowedRecipients::read(fields);
        if let Some(text) = &text {
            check_text(text, fields);
        }
        if let Some(recipients) = &recipients {
            check_recipients(recipients, fields);
            allowed.check(recipients, fields);
        }
        // Always a list; a single recipient becomes a list of one.
        let recipients = recipients.map(|recipients| match recipients {
            Parameter::Ai { prompt, required, .. } => Parameter::Ai { prompt, schema: list_of_text(), required },
            Parameter::Fixed { value: Value::String(one), .. } => Parameter::fixed(json!([one])),
            other => other,
        });
        Some(Self { from: from?, text: text?, recipients: recipients?, allowed, takes_from: false })
    }

    /// A message from this number, unless the argument `from` names another; text and recipients are arguments.
    pub(crate) fn from_number(phone_number_id: PhoneNumberId) -> Self {
        let given = |schema| Parameter::Ai { prompt: String::new(), schema, required: true };
        Self {
            from: Sender::SpecificNumber { phone_number_id },
            text: given(object([("type", Some("string".into()))])),
            recipients: given(list_of_text()),
            allowed: AllowedRecipients::default(),
            takes_from: true,
        }
    }

    fn read_from(fields: &mut Fields<'_>) -> Option<Sender> {
        fields.required("from")?;
        let mut from = fields.object("from")?;
        let sender = match from.required_text("type", 40).as_deref() {
            Some("called_number") => Some(Sender::CalledNumber),
            Some("specific_number") => {
                let id = from.required_parse("phone_number_id");
                id.map(|phone_number_id| Sender::SpecificNumber { phone_number_id })
            }
            Some(_) => {
                from.problem("type", "must be called_number or specific_number");
                return None;
            }
            None => return None,
        };
        from.finish();
        sender
    }

    pub(super) fn needs_call(&self) -> Option<&'static str> {
        match (self.from, &self.allowed) {
            (Sender::CalledNumber, _) => Some("sends from the number that was called"),
            (_, AllowedRecipients::Only(_)) => Some("sends to the caller only"),
            _ => None,
        }
    }

    pub(super) fn parameters(&self) -> Vec<(Place, &Parameter)> {
        vec![(Place::named("text"), &self.text), (Place::named("recipients"), &self.recipients)]
    }

    pub(super) fn static_config(&self) -> Value {
        Value::Object(object([
            ("from", Some(json!(self.from))),
            ("text", self.text.hidden()),
            ("recipients", self.recipients.hidden()),
            ("allowed_recipients", (!self.allowed.is_unrestricted()).then(|| json!(self.allowed))),
        ]))
    }

    /// Sends to all recipients in parallel, with an outcome for each. Recipients in `done` keep their earlier outcomes.
    pub(super) async fn run(&self, call: ActionCall<'_>, done: &Map<String, Value>) -> Result<ToolOutcome, NotRun> {
        let ActionCall { services, context, .. } = call;
        let Draft { from, text, recipients } = self.draft(call).await?;
        let account: Account = match services.secrets.get(&from.credentials_secret).await {
            Ok(account) => account,
            Err(error) => {
                let sentence = "The SMS service is not available just now; try again in a moment.";
                return Ok(without_secret(error, sentence, context)?);
            }
        };
        let are_refused = recipients.iter().any(|(_, number)| number.is_err());
        let statuses = format!("{}/api/hooks/twilio/statuses", services.public_url);
        let (account, from, text, statuses) = (&account, &from.number, text.as_str(), statuses.as_str());
        let deliveries = join_all(recipients.into_iter().map(|(to, number)| async move {
            if let Some(earlier) = RecipientOutcome::earlier(done, &to) {
                return (earlier, None);
            }
            let not_sent = |to, why: &str| {
                let reason = Some(why.to_owned());
                RecipientOutcome { reason, ..RecipientOutcome::new(to, RecipientState::NotSent) }
            };
            let number = match number {
                Ok(number) => number,
                Err(why) => return (not_sent(to, why), None),
            };
            match services.twilio.send_message(account, from, &number, text, statuses, context.deadline).await {
                Ok(SentMessage { sid, status }) => {
                    let sent = RecipientOutcome::new(to, RecipientState::Sent);
                    (RecipientOutcome { sid: Some(sid), status: Some(status), ..sent }, None)
                }
                Err(error) if error.effect_possible() => {
                    (RecipientOutcome::new(to, RecipientState::Unknown), Some(error))
                }
                Err(error) => (not_sent(to, twilio::why(&error)), Some(error)),
            }
        }))
        .await;
        let (recipients, errors): (Vec<_>, Vec<_>) = deliveries.into_iter().unzip();
        let ran = ToolOutcome::of_recipients(recipients);
        Ok(match errors.into_iter().flatten().next() {
            Some(error) => ran.because(error),
            None if are_refused => ran.at_fault(Fault::Model),
            None => ran,
        })
    }

    /// The message of [`Sms::run`]: `{"from", "text", "recipients": [{"to", "allowed", "reason"?}]}`.
    pub(super) async fn preview(&self, call: ActionCall<'_>) -> Result<Value, NotRun> {
        let Draft { from, text, recipients } = self.draft(call).await?;
        let recipients = recipients.into_iter().map(|(to, number)| {
            let reason = number.as_ref().err().map(|why| Value::from(*why));
            Value::Object(object([
                ("to", Some(to.into())),
                ("allowed", Some(number.is_ok().into())),
                ("reason", reason),
            ]))
        });
        Ok(json!({"from": from.number, "text": text, "recipients": recipients.collect::<Vec<_>>()}))
    }

    async fn draft(&self, call: ActionCall<'_>) -> Result<Draft, NotRun> {
        let (text, recipients) = self.merge(call)?;
        Ok(Draft { from: self.sender(call).await?, text, recipients })
    }

    /// Turns the model's recipients into a set of numbers, without the author's.
    pub(super) fn normalize(&self, arguments: &mut Map<String, Value>, conversation: &Conversation) {
        let Some(given) = arguments.remove("recipients") else { return };
        let fixed = self.authors(conversation);
        let given: BTreeSet<String> =
            shown(Some(&given)).map(|(shown, _)| shown).filter(|number| !fixed.contains(number)).collect();
        arguments.insert("recipients".into(), given.into_iter().collect());
    }

    /// One part for each recipient of the model, and one for all recipients of the author, which every message has. Invalid
    /// numbers have no part, since nothing is sent there.
    pub(super) fn parts(&self, arguments: &Map<String, Value>, conversation: &Conversation) -> Vec<EffectPart> {
        let authors = self.authors(conversation);
        let mut content = arguments.clone();
        let given = content.remove("recipients");
        let given: BTreeSet<String> = shown(given.as_ref())
            .filter_map(|(shown, number)| number.map(|_| shown))
            .filter(|number| !authors.contains(number))
            .collect();
        // Without recipients of the author, a single part shares the claim key of the whole message. With them, the key
        // `recipients` would collide with that of the message to both.
        let alone = authors.is_empty();
        let each = given.into_iter().map(|to| {
            let (name, value) = if alone { ("recipients", json!([to])) } else { ("recipient", json!(to)) };
            let mut significant = content.clone();
            significant.insert(name.to_owned(), value);
            EffectPart { significant, recipients: vec![to] }
        });
        let each: Vec<EffectPart> = each.collect();
        let whole = (!alone).then_some(EffectPart { significant: content, recipients: authors });
        whole.into_iter().chain(each).collect()
    }

    fn authors(&self, conversation: &Conversation) -> Vec<String> {
        let fixed = self.recipients.value(None, conversation, Encoding::Plain).ok().flatten();
        shown(fixed.as_ref()).map(|(shown, _)| shown).collect()
    }

    fn merge(&self, call: ActionCall<'_>) -> Result<(String, Vec<Addressed>), NoRequest> {
        let ActionCall { context: CallContext { conversation, .. }, arguments, .. } = call;
        let text = match self.text.value(arguments.get("text"), conversation, Encoding::Plain)? {
            Some(Value::String(text)) if !text.trim().is_empty() => text,
            _ => return Err("The message has no text; call the tool again with a text.".into()),
        };
        if text.chars().count() > LONGEST_TEXT {
            return Err(format!("The message is longer than {LONGEST_TEXT} characters; shorten it.").into());
        }
        let recipients = self.recipients.value(arguments.get("recipients"), conversation, Encoding::Plain)?;
        let recipients = numbers(recipients.as_ref());
        if recipients.is_empty() {
            return Err("The message has no recipient; ask for a phone number.".into());
        }
        if recipients.len() > MOST_RECIPIENTS {
            return Err(format!("The message has more than {MOST_RECIPIENTS} recipients.").into());
        }
        let allowed = self.allowed.in_conversation(conversation);
        let recipients = recipients.into_iter().map(|(shown, number)| {
            let number = number.ok_or("it is not a phone number in international form, such as +15550100001");
            (shown, number.and_then(|number| allowed.admit(number)))
        });
        Ok((text, recipients.collect()))
    }

    /// The row of the sending number.
    async fn sender(&self, call: ActionCall<'_>) -> Result<PhoneNumber, NotRun> {
        let ActionCall { services, context, arguments } = call;
        if let Some(named) = arguments.get("from").and_then(Value::as_str).filter(|_| self.takes_from) {
            let row = match named.parse::<E164>() {
                Ok(number) => services.phone_numbers.with_number(context.organization, &number).await?,
                Err(_not_e164) => None,
            };
            return Ok(row.ok_or_else(|| NoRequest::from(NOT_OURS))?);
        }
        let (row, otherwise) = match self.from {
            Sender::CalledNumber => (
                context.conversation.line.clone(),
                "No SMS can be sent from the number that was called: it is not set up for that; do not try again, and offer \
                 something else.",
            ),
            Sender::SpecificNumber { phone_number_id: id } => (
                found(services.phone_numbers.get(context.organization, id).await)?,
                "The number this message should come from is no longer set up.",
            ),
        };
        Ok(row.ok_or_else(|| NoRequest::of(Fault::Configuration, otherwise))?)
    }
}

/// A recipient as given, with its number or the reason why nothing is sent.
type Addressed = (String, Result<E164, &'static str>);

struct Draft {
    from: PhoneNumber,
    text: String,
    recipients: Vec<Addressed>,
}

fn check_text(text: &Parameter, fields: &mut Fields<'_>) {
    let Some(text) = fixed_text(text, "text", fields) else { return };
    let mistake = match text.chars().count() {
        _ if text.trim().is_empty() => Some("must not be empty".to_owned()),
        length if length > LONGEST_TEXT => Some(format!("must have at most {LONGEST_TEXT} characters")),
        _ => super::variables::unknown_in(text),
    };
    if let Some(mistake) = mistake {
        fields.problem("text.value", mistake);
    }
}

pub(super) fn check_number(path: &str, value: &Value, fields: &mut Fields<'_>) {
    match value {
        Value::String(text) if text.contains("{{") => {
            let known = super::variables::fill_text(text, &example(), Encoding::Plain);
            if !known.is_ok_and(|number| number.parse::<E164>().is_ok()) {
                fields.problem(path, "must be a phone number such as +15550100001, or {{caller_phone_number}} or {{called_phone_number}}");
            }
        }
        Value::String(text) => {
            if let Err(error) = text.parse::<E164>() {
                fields.problem(path, error.to_string());
            }
        }
        _ => fields.problem(path, "must be a phone number as text"),
    }
}

fn check_recipients(recipients: &Parameter, fields: &mut Fields<'_>) {
    let (list, numbers) = match recipients {
        Parameter::Fixed { value: Value::Array(numbers), .. } => ("value", numbers),
        Parameter::Fixed { value, .. } => return check_number("recipients.value", value, fields),
        Parameter::ArrayExtendable { fixed, .. } => ("fixedValues", fixed),
        Parameter::Ai { .. } => return,
    };
    if numbers.is_empty() && list == "value" {
        fields.problem("recipients.value", "must hold at least one phone number");
    }
    for (index, number) in numbers.iter().enumerate() {
        check_number(&format!("recipients.{list}[{index}]"), number, fields);
    }
}

fn example() -> Conversation {
    Conversation { caller: Some("+15550100001".into()), called: "+15550100002".parse().ok(), ..Conversation::default() }
}

fn list_of_text() -> Map<String, Value> {
    object([("type", Some("array".into())), ("items", Some(json!({"type": "string"})))])
}

/// Distinct recipients in any spelling. Invalid numbers stay, so that they are reported.
fn numbers(value: Option<&Value>) -> Vec<(String, Option<E164>)> {
    let mut recipients: Vec<(String, Option<E164>)> = Vec::new();
    for (shown, number) in shown(value) {
        if !recipients.iter().any(|(present, _)| *present == shown) {
            recipients.push((shown, number));
        }
    }
    recipients
}

/// Normalizes recipients for a claim made before the tool is known, in the form of a message without recipients of the author.
/// Lists without any valid number stay unchanged.
pub fn as_only_recipients(arguments: &mut Map<String, Value>) {
    let given: BTreeMap<String, Option<E164>> = shown(arguments.get("recipients")).collect();
    if given.values().any(Option::is_some) {
        arguments.insert("recipients".into(), given.into_keys().collect());
    }
}

/// Recipients as shown, with their numbers if valid.
fn shown(value: Option<&Value>) -> impl Iterator<Item = (String, Option<E164>)> {
    let given: Vec<&str> = match value {
        Some(Value::Array(values)) => values.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(one)) => vec![one],
        _ => Vec::new(),
    };
    given.into_iter().map(|text| {
        let number: Option<E164> = text.parse().ok();
        (number.as_ref().map_or_else(|| text.trim().to_owned(), ToString::to_string), number)
    })
}
