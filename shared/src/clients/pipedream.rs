//! Pipedream Connect: reads actions and accounts, and runs actions.
//!
//! Runs are not idempotent, so a run that may have acted is never retried here, unlike in Pipedream's SDKs. A 200 may contain an
//! error, in `os[]` or `error`.

mod components;
mod triggers;

pub use components::Component;
pub use triggers::{NewTrigger, PipedreamTrigger, TriggerWebhook};

use reqwest::Method;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use super::{
    Error, Failure, Reason, UpstreamService,
    bearer::{Bearer, TokenResponse},
    http_client::{Retry, of_platform, read_json, segment, send, send_json, unless_404},
};
use crate::{Deadline, models::OrganizationId};

/// Connected accounts per page, and pages read; no organization has more.
const PAGE: usize = 100;
const MOST_PAGES: usize = 20;

#[derive(Clone)]
pub struct Pipedream {
    http: reqwest::Client,
    base_url: String,
    bearer: Bearer,
}

#[derive(Clone, Deserialize)]
pub struct Project {
    client_id: String,
    client_secret: SecretString,
    project_id: String,
    /// `production` or `development`.
    environment: String,
}

struct Call {
    method: Method,
    path: String,
    body: Option<Value>,
}

/// The parts of an action needed to create a tool.
#[derive(Debug, Clone, Deserialize)]
pub struct PipedreamComponent {
    pub key: String,
    pub version: String,
    #[serde(default)]
    configurable_props: Vec<Prop>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Prop {
    pub name: String,
    /// `string`, `integer[]`, `app`, `$.discord.channel`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// Slug of the app, for a prop that takes an account.
    app: Option<String>,
    optional: Option<bool>,
    hidden: Option<bool>,
    disabled: Option<bool>,
    default: Option<Value>,
}

impl Prop {
    pub fn is_account(&self) -> bool {
        self.kind == "app"
    }

    pub fn is_required(&self) -> bool {
        let is_set = |flag: Option<bool>| flag == Some(true);
        let by_platform = ["alert", "dir", "data_store"].contains(&self.kind.as_str())
            || self.kind.starts_with("$.interface.")
            || self.kind.starts_with("$.service.");
        let left_out = is_set(self.optional) || is_set(self.hidden) || is_set(self.disabled);
        !(by_platform || left_out || self.is_account() || self.default.as_ref().is_some_and(|value| !value.is_null()))
    }
}

impl PipedreamComponent {
    /// The prop for the connected account; not always the app's slug (`googleSheets` for `google_sheets`).
    pub fn app_prop(&self) -> Option<&str> {
        self.configurable_props.iter().find(|prop| prop.is_account()).map(|prop| prop.name.as_str())
    }

    /// Slug of the action's app, if known.
    pub fn app(&self) -> Option<&str> {
        self.configurable_props.iter().find(|prop| prop.is_account())?.app.as_deref()
    }

    pub fn props(&self) -> &[Prop] {
        &self.configurable_props
    }
}

#[derive(Deserialize)]
struct Page<T> {
    data: Vec<T>,
    #[serde(default)]
    page_info: PageInfo,
}

#[derive(Default, Deserialize)]
struct PageInfo {
    end_cursor: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Account {
    /// `apn_…`
    pub id: String,
    /// The service's name for it; may be empty.
    #[serde(default, deserialize_with = "text_or_null")]
    pub name: String,
    #[serde(default, deserialize_with = "slug")]
    pub app: String,
    healthy: Option<bool>,
    dead: Option<bool>,
    /// ISO 8601.
    #[serde(default, deserialize_with = "text_or_null")]
    pub created_at: String,
}

impl Account {
    pub fn works(&self) -> bool {
        self.healthy != Some(false) && self.dead != Some(true)
    }
}

fn text_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn slug<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    struct App {
        #[serde(default)]
        name_slug: String,
    }
    Ok(Option::<App>::deserialize(deserializer)?.map(|app| app.name_slug).unwrap_or_default())
}

#[derive(Debug, Deserialize)]
pub struct ConnectLink {
    #[serde(rename = "connect_link_url")]
    pub url: String,
    /// ISO 8601.
    #[serde(default)]
    pub expires_at: String,
}

#[derive(Debug)]
pub struct Run<'a> {
    pub action: &'a str,
    pub version: Option<&'a str>,
    pub dynamic_props_id: Option<&'a str>,
    pub configured_props: Map<String, Value>,
}

#[derive(Debug)]
pub enum Finished {
    Done { result: Value, exports: Value },
    Failed(String),
}

impl Pipedream {
    pub fn new(http: reqwest::Client, base_url: impl Into<String>) -> Self {
        Self { http, base_url: base_url.into(), bearer: Bearer::default() }
    }

