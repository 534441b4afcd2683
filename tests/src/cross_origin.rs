//! Judges cross-origin answers as a browser does, by the Fetch standard (CORS, without credentials).
//!
//! First the preflight if one is due, then the request, then the readable headers.

use std::collections::BTreeMap;

use reqwest::{
    Client, Method, RequestBuilder,
    header::{HeaderMap, HeaderName},
};
use serde_json::Value;

/// Requests that need no preflight.
const SIMPLE_METHODS: [&str; 3] = ["GET", "HEAD", "POST"];
const SIMPLE_HEADERS: [&str; 3] = ["accept", "accept-language", "content-language"];
const SIMPLE_TYPES: [&str; 3] = ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"];
/// Headers that every page may read.
const ALWAYS_READABLE: [&str; 7] =
    ["cache-control", "content-language", "content-length", "content-type", "expires", "last-modified", "pragma"];

/// A page with its origin; `null` is the origin of a sandboxed frame or a file.
pub struct Page<'a> {
    pub http: &'a Client,
    pub origin: &'a str,
}

/// The script's view of the answer.
#[derive(Debug)]
pub struct Seen {
    pub status: u16,
    /// The readable headers, names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: Value,
    /// Whether the browser sent a preflight.
    pub preflighted: bool,
}

impl Page<'_> {
    /// `fetch(address, {method, headers, body})`. The error is the browser's reason; the script only learns of the
    /// failure.
    ///
    /// # Errors
    /// If preflight or answer do not allow this page.
    pub async fn fetch(
        &self,
        method: &str,
        address: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<Seen, String> {
        let mut unsafe_names: Vec<String> = headers
            .iter()
            .filter(|(name, value)| !is_simple(name, value))
            .map(|(name, _)| name.to_ascii_lowercase())
            .collect();
        unsafe_names.sort();
        let preflighted = !SIMPLE_METHODS.contains(&method) || !unsafe_names.is_empty();
        if preflighted {
            self.preflight(method, address, &unsafe_names).await?;
        }
        let mut request = self.request(method, address);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request.body(body.to_string());
        }
        let answer = request.send().await.map_err(|error| error.to_string())?;
        self.check(answer.headers()).map_err(|why| format!("{}: {why}", answer.status()))?;
        let exposed = list(answer.headers(), "access-control-expose-headers");
        let may_read = |name: &HeaderName| {
            let named = exposed.iter().any(|exposed| exposed == "*" || exposed.eq_ignore_ascii_case(name.as_str()));
            named || ALWAYS_READABLE.contains(&name.as_str())
        };
        let readable = answer.headers().iter().filter(|(name, _)| may_read(name));
        let readable = readable.filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())));
        Ok(Seen {
            status: answer.status().as_u16(),
            headers: readable.collect(),
            body: answer.json().await.unwrap_or_default(),
            preflighted,
        })
    }

    async fn preflight(&self, method: &str, address: &str, names: &[String]) -> Result<(), String> {
        let mut request = self.request("OPTIONS", address).header("access-control-request-method", method);
        if !names.is_empty() {
            request = request.header("access-control-request-headers", names.join(","));
        }
        let answer = request.send().await.map_err(|error| error.to_string())?;
        let headers = answer.headers();
        self.check(headers).map_err(|why| format!("preflight: {why}"))?;
        if !answer.status().is_success() {
            return Err(format!("preflight: {} is not ok", answer.status()));
        }
        let methods = list(headers, "access-control-allow-methods");
        // Methods are compared case-sensitively; `*` allows all.
        if !SIMPLE_METHODS.contains(&method) && !methods.iter().any(|allowed| allowed == method || allowed == "*") {
            return Err(format!("preflight: the method {method} is not among {methods:?}"));
        }
        let allowed = list(headers, "access-control-allow-headers");
        for name in names {
            // `*` does not cover `authorization`, the header with which a page could act for somebody.
            let by_star = name != "authorization" && allowed.iter().any(|allowed| allowed == "*");
            if !by_star && !allowed.iter().any(|allowed| allowed.eq_ignore_ascii_case(name)) {
                return Err(format!("preflight: the header {name} is not among {allowed:?}"));
            }
        }
        Ok(())
    }

    fn request(&self, method: &str, address: &str) -> RequestBuilder {
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        self.http.request(method, address).header("origin", self.origin)
    }

    /// Exactly one origin must be allowed: this one or `*`. Two values are refused, even if they are equal.
    fn check(&self, headers: &HeaderMap) -> Result<(), String> {
        let allowed: Vec<_> = headers.get_all("access-control-allow-origin").iter().collect();
        match allowed.as_slice() {
            [] => Err("no Access-Control-Allow-Origin".to_owned()),
            [one] if *one == "*" || one.as_bytes() == self.origin.as_bytes() => Ok(()),
            others => Err(format!("Access-Control-Allow-Origin is {others:?}, the page's origin {}", self.origin)),
        }
    }
}

