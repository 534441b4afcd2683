//! An LLM by OpenAI's chat completions, as OpenRouter, OpenAI itself, vLLM and many gateways speak them.
//!
//! `POST <base_url>/chat/completions` with a key, or with a token that OAuth client credentials get. A generation has no effect
//! beyond its cost, so it is tried again after anything transient. An error may stand inside a 200; it counts as if its code
//! had been the status. Neither the conversation nor the answer is ever part of an error.

mod account;
mod answer;
mod events;
mod oauth;
mod refusal;
mod streaming;
mod without;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::Stream;
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
    refusal::Private,
    streaming::{Opened, Reading},
    without::{Without, WithoutBy},
};
use super::{
    Error, Failure, Outbound, Service,
    bearer::Bearer,
    http_client::{Retry, read, retrying},
    outbound,
};
use crate::Deadline;

/// How long a stream may take to begin: some models think for a minute before they do.
const ATTEMPT: Duration = Duration::from_secs(120);
/// How long a whole answer may take: 8,000 tokens from a slow model.
const WHOLE_ATTEMPT: Duration = Duration::from_secs(240);

/// What an answer may be at most, in bytes: twice the longest that models give, with their reasoning beside it.
const LARGEST_ANSWER: usize = 4 * 1024 * 1024;

#[derive(Clone)]
pub struct Llm {
    http: reqwest::Client,
    outbound: Outbound,
    /// One token for each account with client credentials.
    bearers: Arc<Mutex<HashMap<TokenOwner, Bearer>>>,
    /// What models refused of a request, for as long as the process lives.
    without: WithoutBy,
}

/// Who says something in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    System,
    User,
    Assistant,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub role: Role,
    pub content: String,
}

impl Message {
    pub fn system(content: impl Into<String>) -> Self {
        Self { role: Role::System, content: content.into() }
    }

    pub fn user(content: impl Into<String>) -> Self {
        Self { role: Role::User, content: content.into() }
    }

    pub fn assistant(content: impl Into<String>) -> Self {
        Self { role: Role::Assistant, content: content.into() }
    }
}

/// What is asked of the model. The conversation is borrowed: one that grows is never copied.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The account's, if absent.
    pub model: Option<&'a str>,
    pub messages: &'a [Message],
    /// 0 to 2.
    pub temperature: f64,
    /// Of the answer.
    pub max_tokens: Option<u32>,
    /// Functions the model may call by itself, as the wire has them:
    /// `{"type": "function", "function": {"name", "description", "parameters"}}`.
    pub tools: &'a [Value],
}

impl<'a> Request<'a> {
    /// With the account's model, a temperature of 0 and no functions.
    pub const fn new(messages: &'a [Message]) -> Self {
        Self { model: None, messages, temperature: 0.0, max_tokens: None, tools: &[] }
    }
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: &'a [Message],
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    /// The same, as OpenAI's reasoning models call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "<[Value]>::is_empty")]
    tools: &'a [Value],
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

/// OpenRouter counts tokens anyway; OpenAI and vLLM want to be asked.
#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

impl<'a> Body<'a> {
    fn of(request: &Request<'a>, account: &'a Account, streams: bool, without: &WithoutBy) -> Self {
        let Request { model, messages, temperature, max_tokens, tools } = *request;
        let model = model.unwrap_or(&account.model);
        let without = without.of(account, model);
        Self {
            model,
            messages,
            temperature: (!without.temperature).then_some(temperature),
            max_tokens: max_tokens
                .filter(|_| without == Without { temperature: without.temperature, ..Without::default() }),
            max_completion_tokens: max_tokens.filter(|_| without.former_name && !without.max_tokens),
            tools,
            stream: streams.then_some(true),
            stream_options: streams.then_some(StreamOptions { include_usage: true }),
        }
    }
}

impl Llm {
    /// `http` is for the platform's account, `outbound` for those of organizations, whose addresses others chose.
    pub fn new(http: reqwest::Client, outbound: Outbound) -> Self {
        Self { http, outbound, bearers: Arc::default(), without: WithoutBy::default() }
    }

    /// The model's answer, as a whole.
    ///
    /// # Errors
    /// [`Error::transient`] tells whether asking again later may help, [`Error::retry_after`] after how long, and
    /// [`Error::reason`] what else to do. What may be repeated was repeated already, as long as `deadline` allowed.
    /// [`Failure::Undecodable`] for a success that holds no answer; it says what is missing.
    pub async fn complete(
        &self,
        account: &Account,
        request: &Request<'_>,
        deadline: Deadline,
    ) -> Result<Completion, Error> {
        loop {
            let body = Body::of(request, account, false, &self.without);
            match self.complete_with(account, &body, deadline).await {
                Err(refused) if self.without.learn(account, &body, &refused) => {}
                answered => return answered,
            }
        }
    }