    /// `None`: no such action.
    pub async fn action(
        &self,
        project: &Project,
        key: &str,
        deadline: Deadline,
    ) -> Result<Option<PipedreamComponent>, Error> {
        self.look_up(project, key, deadline).await
    }

    async fn look_up<T: DeserializeOwned>(
        &self,
        project: &Project,
        key: &str,
        deadline: Deadline,
    ) -> Result<Option<T>, Error> {
        #[derive(Deserialize)]
        struct Answer<T> {
            data: T,
        }
        let call = Call { method: Method::GET, path: format!("actions/{}", segment(key)), body: None };
        let answer = unless_404(self.send::<Answer<T>>(project, &call, Retry::Harmless, deadline).await)?;
        Ok(answer.map(|answer| answer.data))
    }

    pub async fn accounts(
        &self,
        project: &Project,
        organization: OrganizationId,
        deadline: Deadline,
    ) -> Result<Vec<Account>, Error> {
        let path = format!("accounts?external_user_id={organization}");
        let (accounts, is_complete) = self.list(project, &path, deadline).await?;
        if is_complete {
            return Ok(accounts);
        }
        let problem = format!("more than {} accounts are connected", PAGE * MOST_PAGES);
        Err(Error::new(UpstreamService::Pipedream, Failure::Undecodable(problem)))
    }

    /// The items of a list, and whether these are all: at most [`MOST_PAGES`] are read.
    async fn list<T: DeserializeOwned>(
        &self,
        project: &Project,
        path: &str,
        deadline: Deadline,
    ) -> Result<(Vec<T>, bool), Error> {
        let (mut items, mut after) = (Vec::new(), String::new());
        for _page in 0..MOST_PAGES {
            let call = Call { method: Method::GET, path: format!("{path}&limit={PAGE}{after}"), body: None };
            let Page { data, page_info } = self.send::<Page<T>>(project, &call, Retry::Harmless, deadline).await?;
            let is_full = data.len() >= PAGE;
            items.extend(data);
            match page_info.end_cursor.filter(|_| is_full) {
                Some(cursor) => after = format!("&after={}", segment(&cursor)),
                None => return Ok((items, true)),
            }
        }
        Ok((items, false))
    }

    /// `None`: the organization has no such account.
    pub async fn account(
        &self,
        project: &Project,
        organization: OrganizationId,
        account: &str,
        deadline: Deadline,
    ) -> Result<Option<Account>, Error> {
        let accounts = self.accounts(project, organization, deadline).await?;
        Ok(accounts.into_iter().find(|connected| connected.id == account))
    }

    /// Creates a page to connect an account of an app; the user returns to `redirect`.
    pub async fn connect_link(
        &self,
        project: &Project,
        organization: OrganizationId,
        app: &str,
        redirect: Option<&str>,
        deadline: Deadline,
    ) -> Result<ConnectLink, Error> {
        let mut body = Map::from_iter([("external_user_id".to_owned(), organization.to_string().into())]);
        body.extend(redirect.map(|url| ("success_redirect_uri".to_owned(), url.into())));
        let call = Call { method: Method::POST, path: "tokens".into(), body: Some(Value::Object(body)) };
        let link: ConnectLink = self.send(project, &call, Retry::Harmless, deadline).await?;
        let separator = if link.url.contains('?') { '&' } else { '?' };
        Ok(ConnectLink { url: format!("{}{separator}app={}", link.url, segment(app)), ..link })
    }

    /// Deletes an account; a missing one is fine. The caller must check its owner.
    pub async fn delete_account(&self, project: &Project, account: &str, deadline: Deadline) -> Result<(), Error> {
        let call = Call { method: Method::DELETE, path: format!("accounts/{}", segment(account)), body: None };
        unless_404(self.send_raw(project, &call, Retry::Harmless, deadline).await).map(drop)
    }

    /// Runs an action with an account of the organization, which is the external user.
    pub async fn run(
        &self,
        project: &Project,
        organization: OrganizationId,
        run: Run<'_>,
        deadline: Deadline,
    ) -> Result<Finished, Error> {
        let mut body = json!({
            "id": run.action,
            "external_user_id": organization.to_string(),
            "configured_props": run.configured_props,
        });
        if let Value::Object(body) = &mut body {
            body.extend(run.version.map(|version| ("version".to_owned(), version.into())));
            body.extend(run.dynamic_props_id.map(|id| ("dynamic_props_id".to_owned(), id.into())));
        }
        let call = Call { method: Method::POST, path: "actions/run".into(), body: Some(body) };
        let mut answer: Map<String, Value> = self.send(project, &call, Retry::NeverProcessed, deadline).await?;
        if let Some(message) = reported_error(&answer) {
            return Ok(Finished::Failed(message));
        }
        let exports = answer.remove("exports").unwrap_or_default();
        let result = match answer.remove("ret").unwrap_or_default() {
            Value::Null => exports.get("$return_value").cloned().unwrap_or_default(),
            value => value,
        };
        Ok(Finished::Done { result, exports })
    }

