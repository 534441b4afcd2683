//! What an agent needs to build automations, for clients of the Model Context Protocol (MCP) and for function calling.
//!
//! - POST /api/{slug}/mcp: an MCP server over streamable HTTP, without sessions: each request stands by itself, and is answered
//!   with one JSON message (`server.rs`). The route has no authorizer: one could not answer what a client needs to find out
//!   where tokens are given. So the token is verified here (`door.rs`).
//! - GET /.well-known/oauth-protected-resource/api/{slug}/mcp and GET /.well-known/oauth-protected-resource: where tokens for it
//!   are given (RFC 9728).
//! - GET /api/{slug}/agent-tools?format=openai|anthropic|json-schema: the same tools as definitions of functions, as
//!   `{"tools": […]}` (`functions.rs`).
//! - POST /api/{slug}/agent-tools/{name}, the arguments as its body: carries such a call out. Answers
//!   `{"success", "text", "data"}` with 200 also when the tool failed; `text` is what the model is told. With an
//!   `Idempotency-Key` the same call happens once.

mod door;
mod functions;
mod server;

use shared::{
    Error, Platform, Result,
    agent_tools::AgentTools,
    http::{self, Access, Reply, Request, TokenVerifier},
    platform,
};

pub struct Deps {
    pub access: Access,
    pub tokens: TokenVerifier,
    pub tools: AgentTools,
    pub door: door::Settings,
}

impl Deps {
    pub fn new(platform: &Platform) -> platform::Result<Self> {
        Ok(Self {
            access: platform.access()?,
            tokens: platform.token_verifier()?,
            tools: platform.agent_tools_for_clients()?,
            door: door::Settings { public_url: platform.public_url()?, mcp: platform.mcp_settings()? },
        })
    }
}

pub async fn handle(deps: &Deps, request: Request) -> Result<Reply> {
    match http::route(&request)[..] {
        ["GET", "api", _, "agent-tools"] => functions::list(deps, &request).await,
        ["POST", "api", _, "agent-tools", name] => functions::call(deps, &request, name).await,
        ["GET", ".well-known", "oauth-protected-resource"] => door::metadata(deps, None),
        ["GET", ".well-known", "oauth-protected-resource", "api", slug, "mcp"] => {
            door::metadata(deps, Some(&http::id(slug, "organization")?))
        }
        ["OPTIONS", "api", _, "mcp"] => door::preflight(deps, &request),
        ["POST" | "GET" | "DELETE", "api", slug, "mcp"] => {
            let slug = http::id(slug, "organization")?;
            let shown = door::headers(deps, &request)?;
            // The same headers stand at a refusal: a client in a browser must be able to read it.
            match Box::pin(server::answer(deps, request, &slug)).await {
                Ok(reply) => Ok(reply.with_headers(shown)),
                Err(error) => Err(error.with_headers(shown)),
            }
        }
        _ => Err(Error::NotFound("route")),
    }
}
