//! The receipt of a call: the effects of its tools, from our own record.

use std::collections::HashMap;

use futures_util::{join, try_join};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    Deadline, Error, Result,
    actions::{ActionTool, ToolConfig},
    cut::fit,
    described::Described,
    models::{
        Call, CallId, Execution, ExecutionId, ExecutionStatus, Fault, OrganizationId, RecipientState,
        ReturningTransfer, Timestamp, Tool, ToolEffect, ToolId, ToolName, Transfer, TransferOutcome, Undelivered,
    },
    store::{Calls, Cursor, Database, ExecutionFilter, Executions, Tools},
    tool::{RecipientOutcome, arguments::significant},
};

/// Executions in a record, the newest ones: pages, and executions per page.
const MOST_PAGES: usize = 5;
const PAGE: i32 = 200;
/// Bytes of an effect's arguments for the model.
const ARGUMENTS_BUDGET: usize = 512;

#[derive(Clone)]
pub struct Receipts {
    calls: Calls,
    executions: Executions,
    tools: Tools,
}

#[derive(Debug)]
pub struct CallRecord {
    pub id: CallId,
    /// `None` for a call that did not come in through us.
    pub call: Option<Call>,
    /// Newest first.
    pub executions: Vec<Execution>,
    /// False if executions are left out: the older ones of more than a thousand, or unreadable ones of a newer version.
    pub complete: bool,
}

/// The effects of a call's tools. Lookups that failed or may have failed stand with the other failures.
#[derive(Debug, Serialize, Described)]
pub struct CallReceipt {
    call_id: CallId,
    /// The call is over, and so are its tools; its transfer is over or connected. False, too, if the end of the call is not known.
    #[serde(rename = "final")]
    is_final: bool,
    /// False if executions are left out: the older ones of more than a thousand, or unreadable ones of a newer version.
    complete: bool,
    /// Effects that happened; with the status `partial`, for some of the recipients.
    done: Vec<ReceiptLine>,
    failed: Vec<ReceiptLine>,
    /// They may have happened.
    unknown: Vec<ReceiptLine>,
    /// Requested and not carried out: never confirmed by the caller, or still waiting.
    not_done: Vec<ReceiptLine>,
    /// Lookups, which change nothing.
    looked_up: Vec<ReceiptLine>,
    /// The names of the tools in `done`.
    tools_done: Vec<ToolName>,
    transfers: Vec<ReceiptTransfer>,
    /// The call in which the caller is back with the agent after a transfer that nobody answered.
    returned_as: Option<CallId>,
}

#[derive(Debug, Serialize, Described)]
struct ReceiptLine {
    execution_id: ExecutionId,
    tool_id: ToolId,
    /// The tool's name; null if it was deleted.
    tool: Option<ToolName>,
    label: Option<String>,
    effect: Option<ToolEffect>,
    /// Redacted, as in the history.
    arguments: Map<String, Value>,
    status: ExecutionStatus,
    /// Why it failed or was not done.
    reason: Option<String>,
    fault: Option<Fault>,
    next_step: Option<&'static str>,
    at: Timestamp,
}

#[derive(Debug, Serialize, Described)]
struct ReceiptTransfer {
    at: Timestamp,
    /// `number`, `sip`, `assistant`, …, if VAPI reported it.
    to: Option<String>,
    /// Of a transfer with `if_unanswered`: null while it rings, `connected` while the callee is on the line. Null for other
    /// transfers, whose outcome nobody reports.
    outcome: Option<TransferOutcome>,
}

/// A line of the receipt, as the model sees it.
#[derive(Debug, Clone, Deserialize)]
pub struct Evidence {
    pub tool: Option<String>,
    pub effect: Option<ToolEffect>,
    pub status: ExecutionStatus,
    /// Redacted, as in the history.
    #[serde(default)]
    pub arguments: Map<String, Value>,
}

impl Evidence {
    pub const fn proves(&self) -> bool {
        matches!(self.status, ExecutionStatus::Succeeded | ExecutionStatus::Partial)
    }
}

impl Receipts {
    pub fn new(database: &Database) -> Self {
        Self { calls: Calls::new(database), executions: Executions::new(database), tools: Tools::new(database) }
    }

