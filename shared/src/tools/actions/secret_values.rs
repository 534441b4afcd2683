//! Secrets among a tool's fixed values: detection, masking, and their way to Secrets Manager and back.
//!
//! A value is entirely secret if its author marks it (`"secret": true`), or if it is unmarked and has the name of a secret or is
//! a header. Within other values the same rule applies to parts: members with such names, such parameters of a URL's query, and
//! repetitions of another secret. A value that is only a variable is no secret.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Parameter, ToolAction, variables};
use crate::{
    Result,
    error::Problems,
    placeholder::Placeholder,
    redaction::{HiddenTexts, SECRET, is_secret, is_secret_header},
    tool::Conversation,
};

/// Bytes; Secrets Manager allows 64 KiB.
const LARGEST: usize = 60_000;

/// The content of a tool's secret: `{"headers.X-Api-Key": "…"}`, each the whole value of a field, with variables not filled in.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretValues(BTreeMap<String, Value>);

impl SecretValues {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for SecretValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

pub(super) struct FixedValue<'a> {
    /// Path in the configuration: `headers.X-Api-Key`.
    field: String,
    name: &'a str,
    sent_as: SentAs,
    slot: Slot<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SentAs {
    Address,
    Header,
    /// Member of a body or query, or a prop of an action.
    Member,
}

enum Slot<'a> {
    Parameter(&'a mut Parameter),
    Plain(&'a mut Value),
}

impl<'a> FixedValue<'a> {
    /// `None` if the value comes from the model alone.
    pub(super) fn of_parameter(
        field: String,
        name: &'a str,
        sent_as: SentAs,
        parameter: &'a mut Parameter,
    ) -> Option<Self> {
        parameter.hidden().is_some().then_some(Self { field, name, sent_as, slot: Slot::Parameter(parameter) })
    }

    pub(super) const fn plain(field: String, name: &'a str, value: &'a mut Value) -> Self {
        Self { field, name, sent_as: SentAs::Member, slot: Slot::Plain(value) }
    }

    fn get(&self) -> Value {
        match &self.slot {
            Slot::Parameter(parameter) => parameter.hidden().unwrap_or_default(),
            Slot::Plain(value) => (**value).clone(),
        }
    }

    fn set(&mut self, new: Value) {
        match &mut self.slot {
            Slot::Plain(value) => **value = new,
            Slot::Parameter(Parameter::Fixed { value, .. }) => *value = new,
            Slot::Parameter(Parameter::ArrayExtendable { fixed, .. }) => {
                *fixed = match new {
                    Value::Array(values) => values,
                    other => vec![other],
                }
            }
            Slot::Parameter(Parameter::Ai { .. }) => {}
        }
    }

    fn mark(&self) -> Option<bool> {
        match &self.slot {
            Slot::Parameter(Parameter::Fixed { secret, .. }) => *secret,
            _ => None,
        }
    }

    fn set_mark(&mut self, mark: Option<bool>) {
        if let Slot::Parameter(Parameter::Fixed { secret, .. }) = &mut self.slot {
            *secret = mark;
        }
    }

    fn is_named_secret(&self, value: &Value) -> bool {
        self.mark().unwrap_or_else(|| tells_something(value) && is_secret(self.name))
    }

    fn is_secret(&self, value: &Value) -> bool {
        let by_header = || {
            self.mark().is_none()
                && self.sent_as == SentAs::Header
                && is_secret_header(self.name)
                && tells_something(value)
                && !variables::has_any(value)
        };
        self.is_named_secret(value) || by_header()
    }

    /// The value with secrets masked. `texts`: secrets that it may repeat.
    fn shown(&self, value: &Value, texts: &HiddenTexts) -> Value {
        let in_list = || value.is_array() && !matches!(self.slot, Slot::Parameter(Parameter::Fixed { .. }));
        let (origin, rest) = match (self.sent_as, value.as_str()) {
            (SentAs::Address, Some(url)) => url.split_at(end_of_host(url)),
            _ => ("", ""),
        };
        if self.is_secret(value) {
            return match value.as_str() {
                Some(_) if self.sent_as == SentAs::Address => format!("{origin}/{SECRET}").into(),
                // Variable names are no secret; their availability is checked before the secret is read.
                Some(text) => format!("{SECRET}{}", variables::all_in(text)).into(),
                None if in_list() => vec![SECRET].into(),
                None => SECRET.into(),
            };
        }
        match (self.mark(), self.sent_as) {
            (Some(false), _) => value.clone(),
            (_, SentAs::Address) => {
                let Value::String(shown) = texts.masked(format!("https://host{rest}").into()) else {
                    return SECRET.into();
                };
                format!("{origin}{}", shown.strip_prefix("https://host").unwrap_or(SECRET)).into()
            }
            _ => texts.masked(value.clone()),
        }
    }
}

/// False for values without information: empty texts, booleans, and variables, whose values are public in the call.
fn tells_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) => false,
        Value::String(text) => !text.trim().is_empty() && Placeholder::only_placeholder_in(text).is_none(),
        Value::Array(items) => items.iter().any(tells_something),
        Value::Object(members) => members.values().any(tells_something),
        Value::Number(_) => true,
    }
}

