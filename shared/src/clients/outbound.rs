//! The guarded HTTP client, for addresses chosen by a tool's author or a model.
//!
//! It must not reach the Lambda runtime API, the metadata service or a VPC. A separate check of a host name could be bypassed by
//! changing DNS answers, so the client's only resolver checks every address it returns. Literal IPs bypass the resolver and are
//! checked apart, in the first address and every redirect. Anything uncheckable is refused.

mod addresses;
mod decoded_body;
mod form;

use std::{
    error::Error as _,
    fmt,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use reqwest::{
    Method, RequestBuilder, Response, Url,
    dns::{Addrs, Name, Resolve, Resolving},
    header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, LOCATION, USER_AGENT},
};
use serde_json::Value;

use self::addresses::{is_public, is_public_name};
pub use self::{decoded_body::DecodedBody, form::field_text};
use super::{
    Error, Failure, UpstreamService,
    http_client::{builder, not_sent, read},
};
use crate::{Deadline, models::AllowedHosts};

/// Per GET.
const REDIRECTS: usize = 5;
/// Names of RFC 9110, section 8.4.1, and of RFC 7932 and 8878.
const COMPRESSIONS: [&str; 7] = ["gzip", "x-gzip", "deflate", "br", "zstd", "compress", "x-compress"];

pub const FORM: &str = "application/x-www-form-urlencoded";

#[derive(Clone)]
pub struct Outbound {
    guarded: reqwest::Client,
    /// Only for the open hosts; absent without any.
    unguarded: Option<reqwest::Client>,
    open: Arc<OpenHosts>,
}

#[derive(Debug)]
pub struct Request {
    pub method: Method,
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Option<RequestBody>,
    /// Bytes; a larger answer is an error.
    pub limit: usize,
    /// Also for redirects; if empty, any public host.
    pub allowed_hosts: AllowedHosts,
}

impl Request {
    pub fn get(url: Url, limit: usize) -> Self {
        let (headers, allowed_hosts) = (HeaderMap::new(), AllowedHosts::default());
        Self { method: Method::GET, url, headers, body: None, limit, allowed_hosts }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum RequestBody {
    Json(Value),
    Form(String),
}

impl RequestBody {
    pub fn shown(self) -> Value {
        match self {
            Self::Json(body) => body,
            Self::Form(body) => body.into(),
        }
    }
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub content_type: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn decoded(&self) -> DecodedBody<'_> {
        DecodedBody::of(&self.content_type, &self.body)
    }
}

/// Words for a compressed body, to follow "answered with".
pub fn compressed(headers: &HeaderMap) -> Option<String> {
    let encoding = headers.get(CONTENT_ENCODING)?.to_str().ok()?.to_ascii_lowercase();
    let shown = encoding.split(',').map(str::trim).find(|encoding| COMPRESSIONS.contains(encoding))?;
    Some(format!("compressed content ({shown}) although that was not asked for, and cannot be read"))
}

impl Outbound {
    /// `open_hosts` (`name` or `name:port`) are allowed although private, also over http.
    ///
    /// # Errors
    /// If TLS cannot be set up, independent of input.
    pub fn new(open_hosts: Vec<String>) -> crate::Result<Self> {
        let build =
            |builder: reqwest::ClientBuilder| builder.user_agent("switchboard").build().map_err(crate::Error::internal);
        let guarded = build(builder()?.dns_resolver(GuardedResolver))?;
        let unguarded = if open_hosts.is_empty() { None } else { Some(build(builder()?)?) };
        Ok(Self { guarded, unguarded, open: Arc::new(OpenHosts(open_hosts)) })
    }

    fn client(&self, url: &Url) -> &reqwest::Client {
        self.unguarded.as_ref().filter(|_| self.open.allows(url)).unwrap_or(&self.guarded)
    }

    /// Parses an address written by a person or a model.
    ///
    /// # Errors
    /// The mistake, a sentence.
    pub fn parse(&self, url: &str) -> Result<Url, String> {
        let url = Url::parse(url.trim()).map_err(|error| format!("the address is not a URL ({error})"))?;
        self.check(&url).map(|()| url)
    }