    /// # Errors
    /// [`Error::NotFound`] if the organization has neither the call nor an execution in it.
    pub async fn record(&self, organization: OrganizationId, id: &CallId) -> Result<CallRecord> {
        let (call, executions) = join!(self.calls.find(id), self.executions_of(organization, id));
        let (executions, complete) = executions?;
        let call = match call? {
            Some(call) => Some(call.for_owner(organization).ok_or(Error::NotFound("call"))?),
            None if executions.is_empty() && complete => return Err(Error::NotFound("call")),
            None => None,
        };
        Ok(CallRecord { id: id.clone(), call, executions, complete })
    }

    pub async fn receipt(
        &self,
        organization: OrganizationId,
        record: &CallRecord,
        deadline: Deadline,
    ) -> Result<CallReceipt> {
        let mut ids: Vec<ToolId> = record.executions.iter().map(|execution| execution.tool_id).collect();
        ids.extend(record.call.iter().flat_map(|call| &call.on_call_start).map(|started| started.tool_id));
        ids.sort_unstable();
        ids.dedup();
        let sids: Vec<String> =
            record.executions.iter().flat_map(recipients).filter_map(|recipient| recipient.sid).collect();
        let tools = self.tools.get_many(organization, &ids, deadline);
        let undelivered = self.executions.undelivered(organization, &sids, deadline);
        let (tools, undelivered) = try_join!(tools, undelivered)?;
        Ok(CallReceipt::of(record, &tools, &undelivered))
    }

    /// Newest first, and whether the list is complete.
    async fn executions_of(&self, organization: OrganizationId, call: &CallId) -> Result<(Vec<Execution>, bool)> {
        let mut wanted = ExecutionFilter::newest(PAGE);
        let (mut executions, mut complete) = (Vec::new(), true);
        for _ in 0..MOST_PAGES {
            let (page, is_whole) = self.executions.of_call(organization, call, &wanted).await?;
            executions.extend(page.items);
            complete &= is_whole;
            match page.next_cursor {
                Some(next) => wanted.after = Some(Cursor::parse(&next)?),
                None => return Ok((executions, complete)),
            }
        }
        Ok((executions, false))
    }
}

impl CallReceipt {
    /// The lines for the comparison with the agent's words, effects first.
    pub fn evidence(&self, most: usize) -> Vec<Evidence> {
        let groups = [&self.done, &self.failed, &self.unknown, &self.not_done, &self.looked_up];
        let lines = groups.into_iter().flatten().take(most).map(|line| Evidence {
            tool: line.tool.as_ref().map(ToString::to_string),
            effect: line.effect,
            status: line.status,
            arguments: line.arguments.clone(),
        });
        lines.collect()
    }

    /// The certain and the possible effects, for the model of a later call. Without the transfer that ended the call, and without
    /// the tools of the call's start, which no agent requested.
    pub fn effects(&self, record: &CallRecord) -> [Vec<String>; 2] {
        let of_call = |line: &ReceiptLine| {
            record.call.as_ref().is_some_and(|call| {
                call.transfer.as_ref().is_some_and(|transfer| transfer.execution_id == line.execution_id)
                    || call.on_call_start.iter().any(|started| started.execution_id == line.execution_id)
            })
        };
        [&self.done, &self.unknown].map(|lines| {
            let stays = |line: &&ReceiptLine| line.effect != Some(ToolEffect::None) && !of_call(line);
            lines.iter().filter(stays).filter_map(ReceiptLine::told).collect()
        })
    }

    pub const fn is_final(&self) -> bool {
        self.is_final
    }

