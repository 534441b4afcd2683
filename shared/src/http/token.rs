//! Tokens that a function verifies itself, where no authorizer of the HTTP API stands in front of it.
//!
//! A token is a JWT (RFC 7519) that the issuer of the dashboard's tokens signed. It is held to the rules of the HTTP API's own
//! authorizer, so that the same token opens the same doors: signed by a known key, in time, of the issuer, for one of the
//! accepted audiences. It may also be made for the address it is shown at (RFC 8707).

mod signatures;

use std::{collections::HashSet, sync::Arc};

use jsonwebtoken::{Validation, decode, decode_header, errors::ErrorKind};
use lambda_http::Request;
use serde::Deserialize;
use serde_json::Value;

use super::bearer::authorization;
use crate::{Deadline, Error, clients::Jwks, models::UserId};

/// How far the issuer's clock and ours may be apart, in seconds.
const LEEWAY: u64 = 60;
/// In bytes; the HTTP API lets all headers together have 10 KB.
const LONGEST_TOKEN: usize = 10_240;

/// Verifies tokens. Clones share the issuer's keys.
#[derive(Clone)]
pub struct TokenVerifier {
    issuer: Arc<str>,
    audiences: Arc<[String]>,
    keys: Jwks,
}

/// Somebody whose token was verified; nothing else makes one.
#[derive(Debug, Clone)]
pub struct VerifiedToken {
    user: UserId,
    email: Option<String>,
    scopes: HashSet<String>,
}

/// Why nobody is let in.
#[derive(Debug)]
pub enum NoToken {
    /// The request shows none.
    Missing,
    /// A sentence on what is wrong with it, which says nothing of what is in it.
    Refused(&'static str),
    /// It could not be verified.
    Unverified(Error),
}

#[derive(Deserialize)]
struct Claims {
    /// Read here for its type: a list of issuers is none.
    #[serde(rename = "iss")]
    _issuer: String,
    sub: String,
    aud: Option<Audience>,
    client_id: Option<String>,
    /// Separated by blanks (RFC 8693, section 4.2).
    scope: Option<String>,
    /// Whatever it is: nobody is kept out for it.
    #[serde(default)]
    email: Value,
    /// A boolean, or its name as some issuers write it.
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
    /// For tokens of `issuer` whose `aud`, or `client_id` where they have none, is among `audiences`.
    pub fn new(issuer: String, audiences: Vec<String>, keys: Jwks) -> Self {
        signatures::install();
        Self { issuer: issuer.into(), audiences: audiences.into(), keys }
    }

    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Who shows a token in the header `Authorization`; one that was made for `resource`, the address of what is asked, will do
    /// as well.
    ///
    /// # Errors
    /// As [`NoToken`] says.
    pub async fn of_request(
        &self,
        request: &Request,
        resource: &str,
        deadline: Deadline,
    ) -> Result<VerifiedToken, NoToken> {
        let token = authorization(request).filter(|token| !token.is_empty()).ok_or(NoToken::Missing)?;
        self.verify(token, resource, deadline).await
    }

    /// # Errors
    /// As [`NoToken`] says; never [`NoToken::Missing`].
    pub async fn verify(&self, token: &str, resource: &str, deadline: Deadline) -> Result<VerifiedToken, NoToken> {
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

        // The algorithm is the key's: what the token says must agree with it.
        let mut validation = Validation::new(key.algorithm);
        validation.leeway = LEEWAY;
        validation.validate_nbf = true;
        // An access token may have a `client_id` in its place.
        validation.validate_aud = false;
        validation.set_issuer(&[&self.issuer]);
        validation.set_required_spec_claims(&["exp", "iss", "sub"]);
        let token = decode::<Claims>(token, &key.key, &validation);
        let Claims { sub, aud, client_id, scope, email, email_verified, .. } =
            token.map_err(|error| NoToken::Refused(reason(error.kind())))?.claims;
        if sub.is_empty() {
            return Err(NoToken::Refused("the token names no user"));
        }
        if !self.is_for_us(aud, client_id, resource) {
            return Err(NoToken::Refused("the token was made for another audience"));
        }
        let scopes = scope.unwrap_or_default().split_whitespace().map(str::to_owned).collect();
        let unverified = email_verified == false || email_verified == "false";
        let email = email.as_str().map(str::trim).filter(|email| !email.is_empty() && !unverified).map(str::to_owned);
        Ok(VerifiedToken { user: UserId::new(sub), email, scopes })
    }

    /// As the authorizer of the HTTP API decides it: `client_id` counts only where there is no `aud`.
    fn is_for_us(&self, aud: Option<Audience>, client_id: Option<String>, resource: &str) -> bool {
        let accepted = |audience: &String| self.audiences.contains(audience) || audience == resource;
        match aud {
            Some(Audience::One(audience)) => accepted(&audience),
            Some(Audience::Many(audiences)) => audiences.iter().any(accepted),
            None => client_id.is_some_and(|client| self.audiences.contains(&client)),
        }
    }
}

impl VerifiedToken {
    /// The token's `sub`.
    pub fn user(&self) -> &UserId {
        &self.user
    }

    /// Absent where the token names none, or says that it is not verified.
    pub fn email(&self) -> Option<&str> {
        self.email.as_deref()
    }

    /// Whether it has all of these scopes, separated by blanks.
    pub fn has_scopes(&self, scopes: &str) -> bool {
        scopes.split_whitespace().all(|scope| self.scopes.contains(scope))
    }
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
