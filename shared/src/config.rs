//! Configuration, read from the environment once, when the process starts.

use std::{env, fmt::Display, str::FromStr, time::Duration};

use aws_credential_types::Credentials;

/// A variable that is missing or cannot be used; names the variable.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("environment variable {0} is required")]
    Missing(&'static str),
    #[error("environment variable {name}: {problem}")]
    Unusable { name: &'static str, problem: String },
}

/// Where AWS is, and who we are there.
#[derive(Debug, Clone)]
pub struct Aws {
    pub region: String,
    /// `AWS_ENDPOINT_URL`: a local AWS; absent on AWS itself.
    pub endpoint_url: Option<String>,
    pub credentials: Credentials,
}

impl Aws {
    /// Lambda always sets these; reading them by hand saves aws-config's 3 ms of CPU at every cold start
    /// (docs/adr/0002-lean-aws-client.md).
    pub fn from_env() -> Result<Self, Error> {
        Ok(Self {
            region: optional("AWS_REGION")
                .or_else(|| optional("AWS_DEFAULT_REGION"))
                .ok_or(Error::Missing("AWS_REGION"))?,
            endpoint_url: optional("AWS_ENDPOINT_URL"),
            credentials: Credentials::new(
                required("AWS_ACCESS_KEY_ID")?,
                required("AWS_SECRET_ACCESS_KEY")?,
                optional("AWS_SESSION_TOKEN"),
                None,
                "environment",
            ),
        })
    }
}

/// Prefix of all table names (`TABLE_PREFIX`): `switchboard-` makes `switchboard-tools`.
pub fn table_prefix() -> Result<String, Error> {
    required("TABLE_PREFIX")
}

/// Base address under which VAPI reaches this API (`PUBLIC_URL`), without a slash at the end.
pub fn public_url() -> Result<String, Error> {
    Ok(required("PUBLIC_URL")?.trim_end_matches('/').to_owned())
}

/// Names or ARNs of the platform's secrets in Secrets Manager; their shapes are in [`crate::clients::secrets`].
pub fn tool_token_secret() -> Result<String, Error> {
    required("TOOL_TOKEN_SECRET")
}

pub fn vapi_secret() -> Result<String, Error> {
    required("VAPI_SECRET")
}

pub fn pipedream_secret() -> Result<String, Error> {
    required("PIPEDREAM_SECRET")
}

/// The platform's LLM (`LLM_SECRET`): [`crate::clients::llm`].
pub fn llm_secret() -> Result<String, Error> {
    required("LLM_SECRET")
}

/// The model that is asked if neither the account nor what is run names one (`LLM_MODEL`, `openrouter/auto`).
pub fn llm_model() -> String {
    optional("LLM_MODEL").unwrap_or_else(|| "openrouter/auto".to_owned())
}

/// What the names of the phone numbers' Twilio secrets begin with (`TWILIO_SECRET_PREFIX`); the phone number's id follows.
pub fn twilio_secret_prefix() -> Result<String, Error> {
    required("TWILIO_SECRET_PREFIX")
}

/// The queue of tool runs that `run-tool` carries out (`RUNS_QUEUE_URL`).
pub fn runs_queue_url() -> Result<String, Error> {
    required("RUNS_QUEUE_URL")
}

/// The queue of automations' runs that `run-loop` carries on (`AUTOMATION_RUNS_QUEUE_URL`).
pub fn automation_runs_queue_url() -> Result<String, Error> {
    required("AUTOMATION_RUNS_QUEUE_URL")
}

/// How long the start of a call waits for its tools before what there is, is told (`ON_CALL_START_SECONDS`, 3).
pub fn on_call_start() -> Result<Duration, Error> {
    parsed("ON_CALL_START_SECONDS", 3).map(Duration::from_secs)
}

/// The queue that wakes `settle` before its schedule does (`SETTLE_QUEUE_URL`).
pub fn settle_queue_url() -> Result<String, Error> {
    required("SETTLE_QUEUE_URL")
}

/// What the names of the secrets with organizations' own keys begin with (`ORGANIZATION_SECRET_PREFIX`); service, organization
/// and key follow: [`crate::accounts`].
pub fn organization_secret_prefix() -> Result<String, Error> {
    required("ORGANIZATION_SECRET_PREFIX")
}

/// Base addresses of the vendors; other ones than the defaults are for regions and local use.
pub fn vapi_url() -> String {
    base_url("VAPI_URL", "https://api.vapi.ai")
}

pub fn twilio_url() -> String {
    base_url("TWILIO_URL", "https://api.twilio.com")
}

pub fn pipedream_url() -> String {
    base_url("PIPEDREAM_URL", "https://api.pipedream.com")
}

/// Hosts (`name` or `name:port`) that the outbound guard lets through although they are private, and by plain http
/// (`OUTBOUND_OPEN_HOSTS`, separated by commas). Empty on AWS.
pub fn outbound_open_hosts() -> Vec<String> {
    hosts("OUTBOUND_OPEN_HOSTS")
}

/// Hosts (`name` or `name:port`) beside VAPI's own that live calls may be controlled at, also by plain http
/// (`CONTROL_HOSTS`, separated by commas). Empty on AWS.
pub fn control_hosts() -> Vec<String> {
    hosts("CONTROL_HOSTS")
}

/// For how long the same effect in the same call is answered from the record (`IDEMPOTENCY_WINDOW_SECONDS`, 120).
pub fn idempotency_window() -> Result<Duration, Error> {
    parsed("IDEMPOTENCY_WINDOW_SECONDS", 120).map(Duration::from_secs)
}

/// How long a tool's history is kept (`HISTORY_DAYS`, 30).
pub fn history() -> Result<Duration, Error> {
    parsed::<u64>("HISTORY_DAYS", 30).map(|days| Duration::from_secs(days * 24 * 60 * 60))
}

/// `AWS_LAMBDA_LOG_LEVEL`, INFO unless set.
pub fn log_level() -> Result<tracing::Level, Error> {
    parsed("AWS_LAMBDA_LOG_LEVEL", tracing::Level::INFO)
}

fn base_url(name: &'static str, default: &str) -> String {
    optional(name).unwrap_or_else(|| default.to_owned()).trim_end_matches('/').to_owned()
}

fn hosts(name: &'static str) -> Vec<String> {
    optional(name)
        .map(|hosts| {
            hosts.split(',').map(|host| host.trim().to_ascii_lowercase()).filter(|host| !host.is_empty()).collect()
        })
        .unwrap_or_default()
}

fn parsed<T: FromStr<Err: Display>>(name: &'static str, default: T) -> Result<T, Error> {
    let Some(text) = optional(name) else { return Ok(default) };
    text.parse().map_err(|error: T::Err| Error::Unusable { name, problem: error.to_string() })
}

fn required(name: &'static str) -> Result<String, Error> {
    optional(name).ok_or(Error::Missing(name))
}

/// The one place that reads the environment. An empty variable counts as absent: templates cannot leave one out.
#[expect(clippy::disallowed_methods, reason = "this is the place the rule points to")]
fn optional(name: &'static str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.trim().is_empty())
}
