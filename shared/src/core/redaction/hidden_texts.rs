//! Texts to hide wherever they recur: secrets of a configuration, and values given as secrets or under marked fields.
//!
//! Services quote their input, and so do models.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use base64::prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD, Engine as _};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::Value;

use super::{DEEPEST, HIDDEN, SECRET, SENT, WINDOW, is_secret, marks::Paths};
use crate::{
    models::{E164, Timestamp},
    placeholder::Placeholder,
};

/// Bytes; shorter texts are too common to search for.
const SHORTEST_SECRET: usize = 6;
const SHORTEST_MARKED: usize = 4;
const SHORTEST_SENT: usize = 2;
/// A single word of at most this many letters is ordinary: `primary`, `English`.
const LONGEST_WORD: usize = 20;
/// Beyond this number of texts everything is hidden.
const MOST: usize = 512;
/// Fields of a `static_config` sent to services and hidden from the model. Texts spoken to people (an SMS, a transfer's message)
/// and queries of the organization's own entries are not hidden.
const SENT_AS_IT_IS: [&str; 7] = ["url", "headers", "body", "preloadedParams", "params", "recipients", "target"];

/// Texts with their replacements, longest first, so that no text is broken by a part of it. Deliberately without `Debug`.
#[derive(Clone, Default)]
pub struct HiddenTexts {
    texts: BTreeMap<(Reverse<usize>, String), &'static str>,
    /// More than [`MOST`] texts were added. A removal does not end it, because the texts after them were not kept.
    overflown: bool,
}

impl HiddenTexts {
    /// The fixed values of a `static_config`: secrets (all headers, values under names of secrets, and such parts of a URL's
    /// query), and all other values sent, unless they are a single word.
    pub fn of_config(static_config: &Value) -> Self {
        let mut texts = Self::default();
        texts.add_secrets(static_config, false);
        for value in SENT_AS_IT_IS.iter().filter_map(|name| static_config.get(name)) {
            texts.add_fixed(value);
        }
        texts
    }

    fn add_fixed(&mut self, value: &Value) {
        match value {
            Value::String(text) if !is_ordinary(text) => {
                self.add_written(text);
                if let Some((path, _)) = path_and_query(text)
                    && path.split('/').any(is_like_a_token)
                {
                    self.add_written(path);
                }
                let parts = url(text).into_iter().flat_map(|(_, query)| query.split('&'));
                for value in parts.filter_map(|part| Some(part.split_once('=')?.1)).filter(|value| !is_ordinary(value))
                {
                    self.add_written(value);
                    self.add_written(&percent_decode_str(value).decode_utf8_lossy());
                }
            }
            Value::Number(number) => self.add_written(&number.to_string()),
            Value::Array(items) => items.iter().for_each(|item| self.add_fixed(item)),
            Value::Object(members) => members.values().for_each(|value| self.add_fixed(value)),
            _ => {}
        }
    }

    /// Adds the texts of a secret value, or of all secrets within a value.
    pub fn add_secrets(&mut self, value: &Value, secret: bool) {
        match value {
            Value::String(text) if secret => self.add_secret(text),
            Value::String(text) => {
                let parts = url(text).into_iter().flat_map(|(_, query)| query.split('&'));
                for (_, value) in parts.filter_map(secret_part) {
                    self.add_secret(value);
                    self.add_secret(&percent_decode_str(value).decode_utf8_lossy());
                }
            }
            Value::Number(number) if secret => self.add_secret(&number.to_string()),
            Value::Array(items) => items.iter().for_each(|item| self.add_secrets(item, secret)),
            Value::Object(members) => {
                for (name, value) in members {
                    self.add_secrets(value, secret || name == "headers" || is_secret(name));
                }
            }
            _ => {}
        }
    }

    fn add_secret(&mut self, text: &str) {
        for text in quotable(text) {
            self.add_written(&text);
        }
    }

    fn add_written(&mut self, text: &str) {
        if text.len() >= SHORTEST_SECRET {
            for written in written(text) {
                self.add(&written, SECRET);
            }
        }
    }

    pub(super) fn add_sent_text(&mut self, text: &str) {
        if (SHORTEST_SENT..=WINDOW).contains(&text.len()) {
            self.add(text, SENT);
        }
    }

