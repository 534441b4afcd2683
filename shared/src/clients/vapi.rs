//! VAPI: tools, assistants and calls.
//!
//! Errors have NestJS's form: `{message: string | [string], error, statusCode}`. Lists are plain arrays. A PATCH replaces each
//! named top-level field as a whole, without version or precondition, so a change of an assistant requires the agent's lease
//! ([`crate::store::Agents::acquire`]).

mod assistant_model;
mod inbound_call;
mod lists;
mod outbound_call;
pub mod variables;

pub use assistant_model::AssistantModel;
pub use inbound_call::InboundCall;
pub use outbound_call::{NotPlaced, OutboundCall, PlacedCall};

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::lists::{CLOCKS_DIFFER, List};
use super::{
    Error, Failure, UpstreamService,
    http_client::{Retry, segment, send, send_json, unless_404},
};
use crate::{
    Deadline,
    models::{CallId, CallStatus, ControlUrl, Timestamp},
};

/// Tools of a page.
const TOOLS: usize = 100;

/// The secret of an account, the platform's or an organization's own.
#[derive(Clone, Deserialize)]
pub struct Account {
    api_key: SecretString,
    /// The bearer token of VAPI's custom credential, if configured.
    pub webhook_bearer: Option<SecretString>,
}

impl Account {
    pub fn new(api_key: SecretString, webhook_bearer: Option<SecretString>) -> Self {
        Self { api_key, webhook_bearer }
    }

    pub fn to_secret(&self) -> SecretString {
        let mut secret = json!({"api_key": self.api_key.expose_secret()});
        if let (Some(bearer), Some(secret)) = (&self.webhook_bearer, secret.as_object_mut()) {
            secret.insert("webhook_bearer".into(), bearer.expose_secret().into());
        }
        SecretString::from(secret.to_string())
    }
}

#[derive(Clone)]
pub struct Vapi {
    http: reqwest::Client,
    base_url: String,
}

/// A new `apiRequest` tool: VAPI calls `url` with the model's arguments and the static `parameters`.
#[derive(Debug, Serialize)]
pub struct NewTool<'a> {
    pub name: &'a str,
    pub description: &'a str,
    pub url: &'a str,
    /// JSON schema of the arguments; VAPI requires at least one property.
    pub body: &'a Value,
    /// Hidden from the model, resolved as Liquid, merged last: `[{key, value}]`.
    pub parameters: Value,
    /// Sentences for the caller while it runs.
    pub messages: Value,
    /// 1 to 300.
    #[serde(rename = "timeoutSeconds")]
    pub timeout_seconds: u32,
}

