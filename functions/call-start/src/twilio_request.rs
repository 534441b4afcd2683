//! Twilio's request about an incoming call: its authentication and its form.

use lambda_http::Request;
use shared::{
    Error, Result,
    clients::twilio,
    http,
    models::{E164, PhoneNumber},
    webhooks::twilio_signature::{self, LONGEST_SID},
};
use url::form_urlencoded;

use crate::Deps;

/// Parameters that say whose call it is. Each field must appear once: of two, VAPI might read the other one.
const IDENTIFYING: [&str; 5] = ["CallSid", "AccountSid", "From", "To", "Called"];

/// Twilio's own word for a caller who is not known.
const ANONYMOUS: &str = "anonymous";

/// The required fields of the form.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) call_sid: String,
    account_sid: Option<String>,
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
        for name in IDENTIFYING {
            if form.iter().filter(|(key, _)| is_named(key, name)).count() > 1 {
                return Err(Error::invalid(name, "appears more than once"));
            }
        }
        let call_sid = field("CallSid").ok_or_else(|| Error::invalid("CallSid", "is required"))?;
        if call_sid.len() > LONGEST_SID {
            return Err(Error::invalid("CallSid", "has more than 34 characters"));
        }
        // Who calls is not told in every network.
        let untold = || form.iter().any(|(key, _)| key == "From").then(|| ANONYMOUS.to_owned());
        let caller = field("From").or_else(untold).ok_or_else(|| Error::invalid("From", "is required"))?;
        let called = field("To").ok_or_else(|| Error::invalid("To", "is required"))?;
        let called: E164 = called.parse().map_err(|error| Error::invalid("To", format!("{error}")))?;
        // Twilio sends the number under both names.
        if field("Called").is_some_and(|other| other.parse().ok().as_ref() != Some(&called)) {
            return Err(Error::invalid("Called", "is not the number in To"));
        }
        let account_sid = field("AccountSid");
        Ok(Self { call_sid, account_sid, caller: caller.chars().take(200).collect(), called })
    }
}

/// A field of Twilio's form, if it is not empty.
pub(crate) fn field(request: &Request, name: &str) -> Option<String> {
    let found = form_urlencoded::parse(http::body(request)).find(|(key, _)| key == name);
    found.map(|(_, value)| value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// The form of a call that begins: VAPI refuses a call that does not ring, and knows no fields of a `<Dial>`.
pub(crate) fn as_ringing(request: &Request) -> Vec<u8> {
    let fields = form_urlencoded::parse(http::body(request)).filter(|(key, _)| !key.starts_with("Dial"));
    let fields = fields.map(|(key, value)| if key == "CallStatus" { (key, "ringing".into()) } else { (key, value) });
    form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish().into_bytes()
}

/// Whether a server may read a parameter under this name, `To` as `to` or `To[]`.
fn is_named(key: &str, name: &str) -> bool {
    key.trim().split(['[', '.']).next().is_some_and(|key| key.trim_end().eq_ignore_ascii_case(name))
}

/// The one answer to every unauthorized request.
pub(crate) const fn refused() -> Error {
    Error::Forbidden("the request is not signed by Twilio for this number")
}

/// Accepts a request signed with the number's own auth token, for a call to this number in that account. The signature
/// alone does not prove this: the owner of any number can sign a form with another number, and VAPI chooses the
/// assistant by the number in the form.
///
/// # Errors
/// [`refused`] for anything else.
pub(crate) async fn verify(deps: &Deps, number: &PhoneNumber, incoming: &Incoming, request: &Request) -> Result<()> {
    let account = signed(deps, number, request).await?;
    let meant = incoming.called == number.number && incoming.account_sid.as_deref() == Some(account.account_sid());
    if meant { Ok(()) } else { Err(refused()) }
}

/// The account whose auth token a request was signed with.
///
/// # Errors
/// [`refused`] for any other.
pub(crate) async fn signed(deps: &Deps, number: &PhoneNumber, request: &Request) -> Result<twilio::Account> {
    let signature = signature(request)?;
    let account: twilio::Account = deps.secrets.get(&number.credentials_secret).await?;
    let urls = http::called_addresses(&deps.public_url, request);
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let signed = twilio_signature::is_valid(account.auth_token(), &urls, http::body(request), signature);
    if signed { Ok(account) } else { Err(refused()) }
}

/// # Errors
/// [`refused`] for a request without one.
pub(crate) fn signature(request: &Request) -> Result<&str> {
    let signature = request.headers().get("x-twilio-signature").and_then(|value| value.to_str().ok());
    signature.ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use lambda_http::Body;

    use super::*;

    const FORM: &str = "CallSid=CA1&AccountSid=AC1&From=%2B14155550101&To=%2B15005550006&Called=%2B15005550006";

    fn read(form: String) -> Result<Incoming> {
        Incoming::read(&Request::new(Body::from(form)))
    }

    #[test]
    fn a_field_that_names_the_call_appears_once() {
        let incoming = read(FORM.to_owned()).unwrap();
        assert_eq!((incoming.call_sid.as_str(), incoming.account_sid.as_deref()), ("CA1", Some("AC1")));
        for more in
            ["To=%2B15005550007", "to=x", "To[]=x", "To%5B0%5D=x", "To.x=x", "CallSid=CA2", "Called=x", "+From=x"]
        {
            assert!(matches!(read(format!("{FORM}&{more}")), Err(Error::Invalid(_))), "{more}");
        }
        assert!(read(FORM.replace("Called=%2B15005550006", "Called=%2B15005550007")).is_err());
        assert!(read(format!("{FORM}&ToCity=Porto&ToState=&StirVerstat=x")).is_ok());
    }

    #[test]
    fn a_call_sid_that_took_in_the_next_field_is_refused() {
        let sid = format!("CA{}", "0".repeat(32));
        assert!(read(FORM.replace("CA1", &sid)).is_ok());
        assert!(read(FORM.replace("CA1", &format!("{sid}CallStatusringing"))).is_err());
    }
}
