//! Request ids, which connect an answer with its log lines.

use lambda_http::{Request, RequestExt, request::RequestContext};
use tracing::Span;

/// Both ids are in every log line of the request.
#[derive(Debug, Clone, Default)]
pub(super) struct RequestIds {
    /// API Gateway's id, given to the caller: `requestContext.requestId`, `request_id` in the access log, header
    /// `apigw-requestid` of the HTTP API and `x-amzn-requestid` of the REST API. Lambda's id without a gateway.
    pub(super) request: String,
    /// Lambda's id, in its own log lines (`START`, `REPORT`, a time-out) and as `lambda_request_id` in the access log.
    pub(super) invocation: String,
}

impl RequestIds {
    pub(super) fn of(request: &Request) -> Self {
        let invocation = request.lambda_context_ref().map(|context| context.request_id.clone()).unwrap_or_default();
        let of_door = of_door(request);
        Self { request: of_door.unwrap_or_else(|| invocation.clone()), invocation }
    }

    pub(super) fn span(&self) -> Span {
        // An error span: with a lower level, lines would lack the ids where only errors are logged.
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
