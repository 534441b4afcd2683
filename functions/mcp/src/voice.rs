//! The tools of a voice agent as an MCP server, for voice platforms other than VAPI, such as LiveKit, ElevenLabs and Retell.
//!
//! The bearer is the agent's voice token, or a token of one call. With the agent's, the platform describes the call in headers,
//! which no model can set. A tool runs as in a call of VAPI's: its effect happens once in the call, within the tool's limits, and
//! is in the history of the call.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::{FutureExt, join};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CacheScope, CallToolRequestParams, CallToolResponse, Implementation, ListToolsResult, PaginatedRequestParams,
        ServerCapabilities, ServerConfig, Tool as ListedTool, ToolAnnotations,
    },
    service::RequestContext,
};
use serde_json::Value;
use shared::{
    Deadline, Error, Result,
    actions::{
        ANSWER_AT_LATEST, ANSWER_WITHIN, ActionTool, ToolAction, ToolTokens,
        voice_tokens::{CallFacts, VoiceToken},
    },
    authoring_tools::AgentToolAnswer,
    clients::Queue,
    described::{Schemas, json, reference},
    error::{self, found},
    execution::{self, ExecutionRequest, Executor},
    http::{self, Found, Operation, Reply, Request, operation},
    models::{ExecutionId, ExecutionOrigin, OrganizationId, Queued, Slug, Tool},
    platform::Parts,
    redaction::Unredacted,
    store::{Agents, Calls, PhoneNumbers, ToolAttachments, Tools},
    telemetry,
    tool::{CallContext, Conversation, Subject, ToolOutcome, ToolSpec},
};

use crate::{Deps, Message, describe_protocol, describe_refusal, server};

/// For how long a client may keep a list of tools that is the same in every call, in milliseconds.
const LIST_HOLDS: u64 = 60 * 1_000;
/// Bytes.
pub(crate) const LONGEST_CALLER: usize = 200;

#[derive(Parts)]
pub struct VoiceDeps {
    pub tokens: ToolTokens,
    pub agents: Agents,
    pub attached: ToolAttachments,
    pub tools: Tools,
    pub calls: Calls,
    pub phone_numbers: PhoneNumbers,
    #[part(platform.executor_in_calls()?)]
    pub executor: Executor,
    /// Where asynchronous executions wait for `run-tool`.
    #[part(platform.executions_queue()?)]
    pub executions: Queue<Queued>,
}

impl VoiceDeps {
    /// The agent's tools, in the order in which they were made.
    ///
    /// # Errors
    /// [`Error::Unauthenticated`] if the token was revoked.
    pub(crate) async fn agents_tools(&self, token: &VoiceToken, deadline: Deadline) -> Result<Vec<Tool>> {
        let organization = token.organization_id;
        let tools = async {
            let rows = self.attached.of_agent(organization, token.agent_id).await?;
            let ids: Vec<_> = rows.iter().map(|row| row.tool_id).collect();
            self.tools.get_many(organization, &ids, deadline).await
        };
        let (agent, tools) = join!(self.agents.get(organization, token.agent_id), tools);
        if !found(agent)?.is_some_and(|agent| token.is_in_force(&agent)) {
            return Err(Error::Unauthenticated);
        }
        let mut tools = tools?;
        tools.sort_by_key(|tool| tool.id);
        Ok(tools)
    }

    /// # Errors
    /// [`Error::Forbidden`] for another organization's call.
    pub(crate) async fn conversation(&self, token: &VoiceToken, facts: &CallFacts) -> Result<Conversation> {
        let call = async {
            match &facts.id {
                Some(id) => self.calls.find(id).await,
                None => Ok(None),
            }
        };
        let line = async {
            match &facts.called {
                Some(number) => self.phone_numbers.by_number(number).await,
                None => Ok(None),
            }
        };
        let (call, line) = join!(call, line);
        let (caller, called) = (facts.caller.clone(), facts.called.clone());
        Conversation::verified(&self.phone_numbers, token.organization_id, caller, called, call?, line?).await
    }
}

/// The answers of `rmcp`, and the refusal of a header.
fn describe_voice_answers(operation: &mut Operation, _: &mut Schemas) {
    describe_protocol(operation);
    let problem = json!({"schema": reference("Problem")});
    operation.answers_with(400, "", "application/problem+json", problem);
}

