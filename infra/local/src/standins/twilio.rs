//! Stand-in for Twilio's Messages, Calls and `IncomingPhoneNumbers` resources (API of 2010-04-01).
//!
//! Knows only the accounts and numbers of its options. Records sent messages, so that a test can count them:
//! `GET /messages`, `DELETE /messages`, or [`Standin::messages`].
//!
//! `POST /simulate/incoming-call` with `{from, to, url, call_sid}` calls a number of an account; `url` defaults to
//! the number's voice URL, `call_sid` to a new one. The URL gets the form, signed with the account's auth token; the
//! answer is
//! `{call_sid, request: {url, headers, body} | null, response: {status, content_type, body} | null, failure: text | null}`.
//! Tests build an [`IncomingCall`].

mod incoming;
mod lines;
mod numbers;

pub use incoming::{Answered, IncomingCall, SignedForm, signature};
pub use lines::{Heard, Line, Rings};

use std::{collections::BTreeSet, io, net::SocketAddr, sync::Mutex};

use jiff::{fmt::rfc2822::DateTimePrinter, tz::TimeZone};
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use self::{lines::Lines, numbers::Numbers};
use super::{
    Standin, client, clock,
    exchange::{Answer, Request},
    locked,
    server::{self, Service},
};

/// Longest text of a message, in characters.
const LONGEST_BODY: usize = 1600;
/// Twilio's default keywords, as a whole message in any case of letters (<https://help.twilio.com/articles/223134027>).
const OPT_OUT: [&str; 8] = ["STOP", "STOPALL", "UNSUBSCRIBE", "CANCEL", "END", "QUIT", "REVOKE", "OPTOUT"];
const OPT_IN: [&str; 3] = ["START", "YES", "UNSTOP"];

#[derive(Clone, Debug, Default)]
pub struct Options {
    pub accounts: Vec<Account>,
    /// Recipients who replied STOP: sending to them fails with 21610.
    pub unsubscribed: Vec<String>,
}

impl Options {
    #[must_use]
    pub fn with_account(mut self, sid: &str, auth_token: &str, numbers: &[&str]) -> Self {
        self.accounts.push(Account {
            sid: sid.to_owned(),
            auth_token: auth_token.to_owned(),
            api_keys: Vec::new(),
            numbers: numbers.iter().map(|&number| number.to_owned()).collect(),
        });
        self
    }

    #[must_use]
    pub fn with_unsubscribed(mut self, number: &str) -> Self {
        self.unsubscribed.push(number.to_owned());
        self
    }
}

#[derive(Clone, Debug)]
pub struct Account {
    /// `AC` and 32 hexadecimal digits.
    pub sid: String,
    pub auth_token: String,
    /// Pairs of key sid (`SK…`) and secret.
    pub api_keys: Vec<(String, String)>,
    /// The account's sender numbers, E.164.
    pub numbers: Vec<String>,
}

impl Account {
    fn accepts_credentials(&self, user: &str, password: &str) -> bool {
        (self.sid == user && self.auth_token == password)
            || self.api_keys.iter().any(|(sid, secret)| sid == user && secret == password)
    }
}

/// A message that was accepted for sending.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Message {
    /// `SM` and 32 hexadecimal digits.
    pub sid: String,
    pub account_sid: String,
    pub to: String,
    pub from: String,
    pub body: String,
    /// Where Twilio posts its statuses.
    pub status_callback: Option<String>,
    /// Time of sending, ISO 8601.
    pub at: String,
}

#[derive(Debug)]
pub struct Twilio {
    options: Options,
    client: reqwest::Client,
    sent: Mutex<Vec<Message>>,
    /// The number that a person texted, and the person's, who gets no more messages from it.
    opted_out: Mutex<BTreeSet<(String, String)>>,
    numbers: Numbers,
    lines: Lines,
}

pub fn start(address: SocketAddr, options: Options) -> io::Result<Standin<Twilio>> {
    server::serve(
        address,
        Twilio {
            options,
            client: client::client()?,
            sent: Mutex::default(),
            opted_out: Mutex::default(),
            numbers: Numbers::default(),
            lines: Lines::default(),
        },
    )
}

impl Standin<Twilio> {
    /// The sent messages, in order.
    pub fn messages(&self) -> Vec<Message> {
        locked(&self.service.sent).clone()
    }