    pub(super) fn add_marked(&mut self, value: &Value, marks: &Paths<'_>, depth: usize) {
        if marks.is_empty() || depth > DEEPEST {
            return;
        }
        let mut add = |text: &str| {
            if marks.marked() && (SHORTEST_MARKED..=WINDOW).contains(&text.len()) {
                self.add(text, HIDDEN);
            }
        };
        match value {
            Value::String(text) => add(text.trim()),
            Value::Number(number) => add(&number.to_string()),
            Value::Array(items) => items.iter().for_each(|item| self.add_marked(item, marks, depth + 1)),
            Value::Object(members) => {
                for (name, value) in members {
                    self.add_marked(value, &marks.within(name), depth + 1);
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, text: &str, instead: &'static str) {
        for text in [text.to_owned(), escaped(text)] {
            if !self.overflown {
                self.texts.insert((Reverse(text.len()), text), instead);
                self.overflown = self.texts.len() > MOST;
            }
        }
    }

    pub fn remove(&mut self, text: &str) {
        for text in quotable(text) {
            self.remove_written(&text);
        }
    }

    fn remove_written(&mut self, text: &str) {
        for text in written(text) {
            for text in [escaped(&text), text] {
                self.texts.remove(&(Reverse(text.len()), text));
            }
        }
    }

    /// Removes values that their author marked as public.
    pub fn remove_all(&mut self, value: &Value) {
        for text in texts_in(value) {
            self.remove(&text);
        }
    }

    /// As [`HiddenTexts::remove_all`], but parts of an address may stay hidden.
    pub fn remove_whole(&mut self, value: &Value) {
        for text in texts_in(value) {
            self.remove_written(&text);
        }
    }

    pub fn replaced(&self, text: &str) -> String {
        if self.overflown {
            return HIDDEN.to_owned();
        }
        self.texts.iter().fold(text.to_owned(), |text, ((_, hidden), instead)| {
            if text.contains(hidden.as_str()) { text.replace(hidden.as_str(), instead) } else { text }
        })
    }

    /// As [`HiddenTexts::replaced`], in every text, number and name of a value.
    pub fn replaced_in(&self, value: Value) -> Value {
        if self.texts.is_empty() && !self.overflown { value } else { self.shown(value, false) }
    }

    /// A request as shown in a preview: without these texts, and without values under the names of secrets.
    pub fn masked(&self, request: Value) -> Value {
        self.shown(request, true)
    }

    fn shown(&self, value: Value, by_name: bool) -> Value {
        match value {
            Value::String(text) if by_name => self.replaced(&without_secret_query(text)).into(),
            Value::String(text) => self.replaced(&text).into(),
            Value::Number(number) => {
                let text = number.to_string();
                let shown = self.replaced(&text);
                if shown == text { number.into() } else { shown.into() }
            }
            Value::Array(items) => items.into_iter().map(|item| self.shown(item, by_name)).collect(),
            Value::Object(members) => {
                let shown = members.into_iter().map(|(name, value)| {
                    let hidden = by_name && is_hidden(&name, &value);
                    (self.replaced(&name), if hidden { SECRET.into() } else { self.shown(value, by_name) })
                });
                shown.collect()
            }
            other => other,
        }
    }
}

/// Whether a text is so common that hiding it would damage other texts.
fn is_ordinary(text: &str) -> bool {
    Placeholder::only_placeholder_in(text).is_some()
        || text.chars().all(char::is_alphabetic) && text.chars().count() <= LONGEST_WORD
}

/// Whether a step of a path may be a secret: `k7Gw2pQz`, but not `customer-orders`, `index.php`, a version, a date or a variable.
fn is_like_a_token(step: &str) -> bool {
    step.len() >= SHORTEST_SECRET && !has_only(step, is_word)
}

/// Whether a step of a path has nothing but words, versions, dates, times and phone numbers.
fn has_only(step: &str, is_word: fn(&str) -> bool) -> bool {
    let step = percent_decode_str(step).decode_utf8_lossy();
    // A slash and a plus are letters of base64.
    let between = |c: char| c == ' ' || c.is_ascii_punctuation() && !matches!(c, '/' | '+');
    let is_known = |part: &str| is_date(part) || is_version(part) || part.parse::<E164>().is_ok();
    is_known(&step)
        || step.parse::<Timestamp>().is_ok()
        || step.split('.').all(|part| is_known(part) || part.split(between).all(|word| is_word(word) || is_known(word)))
}

/// Letters, and perhaps a digit: `orders`, `oauth2`.
fn is_word(text: &str) -> bool {
    is_ordinary(text.strip_suffix(|c: char| c.is_ascii_digit()).unwrap_or(text))
}

fn is_number(text: &str, longest: usize) -> bool {
    (1..=longest).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// `2024-10` and `2010-04-01`.
fn is_date(text: &str) -> bool {
    let mut parts = text.split('-');
    let is_year = |year: &str| year.len() == 4 && (year.starts_with("19") || year.starts_with("20"));
    parts.next().is_some_and(|year| is_year(year) && is_number(year, 4))
        && matches!(parts.clone().count(), 1 | 2)
        && parts.all(|part| part.len() == 2 && is_number(part, 2))
}

/// `v2`, `v1beta1` and `v1.2.3`.
fn is_version(text: &str) -> bool {
    let Some(numbers) = text.strip_prefix(['v', 'V']) else { return false };
    let stages = ["alpha", "beta", "preview", "rc", "p"];
    let numbers = stages.iter().fold(numbers.to_owned(), |numbers, stage| numbers.replacen(*stage, ".", 1));
    let numbers = numbers.strip_suffix('.').unwrap_or(&numbers);
    numbers.split('.').count() <= 3 && numbers.split('.').all(|number| is_number(number, 3))
}

/// The texts by which a service may quote a secret: without its scheme, such as `Bearer`; of an address, also the parts after
/// its host that may be secret.
fn quotable(text: &str) -> BTreeSet<String> {
    let bare = text.split_once(' ').map(|(_scheme, bare)| bare);
    let mut texts: BTreeSet<String> = [Some(text), bare].into_iter().flatten().map(str::to_owned).collect();
    let Some((path, query)) = path_and_query(text) else { return texts };
    let values = query.split('&').filter_map(|part| Some(part.split_once('=')?.1));
    let values: Vec<&str> = values.filter(|value| !is_ordinary(value)).collect();
    let is_ordinary_path = path.split('/').all(|step| has_only(step, is_ordinary));
    if !is_ordinary_path {
        texts.insert(path.to_owned());
    }
    if !(query.is_empty() || is_ordinary_path && values.is_empty()) {
        texts.insert(format!("{path}?{query}"));
    }
    let steps = path.split('/').filter(|step| is_like_a_token(step));
    for part in steps.chain(values) {
        texts.extend([part.to_owned(), percent_decode_str(part).decode_utf8_lossy().into_owned()]);
    }
    texts
}

fn texts_in(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Number(number) => vec![number.to_string()],
        Value::Array(items) => items.iter().flat_map(texts_in).collect(),
        Value::Object(members) => members.values().flat_map(texts_in).collect(),
        _ => Vec::new(),
    }
}

/// In the form of JSON inside a text.
fn escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
}

/// A text as it is, in a query and in base64.
fn written(text: &str) -> BTreeSet<String> {
    let encoded = utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let unreserved = [("%2D", "-"), ("%2E", "."), ("%5F", "_"), ("%7E", "~")];
    let encoded = unreserved.iter().fold(encoded, |text, (code, itself)| text.replace(code, itself));
    let form = encoded.replace("%20", "+");
    let base64 = [BASE64_STANDARD_NO_PAD.encode(text), BASE64_URL_SAFE_NO_PAD.encode(text)];
    [text.to_owned(), encoded, form].into_iter().chain(base64).collect()
}

/// Booleans and null reveal nothing, so they stay.
pub(super) fn is_hidden(name: &str, value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(_)) && is_secret(name)
}

fn without_secret_query(text: String) -> String {
    let Some((address, query)) = url(&text) else { return text };
    let shown = query.split('&').map(|part| match secret_part(part) {
        Some((name, value)) => part.replacen(&format!("{name}={value}"), &format!("{name}={SECRET}"), 1),
        None => part.to_owned(),
    });
    format!("{address}?{}", shown.collect::<Vec<_>>().join("&"))
}

/// Splits a URL into address and query.
fn url(text: &str) -> Option<(&str, &str)> {
    text.split_once('?').filter(|(address, _)| address.contains("://"))
}

/// Path and query of an address, as they stand in the first line of a request.
fn path_and_query(text: &str) -> Option<(&str, &str)> {
    let (_, rest) = text.split_once("://")?;
    let rest = rest.split(|c: char| c.is_whitespace() || c == '#').next().unwrap_or_default();
    let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
    Some((address.get(address.find('/')?..)?, query))
}

/// Name and value of a secret query parameter.
fn secret_part(part: &str) -> Option<(&str, &str)> {
    let (name, value) = part.split_once('=')?;
    let value = value.split(|c: char| c.is_whitespace() || c == '#').next().unwrap_or_default();
    (!value.is_empty() && is_secret(&percent_decode_str(name).decode_utf8_lossy())).then_some((name, value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_masked_at_every_depth_and_nothing_else_is() {
        let value = json!({
            "user": "ana", "max_tokens": 7, "login": {"X-Api-Key": "k", "list": [{"accessToken": ["t"]}], "pin": 4711},
            "keyboard": "qwerty", "cookie": null, "auth": {"any": 1}, "needs_otp": true,
        });
        let shown = json!({
            "user": "ana", "max_tokens": 7,
            "login": {"X-Api-Key": "[secret]", "list": [{"accessToken": "[secret]"}], "pin": "[secret]"},
            "keyboard": "qwerty", "cookie": null, "auth": "[secret]", "needs_otp": true,
        });
        assert_eq!(HiddenTexts::default().masked(value), shown);
    }

    #[test]
    fn an_address_is_shown_without_the_secrets_of_its_query() {
        for (url, shown) in [
            ("https://a.example/x?phone=%2B1&q=a%20b", "https://a.example/x?phone=%2B1&q=a%20b"),
            ("https://a.example/x?phone=%2B1&key=s3,cr)et#top", "https://a.example/x?phone=%2B1&key=[secret]#top"),
            ("https://a.example/?api%5Fkey=a&pin=&otp=1", "https://a.example/?api%5Fkey=[secret]&pin=&otp=[secret]"),
            ("Pay at https://a.example/?token=t today & soon", "Pay at https://a.example/?token=[secret] today & soon"),
            ("Which one? pin=4711", "Which one? pin=4711"),
        ] {
            assert_eq!(HiddenTexts::default().masked(json!(url)), shown);
        }
    }

    #[test]
    fn a_fixed_value_is_hidden_in_every_encoding() {
        let hidden = HiddenTexts::of_config(&json!({
            "method": "POST", "url": "https://crm.example.com/v1?store=north/7&lang=en&mode=English",
            "body": {"tenant": "blue horse/77", "plan": {"tags": ["vip-only", "English"]}, "on": true, "n": 5, "id": 771_188},
            "text": "Dear guest, we are open.", "filters": {"city": "New York"},
        }));
        for echo in [
            "https://crm.example.com/v1?store=north/7&lang=en&mode=English",
            "north/7",
            "blue horse/77",
            "blue%20horse%2F77",
            "blue+horse%2F77",
            "Ymx1ZSBob3JzZS83Nw",
            "vip-only",
            "771188",
        ] {
            assert_eq!(hidden.replaced(&format!("<{echo}>")), "<[secret]>");
        }
        let plain = "POST crm.example.com en English true 5 vip Dear guest, we are open. New York";
        assert_eq!(hidden.replaced(plain), plain);
        let mut shown = hidden.clone();
        shown.remove_all(&json!({"a": ["blue horse/77", 771_188]}));
        assert_eq!(shown.replaced("blue+horse%2F77 771188 vip-only"), "blue+horse%2F77 771188 [secret]");
    }

    #[test]
    fn the_path_of_a_secret_address_is_hidden_however_it_is_quoted() {
        let address = "https://hooks.example.com/services/T0/s3cret-1/b%2Fc-77?team=north-7#top";
        let mut hidden = HiddenTexts::default();
        hidden.add_secrets(&json!(address), true);
        let echoes = [
            address,
            "/services/T0/s3cret-1/b%2Fc-77?team=north-7",
            "/services/T0/s3cret-1/b%2Fc-77",
            "s3cret-1",
            "b%2Fc-77",
            "b/c-77",
            "north-7",
        ];
        for echo in echoes {
            assert_eq!(hidden.replaced(&format!("<{echo}>")), "<[secret]>");
        }
        let plain = "POST hooks.example.com services T0 team top";
        assert_eq!(hidden.replaced(plain), plain);
        hidden.remove_all(&json!(address));
        for echo in echoes {
            assert_eq!(hidden.replaced(echo), echo);
        }
    }

    #[test]
    fn the_path_of_any_address_is_hidden_if_it_may_hold_a_secret() {
        let address = "https://hooks.example.com/services/T0/k7Gw2pQz?mode=English";
        let mut hidden = HiddenTexts::of_config(&json!({"url": address}));
        let told = "Cannot POST /services/T0/k7Gw2pQz";
        assert_eq!(hidden.replaced(told), "Cannot POST [secret]");
        hidden.remove_all(&json!(address));
        assert_eq!(hidden.replaced(told), told);
    }

    #[test]
    fn an_ordinary_path_is_shown_whether_its_address_is_secret_or_not() {
        for path in [
            "/v1/customer-orders/index.php",
            "/{{now}}/orders",
            "/chat.postMessage",
            "/customers/{{caller_phone_number}}/orders",
            "/customers/+15550100001/orders",
            "/customers/%2B15550100001/orders",
            "/calls/2026-03-14T09:26:53.589Z/notes",
            "/admin/api/2024-10/orders.json",
            "/2010-04-01/accounts",
            "/v1beta1/documents:runQuery",
            "/v1.2.3/orders",
        ] {
            let address = json!(format!("https://api.example.com{path}"));
            let mut secret = HiddenTexts::default();
            secret.add_secrets(&address, true);
            let marked = HiddenTexts::of_config(&json!({"url": address}));
            let header = HiddenTexts::of_config(&json!({"headers": {"Referer": address}}));
            for hidden in [secret, marked, header] {
                assert_eq!(hidden.replaced(path), path);
            }
        }
        for path in ["/oauth2/token", "/door/4711/open", "/hunter2"] {
            let address = json!(format!("https://api.example.com{path}"));
            assert_eq!(HiddenTexts::of_config(&json!({"url": address})).replaced(path), path);
            let mut secret = HiddenTexts::default();
            secret.add_secrets(&address, true);
            assert_eq!(secret.replaced(path), "[secret]");
        }
        for token in ["8c1d2f0e-5b7a-4c36", "v1k7Gw2p", "2024-k7Gw2p", "20241001123456", "+1k7Gw2pQz"] {
            let path = format!("/hooks/{token}");
            let hidden = HiddenTexts::of_config(&json!({"url": format!("https://api.example.com{path}")}));
            assert_eq!(hidden.replaced(&path), "[secret]");
        }
    }

    #[test]
    fn the_query_of_a_secret_address_does_not_hide_its_ordinary_path() {
        let mut hidden = HiddenTexts::default();
        hidden.add_secrets(&json!("https://hooks.example.com/customer-orders/index.php?key=k-7"), true);
        hidden.add_secrets(&json!({"headers": {"Referer": "https://app.example.com/search?tab=a-1"}}), false);
        let address = HiddenTexts::of_config(&json!({"url": "https://app.example.com/search?page=2"}));
        assert_eq!(address.replaced("/search?page=2"), "/search?page=2");
        let plain = "POST /customer-orders/index.php and /search: customer-orders, index.php";
        assert_eq!(hidden.replaced(plain), plain);
        let quoted = "</customer-orders/index.php?key=k-7> </search?tab=a-1>";
        assert_eq!(hidden.replaced(quoted), "<[secret]> <[secret]>");
    }

    #[test]
    fn too_many_texts_hide_everything_even_after_some_are_removed() {
        let values: Vec<String> = (0..600).map(|number| format!("value-{number}")).collect();
        let mut hidden = HiddenTexts::of_config(&json!({"body": values}));
        for removed in [&values[..0], &values[..300], &values[..]] {
            hidden.remove_all(&json!(removed));
            assert_eq!(hidden.replaced("value-599"), HIDDEN);
            assert_eq!(hidden.replaced_in(json!(["value-599"])), json!([HIDDEN]));
        }
    }

    #[test]
    fn a_hidden_value_of_a_configuration_is_found_elsewhere() {
        let hidden = HiddenTexts::of_config(&json!({
            "url": "https://a.example/{{now}}?sig=in%20the%20url&q=visible", "headers": {"x-line": "Bearer line \"one\""},
            "body": {"login": {"pin": 471_147, "user": "visible"}, "note": "visible"},
        }));
        let echo = json!({
            "in%20the%20url": "in the url", "raw": r#"{"h": "line \"one\""}"#, "n": 471_147, "m": 47, "all": ["visible", "x471147"],
        });
        let shown = json!({
            "[secret]": "[secret]", "raw": r#"{"h": "[secret]"}"#, "n": "[secret]", "m": 47, "all": ["visible", "x[secret]"],
        });
        assert_eq!(hidden.replaced_in(echo), shown);
    }
}
