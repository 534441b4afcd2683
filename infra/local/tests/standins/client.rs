//! The HTTP client of the stand-ins' tests.
#![expect(clippy::expect_used, reason = "a test says what is missing and stops")]

use std::net::SocketAddr;

use serde_json::Value;

/// Any free port of this machine.
pub(crate) fn anywhere() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

#[expect(clippy::disallowed_methods, reason = "a test is the other side of the wire")]
pub(crate) fn client() -> reqwest::Client {
    // From the second test on, the process has the provider already.
    drop(rustls::crypto::ring::default_provider().install_default());
    reqwest::Client::builder().no_proxy().tls_certs_only([]).build().expect("a client")
}

/// Status and JSON body; null if the body is empty.
pub(crate) async fn json(request: reqwest::RequestBuilder) -> (u16, Value) {
    let response = request.send().await.expect("an answer");
    let status = response.status().as_u16();
    let text = response.text().await.expect("a body");
    let body = if text.is_empty() { Value::Null } else { serde_json::from_str(&text).expect("a JSON body") };
    (status, body)
}
