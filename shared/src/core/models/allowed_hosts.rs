//! The allowed hosts of requests whose address is chosen in the call.

use std::fmt;

use serde::{Deserialize, Serialize};
use url::Url;

/// `["api.example.com", "crm.example.com:8443"]`, with the scheme's port by default. Empty allows every host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllowedHosts(Vec<String>);

crate::described!(AllowedHosts => {"type": "array", "items": {"type": "string"}});

#[derive(Debug, thiserror::Error)]
#[error("must be the name of a host and nothing else, such as api.example.com or api.example.com:8443")]
pub struct NotAHost;

impl AllowedHosts {
    /// Adds a host as written in a parsed address.
    ///
    /// # Errors
    /// For text that is not a host with an optional port.
    pub fn add(&mut self, host: &str) -> Result<(), NotAHost> {
        let host = normal(host).ok_or(NotAHost)?;
        if !self.0.contains(&host) {
            self.0.push(host);
        }
        Ok(())
    }

    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks the address of a request.
    ///
    /// # Errors
    /// The refused host, and the allowed ones.
    pub fn check(&self, url: &Url) -> Result<(), String> {
        if self.is_empty() || self.hold(url) {
            return Ok(());
        }
        let host = url.host_str().unwrap_or_default();
        Err(format!("the address {host} is not one of those that are allowed, which are {self}"))
    }

    fn hold(&self, url: &Url) -> bool {
        let Some(host) = url.host_str() else { return false };
        let with_port = url.port_or_known_default().map(|port| format!("{host}:{port}"));
        self.0.iter().any(|allowed| (url.port().is_none() && allowed == host) || with_port.as_ref() == Some(allowed))
    }
}

impl fmt::Display for AllowedHosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

/// A host as written in a parsed address, with its port if that is not 443.
fn normal(text: &str) -> Option<String> {
    let text = text.trim();
    if text.is_empty() || text.contains(['/', '\\', '?', '#', '@', '*', '{', ' ']) {
        return None;
    }
    let url = Url::parse(&format!("https://{text}/")).ok()?;
    let host = url.host_str()?;
    Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_allowed_however_it_is_written_and_on_its_port_only() {
        let mut allowed = AllowedHosts::default();
        for host in ["API.example.com", "api.example.com", "crm.example.com:8443", "[::1]:80", "bücher.example:443"] {
            allowed.add(host).unwrap();
        }
        assert_eq!(allowed.to_string(), "api.example.com, crm.example.com:8443, [::1]:80, xn--bcher-kva.example");
        for (url, expected) in [
            ("https://api.example.com/x?y=z", true),
            ("https://API.EXAMPLE.COM:443/", true),
            ("https://api.example.com:8443/", false),
            ("https://api.example.com.evil.example/", false),
            ("https://evil.example/api.example.com", false),
            ("https://api.example.com@evil.example/", false),
            ("https://sub.api.example.com/", false),
            ("https://crm.example.com:8443/", true),
            ("https://crm.example.com/", false),
            ("http://[::1]/", true),
            ("https://xn--bcher-kva.example/", true),
        ] {
            assert_eq!(allowed.check(&Url::parse(url).unwrap()).is_ok(), expected, "{url}");
        }
        assert!(AllowedHosts::default().check(&Url::parse("https://a.example/").unwrap()).is_ok(), "nothing is said");
    }

    #[test]
    fn a_text_that_is_not_exactly_a_host_is_refused() {
        for wrong in
            ["https://a.example", "a.example/x", "*.example", "a@b.example", "", "a b", "{{now}}.example", "a:x"]
        {
            assert!(AllowedHosts::default().add(wrong).is_err(), "{wrong}");
        }
    }
}
