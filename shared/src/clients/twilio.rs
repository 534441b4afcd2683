//! Twilio: sending a message.
//!
//! `POST /2010-04-01/Accounts/{sid}/Messages.json`, form-encoded, Basic auth. There is no idempotency key: a request whose
//! answer is lost must not be sent again. 429 (code 20429) is documented as never processed.

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::{
    Error, Failure, Service,
    http_client::{Retry, send_json},
};
use crate::{Deadline, models::E164};

/// Longest text of one message, in characters.
pub const LONGEST_TEXT: usize = 1_600;

#[derive(Clone)]
pub struct Twilio {
    http: reqwest::Client,
    base_url: String,
}

/// The Twilio account behind a phone number, as it stands in its secret.
#[derive(Clone, Deserialize)]
pub struct Account {
    account_sid: String,
    auth_token: SecretString,
    #[serde(default)]
    api_key_sid: Option<String>,
    #[serde(default)]
    api_key_secret: Option<SecretString>,
}

/// A message Twilio has taken; it is not yet delivered.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Message {
    pub sid: String,
    /// `queued`, `accepted`, `sent`, …
    pub status: String,
}

impl Twilio {
    pub fn new(http: reqwest::Client, base_url: impl Into<String>) -> Self {
        Self { http, base_url: base_url.into() }
    }

    /// Sends `text` from one number to another.
    ///
    /// # Errors
    /// [`Error::effect_possible`] tells whether the message may have gone out all the same; [`why`] reads Twilio's code.
    pub async fn send_message(
        &self,
        account: &Account,
        from: &E164,
        to: &E164,
        text: &str,
        deadline: Deadline,
    ) -> Result<Message, Error> {
        let (user, password) = match (&account.api_key_sid, &account.api_key_secret) {
            (Some(key), Some(secret)) => (key, secret),
            _ => (&account.account_sid, &account.auth_token),
        };
        let url = format!("{}/2010-04-01/Accounts/{}/Messages.json", self.base_url, account.account_sid);
        let request = self
            .http
            .post(url)
            .basic_auth(user, Some(password.expose_secret()))
            .header("accept", "application/json")
            .form(&[("To", to.as_str()), ("From", from.as_str()), ("Body", text)]);
        send_json(Service::Twilio, request, Retry::NeverProcessed, deadline).await
    }
}

/// What a refusal of Twilio's means, as the end of a sentence for the model.
pub fn why(error: &Error) -> &'static str {
    let Failure::Rejected { status, excerpt } = &error.failure else {
        return match error.failure {
            Failure::RateLimited { .. } => "too many messages are being sent just now",
            Failure::Unreachable => "the SMS service cannot be reached",
            _ => "the SMS service did not confirm it",
        };
    };
    let code = excerpt.split(':').next().unwrap_or_default();
    match code {
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
