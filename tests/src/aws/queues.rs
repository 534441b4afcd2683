//! SQS for the functions' requests; the world delivers the messages.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use uuid::Uuid;

use super::TABLE_PREFIX;
use crate::Template;

pub(super) const ACTIONS: [&str; 2] = ["SendMessage", "SendMessageBatch"];

/// The limit of a message and of a batch, in bytes.
const LARGEST: usize = 1024 * 1024;
const LONGEST_DELAY: i64 = 900;

#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) id: String,
    pub(super) body: String,
    /// Seconds before the message can first be received.
    pub(super) delay: i64,
    pub(super) received: u32,
    sent: Instant,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<Message>,
    /// Name of the dead-letter queue, and the number of receives before a message moves there.
    redrive: Option<(String, u32)>,
}

#[derive(Debug, Default)]
pub(super) struct Shelf {
    queues: BTreeMap<String, Queue>,
    /// Number of batch entries to refuse individually, as SQS may.
    refuse: u32,
}

impl Shelf {
    /// The template's queues, empty.
    pub(super) fn of(template: &Template, stack: &str) -> Self {
        let resources = template.resources("AWS::SQS::Queue");
        let name = |id: &str| {
            let name = resources[id]["QueueName"]["Fn::Sub"].as_str().expect("a queue has a name");
            name.replace("${AWS::StackName}", stack)
        };
        let queues = resources.iter().map(|(id, properties)| {
            let redrive = properties.get("RedrivePolicy").map(|policy| {
                let target = policy["deadLetterTargetArn"]["Fn::GetAtt"].as_str().expect("a target");
                let times = policy["maxReceiveCount"].as_u64().expect("a count");
                (name(target.strip_suffix(".Arn").expect("an ARN")), u32::try_from(times).expect("a count"))
            });
            (name(id), Queue { waiting: Vec::new(), redrive })
        });
        Self { queues: queues.collect(), refuse: 0 }
    }

    pub(super) fn refuse(&mut self, entries: u32) {
        self.refuse = entries;
    }

    pub(super) fn waiting(&self, queue: &str) -> Vec<Message> {
        self.queues.get(queue).unwrap_or_else(|| panic!("no queue {queue}")).waiting.clone()
    }

    pub(super) fn lengths(&self) -> Vec<(String, usize)> {
        let full = self.queues.iter().filter(|(_, queue)| !queue.waiting.is_empty());
        full.map(|(name, queue)| (name.replacen(TABLE_PREFIX, "", 1), queue.waiting.len())).collect()
    }

    /// Receives up to ten messages whose delay is over `after` seconds from their sending.
    pub(super) fn receive(&mut self, queue: &str, after: i64) -> Vec<Message> {
        self.take(queue, 10, |message| message.delay <= after)
    }

    /// Receives up to `most` messages whose delay is over now, or longer than `hastened` seconds.
    pub(super) fn receive_now(&mut self, queue: &str, most: usize, hastened: Option<i64>) -> Vec<Message> {
        let over = |message: &Message| {
            message.sent.elapsed() >= Duration::from_secs(message.delay.unsigned_abs())
                || hastened.is_some_and(|longest| message.delay > longest)
        };
        self.take(queue, most, over)
    }

    fn take(&mut self, queue: &str, most: usize, is_due: impl Fn(&Message) -> bool) -> Vec<Message> {
        let waiting = &mut self.queues.get_mut(queue).unwrap_or_else(|| panic!("no queue {queue}")).waiting;
        let (due, later): (Vec<_>, Vec<_>) = std::mem::take(waiting).into_iter().partition(is_due);
        let mut due = due.into_iter();
        let received =
            due.by_ref().take(most).map(|message| Message { received: message.received + 1, ..message }).collect();
        *waiting = due.chain(later).collect();
        received
    }

