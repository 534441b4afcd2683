//! `EventBridge` Scheduler for one-time schedules that put a message on a queue.
//!
//! The world decides when they fire.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use shared::models::Timestamp;

use crate::Template;

pub(super) const ACTIONS: [&str; 2] = ["CreateSchedule", "DeleteSchedule"];

/// The region and account in ARNs.
const ARN: &str = "eu-central-1:123456789012";

#[derive(Debug, Clone)]
pub(super) struct Schedule {
    pub(super) at: Timestamp,
    /// Name of the queue.
    pub(super) queue: String,
    pub(super) input: String,
}

#[derive(Debug, Default)]
pub(super) struct Shelf {
    groups: BTreeSet<String>,
    queues: BTreeSet<String>,
    schedules: BTreeMap<String, Schedule>,
}

/// The action and the body of a REST request: `POST /schedules/{name}`, `DELETE /schedules/{name}?groupName=`. The
/// body includes the values of path and query, as in the API's model.
pub(super) fn read(method: &str, target: &str, body: &Value) -> Option<(String, Value)> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let name = path.strip_prefix("/schedules/")?;
    let action = match method {
        "POST" => "CreateSchedule",
        "DELETE" => "DeleteSchedule",
        other => panic!("{other} {target} is nothing that Scheduler is asked for"),
    };
    let mut body = if body.is_object() { body.clone() } else { json!({}) };
    body["Name"] = json!(name);
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some(("groupName", group)) => body["GroupName"] = json!(group),
            Some(("clientToken", token)) => body["ClientToken"] = json!(token),
            _ => {}
        }
    }
    Some((action.to_owned(), body))
}

pub(super) fn queue_arn(queue: &str) -> String {
    format!("arn:aws:sqs:{ARN}:{queue}")
}

impl Shelf {
    /// The template's groups, empty.
    pub(super) fn of(template: &Template, stack: &str) -> Self {
        let named = |kind: &str, property: &str| {
            let resources = template.resources(kind);
            let names = resources.values().map(|properties| {
                let name = properties[property]["Fn::Sub"].as_str().expect("a name");
                name.replace("${AWS::StackName}", stack)
            });
            names.collect()
        };
        Self {
            groups: named("AWS::Scheduler::ScheduleGroup", "Name"),
            queues: named("AWS::SQS::Queue", "QueueName"),
            schedules: BTreeMap::new(),
        }
    }

    /// All schedules by name.
    pub(super) fn all(&self) -> BTreeMap<String, Schedule> {
        self.schedules.clone()
    }

    /// Removes and returns the schedules due by then.
    pub(super) fn fire(&mut self, by: Timestamp) -> Vec<Schedule> {
        let due: Vec<String> =
            self.schedules.iter().filter(|(_, schedule)| schedule.at <= by).map(|(name, _)| name.clone()).collect();
        due.iter().filter_map(|name| self.schedules.remove(name)).collect()
    }

    /// Executes one of [`ACTIONS`].
    pub(super) fn answer(&mut self, action: &str, request: &Value) -> (u16, Value) {
        let name = request["Name"].as_str().unwrap_or_default();
        let allowed = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        if !(1..=64).contains(&name.len()) || !name.chars().all(allowed) {
            return invalid("Name must have 1 to 64 letters of [0-9a-zA-Z-_.]");
        }
        let group = request["GroupName"].as_str().unwrap_or("default");
        if !self.groups.contains(group) {
            return refusal(404, "ResourceNotFoundException", &format!("Schedule group {group} does not exist."));
        }
        if action == "DeleteSchedule" {
            return match self.schedules.remove(name) {
                Some(_) => (200, json!({})),
                None => refusal(404, "ResourceNotFoundException", &format!("Schedule {name} does not exist.")),
            };
        }
        let schedule = match self.read(request) {
            Ok(schedule) => schedule,
            Err(message) => return invalid(message),
        };
        if self.schedules.contains_key(name) {
            return refusal(409, "ConflictException", &format!("Schedule {name} already exists."));
        }
        self.schedules.insert(name.to_owned(), schedule);
        (200, json!({"ScheduleArn": format!("arn:aws:scheduler:{ARN}:schedule/{group}/{name}")}))
    }

    fn read(&self, request: &Value) -> Result<Schedule, &'static str> {
        let expression = request["ScheduleExpression"].as_str().unwrap_or_default();
        let inside = expression.strip_prefix("at(").and_then(|rest| rest.strip_suffix(')'));
        let at = inside.filter(|text| text.len() == "2026-11-23T08:00:00".len()).ok_or("only at(…) to the second")?;
        let at: Timestamp = format!("{at}Z").parse().map_err(|_no_moment| "at(…) holds no moment")?;
        // AWS does not document its treatment of a past moment.
        if at <= Timestamp::now() {
            return Err("the moment is over");
        }
        if !["", "UTC"].contains(&request["ScheduleExpressionTimezone"].as_str().unwrap_or_default()) {
            return Err("a time zone, which the local AWS ignores");
        }
        if request["FlexibleTimeWindow"]["Mode"] != "OFF" {
            return Err("FlexibleTimeWindow is required, and OFF");
        }
        // The schedule would stay and count towards the quota for ever.
        if request["ActionAfterCompletion"] != "DELETE" {
            return Err("a one-time schedule that does not delete itself");
        }
        let target = &request["Target"];
        let queue = |arn: &Value| {
            let name = arn.as_str()?.strip_prefix(&queue_arn(""))?.to_owned();
            self.queues.contains(&name).then_some(name)
        };
        let to = queue(&target["Arn"]).ok_or("Target.Arn is no queue")?;
        queue(&target["DeadLetterConfig"]["Arn"]).ok_or("DeadLetterConfig.Arn is no queue")?;
        if !target["RoleArn"].as_str().is_some_and(|role| role.starts_with("arn:aws:iam::123456789012:role/")) {
            return Err("RoleArn is no role");
        }
        let retry = &target["RetryPolicy"];
        let (age, times) = (retry["MaximumEventAgeInSeconds"].as_i64(), retry["MaximumRetryAttempts"].as_i64());
        if !age.is_some_and(|age| (60..=86_400).contains(&age))
            || !times.is_some_and(|times| (0..=185).contains(&times))
        {
            return Err("RetryPolicy is out of bounds, or left to its defaults of 24 h and 185 times");
        }
        let input = target["Input"].as_str().ok_or("without Input the queue gets a default notification")?;
        Ok(Schedule { at, queue: to, input: input.to_owned() })
    }
}

fn invalid(message: &str) -> (u16, Value) {
    refusal(400, "ValidationException", message)
}

fn refusal(status: u16, code: &str, message: &str) -> (u16, Value) {
    (status, json!({"__type": code, "Message": message}))
}