/// A message of the Model Context Protocol, with the tools of a voice agent
///
/// An MCP server over streamable HTTP, without sessions, for voice platforms other than VAPI. Its tools are those that the agent
/// has, but for `transfer_call` and tools that are read back, which need a call through Switchboard. An effect happens once in
/// the call, within the tool's limits, as in a call of VAPI's; every call of a tool is in the history of the call.
///
/// The bearer is the agent's voice token, or the token of a call that `/api/{slug}/agents/{id}/context` gave. With the agent's
/// token the headers `X-Call-Id`, `X-Caller-Number` and `X-Called-Number` describe the call. `Accept` must name
/// `application/json` and `text/event-stream`.
///
/// - 400: It is no JSON (code -32700), no message of JSON-RPC (-32600), a message that does not fit the version of the protocol that it names, or a header does not describe a call.
/// - 403: As text: the host is another than this API's.
///
/// ```json,list
/// {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
/// ```
/// ```json,call
/// {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "send_confirmation", "arguments": {"text": "See you at nine."}}}
/// ```
#[operation(POST "/api/{slug}/voice/mcp", by(voiceToken), also(401, 429, 500, 503), resource(VoiceMcp), tag("mcp"), throttle(Voice), answers(describe_voice_answers))]
pub(crate) async fn voice_mcp_message(deps: &Deps, found: &Found<'_>, slug: Slug, _message: Message) -> Result<Reply> {
    Box::pin(answer(deps, found, &slug)).await
}

/// No stream of messages
///
/// There is none, as clients know from the 405.
///
/// - 405: There is no stream.
#[operation(GET "/api/{slug}/voice/mcp", by(voiceToken), also(401, 429, 500, 503), resource(VoiceMcpListen), tag("mcp"), throttle(Open), answers(describe_refusal))]
pub(crate) async fn voice_mcp_listen(deps: &Deps, found: &Found<'_>, slug: Slug) -> Result<Reply> {
    Box::pin(answer(deps, found, &slug)).await
}

/// The end of a session
///
/// There are no sessions, as clients know from the 405.
///
/// - 405: There is no session.
#[operation(DELETE "/api/{slug}/voice/mcp", by(voiceToken), also(401, 429, 500, 503), resource(VoiceMcpEnd), tag("mcp"), throttle(Open), answers(describe_refusal))]
pub(crate) async fn voice_mcp_end(deps: &Deps, found: &Found<'_>, slug: Slug) -> Result<Reply> {
    Box::pin(answer(deps, found, &slug)).await
}

async fn answer(deps: &Deps, found: &Found<'_>, slug: &Slug) -> Result<Reply> {
    let voice = &deps.voice;
    let token = bearer(voice, found, slug).await?;
    let facts = match &token.call {
        Some(facts) => facts.clone(),
        None if found.request.method() == "POST" => facts_in_headers(found.request)?,
        None => CallFacts::default(),
    };
    let calls_tool = calls_tool(found.request);
    let conversation =
        async { if calls_tool { voice.conversation(&token, &facts).await } else { Ok(Conversation::default()) } };
    let (tools, conversation) = join!(voice.agents_tools(&token, found.deadline), conversation);
    let ready = tools
        .and_then(|tools| Ok(Ready { tools: tools.iter().filter_map(offered).collect(), conversation: conversation? }));
    let ready = match ready {
        // Many clients let a call wait until their own deadline if the answer has another status than 200.
        Err(error) if calls_tool && !matches!(error, Error::Unauthenticated) => Err(not_ready(&error)),
        ready => Ok(ready?),
    };
    let history = History::default();
    let executor = voice.executor.answering_by(found.deadline.at_most(ANSWER_AT_LATEST));
    let server = Server {
        organization: token.organization_id,
        ready: Arc::new(ready),
        facts,
        executor: executor.clone(),
        executions: voice.executions.clone(),
        deadline: found.deadline.at_most(ANSWER_WITHIN),
        history: history.clone(),
    };
    let reply = server::serve(deps, found.request, server).await?;
    Ok(reply.afterwards(async move {
        let executions = std::mem::take(&mut *history.lock().unwrap_or_else(PoisonError::into_inner));
        executor.record(&executions).await;
    }))
}

/// # Errors
/// [`Error::Unauthenticated`] for any but a voice token of this organization.
pub(crate) async fn bearer(voice: &VoiceDeps, found: &Found<'_>, slug: &Slug) -> Result<VoiceToken> {
    let shown = http::bearer(found.request).ok_or(Error::Unauthenticated)?;
    VoiceToken::verified(&voice.tokens, slug, shown).await
}

/// The call that the platform describes. An empty header counts as absent.
fn facts_in_headers(request: &Request) -> Result<CallFacts> {
    let header = |name: &str| {
        let value = request.headers().get(name).and_then(|value| value.to_str().ok()).map(str::trim);
        value.filter(|value| !value.is_empty())
    };
    let wrong = |name: &str, must: &str| Error::Malformed(format!("the header {name} must be {must}"));
    let id = header("x-call-id").map(str::parse).transpose();
    let called = header("x-called-number").map(str::parse).transpose();
    let caller = header("x-caller-number");
    // A platform that does not know a variable sends its placeholder.
    if caller.is_some_and(|caller| caller.len() > LONGEST_CALLER || caller.contains(['{', '}'])) {
        return Err(wrong("X-Caller-Number", "the caller's number, with the platform's variable filled in"));
    }
    Ok(CallFacts {
        id: id.map_err(|why| wrong("X-Call-Id", &format!("the platform's id of the call: {why}")))?,
        caller: caller.map(str::to_owned),
        called: called.map_err(|why| wrong("X-Called-Number", &format!("a phone number: {why}")))?,
    })
}

