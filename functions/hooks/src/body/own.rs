//! The settings of an organization's own hook.

use shared::{
    fields::{Fields, kind},
    models::{OwnHook, SignatureAlgorithm, SignatureEncoding},
    webhooks::{AddressRange, OWN_PREFIX, Scheme},
};

const LONGEST_HEADER: usize = 100;
const LONGEST_PREFIX: usize = 50;
const LONGEST_USER: usize = 200;
const LONGEST_PATH: usize = 200;
const MOST_ADDRESSES: usize = 50;
const NAMES: [&str; 7] = ["header", "algorithm", "encoding", "prefix", "user", "allowed_addresses", "event_field"];

/// `None` if none is given. Services with a scheme of their own have none.
pub(super) fn settings(fields: &mut Fields<'_>, service: Option<&str>) -> Option<(Scheme, OwnHook)> {
    if service.is_some_and(|service| Scheme::known(service).is_some()) {
        for name in ["scheme"].into_iter().chain(NAMES) {
            if fields.misplaced(name) {
                fields.problem(name, "is for hooks of your own; this service has a scheme of its own");
            }
        }
        return None;
    }
    let given = fields.get("scheme").is_some();
    let given = NAMES.into_iter().fold(given, |given, name| fields.get(name).is_some() || given);
    if !given {
        return None;
    }
    if service.is_some_and(|service| service.starts_with(OWN_PREFIX)) {
        fields.problem("service", format!("must not begin with {OWN_PREFIX}, which is put before it"));
    }
    let scheme = one_of(fields, "scheme", &Scheme::OWN, Scheme::as_str).unwrap_or(Scheme::StandardWebhooks);
    let own = OwnHook {
        header: header(fields, scheme),
        algorithm: signature(
            fields,
            scheme,
            "algorithm",
            &[
                ("sha256", SignatureAlgorithm::Sha256),
                ("sha512", SignatureAlgorithm::Sha512),
                ("sha1", SignatureAlgorithm::Sha1),
            ],
        ),
        encoding: signature(
            fields,
            scheme,
            "encoding",
            &[("hex", SignatureEncoding::Hex), ("base64", SignatureEncoding::Base64)],
        ),
        prefix: of(fields, scheme, &[Scheme::Hmac], "prefix", LONGEST_PREFIX),
        user: user(fields, scheme),
        allowed_addresses: addresses(fields, scheme),
        event_field: fields.text("event_field", LONGEST_PATH),
    };
    Some((scheme, own))
}

fn one_of<T: Copy>(
    fields: &mut Fields<'_>,
    name: &'static str,
    all: &[T],
    word: impl Fn(T) -> &'static str,
) -> Option<T> {
    let given = fields.get(name)?;
    let found = all.iter().copied().find(|one| given.as_str() == Some(word(*one)));
    if found.is_none() {
        let words: Vec<&str> = all.iter().map(|one| word(*one)).collect();
        fields.problem(name, format!("must be one of {}", words.join(", ")));
    }
    found
}

/// A text for these schemes only.
fn of(
    fields: &mut Fields<'_>,
    scheme: Scheme,
    schemes: &[Scheme],
    name: &'static str,
    longest: usize,
) -> Option<String> {
    let text = fields.text(name, longest);
    if text.is_some() && !schemes.contains(&scheme) {
        let words: Vec<&str> = schemes.iter().map(|scheme| scheme.as_str()).collect();
        fields.problem(name, format!("is for the scheme {}", words.join(" or ")));
    }
    text
}

fn signature<T: Copy + Default>(
    fields: &mut Fields<'_>,
    scheme: Scheme,
    name: &'static str,
    all: &[(&'static str, T)],
) -> T {
    let found = one_of(fields, name, all, |(word, _)| word);
    if found.is_some() && scheme != Scheme::Hmac {
        fields.problem(name, "is for the scheme hmac");
    }
    found.map(|(_, value)| value).unwrap_or_default()
}

fn header(fields: &mut Fields<'_>, scheme: Scheme) -> Option<String> {
    let header =
        of(fields, scheme, &[Scheme::Hmac, Scheme::Bearer], "header", LONGEST_HEADER).map(|name| name.to_lowercase());
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if header.as_ref().is_some_and(|name| !name.bytes().all(token)) {
        fields.problem("header", "must be the name of a header");
    }
    if header.is_none() && scheme == Scheme::Hmac {
        fields.problem("header", "is required: the header that the sender puts the signature into");
    }
    header
}

fn user(fields: &mut Fields<'_>, scheme: Scheme) -> Option<String> {
    let user = of(fields, scheme, &[Scheme::Basic], "user", LONGEST_USER);
    if user.is_none() && scheme == Scheme::Basic {
        fields.problem("user", "is required: the name that the sender shows with the password");
    }
    if user.as_ref().is_some_and(|user| user.contains(':')) {
        fields.problem("user", "must not contain a colon");
    }
    user
}

fn addresses(fields: &mut Fields<'_>, scheme: Scheme) -> Vec<String> {
    const NAME: &str = "allowed_addresses";
    let Some(given) = fields.get(NAME) else {
        if scheme == Scheme::Unsigned {
            fields.problem(NAME, "is required: nothing else proves the requests of a hook without a secret");
        }
        return Vec::new();
    };
    let Some(list) = given.as_array() else {
        fields.problem(NAME, format!("must be a list, not {}", kind(given)));
        return Vec::new();
    };
    if list.is_empty() || list.len() > MOST_ADDRESSES {
        fields.problem(NAME, format!("must have 1 to {MOST_ADDRESSES} entries"));
    }
    let mut ranges = Vec::new();
    for (index, entry) in list.iter().take(MOST_ADDRESSES).enumerate() {
        let text = entry.as_str().unwrap_or_default().trim();
        match text.parse::<AddressRange>() {
            Ok(_) => ranges.push(text.to_owned()),
            Err(problem) => {
                let path = format!("{}[{index}]", fields.path(NAME));
                fields.problems().add(path, problem);
            }
        }
    }
    ranges
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
                vec!["header", "algorithm"],
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
