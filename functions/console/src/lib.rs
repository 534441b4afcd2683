//! A page where people sign in and chat with their organization's tools.
//!
//! - GET /: the page.
//! - GET /console/{file}: its modules, its style sheet and the licences of what it is made of (`assets.rs`), and `settings.json`:
//!   `{"issuer", "openid_configuration", "client_id", "stream_url", "scopes"}`. `stream_url` is null where no address is known.
//!
//! Nothing here is secret and nobody needs to be known: what the page shows comes from the API, with the token of whoever has signed
//! in. Every answer has an `ETag`, and is a 304 for who has it; the headers allow the page what it needs and no more (`policy.rs`).

mod assets;
mod policy;

use serde_json::json;
use shared::{
    Error, Platform, Result,
    http::{self, Reply, Request},
    platform::{self, ConsoleSettings},
};

use crate::assets::Asset;

/// Asked for again each time, which a 304 answers: the files of two versions must not meet in one page.
const CACHE_CONTROL: &str = "no-cache";

pub struct Deps {
    pub settings: ConsoleSettings,
}

impl Deps {
    pub fn new(platform: &Platform) -> platform::Result<Self> {
        Ok(Self { settings: platform.console_settings()? })
    }
}

#[expect(clippy::unused_async, reason = "handlers have one form, and this one waits for nothing")]
pub async fn handle(deps: &Deps, request: Request) -> Result<Reply> {
    let file = match http::route(&request)[..] {
        ["GET"] => assets::PAGE,
        ["GET", "console", "settings.json"] => settings(&deps.settings),
        ["GET", "console", name] => assets::named(name).ok_or(Error::NotFound("file"))?,
        _ => return Err(Error::NotFound("route")),
    };
    let tag = file.tag();
    let reply =
        if policy::has(&request, &tag) { Reply::not_modified() } else { Reply::of(200, file.kind, file.bytes.into()) };
    Ok(reply.cache_control(CACHE_CONTROL).with_headers(policy::headers(&deps.settings)).with_headers([("etag", tag)]))
}

fn settings(settings: &ConsoleSettings) -> Asset {
    let shown = json!({
        "issuer": settings.issuer,
        "openid_configuration": settings.openid_configuration,
        "client_id": settings.client_id,
        "stream_url": settings.stream_url,
        "scopes": settings.scopes,
    });
    Asset { kind: assets::JSON, bytes: shown.to_string().into_bytes().into() }
}
