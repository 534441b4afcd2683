//! Who is let in: a member who shows a good token.

use lambda_http::{RequestExt, request::RequestContext};
use shared::{
    Error, Result,
    http::{self, NoToken, Person, Request},
};

use crate::Deps;

pub(crate) async fn person(deps: &Deps, request: &Request) -> Result<Person> {
    let own = || format!("https://{}", domain(request).unwrap_or_default());
    let resource = deps.public_url.clone().unwrap_or_else(own);
    let token = deps.tokens.of_request(request, &resource, http::deadline(request)).await;
    let token = token.map_err(unauthenticated)?;
    deps.access.person_by_token(request, &token).await
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
    Error::WithHeaders { error: Box::new(Error::Unauthenticated), headers: vec![("www-authenticate", challenge)] }
}

/// The host of the function's own URL, as Lambda says it.
fn domain(request: &Request) -> Option<String> {
    let RequestContext::ApiGatewayV2(context) = request.request_context_ref()? else { return None };
    context.domain_name.clone()
}