    /// Begins a POST to an untrusted address; the caller sends it. Follows no redirect.
    pub(super) fn post(&self, url: &str) -> Result<RequestBuilder, String> {
        let url = self.parse(url)?;
        Ok(self.client(&url).post(url))
    }

    /// Sends a request and reads the whole answer.
    ///
    /// # Errors
    /// As [`Outbound::open`]; [`Failure::TooLarge`] for an answer above the request's limit.
    pub async fn send(&self, request: Request, deadline: Deadline) -> Result<Answer, Error> {
        let limit = request.limit;
        let response = self.open(request, deadline).await?;
        let status = response.status().as_u16();
        let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or_default().to_owned();
        let headers = response.headers().clone();
        let body = read(response, limit).await.map_err(|unread| unread.of(UpstreamService::Outbound))?;
        Ok(Answer { status, content_type, headers, body })
    }

    /// Sends a request, and returns the answer with its body unread. A GET follows up to five redirects, each checked like the
    /// first address; the request's headers are not sent to another host. There are no retries, and the deadline includes the
    /// body.
    ///
    /// # Errors
    /// [`Failure::Refused`] for a forbidden address, else as for every vendor.
    pub async fn open(&self, request: Request, deadline: Deadline) -> Result<Response, Error> {
        let Request { method, mut url, mut headers, body, limit: _, allowed_hosts } = request;
        for hop in 0..=REDIRECTS {
            self.check(&url)
                .and_then(|()| allowed_hosts.check(&url))
                .map_err(|why| refused(if hop == 0 { why } else { format!("it redirects, and {why}") }))?;
            let outgoing = self.client(&url).request(method.clone(), url.clone());
            let mut outgoing = outgoing.headers(headers.clone()).timeout(deadline.remaining());
            outgoing = match &body {
                None => outgoing,
                Some(RequestBody::Json(body)) => outgoing.json(body),
                Some(RequestBody::Form(body)) if headers.contains_key(CONTENT_TYPE) => outgoing.body(body.clone()),
                Some(RequestBody::Form(body)) => outgoing.header(CONTENT_TYPE, FORM).body(body.clone()),
            };
            let response = outgoing.send().await.map_err(|error| failed(UpstreamService::Outbound, error))?;
            let status = response.status().as_u16();
            // Servers write UTF-8 in it as it is.
            let target = response.headers().get(LOCATION).and_then(|value| std::str::from_utf8(value.as_bytes()).ok());
            let (Some(target), 301 | 302 | 303 | 307 | 308) = (target, status) else { return Ok(response) };
            if method != Method::GET {
                return Ok(response);
            }
            let next =
                url.join(target).map_err(|error| refused(format!("it redirects to an invalid URL ({error})")))?;
            if next.origin() != url.origin() {
                let kept = [ACCEPT, USER_AGENT];
                headers = headers
                    .into_iter()
                    .filter_map(|(name, value)| name.filter(|name| kept.contains(name)).map(|name| (name, value)))
                    .collect();
            }
            url = next;
        }
        Err(refused(format!("it redirects more than {REDIRECTS} times")))
    }

    /// Checks an address without resolving its name.
    ///
    /// # Errors
    /// The mistake, to follow the field's name.
    pub fn check_configured(&self, url: &str) -> Result<(), String> {
        self.parse(url).map(drop)
    }

    fn check(&self, url: &Url) -> Result<(), String> {
        let host = url.host_str().ok_or("the address names no host")?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err("the address must not hold a user name or password; use a header".into());
        }
        if self.open.allows(url) {
            return Ok(());
        }
        if url.scheme() != "https" {
            return Err(format!("only https addresses may be called, not {}", url.scheme()));
        }
        let literal = match url.host() {
            Some(url::Host::Ipv4(ip)) => Some(IpAddr::V4(ip)),
            Some(url::Host::Ipv6(ip)) => Some(IpAddr::V6(ip)),
            _ => None,
        };
        match literal {
            Some(ip) if is_public(ip) => Ok(()),
            None if is_public_name(host) => Ok(()),
            _ => Err(format!("{host} is not on the public internet; give a public address of the service")),
        }
    }
}