    fn of(record: &CallRecord, tools: &[Tool], undelivered: &HashMap<String, Undelivered>) -> Self {
        let tools: HashMap<ToolId, &Tool> = tools.iter().map(|tool| (tool.id, tool)).collect();
        let now = Timestamp::now();
        let open = |transfer: &ReturningTransfer| !transfer.is_over() && !transfer.is_connected(now);
        let rings = |call: &Call| call.transfer.as_ref().is_some_and(open);
        let over = record.call.as_ref().is_some_and(|call| call.ended_at.is_some() && !rings(call));
        let is_back = record.call.as_ref().is_some_and(|call| !call.earlier_calls().is_empty());
        let mut receipt = Self {
            call_id: record.id.clone(),
            is_final: over,
            complete: record.complete,
            done: Vec::new(),
            failed: Vec::new(),
            unknown: Vec::new(),
            not_done: Vec::new(),
            looked_up: Vec::new(),
            tools_done: Vec::new(),
            transfers: transfers(record),
            returned_as: record.call.as_ref().and_then(|call| call.transfer.as_ref()?.returned_as.clone()),
        };
        for (place, execution) in record.executions.iter().enumerate().rev() {
            let tool = tools.get(&execution.tool_id).copied();
            let mut line = ReceiptLine::of(execution, tool);
            line.take_back(execution, undelivered);
            let group = match line.status {
                ExecutionStatus::Replayed if !record.complete || has_original(&record.executions, place) => continue,
                // Its function ended, or the history failed, before the execution with the effect was written.
                ExecutionStatus::Replayed if line.reason.is_some() => &mut receipt.unknown,
                // The call before has it.
                ExecutionStatus::Replayed if is_back => continue,
                ExecutionStatus::Succeeded | ExecutionStatus::Partial | ExecutionStatus::Replayed
                    if line.effect == Some(ToolEffect::None) =>
                {
                    &mut receipt.looked_up
                }
                ExecutionStatus::Succeeded | ExecutionStatus::Partial | ExecutionStatus::Replayed => {
                    if let Some(name) = line.tool.as_ref().filter(|name| !receipt.tools_done.contains(name)) {
                        receipt.tools_done.push(name.clone());
                    }
                    &mut receipt.done
                }
                ExecutionStatus::Failed | ExecutionStatus::Limited => &mut receipt.failed,
                ExecutionStatus::Unknown => &mut receipt.unknown,
                ExecutionStatus::Queued => {
                    receipt.is_final = false;
                    line.reason = Some("It waits for its turn, or is at work.".to_owned());
                    &mut receipt.not_done
                }
                ExecutionStatus::ReadBack if is_settled(execution, record.executions.get(..place), tool) => continue,
                ExecutionStatus::ReadBack => {
                    line.reason = Some("The caller heard the request and did not confirm it.".to_owned());
                    &mut receipt.not_done
                }
            };
            group.push(line);
        }
        receipt.add_lost(record, &tools);
        receipt
    }

    /// Adds the tools of the call's start that left no record.
    fn add_lost(&mut self, record: &CallRecord, tools: &HashMap<ToolId, &Tool>) {
        for started in record.call.iter().flat_map(|call| &call.on_call_start) {
            let has_record = |execution: &Execution| execution.id == started.execution_id;
            if !record.complete || record.executions.iter().any(has_record) {
                continue;
            }
            let tool = tools.get(&started.tool_id).copied();
            self.unknown.push(ReceiptLine {
                execution_id: started.execution_id,
                tool_id: started.tool_id,
                tool: tool.map(|tool| tool.name.clone()),
                label: tool.map(|tool| tool.label.clone()),
                effect: tool.and_then(effect_of),
                arguments: Map::new(),
                status: ExecutionStatus::Queued,
                reason: Some("It was queued when the call started, and there is no record of its end.".to_owned()),
                fault: None,
                next_step: None,
                at: record.call.as_ref().map_or_else(Timestamp::now, |call| call.created_at),
            });
        }
    }
}

impl ReceiptLine {
    /// Name and arguments; `None` for a deleted tool.
    fn told(&self) -> Option<String> {
        let arguments = fit(Value::Object(self.arguments.clone()), ARGUMENTS_BUDGET);
        let reach = match self.status {
            ExecutionStatus::Partial => " (for some of the recipients only; the others may still get it)",
            _ => "",
        };
        self.tool.as_ref().map(|name| format!("{name} {arguments}{reach}"))
    }

