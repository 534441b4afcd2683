//! Stand-in for Google: its token signing keys, and Pub/Sub's pushes for Gmail.
//!
//! `GET /oauth2/v3/certs` answers the keys as a JWK set, with Google's `cache-control`.
//!
//! `POST /simulate/gmail-push` with a [`Push`] sends a mailbox's change as an authenticated Pub/Sub subscription
//! does, and answers `{message_id, status, body, failure}`: the receiver's answer, or the reason why there is none.
//! <https://cloud.google.com/pubsub/docs/authenticate-push-subscriptions>,
//! <https://developers.google.com/gmail/api/guides/push>

use std::{io, net::SocketAddr, time::Duration};

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use ring::{
    rand::SystemRandom,
    rsa::PublicKeyComponents,
    signature::{RSA_PKCS1_SHA256, RsaKeyPair},
};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    Standin, client, clock,
    exchange::{Answer, Request, refused},
    server::{self, Service},
};

/// Made with OpenSSL for this stand-in; it signs nothing else.
const SIGNING_KEY: &str = include_str!("google/signing_key.pkcs8.base64");
const KEY_ID: &str = "local-google-key";
/// Lifetime of a token in seconds.
const TOKEN_LIFE: i64 = 3_600;
/// The default acknowledgement deadline of a subscription.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// A mailbox change and its push subscription.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Push {
    /// The subscription's push endpoint.
    pub url: String,
    /// E-mail address of the service account in the subscription's tokens.
    pub service_account: String,
    /// The mailbox.
    pub email_address: String,
    pub history_id: u64,
    /// The token's audience; `url` if absent.
    pub audience: Option<String>,
    /// Pub/Sub's message id, which a redelivery repeats; a new one if absent.
    pub message_id: Option<String>,
}

#[derive(Debug)]
pub struct Google {
    key: RsaKeyPair,
    client: reqwest::Client,
}

/// Starts the stand-in; fails if the address is taken.
pub fn start(address: SocketAddr) -> io::Result<Standin<Google>> {
    let text: String = SIGNING_KEY.split_whitespace().collect();
    let document = STANDARD.decode(text).map_err(io::Error::other)?;
    let key = RsaKeyPair::from_pkcs8(&document).map_err(|refused| io::Error::other(refused.to_string()))?;
    server::serve(address, Google { key, client: client::client()? })
}

impl Standin<Google> {
    /// The address of the signing keys.
    pub fn keys_url(&self) -> String {
        format!("{}/oauth2/v3/certs", self.url)
    }
}

impl Service for Google {
    async fn answer(&self, request: &Request) -> Answer {
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/oauth2/v3/certs") => {
                let mut answer = Answer::json(200, &json!({ "keys": [self.published_key()] }));
                answer.headers.insert("cache-control".to_owned(), "public, max-age=22265, must-revalidate".to_owned());
                answer
            }
            _ => self.failure(404),
        }
    }

    fn failure(&self, status: u16) -> Answer {
        Answer::json(status, &json!({ "error": { "code": status, "message": "Request failed." } }))
    }

    async fn control(&self, request: &Request) -> Option<Answer> {
        match (request.method.as_str(), request.path.as_str()) {
            ("POST", "/simulate/gmail-push") => Some(match serde_json::from_slice::<Push>(&request.body) {
                Ok(push) => self.push(&push).await,
                Err(error) => refused(error),
            }),
            _ => None,
        }
    }
}

impl Google {
    fn published_key(&self) -> Value {
        let PublicKeyComponents { n, e } = PublicKeyComponents::<Vec<u8>>::from(self.key.public());
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        json!({"kty": "RSA", "kid": KEY_ID, "use": "sig", "alg": "RS256", "n": text(&n), "e": text(&e)})
    }

    async fn push(&self, push: &Push) -> Answer {
        let message_id = push.message_id.clone().unwrap_or_else(|| Uuid::new_v4().as_u128().to_string());
        let Some(token) = self.token(push) else { return refused("the token cannot be signed") };
        let data = json!({"emailAddress": push.email_address, "historyId": push.history_id});
        let at = clock::iso(clock::now());
        // Pub/Sub repeats id and time under their older names.
        let body = json!({
            "message": {
                "data": STANDARD.encode(data.to_string()),
                "messageId": message_id, "message_id": message_id, "publishTime": at, "publish_time": at,
            },
            "subscription": "projects/local/subscriptions/gmail-push",
        });
        let request = self.client.post(&push.url).timeout(LONGEST_WAIT);
        let request = request.bearer_auth(token).header("content-type", "application/json").body(body.to_string());
        let failed = |error: reqwest::Error| json!({"message_id": message_id, "status": null, "body": null, "failure": error.without_url().to_string()});
        let told = match request.send().await {
            Ok(response) => {
                let status = response.status().as_u16();
                response.text().await.map_or_else(
                    failed,
                    |body| json!({"message_id": message_id, "status": status, "body": body, "failure": null}),
                )
            }
            Err(error) => failed(error),
        };
        Answer::json(200, &told)
    }

    /// The RS256 JWT of a push; `None` if the key cannot sign.
    fn token(&self, push: &Push) -> Option<String> {
        let now = clock::now().as_second();
        let header = json!({"alg": "RS256", "kid": KEY_ID, "typ": "JWT"});
        let claims = json!({
            "iss": "https://accounts.google.com", "aud": push.audience.as_ref().unwrap_or(&push.url),
            "azp": "113774264463038321964", "sub": "113774264463038321964",
            "email": push.service_account, "email_verified": true, "iat": now, "exp": now + TOKEN_LIFE,
        });
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", part(&header), part(&claims));
        let mut signature = vec![0; self.key.public().modulus_len()];
        self.key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message.as_bytes(), &mut signature).ok()?;
        Some(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}
