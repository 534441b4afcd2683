//! The settings of an organization's own hook.

use shared::{
    declared::Given,
    described::{Described, Json, Schemas, names},
    fields::Fields,
    models::{SignatureAlgorithm, SignatureEncoding},
    webhooks::{AddressRange, OWN_PREFIX, Scheme},
};

use super::NewHookDraft;

pub(super) const LONGEST_HEADER: usize = 100;
pub(super) const LONGEST_PREFIX: usize = 50;
pub(super) const LONGEST_USER: usize = 200;
pub(super) const LONGEST_PATH: usize = 200;
const MOST_ADDRESSES: usize = 50;
const NAMES: [&str; 8] =
    ["scheme", "header", "algorithm", "encoding", "prefix", "user", "allowed_addresses", "event_field"];

/// A setting that is one of a few words.
#[derive(Clone, Copy)]
pub(crate) struct Word<T>(pub(super) T);

/// Values with their words, in the order of problems and of the document.
pub(crate) trait Worded: Sized {
    fn all() -> Vec<(&'static str, Self)>;
}

impl Worded for Scheme {
    fn all() -> Vec<(&'static str, Self)> {
        Self::OWN.map(|scheme| (scheme.as_str(), scheme)).into()
    }
}

impl Worded for SignatureAlgorithm {
    fn all() -> Vec<(&'static str, Self)> {
        vec![("sha256", Self::Sha256), ("sha512", Self::Sha512), ("sha1", Self::Sha1)]
    }
}

impl Worded for SignatureEncoding {
    fn all() -> Vec<(&'static str, Self)> {
        vec![("hex", Self::Hex), ("base64", Self::Base64)]
    }
}

fn words<T: Worded>() -> Vec<&'static str> {
    T::all().into_iter().map(|(word, _)| word).collect()
}

impl<T: Worded> Described for Word<T> {
    fn schema(_: &mut Schemas) -> Json {
        names(&words::<T>())
    }
}

impl<T: Worded> Given for Word<T> {
    fn read(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        let given = fields.get(name)?;
        let found = T::all().into_iter().find(|(word, _)| given.as_str() == Some(word));
        if found.is_none() {
            fields.problem(name, format!("must be one of {}", words::<T>().join(", ")));
        }
        found.map(|(_, value)| Self(value))
    }
}

/// The senders' addresses and ranges.
pub(crate) struct Addresses(pub(super) Vec<String>);

shared::described!(Addresses => {"type": "array", "minItems": 1, "maxItems": MOST_ADDRESSES, "items": {"type": "string"}});

impl Given for Addresses {
    fn read(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        let list = fields.list(name, "addresses")?;
        if list.is_empty() || list.len() > MOST_ADDRESSES {
            fields.problem(name, format!("must have 1 to {MOST_ADDRESSES} entries"));
        }
        let mut ranges = Vec::new();
        for (index, entry) in list.iter().take(MOST_ADDRESSES).enumerate() {
            let text = entry.as_str().unwrap_or_default().trim();
            match text.parse::<AddressRange>() {
                Ok(_) => ranges.push(text.to_owned()),
                Err(problem) => fields.problem(&format!("{name}[{index}]"), problem),
            }
        }
        Some(Self(ranges))
    }
}

/// Unless given, own hooks sign as Standard Webhooks says.
pub(super) fn scheme(given: Option<Word<Scheme>>) -> Scheme {
    given.map_or(Scheme::StandardWebhooks, |word| word.0)
}