fn refused(why: impl Into<String>) -> Error {
    Error::new(UpstreamService::Outbound, Failure::Refused(why.into()))
}

/// Finds the resolver's refusal at the end of reqwest's source chain.
pub(super) fn failed(service: UpstreamService, error: reqwest::Error) -> Error {
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(not_public) = cause.downcast_ref::<NotPublic>() {
            return Error::new(service, Failure::Refused(not_public.to_string()));
        }
        source = cause.source();
    }
    not_sent(service, error)
}

/// Hosts (`name` or `name:port`) allowed by configuration, also over http.
#[derive(Debug)]
pub(super) struct OpenHosts(pub(super) Vec<String>);

impl OpenHosts {
    pub(super) fn allows(&self, url: &Url) -> bool {
        let Some(host) = url.host_str() else { return false };
        let with_port = url.port_or_known_default().map(|port| format!("{host}:{port}"));
        matches!(url.scheme(), "http" | "https")
            && self.0.iter().any(|open| open == host || Some(open) == with_port.as_ref())
    }
}

/// Refuses an answer with any non-public address as a whole.
struct GuardedResolver;

#[derive(Debug)]
struct NotPublic(String);

impl fmt::Display for NotPublic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the address {} is not public", self.0)
    }
}

impl std::error::Error for NotPublic {}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            if found.iter().all(|address| is_public(address.ip())) {
                Ok(Box::new(found.into_iter()) as Addrs)
            } else {
                Err(NotPublic(host).into())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(open: &[&str]) -> Outbound {
        Outbound::new(open.iter().map(|host| (*host).to_owned()).collect()).unwrap()
    }

    #[test]
    fn an_address_is_refused_unless_it_is_public_https() {
        let guard = guard(&[]);
        assert!(guard.parse("https://api.example.com/x").is_ok());
        assert!(guard.parse("https://93.184.216.34/").is_ok());
        for bad in [
            "http://api.example.com/",
            "https://localhost/x",
            "https://metadata.google.internal/",
            "https://db/",
            "https://127.0.0.1/",
            "https://127.1/",
            "https://0x7f000001/",
            "https://2130706433/",
            "https://[::1]/",
            "https://[::ffff:169.254.169.254]/",
            "https://169.254.169.254/latest/meta-data",
            "https://user:pass@api.example.com/",
            "file:///etc/passwd",
            "ftp://example.com/",
            "not a url",
            "",
        ] {
            assert!(guard.parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_open_host_is_open_on_its_port_only() {
        let guard = guard(&["127.0.0.1:4571"]);
        assert!(guard.parse("http://127.0.0.1:4571/customers").is_ok());
        assert!(guard.parse("http://127.0.0.1:9001/2018-06-01/runtime").is_err());
        assert!(guard.parse("https://127.0.0.1/").is_err());
    }

    #[tokio::test]
    async fn a_name_that_resolves_to_loopback_is_refused_by_the_resolver() {
        let resolved = GuardedResolver.resolve("localhost".parse().unwrap()).await;
        assert!(resolved.is_err_and(|error| error.to_string().contains("not public")));
    }

    #[tokio::test]
    async fn an_unparsed_url_to_a_local_address_is_refused() {
        let guard = guard(&[]);
        let url = Url::parse("https://localhost/").unwrap();
        let request = Request {
            method: Method::GET,
            url,
            headers: HeaderMap::new(),
            body: None,
            limit: 100,
            allowed_hosts: AllowedHosts::default(),
        };
        let error = guard.send(request, Deadline::after(std::time::Duration::from_secs(5))).await.unwrap_err();
        assert!(matches!(error.failure, Failure::Refused(_)), "{error:?}");
        assert!(!error.effect_possible());
    }
}
