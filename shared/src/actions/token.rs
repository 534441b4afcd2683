//! A tool's own token: how VAPI shows that it may run the tool.
//!
//! HMAC-SHA256 of the tool's id under a master secret, base64url. Nothing is stored; the token says nothing; each tool has
//! another. The key before the present one still verifies, so that it can be rotated while VAPI's tools are rewritten one by
//! one (`lifecycle/reissue.rs`). Whoever sets a new key need not write the former one down: Secrets Manager keeps the value
//! that the secret had before. All comparisons take constant time, and a token is checked before anything is read of the
//! tool, so a wrong one takes the same time whether or not the tool exists.
//!
//! The same keys make the text by which an organization shows that an assistant is its own.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::hmac;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use crate::{
    Error, Result,
    clients::Secrets,
    models::{OrganizationId, ToolId, VerifiedTool},
};

/// `{"current": "…", "previous": "…"}`: `current` signs, both verify.
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
        let tag = BASE64_URL_SAFE_NO_PAD.decode(token).unwrap_or_default();
        if self.signed(tool.to_string().as_bytes(), &tag).await? {
            Ok(VerifiedTool::new(tool))
        } else {
            Err(Error::Unauthenticated)
        }
    }

    /// Of the key that signs now, and of `text`: it changes with either and tells nothing of the key.
    pub async fn fingerprint(&self, text: &str) -> Result<String> {
        let master = self.master().await?;
        let tag = hmac::sign(&key(&master.current), format!("fingerprint {text}").as_bytes());
        Ok(BASE64_URL_SAFE_NO_PAD.encode(tag))
    }

    /// What an organization writes into the metadata of an assistant of its own at VAPI.
    pub async fn assistant_proof(&self, organization: OrganizationId, assistant: &str) -> Result<String> {
        Ok(assistant_proof(self.master().await?.current.expose_secret(), organization, assistant))
    }

    /// Whether `shown` is an [`assistant_proof`] of the organization's for the assistant.
    pub async fn proves_assistant(&self, organization: OrganizationId, assistant: &str, shown: &str) -> Result<bool> {
        let tag = BASE64_URL_SAFE_NO_PAD.decode(shown).unwrap_or_default();
        self.signed(proven(organization, assistant).as_bytes(), &tag).await
    }

    /// Whether the tag is the message's under the present key or the one before.
    async fn signed(&self, message: &[u8], tag: &[u8]) -> Result<bool> {
        let master = self.master().await?;
        if verifies([Some(&master.current), master.previous.as_ref()], message, tag) {
            return Ok(true);
        }
        let before: Option<MasterSecret> = self.secrets.get_before(&self.secret).await.map_err(unavailable)?;
        if verifies([before.as_ref().map(|before| &before.current), None], message, tag) {
            return Ok(true);
        }
        // It may be of a key that is newer than what this process has read.
        let master: MasterSecret = self.secrets.standing_now(&self.secret).await.map_err(unavailable)?;
        Ok(verifies([Some(&master.current), master.previous.as_ref()], message, tag))
    }

    /// The master secret, read ahead of the first request.
    pub async fn warm(&self) -> Result<()> {
        self.master().await.map(drop)
    }

    async fn master(&self) -> Result<MasterSecret> {
        let master: MasterSecret = self.secrets.standing(&self.secret).await.map_err(unavailable)?;
        if master.current.expose_secret().is_empty() {
            return Err(Error::internal("the tool token secret has an empty current version"));
        }
        Ok(master)
    }
}

/// As [`ToolTokens::assistant_proof`], under this key.
pub fn assistant_proof(current: &str, organization: OrganizationId, assistant: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, current.as_bytes());
    BASE64_URL_SAFE_NO_PAD.encode(hmac::sign(&key, proven(organization, assistant).as_bytes()))
}

/// Never the text of a token, which is an id alone.
fn proven(organization: OrganizationId, assistant: &str) -> String {
    format!("assistant {assistant} of organization {organization}")
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

fn verifies(secrets: [Option<&SecretString>; 2], message: &[u8], tag: &[u8]) -> bool {
    let secrets = secrets.into_iter().flatten().filter(|secret| !secret.expose_secret().is_empty());
    secrets.fold(false, |valid, secret| hmac::verify(&key(secret), message, tag).is_ok() | valid)
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