fn is_simple(name: &str, value: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let kind = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    SIMPLE_HEADERS.contains(&name.as_str()) || (name == "content-type" && SIMPLE_TYPES.contains(&kind.as_str()))
}

fn list(headers: &HeaderMap, name: &str) -> Vec<String> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(|item| item.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use axum::{Router, http::HeaderMap, response::IntoResponse, routing::any};

    use super::*;
    use crate::http_server::Server;

    const ORIGIN: &str = "https://app.example";

    /// A page's view of a server that sends these headers with every answer.
    async fn seen(
        answers: &'static [(&'static str, &'static str)],
        method: &str,
        sent: &[(&str, &str)],
    ) -> Result<Seen, String> {
        let answer = move || async move {
            let mut headers = HeaderMap::new();
            for (name, value) in answers {
                headers.append(*name, value.parse().unwrap());
            }
            (headers, "{}").into_response()
        };
        let server = Server::start(Router::new().fallback(any(answer))).await;
        let http = shared::clients::http_client().unwrap();
        let page = Page { http: &http, origin: ORIGIN };
        let seen = page.fetch(method, &server.url, sent, None).await;
        let preflights = server.seen().iter().filter(|request| request.method == "OPTIONS").count();
        if let Ok(seen) = &seen {
            assert_eq!(seen.preflighted, preflights == 1);
        }
        seen
    }

    #[tokio::test]
    async fn a_browser_is_as_strict_as_the_standard() {
        const ALLOW: &str = "access-control-allow-origin";
        let token = [("authorization", "Bearer t")];
        assert!(!seen(&[(ALLOW, ORIGIN)], "GET", &[]).await.unwrap().preflighted);
        let named = seen(&[(ALLOW, "*"), ("access-control-allow-headers", "Authorization")], "GET", &token).await;
        assert!(named.unwrap().preflighted);
        assert!(seen(&[], "GET", &[]).await.unwrap_err().contains("no Access-Control-Allow-Origin"));
        assert!(seen(&[(ALLOW, ORIGIN), (ALLOW, ORIGIN)], "GET", &[]).await.unwrap_err().contains("app.example"));
        assert!(seen(&[(ALLOW, "https://app.example/")], "GET", &[]).await.unwrap_err().contains("app.example/"));
        let star = seen(&[(ALLOW, "*"), ("access-control-allow-headers", "*")], "GET", &token).await;
        assert!(star.unwrap_err().contains("authorization"));
        let small = seen(&[(ALLOW, "*"), ("access-control-allow-methods", "patch")], "PATCH", &[]).await;
        assert!(small.unwrap_err().contains("PATCH"));
        let json = seen(&[(ALLOW, "*")], "POST", &[("content-type", "application/json")]).await;
        assert!(json.unwrap_err().contains("content-type"));
    }

    #[tokio::test]
    async fn a_script_reads_only_exposed_headers() {
        const ANSWERS: [(&str, &str); 4] = [
            ("access-control-allow-origin", "*"),
            ("access-control-expose-headers", "ETag, retry-after"),
            ("etag", "1"),
            ("x-other", "2"),
        ];
        let headers = seen(&ANSWERS, "POST", &[("content-type", "text/plain;charset=utf-8")]).await.unwrap().headers;
        assert_eq!(headers.get("etag").map(String::as_str), Some("1"));
        assert!(!headers.contains_key("x-other") && headers.contains_key("content-type"), "{headers:?}");
    }
}
