//! Secrets Manager: one JSON secret per vendor account.
//!
//! A secret named in a row never changes its content; a new content gets a new name in the row, so it can be cached for long. The
//! deployment's own secrets change under their names: they are read again after a minute, and at once if a presented key does not
//! match (docs/adr/0024-keys-hold-at-once.md).
//!
//! | secret | JSON |
//! |---|---|
//! | tool token | `{"current": "…", "previous": "…"}`: see `actions::token` |
//! | VAPI | `{"api_key": "…", "webhook_bearer": "…"}`: our key there; optionally the bearer its credential sends us |
//! | Pipedream | `{"client_id", "client_secret", "project_id", "environment"}` |
//! | VAPI, of an organization | the same, for its own account |
//! | alerts | `{"key": "whsec_…"}`: signs alerts, see `automation::Alerts` |
//! | LLM | `{"api_key", "base_url"}`; an empty key means that the platform has none |
//! | LLM, of an organization | `{"api_key"}` or `{"client_id", "client_secret", "token_url"}`; `base_url`; optionally `model`, `scope`, `audience` |
//! | credential of an organization for a service | `{"api_key": "…"}`: the fields that the catalogue names |
//! | values of a tool | `{"headers.X-Api-Key": "…"}`: see `actions::secret_values` |
//! | Twilio, one per phone number | `{"account_sid", "auth_token"}`, optionally `api_key_sid`, `api_key_secret` |

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use aws_config::SdkConfig;
use aws_sdk_secretsmanager::{
    Client,
    config::Builder,
    error::{ProvideErrorMetadata, SdkError},
};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;

use super::{Error, Failure, UpstreamService, aws::aws_failed, aws_endpoint};

/// For secrets named in rows.
const FRESH: Duration = Duration::from_secs(300);
/// For the deployment's secrets.
const STANDS: Duration = Duration::from_secs(60);
/// Bounds the reads caused by wrong keys.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Days in which a deleted secret can be restored: the maximum of Secrets Manager.
const RECOVERY_DAYS: i64 = 30;

type Cache = Arc<Mutex<HashMap<String, (Instant, SecretString)>>>;

#[derive(Clone)]
pub struct Secrets {
    client: Client,
    cache: Cache,
}

impl Secrets {
    pub fn new(aws: &SdkConfig) -> Self {
        let mut config = Builder::from(aws);
        config.set_endpoint_resolver(Some(aws_endpoint(aws, "secretsmanager")));
        Self { client: Client::from_conf(config.build()), cache: Cache::default() }
    }

    /// Creates a secret. The SDK's request token makes repeats safe.
    pub async fn create(&self, name: &str, content: &SecretString) -> Result<(), Error> {
        let request = self.client.create_secret().name(name).secret_string(content.expose_secret());
        request.send().await.map_err(failed).map(drop)
    }

