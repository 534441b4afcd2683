//! Alerts to the owners of an automation that was paused automatically.
//!
//! A POST to the deployment's `ALERT_HOOK_URL`, signed as [Standard Webhooks](https://www.standardwebhooks.com) describes:
//! ```json
//! {"type": "automation.paused", "timestamp": "2026-11-22T10:15:00.000Z",
//!  "data": {"organization_id": "…", "automation_id": "…", "name": "Urgent messages", "reason": "…", "run_id": "…"}}
//! ```
//!
//! `webhook-id` derives from the cause of the pause, mostly a run, so receivers can drop repeats. The alert carries no content of the run.

use std::time::Duration;

use reqwest::{Method, header::HeaderMap};
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::json;

use crate::{
    Deadline, Error, Result,
    backoff::Backoff,
    clients::{
        Outbound, Secrets,
        outbound::{Request, RequestBody},
    },
    models::{AllowedHosts, Automation, RunId, Timestamp},
    webhooks,
};

/// Per attempt.
const WITHIN: Duration = Duration::from_secs(5);
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_millis(400);
/// Bytes of the answer; its content is ignored.
const LARGEST_ANSWER: usize = 64 * 1_024;

/// Sends alerts; without a hook, none.
#[derive(Clone)]
pub struct Alerts {
    pub outbound: Outbound,
    pub secrets: Secrets,
    pub hook: Option<AlertHook>,
}

#[derive(Debug, Clone)]
pub struct AlertHook {
    pub url: String,
    pub secret: String,
}

#[derive(Deserialize)]
struct SigningKey {
    key: SecretString,
}

impl Alerts {
    /// Sends the alert that the automation was paused by `cause`, a run's id or one of no run.
    ///
    /// # Errors
    /// If the address did not accept the alert; then nobody was told.
    pub async fn paused(&self, automation: &Automation, reason: &str, cause: RunId) -> Result<()> {
        let Some(hook) = &self.hook else { return Ok(()) };
        let now = Timestamp::now();
        let body = json!({
            "type": "automation.paused",
            "timestamp": now,
            "data": {
                "organization_id": automation.organization_id,
                "automation_id": automation.id,
                "name": automation.name,
                "reason": reason,
                "run_id": cause,
            },
        });
        let SigningKey { key } = self.secrets.of_deployment(&hook.secret).await?;
        let id = format!("alert_{cause}");
        let signature = signature(&key, &id, now.as_seconds(), &body.to_string())?;
        let mut headers = HeaderMap::new();
        for (name, value) in
            [("webhook-id", id), ("webhook-timestamp", now.as_seconds().to_string()), ("webhook-signature", signature)]
        {
            headers.insert(name, value.parse().map_err(Error::internal)?);
        }
        let url = self.outbound.parse(&hook.url).map_err(Error::internal)?;
        let mut backoff = Backoff::at_most(
            TRIES as usize - 1,
            PAUSE,
            LONGEST_PAUSE,
            Deadline::after(TRIES * (WITHIN + LONGEST_PAUSE)),
        );
        loop {
            let request = Request {
                method: Method::POST,
                url: url.clone(),
                headers: headers.clone(),
                body: Some(RequestBody::Json(body.clone())),
                limit: LARGEST_ANSWER,
                allowed_hosts: AllowedHosts::default(),
            };
            let problem = match self.outbound.send(request, Deadline::after(WITHIN)).await {
                Ok(answer) if (200..300).contains(&answer.status) => return Ok(()),
                Ok(answer) => Error::internal(format!("the address of alerts answered {}", answer.status)),
                Err(error) => error.into(),
            };
            if !backoff.pause().await {
                return Err(problem);
            }
        }
    }
}

fn signature(key: &SecretString, id: &str, seconds: i64, body: &str) -> Result<String> {
    webhooks::standard_signature(key, id, seconds, body.as_bytes())
        .ok_or_else(|| Error::internal("the key of alerts is not base64 behind whsec_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test vector of the Standard Webhooks libraries.
    #[test]
    fn a_signature_is_that_of_standard_webhooks() {
        let key = SecretString::from("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let signed = signature(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, "{\"test\": 2432232314}").unwrap();
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert!(signature(&SecretString::from("whsec_!"), "a", 1, "").is_err());
    }
}
