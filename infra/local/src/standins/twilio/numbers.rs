//! The `IncomingPhoneNumbers` of an account.
//!
//! - `GET …/IncomingPhoneNumbers.json?PhoneNumber=&PageSize=&Page=`: `PhoneNumber` is a part of a number, `*` matches
//!   any digit; without it all numbers are listed, oldest first.
//! - `GET`, `POST …/IncomingPhoneNumbers/{sid}.json`: shows a number, or changes the addresses for its calls and
//!   messages. Unknown form fields are ignored. Unlike Twilio, the stand-in accepts addresses of this machine.

use std::{collections::BTreeMap, sync::Mutex};

use jiff::{fmt::rfc2822::DateTimePrinter, tz::TimeZone};
use serde_json::{Value, json};

use super::{Account, Problem};
use crate::standins::{
    clock,
    exchange::{Answer, Request},
    locked,
};

const USUAL_PAGE: usize = 50;
const LARGEST_PAGE: usize = 1000;
/// In characters.
const LONGEST_NAME: usize = 64;

/// The settable fields of a number, each with its name in a form.
const URLS: [(&str, &str); 5] = [
    ("SmsFallbackUrl", "sms_fallback_url"),
    ("SmsUrl", "sms_url"),
    ("StatusCallback", "status_callback"),
    ("VoiceFallbackUrl", "voice_fallback_url"),
    ("VoiceUrl", "voice_url"),
];
const METHODS: [(&str, &str); 5] = [
    ("SmsFallbackMethod", "sms_fallback_method"),
    ("SmsMethod", "sms_method"),
    ("StatusCallbackMethod", "status_callback_method"),
    ("VoiceFallbackMethod", "voice_fallback_method"),
    ("VoiceMethod", "voice_method"),
];

/// The settings of each number, by number and field of its resource.
#[derive(Debug, Default)]
pub(super) struct Numbers(Mutex<BTreeMap<String, BTreeMap<&'static str, String>>>);

impl Numbers {
    pub(super) fn set(&self, number: &str, field: &'static str, value: &str) {
        locked(&self.0).entry(number.to_owned()).or_default().insert(field, value.to_owned());
    }

    pub(super) fn voice(&self, number: &str) -> Option<(String, String)> {
        let numbers = locked(&self.0);
        let set = numbers.get(number)?;
        let url = set.get("voice_url").filter(|url| !url.is_empty())?;
        Some((url.clone(), set.get("voice_method").cloned().unwrap_or_else(|| "POST".to_owned())))
    }

    pub(super) fn page(&self, account: &Account, request: &Request) -> Result<Answer, Problem> {
        let wanted = request.parameter("PhoneNumber").unwrap_or_default();
        let size = whole(request, "PageSize", USUAL_PAGE)?.clamp(1, LARGEST_PAGE);
        let number = whole(request, "Page", 0)?;
        let start = number.saturating_mul(size);
        let all: Vec<&String> = account.numbers.iter().filter(|number| matches(number, wanted)).collect();
        let shown: Vec<Value> =
            all.iter().skip(start).take(size).map(|number| self.resource(account, number)).collect();

        let base = format!("/2010-04-01/Accounts/{}/IncomingPhoneNumbers.json", account.sid);
        let uri = |page: usize| {
            let mut query = url::form_urlencoded::Serializer::new(String::new());
            if !wanted.is_empty() {
                query.append_pair("PhoneNumber", wanted);
            }
            query.append_pair("PageSize", &size.to_string()).append_pair("Page", &page.to_string());
            format!("{base}?{}", query.finish())
        };
        let more = all.len() > start.saturating_add(size);
        Ok(Answer::json(
            200,
            &json!({
                "end": start + shown.len().saturating_sub(1),
                "first_page_uri": uri(0),
                "incoming_phone_numbers": shown,
                "next_page_uri": more.then(|| uri(number + 1)),
                "page": number,
                "page_size": size,
                "previous_page_uri": number.checked_sub(1).map(uri),
                "start": start,
                "uri": uri(number),
            }),
        ))
    }

    pub(super) fn one(&self, account: &Account, sid: &str, request: &Request) -> Result<Answer, Problem> {
        let number = with_sid(account, sid).ok_or_else(|| Problem::not_found(&request.path))?;
        Ok(Answer::json(200, &self.resource(account, number)))
    }

    /// Applies a form's fields, or none if one is invalid.
    pub(super) fn change(&self, account: &Account, sid: &str, request: &Request) -> Result<Answer, Problem> {
        let number = with_sid(account, sid).ok_or_else(|| Problem::not_found(&request.path))?;
        // A body in another format is not read, so it sets nothing.
        let form = if request.is_form() { request.form() } else { Vec::new() };
        let mut set = Vec::new();
        for (name, value) in &form {
            let field = |fields: &[(&str, &'static str)]| {
                fields.iter().find(|(parameter, _)| parameter == name).map(|(_, field)| *field)
            };
            if let Some(field) = field(&URLS) {
                if !is_url(value) {
                    return Err(Problem::new(21402, format!("{name} is not valid: {value}")));
                }
                set.push((field, value));
            } else if let Some(field) = field(&METHODS) {
                if !["GET", "POST"].contains(&value.as_str()) {
                    return Err(Problem::new(21403, format!("{name} is not valid: {value}")));
                }
                set.push((field, value));
            } else if name == "FriendlyName" {
                if value.chars().count() > LONGEST_NAME {
                    return Err(Problem::new(20001, "FriendlyName must be at most 64 characters"));
                }
                set.push(("friendly_name", value));
            }
        }
        for (field, value) in set {
            self.set(number, field, value);
        }
        Ok(Answer::json(200, &self.resource(account, number)))
    }

    fn resource(&self, account: &Account, number: &str) -> Value {
        let mut resource = resource(account, number);
        for (field, value) in locked(&self.0).get(number).into_iter().flatten() {
            if let Some(field) = resource.get_mut(*field) {
                *field = json!(value);
            }
        }
        resource
    }
}

/// Whether Twilio could send requests to the address; an empty one removes the current address.
fn is_url(text: &str) -> bool {
    text.is_empty()
        || url::Url::parse(text).is_ok_and(|url| {
            let host = url.host_str().unwrap_or_default();
            ["http", "https"].contains(&url.scheme()) && (host.contains('.') || host.ends_with("localhost"))
        })
}

fn with_sid<'a>(account: &'a Account, sid: &str) -> Option<&'a String> {
    account.numbers.iter().find(|number| sid_of(number) == sid)
}