/// Whether the message calls a tool; others need nothing of the call.
fn calls_tool(request: &Request) -> bool {
    let message: Option<Value> = serde_json::from_slice(http::body(request)).ok();
    message.is_some_and(|message| message.get("method").is_some_and(|method| method == "tools/call"))
}

/// What is said to the model in place of a tool's outcome.
fn not_ready(error: &Error) -> AgentToolAnswer {
    tracing::error!(code = error.code(), "a tool of a voice agent was not called: {}", error::chain(error));
    if error.status() >= 500 {
        telemetry::tool_fault(ExecutionOrigin::Conversation.as_str());
    }
    AgentToolAnswer::of_called(match error {
        Error::Forbidden(_) => ToolOutcome::failed("This tool cannot be used in this call."),
        _ => execution::unavailable(),
    })
}

/// The tool, if the platform's model may call it.
fn offered(row: &Tool) -> Option<(Tool, ActionTool)> {
    let tool = ActionTool::of_row(row).ok().filter(|_| row.attach_to_agent && row.confirms().is_none())?;
    (!matches!(tool.action, ToolAction::TransferCall(_))).then(|| (row.clone(), tool))
}

type History = Arc<Mutex<Vec<Unredacted>>>;

struct Ready {
    tools: Vec<(Tool, ActionTool)>,
    /// Empty where the message calls no tool.
    conversation: Conversation,
}

/// One request's server.
#[derive(Clone)]
struct Server {
    organization: OrganizationId,
    ready: Arc<Result<Ready, AgentToolAnswer>>,
    facts: CallFacts,
    executor: Executor,
    executions: Queue<Queued>,
    deadline: Deadline,
    /// Recorded after the answer.
    history: History,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build()).with_server_info(
            Implementation::new("switchboard-voice", env!("CARGO_PKG_VERSION")).with_title("Switchboard"),
        )
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let CallFacts { caller, called, .. } = self.facts.clone();
        let conversation = Conversation { caller, called, ..Conversation::default() };
        let (mut tools, mut holds) = (Vec::new(), LIST_HOLDS);
        for (_, tool) in self.ready.iter().flat_map(|ready| &ready.tools) {
            let spec = tool.spec_in(&conversation);
            if spec != tool.spec {
                // The next call has other values.
                holds = 0;
            }
            tools.push(listed(&tool.label, spec));
        }
        Ok(ListToolsResult::with_all_items(tools).with_ttl_ms(holds).with_cache_scope(CacheScope::Private))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Ready { tools, conversation } = match &*self.ready {
            Ok(ready) => ready,
            Err(answer) => return Ok(server::told(answer.clone()).into()),
        };
        let Some((row, tool)) = tools.iter().find(|(_, tool)| tool.spec.name == request.name) else {
            let known: Vec<&str> = tools.iter().map(|(_, tool)| tool.spec.name.as_str()).collect();
            let message = format!("tool not found; there are {}", known.join(", "));
            return Err(ErrorData::invalid_params(message, None));
        };
        let arguments = request.arguments.unwrap_or_default();
        let id = ExecutionId::generate();
        let name = id.to_string();
        let context = CallContext {
            organization: self.organization,
            user: None,
            subject: Subject::of(self.facts.id.as_ref(), conversation.caller.as_deref(), &name),
            automation: None,
            // The message's id is new whenever the model calls again.
            delivery: None,
            conversation,
            trigger: ExecutionOrigin::Conversation,
            refused: None,
            deadline: self.deadline,
        };
        let request = ExecutionRequest::new(id, &arguments);
        let executed = if row.is_async {
            self.executor.enqueue(&self.executions, row, tool, request, &context, None).boxed().await
        } else {
            self.executor.execute(tool, request, &context, None).boxed().await
        };
        self.history.lock().unwrap_or_else(PoisonError::into_inner).push(executed.execution);
        Ok(server::told(AgentToolAnswer::of_called(executed.outcome)).into())
    }
}

fn listed(label: &str, spec: ToolSpec) -> ListedTool {
    let schema = spec.parameters.schema().as_object().cloned().unwrap_or_default();
    let acts = spec.acts();
    let annotations = ToolAnnotations::with_title(label).read_only(!acts).idempotent(!acts).open_world(true);
    ListedTool::new(spec.name, spec.description, Arc::new(schema)).with_title(label).with_annotations(annotations)
}
