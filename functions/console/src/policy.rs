//! Headers: the browser's permissions for the page, encodings that it takes.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::digest::{SHA256, digest};
use shared::{http::Request, names::Names, platform::ConsoleSettings};

/// The scripts and the style sheet that stand in the page.
pub(crate) struct InPage {
    pub(crate) scripts: [&'static str; 2],
    pub(crate) sheet: &'static str,
}

/// The headers of every answer, beside those of its content.
pub(crate) fn headers(settings: &ConsoleSettings, in_page: &InPage) -> [(&'static str, String); 5] {
    [
        ("content-security-policy", content_security_policy(settings, in_page)),
        // The address holds a code for a moment, when somebody comes back from signing in.
        ("referrer-policy", "no-referrer".to_owned()),
        ("cross-origin-opener-policy", "same-origin".to_owned()),
        ("cross-origin-resource-policy", "same-origin".to_owned()),
        ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=()".to_owned()),
    ]
}

/// Scripts and styles of our own files, and the page's own ones by their digests; no frames around it, no text that becomes code.
/// The page may connect to this origin, the issuer, the streaming endpoint, and the origins named by the deployment.
fn content_security_policy(settings: &ConsoleSettings, in_page: &InPage) -> String {
    let mut connect = vec!["'self'"];
    let known = [Some(&settings.issuer), Some(&settings.openid_configuration), settings.stream_url.as_ref()];
    let known = known.into_iter().flatten().chain(&settings.connect_origins).filter_map(|address| origin(address));
    for origin in known {
        if !connect.contains(&origin) {
            connect.push(origin);
        }
    }
    format!(
        "default-src 'none'; script-src 'self' {}; style-src 'self' {}; img-src 'self' data:; connect-src {}; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
        in_page.scripts.map(source).join(" "),
        source(in_page.sheet),
        connect.join(" ")
    )
}

/// Allows this text where it stands in the page.
fn source(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(digest(&SHA256, text.as_bytes())))
}

/// `https://host:port` of an address; `None` for an address that could break the policy's syntax.
fn origin(address: &str) -> Option<&str> {
    let host = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://"))?;
    let end = host.find(['/', '?', '#']).unwrap_or(host.len());
    let start = address.len() - host.len();
    let (host, origin) = (host.get(..end)?, address.get(..start + end)?);
    let plain = |letter: char| letter.is_ascii_alphanumeric() || ".-:[]".contains(letter);
    (!host.is_empty() && host.chars().all(plain)).then_some(origin)
}

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Names)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Coding {
    Gzip,
    #[serde(rename = "br")]
    Brotli,
}

/// The codings that the browser takes (`Accept-Encoding`, RFC 9110, section 12.5.3).
pub(crate) fn taken(request: &Request) -> Vec<Coding> {
    let given = request.headers().get_all("accept-encoding").iter().filter_map(|value| value.to_str().ok());
    let codings = given.flat_map(|value| value.split(',')).filter_map(|given| {
        let (coding, weight) = given.split_once(';').unwrap_or((given, ""));
        let refused = weight
            .trim()
            .strip_prefix("q=")
            .is_some_and(|weight| weight.parse::<f32>().is_ok_and(|weight| weight <= 0.0));
        Coding::ALL.into_iter().find(|known| coding.trim().eq_ignore_ascii_case(known.as_str()) && !refused)
    });
    codings.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_scheme_host_and_port_and_never_more() {
        for (address, expected) in [
            ("https://issuer.example/pool", Some("https://issuer.example")),
            ("http://127.0.0.1:4566/p/.well-known/openid-configuration", Some("http://127.0.0.1:4566")),
            ("https://a.example?x", Some("https://a.example")),
            ("https://[::1]:80/", Some("https://[::1]:80")),
            ("https://a.example; script-src *", None),
            ("https://*.example", None),
            ("https://user@a.example", None),
            ("https:///x", None),
            ("javascript:alert(1)", None),
            ("", None),
        ] {
            assert_eq!(origin(address), expected, "{address}");
        }
    }
}
