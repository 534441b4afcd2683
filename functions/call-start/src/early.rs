//! Tools that finish before VAPI creates the call: their results are variables of the call.
//!
//! Only tools that change nothing begin before there is a call: a call that VAPI does not take leaves no effect. They run on
//! the queue like every tool of a call's start, under a provisional id of the call, and wait in its row
//! (`store/calls/starting.rs`). At the creation of the call the row names the call, and from then on results go there.

use std::{collections::BTreeMap, pin::Pin, time::Duration};

use futures_util::join;
use serde_json::{Map, Value};
use shared::{
    Deadline,
    actions::ToolConfig,
    backoff::Backoff,
    clients::vapi,
    error,
    models::{CallId, CallVariable, ExecutionId, PhoneNumber, Queued, StartedTool, StartingCall, Timestamp, Tool},
    tool::result_variables,
};

use crate::{ASIDE_WITHIN, Deps, queued, set_off, twilio_request::Incoming};

/// Kept back from the wait, for the row's change at the creation of the call.
const RESERVE: Duration = Duration::from_millis(50);
const PAUSE: Duration = Duration::from_millis(25);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// Results of a call that never began are kept this long.
const KEPT: Duration = Duration::from_secs(60 * 60);

/// The tools that began before the call.
#[derive(Default)]
pub(crate) struct Early {
    starting: Option<CallId>,
    started: Vec<StartedTool>,
    /// All of them were set off, and their later results find the call.
    on_their_way: bool,
    /// By execution.
    named: BTreeMap<ExecutionId, String>,
    pub(crate) variables: Map<String, Value>,
}

/// The tools of the call's start, if they were found, and the early ones.
pub(crate) async fn begin<F>(
    deps: &Deps,
    number: &PhoneNumber,
    incoming: &Incoming,
    mut finding: Pin<&mut F>,
) -> (Option<Option<Vec<Tool>>>, Early)
where
    F: Future<Output = Option<Vec<Tool>>>,
{
    let wait = Duration::from_millis(number.wait_ms.into());
    let until = Deadline::after(wait).reserving(RESERVE.min(wait / 2));
    let Ok(found) = tokio::time::timeout(until.remaining(), &mut finding).await else {
        return (None, Early::default());
    };
    let tools = found.iter().flatten().filter(|tool| changes_nothing(tool));
    let started: Vec<StartedTool> = tools.map(crate::started).collect();
    let mut early = Early { started, ..Early::default() };
    if !early.started.is_empty() {
        let starting = CallId::provisional();
        early.starting = Some(starting.clone());
        let on_their_way = &mut early.on_their_way;
        let results = async {
            *on_their_way = begin_all(deps, number, incoming, &starting, &early.started).await;
            results(deps, number, &starting, &early.started, until).await
        };
        let results = tokio::time::timeout(until.remaining(), results).await.unwrap_or_default();
        early.keep(found.iter().flatten(), &results);
    }
    (Some(found), early)
}

pub(crate) fn changes_nothing(tool: &Tool) -> bool {
    ToolConfig::stored(tool).is_ok_and(|config| !config.action.has_effect())
}

/// False: something failed, which is logged.
async fn begin_all(
    deps: &Deps,
    number: &PhoneNumber,
    incoming: &Incoming,
    starting: &CallId,
    started: &[StartedTool],
) -> bool {
    let row = StartingCall {
        id: starting.clone(),
        organization_id: number.organization_id,
        caller_phone_number: Some(incoming.caller.clone()),
        results: BTreeMap::new(),
        call_id: None,
        expires_at: Timestamp::now().plus(KEPT).as_seconds(),
    };
    let run = |tool: &StartedTool| {
        let mut run = queued(number.organization_id, starting, &incoming.caller, &incoming.called, tool);
        run.before_call = true;
        (Queued::Execution(Box::new(run)), Duration::ZERO)
    };
    let messages: Vec<_> = started.iter().map(run).collect();
    let (written, sent) = join!(deps.calls.put_starting(&row), set_off(deps, starting, &messages, ASIDE_WITHIN));
    if let Err(error) = &written {
        tracing::error!(phone_number.id = %number.id, "the start of a call could not be written down: {}", error::chain(error));
    }
    written.is_ok() && sent
}

