//! The tools for building automations, for clients of the Model Context Protocol (MCP) and for function calling; and the
//! tools of a voice agent, for other voice platforms.

mod authentication;
mod context;
mod functions;
#[doc(hidden)]
pub mod fuzzing;
mod server;
mod voice;

use shared::{
    Result,
    authoring_tools::AgentTools,
    described::{Schemas, json, reference},
    http::{Access, Found, Operation, Part, Reply, TokenVerifier, operation},
    models::Slug,
    platform::Parts,
};

shared::routes!(
    Deps,
    "mcp": mcp_message,
    mcp_listen,
    mcp_end,
    mcp_preflight,
    mcp_metadata,
    root_metadata,
    functions::list_tools_for_agents,
    functions::call_tool_for_agents,
    voice::voice_mcp_message,
    voice::voice_mcp_listen,
    voice::voice_mcp_end,
    context::agent_context,
);

const PLAIN: &str = "text/plain; charset=utf-8";

#[derive(Parts)]
pub struct Deps {
    pub access: Access,
    pub tokens: TokenVerifier,
    pub tools: AgentTools,
    #[part(authentication::Settings::new(platform)?)]
    pub authentication: authentication::Settings,
    #[part(voice::VoiceDeps::new(platform)?)]
    pub voice: voice::VoiceDeps,
}

/// A message of JSON-RPC, which `rmcp` reads.
pub(crate) struct Message;

impl Part for Message {
    fn of(_: &Found<'_>) -> Result<Self> {
        Ok(Self)
    }

    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.takes(json!({"type": "object", "description": "A message of JSON-RPC 2.0."}), true);
    }
}

fn describe_answers(operation: &mut Operation, _: &mut Schemas) {
    describe_protocol(operation);
    let forbidden = json!({"status": {"const": 403}, "code": {"const": "forbidden"}});
    let problem = json!({"schema": {"$ref": "#/components/schemas/Problem", "properties": forbidden}});
    operation.answers_with(403, "", "application/problem+json", problem);
}

/// The answers of `rmcp`, whatever the tools.
fn describe_protocol(operation: &mut Operation) {
    let (text, message) = (json!({"schema": {"type": "string"}}), json!({"schema": reference("JsonRpcMessage")}));
    operation.answers_with(200, "The answer.", "application/json", message.clone());
    operation.answers_nothing(202, "A notification was taken.");
    operation.answers_with(400, "", "application/json", message);
    operation.answers_with(400, "", PLAIN, text.clone());
    operation.answers_with(403, "", PLAIN, text.clone());
    operation.answers_with(406, "The client does not take both kinds of answers.", PLAIN, text.clone());
    operation.answers_with(415, "`Content-Type` is not `application/json`.", PLAIN, text);
}

/// `rmcp` refuses a method without a function.
fn describe_refusal(operation: &mut Operation, _: &mut Schemas) {
    operation.answers_with(405, "", PLAIN, json!({"schema": {"type": "string"}}));
}

fn describe_preflight(operation: &mut Operation, _: &mut Schemas) {
    operation.answers_nothing(204, "What a page of this origin may do.");
}

fn describe_metadata(operation: &mut Operation, _: &mut Schemas) {
    operation.answers_as(200, "ProtectedResource");
}

