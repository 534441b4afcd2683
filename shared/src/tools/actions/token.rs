//! Tool tokens, by which VAPI proves that it may run a tool.
//!
//! A token is the base64url HMAC-SHA256 of the tool's id under a master secret. It is not stored, carries no data, and differs
//! for each tool. The previous key still verifies, so that it can be rotated while VAPI's tools are rewritten one by one
//! (`lifecycle/reissue.rs`). An operator need not note the old key: Secrets Manager keeps the secret's previous value.
//! Comparisons take constant time, and the token is checked before the tool is read, so an invalid one takes the same time
//! whether or not the tool exists.
//!
//! The same keys sign the proof that an assistant belongs to an organization.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::hmac;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use crate::{
    Error, Result,
    clients::Secrets,
    models::{AuthenticatedTool, OrganizationId, ToolId},
};

/// `{"current": "…", "previous": "…"}`: `current` signs, both verify.
#[derive(Deserialize)]
struct MasterSecret {
    current: SecretString,
    previous: Option<SecretString>,
}

#[derive(Clone)]
pub struct ToolTokens {
    secrets: Secrets,
    secret: String,
}

impl ToolTokens {
    /// `secret`: name or ARN of the master secret.
    pub fn new(secrets: Secrets, secret: impl Into<String>) -> Self {
        Self { secrets, secret: secret.into() }
    }

    pub async fn issue(&self, tool: ToolId) -> Result<SecretString> {
        let master = self.master().await?;
        Ok(SecretString::from(
            BASE64_URL_SAFE_NO_PAD.encode(hmac::sign(&key(&master.current), tool.to_string().as_bytes())),
        ))
    }

    /// # Errors
    /// [`Error::Unauthenticated`] for an invalid token.
    pub async fn verify(&self, tool: ToolId, token: &str) -> Result<AuthenticatedTool> {
        let tag = BASE64_URL_SAFE_NO_PAD.decode(token).unwrap_or_default();
        if self.signed(tool.to_string().as_bytes(), &tag).await? {
            Ok(AuthenticatedTool::new(tool))
        } else {
            Err(Error::Unauthenticated)
        }
    }

    /// Changes with the signing key and with `text`, and reveals nothing of the key.
    pub async fn fingerprint(&self, text: &str) -> Result<String> {
        let master = self.master().await?;
        let tag = hmac::sign(&key(&master.current), format!("fingerprint {text}").as_bytes());
        Ok(BASE64_URL_SAFE_NO_PAD.encode(tag))
    }

    /// The proof for the metadata of an organization's own assistant at VAPI.
    pub async fn assistant_proof(&self, organization: OrganizationId, assistant: &str) -> Result<String> {
        Ok(assistant_proof(self.master().await?.current.expose_secret(), organization, assistant))
    }

    pub async fn proves_assistant(&self, organization: OrganizationId, assistant: &str, shown: &str) -> Result<bool> {
        let tag = BASE64_URL_SAFE_NO_PAD.decode(shown).unwrap_or_default();
        self.signed(proven(organization, assistant).as_bytes(), &tag).await
    }

    /// The signature of a text that no other token has.
    pub(crate) async fn tag(&self, text: &str) -> Result<String> {
        let master = self.master().await?;
        Ok(BASE64_URL_SAFE_NO_PAD.encode(hmac::sign(&key(&master.current), text.as_bytes())))
    }

    pub(crate) async fn has_tag(&self, text: &str, tag: &str) -> Result<bool> {
        let tag = BASE64_URL_SAFE_NO_PAD.decode(tag).unwrap_or_default();
        self.signed(text.as_bytes(), &tag).await
    }

    /// Whether the tag is valid under the current or the previous key.
    async fn signed(&self, message: &[u8], tag: &[u8]) -> Result<bool> {
        let master = self.master().await?;
        if verifies([Some(&master.current), master.previous.as_ref()], message, tag) {
            return Ok(true);
        }
        let before: Option<MasterSecret> = self.secrets.get_before(&self.secret).await.map_err(unavailable)?;
        if verifies([before.as_ref().map(|before| &before.current), None], message, tag) {
            return Ok(true);
        }
        // The key may be newer than the copy in this process.
        let master: MasterSecret = self.secrets.of_deployment_now(&self.secret).await.map_err(unavailable)?;
        Ok(verifies([Some(&master.current), master.previous.as_ref()], message, tag))
    }

    /// Reads the master secret before the first request.
    pub async fn warm(&self) -> Result<()> {
        self.master().await.map(drop)
    }

    async fn master(&self) -> Result<MasterSecret> {
        let master: MasterSecret = self.secrets.of_deployment(&self.secret).await.map_err(unavailable)?;
        if master.current.expose_secret().is_empty() {
            return Err(Error::internal("the tool token secret has an empty current version"));
        }
        Ok(master)
    }
}

pub fn assistant_proof(current: &str, organization: OrganizationId, assistant: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, current.as_bytes());
    BASE64_URL_SAFE_NO_PAD.encode(hmac::sign(&key, proven(organization, assistant).as_bytes()))
}

/// Never equal to the signed text of a tool token, which is an id alone.
fn proven(organization: OrganizationId, assistant: &str) -> String {
    format!("assistant {assistant} of organization {organization}")
}

/// Verifies the bearer token of the VAPI credential, which is valid for every tool.
///
/// # Errors
/// As [`check_bearer`].
pub fn verify_bearer(tool: ToolId, expected: Option<&SecretString>, presented: &str) -> Result<AuthenticatedTool> {
    check_bearer(expected, presented).map(|()| AuthenticatedTool::new(tool))
}

/// # Errors
/// [`Error::Unauthenticated`] for another text, or if no credential is configured.
pub fn check_bearer(expected: Option<&SecretString>, presented: &str) -> Result<()> {
    let expected = expected.map(ExposeSecret::expose_secret).filter(|expected| !expected.is_empty());
    let expected = expected.ok_or(Error::Unauthenticated)?;
    // Compares tags of equal length, so that timing does not reveal the length of the secret.
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
