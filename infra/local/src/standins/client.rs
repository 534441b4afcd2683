//! The HTTP client of the stand-ins that call back.

use std::{io, net::SocketAddr, sync::Arc};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// The client for a stand-in's own requests. Names under `.localhost` resolve to this machine, regardless of the
/// system resolver.
#[expect(
    clippy::disallowed_methods,
    reason = "a vendor's side of the wire has its own limits and follows its own names"
)]
pub(super) fn client() -> io::Result<reqwest::Client> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .dns_resolver(Arc::new(Loopback))
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .map_err(io::Error::other)
}

struct Loopback;

impl Resolve for Loopback {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let host = name.as_str();
            if host == "localhost" || host.ends_with(".localhost") {
                return Ok(Box::new(std::iter::once(SocketAddr::from(([127, 0, 0, 1], 0)))) as Addrs);
            }
            let found: Vec<_> = tokio::net::lookup_host((host, 0)).await?.collect();
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}