    async fn send<T: DeserializeOwned>(
        &self,
        project: &Project,
        call: &Call,
        retry: Retry,
        deadline: Deadline,
    ) -> Result<T, Error> {
        read_json(UpstreamService::Pipedream, &self.send_raw(project, call, retry, deadline).await?)
    }

    async fn send_raw(
        &self,
        project: &Project,
        call: &Call,
        retry: Retry,
        deadline: Deadline,
    ) -> Result<Vec<u8>, Error> {
        self.authorized(project, call, retry, deadline).await.map_err(of_platform)
    }

    /// Sends a call with the cached token. After a 401, which means that nothing was done, a revoked token is replaced, once.
    async fn authorized(
        &self,
        project: &Project,
        call: &Call,
        retry: Retry,
        deadline: Deadline,
    ) -> Result<Vec<u8>, Error> {
        let token = self.token(project, deadline).await?;
        let sent = send(UpstreamService::Pipedream, self.request(project, call, &token), retry, deadline).await;
        match sent {
            Err(error) if error.status() == Some(401) => {}
            other => return other,
        }
        self.bearer.forget(&token).await;
        let token = self.token(project, deadline).await?;
        send(UpstreamService::Pipedream, self.request(project, call, &token), retry, deadline).await
    }

    fn request(&self, project: &Project, call: &Call, token: &SecretString) -> reqwest::RequestBuilder {
        let url = format!("{}/v1/connect/{}/{}", self.base_url, project.project_id, call.path);
        let request = self
            .http
            .request(call.method.clone(), url)
            .bearer_auth(token.expose_secret())
            .header("x-pd-environment", &project.environment);
        match &call.body {
            Some(body) => request.json(body),
            None => request,
        }
    }

    async fn token(&self, project: &Project, deadline: Deadline) -> Result<SecretString, Error> {
        let ask = async || {
            let request = self
                .http
                .post(format!("{}/v1/oauth/token", self.base_url))
                .header("x-pd-environment", &project.environment)
                .json(&json!({
                    "grant_type": "client_credentials",
                    "client_id": project.client_id,
                    "client_secret": project.client_secret.expose_secret(),
                }));
            let granted: TokenResponse =
                send_json(UpstreamService::Pipedream, request, Retry::Harmless, deadline).await?;
            Ok(granted)
        };
        self.bearer.token(UpstreamService::Pipedream, deadline, ask).await.map_err(|error| {
            // The token request runs no action, so no effect is possible.
            let reason = matches!(error.failure, Failure::Rejected { .. }).then_some(Reason::Credentials);
            let error = Error { acted_before: false, reason, ..error };
            if error.effect_possible() { Error { failure: Failure::Unreachable, ..error } } else { error }
        })
    }
}

/// The error inside a 200: an observation with `k` = `error` in `os`, or an `error` that is text or an object.
fn reported_error(answer: &Map<String, Value>) -> Option<String> {
    let observed = answer.get("os").and_then(Value::as_array).into_iter().flatten().find_map(|observation| {
        (observation.get("k")? == "error").then(|| {
            let error = observation.get("err").unwrap_or(observation);
            error
                .get("message")
                .or_else(|| observation.get("msg"))
                .and_then(Value::as_str)
                .unwrap_or("unknown error")
                .to_owned()
        })
    });
    observed.or_else(|| match answer.get("error")? {
        Value::Null => None,
        Value::String(message) => Some(message.clone()),
        error => Some(error.get("message").and_then(Value::as_str).unwrap_or("unknown error").to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_inside_200_is_found_wherever_it_stands() {
        let error = |answer: Value| reported_error(answer.as_object().unwrap());
        assert_eq!(
            error(json!({"os": [{"k": "console.log", "msg": "x"}, {"k": "error", "err": {"message": "no channel"}}]})),
            Some("no channel".into())
        );
        assert_eq!(error(json!({"error": "msg"})), Some("msg".into()));
        assert_eq!(error(json!({"error": {"message": "m", "attribution": "user"}})), Some("m".into()));
        assert_eq!(error(json!({"os": [{"k": "error"}]})), Some("unknown error".into()));
        assert_eq!(error(json!({"os": [], "ret": 1, "error": null})), None);
    }
}