/// Checks the settings; false if there are none. Services with a scheme of their own have none.
pub(super) fn check(new: &NewHookDraft, fields: &mut Fields<'_>) -> bool {
    let service = new.service.as_ref().map(|name| name.0.as_str());
    if service.is_some_and(|service| Scheme::known(service).is_some()) {
        for name in NAMES {
            if fields.misplaced(name) {
                fields.problem(name, "is for hooks of your own; this service has a scheme of its own");
            }
        }
        return false;
    }
    if !NAMES.into_iter().any(|name| fields.get(name).is_some()) {
        return false;
    }
    if service.is_some_and(|service| service.starts_with(OWN_PREFIX)) {
        fields.problem("service", format!("must not begin with {OWN_PREFIX}, which is put before it"));
    }
    let scheme = self::scheme(new.scheme);
    for (name, is_given, schemes) in [
        ("header", new.header.is_some(), &[Scheme::Hmac, Scheme::Bearer][..]),
        ("algorithm", new.algorithm.is_some(), &[Scheme::Hmac]),
        ("encoding", new.encoding.is_some(), &[Scheme::Hmac]),
        ("prefix", new.prefix.is_some(), &[Scheme::Hmac]),
        ("user", new.user.is_some(), &[Scheme::Basic]),
    ] {
        if is_given && !schemes.contains(&scheme) {
            let words: Vec<&str> = schemes.iter().map(|scheme| scheme.as_str()).collect();
            fields.problem(name, format!("is for the scheme {}", words.join(" or ")));
        }
    }
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if new.header.as_ref().is_some_and(|name| !name.bytes().all(token)) {
        fields.problem("header", "must be the name of a header");
    }
    if new.header.is_none() && scheme == Scheme::Hmac {
        fields.problem("header", "is required: the header that the sender puts the signature into");
    }
    if new.user.is_none() && scheme == Scheme::Basic {
        fields.problem("user", "is required: the name that the sender shows with the password");
    }
    if new.user.as_ref().is_some_and(|user| user.contains(':')) {
        fields.problem("user", "must not contain a colon");
    }
    if scheme == Scheme::Unsigned && fields.get("allowed_addresses").is_none() {
        let problem = "is required: nothing else proves the requests of a hook without a secret";
        fields.problem("allowed_addresses", problem);
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::body::new_hook;

    #[test]
    fn settings_that_do_not_fit_the_scheme_are_named_all_at_once() {
        let wrong = |body: serde_json::Value| match new_hook(&body) {
            Ok(_) => Vec::new(),
            Err(error) => {
                let shared::Error::Invalid(problems) = error else { panic!("{error}") };
                problems.iter().map(|problem| problem.field.clone()).collect::<Vec<_>>()
            }
        };
        for (body, expected) in [
            (json!({"service": "acme"}), vec![]),
            (
                json!({"service": "acme", "scheme": "hmac", "header": "X-Sig", "encoding": "base64", "prefix": "v1="}),
                vec![],
            ),
            (json!({"service": "acme", "scheme": "hmac"}), vec!["header"]),
            (
                json!({"service": "acme", "scheme": "hmac", "header": "X Sig", "algorithm": "md5"}),
                vec!["algorithm", "header"],
            ),
            (json!({"service": "acme", "scheme": "bearer", "encoding": "hex", "user": "u"}), vec!["encoding", "user"]),
            (json!({"service": "acme", "scheme": "basic"}), vec!["user"]),
            (json!({"service": "acme", "scheme": "basic", "user": "a:b"}), vec!["user"]),
            (json!({"service": "acme", "scheme": "none"}), vec!["allowed_addresses"]),
            (json!({"service": "acme", "scheme": "none", "allowed_addresses": []}), vec!["allowed_addresses"]),
            (
                json!({"service": "acme", "scheme": "none", "allowed_addresses": ["10.0.0.0/8", "x"]}),
                vec!["allowed_addresses[1]"],
            ),
            (
                json!({"service": "acme", "scheme": "none", "allowed_addresses": ["10.0.0.1"], "secret": "s"}),
                vec!["secret"],
            ),
            (json!({"service": "acme", "scheme": "bearer", "secret": "short"}), vec!["secret"]),
            (json!({"service": "acme", "scheme": "open"}), vec!["scheme"]),
            (json!({"service": "own.acme", "scheme": "bearer"}), vec!["service"]),
            (json!({"service": "Slack", "scheme": "none"}), vec!["scheme"]),
        ] {
            assert_eq!(wrong(body.clone()), expected, "{body}");
        }
    }
}