    /// The request with which Twilio tells a status of a message, such as `delivered`. `None` for a message without a callback.
    pub fn status_of(&self, sid: &str, status: &str) -> Option<SignedForm> {
        let message = self.messages().into_iter().find(|message| message.sid == sid)?;
        let account = self.service.options.accounts.iter().find(|account| account.sid == message.account_sid)?;
        let mut form = vec![
            ("AccountSid", message.account_sid.as_str()),
            ("ApiVersion", "2010-04-01"),
            ("From", message.from.as_str()),
            ("MessageSid", message.sid.as_str()),
            ("MessageStatus", status),
            ("SmsSid", message.sid.as_str()),
            ("SmsStatus", status),
            ("To", message.to.as_str()),
        ];
        if matches!(status, "undelivered" | "failed") {
            form.push(("ErrorCode", "30003"));
        }
        let form: Vec<_> = form.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Some(SignedForm::new(message.status_callback.as_deref()?, &form, &account.auth_token))
    }

    /// A person texts a number: a default keyword ends the messages from that number, or allows them again.
    pub fn take_message(&self, number: &str, person: &str, body: &str) {
        let is_one_of = |words: &[&str]| words.iter().any(|word| body.trim().eq_ignore_ascii_case(word));
        let pair = (number.to_owned(), person.to_owned());
        let mut opted_out = locked(&self.service.opted_out);
        if is_one_of(&OPT_OUT) {
            opted_out.insert(pair);
        } else if is_one_of(&OPT_IN) {
            opted_out.remove(&pair);
        }
    }

    pub fn clear_messages(&self) {
        locked(&self.service.sent).clear();
    }

    /// Sets a number's voice URL (number in E.164; method POST).
    pub fn set_voice_url(&self, number: &str, url: &str) {
        self.service.numbers.set(number, "voice_url", url);
        self.service.numbers.set(number, "voice_method", "POST");
    }

    /// The caller's line is live: the API may move it.
    pub fn begin_line(&self, call: &IncomingCall) {
        let account = self.service.options.accounts.iter().find(|account| account.sid == call.account_sid);
        self.service.lines.begin(call, account.map(|account| account.auth_token.as_str()).unwrap_or_default());
    }

    pub fn end_line(&self, call_sid: &str) {
        self.service.lines.end(call_sid);
    }

    pub fn line(&self, call_sid: &str) -> Option<Line> {
        self.service.lines.get(call_sid)
    }

    pub fn voice_url(&self, number: &str) -> Option<String> {
        self.service.numbers.voice(number).map(|(url, _method)| url)
    }
}

impl Service for Twilio {
    async fn answer(&self, request: &Request) -> Answer {
        match request.segments().as_slice() {
            ["2010-04-01", "Accounts", account_sid, "Messages.json"] => {
                let sent = self.account(account_sid, request).and_then(|account| {
                    if request.method == "POST" { self.send(account, request) } else { Err(Problem::method()) }
                });
                sent.unwrap_or_else(|problem| problem.json())
            }
            ["2010-04-01", "Accounts", account_sid, "Calls", file] => {
                let Some(sid) = file.strip_suffix(".json") else {
                    return Problem::not_found(&request.path).for_path(&request.path);
                };
                let changed = self.account(account_sid, request).and_then(|account| {
                    if request.method == "POST" {
                        self.lines.change(account, sid, request)
                    } else {
                        Err(Problem::method())
                    }
                });
                changed.unwrap_or_else(|problem| problem.json())
            }
            ["2010-04-01", "Accounts", account_sid, "IncomingPhoneNumbers.json"] => {
                let found = self.account(account_sid, request).and_then(|account| {
                    if request.method == "GET" { self.numbers.page(account, request) } else { Err(Problem::method()) }
                });
                found.unwrap_or_else(|problem| problem.json())
            }
            ["2010-04-01", "Accounts", account_sid, "IncomingPhoneNumbers", file] => {
                // Without the suffix Twilio answers XML, which this project never requests.
                let Some(sid) = file.strip_suffix(".json") else {
                    return Problem::not_found(&request.path).for_path(&request.path);
                };
                let found = self.account(account_sid, request).and_then(|account| match request.method.as_str() {
                    "GET" => self.numbers.one(account, sid, request),
                    "POST" => self.numbers.change(account, sid, request),
                    _ => Err(Problem::method()),
                });
                found.unwrap_or_else(|problem| problem.json())
            }
            _ => Problem::not_found(&request.path).for_path(&request.path),
        }
    }

