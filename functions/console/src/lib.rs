//! The console: a page for the people of an organization, with calls, runs, approvals, automations and the chat.
//!
//! Nothing here is secret and nobody needs to be known: the page's data come from the API, with the token of the
//! person who signed in. Every answer has an `ETag`, is a 304 for a browser that has it, and is compressed for one
//! that takes Brotli or gzip; the headers allow only the page's own needs (`policy.rs`).

mod assets;
#[cfg(test)]
mod linked;
mod policy;
#[cfg(test)]
mod templates;

use serde::Serialize;
use shared::{
    Error, Result,
    described::{Described, Schemas, json},
    http::{self, Found, Operation, Part, Reply, Request, operation},
    platform::{ConsoleSettings, Parts},
};

use crate::assets::Asset;

shared::routes!(Deps, "console": console_page, console_file);

#[derive(Parts)]
pub struct Deps {
    pub settings: ConsoleSettings,
}

/// The console
///
/// A page where people sign in at the issuer, see calls, runs and automations, decide approvals, and chat. Its scripts and
/// style sheets are below `/console`. A `Content-Security-Policy` allows them and nothing else.
#[operation(GET "/", open, also(429), throttle(Page), answers(describe_page))]
#[expect(clippy::unused_async, reason = "handlers have one form, and this one waits for nothing")]
async fn console_page(deps: &Deps, found: &Found<'_>) -> Result<Reply> {
    Ok(served(deps, found.request, assets::page().ok_or(Error::NotFound("file"))?))
}

/// A file of the console
///
/// `settings.json` says where to sign in and where answers stream from, `forms.json` has the schemas of the bodies for
/// which the page has forms. The others are the page's scripts and styles, and the licences of its libraries. Browsers keep a
/// file for a year where the version stands before its name.
#[operation(GET "/console/{file}", open, also(404, 429), throttle(File), answers(describe_file))]
#[expect(clippy::unused_async, reason = "handlers have one form, and this one waits for nothing")]
async fn console_file(deps: &Deps, found: &Found<'_>, file: FileName) -> Result<Reply> {
    let file = match &*file.0 {
        "settings.json" => settings(&deps.settings)?,
        name => assets::named(name).ok_or(Error::NotFound("file"))?,
    };
    Ok(served(deps, found.request, file))
}

/// The settings for signing in.
#[derive(Serialize, Described)]
struct ConsoleSettingsView {
    /// The `iss` of tokens.
    #[schema(format = "uri")]
    issuer: String,
    /// Address of the issuer's `OpenID` Connect configuration.
    #[schema(format = "uri")]
    openid_configuration: String,
    client_id: String,
    /// Address of the streaming API; null where none is known.
    #[schema(format = "uri")]
    stream_url: Option<String>,
    /// Separated by blanks.
    scopes: String,
}

/// The name of a file.
struct FileName(String);

impl Part for FileName {
    fn of(found: &Found<'_>) -> Result<Self> {
        Ok(Self(found.variable(0).to_owned()))
    }

    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.names("As the page names it.", json!({"type": "string"}));
    }
}

fn describe_page(operation: &mut Operation, _: &mut Schemas) {
    operation.answers_with(200, "The page.", assets::HTML, json!({"schema": {"type": "string"}}));
    has_a_tag(operation);
}

fn describe_file(operation: &mut Operation, schemas: &mut Schemas) {
    for kind in [assets::SCRIPT, assets::CSS, assets::TEXT] {
        operation.answers_with(200, "The file.", kind, json!({"schema": {"type": "string"}}));
    }
    let settings = ConsoleSettingsView::schema(schemas);
    operation.answers_with(
        200,
        "The file.",
        assets::JSON,
        json!({"schema": {"anyOf": [settings, {"type": "object"}]}}),
    );
    has_a_tag(operation);
}

fn has_a_tag(operation: &mut Operation) {
    operation.tells(200, "ETag", "Of this version, strong.");
    operation.answers_nothing(304, "Whoever asks has it (`If-None-Match`).");
}

fn served(deps: &Deps, request: &Request, file: Asset) -> Reply {
    let cached = file.cached.directives();
    let coding = file.coding(&policy::taken(request));
    let tag = file.tag(coding);
    let reply = if http::is_known(request, &tag) {
        Reply::not_modified()
    } else {
        let reply = Reply::of(200, file.kind, file.bytes(coding));
        match coding {
            Some(coding) => reply.with_headers([("content-encoding", coding.as_str().to_owned())]),
            None => reply,
        }
    };
    let own = [("etag", tag), ("vary", "accept-encoding".to_owned())];
    reply.cache_control(cached).with_headers(policy::headers(&deps.settings, &assets::IN_PAGE)).with_headers(own)
}

fn settings(settings: &ConsoleSettings) -> Result<Asset> {
    let shown = ConsoleSettingsView {
        issuer: settings.issuer.clone(),
        openid_configuration: settings.openid_configuration.clone(),
        client_id: settings.client_id.clone(),
        stream_url: settings.stream_url.clone(),
        scopes: settings.scopes.clone(),
    };
    let bytes = serde_json::to_vec(&shown).map_err(Error::internal)?;
    Ok(Asset::made(assets::JSON, bytes))
}
