//! POST /api/{slug}/tools/test: tries a tool out, saved or not.
//!
//! Body: `{"tool_id"}` or `{"config": ToolConfig}`, `arguments` as a model would give them, the numbers of a made-up call
//! (`caller_phone_number`, `called_phone_number`), and `dry_run`, which is true unless it is said otherwise: it shows the
//! request that would be sent, secrets masked, and sends nothing. With `dry_run: false` the tool runs once, as it would in a
//! call, under its limits, and stands in the history with the trigger `test`; a configuration that was never saved stands
//! there under an id made of it, because what was sent was sent, and only who may make tools may run it. Each request is an
//! effect of its own, unless it has an `Idempotency-Key`: then the same tool, key and arguments are answered from the record.
//!
//! Answer: `{"dry_run", "status", "request" | "answer", "ignored_arguments", "duration_ms", "execution_id"?}`. `answer` is
//! what the model would be told, also by a dry run whose request cannot be made. When the organization has used up its executions
//! of the hour, nothing is run, and the answer is a 429.

mod request;

use std::time::{Duration, Instant};

use futures_util::join;
use serde_json::{Map, Value, json};
use shared::{
    Deadline, Error, Platform, Result,
    actions::{self, ANSWER_WITHIN, ActionTool},
    execution::{ExecutionRequest, Executor},
    http::{self, Access, Reply, Request},
    idempotency::Key,
    lifecycle::{self, References},
    models::{E164, ExecutionId, OrganizationId, PhoneNumber, Role, Tool, Trigger},
    platform,
    store::Tools,
    tool::{CallContext, Conversation, Subject, ToolOutcome},
};

use crate::request::{TestRequest, TestedTool};

pub struct Deps {
    pub access: Access,
    pub references: References,
    pub tools: Tools,
    pub executor: Executor,
}

impl Deps {
    pub fn new(platform: &Platform) -> platform::Result<Self> {
        Ok(Self {
            access: platform.access()?,
            references: platform.references()?,
            tools: Tools::new(platform.database()?),
            executor: platform.executor(platform.idempotency()?)?,
        })
    }
}

pub async fn handle(deps: &Deps, request: Request) -> Result<Reply> {
    let deadline = http::deadline(&request).at_most(ANSWER_WITHIN);
    let member = deps.access.member(&request).await?;
    let organization = member.organization_id;
    let ["POST", "api", _, "tools", "test"] = http::route(&request)[..] else {
        return Err(Error::NotFound("route"));
    };
    let key = http::idempotency_key(&request)?;
    let request = TestRequest::read(&http::json_body(&request)?)?;
    if !request.dry_run && matches!(request.which, TestedTool::Unsaved(_)) {
        // Else whoever may not make a tool could run any.
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
    // The same key for another made-up call is another request.
    let numbers = [&conversation.caller, &conversation.called.as_ref().map(ToString::to_string)];
    let name = key.map_or_else(|| id.to_string(), |key| Key::new(&["test", &key], &json!(numbers)).as_str().to_owned());
    let context = CallContext {
        organization,
        user: None,
        subject: Subject::Request(&name),
        delivery: Some(&name),
        conversation: &conversation,
        trigger: Trigger::Test,
        deadline,
    };
    if request.dry_run {
        show(deps, &tool, &context, &request.arguments).await
    } else {
        room?;
        run(deps, &tool, &context, ExecutionRequest::new(id, &request.arguments)).await
    }
}

/// The organization's tool, or one of the configuration, which is checked as if it were to be saved.
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
        deps.executor.budgets.has_executions(organization)?;
    }
    Ok(())
}

/// The number that was called, one of the organization's; the newest of them unless one is named.
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
            let shown = actions::preview(&tool.action, &deps.executor.services, context, &checked.arguments).await?;
            (shown, checked.ignored)
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

async fn run(
    deps: &Deps,
    tool: &ActionTool,
    context: &CallContext<'_>,
    request: ExecutionRequest<'_>,
) -> Result<Reply> {
    let executed = deps.executor.execute(tool, request, context, None).await;
    if let Some(outage) = executed.outage {
        return Err(outage);
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
