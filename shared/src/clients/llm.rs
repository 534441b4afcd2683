//! LLM client for OpenAI's chat completions, the protocol of OpenRouter, OpenAI, vLLM and many gateways.
//!
//! `POST <base_url>/chat/completions` with an API key, or with a token from OAuth client credentials. A generation has no effect
//! beyond its cost, so any transient failure is retried. An error inside a 200 counts like an HTTP status of its code. Errors
//! never contain the conversation or the answer.

mod account;
mod answer;
mod conversation;
mod events;
#[doc(hidden)]
pub mod fuzzing;
mod missing_cost;
mod oauth;
mod refusal;
mod rejected_parameters;
mod streaming;

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::{Stream, TryStreamExt};
use reqwest::{
    RequestBuilder, Response,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue},
};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::{
    account::{Account, Credentials, OPENROUTER},
    answer::{Completion, Finish, ToolCall, Usage},
    streaming::Delta,
};
use self::{
    account::{Key, TokenOwner, Whose},
    missing_cost::MissingCost,
    refusal::Private,
    rejected_parameters::RejectedByModel,
    streaming::{Opened, Reading},
};
use super::{
    Error, Failure, ModelParameter, Outbound, UpstreamService,
    bearer::Bearer,
    http_client::{Retry, of_platform, read, retrying},
    outbound,
};
use crate::Deadline;

/// Time until a stream begins: some models think for a minute first.
const ATTEMPT: Duration = Duration::from_secs(120);
/// Time for a whole answer: 8,000 tokens of a slow model.
const WHOLE_ATTEMPT: Duration = Duration::from_secs(240);

/// Bytes: twice the longest answers of models, including their reasoning.
const LARGEST_ANSWER: usize = 4 * 1024 * 1024;

#[derive(Clone)]
pub struct Llm {
    http: reqwest::Client,
    outbound: Outbound,
    /// One token per account with client credentials.
    bearers: Arc<Mutex<HashMap<TokenOwner, Bearer>>>,
    /// Parameters that models reject, for the life of the process.
    without: RejectedByModel,
    missing_cost: Arc<MissingCost>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageRole {
    System,
    User,
    Assistant,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub role: MessageRole,
    pub content: String,
}

impl Message {
    pub fn system(content: impl Into<String>) -> Self {
        Self { role: MessageRole::System, content: content.into() }
    }

    pub fn user(content: impl Into<String>) -> Self {
        Self { role: MessageRole::User, content: content.into() }
    }

    /// Some services reject an empty message, although models send them.
    pub fn assistant(content: impl Into<String>) -> Self {
        let content: String = content.into();
        let content = if content.trim().is_empty() { "(no answer)".to_owned() } else { content };
        Self { role: MessageRole::Assistant, content }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct CompletionRequest<'a> {
    /// Defaults to the account's model.
    pub model: Option<&'a str>,
    pub messages: &'a [Message],
    /// 0 to 2.
    pub temperature: f64,
    pub max_tokens: Option<u32>,
    /// Functions for native function calls, in wire format: `{"type": "function", "function": {"name", "description",
    /// "parameters"}}`.
    pub tools: &'a [Value],
}

impl<'a> CompletionRequest<'a> {
    pub const fn new(messages: &'a [Message]) -> Self {
        Self { model: None, messages, temperature: 0.0, max_tokens: None, tools: &[] }
    }
}

#[declare::skip_serializing_none]
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Cow<'a, [Message]>,
    temperature: Option<f64>,
    max_tokens: Option<u32>,
    /// The name of `max_tokens` for OpenAI's reasoning models.
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "<[Value]>::is_empty")]
    tools: &'a [Value],
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
}

/// OpenRouter always reports usage; OpenAI and vLLM only on request.
#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

impl<'a> Body<'a> {
    fn of(request: &CompletionRequest<'a>, account: &'a Account, streams: bool, without: &RejectedByModel) -> Self {
        let CompletionRequest { model, messages, temperature, max_tokens, tools } = *request;
        let model = model.unwrap_or(&account.model);
        let without = without.of(account, model);
        let takes = |parameter| !without.contains(&parameter);
        let max_tokens = max_tokens.filter(|_| takes(ModelParameter::MaxTokens));
        Self {
            model,
            messages: conversation::in_order(messages),
            temperature: takes(ModelParameter::Temperature).then_some(temperature),
            max_tokens: max_tokens.filter(|_| takes(ModelParameter::MaxTokensByThatName)),
            max_completion_tokens: max_tokens.filter(|_| !takes(ModelParameter::MaxTokensByThatName)),
            tools,
            stream: streams.then_some(true),
            stream_options: (streams && takes(ModelParameter::StreamOptions))
                .then_some(StreamOptions { include_usage: true }),
        }
    }
}

