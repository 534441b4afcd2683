//! The addresses under which this API can be called.

use lambda_http::{Request, RequestExt, request::RequestContext};

use super::route::path;

/// The full addresses, with path and query as sent, that the client may have called: at `public_url` (without a trailing
/// slash), and at the host that API Gateway served. Services that sign an address sign the one they were given, which
/// after a new `PublicUrl` is still the other one.
pub fn called_addresses(public_url: &str, request: &Request) -> Vec<String> {
    let query = request.uri().query().filter(|query| !query.is_empty());
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    let of_gateway = gateway_host(request).map(|host| format!("https://{host}"));
    let bases = [Some(public_url), of_gateway.as_deref().filter(|base| *base != public_url)];
    bases.into_iter().flatten().map(|base| format!("{base}{}{query}", path(request))).collect()
}

/// The host that API Gateway served: the API's endpoint, or a domain of this account that leads to the API. No client can
/// choose another one, because API Gateway finds the API by it.
pub fn gateway_host(request: &Request) -> Option<&str> {
    let RequestContext::ApiGatewayV2(context) = request.request_context_ref()? else { return None };
    context.domain_name.as_deref()
}

#[cfg(test)]
mod tests {
    use lambda_http::request::from_str;

    use super::*;

    fn request(host: &str) -> Request {
        let event = include_str!("../../../../events/call-start.json");
        from_str(&event.replace("switchboard.execute-api.localhost", host)).unwrap()
    }

    #[test]
    fn a_request_may_be_for_the_public_address_or_the_gateways_host() {
        let request = request("abc.execute-api.eu-central-1.amazonaws.com");
        let path = path(&request);
        assert_eq!(
            called_addresses("https://calls.acme.example", &request),
            [
                format!("https://calls.acme.example{path}"),
                format!("https://abc.execute-api.eu-central-1.amazonaws.com{path}"),
            ]
        );
    }

    #[test]
    fn the_public_address_at_the_gateways_host_is_one_address() {
        let addresses = called_addresses("https://calls.acme.example", &request("calls.acme.example"));
        assert_eq!(addresses.len(), 1, "{addresses:?}");
    }
}
