//! Tool calls that each send a text message, some with a fault at Twilio.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use serde_json::{Value, json};
use tests::{
    Tenant, ai_sms,
    standins::{Fault, vapi::ToolCall},
};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::{
    Result,
    open_loop::{Outcome, open_loop},
    stack::Stack,
};

/// One request of a hundred meets a fault.
const FAULT_EVERY: usize = 100;
/// How long the history may take after the last answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// An organization's tool for text messages.
pub(crate) struct Sms {
    tool: Value,
    tenant: Tenant,
}

/// A request with the effect that it asks for.
#[derive(Clone)]
pub(crate) struct Asked {
    /// The message's text, unique.
    text: String,
    call_id: String,
    event: Value,
    fault: Option<Fault>,
}

/// The answer to VAPI.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Said {
    Done,
    /// A sentence for the model.
    NotDone,
    /// Neither; the status, 0 if the function failed.
    Else(u64),
}

impl Sms {
    pub(crate) async fn of(stack: &Stack, tenant: &Tenant) -> Self {
        let world = &stack.world;
        let tool = world.create_as(tenant, &ai_sms()).await.expect(201);
        let id = tool["id"].as_str().unwrap_or_default();
        world.attach_as(tenant, &tenant.agent_id, id).await.expect(201);
        Self { tool, tenant: tenant.clone() }
    }

    /// `count` requests, each in a phone call of its own.
    pub(crate) fn requests(&self, stack: &Stack, count: usize, faults: bool) -> Vec<Asked> {
        let series = Uuid::new_v4().simple();
        let request = |number: usize| {
            let (text, call_id) = (format!("{series} {number}"), Uuid::now_v7().to_string());
            let call = ToolCall {
                assistant_id: self.tenant.assistant_id.clone(),
                tool_name: self.tool["name"].as_str().unwrap_or_default().to_owned(),
                arguments: [("text".to_owned(), json!(text))].into_iter().collect(),
                customer_number: format!("+1415{:07}", 2_000_000 + number),
                phone_number: self.tenant.phone_number.clone(),
                call_id: Some(call_id.clone()),
                ..ToolCall::default()
            };
            let event = stack.world.vapi_event(&call).to_json();
            let fault = (faults && number % FAULT_EVERY == FAULT_EVERY / 2).then(|| fault(number / FAULT_EVERY));
            Asked { text, call_id, event, fault }
        };
        (0..count).map(request).collect()
    }
}

/// A refusal, an error, or a cut connection before or after the message is sent.
fn fault(number: usize) -> Fault {
    let fault = match number % 4 {
        0 => Fault::drop_after(),
        1 => Fault::status(400),
        2 => Fault::drop_before(),
        _ => Fault::status(500),
    };
    fault.on("POST", "/Messages.json")
}

/// Sends `requests` at `rate` a second.
pub(crate) async fn send(stack: &Arc<Stack>, requests: &[Asked], rate: u32) -> Outcome<Said> {
    let at = Arc::clone(stack);
    let most = usize::try_from(rate).unwrap_or(usize::MAX).saturating_mul(2);
    open_loop(requests.to_vec(), Duration::from_secs(1) / rate, most, move |asked: Asked| {
        let stack = Arc::clone(&at);
        async move {
            if let Some(fault) = asked.fault {
                stack.world.twilio.inject(fault);
            }
            let answer = stack.ask("execute", &asked.event).await.unwrap_or_default();
            let body = answer["body"].as_str().and_then(|body| serde_json::from_str::<Value>(body).ok());
            match body.unwrap_or_default()["success"].as_bool() {
                Some(true) => Said::Done,
                Some(false) => Said::NotDone,
                None => Said::Else(answer["statusCode"].as_u64().unwrap_or_default()),
            }
        }
    })
    .await
}

/// The requests and their effects after a schedule.
pub(crate) struct Checked {
    pub(crate) effects: usize,
    /// Requests that met a fault.
    pub(crate) faults: usize,
    pub(crate) wrong: Vec<String>,
}

/// Compares the sent requests with Twilio's messages and with the history.
pub(crate) async fn check(stack: &Stack, sent: &[Asked], said: &Outcome<Said>) -> Result<Checked> {
    let history = history(stack, sent).await;
    let world = &stack.world;
    let mut made = HashMap::<String, usize>::new();
    for message in world.twilio.messages() {
        *made.entry(message.body).or_default() += 1;
    }
    // How Twilio answered each text; `None` for a cut connection.
    let mut answered = BTreeMap::<String, Vec<Option<u16>>>::new();
    for request in world.twilio.requests() {
        let text = request.body.as_array().into_iter().flatten().find(|pair| pair[0] == "Body");
        let text = text.and_then(|pair| pair[1].as_str()).unwrap_or_default();
        answered.entry(text.to_owned()).or_default().push(request.status);
    }
    let mut checked = Checked { effects: 0, faults: 0, wrong: Vec::new() };
    if said.answers.len() != sent.len() {
        return Err("not every request was answered".into());
    }
    for (asked, timed) in sent.iter().zip(&said.answers) {
        let count = made.remove(&asked.text).unwrap_or_default();
        let at_twilio = answered.remove(&asked.text).unwrap_or_default();
        let state = history.get(&asked.call_id).map_or("", String::as_str);
        checked.effects += count;
        let met = at_twilio.iter().any(|status| status.is_none_or(|status| status >= 300));
        checked.faults += usize::from(met);
        let right = match (timed.answer, count, met) {
            (Said::Done, 1, false) => state == "succeeded",
            (Said::NotDone, 0, true) => matches!(state, "failed" | "unknown"),
            (Said::NotDone, 1, true) => state == "unknown",
            _ => false,
        };
        if !right {
            let answer = timed.answer;
            checked.wrong.push(format!(
                "{}: answered {answer:?}, made {count} times, Twilio answered {at_twilio:?}, the history says {state:?}",
                asked.text
            ));
        }
    }
    let nobodys = made.into_keys().map(|text| format!("{text}: nobody asked for this message"));
    checked.wrong.extend(nobodys);
    let left = world.twilio.faults().len();
    if left > 0 {
        checked.wrong.push(format!("{left} faults met no request"));
    }
    checked.wrong.extend(stack.settled().await);
    Ok(checked)
}

/// The state of each call's execution. They are written after the answers.
async fn history(stack: &Stack, sent: &[Asked]) -> HashMap<String, String> {
    let until = Instant::now() + PATIENCE;
    loop {
        let text = |row: &Value, field: &str| row[field].as_str().unwrap_or_default().to_owned();
        let rows = stack.world.executions();
        let states: HashMap<_, _> = rows.iter().map(|row| (text(row, "call_id"), text(row, "status"))).collect();
        if Instant::now() > until || sent.iter().all(|asked| states.contains_key(&asked.call_id)) {
            return states;
        }
        sleep(Duration::from_millis(200)).await;
    }
}
