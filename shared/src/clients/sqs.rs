//! SQS: sends messages. Lambda receives them (`crate::queue`).

use std::{
    marker::PhantomData,
    sync::{Arc, LazyLock},
    time::Duration,
};

use aws_config::SdkConfig;
use aws_sdk_sqs::{Client, config::Builder, types::SendMessageBatchRequestEntry};
use futures_util::future::join_all;
use serde::Serialize;

use super::{
    Error, Failure, UpstreamService,
    aws::{LazyClient, aws_failed},
    aws_endpoint,
};
use crate::models::{
    AnsweredCall, EndedCall, FailedTool, Occurrence, OrganizationId, Queued, QueuedReplay, QueuedRun, WaitingEvent,
};

/// SQS's limit per request.
const MOST_AT_ONCE: usize = 10;

/// Retries of messages that SQS rejects.
const REPEATS: u32 = 2;

pub trait QueueMessage: Serialize {
    /// The organization. SQS's fair queues use it as `MessageGroupId`, so that one organization's load does not delay others.
    fn group(&self) -> Option<OrganizationId> {
        None
    }
}

macro_rules! messages_of_organizations {
    ($($message:ty),+) => {$(
        impl QueueMessage for $message {
            fn group(&self) -> Option<OrganizationId> {
                Some(self.organization_id)
            }
        }
    )+};
}

messages_of_organizations!(QueuedRun, Occurrence, WaitingEvent, QueuedReplay, EndedCall, AnsweredCall, FailedTool);

impl QueueMessage for Queued {
    fn group(&self) -> Option<OrganizationId> {
        Some(match self {
            Self::Execution(execution) => execution.organization_id,
            Self::ContextDue { organization_id, .. } | Self::ResultsDue { organization_id, .. } => *organization_id,
        })
    }
}

/// A queue of JSON messages of type `T`. Delivery is at least once.
pub struct Queue<T> {
    client: LazyClient<Client>,
    url: String,
    messages: PhantomData<fn(&T)>,
}

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Self { client: self.client.clone(), url: self.url.clone(), messages: PhantomData }
    }
}

impl<T: QueueMessage> Queue<T> {
    pub fn new(aws: &SdkConfig, url: impl Into<String>) -> Self {
        let mut config = Builder::from(aws);
        config.set_endpoint_resolver(Some(aws_endpoint(aws, "sqs")));
        let client: LazyClient<Client> = Arc::new(LazyLock::new(Box::new(|| Client::from_conf(config.build()))));
        Self { client, url: url.into(), messages: PhantomData }
    }

    pub async fn send(&self, message: &T) -> Result<(), Error> {
        self.send_later(message, Duration::ZERO).await
    }

    /// Sends a message for delivery after `delay`: rounded up to seconds, at most 15 minutes.
    pub async fn send_later(&self, message: &T, delay: Duration) -> Result<(), Error> {
        let sent = self
            .client
            .send_message()
            .queue_url(&self.url)
            .message_body(body(message)?)
            .set_message_group_id(group(message))
            .delay_seconds(whole_seconds(delay))
            .send();
        sent.await.map(drop).map_err(|error| aws_failed(UpstreamService::Sqs, error))
    }

    /// Sends messages, each after its delay, in parallel requests of ten. Messages that SQS rejects are sent again.
    ///
    /// # Errors
    /// [`Unsent`] lists the messages not accepted.
    pub async fn send_all(&self, messages: &[(T, Duration)]) -> Result<(), Unsent> {
        let batches = messages.chunks(MOST_AT_ONCE).enumerate().map(|(number, batch)| async move {
            let sent = self.send_batch(batch).await;
            sent.map_err(|unsent| {
                let places = unsent.places.into_iter().map(|place| number * MOST_AT_ONCE + place).collect();
                Unsent { places, error: unsent.error }
            })
        });
        let mut unsent = join_all(batches).await.into_iter().filter_map(Result::err);
        let Some(mut first) = unsent.next() else { return Ok(()) };
        first.places.extend(unsent.flat_map(|another| another.places));
        Err(first)
    }

    async fn send_batch(&self, batch: &[(T, Duration)]) -> Result<(), Unsent> {
        let all = || (0..batch.len()).collect();
        let entries = batch.iter().enumerate().map(|(place, (message, delay))| {
            SendMessageBatchRequestEntry::builder()
                .id(place.to_string())
                .message_body(body(message)?)
                .set_message_group_id(group(message))
                .delay_seconds(whole_seconds(*delay))
                .build()
                .map_err(undecodable)
        });
        let mut waiting: Vec<_> =
            entries.collect::<Result<_, Error>>().map_err(|error| Unsent { places: all(), error })?;
        let mut repeats = REPEATS;
        loop {
            let request = self.client.send_message_batch().queue_url(&self.url).set_entries(Some(waiting.clone()));
            let places = |waiting: &[SendMessageBatchRequestEntry]| {
                waiting.iter().filter_map(|entry| entry.id.parse().ok()).collect()
            };
            let answer = request
                .send()
                .await
                .map_err(|error| Unsent { places: places(&waiting), error: aws_failed(UpstreamService::Sqs, error) })?;
            let Some(first) = answer.failed.first() else { return Ok(()) };
            waiting.retain(|entry| answer.failed.iter().any(|failed| failed.id == entry.id));
            if repeats == 0 {
                let failure = Failure::Rejected { status: 400, excerpt: first.code.clone() };
                return Err(Unsent { places: places(&waiting), error: Error::new(UpstreamService::Sqs, failure) });
            }
            repeats -= 1;
        }
    }
}

#[derive(Debug)]
pub struct Unsent {
    pub places: Vec<usize>,
    pub error: Error,
}

fn group<T: QueueMessage>(message: &T) -> Option<String> {
    message.group().map(|organization| organization.to_string())
}

fn body<T: Serialize>(message: &T) -> Result<String, Error> {
    let json = serde_json::to_string(message).map_err(undecodable)?;
    // SQS refuses a body with these two characters; in JSON they stand only in texts.
    Ok(json.replace('\u{fffe}', "\\ufffe").replace('\u{ffff}', "\\uffff"))
}

fn undecodable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    let error = error.into();
    Error::because(UpstreamService::Sqs, Failure::Undecodable(error.to_string()), error)
}

fn whole_seconds(delay: Duration) -> i32 {
    let seconds = delay.as_secs() + u64::from(delay.subsec_nanos() > 0);
    i32::try_from(seconds.min(900)).unwrap_or(900)
}
