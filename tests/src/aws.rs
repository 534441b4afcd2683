//! DynamoDB, Secrets Manager, SQS and `EventBridge` Scheduler on this machine, behind one `AWS_ENDPOINT_URL`.
//!
//! DynamoDB is dynoxide behind a relay that logs every operation, can delay it and can make it fail as AWS does. The
//! other services support only the functions' requests.

mod dynamodb_json;
mod queues;
mod relay;
mod schedules;
mod secrets;
mod start_keys;

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use aws_config::{Region, SdkConfig};
use aws_sdk_dynamodb::config::{Credentials, SharedCredentialsProvider};
use dynoxide::Database;
use serde_json::{Map, Value, json};
use shared::{clients, models::Timestamp};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::{Notify, oneshot},
};

use crate::Template;

pub const TABLE_PREFIX: &str = "switchboard-";
const STACK: &str = "switchboard";

/// A logged operation.
#[derive(Debug, Clone)]
pub struct Operation {
    /// `GetItem`, `GetSecretValue`, …
    pub action: String,
    /// Tables and queues without their prefix, or the id of a secret.
    pub on: Vec<String>,
    pub body: Value,
    /// DynamoDB's capacity units; measured since [`Aws::meter`].
    pub units: f64,
    /// The bodies of request and answer.
    pub bytes: usize,
    pub started: Instant,
    pub ended: Instant,
    /// Wall clock of `started` and `ended`, comparable with the stand-ins' records.
    pub from: Timestamp,
    pub to: Timestamp,
}

impl Operation {
    pub fn is_dynamodb(&self) -> bool {
        let others = [&secrets::ACTIONS[..], &queues::ACTIONS, &schedules::ACTIONS];
        !others.iter().any(|actions| actions.contains(&self.action.as_str()))
    }
}

#[derive(Debug, Clone)]
pub enum Trouble {
    /// An error code of AWS, such as `ProvisionedThroughputExceededException`; nothing is carried out.
    Error(&'static str),
    /// The first item is in another transaction; nothing is carried out.
    TransactionConflict,
    /// The connection is cut before the operation is carried out.
    DropBefore,
    /// The operation is carried out, then the connection is cut.
    DropAfter,
    /// Only the first item of a batch is carried out; the answer reports the others as unprocessed.
    Unprocessed,
    /// The answer of a query lacks its last item, as that of an index that lags behind its table.
    Lagging,
    /// The operation is not carried out and no answer comes: the caller can only be killed. See [`Aws::stalled`].
    StallBefore,
    /// The operation is carried out, but no answer comes.
    StallAfter,
}

#[derive(Debug, Clone)]
pub struct Fault {
    action: String,
    on: String,
    trouble: Trouble,
    skip: u32,
    times: u32,
    applied: bool,
}

impl Fault {
    /// One fault for `action` (such as `PutItem`) on a table or secret; `*` matches any.
    pub fn new(action: &str, on: &str, trouble: Trouble) -> Self {
        Self { action: action.to_owned(), on: on.to_owned(), trouble, skip: 0, times: 1, applied: false }
    }

    /// Throttling of all three attempts of the SDK.
    pub fn throttled(action: &str, on: &str) -> Self {
        Self::new(action, on, Trouble::Error("ProvisionedThroughputExceededException")).times(3)
    }

    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = times;
        self
    }

    /// Skips the first matching operations.
    #[must_use]
    pub fn after(mut self, operations: u32) -> Self {
        self.skip = operations;
        self
    }
}

#[derive(Default)]
struct Shared {
    log: Mutex<Vec<Operation>>,
    faults: Mutex<Vec<Fault>>,
    delay: Mutex<Duration>,
    metered: Mutex<bool>,
    secrets: Mutex<secrets::Shelf>,
    queues: Mutex<queues::Shelf>,
    schedules: Mutex<schedules::Shelf>,
    stalled: Notify,
    /// Requests that are being carried out.
    busy: AtomicUsize,
}

/// The region and credentials of the services' clients.
pub fn identity() -> (Region, SharedCredentialsProvider) {
    let credentials = Credentials::builder().access_key_id("AKIATEST").secret_access_key("s3cret-key");
    let credentials = credentials.session_token("session").provider_name("tests").build();
    (Region::new("eu-central-1"), SharedCredentialsProvider::new(credentials))
}

