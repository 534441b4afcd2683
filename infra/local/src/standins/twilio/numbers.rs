//! The `IncomingPhoneNumbers` list of an account: `GET …/IncomingPhoneNumbers.json?PhoneNumber=&PageSize=&Page=`.
//!
//! `PhoneNumber` takes a part of a number, with `*` for any digit; without it all numbers are listed, oldest first.

use jiff::{fmt::rfc2822::DateTimePrinter, tz::TimeZone};
use serde_json::{Value, json};

use super::{Account, Problem};
use crate::standins::{
    clock,
    exchange::{Answer, Request},
};

const USUAL_PAGE: usize = 50;
const LARGEST_PAGE: usize = 1000;

pub(super) fn page(account: &Account, request: &Request) -> Result<Answer, Problem> {
    let wanted = request.parameter("PhoneNumber").unwrap_or_default();
    let size = whole(request, "PageSize", USUAL_PAGE)?.clamp(1, LARGEST_PAGE);
    let number = whole(request, "Page", 0)?;
    let start = number.saturating_mul(size);
    let all: Vec<&String> = account.numbers.iter().filter(|number| matches(number, wanted)).collect();
    let shown: Vec<Value> = all.iter().skip(start).take(size).map(|number| resource(account, number)).collect();

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

fn whole(request: &Request, name: &str, usual: usize) -> Result<usize, Problem> {
    match request.parameter(name) {
        None | Some("") => Ok(usual),
        Some(text) => text.parse().map_err(|_not_a_number| Problem::new(20001, format!("{name} must be a number"))),
    }
}

/// Whether `part` stands anywhere in the number, `*` for any digit.
fn matches(number: &str, part: &str) -> bool {
    let same = |(have, want): (u8, u8)| have == want || (want == b'*' && have.is_ascii_digit());
    part.is_empty()
        || number.as_bytes().windows(part.len()).any(|window| window.iter().copied().zip(part.bytes()).all(same))
}

fn resource(account: &Account, number: &str) -> Value {
    let now = DateTimePrinter::new().zoned_to_string(&clock::now().to_zoned(TimeZone::UTC)).unwrap_or_default();
    let digits = number.trim_start_matches('+');
    let sid = format!("PN{digits:0>32}");
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
