//! The organizations' own hooks: schemes with settings, and the senders' addresses.

use std::{net::IpAddr, str::FromStr};

use base64::Engine;
use reqwest::header::HeaderMap;
use ring::hmac::{Algorithm, HMAC_SHA1_FOR_LEGACY_USE_ONLY, HMAC_SHA256, HMAC_SHA512, Key, verify};
use secrecy::{ExposeSecret, SecretString};

use super::{
    HookKeys, Scheme, WebhookRequest,
    headers::{from_hex, single, single_list},
    schemes::BASE64,
};
use crate::models::{OwnHook, SignatureAlgorithm, SignatureEncoding};

/// Keeps own hooks apart from services of the catalogue, which may have the same names.
pub const OWN_PREFIX: &str = "own.";

/// The service name under which the events of an own hook are kept: `own.acme`.
pub fn own_service(name: &str) -> String {
    format!("{OWN_PREFIX}{name}")
}

/// The name of the own hook with this service name, as a trigger's `hook` has it.
pub fn own_name(service: &str) -> Option<&str> {
    service.strip_prefix(OWN_PREFIX)
}

/// An address, or a range of addresses: `203.0.113.0/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    bits: u128,
    prefix: u32,
}

impl FromStr for AddressRange {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "is no address and no range of addresses, such as 203.0.113.7 or 203.0.113.0/24";
        let (address, prefix) = text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        let address: IpAddr = address.parse().map_err(|_no_address| WRONG)?;
        let (bits, width) = bits_of(address);
        let prefix = match prefix {
            None => width,
            Some(digits) if digits.len() <= 3 && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().map_err(|_no_number| WRONG)?
            }
            Some(_) => return Err(WRONG),
        };
        if prefix > width {
            return Err(WRONG);
        }
        Ok(Self { bits, prefix: 128 - width + prefix })
    }
}

impl AddressRange {
    pub fn contains(self, address: IpAddr) -> bool {
        let (bits, _) = bits_of(address);
        let differing = bits ^ self.bits;
        self.prefix == 0 || differing.leading_zeros() >= self.prefix
    }
}

/// An address of either kind as one of 128 bits, and the width of its kind.
fn bits_of(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(address) => (address.to_ipv6_mapped().to_bits(), 32),
        IpAddr::V6(address) if address.to_ipv4_mapped().is_some() => (address.to_bits(), 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    }
}

/// A hook without secrets takes requests from its addresses only, and has some.
pub(super) fn needs_no_secret(hook: &HookKeys<'_>) -> bool {
    hook.scheme == Scheme::Unsigned && hook.own.is_some_and(|own| !own.allowed_addresses.is_empty())
}

/// Without a list every address is allowed. An unreadable entry allows nothing.
pub(super) fn is_from_allowed(hook: &HookKeys<'_>, request: &WebhookRequest<'_>) -> bool {
    let allowed = hook.own.map(|own| own.allowed_addresses.as_slice()).unwrap_or_default();
    let ours = |source| {
        allowed.iter().filter_map(|range| range.parse().ok()).any(|range: AddressRange| range.contains(source))
    };
    allowed.is_empty() || request.source.is_some_and(ours)
}

pub(super) fn is_signed(own: &OwnHook, secret: &SecretString, request: &WebhookRequest<'_>) -> Option<()> {
    let key = secret.expose_secret().as_bytes();
    let signature = single(request.headers, own.header.as_deref()?)?.trim();
    // A stored prefix has no blank at its end: `HMAC <signature>`.
    let signature = signature.strip_prefix(own.prefix.as_deref().unwrap_or_default())?.trim_start();
    let signature = match own.encoding {
        SignatureEncoding::Hex => from_hex(signature)?,
        SignatureEncoding::Base64 => BASE64.decode(signature).ok()?,
    };
    (!key.is_empty()).then_some(())?;
    verify(&Key::new(algorithm(own.algorithm), key), request.body, &signature).ok()
}

fn algorithm(algorithm: SignatureAlgorithm) -> Algorithm {
    match algorithm {
        SignatureAlgorithm::Sha256 => HMAC_SHA256,
        SignatureAlgorithm::Sha512 => HMAC_SHA512,
        SignatureAlgorithm::Sha1 => HMAC_SHA1_FOR_LEGACY_USE_ONLY,
    }
}

/// The token of `Authorization: Bearer`, or the whole value of the hook's header.
pub(super) fn token<'a>(own: &OwnHook, headers: &'a HeaderMap) -> Option<&'a str> {
    match &own.header {
        Some(header) => single_list(headers, header),
        None => after_word(single_list(headers, "authorization")?, "bearer"),
    }
}

/// `user:password` as the request has them.
pub(super) fn basic(headers: &HeaderMap) -> Option<String> {
    let encoded = after_word(single_list(headers, "authorization")?, "basic")?;
    String::from_utf8(BASE64.decode(encoded).ok()?).ok()
}

/// `user:password` as the hook has them.
pub(super) fn user_and_password(own: &OwnHook, secret: &SecretString) -> Option<SecretString> {
    let password = secret.expose_secret();
    (!password.is_empty()).then(|| format!("{}:{password}", own.user.as_deref().unwrap_or_default()).into())
}

/// The rest after an authorization's first word, in any case.
fn after_word<'a>(value: &'a str, word: &str) -> Option<&'a str> {
    let (first, rest) = value.split_once(' ')?;
    first.eq_ignore_ascii_case(word).then(|| rest.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_ranges_are_read_strictly() {
        let within =
            |range: &str, address: &str| range.parse::<AddressRange>().unwrap().contains(address.parse().unwrap());
        for (range, address, expected) in [
            ("203.0.113.7", "203.0.113.7", true),
            ("203.0.113.7", "203.0.113.8", false),
            ("203.0.113.0/24", "203.0.113.255", true),
            ("203.0.113.0/24", "203.0.114.0", false),
            ("203.0.113.99/24", "203.0.113.1", true),
            ("203.0.113.7", "::ffff:203.0.113.7", true),
            ("::ffff:203.0.113.0/24", "203.0.113.1", true),
            ("0.0.0.0/0", "8.8.8.8", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("::/0", "2001:db8::1", true),
            ("2001:db8::/32", "2001:db8:1::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
        ] {
            assert_eq!(within(range, address), expected, "{range} {address}");
        }
        for range in
            ["", "203.0.113", "203.0.113.0/33", "203.0.113.0/", "203.0.113.0/-1", "203.0.113.0/+8", "x/8", "::/129"]
        {
            assert!(range.parse::<AddressRange>().is_err(), "{range}");
        }
    }
}
