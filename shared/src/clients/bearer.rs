//! A cache of bearer tokens from client credentials (RFC 6749, 4.4).

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use tokio::sync::Mutex;

use super::{Error, Failure, UpstreamService};
use crate::Deadline;

/// Renewal before the end of a token's life, as in Pipedream's SDKs; short-lived tokens are renewed after half their life.
const MARGIN: Duration = Duration::from_secs(120);

/// Life of a token without `expires_in`.
const UNTOLD: Duration = Duration::from_secs(300);

/// Maximal life of a token, also if the server grants more.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// A cached token. Clones share it; concurrent callers wait for one request.
#[derive(Clone, Default)]
pub(super) struct Bearer(Arc<Mutex<Option<Token>>>);

struct Token {
    bearer: SecretString,
    renew_at: Instant,
}

#[derive(Deserialize)]
pub(super) struct TokenResponse {
    pub(super) access_token: SecretString,
    /// Seconds.
    #[serde(default, deserialize_with = "seconds")]
    pub(super) expires_in: Option<f64>,
}

impl Bearer {
    /// The cached token, or a new one from `ask`.
    ///
    /// # Errors
    /// Those of `ask`; [`Failure::Unreachable`] if a concurrent request exceeds `deadline`.
    pub(super) async fn token<F: Future<Output = Result<TokenResponse, Error>>>(
        &self,
        service: UpstreamService,
        deadline: Deadline,
        ask: impl FnOnce() -> F,
    ) -> Result<SecretString, Error> {
        let waited = tokio::time::timeout(deadline.remaining(), self.0.lock()).await;
        let mut token = waited.map_err(|elapsed| Error::because(service, Failure::Unreachable, elapsed))?;
        if let Some(token) = token.as_ref().filter(|token| Instant::now() < token.renew_at) {
            return Ok(token.bearer.clone());
        }
        let granted = ask().await?;
        let told = granted.expires_in.and_then(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).ok());
        let life = told.unwrap_or(UNTOLD).min(LONGEST);
        let renew_at = Instant::now() + life.saturating_sub(MARGIN).max(life / 2);
        *token = Some(Token { bearer: granted.access_token.clone(), renew_at });
        Ok(granted.access_token)
    }

    /// Drops this token, unless it was replaced meanwhile.
    pub(super) async fn forget(&self, refused: &SecretString) {
        let mut token = self.0.lock().await;
        if token.as_ref().is_some_and(|token| token.bearer.expose_secret() == refused.expose_secret()) {
            *token = None;
        }
    }

    pub(super) fn is_live(&self) -> bool {
        let fresh =
            || self.0.try_lock().map_or(true, |token| token.as_ref().is_some_and(|it| Instant::now() < it.renew_at));
        Arc::strong_count(&self.0) > 1 || fresh()
    }
}

/// A number, or text with a number, as some servers send it.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) => text.trim().parse().ok(),
        other => other.as_f64(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn asked(bearer: &Bearer, answer: &str) -> (String, bool) {
        let mut asked = false;
        let ask = || {
            asked = true;
            let granted: TokenResponse = serde_json::from_str(answer).unwrap();
            async move { Ok(granted) }
        };
        let deadline = Deadline::after(Duration::from_secs(30));
        let token = bearer.token(UpstreamService::Llm, deadline, ask).await.unwrap();
        (token.expose_secret().to_owned(), asked)
    }

    #[tokio::test]
    async fn a_token_lasts_as_long_as_it_is_told_to_and_a_while_if_it_is_not() {
        for (life, kept) in [
            ("3600", true),
            ("60", true),
            (r#""3600""#, true),
            ("null", true),
            ("1e300", true),
            ("0", false),
            ("-5", false),
        ] {
            let bearer = Bearer::default();
            let first = format!(r#"{{"access_token": "a", "expires_in": {life}}}"#);
            assert_eq!(asked(&bearer, &first).await, ("a".to_owned(), true), "{life}");
            assert_eq!(bearer.is_live(), kept, "{life}");
            assert_eq!(asked(&bearer, r#"{"access_token": "b"}"#).await.1, !kept, "{life}");
        }
        let bearer = Bearer::default();
        asked(&bearer, r#"{"access_token": "a"}"#).await;
        assert!(bearer.is_live(), "nothing is told");
    }

    #[tokio::test]
    async fn only_the_token_that_was_refused_is_dropped() {
        let bearer = Bearer::default();
        asked(&bearer, r#"{"access_token": "a"}"#).await;
        bearer.forget(&"older".into()).await;
        assert_eq!(asked(&bearer, r#"{"access_token": "b"}"#).await, ("a".to_owned(), false));
        bearer.forget(&"a".into()).await;
        assert_eq!(asked(&bearer, r#"{"access_token": "b"}"#).await, ("b".to_owned(), true));
    }
}