#[derive(Debug, Clone)]
pub struct ExternalTool {
    pub id: String,
    pub object: Value,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Assistant {
    pub name: Option<String>,
    /// The owner's metadata: an object, if any.
    #[serde(default)]
    pub metadata: Value,
}

/// The parts of a number needed to store its id.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ExternalNumber {
    /// E.164, if the number has one.
    pub number: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExternalCall {
    /// Absent in a call with a transient assistant or a squad.
    pub assistant_id: Option<String>,
    pub status: Option<CallStatus>,
    #[serde(default)]
    monitor: Monitor,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Monitor {
    /// Absent if the assistant's `monitorPlan` disables control.
    control_url: Option<SecretString>,
}

impl ExternalCall {
    /// `None` also for a malformed address.
    pub fn control_url(&self) -> Option<ControlUrl> {
        self.monitor.control_url.as_ref()?.expose_secret().parse().ok()
    }
}

impl Vapi {
    pub fn new(http: reqwest::Client, base_url: impl Into<String>) -> Self {
        Self { http, base_url: base_url.into() }
    }

    /// Creates a tool. Retried only if VAPI cannot have created it; [`Error::effect_possible`] tells whether it may have.
    pub async fn create_tool(
        &self,
        account: &Account,
        tool: &NewTool<'_>,
        deadline: Deadline,
    ) -> Result<ExternalTool, Error> {
        let mut body = serde_json::to_value(tool)
            .map_err(|error| Error::because(UpstreamService::Vapi, Failure::Undecodable(error.to_string()), error))?;
        if let Value::Object(body) = &mut body {
            body.insert("type".into(), "apiRequest".into());
            body.insert("method".into(), "POST".into());
        }
        let request = self.request(account, reqwest::Method::POST, "/tool").json(&body);
        let object: Value = send_json(UpstreamService::Vapi, request, Retry::NeverProcessed, deadline).await?;
        let id = text_at(&object, "id")?;
        Ok(ExternalTool { id, object })
    }

    /// Changes a tool. `None`: VAPI has no such tool. Omits `type`, which some servers reject here.
    pub async fn update_tool(
        &self,
        account: &Account,
        id: &str,
        tool: &NewTool<'_>,
        deadline: Deadline,
    ) -> Result<Option<ExternalTool>, Error> {
        let request = self.request(account, reqwest::Method::PATCH, &format!("/tool/{}", segment(id))).json(tool);
        let changed = unless_404(send_json(UpstreamService::Vapi, request, Retry::Harmless, deadline).await)?;
        changed.map(|object| Ok(ExternalTool { id: text_at(&object, "id")?, object })).transpose()
    }

    /// The ids of the tools with the callback `url` that were created since this time, to find a tool left by a lost answer to
    /// [`Vapi::create_tool`].
    pub async fn tools_calling(
        &self,
        account: &Account,
        url: &str,
        since: Option<Timestamp>,
        deadline: Deadline,
    ) -> Result<Vec<String>, Error> {
        let since = since.map(|since| since.minus(CLOCKS_DIFFER));
        let list = List { path: "/tool", since, until: None, page: TOOLS, retry: Retry::Harmless };
        let mut calling = Vec::new();
        self.each_newest(account, list, deadline, |tool| {
            if tool.get("url").and_then(Value::as_str) == Some(url) {
                calling.push(text_at(tool, "id")?);
            }
            Ok(false)
        })
        .await?;
        Ok(calling)
    }

    /// The ids of the account's newest tools, at most a hundred.
    pub async fn newest_tool_ids(&self, account: &Account, deadline: Deadline) -> Result<Vec<String>, Error> {
        let list = List { path: "/tool", since: None, until: None, page: TOOLS, retry: Retry::Harmless };
        let mut newest = Vec::new();
        self.each_newest(account, list, deadline, |tool| {
            newest.push(text_at(tool, "id")?);
            Ok(newest.len() == TOOLS)
        })
        .await?;
        Ok(newest)
    }

    /// Deletes a tool; a missing one is fine.
    pub async fn delete_tool(&self, account: &Account, id: &str, deadline: Deadline) -> Result<(), Error> {
        let request = self.request(account, reqwest::Method::DELETE, &format!("/tool/{}", segment(id)));
        unless_404(send(UpstreamService::Vapi, request, Retry::Harmless, deadline).await).map(drop)
    }

    pub async fn accepts_credentials(&self, account: &Account, deadline: Deadline) -> Result<bool, Error> {
        let request = self.request(account, reqwest::Method::GET, "/assistant?limit=1");
        match send_json::<Vec<Value>>(UpstreamService::Vapi, request, Retry::Harmless, deadline).await {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.status(), Some(401 | 403)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The whole object of a tool. `None`: VAPI has no such tool.
    pub async fn tool(&self, account: &Account, id: &str, deadline: Deadline) -> Result<Option<Value>, Error> {
        let request = self.request(account, reqwest::Method::GET, &format!("/tool/{}", segment(id)));
        unless_404(send_json(UpstreamService::Vapi, request, Retry::Harmless, deadline).await)
    }

    /// `None`: VAPI has no such assistant.
    pub async fn assistant(&self, account: &Account, id: &str, deadline: Deadline) -> Result<Option<Assistant>, Error> {
        let request = self.request(account, reqwest::Method::GET, &format!("/assistant/{}", segment(id)));
        unless_404(send_json(UpstreamService::Vapi, request, Retry::Harmless, deadline).await)
    }

    /// `None`: VAPI has no such number.
    pub async fn phone_number(
        &self,
        account: &Account,
        id: &str,
        deadline: Deadline,
    ) -> Result<Option<ExternalNumber>, Error> {
        let request = self.request(account, reqwest::Method::GET, &format!("/phone-number/{}", segment(id)));
        unless_404(send_json(UpstreamService::Vapi, request, Retry::Harmless, deadline).await)
    }

    /// `None`: VAPI has no such assistant.
    pub async fn assistant_model(
        &self,
        account: &Account,
        id: &str,
        deadline: Deadline,
    ) -> Result<Option<AssistantModel>, Error> {
        let request = self.request(account, reqwest::Method::GET, &format!("/assistant/{}", segment(id)));
        let assistant = unless_404(send_json(UpstreamService::Vapi, request, Retry::Harmless, deadline).await)?;
        assistant.map(AssistantModel::of).transpose()
    }

    /// Replaces an assistant's model, and verifies its tools in the answer.
    pub async fn set_assistant_model(
        &self,
        account: &Account,
        id: &str,
        model: &AssistantModel,
        deadline: Deadline,
    ) -> Result<(), Error> {
        let request = self
            .request(account, reqwest::Method::PATCH, &format!("/assistant/{}", segment(id)))
            .json(&json!({ "model": model }));
        let answered = AssistantModel::of(send_json(UpstreamService::Vapi, request, Retry::Harmless, deadline).await?)?;
        if answered.has_same_tools_as(model) {
            Ok(())
        } else {
            Err(Error::new(
                UpstreamService::Vapi,
                Failure::Undecodable("the assistant's tools are not those that were sent".into()),
            ))
        }
    }

    /// `None`: VAPI has no such call.
    pub async fn call(
        &self,
        account: &Account,
        id: &CallId,
        deadline: Deadline,
    ) -> Result<Option<ExternalCall>, Error> {
        let request = self.request(account, reqwest::Method::GET, &format!("/call/{}", segment(id.as_str())));
        match send_json(UpstreamService::Vapi, request, Retry::Harmless, deadline).await {
            Ok(call) => Ok(Some(call)),
            // VAPI answers 400 to an id that is no UUID.
            Err(error) if matches!(error.status(), Some(400 | 404)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn request(&self, account: &Account, method: reqwest::Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base_url)).bearer_auth(account.api_key.expose_secret())
    }
}

/// The label of a tool's latest version, for pinning; `None` if VAPI keeps no versions.
pub fn latest_version(tool: &Value) -> Option<&str> {
    tool.get("latestVersion").and_then(Value::as_str)
}

fn text_at(object: &Value, name: &str) -> Result<String, Error> {
    let text = object.get(name).and_then(Value::as_str).map(str::to_owned);
    text.ok_or_else(|| Error::new(UpstreamService::Vapi, Failure::Undecodable(format!("{name} is missing"))))
}
