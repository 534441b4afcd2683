//! `EventBridge` Scheduler: sends one message to a queue at one time.
//!
//! Every schedule is one-time, in UTC, and deletes itself after firing: we compute rules with time zones, and the handler of an
//! occurrence creates the next one. Past times are never requested; Scheduler's behaviour for them is undocumented.

use std::sync::{Arc, LazyLock};

use aws_config::SdkConfig;
use aws_sdk_scheduler::{
    Client,
    config::Builder,
    operation::{create_schedule::CreateScheduleError, delete_schedule::DeleteScheduleError},
    types::{ActionAfterCompletion, DeadLetterConfig, FlexibleTimeWindow, FlexibleTimeWindowMode, RetryPolicy, Target},
};
use serde::Serialize;

use super::{
    Error, Failure, UpstreamService,
    aws::{LazyClient, aws_failed},
    aws_endpoint,
};
use crate::models::Timestamp;

/// Retries of a delivery to the queue before the dead letters. Our own sweep acts earlier.
const RETRY_SECONDS: i32 = 3_600;
const RETRIES: i32 = 20;

#[derive(Debug, Clone)]
pub struct SchedulerTarget {
    pub group: String,
    pub role_arn: String,
    pub queue_arn: String,
    pub dead_letters_arn: String,
}

#[derive(Clone)]
pub struct Scheduler {
    client: LazyClient<Client>,
    target: SchedulerTarget,
}

impl Scheduler {
    pub fn new(aws: &SdkConfig, target: SchedulerTarget) -> Self {
        let mut config = Builder::from(aws);
        config.set_endpoint_resolver(Some(aws_endpoint(aws, "scheduler")));
        Self { client: Arc::new(LazyLock::new(Box::new(|| Client::from_conf(config.build())))), target }
    }

    /// Puts `message` on the queue at a future time, in seconds; Scheduler has minute precision. `name` (1 to 64 of
    /// `[0-9a-zA-Z-_.]`) must identify message and time: an existing schedule of this name counts as the same.
    pub async fn send_at<T: Serialize + Sync>(&self, name: &str, at: Timestamp, message: &T) -> Result<(), Error> {
        let input = serde_json::to_string(message).map_err(unusable)?;
        let retry =
            RetryPolicy::builder().maximum_event_age_in_seconds(RETRY_SECONDS).maximum_retry_attempts(RETRIES).build();
        let target = Target::builder()
            .arn(&self.target.queue_arn)
            .role_arn(&self.target.role_arn)
            .input(input)
            .retry_policy(retry)
            .dead_letter_config(DeadLetterConfig::builder().arn(&self.target.dead_letters_arn).build());
        let window = FlexibleTimeWindow::builder().mode(FlexibleTimeWindowMode::Off);
        let request = self
            .client
            .create_schedule()
            .name(name)
            .group_name(&self.target.group)
            .schedule_expression(expression(at))
            .flexible_time_window(window.build().map_err(unusable)?)
            .action_after_completion(ActionAfterCompletion::Delete)
            .target(target.build().map_err(unusable)?);
        match Box::pin(request.send()).await {
            Ok(_created) => Ok(()),
            Err(error) if error.as_service_error().is_some_and(CreateScheduleError::is_conflict_exception) => Ok(()),
            Err(error) => Err(aws_failed(UpstreamService::Scheduler, error)),
        }
    }

    /// Deletes a schedule; a fired or missing one is fine.
    pub async fn delete(&self, name: &str) -> Result<(), Error> {
        let request = self.client.delete_schedule().name(name).group_name(&self.target.group);
        match Box::pin(request.send()).await {
            Ok(_deleted) => Ok(()),
            Err(error)
                if error.as_service_error().is_some_and(DeleteScheduleError::is_resource_not_found_exception) =>
            {
                Ok(())
            }
            Err(error) => Err(aws_failed(UpstreamService::Scheduler, error)),
        }
    }
}

/// `at(2026-11-23T08:00:00)`, in UTC.
fn expression(at: Timestamp) -> String {
    let text = at.to_string();
    format!("at({})", text.get(..19).unwrap_or(&text))
}

fn unusable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    let error = error.into();
    Error::because(UpstreamService::Scheduler, Failure::Undecodable(error.to_string()), error)
}
