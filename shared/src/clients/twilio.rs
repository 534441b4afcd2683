//! Twilio: sends text messages, and checks the owner of a number.
//!
//! `POST /2010-04-01/Accounts/{sid}/Messages.json`, form-encoded, Basic auth. There is no idempotency key, so a request with a
//! lost answer must not be repeated. 429 (code 20429) is documented as never processed.
//!
//! `GET /2010-04-01/Accounts/{sid}/IncomingPhoneNumbers.json?PhoneNumber=…` lists matching numbers of the account; the filter
//! also matches parts of numbers, so results are compared with the whole number.
//!
//! `POST /2010-04-01/Accounts/{sid}/Calls/{call}.json` with `Url` and `Method` moves a live call to other TwiML
//! (<https://www.twilio.com/docs/voice/api/call-resource#update-a-call-resource>); 21220 says that it is not live.

use futures_util::join;
use reqwest::{Method, RequestBuilder};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::json;

use super::{
    Error, Failure, UpstreamService,
    http_client::{Retry, segment, send, send_json},
};
use crate::{
    Deadline,
    models::{E164, Fault},
};

/// In characters.
pub const LONGEST_TEXT: usize = 1_600;

#[derive(Clone)]
pub struct Twilio {
    http: reqwest::Client,
    base_url: String,
}

#[derive(Clone, Deserialize)]
pub struct Account {
    account_sid: String,
    auth_token: SecretString,
    api_key_sid: Option<String>,
    api_key_secret: Option<SecretString>,
}

impl Account {
    /// `api_key`: a key's sid (`SK…`) and secret, used to send messages if given.
    pub fn new(account_sid: String, auth_token: SecretString, api_key: Option<(String, SecretString)>) -> Self {
        let (api_key_sid, api_key_secret) = api_key.unzip();
        Self { account_sid, auth_token, api_key_sid, api_key_secret }
    }

    pub fn account_sid(&self) -> &str {
        &self.account_sid
    }

    pub fn auth_token(&self) -> &SecretString {
        &self.auth_token
    }

    pub fn to_secret(&self) -> SecretString {
        let mut secret = json!({"account_sid": self.account_sid, "auth_token": self.auth_token.expose_secret()});
        if let (Some((key, key_secret)), Some(secret)) = (self.api_key(), secret.as_object_mut()) {
            secret.insert("api_key_sid".into(), key.into());
            secret.insert("api_key_secret".into(), key_secret.expose_secret().into());
        }
        SecretString::from(secret.to_string())
    }

    fn api_key(&self) -> Option<(&str, &SecretString)> {
        self.api_key_sid.as_deref().zip(self.api_key_secret.as_ref())
    }

    fn acting_key(&self) -> (&str, &SecretString) {
        self.api_key().unwrap_or((&self.account_sid, &self.auth_token))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberStatus {
    /// Valid credentials, and the number belongs to the account.
    Owner,
    /// Valid credentials, but the number belongs to another account.
    NotOwner,
    NoAccount,
    WrongAuthToken,
    WrongApiKey,
}

/// An accepted message, not yet delivered.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SentMessage {
    pub sid: String,
    /// `queued`, `accepted`, `sent`, …
    pub status: String,
}

impl Twilio {
    pub fn new(http: reqwest::Client, base_url: impl Into<String>) -> Self {
        Self { http, base_url: base_url.into() }
    }

    /// Twilio posts the message's later statuses to `status_callback`.
    ///
    /// # Errors
    /// [`Error::effect_possible`] tells whether the message may have been sent; [`why`] interprets Twilio's code.
    pub async fn send_message(
        &self,
        account: &Account,
        from: &E164,
        to: &E164,
        text: &str,
        status_callback: &str,
        deadline: Deadline,
    ) -> Result<SentMessage, Error> {
        let request = self.request(Method::POST, account, account.acting_key(), "Messages.json");
        let form = [("To", to.as_str()), ("From", from.as_str()), ("Body", text), ("StatusCallback", status_callback)];
        let request = request.form(&form);
        send_json(UpstreamService::Twilio, request, Retry::NeverProcessed, deadline).await
    }

    /// Has a live call go on with the TwiML of an address, which Twilio requests by POST.
    ///
    /// # Errors
    /// [`Error::effect_possible`] tells whether the call may have been moved.
    pub async fn redirect_call(
        &self,
        account: &Account,
        call_sid: &str,
        url: &str,
        deadline: Deadline,
    ) -> Result<(), Error> {
        let path = format!("Calls/{}.json", segment(call_sid));
        let request = self.request(Method::POST, account, account.acting_key(), &path);
        let request = request.form(&[("Url", url), ("Method", "POST")]);
        send(UpstreamService::Twilio, request, Retry::NeverProcessed, deadline).await.map(drop)
    }