pub(super) fn end_of_host(url: &str) -> usize {
    let host = url.find("://").map_or(0, |scheme| scheme + 3);
    url.get(host..).and_then(|rest| rest.find(['/', '\\', '?', '#'])).map_or(url.len(), |length| host + length)
}

fn holds_mask(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(SECRET),
        Value::Array(items) => items.iter().any(holds_mask),
        Value::Object(members) => members.values().any(holds_mask),
        _ => false,
    }
}

impl ToolAction {
    /// In an order that does not depend on the values: masked copies are zipped with it.
    fn fixed_values(&mut self) -> Vec<FixedValue<'_>> {
        match self {
            Self::ApiRequest(action) => action.fixed_values(),
            Self::PipedreamAction(action) => action.fixed_values(),
            Self::ServiceRequest(action) => action.fixed_values(),
            // Text messages and queries are not confidential.
            Self::Query(_) | Self::Sms(_) | Self::TransferCall(_) | Self::PlaceCall(_) => Vec::new(),
        }
    }

    #[must_use]
    pub(super) fn without_public_values(&self, mut texts: HiddenTexts) -> HiddenTexts {
        let mut own = self.clone();
        let (public, others): (Vec<_>, Vec<_>) =
            own.fixed_values().into_iter().partition(|value| value.mark() == Some(false));
        if public.is_empty() {
            return texts;
        }
        let public: Vec<Value> = public.iter().map(FixedValue::get).collect();
        for value in &public {
            texts.remove_all(value);
        }
        // A public address may hold a secret of another field.
        let mut marked = Vec::new();
        for other in others {
            let value = other.get();
            if other.mark() == Some(true) {
                marked.push(value);
            } else if !public.contains(&value) {
                texts.add_secrets(&value, other.is_secret(&value));
            }
        }
        for value in &public {
            texts.remove_whole(value);
        }
        for value in &marked {
            texts.add_secrets(value, true);
        }
        texts
    }

    /// Fixed values of this call to hide from output. The call's phone numbers are not the author's secrets.
    pub(super) fn hidden_texts(&self, conversation: &Conversation) -> HiddenTexts {
        let texts = variables::secrets(&self.with_marked(self.static_config()), conversation);
        let mut texts = self.filled(conversation).without_public_values(texts);
        for number in [conversation.caller_number(), conversation.called.clone()].iter().flatten() {
            texts.remove(number.as_str());
        }
        texts
    }

    fn filled(&self, conversation: &Conversation) -> Self {
        let mut filled = self.clone();
        for mut value in filled.fixed_values() {
            if let Ok(known) = variables::fill(&value.get(), conversation, variables::Encoding::Plain) {
                value.set(known);
            }
        }
        filled
    }

    #[must_use]
    pub fn masked(&self) -> Self {
        let mut masked = self.clone();
        mask(masked.fixed_values());
        masked
    }

    #[must_use]
    pub fn with_secrets(&self, secrets: &SecretValues) -> Self {
        let mut whole = self.clone();
        for mut value in whole.fixed_values() {
            if let Some(secret) = secrets.0.get(&value.field) {
                value.set(secret.clone());
            }
        }
        whole
    }

    /// Moves the secrets out, and leaves masks. A mask in the input keeps the secret of `before`, which has its secrets filled
    /// in.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for a mask without an earlier secret, and if the secrets are too large to store.
    pub fn take_secrets(&mut self, before: Option<&Self>) -> Result<SecretValues> {
        if let Some(before) = before {
            self.keep_secrets(before);
        }
        let mut masked = self.masked();
        let (mut problems, mut secrets) = (Problems::default(), SecretValues::default());
        for (own, shown) in self.fixed_values().into_iter().zip(masked.fixed_values()) {
            let value = own.get();
            if holds_mask(&value) {
                problems.add(own.field, format!("holds {SECRET}, the mask of a hidden value; write the value itself"));
            } else if value != shown.get() {
                secrets.0.insert(own.field, value);
            }
        }
        let size = serde_json::to_string(&secrets).map_or(usize::MAX, |text| text.len());
        if size > LARGEST {
            let largest = secrets.0.iter().max_by_key(|(_, value)| value.to_string().len());
            let field = largest.map(|(field, _)| field.clone()).unwrap_or_default();
            problems.add(field, format!("is too long: the secrets of a tool may have {LARGEST} bytes in all"));
        }
        problems.into_result(Some(()))?;
        *self = masked;
        Ok(secrets)
    }

    /// Repeats marked values under the name of a secret, because redaction finds secrets by name.
    pub(super) fn with_marked(&self, static_config: Value) -> Value {
        with_marked(static_config, self.clone().fixed_values())
    }

    fn keep_secrets(&mut self, before: &Self) {
        let (mut before, mut shown) = (before.clone(), before.masked());
        let before = before.fixed_values().into_iter().zip(shown.fixed_values());
        let kept: BTreeMap<String, (Value, Value, Option<bool>)> = before
            .map(|(own, shown)| (own.field.clone(), (shown.get(), own.get(), shown.mark())))
            .filter(|(_, (shown, own, _))| shown != own)
            .collect();
        for mut value in self.fixed_values() {
            let Some((shown, own, mark)) = kept.get(&value.field) else { continue };
            // A mask marked as public does not keep the secret: readers of this version may not be those its author chose.
            if value.get() == *shown && value.mark() != Some(false) {
                value.set(own.clone());
                value.set_mark(value.mark().or(*mark));
            }
        }
    }
}