/// A message of the Model Context Protocol
///
/// An MCP server over streamable HTTP, without sessions: each message is answered by itself, with one JSON message. It
/// speaks the protocol's versions 2024-11-05 to 2025-11-25 and 2026-07-28. Its tools are `initial_md_fetch`,
/// `fetch_tool_data`, `search_tools`, `deploy_automation`, `list_automations`, `get_automation`, `update_automation`,
/// `run_automation`, `get_run` and, where the deployment allows it, `call_tool`; a failure of a tool is a result with
/// `isError` and a sentence. Calls of `call_tool` are told apart by user, tool and arguments, and by an
/// `idempotency_key` among the arguments, not by the message's id. A member deploys, changes, runs and calls, a viewer
/// finds and reads, as over the routes that do the same.
///
/// The token is the dashboard's, or a token for this address (RFC 8707). Without a good one `WWW-Authenticate` and
/// the members `resource_metadata` and `scope` of the problem say where tokens are given, and for which scopes.
/// `Accept` must name `application/json` and `text/event-stream`.
///
/// - 400: It is no JSON (code -32700), no message of JSON-RPC (-32600), or a message that does not fit the version of the protocol that it names.
/// - 403: The token lacks a scope, which `WWW-Authenticate` and the member `scope` of the problem name; the page is of an origin that may not ask; or, as text, the host is another than this API's.
///
/// ```json,list
/// {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
/// ```
/// ```json,call
/// {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "search_tools", "arguments": {"q": "post a message"}}}
/// ```
#[operation(POST "/api/{slug}/mcp", verified(Viewer), also(429), resource(Mcp), throttle(Agents), answers(describe_answers))]
async fn mcp_message(deps: &Deps, found: &Found<'_>, slug: Slug, _message: Message) -> Result<Reply> {
    answer(deps, found, &slug).await
}

/// No stream of messages
///
/// There is none, as clients know from the 405.
///
/// - 405: There is no stream.
#[operation(GET "/api/{slug}/mcp", verified(Viewer), throttle(Open), answers(describe_refusal))]
async fn mcp_listen(deps: &Deps, found: &Found<'_>, slug: Slug) -> Result<Reply> {
    answer(deps, found, &slug).await
}

/// The end of a session
///
/// There are no sessions, as clients know from the 405.
///
/// - 405: There is no session.
#[operation(DELETE "/api/{slug}/mcp", verified(Viewer), throttle(Open), answers(describe_refusal))]
async fn mcp_end(deps: &Deps, found: &Found<'_>, slug: Slug) -> Result<Reply> {
    answer(deps, found, &slug).await
}

/// No authorizer stands before the server: its 401 would not say where tokens are given.
async fn answer(deps: &Deps, found: &Found<'_>, slug: &Slug) -> Result<Reply> {
    let shown = authentication::headers(deps, found.request)?;
    // The same headers stand at a refusal: a client in a browser must be able to read it.
    match Box::pin(server::answer(deps, found, slug)).await {
        Ok(reply) => Ok(reply.with_headers(shown)),
        Err(error) => Err(error.with_headers(shown)),
    }
}

/// Answer a browser's preflight
// Where API Gateway answers preflights, a route would take this one from it.
#[operation(OPTIONS "/api/{slug}/mcp", open, also(403), when(HasNoDashboardOrigins), throttle(Open), answers(describe_preflight))]
#[expect(clippy::unused_async, reason = "handlers have one form, and this one waits for nothing")]
async fn mcp_preflight(deps: &Deps, found: &Found<'_>) -> Result<Reply> {
    authentication::preflight(deps, found.request)
}

/// Where tokens for the MCP server are given
///
/// RFC 9728. It says nothing of whether there is such an organization.
#[operation(GET "/.well-known/oauth-protected-resource/api/{slug}/mcp", open, also(404), throttle(Open), answers(describe_metadata))]
#[expect(clippy::unused_async, reason = "handlers have one form, and this one waits for nothing")]
async fn mcp_metadata(deps: &Deps, _found: &Found<'_>, slug: Slug) -> Result<Reply> {
    authentication::metadata(deps, Some(&slug))
}

/// Where tokens for this API are given
///
/// As above, for clients that look here first.
#[operation(GET "/.well-known/oauth-protected-resource", open, resource(McpRootMetadata), throttle(Open), answers(describe_metadata))]
#[expect(clippy::unused_async, reason = "handlers have one form, and this one waits for nothing")]
async fn root_metadata(deps: &Deps, _found: &Found<'_>) -> Result<Reply> {
    authentication::metadata(deps, None)
}