    fn take_back(&mut self, execution: &Execution, undelivered: &HashMap<String, Undelivered>) {
        let recipients = recipients(execution);
        let sent: Vec<&String> = recipients.iter().filter_map(|recipient| recipient.sid.as_ref()).collect();
        let lost: Vec<&Undelivered> = sent.iter().filter_map(|sid| undelivered.get(*sid)).collect();
        let done = matches!(self.status, ExecutionStatus::Succeeded | ExecutionStatus::Partial);
        let Some(first) = lost.first().filter(|_| done) else { return };
        let others = |state| recipients.iter().any(|recipient| recipient.sid.is_none() && recipient.state == state);
        self.status = if lost.len() < sent.len() || others(RecipientState::AlreadySent) {
            ExecutionStatus::Partial
        } else if others(RecipientState::Unknown) {
            ExecutionStatus::Unknown
        } else {
            ExecutionStatus::Failed
        };
        let messages = match sent.len() {
            1 => "The message was".to_owned(),
            all => format!("{} of {all} messages were", lost.len()),
        };
        let why = format!("{messages} not delivered (Twilio: {}).", first.why());
        self.reason = Some(self.reason.take().map_or(why.clone(), |earlier| format!("{earlier} {why}")));
    }

    fn of(execution: &Execution, tool: Option<&Tool>) -> Self {
        Self {
            execution_id: execution.id,
            tool_id: execution.tool_id,
            tool: tool.map(|tool| tool.name.clone()),
            label: tool.map(|tool| tool.label.clone()),
            effect: tool.and_then(effect_of),
            arguments: execution.arguments.clone(),
            status: execution.status,
            reason: execution.error.clone(),
            fault: execution.fault,
            next_step: execution.fault.map(Fault::next_step),
            at: execution.started_at,
        }
    }
}

fn recipients(execution: &Execution) -> Vec<RecipientOutcome> {
    let listed = execution.result.as_ref().and_then(|result| result.get("recipients"));
    listed.and_then(|listed| Vec::deserialize(listed).ok()).unwrap_or_default()
}

/// `None` for a configuration of a newer version.
fn effect_of(tool: &Tool) -> Option<ToolEffect> {
    ToolConfig::stored(tool).ok().map(|config| config.effect())
}

/// Whether the request was made again later, in any spelling: it acted, or was read back anew.
fn is_settled(request: &Execution, later: Option<&[Execution]>, tool: Option<&Tool>) -> bool {
    let tool = tool.and_then(|tool| ActionTool::of_row(tool).ok());
    let heard = |execution: &Execution| match &tool {
        Some(tool) => tool.consented_in_history(&execution.arguments),
        None => significant(&execution.arguments),
    };
    let asked = heard(request);
    let again = |later: &Execution| {
        has_tool_and_recipients(later, request) && later.status != ExecutionStatus::Limited && heard(later) == asked
    };
    later.is_some_and(|later| later.iter().any(again))
}

/// Whether the effect that a repetition was answered with may have a row of its own. The arguments may be spelled differently
/// there, so they are not compared: no effect may stand twice. Of repetitions without such a row, the first counts.
fn has_original(newest_first: &[Execution], place: usize) -> bool {
    let Some(repetition) = newest_first.get(place) else { return false };
    newest_first.iter().enumerate().any(|(at, other)| match other.status {
        ExecutionStatus::Replayed => at > place && has_tool_and_recipients(other, repetition),
        ExecutionStatus::Limited | ExecutionStatus::ReadBack => false,
        _ => has_tool_and_recipients(other, repetition),
    })
}

/// Requests to different numbers look the same in the redacted record, so the hashes of the numbers are compared.
fn has_tool_and_recipients(execution: &Execution, of: &Execution) -> bool {
    execution.tool_id == of.tool_id && of.recipients.iter().all(|recipient| execution.recipients.contains(recipient))
}

fn transfers(record: &CallRecord) -> Vec<ReceiptTransfer> {
    let known = record.call.iter().flat_map(|call| &call.transfers);
    let known = known.map(|Transfer { at, to }| ReceiptTransfer { at: *at, to: to.clone(), outcome: None });
    let ours = record.call.iter().filter_map(|call| call.transfer.as_ref());
    let rung = ours.flat_map(ReturningTransfer::rung_so_far);
    let rung = rung.map(|rung| ReceiptTransfer { at: rung.at, to: Some(rung.to), outcome: rung.outcome });
    known.chain(rung).collect()
}