/// The results, by execution, as soon as all are there.
async fn results(
    deps: &Deps,
    number: &PhoneNumber,
    starting: &CallId,
    started: &[StartedTool],
    until: Deadline,
) -> BTreeMap<String, Option<String>> {
    let mut backoff = Backoff::new(PAUSE, LONGEST_PAUSE, until);
    let mut known = BTreeMap::new();
    while backoff.pause().await {
        // A read that ends too late would take with it the results of the one before.
        let read = deps.calls.starting(number.organization_id, starting);
        match tokio::time::timeout(until.remaining().saturating_sub(PAUSE), read).await {
            Ok(Ok(Some(row))) => known = row.results,
            Ok(Ok(None)) => {}
            Ok(Err(error)) => {
                tracing::error!(phone_number.id = %number.id, "the start of a call could not be read: {}", error::chain(&error));
            }
            Err(_elapsed) => break,
        }
        if started.iter().all(|tool| known.contains_key(&tool.execution_id.to_string())) {
            break;
        }
    }
    known
}

impl Early {
    fn keep<'a>(&mut self, tools: impl Iterator<Item = &'a Tool>, results: &BTreeMap<String, Option<String>>) {
        // A tool without a result keeps its name, so that no other tool's result takes its place in the assistant's texts.
        let mut used = Map::new();
        for tool in tools {
            let Some(started) = self.started.iter().find(|started| started.tool_id == tool.id) else { continue };
            let name = result_variables::name(&tool.name, &used);
            used.insert(name.clone(), Value::Null);
            let json = results.get(&started.execution_id.to_string()).and_then(Option::as_deref);
            let Some(result) = json.and_then(|json| serde_json::from_str(json).ok()) else { continue };
            self.variables.insert(name.clone(), vapi::variables::plain(result));
            self.named.insert(started.execution_id, name);
        }
    }

    /// Whether the tool needs no message of the call: its result is known, or finds the call. A read that is done again does no
    /// harm.
    pub(crate) fn has_begun(&self, tool: &StartedTool) -> bool {
        self.named.contains_key(&tool.execution_id) || (self.on_their_way && self.started.contains(tool))
    }

    /// The tool, if it began.
    pub(crate) fn of(&self, tool: &Tool) -> Option<StartedTool> {
        self.started.iter().find(|started| started.tool_id == tool.id).cloned()
    }

    /// The results at the creation of the call, in the form of the call's row, and its variables.
    pub(crate) async fn hand_over(
        &mut self,
        deps: &Deps,
        number: &PhoneNumber,
        call: &CallId,
        within: Duration,
    ) -> (BTreeMap<String, Option<String>>, Vec<CallVariable>) {
        let Some(starting) = &self.starting else { return Default::default() };
        let begun = tokio::time::timeout(within, deps.calls.begin(number.organization_id, starting, call)).await;
        let row = match begun {
            Ok(Ok(row)) => row,
            Ok(Err(error)) => {
                tracing::error!(call.id = %call, "the results of a call's start were lost: {}", error::chain(&error));
                None
            }
            Err(_elapsed) => {
                tracing::error!(call.id = %call, "the results of a call's start could not be taken in time");
                None
            }
        };
        self.on_their_way &= row.is_some();
        let mut results = row.map(|row| row.results).unwrap_or_default();
        for tool in &self.started {
            let id = tool.execution_id.to_string();
            if self.named.contains_key(&tool.execution_id) {
                results.insert(id, None);
            } else if let Some(Some(json)) = results.get(&id) {
                results.insert(id, Some(StartedTool::line(&tool.label, json)));
            }
        }
        let named = self.named.iter().map(|(id, name)| CallVariable { execution_id: *id, name: name.clone() });
        (results, named.collect())
    }

    /// There will be no call.
    pub(crate) async fn give_up(&self, deps: &Deps, number: &PhoneNumber, within: Duration) {
        let Some(starting) = &self.starting else { return };
        let given_up = deps.calls.give_up_starting(number.organization_id, starting);
        if let Ok(Err(error)) = tokio::time::timeout(within, given_up).await {
            tracing::warn!(phone_number.id = %number.id, "the start of a call could not be given up: {}", error::chain(&error));
        }
    }
}
