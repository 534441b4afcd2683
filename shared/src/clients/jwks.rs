//! Cached signing keys of an OIDC issuer (RFC 7517).
//!
//! Keys are fetched for the first token, and again only for an unknown key, so invented key ids cost one request per [`PAUSE`].
//! While the issuer is unreachable the cached keys stay valid. The address of the keys comes from configuration or from the
//! issuer (`OpenID` Connect Discovery 1.0, section 4), never from a token.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use jsonwebtoken::{
    Algorithm, DecodingKey,
    jwk::{AlgorithmParameters, CommonParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse},
};
use reqwest::Url;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Mutex;

use super::{
    Outbound,
    outbound::{Answer, Request},
};
use crate::{Deadline, Error, Result};

const PAUSE: Duration = Duration::from_secs(10);
/// After a failed request without cached keys.
const PAUSE_WITHOUT_KEYS: Duration = Duration::from_secs(1);
const WITHIN: Duration = Duration::from_secs(3);
/// Bytes.
const LARGEST_ANSWER: usize = 256 * 1024;

/// An issuer's keys. Clones share them.
#[derive(Clone)]
pub struct Jwks {
    outbound: Outbound,
    issuer: String,
    url: Option<String>,
    pause: Duration,
    known: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Known {
    keys: HashMap<String, SigningKey>,
    again_at: Option<Instant>,
}

/// A key with its only permitted algorithm.
#[derive(Clone)]
pub struct SigningKey {
    pub algorithm: Algorithm,
    pub key: DecodingKey,
}

impl SigningKey {
    /// Parses a public signature key of an issuer (RFC 7517), with its id; `None` for any other key.
    pub fn of_jwk(jwk: Value) -> Option<(String, Self)> {
        signing_key(jwk)
    }
}

#[derive(Deserialize)]
struct Configuration {
    issuer: String,
    jwks_uri: String,
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<Value>,
}

impl Jwks {
    /// The keys of `issuer`, at `url` or at the discovered address. Only https is allowed, except plain http on this machine for
    /// local systems.
    ///
    /// # Errors
    /// If TLS cannot be set up, independent of input.
    pub fn new(issuer: &str, url: Option<String>) -> Result<Self> {
        let configured = [Some(issuer), url.as_deref()];
        let outbound = Outbound::new(configured.into_iter().flatten().filter_map(on_this_machine).collect())?;
        Ok(Self { outbound, issuer: issuer.to_owned(), url, pause: PAUSE, known: Arc::default() })
    }

    #[must_use]
    pub fn pausing(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }

    /// The key with this id; `None` if the issuer did not have it at the last request.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if there are no cached keys and the issuer does not answer.
    pub async fn key(&self, id: &str, deadline: Deadline) -> Result<Option<SigningKey>> {
        let mut known = self.known.lock().await;
        if let Some(key) = known.keys.get(id) {
            return Ok(Some(key.clone()));
        }
        let none_known = known.keys.is_empty();
        if known.again_at.is_some_and(|again_at| Instant::now() < again_at) {
            return if none_known { Err(unavailable("it did not answer a moment ago")) } else { Ok(None) };
        }
        let fetched = self.fetch(deadline).await;
        let pause = if fetched.is_err() && none_known { PAUSE_WITHOUT_KEYS.min(self.pause) } else { self.pause };
        known.again_at = Some(Instant::now() + pause);
        match fetched {
            Ok(keys) => {
                known.keys = keys;
                Ok(known.keys.get(id).cloned())
            }
            Err(error) if none_known => Err(error),
            Err(error) => {
                tracing::warn!("the issuer's keys could not be refreshed: {}", crate::error::chain(&error));
                Ok(None)
            }
        }
    }

    async fn fetch(&self, deadline: Deadline) -> Result<HashMap<String, SigningKey>> {
        let url = match &self.url {
            Some(url) => url.clone(),
            None => self.discover(deadline).await?,
        };
        let KeySet { keys } = self.get(&url, deadline).await?;
        // An unusable or unreadable key does not affect the others.
        let keys: HashMap<_, _> = keys.into_iter().filter_map(signing_key).collect();
        if keys.is_empty() { Err(unavailable("its key set holds no key for signatures")) } else { Ok(keys) }
    }

    async fn discover(&self, deadline: Deadline) -> Result<String> {
        let url = format!("{}/.well-known/openid-configuration", self.issuer.trim_end_matches('/'));
        let Configuration { issuer, jwks_uri } = self.get(&url, deadline).await?;
        if issuer == self.issuer { Ok(jwks_uri) } else { Err(unavailable("its configuration is of another issuer")) }
    }

