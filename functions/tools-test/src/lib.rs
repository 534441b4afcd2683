//! Tries a tool, saved or not.
//!
//! A dry run shows the request with secrets masked, and sends nothing. Otherwise the tool runs once, as in a call, under its
//! limits, and the history has it with the trigger `test`. An unsaved configuration gets an id derived from it in the history,
//! because its request was sent; only members who may make tools may run it.

mod request;

use std::time::{Duration, Instant};

use futures_util::join;
use serde_json::{Map, Value, json};
use shared::{
    Deadline, Error, Result,
    actions::{self, ANSWER_WITHIN, ActionCall, ActionTool},
    described::{Schemas, reference},
    execution::{ExecutionRequest, Executor},
    http::{Access, Asked, Operation, Repeated, Reply, Sent, operation},
    idempotency::Key,
    lifecycle::{self, References},
    models::{E164, ExecutionId, ExecutionOrigin, ExecutionStatus, OrganizationId, PhoneNumber, Role, Tool},
    platform::Parts,
    store::Tools,
    tool::{CallContext, Conversation, Subject, ToolOutcome},
};

use crate::request::{TestRequest, TestedTool};

shared::routes!(Deps, "tools": test_tool);

#[derive(Parts)]
pub struct Deps {
    pub access: Access,
    pub references: References,
    pub tools: Tools,
    #[part(platform.executor(platform.idempotency()?)?)]
    pub executor: Executor,
}

/// A tool with arguments and a made-up call.
struct Trial;

shared::described!(Trial => {"$ref": "#/components/schemas/Trial"});

/// Try a tool out before it is live
///
/// A tool that is saved (`tool_id`) or a configuration that is not (`config`, checked as if it were to be saved), with
/// arguments as a model would give them and the numbers of a made-up call.
///
/// With `dry_run`, which is the default, nothing is sent: `request` shows the request, with `[secret]` in place of
/// secrets: the author's own headers, values with a secret's name (`api_key`, `cookie`, `pin`), and all repetitions of
/// these values. Of a Pipedream action that is not saved, the definition is looked up.
///
/// With `dry_run: false` the tool runs once, also an `async` one, under its limits (each try counts as a conversation
/// of its own), and stands in the history with the trigger `test`. A tool with a `chat.least_role` runs only for that role
/// and higher ones, a configuration that is not saved only for an admin or an owner, who may make tools. Each request is an
/// effect of its own; with an `Idempotency-Key` the same tool, key, numbers and arguments are answered from the record for
/// five days.
///
/// - 200: The request, or the answer for the model.
///
/// ```json,dry_run: What would be sent
/// {"tool_id": "01930f5e-6a1b-7c2d-8e3f-4a5b6c7d8e9f", "arguments": {"text": "See you on Monday at nine."},
///  "caller_phone_number": "+14155550101"}
/// ```
/// ```json,configuration: A configuration that is not saved yet, with its arguments
/// {"config": {"type": "api_request", "label": "Look up customer", "method": "GET",
///  "url": "https://crm.example.com/customers?phone={{caller_phone_number}}",
///  "headers": {"Authorization": {"mode": "fixed", "value": "Bearer crm-key"}}}, "arguments": {},
///  "caller_phone_number": "+14155550101", "dry_run": true}
/// ```
/// ```json,run: Sends it, once
/// {"tool_id": "01930f5e-6a1b-7c2d-8e3f-4a5b6c7d8e9f", "arguments": {"text": "See you on Monday at nine."},
///  "caller_phone_number": "+14155550101", "dry_run": false}
/// ```
/// ```json,200 dry_run
/// {"dry_run": true, "status": "ready", "request": {"from": "+15005550006", "text": "See you on Monday at nine.",
///  "recipients": [{"to": "+14155550101", "allowed": true}]}, "ignored_arguments": [], "duration_ms": 0}
/// ```
/// ```json,200 run
/// {"dry_run": false, "status": "succeeded", "answer": {"success": true, "result": {"sent": 1,
///  "summary": "Sent to +14155550101.", "recipients": [{"to": "+14155550101", "state": "sent", "status": "queued",
///  "sid": "SM00000000000000000000000000000000"}]}}, "ignored_arguments": [], "duration_ms": 214,
///  "execution_id": "01930f5e-6a1b-7c2d-8e3f-4a5b6c7d8ea0"}
/// ```
#[operation(POST "/api/{slug}/tools/test", Member, also(429 = OverBudget, 502, 504), resource(ToolsTest), answers(describe_trial))]
async fn test_tool(deps: &Deps, asked: &Asked<'_>, key: Repeated, body: Sent<Trial>) -> Result<Reply> {
    let (member, deadline) = (&asked.member, asked.deadline.at_most(ANSWER_WITHIN));
    let (organization, key) = (asked.organization(), key.0);
    let has_key = key.is_some();
    let request = TestRequest::read(&body.json()?)?;
    if !request.dry_run && matches!(request.which, TestedTool::Unsaved(_)) {
        // Otherwise members who may not make a tool could run any.
        member.must_be(Role::Admin)?;
    }

    let (tool, line, room) = join!(
        find_tool(deps, organization, request.which, deadline),
        find_line(deps, organization, request.called),
        has_room(deps, organization, request.dry_run, deadline),
    );
    let (tool, line) = (ActionTool::of_row(&tool?)?, line?);
    let called = line.as_ref().map(|line| line.number.clone());
    let conversation = Conversation {
        caller: request.caller.map(|caller| caller.to_string()),
        called,
        line,
        ..Conversation::default()
    };
    let id = ExecutionId::generate();
    // The same key with another made-up call is another request.
    let numbers = [&conversation.caller, &conversation.called.as_ref().map(ToString::to_string)];
    let name = key.map_or_else(|| id.to_string(), |key| Key::new(&["test", &key], &json!(numbers)).as_str().to_owned());
    let context = CallContext {
        organization,
        user: None,
        subject: Subject::Request(&name),
        automation: None,
        delivery: Some(&name),
        conversation: &conversation,
        trigger: ExecutionOrigin::Test,
        refused: None,
        deadline,
    };
    if request.dry_run {
        show(deps, &tool, &context, &request.arguments).await
    } else {
        if let Some(least) = tool.chat.least_role {
            member.must_be(least)?;
        }
        // A request with a key may have been carried out before, whatever is left of the budget now.
        let room = match room {
            Err(over @ Error::OverBudget(_)) if has_key => Err(over),
            room => Ok(room?),
        };
        run(deps, &tool, &context, ExecutionRequest::new(id, &request.arguments), room).await
    }
}

