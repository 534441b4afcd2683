//! Conversations with the planner, told while they happen. The function stands behind a REST API, which streams and has no authorizer:
//! it verifies the token itself and says what pages may read (`door.rs`).
//!
//! - POST /agent/stream, body as POST /agent/chat: the turn as server-sent events `data: {"type", …}` (`sse.rs`).
//! - POST /copilotkit/stream, body a `RunAgentInput` (`input.rs`): the turn as events of AG-UI (`agui.rs`).
//! - GET /copilotkit/info, POST /copilotkit/agent/{id}/run, POST /copilotkit/agent/{id}/connect,
//!   POST /copilotkit/agent/{id}/stop/{thread}: what a front end of CopilotKit asks below its `runtimeUrl` (`copilotkit.rs`).
//! - POST /copilotkit `{"method", "params", "body"}`: the same as calls of one endpoint.
//!
//! None of these paths names an organization: it is the one whose slug is in the header `X-Organization`, or the user's only one.
//!
//! Whatever is to be refused is refused before anything is said, with a status; after that only events tell. Lambda does not say
//! that a caller has left, so a turn goes on without: `stop` ends it, and its limits do.

pub mod agui;
mod copilotkit;
mod door;
mod history;
mod input;
mod sse;

use serde_json::Value;
use shared::{
    Deadline, Error, Platform, Result,
    chat::{Asked, Turns},
    http::{self, Access, Frames, Person, Reply, Request, TokenVerifier},
    platform,
};

use crate::{agui::Run, input::RunInput, sse::Stream};

pub struct Deps {
    pub access: Access,
    pub tokens: TokenVerifier,
    pub turns: Turns,
    /// Where it is reached, if not at the REST API's own endpoint.
    pub public_url: Option<String>,
}

impl Deps {
    pub fn new(platform: &Platform) -> platform::Result<Self> {
        Ok(Self {
            access: platform.access()?,
            tokens: platform.token_verifier()?,
            turns: platform.turns()?,
            public_url: platform.stream_public_url(),
        })
    }
}

/// `deps` outlive the answer, which goes on after this has returned.
pub async fn handle(deps: &'static Deps, request: Request) -> Result<Reply> {
    let shown = door::headers(&request);
    // A refusal has the same: a page must be able to read it.
    match Box::pin(answer(deps, request)).await {
        Ok(reply) => Ok(reply.with_headers(shown)),
        Err(error) => Err(error.with_headers(shown)),
    }
}

async fn answer(deps: &'static Deps, request: Request) -> Result<Reply> {
    let person = door::person(deps, &request).await?;
    let deadline = http::deadline(&request);
    match http::route(&request)[..] {
        ["POST", "agent", "stream"] => chat(deps, &request, &person, deadline).await,
        ["POST", "copilotkit", "stream"] => run(deps, &person, &http::json_body(&request)?, "", deadline).await,
        ["GET", "copilotkit", "info"] => copilotkit::info(),
        ["POST", "copilotkit"] => copilotkit::call(deps, &request, &person, deadline).await,
        ["POST", "copilotkit", "agent", agent, ref action @ ..] => {
            copilotkit::agent(deps, &request, &person, (agent, action), deadline).await
        }
        _ => Err(Error::NotFound("route")),
    }
}

/// A turn as the events of `sse.rs`.
async fn chat(deps: &'static Deps, request: &Request, person: &Person, deadline: Deadline) -> Result<Reply> {
    let asked = Asked::of_chat(&http::json_body(request)?, http::idempotency_key(request)?)?;
    let open = Box::pin(deps.turns.open(&person.member, person.email.clone(), asked, deadline)).await?;
    let frames = Frames::default();
    let mut stream = Stream::new(frames.clone());
    let work = async move {
        let answer = deps.turns.answer(open, &mut stream).await?;
        stream.answered(&answer);
        Ok(())
    };
    Ok(Reply::events(frames, within(deadline, work), sse::failed))
}

/// A turn as events of AG-UI; the input stands at `path` of the request.
async fn run(deps: &'static Deps, person: &Person, body: &Value, path: &str, deadline: Deadline) -> Result<Reply> {
    let RunInput { run, asked } = RunInput::read(body, path)?;
    let thread = asked.thread.clone();
    let open = Box::pin(deps.turns.open(&person.member, person.email.clone(), asked, deadline)).await?;
    let frames = Frames::default();
    let mut run = Run::start(frames.clone(), &thread, &run);
    let work = async move {
        let answer = deps.turns.answer(open, &mut run).await?;
        run.answered(&answer.content, answer.widget.as_ref(), &answer.metadata);
        Ok(())
    };
    Ok(Reply::events(frames, within(deadline, work), agui::failed))
}

/// The work as long as Lambda lets it take: what does not heed its deadline is given up, and the stream says so.
pub(crate) async fn within(deadline: Deadline, work: impl Future<Output = Result<()>>) -> Result<()> {
    let limited = tokio::time::timeout(deadline.remaining(), work).await;
    limited.unwrap_or_else(|late| Err(Error::Unavailable("the answer took too long; it", late.into())))
}