    async fn get<T: for<'de> Deserialize<'de>>(&self, url: &str, deadline: Deadline) -> Result<T> {
        let url: Url = self.outbound.parse(url).map_err(unavailable)?;
        let sent = self.outbound.send(Request::get(url, LARGEST_ANSWER), deadline.at_most(WITHIN)).await;
        let Answer { status, body, .. } = sent.map_err(unavailable)?;
        if status != 200 {
            return Err(unavailable(format!("it answered {status}")));
        }
        serde_json::from_slice(&body).map_err(unavailable)
    }
}

fn unavailable(cause: impl Into<crate::error::Cause>) -> Error {
    Error::Unavailable("the key set of the tokens' issuer", cause.into())
}

/// `127.0.0.1:4566` for an address over http on this machine.
fn on_this_machine(url: &str) -> Option<String> {
    let url = Url::parse(url).ok().filter(|url| url.scheme() == "http")?;
    let host = url.host_str().filter(|host| matches!(*host, "127.0.0.1" | "[::1]" | "localhost"))?;
    Some(format!("{host}:{}", url.port_or_known_default()?))
}

/// A public signature key by its id. Its permitted algorithm follows from its type, curve and `alg`, never from a token.
fn signing_key(jwk: Value) -> Option<(String, SigningKey)> {
    let jwk: Jwk = serde_json::from_value(jwk).ok()?;
    let CommonParameters { key_id, public_key_use, key_operations, key_algorithm, .. } = &jwk.common;
    let signs = public_key_use.as_ref().is_none_or(|used| *used == PublicKeyUse::Signature);
    let verifies = key_operations.as_ref().is_none_or(|all| all.contains(&KeyOperations::Verify));
    if !(signs && verifies) {
        return None;
    }
    let algorithm = match (&jwk.algorithm, key_algorithm) {
        (AlgorithmParameters::RSA(_), None | Some(KeyAlgorithm::RS256)) => Algorithm::RS256,
        (AlgorithmParameters::RSA(_), Some(KeyAlgorithm::RS384)) => Algorithm::RS384,
        (AlgorithmParameters::RSA(_), Some(KeyAlgorithm::RS512)) => Algorithm::RS512,
        (AlgorithmParameters::EllipticCurve(key), alg) => match (&key.curve, alg) {
            (EllipticCurve::P256, None | Some(KeyAlgorithm::ES256)) => Algorithm::ES256,
            (EllipticCurve::P384, None | Some(KeyAlgorithm::ES384)) => Algorithm::ES384,
            _ => return None,
        },
        (AlgorithmParameters::OctetKeyPair(key), None | Some(KeyAlgorithm::EdDSA))
            if key.curve == EllipticCurve::Ed25519 =>
        {
            Algorithm::EdDSA
        }
        _ => return None,
    };
    let key = DecodingKey::from_jwk(&jwk).ok()?;
    Some((key_id.clone()?, SigningKey { algorithm, key }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_is_for_one_algorithm_or_is_left_out() {
        let rsa = |more: Value| {
            let mut key = json!({"kty": "RSA", "kid": "k", "n": "AQAB", "e": "AQAB"});
            key.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            key
        };
        let ec = |curve: &str| json!({"kty": "EC", "kid": "k", "crv": curve, "x": "AA", "y": "AA"});
        for (jwk, expected) in [
            (rsa(json!({})), Some(Algorithm::RS256)),
            (rsa(json!({"alg": "RS512", "use": "sig"})), Some(Algorithm::RS512)),
            (rsa(json!({"alg": "PS256"})), None),
            (rsa(json!({"alg": "HS256"})), None),
            (rsa(json!({"alg": "RSA-OAEP"})), None),
            (rsa(json!({"use": "enc"})), None),
            (rsa(json!({"key_ops": ["encrypt"]})), None),
            (rsa(json!({"kid": null})), None),
            (ec("P-256"), Some(Algorithm::ES256)),
            (ec("P-384"), Some(Algorithm::ES384)),
            (ec("P-521"), None),
            (ec("secp256k1"), None),
            (json!({"kty": "OKP", "kid": "k", "crv": "Ed25519", "x": "AA"}), Some(Algorithm::EdDSA)),
            (json!({"kty": "OKP", "kid": "k", "crv": "X25519", "x": "AA"}), None),
            (json!({"kty": "oct", "kid": "k", "k": "AA"}), None),
            (json!({"kty": "RSA", "kid": "k"}), None),
            (json!("no key"), None),
        ] {
            assert_eq!(signing_key(jwk.clone()).map(|(_, key)| key.algorithm), expected, "{jwk}");
        }
    }

    #[test]
    fn plain_http_is_for_this_machine() {
        assert_eq!(on_this_machine("http://127.0.0.1:4566/keys").as_deref(), Some("127.0.0.1:4566"));
        for url in ["https://127.0.0.1/keys", "http://10.0.0.1/keys", "http://issuer.example/keys", "keys"] {
            assert_eq!(on_this_machine(url), None, "{url}");
        }
    }
}
