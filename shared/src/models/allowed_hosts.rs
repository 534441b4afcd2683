//! The hosts to which requests may go whose address is chosen in the call.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;

use crate::fields::{Fields, kind};

const FIELD: &str = "allowed_hosts";
const MOST: usize = 50;

/// `allowed_hosts`: `["api.example.com", "crm.example.com:8443"]`. Without a port it is that of the scheme. Empty: nothing is
/// said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllowedHosts(Vec<String>);

impl AllowedHosts {
    /// Reads the field `allowed_hosts`.
    pub fn read(fields: &mut Fields<'_>) -> Self {
        let hosts = match fields.get(FIELD) {
            None => return Self::default(),
            Some(Value::Array(hosts)) if (1..=MOST).contains(&hosts.len()) => hosts,
            Some(Value::Array(_)) => {
                fields.problem(FIELD, format!("must name 1 to {MOST} hosts, or be left out"));
                return Self::default();
            }
            Some(other) => {
                fields.problem(FIELD, format!("must be a list of hosts, not {}", kind(other)));
                return Self::default();
            }
        };
        let mut allowed = Vec::new();
        for (index, host) in hosts.iter().enumerate() {
            match host.as_str().and_then(normal) {
                Some(host) if allowed.contains(&host) => {}
                Some(host) => allowed.push(host),
                None => fields.problem(
                    &format!("{FIELD}[{index}]"),
                    "must be the name of a host and nothing else, such as api.example.com or api.example.com:8443",
                ),
            }
        }
        Self(allowed)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a request may go to an address.
    ///
    /// # Errors
    /// Why not, and where it may go.
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

/// A host as it stands in a parsed address, with its port if that is not 443.
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
    use serde_json::json;

    use super::*;
    use crate::error::Problems;

    fn read(hosts: &Value) -> Result<AllowedHosts, Vec<String>> {
        let (body, mut problems) = (json!({"allowed_hosts": hosts}), Problems::default());
        let mut fields = Fields::of(&body, "", &mut problems).unwrap();
        let allowed = AllowedHosts::read(&mut fields);
        if problems.is_empty() { Ok(allowed) } else { Err(problems.iter().map(|it| it.field.clone()).collect()) }
    }

    #[test]
    fn a_host_is_allowed_however_it_is_written_and_on_its_port_only() {
        let allowed =
            read(&json!(["API.example.com", "crm.example.com:8443", "[::1]:80", "bücher.example:443"])).unwrap();
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
            assert_eq!(allowed.hold(&Url::parse(url).unwrap()), expected, "{url}");
        }
        assert!(!AllowedHosts::default().hold(&Url::parse("https://api.example.com/").unwrap()));
    }

    #[test]
    fn what_is_no_host_is_named() {
        let wrong =
            json!(["https://a.example", "a.example/x", "*.example", "a@b.example", "", 7, "a b", "{{now}}.example"]);
        let named: Vec<String> = (0..8).map(|index| format!("allowed_hosts[{index}]")).collect();
        assert_eq!(read(&wrong).unwrap_err(), named);
        for wrong in [json!([]), json!("a.example"), json!(vec!["a.example"; 51])] {
            assert_eq!(read(&wrong).unwrap_err(), ["allowed_hosts"]);
        }
    }
}
