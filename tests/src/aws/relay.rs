//! The relay between the AWS SDK and the services.
//!
//! Speaks the SDK's and dynoxide's subset of HTTP/1.1 by hand, so that it can cut a connection.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use memchr::memmem;
use serde_json::{Value, json};
use shared::models::Timestamp;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::{Operation, Shared, TABLE_PREFIX, Trouble, queues, schedules, secrets, start_keys};

const END_OF_HEAD: &[u8] = b"\r\n\r\n";
const VALIDATION: &str = "com.amazon.coral.validate#ValidationException";

pub(super) async fn serve(listener: TcpListener, backend: SocketAddr, shared: Arc<Shared>) {
    loop {
        let Ok((front, _)) = listener.accept().await else { return };
        let shared = shared.clone();
        tokio::spawn(async move {
            // If one end hangs up, the connection ends; there is nobody to tell.
            drop(connection(front, backend, shared).await);
        });
    }
}

async fn connection(mut front: TcpStream, backend: SocketAddr, shared: Arc<Shared>) -> io::Result<()> {
    front.set_nodelay(true)?;
    let mut back = TcpStream::connect(backend).await?;
    back.set_nodelay(true)?;
    while let Some(mut request) = Message::read(&mut front).await? {
        let _busy = Busy::with(&shared);
        let (method, target) = request.line();
        let body = request.json();
        let of_scheduler = schedules::read(&method, &target, &body);
        let (action, body) = of_scheduler.unwrap_or_else(|| (request.action(), body));
        let on = names(&body);
        let trouble = shared.meet(&action, &on);
        let (started, from) = (Instant::now(), Timestamp::now());
        let delay = *shared.delay.lock().unwrap();
        let mut units = 0.0;
        let answer = match &trouble {
            Some(Trouble::DropBefore | Trouble::StallBefore) => None,
            Some(Trouble::Error(code)) => Some(failure(code)),
            Some(Trouble::TransactionConflict) => Some(conflict(&body)),
            trouble if secrets::ACTIONS.contains(&action.as_str()) => {
                let (status, answer) = shared.secrets.lock().unwrap().answer(&action, &body);
                trouble.is_none().then(|| response(status, &answer))
            }
            trouble if schedules::ACTIONS.contains(&action.as_str()) => {
                let (status, answer) = shared.schedules.lock().unwrap().answer(&action, &body);
                trouble.is_none().then(|| response(status, &answer))
            }
            trouble if queues::ACTIONS.contains(&action.as_str()) => {
                let (status, answer) = shared.queues.lock().unwrap().answer(&action, &body);
                trouble.is_none().then(|| response(status, &answer))
            }
            None if start_keys::refusal(&action, &body).is_some() => {
                let message = start_keys::refusal(&action, &body).unwrap_or_default();
                Some(response(400, &json!({"__type": VALIDATION, "message": message})))
            }
            trouble => {
                tokio::time::sleep(delay).await;
                let left = if let Some(Trouble::Unprocessed) = trouble { request.keep_first() } else { Value::Null };
                let metered = *shared.metered.lock().unwrap();
                if metered {
                    request.ask_for_capacity();
                }
                back.write_all(&request.bytes).await?;
                let answer = Message::read(&mut back).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
                if metered {
                    units = consumed(&answer.json());
                }
                match trouble {
                    None => Some(answer.bytes),
                    Some(Trouble::Unprocessed) => Some(answer.with_unprocessed(&action, left)),
                    Some(Trouble::Lagging) => Some(answer.without_last_item()),
                    _ => None,
                }
            }
        };
        let (ended, to) = (Instant::now(), Timestamp::now());
        let bytes = request.bytes.len() - request.body_at + answer.as_deref().map_or(0, body_length);
        shared.log.lock().unwrap().push(Operation { action, on, body, units, bytes, started, ended, from, to });
        if let Some(Trouble::StallBefore | Trouble::StallAfter) = trouble {
            shared.stalled.notify_one();
            // Waits until the caller is gone.
            return Message::read(&mut front).await.map(drop);
        }
        match answer {
            Some(answer) => front.write_all(&answer).await?,
            None => return Ok(()),
        }
    }
    Ok(())
}