    /// Deletes a secret, restorable for 30 days. A missing or already deleted one is fine.
    pub async fn delete(&self, name: &str) -> Result<(), Error> {
        self.cache().remove(name);
        let request = self.client.delete_secret().secret_id(name).recovery_window_in_days(RECOVERY_DAYS);
        match request.send().await {
            Ok(_) => Ok(()),
            Err(error) if gone(&error) => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    /// Reads a secret named in a row, by name or ARN, as JSON.
    ///
    /// # Errors
    /// [`Failure::Rejected`] if it is missing or forbidden, [`Failure::Undecodable`] if it has another shape; neither reveals its
    /// content.
    pub async fn get<T: DeserializeOwned>(&self, id: &str) -> Result<T, Error> {
        self.read_as(id, FRESH).await.map_err(|(Unread::Gone(error) | Unread::Failed(error))| error)
    }

    /// As [`Secrets::get`], for a secret of the deployment, which its operator may change.
    pub async fn of_deployment<T: DeserializeOwned>(&self, id: &str) -> Result<T, Error> {
        self.read_as(id, STANDS).await.map_err(|(Unread::Gone(error) | Unread::Failed(error))| error)
    }

    /// As [`Secrets::of_deployment`], after a mismatch: the cached content may have been replaced a moment ago.
    pub async fn of_deployment_now<T: DeserializeOwned>(&self, id: &str) -> Result<T, Error> {
        self.read_as(id, AGAIN_AFTER).await.map_err(|(Unread::Gone(error) | Unread::Failed(error))| error)
    }

    /// As [`Secrets::get`]; `None` if it is missing or being deleted.
    pub async fn find<T: DeserializeOwned>(&self, id: &str) -> Result<Option<T>, Error> {
        match self.read_as(id, FRESH).await {
            Ok(found) => Ok(Some(found)),
            Err(Unread::Gone(_)) => Ok(None),
            Err(Unread::Failed(error)) => Err(error),
        }
    }

    async fn read_as<T: DeserializeOwned>(&self, id: &str, fresh: Duration) -> Result<T, Unread> {
        let secret = match self.cached(id, fresh) {
            Some(secret) => secret,
            None => self.keep(id.to_owned(), self.read(id, None).await?),
        };
        decoded(id, &secret).map_err(Unread::Failed)
    }

    /// As [`Secrets::get`], for the previous value, which Secrets Manager keeps; `None` if there is none.
    pub async fn get_before<T: DeserializeOwned>(&self, id: &str) -> Result<Option<T>, Error> {
        let key = before(id);
        let secret = match self.cached(&key, STANDS) {
            Some(secret) => secret,
            None => match self.read(id, Some("AWSPREVIOUS")).await {
                Ok(secret) => self.keep(key, secret),
                Err(Unread::Gone(_) | Unread::Failed(Error { failure: Failure::Rejected { .. }, .. })) => {
                    self.keep(key, SecretString::from("null"))
                }
                Err(Unread::Failed(error)) => return Err(error),
            },
        };
        decoded(id, &secret)
    }

    fn cached(&self, key: &str, fresh: Duration) -> Option<SecretString> {
        self.cache().get(key).filter(|(read_at, _)| read_at.elapsed() < fresh).map(|(_, secret)| secret.clone())
    }

    fn keep(&self, key: String, secret: SecretString) -> SecretString {
        let (mut cache, before) = (self.cache(), before(&key));
        let replaced = cache.insert(key, (Instant::now(), secret.clone()));
        if replaced.is_some_and(|(_, former)| former.expose_secret() != secret.expose_secret()) {
            cache.remove(&before);
        }
        secret
    }

    async fn read(&self, id: &str, stage: Option<&str>) -> Result<SecretString, Unread> {
        let request = self.client.get_secret_value().secret_id(id).set_version_stage(stage.map(str::to_owned));
        let answer = request
            .send()
            .await
            .map_err(|error| if gone(&error) { Unread::Gone(failed(error)) } else { Unread::Failed(failed(error)) })?;
        answer.secret_string.map(SecretString::from).ok_or_else(|| {
            let problem = Failure::Undecodable(format!("secret {id} holds no text"));
            Unread::Failed(Error::new(UpstreamService::SecretsManager, problem))
        })
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, HashMap<String, (Instant, SecretString)>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Name of the previous value in the cache.
fn before(id: &str) -> String {
    format!("{id} before")
}

fn decoded<T: DeserializeOwned>(id: &str, secret: &SecretString) -> Result<T, Error> {
    serde_json::from_str(secret.expose_secret()).map_err(|_may_quote_the_secret| {
        Error::new(
            UpstreamService::SecretsManager,
            Failure::Undecodable(format!("secret {id} has not the expected JSON shape")),
        )
    })
}

enum Unread {
    Gone(Error),
    Failed(Error),
}

/// Whether the secret is missing, or being deleted: the second code.
fn gone<E: ProvideErrorMetadata>(error: &SdkError<E>) -> bool {
    matches!(error.code(), Some("ResourceNotFoundException" | "InvalidRequestException"))
}

fn failed<E>(error: SdkError<E>) -> Error
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    aws_failed(UpstreamService::SecretsManager, error)
}