/// The configuration of AWS clients for the services at `url`.
pub fn sdk_config(url: &str) -> SdkConfig {
    let (region, credentials) = identity();
    clients::sdk_config(clients::http_client().expect("an HTTP client"), region, credentials, Some(url.to_owned()))
}

pub struct Aws {
    pub url: String,
    database: Database,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Aws {
    /// Starts with the template's tables, all empty.
    pub fn start(template: &Template) -> Self {
        let database = Database::memory().expect("a database in memory");
        for (table, time_to_live) in template.tables(STACK) {
            let name = table["TableName"].clone();
            database.create_table(read(table)).unwrap_or_else(|error| panic!("{name}: {error}"));
            if let Some(attribute) = time_to_live {
                let specification = json!({"AttributeName": attribute, "Enabled": true});
                let request = json!({"TableName": name, "TimeToLiveSpecification": specification});
                database.update_time_to_live(read(request)).unwrap_or_else(|error| panic!("{name}: {error}"));
            }
        }
        let queues = Mutex::new(queues::Shelf::of(template, STACK));
        let schedules = Mutex::new(schedules::Shelf::of(template, STACK));
        let shared = Arc::new(Shared { queues, schedules, ..Shared::default() });
        let (stop, stopped) = oneshot::channel();
        let (ready, address) = std::sync::mpsc::channel::<SocketAddr>();
        let (served, relayed) = (database.clone(), shared.clone());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let bind = async || TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
                let (back, front) = (bind().await, bind().await);
                let backend = back.local_addr().expect("an address");
                ready.send(front.local_addr().expect("an address")).expect("the test waits");
                tokio::select! {
                    () = dynoxide::server::serve_on(back, served) => {}
                    () = relay::serve(front, backend, relayed) => {}
                    _ = stopped => {}
                }
            });
            runtime.shutdown_background();
        });
        let address = address.recv().expect("the services start");
        Self { url: format!("http://{address}"), database, shared, stop: Some(stop), thread: Some(thread) }
    }

    /// In order of their start.
    pub fn operations(&self) -> Vec<Operation> {
        self.shared.log.lock().unwrap().clone()
    }

    pub fn dynamodb(&self) -> Vec<Operation> {
        self.operations().into_iter().filter(Operation::is_dynamodb).collect()
    }

    pub fn clear_operations(&self) {
        self.shared.log.lock().unwrap().clear();
    }

    pub fn inject(&self, fault: Fault) {
        self.shared.faults.lock().unwrap().push(fault);
    }

    pub fn clear_faults(&self) {
        self.shared.faults.lock().unwrap().clear();
    }

    /// The number of faults that have not applied yet.
    pub fn faults_left(&self) -> usize {
        self.shared.faults.lock().unwrap().len()
    }

    /// The number of faults that have not applied at all.
    pub fn faults_not_reached(&self) -> usize {
        self.shared.faults.lock().unwrap().iter().filter(|fault| !fault.applied).count()
    }

    /// Returns when an operation stalls.
    ///
    /// # Panics
    /// If none does within two minutes.
    pub async fn stalled(&self) {
        let stalled = tokio::time::timeout(Duration::from_mins(2), self.shared.stalled.notified());
        stalled.await.expect("an operation stalls within two minutes");
    }

    /// Returns when all that an ended process asked for is carried out.
    ///
    /// # Panics
    /// If that takes 10 seconds.
    pub async fn idle(&self) {
        // While the services answer, they also read each request that was sent before.
        for _ in 0..3 {
            let mut last = TcpStream::connect(self.url.trim_start_matches("http://")).await.expect("a connection");
            last.write_all(b"GET / HTTP/1.1\r\nhost: last\r\ncontent-length: 0\r\n\r\n").await.expect("a request");
            last.read_u8().await.expect("an answer");
        }
        for _ in 0..5_000 {
            if self.shared.busy.load(Ordering::SeqCst) == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        panic!("a request is still under way");
    }

    /// Delays every DynamoDB operation.
    pub fn slow_down(&self, delay: Duration) {
        *self.shared.delay.lock().unwrap() = delay;
    }

    /// From now on the log includes the cost of DynamoDB operations.
    pub fn meter(&self) {
        *self.shared.metered.lock().unwrap() = true;
    }

    pub fn put_secret(&self, id: &str, value: &Value) {
        self.shared.secrets.lock().unwrap().put(id, value);
    }

    pub fn forget_secret(&self, id: &str) {
        self.shared.secrets.lock().unwrap().forget(id);
    }

    /// The content of a secret; `None` if it does not exist or is being deleted.
    pub fn secret(&self, id: &str) -> Option<Value> {
        self.shared.secrets.lock().unwrap().content(id)
    }

    /// The names with this prefix, without secrets that are being deleted.
    pub fn secret_names(&self, prefix: &str) -> Vec<String> {
        self.shared.secrets.lock().unwrap().names(prefix)
    }

    /// The URL of a queue; `queue` is its name without the prefix.
    pub fn queue_url(&self, queue: &str) -> String {
        format!("{}/123456789012/{}", self.url, full(queue))
    }

    pub fn queue_arn(&self, queue: &str) -> String {
        schedules::queue_arn(&full(queue))
    }

    /// The schedules' times and messages, in order of time.
    pub fn schedules(&self) -> Vec<(Timestamp, Value)> {
        let all = self.shared.schedules.lock().unwrap().all();
        let input = |text: &str| serde_json::from_str(text).expect("a message of ours is JSON");
        let mut all: Vec<_> = all.into_values().map(|schedule| (schedule.at, input(&schedule.input))).collect();
        all.sort_by_key(|(at, _)| *at);
        all
    }

    /// Fires the schedules due by `by`: each puts its message on its queue and disappears. Returns their number.
    pub fn fire_schedules(&self, by: Timestamp) -> usize {
        let due = self.shared.schedules.lock().unwrap().fire(by);
        for schedule in &due {
            let queue = schedule.queue.strip_prefix(TABLE_PREFIX).expect("a queue of the stack");
            self.post(queue, &schedule.input);
        }
        due.len()
    }

    pub fn messages(&self, queue: &str) -> Vec<Value> {
        let waiting = self.shared.queues.lock().unwrap().waiting(&full(queue));
        waiting.iter().map(|message| serde_json::from_str(&message.body).expect("a message of ours is JSON")).collect()
    }

    pub fn post(&self, queue: &str, body: &str) {
        let request = json!({"QueueUrl": self.queue_url(queue), "MessageBody": body});
        let (status, answer) = self.shared.queues.lock().unwrap().answer("SendMessage", &request);
        assert_eq!(status, 200, "{answer}");
    }

    /// Refuses the next entries of batches one by one.
    pub fn refuse_messages(&self, entries: u32) {
        self.shared.queues.lock().unwrap().refuse(entries);
    }

    /// Receives a batch as Lambda does: the event, or `None` if no message is due in `after` seconds.
    pub fn receive(&self, queue: &str, after: i64) -> Option<Received> {
        let messages = self.shared.queues.lock().unwrap().receive(&full(queue), after);
        (!messages.is_empty()).then(|| Received { queue: full(queue), messages, shared: self.shared.clone() })
    }

    /// Receives a batch of up to `most` messages that are due now, or whose delay is longer than `hastened` seconds.
    pub fn receive_now(&self, queue: &str, most: usize, hastened: Option<i64>) -> Option<Received> {
        let messages = self.shared.queues.lock().unwrap().receive_now(&full(queue), most, hastened);
        (!messages.is_empty()).then(|| Received { queue: full(queue), messages, shared: self.shared.clone() })
    }

    /// Whether a message waits whose delay is at most this many seconds.
    pub fn has_shorter(&self, queue: &str, delay: i64) -> bool {
        self.shared.queues.lock().unwrap().waiting(&full(queue)).iter().any(|message| message.delay <= delay)
    }

    /// The waiting messages of each queue that has some, dead-letter queues included; names without the prefix.
    pub fn waiting(&self) -> Vec<(String, usize)> {
        self.shared.queues.lock().unwrap().lengths()
    }

    /// Writes a row directly, bypassing the handlers; plain JSON, as [`Aws::rows`] returns it.
    pub fn put(&self, table: &str, row: &Value) {
        let request = json!({"TableName": full(table), "Item": dynamodb_json::from_plain(row)});
        self.database.put_item(read(request)).expect("the row can be written");
    }

    pub fn rows(&self, table: &str) -> Vec<Value> {
        let mut rows = Vec::new();
        let mut request = json!({"TableName": full(table), "ConsistentRead": true});
        // A page of a scan ends at 1 MB.
        loop {
            let found = self.database.scan(read(request.clone())).expect("the table can be read");
            let found = serde_json::to_value(found).expect("an answer is JSON");
            rows.extend(found["Items"].as_array().into_iter().flatten().map(dynamodb_json::to_plain));
            match found.get("LastEvaluatedKey").filter(|key| !key.is_null()) {
                Some(key) => request["ExclusiveStartKey"] = key.clone(),
                None => return rows,
            }
        }
    }

    pub fn row(&self, table: &str, id: &str) -> Option<Value> {
        self.rows(table).into_iter().find(|row| row["id"] == id)
    }

    /// Changes attributes of the row with this `id`.
    pub fn change(&self, table: &str, id: &str, attributes: Value) {
        let key = Map::from_iter([("id".to_owned(), json!({"S": id}))]);
        let found = self.database.get_item(read(json!({"TableName": full(table), "Key": key}))).expect("a row");
        let found = serde_json::to_value(found).expect("an answer is JSON");
        // In DynamoDB's types, because plain JSON has no sets.
        let Value::Object(mut row) = found["Item"].clone() else { panic!("{table} has no row {id}") };
        let Value::Object(attributes) = attributes else { panic!("attributes are an object") };
        row.extend(attributes.into_iter().map(|(name, value)| (name, dynamodb_json::typed(&value))));
        self.database.put_item(read(json!({"TableName": full(table), "Item": row}))).expect("the row can be written");
    }

    /// Sets an attribute to 1 in each row that has it, beside requests that may be under way.
    pub fn lapse(&self, table: &str, attribute: &str) {
        for row in self.rows(table).iter().filter(|row| row.get(attribute).is_some()) {
            let key: Map<String, Value> = ["id", "part"]
                .into_iter()
                .filter_map(|name| Some((name.to_owned(), dynamodb_json::typed(row.get(name)?))))
                .collect();
            let request = json!({
                "TableName": full(table), "Key": key, "UpdateExpression": "SET #attribute = :one",
                "ConditionExpression": "attribute_exists(#attribute)", "ExpressionAttributeNames": {"#attribute": attribute},
                "ExpressionAttributeValues": {":one": {"N": "1"}},
            });
            // A refusal: a request has removed the attribute meanwhile.
            drop(self.database.update_item(read(request)));
        }
    }

    /// Deletes a part of the row with this `id`, in a table whose sort key is `part`.
    pub fn delete_part(&self, table: &str, id: &str, part: &str) {
        let key = json!({"id": {"S": id}, "part": {"S": part}});
        self.database
            .delete_item(read(json!({"TableName": full(table), "Key": key})))
            .expect("the part can be deleted");
    }

    pub fn delete(&self, table: &str, id: &str) {
        let key = Map::from_iter([("id".to_owned(), json!({"S": id}))]);
        self.database.delete_item(read(json!({"TableName": full(table), "Key": key}))).expect("the row can be deleted");
    }
}

