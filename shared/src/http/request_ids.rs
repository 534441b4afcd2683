//! What a request is called, so that what a caller was told is found again.

use lambda_http::{Request, RequestExt, request::RequestContext};
use tracing::Span;

/// The two names of a request. Both stand in every line of its log.
#[derive(Debug, Clone, Default)]
pub(super) struct RequestIds {
    /// The door's: `requestContext.requestId`, which the access log has as `request_id` and answers have as a header, `apigw-requestid`
    /// of the HTTP API and `x-amzn-requestid` of the REST API. This one the caller is told. Lambda's where there is no door.
    pub(super) request: String,
    /// Lambda's, which is in its own lines (`START`, `REPORT`, a time-out) and in the access log as `lambda_request_id`.
    pub(super) invocation: String,
}

impl RequestIds {
    pub(super) fn of(request: &Request) -> Self {
        let invocation = request.lambda_context_ref().map(|context| context.request_id.clone()).unwrap_or_default();
        let of_door = of_door(request);
        Self { request: of_door.unwrap_or_else(|| invocation.clone()), invocation }
    }

    /// Around all that is done for the request: each line of the log that is written within names it.
    pub(super) fn span(&self) -> Span {
        // At the level of errors, or their lines would lack it where only they are logged.
        tracing::error_span!("request", request.id = self.request, lambda.request_id = self.invocation)
    }
}

fn of_door(request: &Request) -> Option<String> {
    let id = match request.request_context_ref()? {
        RequestContext::ApiGatewayV1(context) => context.request_id.clone(),
        RequestContext::ApiGatewayV2(context) => context.request_id.clone(),
        _ => None,
    };
    id.filter(|id| !id.is_empty())
}
