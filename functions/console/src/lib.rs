//! A page where people sign in, see what their organization's agents and automations did, decide what waits for them, and chat.
//!
//! - GET /: the page.
//! - GET /console/{file}: its shell and each of its pages as one script, its style sheets, the vendored library and its licences (`assets.rs`), and
//!   `settings.json`: `{"issuer", "openid_configuration", "client_id", "stream_url", "scopes"}`. `stream_url` is null where no
//!   address is known.
//!
//! Nothing here is secret and nobody needs to be known: the page's data come from the API, with the token of the person who signed
//! in. Every answer has an `ETag`, is a 304 for a browser that has it, and is compressed for one that takes gzip; the headers allow
//! the page what it needs and no more (`policy.rs`).

mod assets;
mod linked;
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
        ["GET"] => assets::page().ok_or(Error::NotFound("file"))?,
        ["GET", "console", "settings.json"] => settings(&deps.settings),
        ["GET", "console", name] => assets::named(name).ok_or(Error::NotFound("file"))?,
        _ => return Err(Error::NotFound("route")),
    };
    let zipped = policy::takes_gzip(&request);
    let tag = file.tag();
    // Other bytes, another tag.
    let tag = if zipped { format!("{}-gzip\"", tag.trim_end_matches('"')) } else { tag };
    let reply = if policy::has(&request, &tag) {
        Reply::not_modified()
    } else if zipped {
        let bytes = file.compressed().map_err(Error::internal)?;
        Reply::of(200, file.kind, bytes).with_headers([("content-encoding", "gzip".to_owned())])
    } else {
        Reply::of(200, file.kind, file.bytes.into())
    };
    let own = [("etag", tag), ("vary", "accept-encoding".to_owned())];
    Ok(reply.cache_control(CACHE_CONTROL).with_headers(policy::headers(&deps.settings)).with_headers(own))
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
