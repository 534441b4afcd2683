//! Access to the MCP server, and the discovery for unauthorized clients: the rules of an OAuth 2.1 resource server
//! (MCP specification 2026-07-28, authorization; RFC 9728, RFC 6750) and of browsers.

use std::iter;

use serde_json::{Value, json};
use shared::{
    Error, Result,
    http::{self, Found, NoToken, Reply, Request, VerifiedToken},
    models::{Member, Slug},
    platform::{McpSettings, Parts},
};

use crate::Deps;

const METADATA: &str = "/.well-known/oauth-protected-resource";
/// How long a browser caches a preflight's answer, in seconds.
const PREFLIGHT_HOLDS: &str = "7200";

#[derive(Parts)]
pub struct Settings {
    /// Under which clients reach this API.
    #[part(platform.public_url()?)]
    pub public_url: String,
    pub mcp: McpSettings,
}

/// The address of an organization's server in the one spelling in which tokens name it (RFC 8707): scheme and host in small
/// letters, no slash at the end.
pub(crate) fn resource(deps: &Deps, slug: &Slug) -> String {
    server_at(&deps.authentication.public_url, slug)
}

fn server_at(base: &str, slug: &Slug) -> String {
    format!("{}/api/{slug}/mcp", origin(base))
}

/// Scheme, host and path of an address.
fn origin(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("https", url));
    let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    format!("{}://{}{path}", scheme.to_ascii_lowercase(), host.to_ascii_lowercase())
}

/// The host of this API's address, with its port where it has one.
pub(crate) fn host(deps: &Deps) -> String {
    let origin = origin(&deps.authentication.public_url);
    let (_, rest) = origin.split_once("://").unwrap_or_default();
    rest.split('/').next().unwrap_or_default().to_owned()
}

/// RFC 9728: the protected resource and its authorization servers.
pub(crate) fn metadata(deps: &Deps, slug: Option<&Slug>) -> Result<Reply> {
    let resource = slug.map_or_else(|| origin(&deps.authentication.public_url), |slug| resource(deps, slug));
    let scopes: Option<Vec<&str>> =
        deps.authentication.mcp.scopes.as_deref().map(|scopes| scopes.split_whitespace().collect());
    let mut metadata = json!({
        "resource": resource,
        "resource_name": "Switchboard",
        "authorization_servers": [deps.tokens.issuer()],
        "bearer_methods_supported": ["header"],
    });
    if let (Some(scopes), Value::Object(metadata)) = (scopes, &mut metadata) {
        metadata.insert("scopes_supported".into(), scopes.into());
    }
    // It says nothing that is secret, and every client must read it.
    Ok(Reply::ok(&metadata)?.with_headers([("access-control-allow-origin", "*".to_owned())]))
}

/// A member who shows a good token.
pub(crate) async fn member(deps: &Deps, found: &Found<'_>, slug: &Slug) -> Result<Member> {
    let of_gateway = http::gateway_host(found.request).map(|host| server_at(&format!("https://{host}"), slug));
    let resource = resource(deps, slug);
    let resources: Vec<&str> = iter::once(resource.as_str()).chain(of_gateway.as_deref()).collect();
    let token = deps.tokens.of_request(found.request, &resources, found.deadline).await;
    let token = token.map_err(|refused| unauthenticated(deps, slug, refused))?;
    if let Some(scopes) = deps.authentication.mcp.scopes.as_deref().filter(|scopes| !token.has_scopes(scopes)) {
        return Err(insufficient(deps, slug, scopes, &token));
    }
    deps.access.member_by_token(found, &token).await
}

/// 401 with the metadata for getting a token; an issuer that does not answer is no fault of the token's.
fn unauthenticated(deps: &Deps, slug: &Slug, refused: NoToken) -> Error {
    let why = match refused {
        NoToken::Missing => None,
        NoToken::Refused(why) => {
            tracing::info!("a token was refused: {why}");
            Some(("invalid_token", why))
        }
        NoToken::Unverified(error) => return error,
    };
    challenged(Error::Unauthenticated, deps, slug, why)
}

/// 403 with the scopes that another token must have.
fn insufficient(deps: &Deps, slug: &Slug, scopes: &str, token: &VerifiedToken) -> Error {
    tracing::info!(user.id = %token.user(), "a token has too few scopes; {scopes} are needed");
    let error = Error::Forbidden("the token lacks a scope; get one with the scopes that this answer names");
    challenged(error, deps, slug, Some(("insufficient_scope", "the token lacks a scope")))
}

/// The body says it once more: where API Gateway renames `WWW-Authenticate`, a client finds it there only.
fn challenged(error: Error, deps: &Deps, slug: &Slug, why: Option<(&str, &str)>) -> Error {
    // Where the path comes behind: some clients take no other address.
    let metadata = format!("{}{METADATA}/api/{slug}/mcp", origin(&deps.authentication.public_url));
    let scopes = deps.authentication.mcp.scopes.clone();
    let scope = scopes.as_ref().map(|scopes| format!(", scope=\"{scopes}\"")).unwrap_or_default();
    let why = why.map(|(code, why)| format!(", error=\"{code}\", error_description=\"{why}\"")).unwrap_or_default();
    let challenge = format!("Bearer resource_metadata=\"{metadata}\"{scope}{why}");
    let named = [("resource_metadata", metadata)].into_iter().chain(scopes.map(|scopes| ("scope", scopes)));
    error.with_members(named.collect()).with_headers(vec![("www-authenticate", challenge)])
}

/// The CORS headers that let a page of this origin read the answer.
///
/// # Errors
/// [`Error::Forbidden`] for a page of another origin: it may have been led here by a name that changed its address.
pub(crate) fn headers(deps: &Deps, request: &Request) -> Result<Vec<(&'static str, String)>> {
    let Some(origin) = request.headers().get("origin") else { return Ok(Vec::new()) };
    let origin = origin.to_str().unwrap_or_default();
    let own = self::origin(&deps.authentication.public_url);
    let allowed = &deps.authentication.mcp.origins;
    if origin != own && !allowed.iter().any(|allowed| allowed == origin || allowed == "*") {
        return Err(Error::Forbidden("pages of this origin may not ask; the operator names those that may"));
    }
    Ok(vec![
        ("access-control-allow-origin", origin.to_owned()),
        ("access-control-expose-headers", "WWW-Authenticate, Mcp-Session-Id, MCP-Protocol-Version".to_owned()),
        ("vary", "Origin".to_owned()),
    ])
}

/// The answer to a browser's preflight.
pub(crate) fn preflight(deps: &Deps, request: &Request) -> Result<Reply> {
    let allowed = [
        ("access-control-allow-methods", "POST, GET, DELETE"),
        (
            "access-control-allow-headers",
            "authorization, content-type, accept, mcp-protocol-version, mcp-method, mcp-name, mcp-session-id, last-event-id",
        ),
        ("access-control-max-age", PREFLIGHT_HOLDS),
    ];
    let allowed = allowed.map(|(name, value)| (name, value.to_owned()));
    Ok(Reply::no_content().with_headers(headers(deps, request)?.into_iter().chain(allowed)))
}
