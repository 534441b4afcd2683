//! Who is let in: a member who shows a good token.

use lambda_http::{RequestExt, request::RequestContext};
use shared::{
    Error, Result,
    http::{Found, NoToken, Person, Request},
};

use crate::Deps;

/// The variables with lists of origins; in one of them this stands for all origins.
const ORIGINS: [&str; 3] = ["own_origin", "dashboard_origins", "stream_origins"];
const EVERYBODY: &str = "all";

pub(crate) async fn person(deps: &Deps, found: &Found<'_>) -> Result<Person> {
    let own = own_address(found.request);
    let resources: Vec<&str> = own.as_deref().into_iter().chain(deps.public_url.as_deref()).collect();
    let token = deps.tokens.of_request(found.request, &resources, found.deadline).await;
    let token = token.map_err(unauthenticated)?;
    deps.access.person_by_token(found, &token).await
}

/// 401 as RFC 6750 has it; an issuer that does not answer is no fault of the token's.
fn unauthenticated(refused: NoToken) -> Error {
    let challenge = match refused {
        NoToken::Missing => "Bearer".to_owned(),
        NoToken::Refused(why) => {
            tracing::info!("a token was refused: {why}");
            format!("Bearer error=\"invalid_token\", error_description=\"{why}\"")
        }
        NoToken::Unverified(error) => return error,
    };
    Error::Unauthenticated.with_headers(vec![("www-authenticate", challenge)])
}

/// The REST API's own endpoint, as API Gateway says it.
fn own_address(request: &Request) -> Option<String> {
    let RequestContext::ApiGatewayV1(context) = request.request_context_ref()? else { return None };
    Some(format!("https://{}/{}", context.domain_name.as_ref()?, context.stage.as_ref()?))
}

/// The CORS headers that let a page of this origin read the answer, from the variables of the API's stage: a REST API
/// answers preflights itself, and adds nothing to the function's answer.
pub(crate) fn headers(request: &Request) -> Vec<(&'static str, String)> {
    let Some(origin) = request.headers().get("origin").and_then(|origin| origin.to_str().ok()) else {
        return Vec::new();
    };
    let variables = request.stage_variables();
    let lists = ORIGINS.into_iter().filter_map(|name| variables.first(name));
    let allowed = lists.flat_map(|list| list.split(',')).fold(None, |allowed, listed| match listed {
        EVERYBODY => Some("*"),
        listed if listed == origin => allowed.or(Some(origin)),
        _ => allowed,
    });
    let mut headers = vec![("vary", "Origin".to_owned())];
    if let Some(allowed) = allowed {
        headers.push(("access-control-allow-origin", allowed.to_owned()));
        headers.extend(
            variables.first("exposed_headers").map(|names| ("access-control-expose-headers", names.to_owned())),
        );
    }
    headers
}