/// Counts a request until it is carried out.
struct Busy<'s>(&'s Shared);

impl<'s> Busy<'s> {
    fn with(shared: &'s Shared) -> Self {
        shared.busy.fetch_add(1, Ordering::SeqCst);
        Self(shared)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Shared {
    fn meet(&self, action: &str, on: &[String]) -> Option<Trouble> {
        let mut faults = self.faults.lock().unwrap();
        let matches = |pattern: &str, value: &str| pattern == "*" || pattern == value;
        let position = faults
            .iter()
            .position(|fault| matches(&fault.action, action) && on.iter().any(|name| matches(&fault.on, name)))?;
        let fault = &mut faults[position];
        if fault.skip > 0 {
            fault.skip -= 1;
            return None;
        }
        fault.times -= 1;
        fault.applied = true;
        let trouble = fault.trouble.clone();
        if fault.times == 0 {
            faults.remove(position);
        }
        Some(trouble)
    }
}

/// The tables, the queue or the secret of a request.
fn names(body: &Value) -> Vec<String> {
    let mut names = Vec::new();
    let mut add = |name: Option<&str>| {
        let name = name.map(|name| name.strip_prefix(TABLE_PREFIX).unwrap_or(name).to_owned());
        names.extend(name);
    };
    add(body["TableName"].as_str());
    add(body["QueueUrl"].as_str().and_then(|url| url.rsplit('/').next()));
    add(body["SecretId"].as_str());
    add(body["Name"].as_str());
    for table in body["RequestItems"].as_object().into_iter().flatten() {
        add(Some(table.0));
    }
    for item in body["TransactItems"].as_array().into_iter().flatten() {
        add(item.as_object().and_then(|item| item.values().next()).and_then(|item| item["TableName"].as_str()));
    }
    names.sort();
    names.dedup();
    names
}

/// The capacity units of an answer, over its table and indexes or over all tables of a batch or transaction. A write
/// that fails its condition counts as one unit, the charge for an existing item of up to a kilobyte.
fn consumed(answer: &Value) -> f64 {
    if answer["__type"].as_str().is_some_and(|kind| kind.ends_with("ConditionalCheckFailedException")) {
        return 1.0;
    }
    let capacity = &answer["ConsumedCapacity"];
    let of_tables = capacity.as_array().map_or(std::slice::from_ref(capacity), Vec::as_slice);
    of_tables.iter().filter_map(|capacity| capacity["CapacityUnits"].as_f64()).sum()
}

fn failure(code: &str) -> Vec<u8> {
    let status = match code {
        "InternalServerError" | "InternalServiceError" => 500,
        "ServiceUnavailable" => 503,
        _ => 400,
    };
    let body = json!({"__type": format!("com.amazonaws.dynamodb.v20120810#{code}"), "message": "injected"});
    response(status, &body)
}

fn conflict(body: &Value) -> Vec<u8> {
    let Some(items) = body["TransactItems"].as_array() else { return failure("TransactionConflictException") };
    let mut reasons = vec![json!({"Code": "None"}); items.len()];
    reasons[0] = json!({"Code": "TransactionConflict", "Message": "Transaction is ongoing for the item"});
    let code = "com.amazonaws.dynamodb.v20120810#TransactionCanceledException";
    response(400, &json!({"__type": code, "Message": "injected", "CancellationReasons": reasons}))
}

fn response(status: u16, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status} X\r\ncontent-type: application/x-amz-json-1.0\r\ncontent-length: {length}\r\n");
    format!("{head}\r\n{body}").into_bytes()
}

/// A raw request or answer.
struct Message {
    bytes: Vec<u8>,
    body_at: usize,
}

impl Message {
    /// The next message; `None` if the other end closed the connection before it began.
    async fn read(stream: &mut TcpStream) -> io::Result<Option<Self>> {
        let mut bytes = Vec::new();
        let mut wanted = None;
        loop {
            if let Some((body_at, length)) = wanted
                && bytes.len() >= body_at + length
            {
                return Ok(Some(Self { bytes, body_at }));
            }
            if stream.read_buf(&mut bytes).await? == 0 {
                return if bytes.is_empty() { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
            }
            if wanted.is_none()
                && let Some(end) = memmem::find(&bytes, END_OF_HEAD)
            {
                let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
                let length = header(&head, "content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
                wanted = Some((end + END_OF_HEAD.len(), length));
            }
        }
    }

    fn line(&self) -> (String, String) {
        let head = String::from_utf8_lossy(&self.bytes[..self.body_at]);
        let mut words = head.split(' ').map(str::to_owned);
        (words.next().unwrap_or_default(), words.next().unwrap_or_default())
    }

    fn action(&self) -> String {
        let head = String::from_utf8_lossy(&self.bytes[..self.body_at]);
        let target = header(&head, "x-amz-target").unwrap_or_default();
        target.rsplit('.').next().unwrap_or_default().to_owned()
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes[self.body_at..]).unwrap_or_default()
    }

    /// Removes all items but the first from a batch, and returns the removed ones in the same shape.
    fn keep_first(&mut self) -> Value {
        let mut body = self.json();
        let mut left = body["RequestItems"].clone();
        for (table, kept) in body["RequestItems"].as_object_mut().expect("a batch") {
            let items = |of: &mut Value| {
                let list = if of.is_array() { of } else { &mut of["Keys"] };
                std::mem::take(list.as_array_mut().expect("items"))
            };
            let (mut first, mut others) = (items(kept), items(&mut left[table]));
            first.truncate(1);
            others.drain(..1);
            let put = |of: &mut Value, list: Vec<Value>| {
                if of.is_array() { *of = list.into() } else { of["Keys"] = list.into() }
            };
            put(kept, first);
            put(&mut left[table], others);
        }
        self.rewrite(&body);
        left
    }

    /// Asks DynamoDB to include the operation's cost in its answer.
    fn ask_for_capacity(&mut self) {
        let mut body = self.json();
        body["ReturnConsumedCapacity"] = "TOTAL".into();
        self.rewrite(&body);
    }

    /// Replaces the body and its length, keeping the head.
    fn rewrite(&mut self, body: &Value) {
        let (head, body) = (String::from_utf8_lossy(&self.bytes[..self.body_at]), body.to_string());
        let is_length = |line: &&str| line.to_ascii_lowercase().starts_with("content-length:");
        let lines = head.trim_end().split("\r\n").filter(|line| !is_length(line));
        let head = lines.chain([format!("content-length: {}", body.len()).as_str()]).collect::<Vec<_>>().join("\r\n");
        let body_at = head.len() + 4;
        *self = Self { bytes: format!("{head}\r\n\r\n{body}").into_bytes(), body_at };
    }

    /// The answer to a batch with these unprocessed items.
    fn with_unprocessed(&self, action: &str, left: Value) -> Vec<u8> {
        let name = if action == "BatchGetItem" { "UnprocessedKeys" } else { "UnprocessedItems" };
        let mut body = self.json();
        let is_empty = |items: &Value| items.as_array().or(items["Keys"].as_array()).is_none_or(Vec::is_empty);
        if !left.as_object().is_some_and(|tables| tables.values().all(is_empty)) {
            body[name] = left;
        }
        response(200, &body)
    }

    fn without_last_item(&self) -> Vec<u8> {
        let mut body = self.json();
        body["Items"].as_array_mut().expect("the answer of a query").pop();
        response(200, &body)
    }
}

fn body_length(answer: &[u8]) -> usize {
    memmem::find(answer, END_OF_HEAD).map_or(0, |end| answer.len() - end - END_OF_HEAD.len())
}

fn header(head: &str, name: &str) -> Option<String> {
    let line = |line: &str| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
    };
    head.lines().find_map(line)
}