pub(super) fn with_marked(mut static_config: Value, values: Vec<FixedValue<'_>>) -> Value {
    let marked = values.into_iter().filter(|own| own.mark() == Some(true));
    let marked: Map<String, Value> = marked.map(|own| (own.field.clone(), own.get())).collect();
    if let Value::Object(members) = &mut static_config
        && !marked.is_empty()
    {
        members.insert("secrets".into(), marked.into());
    }
    static_config
}

pub(super) fn first_secret(values: Vec<FixedValue<'_>>) -> Option<String> {
    let texts = HiddenTexts::default();
    values.into_iter().find_map(|own| {
        let value = own.get();
        (holds_mask(&value) || own.shown(&value, &texts) != value).then_some(own.field)
    })
}

fn mask(values: Vec<FixedValue<'_>>) {
    let mut texts = HiddenTexts::default();
    for own in &values {
        let value = own.get();
        if own.mark() != Some(false) {
            texts.add_secrets(&value, own.is_named_secret(&value));
        }
    }
    for mut own in values {
        let value = own.get();
        if holds_mask(&value) {
            continue;
        }
        let shown = own.shown(&value, &texts);
        if shown != value {
            if own.is_secret(&value) {
                own.set_mark(Some(true));
            }
            own.set(shown);
        }
    }
}

#[cfg(test)]
mod tests;