    async fn complete_with(&self, account: &Account, body: &Body<'_>, deadline: Deadline) -> Result<Completion, Error> {
        let prepared = &self.prepare(account, body)?.header(ACCEPT, "application/json");
        // An answer that took all the time is paid for: another, with what little is left, would be for nothing.
        let begin = deadline.reserving((deadline.remaining() / 4).min(ATTEMPT / 2));
        let ask = |bearer: SecretString| async move {
            let private = Private { messages: body.messages, secret: &bearer };
            retrying(Retry::Harmless, begin, || async {
                let limit = deadline.at_most(WHOLE_ATTEMPT);
                let response = attempt(prepared, limit.remaining(), &private).await?;
                whole(response, body.model, &private).await
            })
            .await
        };
        self.authorized(account, deadline, ask).await
    }

    /// The model's answer as it comes. What is tried again ends with the first event; from there on an error is an item of the
    /// stream, after the texts that came before it. A connection that ends before the answer does is an error.
    ///
    /// # Errors
    /// As [`Llm::complete`], also of the items.
    pub async fn stream(
        &self,
        account: &Account,
        request: &Request<'_>,
        deadline: Deadline,
    ) -> Result<impl Stream<Item = Result<Delta, Error>> + Send + use<>, Error> {
        let opened = loop {
            let body = Body::of(request, account, true, &self.without);
            match self.open_with(account, &body, deadline).await {
                Err(refused) if self.without.learn(account, &body, &refused) => {}
                opened => break opened?,
            }
        };
        Ok(streaming::deltas(opened))
    }

    async fn open_with(&self, account: &Account, body: &Body<'_>, deadline: Deadline) -> Result<Opened, Error> {
        let prepared = &self.prepare(account, body)?.header(ACCEPT, "text/event-stream");
        let open = |bearer: SecretString| async move {
            let private = Private { messages: body.messages, secret: &bearer };
            retrying(Retry::Harmless, deadline, || async {
                let begun = tokio::time::timeout(ATTEMPT, attempt(prepared, deadline.remaining(), &private)).await;
                let response = begun.map_err(|silence| Error::because(Service::Llm, Failure::NoAnswer, silence))??;
                if streaming::is_json(&response) {
                    return whole(response, body.model, &private).await.map(Box::new).map(Opened::Whole);
                }
                Ok(Opened::Events(Box::new(Reading::new(response, private.bytes(), body.model))))
            })
            .await
        };
        self.authorized(account, deadline, open).await
    }

    /// The request but for its authorization.
    fn prepare(&self, account: &Account, body: &impl Serialize) -> Result<RequestBuilder, Error> {
        let body = serde_json::to_vec(body)
            .map_err(|error| Error::because(Service::Llm, Failure::Undecodable("the request".into()), error))?;
        let url = format!("{}/chat/completions", account.base_url);
        let request = self.post(account, "base_url", &url)?;
        Ok(request.header(CONTENT_TYPE, "application/json").body(body))
    }

    /// A POST by the client that may be sent to the account's addresses.
    fn post(&self, account: &Account, field: &str, url: &str) -> Result<RequestBuilder, Error> {
        match account.whose {
            Whose::Platform => Ok(self.http.post(url)),
            Whose::Organization(_) => {
                self.outbound.post(url).map_err(|why| refused(field, Error::new(Service::Llm, Failure::Refused(why))))
            }
        }
    }

    /// Does `ask` with what lets the account in. A token may have ended before its time: one that is refused with 401 is
    /// replaced, once.
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
            bearer.token(Service::Llm, deadline, || oauth::grant(request, client, deadline)).await
        };
        let first = token().await?;
        match ask(first.clone()).await {
            Err(error) if error.status() == Some(401) => {}
            other => return other,
        }
        bearer.forget(&first).await;
        ask(token().await?).await
    }

    /// Where the account's token is; two accounts never share one.
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

/// Sends a request with what lets it in; gives a success, its body still to be read.
async fn attempt(prepared: &RequestBuilder, limit: Duration, private: &Private<'_>) -> Result<Response, Error> {
    let request = prepared.try_clone().ok_or_else(|| unusable("a streamed request cannot be sent"))?;
    let request = request.header(AUTHORIZATION, authorization(private.secret)?).timeout(limit);
    let response = request.send().await.map_err(|error| refused("base_url", outbound::failed(Service::Llm, error)))?;
    if response.status().is_success() {
        return Ok(response);
    }
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let body = read(response, LARGEST_ANSWER).await.unwrap_or_default();
    Err(refusal::of(status, &headers, &body, private))
}

/// Reads a success to its end.
async fn whole(response: Response, model: &str, private: &Private<'_>) -> Result<Completion, Error> {
    let id = generation_id(&response);
    let body = read(response, LARGEST_ANSWER).await.map_err(|unread| unread.of(Service::Llm))?;
    answer::whole(&body, id, model, private)
}

/// Checked here: what cannot stand in a header would look like an address that cannot be reached.
fn authorization(bearer: &SecretString) -> Result<HeaderValue, Error> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", bearer.expose_secret()))
        .map_err(|_would_quote_it| unusable("the key cannot stand in a header"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// OpenRouter's id of the generation, which its own records go by.
fn generation_id(response: &Response) -> Option<String> {
    response.headers().get("x-generation-id")?.to_str().ok().map(str::to_owned)
}

/// Names the address that the guard refused.
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
    Error::new(Service::Llm, Failure::Undecodable(what.into()))
}
