//! Twilio's request about an incoming call: who sends it, and what it says.

use lambda_http::{Request, RequestExt};
use shared::{
    Error, Result,
    clients::twilio,
    http,
    models::{E164, PhoneNumber},
};
use url::form_urlencoded;

use crate::{Deps, signature};

/// What the form tells that we need.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) call_sid: String,
    /// A number, or nothing of the kind (`anonymous`, `client:…`, `sip:…`).
    pub(crate) caller: String,
    pub(crate) called: E164,
}

impl Incoming {
    /// # Errors
    /// [`Error::Invalid`] for a form that is not that of an incoming call.
    pub(crate) fn read(request: &Request) -> Result<Self> {
        let form: Vec<_> = form_urlencoded::parse(http::body(request)).collect();
        let field = |name: &str| {
            let found = form.iter().find(|(key, _)| key == name).map(|(_, value)| value.trim().to_owned());
            found.filter(|value| !value.is_empty())
        };
        let call_sid = field("CallSid").ok_or_else(|| Error::invalid("CallSid", "is required"))?;
        if call_sid.len() > 64 {
            return Err(Error::invalid("CallSid", "has more than 64 characters"));
        }
        let caller = field("From").ok_or_else(|| Error::invalid("From", "is required"))?;
        let called = field("To").ok_or_else(|| Error::invalid("To", "is required"))?;
        let called = called.parse().map_err(|error| Error::invalid("To", format!("{error}")))?;
        Ok(Self { call_sid, caller: caller.chars().take(200).collect(), called })
    }
}

/// Lets in what was signed with the number's own auth token.
///
/// # Errors
/// [`Error::Forbidden`] for anything else.
pub(crate) async fn verify(deps: &Deps, number: &PhoneNumber, request: &Request) -> Result<()> {
    let refused = || Error::Forbidden("the request is not signed by Twilio for this number");
    let signature = request.headers().get("x-twilio-signature").and_then(|value| value.to_str().ok());
    let signature = signature.ok_or_else(refused)?;
    let account: twilio::Account = deps.secrets.get(&number.credentials_secret).await?;
    let url = public_url(&deps.public_url, request);
    if signature::is_valid(account.auth_token(), &url, http::body(request), signature) {
        Ok(())
    } else {
        Err(refused())
    }
}

/// The address as Twilio called it: API Gateway's own host and stage are not part of what was signed.
fn public_url(base: &str, request: &Request) -> String {
    let query = request.uri().query().filter(|query| !query.is_empty());
    let path = request.raw_http_path();
    let path = if path.is_empty() { request.uri().path() } else { path };
    match query {
        Some(query) => format!("{base}{path}?{query}"),
        None => format!("{base}{path}"),
    }
}