    /// Checks the credentials and the owner of a number. The auth token is always checked, because Twilio signs its requests with
    /// it; also the API key, if any.
    ///
    /// # Errors
    /// If Twilio cannot be asked; the account may be fine.
    pub async fn number_status(
        &self,
        account: &Account,
        number: &E164,
        deadline: Deadline,
    ) -> Result<NumberStatus, Error> {
        let by_token = self.numbers(account, (&account.account_sid, &account.auth_token), number, deadline);
        let by_key = async {
            match account.api_key() {
                Some(key) => self.numbers(account, key, number, deadline).await.map(Some),
                None => Ok(None),
            }
        };
        let (by_token, by_key) = join!(by_token, by_key);
        let theirs = match by_token {
            Ok(theirs) => theirs,
            Err(error) => {
                return match error.status() {
                    Some(401) => Ok(NumberStatus::WrongAuthToken),
                    Some(403 | 404) => Ok(NumberStatus::NoAccount),
                    _ => Err(error),
                };
            }
        };
        match by_key {
            // A restricted key may send messages but not list numbers: 403 proves that it exists.
            Err(error) if error.status() == Some(403) => {}
            Err(error) if matches!(error.status(), Some(401 | 404)) => return Ok(NumberStatus::WrongApiKey),
            Err(error) => return Err(error),
            Ok(_) => {}
        }
        Ok(if theirs.iter().any(|theirs| theirs == number.as_str()) {
            NumberStatus::Owner
        } else {
            NumberStatus::NotOwner
        })
    }

    async fn numbers(
        &self,
        account: &Account,
        key: (&str, &SecretString),
        number: &E164,
        deadline: Deadline,
    ) -> Result<Vec<String>, Error> {
        let path = format!("IncomingPhoneNumbers.json?PhoneNumber={}", segment(number.as_str()));
        let request = self.request(Method::GET, account, key, &path);
        let found: Numbers = send_json(UpstreamService::Twilio, request, Retry::Harmless, deadline).await?;
        Ok(found.incoming_phone_numbers.into_iter().map(|number| number.phone_number).collect())
    }

    fn request(
        &self,
        method: Method,
        account: &Account,
        (user, password): (&str, &SecretString),
        path: &str,
    ) -> RequestBuilder {
        let url = format!("{}/2010-04-01/Accounts/{}/{path}", self.base_url, account.account_sid);
        let request = self.http.request(method, url).basic_auth(user, Some(password.expose_secret()));
        request.header("accept", "application/json")
    }
}

#[derive(Deserialize)]
struct Numbers {
    incoming_phone_numbers: Vec<Number>,
}

#[derive(Deserialize)]
struct Number {
    phone_number: String,
}

/// The meaning of Twilio's error, as the end of a sentence for the model.
pub fn why(error: &Error) -> &'static str {
    let Failure::Rejected { status, excerpt } = &error.failure else {
        return match error.failure {
            Failure::RateLimited => "too many messages are being sent just now",
            Failure::Unreachable => "the SMS service cannot be reached",
            _ => "the SMS service did not confirm it",
        };
    };
    match code(excerpt) {
        "21211" => "the number does not exist",
        "21408" => "messages to this country are not allowed",
        "21608" => "the number is not verified for this trial account",
        "21610" => "this person has unsubscribed from messages",
        "21612" => "the number cannot be reached from ours",
        "21614" => "the number is not a mobile number",
        "21606" | "21660" | "21659" => "our own number cannot send messages",
        "21617" => "the text is too long",
        _ if matches!(status, 401 | 403) => "the SMS account's credentials were refused",
        _ => "the SMS service refused it",
    }
}

/// Whose fault a refusal is. Apart from recipient and text, a request holds numbers and ids of the set-up.
pub fn fault(status: u16, excerpt: &str) -> Fault {
    match code(excerpt) {
        "21211" | "21614" | "21617" => Fault::Model,
        "21220" | "21610" => Fault::Caller,
        _ => Fault::of_set_up(status),
    }
}

/// Twilio's code, with which the excerpt of its error begins.
fn code(excerpt: &str) -> &str {
    excerpt.split(':').next().unwrap_or_default()
}