/// `PN` and 32 digits.
fn sid_of(number: &str) -> String {
    format!("PN{:0>32}", number.trim_start_matches('+'))
}

fn whole(request: &Request, name: &str, usual: usize) -> Result<usize, Problem> {
    match request.parameter(name) {
        None | Some("") => Ok(usual),
        Some(text) => text.parse().map_err(|_not_a_number| Problem::new(20001, format!("{name} must be a number"))),
    }
}

/// Whether the number contains `part`; `*` matches any digit.
fn matches(number: &str, part: &str) -> bool {
    let same = |(have, want): (u8, u8)| have == want || (want == b'*' && have.is_ascii_digit());
    part.is_empty()
        || number.as_bytes().windows(part.len()).any(|window| window.iter().copied().zip(part.bytes()).all(same))
}

fn resource(account: &Account, number: &str) -> Value {
    let now = DateTimePrinter::new().zoned_to_string(&clock::now().to_zoned(TimeZone::UTC)).unwrap_or_default();
    let sid = sid_of(number);
    let uri = format!("/2010-04-01/Accounts/{}/IncomingPhoneNumbers/{sid}", account.sid);
    json!({
        "account_sid": account.sid,
        "address_requirements": "none",
        "address_sid": null,
        "api_version": "2010-04-01",
        "beta": false,
        "bundle_sid": null,
        "capabilities": { "voice": true, "sms": true, "mms": true, "fax": false },
        "date_created": now,
        "date_updated": now,
        "emergency_address_sid": null,
        "emergency_address_status": "unregistered",
        "emergency_status": "Active",
        "friendly_name": number,
        "identity_sid": null,
        "origin": "twilio",
        "phone_number": number,
        "sid": sid,
        "sms_application_sid": "",
        "sms_fallback_method": "POST",
        "sms_fallback_url": "",
        "sms_method": "POST",
        "sms_url": "",
        "status": "in-use",
        "status_callback": "",
        "status_callback_method": "POST",
        "subresource_uris": {
            "assigned_add_ons": format!("{uri}/AssignedAddOns.json"),
        },
        "trunk_sid": null,
        "uri": format!("{uri}.json"),
        "voice_application_sid": null,
        "voice_caller_id_lookup": false,
        "voice_fallback_method": "POST",
        "voice_fallback_url": null,
        "voice_method": "POST",
        "voice_receive_mode": "voice",
        "voice_url": null,
    })
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_part_with_stars_matches_anywhere() {
        for part in ["", "+15005550006", "500555", "+1*0055500*6"] {
            assert!(matches("+15005550006", part), "{part}");
        }
        for part in ["+15005550007", "+150055500066", "*15005550006", "+*15005550006"] {
            assert!(!matches("+15005550006", part), "{part}");
        }
    }
}
