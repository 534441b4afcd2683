//! Verifies `X-Twilio-Signature`.
//!
//! Twilio signs the address it called, followed by name and value of every form parameter, names in the order of their
//! bytes, the values of one name sorted and each once; base64 of HMAC-SHA1 under the account's auth token. The address may
//! have been signed with or without its port. Another body than a form is not signed; instead the address carries its SHA-256
//! as `bodySHA256` (twilio-node 6.2.0 and twilio-python 9.13.0; `tests/fixtures/twilio_signatures.json`).

use std::fmt::Write as _;

use base64::{Engine, prelude::BASE64_STANDARD};
use ring::{
    digest::{SHA256, digest},
    hmac::{HMAC_SHA1_FOR_LEGACY_USE_ONLY, Key, verify},
};
use secrecy::{ExposeSecret, SecretString};
use url::form_urlencoded;

/// The length of Twilio's ids of calls and messages. The signature covers names and values without a mark between them, so in a
/// replayed request a longer id can have taken in the next parameter.
pub const LONGEST_SID: usize = 34;

/// Whether `signature` is Twilio's for a request with `body` to one of `urls`: the addresses that Twilio may have called, with
/// the same query, unchanged. The comparison takes constant time.
pub fn is_valid(auth_token: &SecretString, urls: &[&str], body: &[u8], signature: &str) -> bool {
    let Ok(signature) = BASE64_STANDARD.decode(signature) else { return false };
    let parameters = match urls.first().copied().and_then(body_hash) {
        Some(claimed) if claimed == hex(digest(&SHA256, body).as_ref()) => String::new(),
        Some(_) => return false,
        None => signed_parameters(body),
    };
    let key = Key::new(HMAC_SHA1_FOR_LEGACY_USE_ONLY, auth_token.expose_secret().as_bytes());
    let signed = |url: String| verify(&key, (url + &parameters).as_bytes(), &signature).is_ok();
    // All are computed, so that the time tells nothing.
    urls.iter().copied().flat_map(with_and_without_port).fold(false, |valid, url| signed(url) | valid)
}

fn body_hash(url: &str) -> Option<String> {
    let query = url.split_once('?')?.1;
    form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "bodySHA256").map(|(_, value)| value.into_owned())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ok = write!(text, "{byte:02x}");
        text
    })
}

fn signed_parameters(body: &[u8]) -> String {
    let mut parameters: Vec<_> = form_urlencoded::parse(body).collect();
    parameters.sort();
    parameters.dedup();
    parameters.into_iter().flat_map(|(name, value)| [name, value]).collect()
}

/// The address without a port and with one: its own, or the scheme's default.
fn with_and_without_port(url: &str) -> [String; 2] {
    let (scheme, rest) = url.split_once("://").unwrap_or(("https", url));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    // User passwords and IPv6 addresses may contain colons.
    let host_at = authority.rfind('@').map_or(0, |at| at + 1);
    let port_at = authority.rfind(':').filter(|at| *at > host_at && !authority.ends_with(']'));
    if let Some(bare) = port_at.and_then(|at| authority.get(..at)) {
        return [format!("{scheme}://{bare}{path}"), url.to_owned()];
    }
    let port = if scheme == "https" { 443 } else { 80 };
    [url.to_owned(), format!("{scheme}://{authority}:{port}{path}")]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ring::hmac::sign;

    use super::*;

    #[test]
    fn a_port_is_taken_off_or_added_wherever_it_stands() {
        for (url, bare, ported) in [
            ("https://h/x", "https://h/x", "https://h:443/x"),
            ("http://h?a=b:c", "http://h?a=b:c", "http://h:80?a=b:c"),
            ("https://h:1234/x:9", "https://h/x:9", "https://h:1234/x:9"),
            ("https://u:p@h/x", "https://u:p@h/x", "https://u:p@h:443/x"),
            ("https://[::1]/x", "https://[::1]/x", "https://[::1]:443/x"),
            ("https://[::1]:8/x", "https://[::1]/x", "https://[::1]:8/x"),
        ] {
            assert_eq!(with_and_without_port(url), [bare, ported], "{url}");
        }
    }

    proptest! {
        #[test]
        fn only_the_signed_body_is_accepted(
            token in "[0-9a-f]{32}", body in "[A-Za-z]{1,8}=[a-z+%0-9]{0,12}(&[A-Za-z]{1,8}=[a-z0-9]{0,8}){0,5}", other in "[a-z]{1,5}",
        ) {
            let url = "https://api.example.com/api/phone-number/1/incoming";
            let key = Key::new(HMAC_SHA1_FOR_LEGACY_USE_ONLY, token.as_bytes());
            let signature = sign(&key, (url.to_owned() + &signed_parameters(body.as_bytes())).as_bytes());
            let signature = BASE64_STANDARD.encode(signature);
            let token = SecretString::from(token);
            prop_assert!(is_valid(&token, &[url], body.as_bytes(), &signature));
            let changed = format!("{body}&added={other}");
            prop_assert!(!is_valid(&token, &[url], changed.as_bytes(), &signature));
            prop_assert!(!is_valid(&SecretString::from(other), &[url], body.as_bytes(), &signature));
        }
    }
}