impl Llm {
    /// `http` is for the platform's account, `outbound` for addresses that organizations chose.
    pub fn new(http: reqwest::Client, outbound: Outbound) -> Self {
        Self {
            http,
            outbound,
            bearers: Arc::default(),
            without: RejectedByModel::default(),
            missing_cost: Arc::default(),
        }
    }

    /// The model's whole answer, after retries within `deadline`.
    ///
    /// # Errors
    /// [`Error::transient`], [`Error::retry_after`] and [`Error::reason`] describe the remedy. [`Failure::Undecodable`] for a
    /// success without an answer; it names the missing part.
    pub async fn complete(
        &self,
        account: &Account,
        request: &CompletionRequest<'_>,
        deadline: Deadline,
    ) -> Result<Completion, Error> {
        loop {
            let body = Body::of(request, account, false, &self.without);
            match self.complete_with(account, &body, deadline).await {
                Err(refused) if self.without.learn(account, &body, &refused) => {}
                answered => {
                    let answered = answered.map_err(|error| owned(error, account.is_own()));
                    return answered.inspect(|answer| self.missing_cost.check(answer.usage, account.is_own()));
                }
            }
        }
    }

    async fn complete_with(&self, account: &Account, body: &Body<'_>, deadline: Deadline) -> Result<Completion, Error> {
        let prepared = &self.prepare(account, body)?.header(ACCEPT, "application/json");
        // A timed-out answer is billed. Another attempt in the little time left would be billed in vain.
        let begin = deadline.reserving((deadline.remaining() / 4).min(ATTEMPT / 2));
        let ask = |bearer: SecretString| async move {
            let private = Private { messages: &body.messages, secret: &bearer };
            retrying(Retry::Harmless, begin, || async {
                let limit = deadline.at_most(WHOLE_ATTEMPT);
                let response = attempt(prepared, limit.remaining(), &private).await?;
                whole(response, body.model, &private).await
            })
            .await
        };
        self.authorized(account, deadline, ask).await
    }

    /// The model's answer as a stream. Retries end with the first event; later errors are items of the stream, after the texts
    /// received so far. A connection closed before the end of the answer is an error.
    ///
    /// # Errors
    /// As [`Llm::complete`], also for the items.
    pub async fn stream(
        &self,
        account: &Account,
        request: &CompletionRequest<'_>,
        deadline: Deadline,
    ) -> Result<impl Stream<Item = Result<Delta, Error>> + Send + use<>, Error> {
        let opened = loop {
            let body = Body::of(request, account, true, &self.without);
            match self.open_with(account, &body, deadline).await {
                Err(refused) if self.without.learn(account, &body, &refused) => {}
                opened => break opened.map_err(|error| owned(error, account.is_own()))?,
            }
        };
        let (missing_cost, is_own) = (self.missing_cost.clone(), account.is_own());
        let deltas = streaming::deltas(opened).map_err(move |error| owned(error, is_own));
        Ok(deltas.inspect_ok(move |delta| {
            if let Delta::Done(answer) = delta {
                missing_cost.check(answer.usage, is_own);
            }
        }))
    }

    async fn open_with(&self, account: &Account, body: &Body<'_>, deadline: Deadline) -> Result<Opened, Error> {
        let prepared = &self.prepare(account, body)?.header(ACCEPT, "text/event-stream");
        let open = |bearer: SecretString| async move {
            let private = Private { messages: &body.messages, secret: &bearer };
            retrying(Retry::Harmless, deadline, || async {
                let begun = tokio::time::timeout(ATTEMPT, attempt(prepared, deadline.remaining(), &private)).await;
                let response =
                    begun.map_err(|silence| Error::because(UpstreamService::Llm, Failure::NoAnswer, silence))??;
                if streaming::is_json(&response) {
                    return whole(response, body.model, &private).await.map(Box::new).map(Opened::Whole);
                }
                Ok(Opened::Events(Box::new(Reading::new(response, private.bytes(), body.model))))
            })
            .await
        };
        self.authorized(account, deadline, open).await
    }

