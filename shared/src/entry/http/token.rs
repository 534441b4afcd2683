//! Verification of tokens in functions without an authorizer of the HTTP API.
//!
//! Tokens are JWTs (RFC 7519) of the dashboard's issuer, checked by the rules of the HTTP API's authorizer: signature by a known
//! key, validity period, issuer, and an accepted audience or an address of the resource itself (RFC 8707).

mod signatures;

use std::{collections::HashSet, sync::Arc};

use jsonwebtoken::{Validation, decode, decode_header, errors::ErrorKind};
use lambda_http::Request;
use serde::Deserialize;
use serde_json::Value;

use super::bearer::authorization;
use crate::{Deadline, Error, clients::Jwks, models::UserId};

/// Allowed clock difference to the issuer, in seconds.
const LEEWAY: u64 = 60;
/// In bytes; the HTTP API limits all headers together to 10 KB.
const LONGEST_TOKEN: usize = 10_240;

/// Clones share the issuer's keys.
#[derive(Clone)]
pub struct TokenVerifier {
    issuer: Arc<str>,
    audiences: Arc<[String]>,
    keys: Jwks,
}

/// A user with a verified token. Only the verifier creates it.
#[derive(Debug, Clone)]
pub struct VerifiedToken {
    user: UserId,
    email: Option<String>,
    scopes: HashSet<String>,
}

#[derive(Debug)]
pub enum NoToken {
    Missing,
    Refused(&'static str),
    Unverified(Error),
}

#[derive(Deserialize)]
struct Claims {
    /// Required to be a string: a list of issuers is invalid.
    #[serde(rename = "iss")]
    _issuer: String,
    sub: String,
    aud: Option<Audience>,
    client_id: Option<String>,
    #[serde(default)]
    scope: Value,
    /// The name of `scope` at Okta and Entra.
    #[serde(default)]
    scp: Value,
    /// Any type: a malformed email must not refuse the token.
    #[serde(default)]
    email: Value,
    /// A boolean, or its text from some issuers.
    #[serde(default)]
    email_verified: Value,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

impl TokenVerifier {
    /// For tokens of `issuer` whose `aud`, or `client_id` without `aud`, is among `audiences`.
    pub fn new(issuer: String, audiences: Vec<String>, keys: Jwks) -> Self {
        signatures::install();
        Self { issuer: issuer.into(), audiences: audiences.into(), keys }
    }

    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Verifies the token in the header `Authorization`. `resources`, the addresses of the requested resource, are accepted
    /// audiences too.
    pub async fn of_request(
        &self,
        request: &Request,
        resources: &[&str],
        deadline: Deadline,
    ) -> Result<VerifiedToken, NoToken> {
        let token = authorization(request).filter(|token| !token.is_empty()).ok_or(NoToken::Missing)?;
        self.verify(token, resources, deadline).await
    }

    /// # Errors
    /// Never [`NoToken::Missing`].
    pub async fn verify(&self, token: &str, resources: &[&str], deadline: Deadline) -> Result<VerifiedToken, NoToken> {
        if token.len() > LONGEST_TOKEN {
            return Err(NoToken::Refused("the token is too long"));
        }
        let header = decode_header(token).map_err(|error| NoToken::Refused(reason(error.kind())))?;
        if header.crit.is_some() {
            return Err(NoToken::Refused("the token demands extensions that are not known here"));
        }
        let id = header.kid.ok_or(NoToken::Refused("the token does not name its key"))?;
        let key = self.keys.key(&id, deadline).await.map_err(NoToken::Unverified)?;
        let key = key.ok_or(NoToken::Refused("the token's key is not one of the issuer's"))?;

        // The key determines the algorithm, and the token's must match.
        let mut validation = Validation::new(key.algorithm);
        validation.leeway = LEEWAY;
        validation.validate_nbf = true;
        // Checked below: an access token may have `client_id` instead.
        validation.validate_aud = false;
        validation.set_issuer(&[&self.issuer]);
        validation.set_required_spec_claims(&["exp", "iss", "sub"]);
        let token = decode::<Claims>(token, &key.key, &validation);
        let Claims { sub, aud, client_id, scope, scp, email, email_verified, .. } =
            token.map_err(|error| NoToken::Refused(reason(error.kind())))?.claims;
        if sub.is_empty() {
            return Err(NoToken::Refused("the token names no user"));
        }
        if !self.is_for_us(aud, client_id, resources) {
            return Err(NoToken::Refused("the token was made for another audience"));
        }
        let scopes = [&scope, &scp].into_iter().flat_map(granted).map(str::to_owned).collect();
        let unverified = email_verified == false || email_verified == "false";
        let email = email.as_str().map(str::trim).filter(|email| !email.is_empty() && !unverified).map(str::to_owned);
        Ok(VerifiedToken { user: UserId::new(sub), email, scopes })
    }

    /// Like the HTTP API's authorizer: `client_id` counts only without `aud`.
    fn is_for_us(&self, aud: Option<Audience>, client_id: Option<String>, resources: &[&str]) -> bool {
        let accepted = |audience: &String| self.audiences.contains(audience) || resources.contains(&audience.as_str());
        match aud {
            Some(Audience::One(audience)) => accepted(&audience),
            Some(Audience::Many(audiences)) => audiences.iter().any(accepted),
            None => client_id.is_some_and(|client| self.audiences.contains(&client)),
        }
    }
}

impl VerifiedToken {
    pub fn user(&self) -> &UserId {
        &self.user
    }

    /// Absent if the token has none or an unverified one.
    pub fn email(&self) -> Option<&str> {
        self.email.as_deref()
    }

    /// Whether the token has all of these scopes, separated by spaces.
    pub fn has_scopes(&self, scopes: &str) -> bool {
        scopes.split_whitespace().all(|scope| self.scopes.contains(scope))
    }
}

/// The scopes of a claim: a text separated by spaces (RFC 8693, section 4.2), or a list.
fn granted(claim: &Value) -> impl Iterator<Item = &str> {
    let texts = claim.as_array().map_or(std::slice::from_ref(claim), Vec::as_slice);
    texts.iter().filter_map(Value::as_str).flat_map(str::split_whitespace)
}

fn reason(error: &ErrorKind) -> &'static str {
    match error {
        ErrorKind::ExpiredSignature => "the token has expired",
        ErrorKind::ImmatureSignature => "the token is not valid yet",
        ErrorKind::InvalidIssuer => "the token is of another issuer",
        ErrorKind::InvalidSignature => "the token's signature is wrong",
        ErrorKind::InvalidAlgorithm => "the token's algorithm is not that of its key",
        ErrorKind::MissingRequiredClaim(_) => "the token lacks one of exp, iss and sub",
        _ => "the token cannot be read",
    }
}
