//! Live call control: messages to a call that is going on, by POST to its control URL.
//!
//! ```json
//! {"type": "transfer", "destination": {"type": "number", "number": "+1…", "transferPlan"?}}
//! {"type": "transfer", "destination": {"type": "sip", "sipUri": "sip:…", "transferPlan"?}}
//! {"type": "handoff", "destination": {"type": "assistant", "assistantId": "…"}}
//! {"type": "add-message", "message": {"role": "system", "content": "…"}, "triggerResponseEnabled": false}
//! ```
//!
//! VAPI documents no answer, so any 2xx counts as accepted. The endpoint answers only while the call's media is connected; a 404
//! or a failed connection means too early or too late ([`NotAccepted::NotThere`]), and the caller decides whether to retry. Not
//! verified against the live service: the form `assistantId` for an existing assistant (VAPI documents it only for its handoff
//! tool), and the omission of `contextEngineeringPlan` (its form differs between documentation and OpenAPI document).
//!
//! Messages go only to `*.vapi.ai` over https and to configured hosts, regardless of the control URL.

use std::sync::Arc;

use reqwest::Url;
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Error, Failure, UpstreamService,
    http_client::{Retry, send},
    outbound::OpenHosts,
};
use crate::{
    Deadline,
    models::{ControlUrl, E164},
};

/// The domain of VAPI's live calls; the host names vary.
const VAPIS_HOSTS: &str = ".vapi.ai";

#[derive(Clone)]
pub struct CallControl {
    http: reqwest::Client,
    hosts: Arc<OpenHosts>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Destination<'a> {
    Number {
        number: &'a E164,
    },
    Sip {
        #[serde(rename = "sipUri")]
        sip_uri: &'a str,
    },
}

/// A destination with its transfer plan; without one the transfer is blind.
#[derive(Serialize)]
struct Planned<'a> {
    #[serde(flatten)]
    destination: &'a Destination<'a>,
    #[serde(rename = "transferPlan", skip_serializing_if = "Option::is_none")]
    plan: Option<Value>,
}

#[derive(Debug)]
pub enum NotAccepted {
    /// The call is over, or its media is not connected yet. Nothing happened.
    NotThere(Error),
    /// Declined by VAPI or by our guard. Nothing happened.
    Declined(Error),
    /// The message may have been executed.
    Unknown(Error),
}

impl NotAccepted {
    fn of(error: Error) -> Self {
        if error.effect_possible() {
            return Self::Unknown(error);
        }
        match error.failure {
            Failure::Unreachable | Failure::Rejected { status: 404 | 410, .. } => Self::NotThere(error),
            _ => Self::Declined(error),
        }
    }

    pub const fn error(&self) -> &Error {
        match self {
            Self::NotThere(error) | Self::Declined(error) | Self::Unknown(error) => error,
        }
    }

    pub fn into_error(self) -> Error {
        match self {
            Self::NotThere(error) | Self::Declined(error) | Self::Unknown(error) => error,
        }
    }
}

impl CallControl {
    /// `hosts` (`name` or `name:port`) are allowed beside VAPI's own, also over http.
    pub fn new(http: reqwest::Client, hosts: Vec<String>) -> Self {
        Self { http, hosts: Arc::new(OpenHosts(hosts)) }
    }

    /// Transfers the call away from VAPI. With `briefing`, VAPI first calls the destination and reads it out; without, the
    /// transfer is blind. VAPI announces the transfer to the caller in its own words.
    pub async fn transfer(
        &self,
        call: &ControlUrl,
        destination: &Destination<'_>,
        briefing: Option<&str>,
        deadline: Deadline,
    ) -> Result<(), NotAccepted> {
        let plan = briefing.map(|briefing| json!({"mode": "warm-transfer-say-message", "message": briefing}));
        let destination = Planned { destination, plan };
        self.post(call, &json!({"type": "transfer", "destination": destination}), deadline).await
    }

    /// Hands the call to another VAPI assistant, with the conversation so far.
    pub async fn handoff(&self, call: &ControlUrl, assistant_id: &str, deadline: Deadline) -> Result<(), NotAccepted> {
        let destination = json!({"type": "assistant", "assistantId": assistant_id});
        self.post(call, &json!({"type": "handoff", "destination": destination}), deadline).await
    }

    /// Adds a system message to the conversation. `answers`: the model answers at once.
    pub async fn add_message(
        &self,
        call: &ControlUrl,
        content: &str,
        answers: bool,
        deadline: Deadline,
    ) -> Result<(), NotAccepted> {
        let message = json!({
            "type": "add-message",
            "message": {"role": "system", "content": content},
            "triggerResponseEnabled": answers,
        });
        self.post(call, &message, deadline).await
    }

    /// Retried only if VAPI cannot have acted.
    async fn post(&self, call: &ControlUrl, message: &Value, deadline: Deadline) -> Result<(), NotAccepted> {
        let url = self.address(call).map_err(NotAccepted::Declined)?;
        let request = self.http.post(url).json(message);
        send(UpstreamService::CallControl, request, Retry::NeverProcessed, deadline)
            .await
            .map(drop)
            .map_err(NotAccepted::of)
    }

    /// The control URL, if its host is allowed.
    fn address(&self, call: &ControlUrl) -> Result<Url, Error> {
        let refused = |why: &str| Error::new(UpstreamService::CallControl, Failure::Refused(why.into()));
        let url =
            Url::parse(call.expose()).map_err(|_not_a_url| refused("the call's control URL is not an address"))?;
        let vapis = url.scheme() == "https"
            && url.port().is_none()
            && url.host_str().is_some_and(|host| host.ends_with(VAPIS_HOSTS));
        if vapis || self.hosts.allows(&url) {
            Ok(url)
        } else {
            Err(refused("the call's control URL is at a host that is not allowed; CONTROL_HOSTS adds one"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(hosts: &[&str], url: &str) -> bool {
        let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        let control = CallControl::new(super::super::http_client().unwrap(), hosts);
        control.address(&url.parse().unwrap()).is_ok()
    }

    #[test]
    fn messages_go_to_vapi_and_to_configured_hosts_only() {
        for good in [
            "https://phone-call-websocket.aws-us-west-2-backend-production3.vapi.ai/c/control",
            "https://aws-us-west-2-production1-phone-call-websocket.VAPI.ai/c/control",
        ] {
            assert!(allowed(&[], good), "{good}");
        }
        for bad in [
            "http://x.vapi.ai/c/control",
            "https://x.vapi.ai:8443/c/control",
            "https://vapi.ai/c/control",
            "https://evil-vapi.ai/c/control",
            "https://x.vapi.ai.evil.example/c/control",
            "https://x.vapi.ai./c/control",
            "https://evil.example/x.vapi.ai/control",
            "http://127.0.0.1:4501/c/control",
        ] {
            assert!(!allowed(&[], bad), "{bad}");
        }
        assert!(allowed(&["127.0.0.1:4501"], "http://127.0.0.1:4501/c/control"));
        assert!(!allowed(&["127.0.0.1:4501"], "http://127.0.0.1:4502/c/control"));
        assert!(allowed(&["calls.example.com"], "https://calls.example.com/c/control"));
    }
}