pub struct Received {
    queue: String,
    messages: Vec<queues::Message>,
    shared: Arc<Shared>,
}

impl Received {
    pub fn event(&self) -> Value {
        let records = self.messages.iter().map(|message| {
            json!({
                "messageId": message.id, "receiptHandle": message.id, "body": message.body, "messageAttributes": {},
                "attributes": {"ApproximateReceiveCount": message.received.to_string()}, "eventSource": "aws:sqs",
                "eventSourceARN": format!("arn:aws:sqs:eu-central-1:123456789012:{}", self.queue), "awsRegion": "eu-central-1",
            })
        });
        json!({"Records": records.collect::<Vec<_>>()})
    }

    /// The function failed: every message comes again, or goes to the dead-letter queue.
    pub fn failed(self) {
        let ids = self.messages.iter().map(|message| json!({"itemIdentifier": message.id}));
        let all = json!({"batchItemFailures": ids.collect::<Vec<_>>()});
        self.answered(&all);
    }

    /// Handles the function's report: failed messages come again, or go to the dead-letter queue. Returns their
    /// number.
    pub fn answered(self, failures: &Value) -> usize {
        let failed: Vec<&str> = failures["batchItemFailures"]
            .as_array()
            .expect("a report")
            .iter()
            .map(|failure| failure["itemIdentifier"].as_str().expect("an id"))
            .collect();
        let mut queues = self.shared.queues.lock().unwrap();
        for message in self.messages.into_iter().filter(|message| failed.contains(&message.id.as_str())) {
            queues.put_back(&self.queue, message);
        }
        failed.len()
    }
}

impl Drop for Aws {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn full(table: &str) -> String {
    format!("{TABLE_PREFIX}{table}")
}

fn read<T: serde::de::DeserializeOwned>(request: Value) -> T {
    serde_json::from_value(request).expect("a request of DynamoDB's")
}