    fn failure(&self, status: u16) -> Answer {
        let (code, message) = match status {
            401 => (20003, "Authenticate"),
            403 => (20403, "Forbidden"),
            404 => (20404, "The requested resource was not found"),
            429 => (20429, "Too Many Requests"),
            503 => (20503, "Service Unavailable"),
            400..500 => (20001, "Invalid parameter"),
            _ => (20500, "Internal Server Error"),
        };
        Problem { status, code, message: message.to_owned() }.json()
    }

    async fn control(&self, request: &Request) -> Option<Answer> {
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/messages") => Some(Answer::json(200, &json!(*locked(&self.sent)))),
            ("POST", "/simulate/incoming-call") => Some(self.simulated_call(request).await),
            ("DELETE", "/messages") => {
                locked(&self.sent).clear();
                Some(Answer::empty(204))
            }
            _ => None,
        }
    }
}

impl Twilio {
    fn account(&self, sid: &str, request: &Request) -> Result<&Account, Problem> {
        let (user, password) = request.basic().ok_or_else(Problem::unauthenticated)?;
        let known = self
            .options
            .accounts
            .iter()
            .find(|account| account.sid == sid && account.accepts_credentials(&user, &password));
        known.ok_or_else(Problem::unauthenticated)
    }

    fn send(&self, account: &Account, request: &Request) -> Result<Answer, Problem> {
        // A body in another format is not read, so all its fields are missing.
        let form = if request.is_form() { request.form() } else { Vec::new() };
        let field = |name: &str| {
            let value = form.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
            value.filter(|value| !value.is_empty())
        };
        let to = field("To").ok_or_else(|| Problem::new(21604, "A 'To' phone number is required."))?;
        let from = field("From").ok_or_else(|| Problem::new(21603, "A 'From' phone number is required."))?;
        let body = field("Body").ok_or_else(|| Problem::new(21602, "Message body is required."))?;
        if body.chars().count() > LONGEST_BODY {
            return Err(Problem::new(21617, "The concatenated message body exceeds the 1600 character limit."));
        }
        if !is_e164(&to) {
            return Err(Problem::new(21211, format!("The 'To' number {to} is not a valid phone number.")));
        }
        if !is_e164(&from) {
            return Err(Problem::new(21212, format!("The 'From' number {from} is not a valid phone number.")));
        }
        if !account.numbers.contains(&from) {
            return Err(Problem::new(
                21606,
                format!(
                    "The 'From' phone number provided ({from}) is not a valid message-capable number of this account."
                ),
            ));
        }
        if field("StatusCallback").is_some_and(|url| !url.starts_with("http://") && !url.starts_with("https://")) {
            return Err(Problem::new(21609, "Invalid 'StatusCallback' URL"));
        }
        if to == from {
            return Err(Problem::new(21266, "'To' and 'From' number cannot be the same."));
        }
        let opted_out = locked(&self.opted_out).contains(&(from.clone(), to.clone()));
        if opted_out || self.options.unsubscribed.contains(&to) {
            return Err(Problem::new(21610, "Attempt to send to unsubscribed recipient."));
        }
        let message = Message {
            sid: format!("SM{}", Uuid::new_v4().simple()),
            account_sid: account.sid.clone(),
            to,
            from,
            body,
            status_callback: field("StatusCallback"),
            at: clock::iso(clock::now()),
        };
        let answer = Answer::json(201, &resource(&message));
        locked(&self.sent).push(message);
        Ok(answer)
    }
}

