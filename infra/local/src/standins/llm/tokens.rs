//! Tokens for client credentials, by RFC 6749.

use std::{
    collections::BTreeMap,
    sync::Mutex,
    time::{Duration, Instant},
};

use serde_json::json;
use uuid::Uuid;

use super::{
    super::{
        exchange::{Answer, Request},
        locked,
    },
    Options,
};

const FIELDS: [&str; 5] = ["grant_type", "scope", "audience", "client_id", "client_secret"];

#[derive(Debug)]
pub(super) struct Tokens {
    options: Options,
    /// The expiry of each token.
    given: Mutex<BTreeMap<String, Instant>>,
}

impl Tokens {
    pub(super) fn new(options: Options) -> Self {
        Self { options, given: Mutex::default() }
    }

    pub(super) fn granted(&self) -> usize {
        locked(&self.given).len()
    }

    pub(super) fn expire(&self) {
        let now = Instant::now();
        locked(&self.given).values_mut().for_each(|end| *end = now);
    }

    pub(super) fn is_live(&self, token: &str) -> bool {
        locked(&self.given).get(token).is_some_and(|end| Instant::now() < *end)
    }

    pub(super) fn answer(&self, request: &Request) -> Answer {
        self.grant(request).unwrap_or_else(|refusal| refusal)
    }

    fn grant(&self, request: &Request) -> Result<Answer, Answer> {
        if !request.is_form() {
            return Err(refusal(400, "invalid_request", "the body must be application/x-www-form-urlencoded"));
        }
        let form = request.form();
        for (at, (name, _)) in form.iter().enumerate() {
            if !FIELDS.contains(&name.as_str()) {
                return Err(refusal(400, "invalid_request", &format!("unknown parameter: {name}")));
            }
            if form.iter().take(at).any(|(earlier, _)| earlier == name) {
                return Err(refusal(400, "invalid_request", &format!("{name} is there twice")));
            }
        }
        let field = |name: &str| form.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let in_body = field("client_id").zip(field("client_secret"));
        let in_header = request.basic().map(|(id, secret)| (decoded(&id), decoded(&secret)));
        let (id, secret) = match (&in_header, in_body) {
            (Some(_), Some(_)) => return Err(refusal(400, "invalid_request", "more than one client authentication")),
            (Some((id, secret)), None) => (id.as_str(), secret.as_str()),
            (None, Some(pair)) => pair,
            (None, None) => return Err(unknown_client()),
        };
        if (id, secret) != (self.options.client_id.as_str(), self.options.client_secret.as_str()) {
            return Err(unknown_client());
        }
        match field("grant_type") {
            Some("client_credentials") => {}
            Some(_) => return Err(refusal(400, "unsupported_grant_type", "only client_credentials")),
            None => return Err(refusal(400, "invalid_request", "grant_type is missing")),
        }
        if self.options.scope.is_some() && field("scope") != self.options.scope.as_deref() {
            return Err(refusal(400, "invalid_scope", "the scope is not one of this client's"));
        }
        if self.options.audience.is_some() && field("audience") != self.options.audience.as_deref() {
            return Err(refusal(400, "invalid_target", "no such audience"));
        }
        let token = format!("llm_at_{}", Uuid::new_v4().simple());
        let life = self.options.token_life;
        locked(&self.given).insert(token.clone(), Instant::now() + Duration::from_secs(life.into()));
        let body = json!({ "access_token": token, "token_type": "Bearer", "expires_in": life });
        Ok(Answer::json(200, &body).with_headers(&BTreeMap::from([("cache-control".into(), "no-store".into())])))
    }
}

/// The parts of HTTP Basic are encoded as in a form (RFC 6749, 2.3.1).
fn decoded(part: &str) -> String {
    let pair = format!("x={part}");
    url::form_urlencoded::parse(pair.as_bytes()).next().map(|(_, value)| value.into_owned()).unwrap_or_default()
}

fn unknown_client() -> Answer {
    let challenge = BTreeMap::from([("www-authenticate".to_owned(), "Basic".to_owned())]);
    refusal(401, "invalid_client", "Client authentication failed").with_headers(&challenge)
}

fn refusal(status: u16, error: &str, description: &str) -> Answer {
    Answer::json(status, &json!({ "error": error, "error_description": description }))
}
