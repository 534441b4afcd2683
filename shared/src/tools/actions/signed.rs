//! Signed requests of `api_request` tools, by the Standard Webhooks specification.
//!
//! The receiver knows a repetition by its `webhook-id`. So within an action of an automation, where the id is that of the
//! action, a request with an unknown outcome is a failure that may be tried again.

use std::collections::BTreeMap;

use reqwest::{
    Method,
    header::{HeaderName, HeaderValue},
};
use secrecy::SecretString;
use serde_json::Value;

use super::{Parameter, parameters::parameter};
use crate::{
    clients::outbound::{Request, RequestBody},
    fields::Fields,
    models::{ExecutionId, Timestamp},
    redaction::SECRET,
    tool::{CallContext, Subject},
    webhooks,
};

pub(super) const FIELD: &str = "signing_secret";
pub(super) const SIGNATURE: &str = "webhook-signature";
const ID: &str = "webhook-id";
const TIMESTAMP: &str = "webhook-timestamp";

pub(super) fn read_secret(
    fields: &mut Fields<'_>,
    method: Option<&Method>,
    headers: &BTreeMap<String, Parameter>,
) -> Option<Parameter> {
    fields.get(FIELD)?;
    let secret = parameter(fields, FIELD)?;
    match &secret {
        Parameter::Fixed { secret: Some(false), .. } => {
            fields.problem("signing_secret.secret", "must be true or left out");
        }
        Parameter::Fixed { value: Value::String(text), .. } => {
            // A masked value stands for the stored one.
            if !text.contains(SECRET) && !webhooks::is_standard_secret(text) {
                fields.problem(FIELD, "must be whsec_ and 24 to 64 random bytes in base64");
            }
        }
        _ => fields.problem(FIELD, "must be a fixed text"),
    }
    if method.is_some_and(|method| matches!(*method, Method::GET | Method::DELETE)) {
        fields.problem(FIELD, "is for POST, PUT and PATCH, which have a body to sign");
    }
    for name in
        headers.keys().filter(|name| [ID, TIMESTAMP, SIGNATURE].iter().any(|own| name.eq_ignore_ascii_case(own)))
    {
        fields.problem(&format!("headers.{name}"), "is set by signing_secret; leave it out");
    }
    Some(secret)
}

/// The same for every attempt of an action, and in a run that retries it.
pub(super) fn message_id(context: &CallContext<'_>, execution: ExecutionId) -> String {
    match context.subject {
        Subject::Action { claimed_by, action, .. } => format!("msg_{claimed_by}_{action}"),
        _ => format!("msg_{execution}"),
    }
}

pub(super) const fn may_repeat(context: &CallContext<'_>) -> bool {
    matches!(context.subject, Subject::Action { .. })
}

/// # Errors
/// A sentence for people.
pub(super) fn sign(request: &mut Request, secret: &Parameter, id: &str) -> Result<(), String> {
    let unusable = || "The request was not sent: the tool's signing_secret cannot be used. Save it again.".to_owned();
    let body = match &request.body {
        // As the client writes it.
        Some(RequestBody::Json(body)) => serde_json::to_vec(body).map_err(|_unwritable| unusable())?,
        Some(RequestBody::Form(body)) => body.clone().into_bytes(),
        None => Vec::new(),
    };
    let secret = secret.hidden().and_then(|secret| Some(SecretString::from(secret.as_str()?)));
    let at = Timestamp::now().as_seconds();
    let signature = secret.and_then(|secret| webhooks::standard_signature(&secret, id, at, &body));
    let signature = signature.ok_or_else(unusable)?;
    for (name, value) in [(ID, id.to_owned()), (TIMESTAMP, at.to_string()), (SIGNATURE, signature)] {
        let value = HeaderValue::from_str(&value).map_err(|_not_a_value| unusable())?;
        request.headers.insert(HeaderName::from_static(name), value);
    }
    Ok(())
}
