//! A tool's own token: how VAPI shows that it may run the tool.
//!
//! HMAC-SHA256 of the tool's id under a master secret, base64url. Nothing is stored; the token says nothing; each tool has
//! another. The master secret has two valid versions (`current` signs, `previous` still verifies), so that it can be
//! rotated while VAPI's tools are rewritten one by one. All comparisons take constant time, and a token is checked before
//! anything is read, so a wrong one takes the same time whether or not the tool exists.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::hmac;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use crate::{
    Error, Result,
    clients::Secrets,
    models::{ToolId, VerifiedTool},
};

/// `{"current": "…", "previous": "…"}`
#[derive(Deserialize)]
struct MasterSecret {
    current: SecretString,
    #[serde(default)]
    previous: Option<SecretString>,
}

#[derive(Clone)]
pub struct ToolTokens {
    secrets: Secrets,
    secret: String,
}

impl ToolTokens {
    /// `secret` is the name or ARN of the master secret.
    pub fn new(secrets: Secrets, secret: impl Into<String>) -> Self {
        Self { secrets, secret: secret.into() }
    }

    /// The token to give to VAPI.
    pub async fn issue(&self, tool: ToolId) -> Result<SecretString> {
        let master = self.master().await?;
        Ok(SecretString::from(
            BASE64_URL_SAFE_NO_PAD.encode(hmac::sign(&key(&master.current), tool.to_string().as_bytes())),
        ))
    }

    /// Proof that the token is the tool's.
    ///
    /// # Errors
    /// [`Error::Unauthenticated`] for any other text.
    pub async fn verify(&self, tool: ToolId, token: &str) -> Result<VerifiedTool> {
        let master = self.master().await?;
        let tag = BASE64_URL_SAFE_NO_PAD.decode(token).unwrap_or_default();
        let valid = [Some(&master.current), master.previous.as_ref()]
            .into_iter()
            .flatten()
            .filter(|secret| !secret.expose_secret().is_empty())
            .fold(false, |valid, secret| hmac::verify(&key(secret), tool.to_string().as_bytes(), &tag).is_ok() | valid);
        if valid { Ok(VerifiedTool::new(tool)) } else { Err(Error::Unauthenticated) }
    }

    /// The master secret, read ahead of the first request.
    pub async fn warm(&self) -> Result<()> {
        self.master().await.map(drop)
    }

    async fn master(&self) -> Result<MasterSecret> {
        let master: MasterSecret = self.secrets.get(&self.secret).await.map_err(unavailable)?;
        if master.current.expose_secret().is_empty() {
            return Err(Error::internal("the tool token secret has an empty current version"));
        }
        Ok(master)
    }
}

/// Proof that a caller presented the bearer token of the credential VAPI was set up with, which holds for every tool.
///
/// # Errors
/// As [`check_bearer`].
pub fn verify_bearer(tool: ToolId, expected: Option<&SecretString>, presented: &str) -> Result<VerifiedTool> {
    check_bearer(expected, presented).map(|()| VerifiedTool::new(tool))
}

/// Lets in by the bearer token of the credential VAPI was set up with.
///
/// # Errors
/// [`Error::Unauthenticated`] for any other text, or when no such credential is set up.
pub fn check_bearer(expected: Option<&SecretString>, presented: &str) -> Result<()> {
    let expected = expected.map(ExposeSecret::expose_secret).filter(|expected| !expected.is_empty());
    let expected = expected.ok_or(Error::Unauthenticated)?;
    // Tags of equal length, so that not even the length of the secret shows.
    let blind = hmac::Key::new(hmac::HMAC_SHA256, b"webhook bearer");
    let presented = hmac::sign(&blind, presented.as_bytes());
    hmac::verify(&blind, expected.as_bytes(), presented.as_ref()).map_err(|_unequal| Error::Unauthenticated)
}

fn key(secret: &SecretString) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, secret.expose_secret().as_bytes())
}

fn unavailable(error: crate::clients::Error) -> Error {
    Error::Unavailable("the secret store", Box::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_bearer_that_was_set_up_is_accepted() {
        let tool = ToolId::generate();
        let expected = SecretString::from("correct horse".to_owned());
        assert_eq!(verify_bearer(tool, Some(&expected), "correct horse").unwrap().id(), tool);
        for wrong in ["", "correct hors", "correct horse ", "x"] {
            assert!(verify_bearer(tool, Some(&expected), wrong).is_err(), "{wrong}");
        }
        assert!(verify_bearer(tool, None, "").is_err());
        assert!(verify_bearer(tool, Some(&SecretString::from(String::new())), "").is_err());
    }
}
