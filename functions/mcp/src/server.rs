//! The MCP server: `rmcp` speaks the protocol, of every version that it knows, and asks here for tools.

use std::sync::Arc;

use futures_util::FutureExt;
use http_body_util::BodyExt;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
        ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
    },
    service::RequestContext,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
    },
};
use serde_json::{Value, json};
use shared::{
    Deadline, Error, Result,
    authoring_tools::{AgentTool, AgentToolAnswer, AgentTools, InWhoseName},
    error,
    http::{self, Found, Reply, Request},
    models::{Member, Slug},
    tool::NotBound,
};

use crate::{Deps, authentication};

/// For how long a client may keep the list of tools, in milliseconds: it changes with the program.
const LIST_HOLDS: u64 = 5 * 60 * 1_000;
/// Bytes of a request; a definition is refused above a far smaller size, with a reason.
const LARGEST_REQUEST: usize = 4 * 1024 * 1024;

const INSTRUCTIONS: &str = "Build automations for an organization. Look with list_automations whether there is one to change. List what a service offers with initial_md_fetch, or find tools with \
     search_tools; read the schema of each tool you use with fetch_tool_data; then save the automation with \
     deploy_automation. If it is refused, correct everything that it names and deploy again. A person activates it. To change an automation, read it with \
     get_automation and send all of it with update_automation, never deploy it anew.";

/// Answers a request of a member who shows a good token, as `rmcp` does.
pub(crate) async fn answer(deps: &Deps, found: &Found<'_>, slug: &Slug) -> Result<Reply> {
    let member = authentication::member(deps, found, slug).await?;
    serve(deps, found.request, Server { tools: deps.tools.clone(), member, deadline: found.deadline }).await
}

/// Has `rmcp` answer a request with this server's tools.
pub(crate) async fn serve<S: ServerHandler + Clone>(deps: &Deps, request: &Request, server: S) -> Result<Reply> {
    let of_gateway = http::gateway_host(request).map(str::to_owned);
    let hosts = std::iter::once(authentication::host(deps)).chain(of_gateway);
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_sse_keep_alive(None)
        .with_max_request_body_bytes(LARGEST_REQUEST)
        .with_allowed_hosts(hosts);
    let sessions = Arc::new(NeverSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, config);
    let unreadable = unreadable(request);
    let (head, body) = Box::pin(service.handle(request.clone())).await.into_parts();
    // `rmcp` answers 415 to every unreadable body, with any content type.
    if let (415, Some(unreadable)) = (head.status.as_u16(), unreadable) {
        return Reply::json(400, &unreadable);
    }
    let body = body.collect().await.map_err(Error::internal)?.to_bytes().to_vec();
    let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let content_type = header("content-type").unwrap_or_else(|| "text/plain; charset=utf-8".to_owned());
    let allow = header("allow").map(|allow| ("allow", allow));
    Ok(Reply::of(head.status.as_u16(), content_type, body).with_headers(allow))
}

/// JSON-RPC's answer to an unreadable JSON body.
fn unreadable(request: &Request) -> Option<Value> {
    let content_type = request.headers().get("content-type")?.to_str().ok()?;
    let content_type = content_type.split(';').next().unwrap_or_default().trim();
    if !content_type.eq_ignore_ascii_case("application/json") {
        return None;
    }
    let error = match serde_json::from_slice::<Value>(http::body(request)) {
        Err(error) => json!({"code": -32700, "message": format!("the body is not valid JSON: {error}")}),
        Ok(_json) => json!({"code": -32600, "message": "the body is not a JSON-RPC 2.0 message; send one, not a list"}),
    };
    Some(json!({"jsonrpc": "2.0", "id": null, "error": error}))
}

/// One request's server.
#[derive(Clone)]
struct Server {
    tools: AgentTools,
    member: Member,
    deadline: Deadline,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        // Without `listChanged`: nothing here could tell it.
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("switchboard", env!("CARGO_PKG_VERSION")).with_title("Switchboard"))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if request.is_some_and(|request| request.cursor.is_some()) {
            return Err(ErrorData::invalid_params("there is one page of tools, and no cursor leads to another", None));
        }
        let tools = self.tools.list().map(listed).collect();
        Ok(ListToolsResult::with_all_items(tools).with_ttl_ms(LIST_HOLDS).with_cache_scope(CacheScope::Private))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let whose = InWhoseName::of(self.member.clone(), None, &arguments);
        let toolbox = self.tools.toolbox();
        let answer = match toolbox.check(&request.name, &arguments) {
            Ok(bound) => match bound.call(&whose.context(self.deadline)).boxed().await {
                Ok(outcome) => AgentToolAnswer::of(outcome),
                Err(outage) => {
                    tracing::error!(tool.name = %request.name, "a tool failed: {}", error::chain(&outage));
                    refused(format!("The tool cannot be called just now ({outage}); try again in a moment."))
                }
            },
            Err(NotBound::Invalid(sentence)) => refused(sentence),
            Err(NotBound::Unknown(_)) => {
                let known: Vec<&str> = self.tools.list().map(|tool| tool.spec.name.as_str()).collect();
                let message = format!("tool not found; there are {}", known.join(", "));
                return Err(ErrorData::invalid_params(message, None));
            }
        };
        Ok(told(answer).into())
    }
}

pub(crate) fn refused(sentence: String) -> AgentToolAnswer {
    AgentToolAnswer { failed: true, text: sentence, data: Value::Null }
}

/// The text is included for clients that read nothing else.
pub(crate) fn told(AgentToolAnswer { failed, text, data }: AgentToolAnswer) -> CallToolResult {
    let content = vec![ContentBlock::text(text)];
    let mut result = if failed { CallToolResult::error(content) } else { CallToolResult::success(content) };
    // Before 2026-07-28 it must be an object.
    result.structured_content = Some(data).filter(Value::is_object);
    result
}

fn listed(tool: &AgentTool) -> Tool {
    let schema = tool.schema().as_object().cloned().unwrap_or_default();
    let hints = tool.hints;
    let annotations = ToolAnnotations::with_title(tool.title)
        .read_only(hints.read_only)
        .destructive(hints.destructive)
        .idempotent(hints.idempotent)
        .open_world(hints.open_world);
    Tool::new(tool.spec.name.clone(), tool.spec.description.clone(), Arc::new(schema))
        .with_title(tool.title)
        .with_annotations(annotations)
}
