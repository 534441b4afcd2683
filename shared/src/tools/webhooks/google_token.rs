//! Verifies the JWT with which Google Pub/Sub authenticates a push.
//!
//! Anybody can have Google sign a token for our audience with a service account of their own, so the account is
//! compared too; Google's own libraries leave that to the caller. A token does not cover the body, and is valid for an
//! hour.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, DecodingKeyKind};
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents};
use serde::{Deserialize, de::DeserializeOwned};

use super::{HookSecret, WebhookRequest, headers::single};
use crate::{clients::SigningKey, models::Timestamp};

const ISSUERS: [&str; 2] = ["https://accounts.google.com", "accounts.google.com"];
/// Tolerated difference of clocks, in seconds.
const LEEWAY: i64 = 60;
const LONGEST_TOKEN: usize = 10_240;

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: String,
    crit: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Claims {
    iss: String,
    aud: String,
    email: String,
    email_verified: bool,
    iat: i64,
    exp: i64,
}

/// The key id of the request's token, unverified.
pub fn key_id(request: &WebhookRequest<'_>) -> Option<String> {
    let (head, ..) = parts(request)?;
    Some(decoded::<Header>(head)?.kid)
}

pub(super) fn verify(
    key: &SigningKey,
    secret: &HookSecret,
    request: &WebhookRequest<'_>,
    now: Timestamp,
) -> Option<()> {
    let (head, claims, signature) = parts(request)?;
    let header: Header = decoded(head)?;
    if header.alg != "RS256" || header.crit.is_some() || key.algorithm != Algorithm::RS256 {
        return None;
    }
    let DecodingKeyKind::RsaModulusExponent { n, e } = key.key.kind() else { return None };
    let signed = format!("{head}.{claims}");
    let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).ok()?;
    RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, signed.as_bytes(), &signature).ok()?;

    let claims: Claims = decoded(claims)?;
    let now = now.as_seconds();
    let in_time = claims.iat.checked_sub(LEEWAY)? <= now && now < claims.exp.checked_add(LEEWAY)?;
    let is_theirs = secret.email.as_ref().is_some_and(|email| *email == claims.email) && claims.email_verified;
    let is_audience = match &secret.audience {
        Some(audience) => claims.aud == *audience,
        None => request.urls.iter().any(|here| here.split('?').next() == Some(claims.aud.as_str())),
    };
    let for_us = is_audience && ISSUERS.contains(&claims.iss.as_str());
    (in_time && is_theirs && for_us).then_some(())
}

/// Header, claims and signature, still encoded.
fn parts<'a>(request: &WebhookRequest<'a>) -> Option<(&'a str, &'a str, &'a str)> {
    let (scheme, token) = single(request.headers, "authorization")?.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("bearer") || token.len() > LONGEST_TOKEN {
        return None;
    }
    let (head, rest) = token.split_once('.')?;
    let (claims, signature) = rest.split_once('.')?;
    Some((head, claims, signature))
}

fn decoded<T: DeserializeOwned>(part: &str) -> Option<T> {
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}