fn describe_trial(operation: &mut Operation, _: &mut Schemas) {
    let either = json!({"oneOf": [reference("Shown"), reference("Tried")]});
    operation.answers(200, "The request that would be sent, or what the model would be told.", either);
}

/// The organization's tool, or a tool of the configuration, which is checked as if it were to be saved.
async fn find_tool(deps: &Deps, organization: OrganizationId, which: TestedTool, deadline: Deadline) -> Result<Tool> {
    match which {
        TestedTool::Saved(id) => deps.tools.get(organization, id).await,
        TestedTool::Unsaved(mut config) => {
            let checked = deps.references.check(organization, &mut config, None, deadline).await;
            checked.and_then(|()| lifecycle::unsaved(organization, &config)).map_err(|error| match error {
                Error::Invalid(problems) => Error::Invalid(problems.below("config")),
                error => error,
            })
        }
    }
}

/// Whether the organization has an execution left within this hour; a dry run takes none.
async fn has_room(deps: &Deps, organization: OrganizationId, dry_run: bool, deadline: Deadline) -> Result<()> {
    if !dry_run {
        deps.executor.budgets.usage(organization, deadline).await?;
        deps.executor.budgets.check_execution_budget(organization)?;
    }
    Ok(())
}

/// The called number, one of the organization's; the newest unless one is named.
async fn find_line(deps: &Deps, organization: OrganizationId, called: Option<E164>) -> Result<Option<PhoneNumber>> {
    let phone_numbers = &deps.executor.services.phone_numbers;
    let Some(number) = called else {
        return Ok(phone_numbers.page(organization, None, 1).await?.items.into_iter().next());
    };
    let line = phone_numbers.by_number(&number).await?.and_then(|line| line.for_owner(organization));
    let problem = || Error::invalid("called_phone_number", "is not a phone number of this organization");
    line.map(Some).ok_or_else(problem)
}

/// The request that would be sent. Nothing is counted, claimed or written down, because nothing happens.
async fn show(
    deps: &Deps,
    tool: &ActionTool,
    context: &CallContext<'_>,
    arguments: &Map<String, Value>,
) -> Result<Reply> {
    let started = Instant::now();
    let (shown, ignored) = match tool.check(arguments) {
        Ok(checked) => {
            let call = ActionCall { services: &deps.executor.services, context, arguments: &checked.arguments };
            (actions::preview(&tool.action, call).await?, checked.ignored)
        }
        Err(sentence) => (Err(sentence), Vec::new()),
    };
    let (status, name, value) = match shown {
        Ok(request) => ("ready", "request", request),
        Err(sentence) => ("failed", "answer", Value::Object(ToolOutcome::failed(sentence).answer)),
    };
    Reply::ok(&json!({
        "dry_run": true, "status": status, name: value, "ignored_arguments": ignored,
        "duration_ms": milliseconds(started.elapsed()),
    }))
}

/// `room`: the refusal of an execution that did not happen before.
async fn run(
    deps: &Deps,
    tool: &ActionTool,
    context: &CallContext<'_>,
    request: ExecutionRequest<'_>,
    room: Result<()>,
) -> Result<Reply> {
    let executed = deps.executor.execute(tool, request, context, None).await;
    if let Some(outage) = executed.outage {
        return Err(outage);
    }
    if executed.outcome.status == ExecutionStatus::Limited {
        room?;
    }
    let reply = Reply::ok(&json!({
        "dry_run": false, "status": executed.outcome.status, "answer": executed.outcome.answer,
        "ignored_arguments": executed.ignored_arguments, "duration_ms": executed.duration_ms,
        "execution_id": executed.execution.id(),
    }))?;
    let executor = deps.executor.clone();
    Ok(reply.afterwards(async move { executor.record(&[executed.execution]).await }))
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