    /// Puts an unhandled message back, or moves it to the dead-letter queue after its last receive.
    pub(super) fn put_back(&mut self, queue: &str, message: Message) {
        let redrive = self.queues[queue].redrive.clone();
        let to = match redrive {
            Some((dead, times)) if message.received >= times => dead,
            _ => queue.to_owned(),
        };
        self.queues.get_mut(&to).expect("a queue").waiting.push(Message { delay: 0, ..message });
    }

    /// Executes one of [`ACTIONS`].
    pub(super) fn answer(&mut self, action: &str, request: &Value) -> (u16, Value) {
        let name = request["QueueUrl"].as_str().unwrap_or_default().rsplit('/').next().unwrap_or_default().to_owned();
        if !self.queues.contains_key(&name) {
            return refusal("QueueDoesNotExist", "The specified queue does not exist.");
        }
        if action == "SendMessage" {
            return match self.send(&name, request) {
                Ok(id) => (200, json!({"MessageId": id, "MD5OfMessageBody": ""})),
                Err((code, message)) => refusal(code, message),
            };
        }
        let entries = request["Entries"].as_array().cloned().unwrap_or_default();
        let ids: BTreeSet<&str> = entries.iter().filter_map(|entry| entry["Id"].as_str()).collect();
        let size: usize = entries.iter().filter_map(|entry| entry["MessageBody"].as_str()).map(str::len).sum();
        match entries.len() {
            0 => return refusal("EmptyBatchRequest", "There should be at least one SendMessageBatchRequestEntry."),
            11.. => return refusal("TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10."),
            count if ids.len() != count => return refusal("BatchEntryIdsNotDistinct", "Id repeated."),
            _ if size > LARGEST => {
                return refusal("BatchRequestTooLong", "Batch requests cannot be longer than 1 MiB.");
            }
            _ => {}
        }
        let (mut successful, mut failed) = (Vec::new(), Vec::new());
        for entry in &entries {
            let sent = if self.refuse > 0 {
                self.refuse -= 1;
                Err(("InternalError", "injected"))
            } else {
                self.send(&name, entry)
            };
            match sent {
                Ok(id) => successful.push(json!({"Id": entry["Id"], "MessageId": id, "MD5OfMessageBody": ""})),
                Err((code, message)) => {
                    failed.push(json!({"Id": entry["Id"], "Code": code, "Message": message, "SenderFault": false}));
                }
            }
        }
        (200, json!({"Successful": successful, "Failed": failed}))
    }

    fn send(&mut self, name: &str, entry: &Value) -> Result<String, (&'static str, &'static str)> {
        let body = entry["MessageBody"].as_str().filter(|body| !body.is_empty());
        let body = body.ok_or(("MissingParameter", "The request must contain the parameter MessageBody."))?;
        let delay = entry["DelaySeconds"].as_i64().unwrap_or(0);
        if body.len() > LARGEST {
            return Err((
                "InvalidParameterValue",
                "One or more parameters are invalid. Reason: Message must be shorter.",
            ));
        }
        if body.contains(is_refused) {
            return Err(("InvalidMessageContents", "Invalid binary character was found in the message body."));
        }
        if !(0..=LONGEST_DELAY).contains(&delay) {
            return Err(("InvalidParameterValue", "DelaySeconds must be >= 0 and <= 900."));
        }
        let id = Uuid::new_v4().to_string();
        let message = Message { id: id.clone(), body: body.to_owned(), delay, received: 0, sent: Instant::now() };
        self.queues.get_mut(name).expect("the queue is there").waiting.push(message);
        Ok(id)
    }
}

/// Not a character of XML 1.0.
fn is_refused(character: char) -> bool {
    !matches!(character, '\t' | '\n' | '\r' | '\u{20}'..='\u{fffd}' | '\u{10000}'..)
}

fn refusal(code: &str, message: &str) -> (u16, Value) {
    (400, json!({"__type": format!("com.amazonaws.sqs#{code}"), "message": message}))
}
