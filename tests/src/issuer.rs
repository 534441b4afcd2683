//! An OIDC issuer with its configuration, its keys, and signed tokens.

use std::sync::{Arc, Mutex};

use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::get,
};
use base64::{
    Engine,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use ring::{
    rand::SystemRandom,
    rsa::PublicKeyComponents,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair},
};
use serde_json::{Value, json};
use shared::models::Timestamp;

use crate::http_server::Server;

/// The audience that the HTTP API's authorizer accepts.
pub const AUDIENCE: &str = "switchboard";
/// The issuer's key ids, named after their algorithms.
pub const KEYS: [&str; 3] = ["rs256", "es256", "eddsa"];

/// A running issuer with a key of each kind; its address is its name.
pub struct Issuer {
    pub url: String,
    server: Server,
    published: Arc<Mutex<Published>>,
    rsa: RsaKeyPair,
    ec: EcdsaKeyPair,
    ed: Ed25519KeyPair,
}

/// The issuer's published documents.
struct Published {
    name: String,
    keys: Value,
    /// Whether it answers 500.
    broken: bool,
}

impl Issuer {
    pub async fn start() -> Self {
        let random = SystemRandom::new();
        let text: String = include_str!("../fixtures/tokens/rsa_2048.pkcs8.base64").split_whitespace().collect();
        let rsa = RsaKeyPair::from_pkcs8(&BASE64_STANDARD.decode(text).unwrap()).unwrap();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let ec = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random).unwrap();
        let document = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        let ed = Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap();

        let published = Arc::new(Mutex::new(Published { name: String::new(), keys: json!([]), broken: false }));
        let routes = Router::new()
            .route("/.well-known/openid-configuration", get(configuration))
            .route("/keys", get(keys))
            .with_state(Arc::clone(&published));
        let server = Server::start(routes).await;
        let issuer = Self { url: server.url.clone(), server, published, rsa, ec, ed };
        issuer.name(&issuer.url);
        issuer.publish(&json!(KEYS.map(|key| issuer.jwk(key))));
        issuer
    }

    /// Sets the issuer name in its configuration.
    pub fn name(&self, name: &str) {
        name.clone_into(&mut self.published.lock().unwrap().name);
    }

    /// Replaces the published keys.
    pub fn publish(&self, keys: &Value) {
        self.published.lock().unwrap().keys = keys.clone();
    }

    pub fn breaks(&self, broken: bool) {
        self.published.lock().unwrap().broken = broken;
    }

    /// How often its keys were requested.
    pub fn asked(&self) -> usize {
        self.server.seen().iter().filter(|seen| seen.target == "/keys").count()
    }

    /// The published form of a key.
    pub fn jwk(&self, key: &str) -> Value {
        let text = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
        match key {
            "rs256" => {
                let PublicKeyComponents { n, e } = PublicKeyComponents::<Vec<u8>>::from(self.rsa.public());
                json!({"kty": "RSA", "kid": key, "use": "sig", "alg": "RS256", "n": text(&n), "e": text(&e)})
            }
            "es256" => {
                let point = self.ec.public_key().as_ref();
                json!({"kty": "EC", "kid": key, "crv": "P-256", "x": text(&point[1..33]), "y": text(&point[33..])})
            }
            "eddsa" => {
                json!({"kty": "OKP", "kid": key, "crv": "Ed25519", "x": text(self.ed.public_key().as_ref())})
            }
            other => panic!("the issuer has no key {other}"),
        }
    }

    /// Valid claims for `sub`, which expire in an hour.
    pub fn claims(&self, sub: &str) -> Value {
        let now = Timestamp::now().as_seconds();
        json!({"iss": self.url, "sub": sub, "aud": AUDIENCE, "iat": now, "exp": now + 3_600})
    }

    /// A valid token of this user.
    pub fn token(&self, sub: &str) -> String {
        self.signed("es256", &self.claims(sub))
    }

    /// A token with these claims, signed by one of its keys.
    pub fn signed(&self, key: &str, claims: &Value) -> String {
        let algorithm = match key {
            "eddsa" => "EdDSA".to_owned(),
            key => key.to_uppercase(),
        };
        self.signed_as(key, &json!({"alg": algorithm, "typ": "JWT", "kid": key}), claims)
    }

    /// A token with another header.
    pub fn signed_as(&self, key: &str, header: &Value, claims: &Value) -> String {
        let message = encoded(header, claims);
        let random = SystemRandom::new();
        let signature = match key {
            "rs256" => {
                let mut signature = vec![0; self.rsa.public().modulus_len()];
                self.rsa.sign(&RSA_PKCS1_SHA256, &random, message.as_bytes(), &mut signature).unwrap();
                signature
            }
            "es256" => self.ec.sign(&random, message.as_bytes()).unwrap().as_ref().to_vec(),
            "eddsa" => self.ed.sign(message.as_bytes()).as_ref().to_vec(),
            other => panic!("the issuer has no key {other}"),
        };
        format!("{message}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
    }
}

/// Header and claims in their signed form.
pub fn encoded(header: &Value, claims: &Value) -> String {
    let text = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}", text(header), text(claims))
}

type Shown = State<Arc<Mutex<Published>>>;

async fn configuration(State(published): Shown) -> Response {
    let published = published.lock().unwrap();
    if published.broken {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    Json(json!({"issuer": published.name, "jwks_uri": format!("{}/keys", published.name)})).into_response()
}

async fn keys(State(published): Shown) -> Response {
    let published = published.lock().unwrap();
    if published.broken {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    Json(json!({"keys": published.keys})).into_response()
}
