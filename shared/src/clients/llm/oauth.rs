//! Requests tokens by client credentials (RFC 6749, 4.4): a form, the client in HTTP Basic.

use base64::{Engine, engine::general_purpose::STANDARD};
use reqwest::{
    RequestBuilder,
    header::{ACCEPT, AUTHORIZATION},
};
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde_json::Value;
use url::form_urlencoded::byte_serialize;

use super::{
    super::{
        Error, Failure, Reason, UpstreamService,
        bearer::TokenResponse,
        http_client::{Retry, excerpt, read, retry_after, retrying},
        outbound,
    },
    account::Client,
    authorization, refused, unusable,
};
use crate::Deadline;

/// Bytes; JWTs have a few thousand.
const LARGEST_GRANT: usize = 64 * 1024;

#[derive(Deserialize)]
struct Answer {
    #[serde(flatten)]
    granted: TokenResponse,
    token_type: Option<String>,
}

/// Requests a token; `post` begins the request.
///
/// # Errors
/// As for every vendor. Any 4xx means wrong credentials of the account.
pub(super) async fn grant(
    post: impl Fn() -> Result<RequestBuilder, Error>,
    client: &Client,
    deadline: Deadline,
) -> Result<TokenResponse, Error> {
    let mut form = vec![("grant_type", "client_credentials")];
    form.extend(client.scope.as_deref().map(|scope| ("scope", scope)));
    form.extend(client.audience.as_deref().map(|audience| ("audience", audience)));
    retrying(Retry::Harmless, deadline, || async {
        let request = post()?.header(AUTHORIZATION, basic(client)).header(ACCEPT, "application/json").form(&form);
        let response = request.timeout(deadline.remaining()).send().await;
        let response = response.map_err(|error| refused("token_url", outbound::failed(UpstreamService::Llm, error)))?;
        let (status, wait) = (response.status().as_u16(), retry_after(response.headers()));
        let body = read(response, LARGEST_GRANT).await;
        if !(200..=299).contains(&status) {
            return Err(not_granted(status, &body.unwrap_or_default(), client)).map_err(|error| match error.failure {
                Failure::Rejected { .. } => error,
                _ => Error { retry_after: wait, ..error },
            });
        }
        granted(&body.map_err(|unread| unread.of(UpstreamService::Llm))?)
    })
    .await
}

/// Both parts are form-encoded first (RFC 6749, 2.3.1), so that the id may contain a colon.
fn basic(client: &Client) -> String {
    let part = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", part(&client.client_id), part(client.client_secret.expose_secret()));
    format!("Basic {}", STANDARD.encode(pair))
}

fn granted(body: &[u8]) -> Result<TokenResponse, Error> {
    let answer: Answer =
        serde_json::from_slice(body).map_err(|_may_quote_the_token| unusable("token_url: access_token is missing"))?;
    let bearer = answer.token_type.as_deref().is_none_or(|kind| kind.eq_ignore_ascii_case("bearer"));
    if !bearer {
        return Err(unusable("token_url: token_type is not Bearer"));
    }
    if answer.granted.access_token.expose_secret().is_empty() {
        return Err(unusable("token_url: access_token is empty"));
    }
    authorization(&answer.granted.access_token)?;
    Ok(answer.granted)
}

/// `{"error", "error_description"?}`, for the log.
fn not_granted(status: u16, body: &[u8], client: &Client) -> Error {
    let said: Value = serde_json::from_slice(body).unwrap_or_default();
    let part = |name: &str| said.get(name).and_then(Value::as_str).map(|text| format!(": {text}")).unwrap_or_default();
    let text = format!("{}{}", part("error"), part("error_description"));
    let shown =
        if text.contains(client.client_secret.expose_secret()) { String::new() } else { excerpt(text.as_bytes()) };
    let excerpt = format!("token_url{shown}");
    match status {
        429 => Error::new(UpstreamService::Llm, Failure::RateLimited),
        408 | 500.. => Error::new(UpstreamService::Llm, Failure::Broken { status, excerpt }),
        _ => Error {
            reason: Some(Reason::Credentials),
            ..Error::new(UpstreamService::Llm, Failure::Rejected { status, excerpt })
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 6749, 2.3.1, needs no encoding; this one does everywhere.
    #[test]
    fn id_and_secret_are_encoded_before_they_are_joined() {
        let client: Client = serde_json::from_value(serde_json::json!({
            "client_id": "a:b c", "client_secret": "p%+/ü", "token_url": "",
        }))
        .unwrap();
        let header = basic(&client);
        let pair = STANDARD.decode(header.strip_prefix("Basic ").unwrap()).unwrap();
        assert_eq!(String::from_utf8(pair).unwrap(), "a%3Ab+c:p%25%2B%2F%C3%BC");
    }

    #[test]
    fn only_a_bearer_token_that_can_be_sent_is_taken() {
        for good in [r#"{"access_token":"t","token_type":"bearer"}"#, r#"{"access_token":"t"}"#] {
            assert_eq!(granted(good.as_bytes()).unwrap().access_token.expose_secret(), "t");
        }
        for bad in [
            "<html>",
            "[]",
            r#"{"token_type":"Bearer"}"#,
            r#"{"access_token":7}"#,
            r#"{"access_token":""}"#,
            r#"{"access_token":"a\nb"}"#,
            r#"{"access_token":"t","token_type":"mac"}"#,
        ] {
            assert!(matches!(granted(bad.as_bytes()), Err(Error { failure: Failure::Undecodable(_), .. })), "{bad}");
        }
    }
}