/// The Message resource: every value is a string or null, except `error_code`.
fn resource(message: &Message) -> Value {
    let now = DateTimePrinter::new().zoned_to_string(&clock::now().to_zoned(TimeZone::UTC)).unwrap_or_default();
    let uri = format!("/2010-04-01/Accounts/{}/Messages/{}", message.account_sid, message.sid);
    json!({
        "account_sid": message.account_sid,
        "api_version": "2010-04-01",
        "body": message.body,
        "date_created": now,
        "date_sent": null,
        "date_updated": now,
        "direction": "outbound-api",
        "error_code": null,
        "error_message": null,
        "from": message.from,
        "messaging_service_sid": null,
        "num_media": "0",
        "num_segments": segments(&message.body).to_string(),
        "price": null,
        "price_unit": null,
        "sid": message.sid,
        "status": "queued",
        "subresource_uris": { "media": format!("{uri}/Media.json") },
        "to": message.to,
        "uri": format!("{uri}.json"),
    })
}

/// The number of parts of a text: one part holds 160 characters of the GSM alphabet, several hold 153 each; other
/// texts count 70 and 67 UTF-16 units.
fn segments(body: &str) -> usize {
    const EXTENDED: &str = "^{}\\[~]|€";
    const BASIC: &str = "@£$¥èéùìòÇØøÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./:;<=>?¡ÄÖÑÜ§¿äöñüà\n\r";
    let gsm = body.chars().try_fold(0, |length, character| match character {
        _ if character.is_ascii_alphanumeric() || BASIC.contains(character) => Some(length + 1),
        _ if EXTENDED.contains(character) => Some(length + 2),
        _ => None,
    });
    let (length, alone, joined) =
        gsm.map_or_else(|| (body.encode_utf16().count(), 70, 67), |length| (length, 160, 153));
    if length <= alone { 1 } else { length.div_ceil(joined) }
}

/// `+`, then 7 to 15 digits without a leading 0.
fn is_e164(number: &str) -> bool {
    number.strip_prefix('+').is_some_and(|digits| {
        (7..=15).contains(&digits.len())
            && !digits.starts_with('0')
            && digits.bytes().all(|digit| digit.is_ascii_digit())
    })
}

struct Problem {
    status: u16,
    code: u32,
    message: String,
}

impl Problem {
    fn new(code: u32, message: impl Into<String>) -> Self {
        Self { status: 400, code, message: message.into() }
    }

    fn unauthenticated() -> Self {
        Self { status: 401, code: 20003, message: "Authenticate".to_owned() }
    }

    fn method() -> Self {
        Self { status: 405, code: 20004, message: "Method not allowed".to_owned() }
    }

    fn not_found(path: &str) -> Self {
        Self { status: 404, code: 20404, message: format!("The requested resource {path} was not found") }
    }

    fn more_info(&self) -> String {
        format!("https://www.twilio.com/docs/errors/{}", self.code)
    }

    fn json(&self) -> Answer {
        let body = json!({
            "code": self.code,
            "message": self.message,
            "more_info": self.more_info(),
            "status": self.status,
        });
        Answer::json(self.status, &body)
    }

    /// JSON if the path asks for it, otherwise the API's default, XML.
    fn for_path(&self, path: &str) -> Answer {
        let json_asked = std::path::Path::new(path).extension().is_some_and(|extension| extension == "json");
        if json_asked {
            return self.json();
        }
        let xml = format!(
            "<?xml version='1.0' encoding='UTF-8'?>\n<TwilioResponse><RestException><Code>{}</Code><Message>{}</Message>\
             <MoreInfo>{}</MoreInfo><Status>{}</Status></RestException></TwilioResponse>",
            self.code,
            self.message.replace('&', "&amp;").replace('<', "&lt;"),
            self.more_info(),
            self.status
        );
        Answer::text(self.status, "application/xml", xml)
    }
}

#[cfg(test)]
mod tests {
    use super::{is_e164, segments};

    #[test]
    fn a_text_is_split_by_its_alphabet() {
        assert_eq!(segments(&"a".repeat(160)), 1);
        assert_eq!(segments(&"a".repeat(161)), 2);
        assert_eq!(segments(&"€".repeat(80)), 1);
        assert_eq!(segments(&"€".repeat(81)), 2);
        assert_eq!(segments(&"日".repeat(70)), 1);
        assert_eq!(segments(&"日".repeat(71)), 2);
    }

    #[test]
    fn e164_has_a_plus_and_no_leading_zero() {
        assert!(is_e164("+15550100001"));
        for wrong in ["15550100001", "+05550100001", "+1555", "+1555010000112345", "+1555010a001", ""] {
            assert!(!is_e164(wrong), "{wrong}");
        }
    }
}