    fn prepare(&self, account: &Account, body: &impl Serialize) -> Result<RequestBuilder, Error> {
        let body = serde_json::to_vec(body)
            .map_err(|error| Error::because(UpstreamService::Llm, Failure::Undecodable("the request".into()), error))?;
        let url = format!("{}/chat/completions", account.base_url);
        let request = self.post(account, "base_url", &url)?;
        Ok(request.header(CONTENT_TYPE, "application/json").body(body))
    }

    /// A POST by the client permitted for the account's addresses.
    fn post(&self, account: &Account, field: &str, url: &str) -> Result<RequestBuilder, Error> {
        match account.whose {
            Whose::Platform => Ok(self.http.post(url)),
            Whose::Organization(_) => self
                .outbound
                .post(url)
                .map_err(|why| refused(field, Error::new(UpstreamService::Llm, Failure::Refused(why)))),
        }
    }

    /// Calls `ask` with the account's key or token. A token may be revoked early: after a 401 it is replaced, once.
    async fn authorized<T, F: Future<Output = Result<T, Error>>>(
        &self,
        account: &Account,
        deadline: Deadline,
        ask: impl Fn(SecretString) -> F,
    ) -> Result<T, Error> {
        let client = match &account.key {
            Key::Api { api_key } => return ask(api_key.clone()).await,
            Key::Client(client) => client,
        };
        let bearer = self.bearer_of(account);
        let token = async || {
            let request = || self.post(account, "token_url", &client.token_url);
            bearer.token(UpstreamService::Llm, deadline, || oauth::grant(request, client, deadline)).await
        };
        let first = token().await?;
        match ask(first.clone()).await {
            Err(error) if error.status() == Some(401) => {}
            other => return other,
        }
        bearer.forget(&first).await;
        ask(token().await?).await
    }

    /// The account's token cache; accounts never share one.
    fn bearer_of(&self, account: &Account) -> Bearer {
        let mut bearers = self.bearers.lock().unwrap_or_else(PoisonError::into_inner);
        let holder = account.holder();
        if let Some(bearer) = bearers.get(&holder) {
            return bearer.clone();
        }
        bearers.retain(|_, bearer| bearer.is_live());
        bearers.entry(holder).or_default().clone()
    }
}

fn owned(error: Error, is_own: bool) -> Error {
    if is_own { error } else { of_platform(error) }
}

/// Sends one request with authorization, and returns a successful response with its body unread.
async fn attempt(prepared: &RequestBuilder, limit: Duration, private: &Private<'_>) -> Result<Response, Error> {
    let request = prepared.try_clone().ok_or_else(|| unusable("a streamed request cannot be sent"))?;
    let request = request.header(AUTHORIZATION, authorization(private.secret)?).timeout(limit);
    let response =
        request.send().await.map_err(|error| refused("base_url", outbound::failed(UpstreamService::Llm, error)))?;
    if response.status().is_success() {
        return Ok(response);
    }
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let body = read(response, LARGEST_ANSWER).await.unwrap_or_default();
    Err(refusal::of(status, &headers, &body, private))
}

async fn whole(response: Response, model: &str, private: &Private<'_>) -> Result<Completion, Error> {
    let id = generation_id(&response);
    let body = read(response, LARGEST_ANSWER).await.map_err(|unread| unread.of(UpstreamService::Llm))?;
    answer::whole(&body, id, model, private)
}

/// Checked here, because reqwest reports an invalid header like an unreachable address.
fn authorization(bearer: &SecretString) -> Result<HeaderValue, Error> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", bearer.expose_secret()))
        .map_err(|_would_quote_it| unusable("the key cannot stand in a header"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// OpenRouter's id of the generation, used in its records.
fn generation_id(response: &Response) -> Option<String> {
    response.headers().get("x-generation-id")?.to_str().ok().map(str::to_owned)
}

/// Adds the field's name to a refusal of the guard.
fn refused(field: &str, error: Error) -> Error {
    match error.failure {
        Failure::Refused(why) => {
            let failure = Failure::Refused(format!("{field} of the organization's LLM cannot be called: {why}"));
            Error { failure, ..error }
        }
        _ => error,
    }
}

fn unusable(what: impl Into<String>) -> Error {
    Error::new(UpstreamService::Llm, Failure::Undecodable(what.into()))
}
