//! The AWS SDK over our own HTTP client.
//!
//! One TLS stack in the binary, with its roots compiled in, and HTTP/1.1, which suffices for DynamoDB and Secrets Manager
//! (docs/adr/0002-lean-aws-client.md).

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use aws_config::{BehaviorVersion, Region, SdkConfig, retry::RetryConfig, timeout::TimeoutConfig};
use aws_sdk_dynamodb::{
    config::SharedCredentialsProvider,
    error::{ProvideErrorMetadata, SdkError},
};
use aws_smithy_runtime_api::{
    client::{
        endpoint::{EndpointFuture, EndpointResolverParams, ResolveEndpoint, SharedEndpointResolver},
        http::{HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector},
        orchestrator::{HttpRequest, HttpResponse},
        result::ConnectorError,
        runtime_components::RuntimeComponents,
    },
    http::StatusCode,
};
use aws_smithy_types::{body::SdkBody, endpoint::Endpoint, retry::ErrorKind};
use reqwest::{
    Method,
    header::{HeaderName, HeaderValue},
};

use super::{Error, Failure, UpstreamService};

/// The configuration of all AWS clients. `endpoint_url`: a local AWS, else absent.
///
/// Sets time limits, which the SDK lacks: a hanging connection would block the caller until the function times out.
pub fn sdk_config(
    http: reqwest::Client,
    region: Region,
    credentials: SharedCredentialsProvider,
    endpoint_url: Option<String>,
) -> SdkConfig {
    let mut config = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(region)
        .credentials_provider(credentials)
        .http_client(AwsHttp(http))
        // The SDK's initial backoff of a second is too long for a caller on the phone.
        .retry_config(RetryConfig::standard().with_max_attempts(3).with_initial_backoff(Duration::from_millis(50)))
        .timeout_config(
            TimeoutConfig::builder()
                .connect_timeout(Duration::from_secs(1))
                .operation_attempt_timeout(Duration::from_millis(1_500))
                .operation_timeout(Duration::from_secs(5))
                .build(),
        );
    config.set_endpoint_url(endpoint_url);
    config.build()
}

/// A client of the SDK, made at its first use. Making one parses the SDK's list of all partitions: each costs a twelfth of a start of
/// `execute`, which seldom sends a message.
pub(super) type LazyClient<C> = Arc<LazyLock<C, Box<dyn FnOnce() -> C + Send>>>;

/// The address of a service in our region, without the rules of the SDK's own resolver.
pub(crate) fn aws_endpoint(aws: &SdkConfig, service: &str) -> SharedEndpointResolver {
    let region = aws.region().map(Region::as_ref).unwrap_or_default();
    let suffix = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
    let url = aws.endpoint_url().map_or_else(|| format!("https://{service}.{region}.{suffix}"), str::to_owned);
    SharedEndpointResolver::new(OneEndpoint(Endpoint::builder().url(url).build()))
}

#[derive(Debug, Clone)]
struct AwsHttp(reqwest::Client);

impl HttpClient for AwsHttp {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for AwsHttp {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let http = self.0.clone();
        HttpConnectorFuture::new(async move { send(&http, &request).await })
    }
}

/// Called within the SDK's time limits and retries.
async fn send(http: &reqwest::Client, request: &HttpRequest) -> Result<HttpResponse, ConnectorError> {
    let method = Method::from_bytes(request.method().as_bytes()).map_err(|error| ConnectorError::user(error.into()))?;
    let body = request.body().bytes().ok_or_else(|| ConnectorError::user("the SDK streams a request".into()))?;
    let mut outgoing = http.request(method, request.uri()).body(body.to_vec());
    for (name, value) in request.headers() {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| ConnectorError::user(error.into()))?;
        let value = HeaderValue::from_str(value).map_err(|error| ConnectorError::user(error.into()))?;
        outgoing = outgoing.header(name, value);
    }
    let answer = outgoing.send().await.map_err(failed)?;
    let status = answer.status().as_u16();
    let status = StatusCode::try_from(status).map_err(|error| ConnectorError::other(error.into(), None))?;
    let headers = answer.headers().clone();
    let body = answer.bytes().await.map_err(failed)?;
    let mut response = HttpResponse::new(status, SdkBody::from(body.to_vec()));
    for (name, value) in &headers {
        let value = value.to_str().map_err(|error| ConnectorError::other(error.into(), None))?;
        response.headers_mut().append(name.as_str().to_owned(), value.to_owned());
    }
    Ok(response)
}

fn failed(error: reqwest::Error) -> ConnectorError {
    if error.is_connect() {
        // Another kind than a broken connection, since nothing was sent.
        ConnectorError::other(error.into(), Some(ErrorKind::TransientError))
    } else if error.is_timeout() {
        ConnectorError::timeout(error.into())
    } else {
        ConnectorError::io(error.into())
    }
}

/// Exposes only the status; AWS's own text stays in the source chain for the log.
pub(super) fn aws_failed<E>(service: UpstreamService, error: SdkError<E>) -> Error
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    let failure = match &error {
        SdkError::ServiceError(answer) => match answer.raw().status().as_u16() {
            _ if answer.err().code() == Some("ThrottlingException") => Failure::RateLimited,
            status @ 500.. => Failure::Broken { status, excerpt: String::new() },
            status => Failure::Rejected { status, excerpt: String::new() },
        },
        SdkError::TimeoutError(_) | SdkError::ResponseError(_) => Failure::NoAnswer,
        SdkError::DispatchFailure(broken) if broken.is_io() || broken.is_timeout() => Failure::NoAnswer,
        _ => Failure::Unreachable,
    };
    Error::because(service, failure, error)
}

#[derive(Debug)]
struct OneEndpoint(Endpoint);

impl ResolveEndpoint for OneEndpoint {
    fn resolve_endpoint<'a>(&'a self, _: &'a EndpointResolverParams) -> EndpointFuture<'a> {
        EndpointFuture::ready(Ok(self.0.clone()))
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::config::Credentials;

    use super::*;
    use crate::clients::http_client;

    #[tokio::test]
    async fn a_service_is_in_its_region_unless_an_endpoint_is_given() {
        for (region, given, url) in [
            ("eu-central-1", None, "https://dynamodb.eu-central-1.amazonaws.com"),
            ("cn-north-1", None, "https://dynamodb.cn-north-1.amazonaws.com.cn"),
            ("eu-central-1", Some("http://127.0.0.1:4566"), "http://127.0.0.1:4566"),
        ] {
            let credentials = Credentials::builder().access_key_id("key").secret_access_key("secret");
            let credentials = SharedCredentialsProvider::new(credentials.provider_name("test").build());
            let given = given.map(str::to_owned);
            let aws = sdk_config(http_client().unwrap(), Region::new(region), credentials, given);
            let parameters = EndpointResolverParams::new(());
            let endpoint = aws_endpoint(&aws, "dynamodb").resolve_endpoint(&parameters).await.unwrap();
            assert_eq!(endpoint.url(), url);
        }
    }
}
