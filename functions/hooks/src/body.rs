//! Bodies of hooks.
//!
//! ```json
//! {"service": "Slack", "secret": "…", "tenant": "A0MDYCDME#T061EG9R6", "label": "Our workspace"}
//! {"service": "Gmail", "service_account": "push@project.iam.gserviceaccount.com", "audience": "…"}
//! {"service": "Webhooks"}
//! {"service": "acme", "scheme": "hmac", "header": "X-Acme-Signature"}
//! ```
//!
//! `tenant` names the owner of events where a service sends those of all organizations to one address: the parts in `tenant_of`,
//! joined by `#`. We generate a secret for services that accept one, unless the body has one. Services with a secret of their
//! own (Slack, Stripe, `HubSpot`, Notion, Twilio, Linear) leave the hook pending until it is known.

mod own;

use base64::{Engine, prelude::BASE64_STANDARD};
use ring::rand::{SecureRandom, SystemRandom};
use secrecy::SecretString;
use serde_json::Value;
use shared::{
    Error, Result,
    declared::{Body, Name, Setting, Text, read},
    fields::Fields,
    models::{Hook, OwnHook, SecretId, SignatureAlgorithm, SignatureEncoding, folded_name},
    webhooks::{HookSecret, Scheme},
};

use self::own::{Addresses, Word};

const LONGEST_LABEL: usize = 100;
const LONGEST_SECRET: usize = 1_000;
/// Characters of a tenant, an audience or the address of a service account.
const LONGEST_ID: usize = 500;
/// Characters of Telegram's `secret_token`.
const LONGEST_TELEGRAM_TOKEN: usize = 256;
/// Characters of a given secret of an own hook.
const SHORTEST_OWN_SECRET: usize = 16;
/// Bytes of a generated secret.
const SECRET_BYTES: usize = 32;

#[derive(Body)]
pub(crate) struct NewHook {
    /// Its name in any spelling.
    service: ServiceName,
    label: Option<Name<LONGEST_LABEL>>,
    /// The service's signing secret.
    secret: Option<Text<LONGEST_SECRET>>,
    tenant: Option<Text<LONGEST_ID>>,
    /// For Gmail.
    service_account: Option<Text<LONGEST_ID>>,
    /// For Gmail: the audience of the tokens; by default the hook's address.
    audience: Option<Text<LONGEST_ID>>,
    /// Of a hook of the organization's own.
    scheme: Option<Word<Scheme>>,
    /// The header of the signature (`hmac`), or of the token (`bearer`; else `Authorization`).
    header: Option<Text<{ own::LONGEST_HEADER }>>,
    /// Of `hmac`.
    #[schema(default = "sha256")]
    algorithm: Option<Word<SignatureAlgorithm>>,
    /// Of `hmac`.
    #[schema(default = "hex")]
    encoding: Option<Word<SignatureEncoding>>,
    /// Of `hmac`: the text before the signature, `sha256=`.
    prefix: Option<Text<{ own::LONGEST_PREFIX }>>,
    /// Of `basic`.
    user: Option<Text<{ own::LONGEST_USER }>>,
    /// The senders' addresses or ranges, `203.0.113.0/24`; all unless given. Required with the scheme `none`.
    allowed_addresses: Option<Addresses>,
    /// The path of the event's name in the body, `event.name`.
    #[schema(default = "type")]
    event_field: Option<Text<{ own::LONGEST_PATH }>>,
}

shared::kinds_of_text! {
    /// A name that can stand in an address.
    ServiceName, 100, {"type": "string", "maxLength": 100},
    "must be the name of a service, of ASCII letters, digits, blanks and dots",
    |name| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
        Some(folded_name(name)).filter(|name| !name.is_empty() && name.bytes().all(plain))
    };
}

#[derive(Body)]
pub(crate) struct HookChange {
    label: Setting<Name<LONGEST_LABEL>>,
    /// The next secret.
    secret: Option<Text<LONGEST_SECRET>>,
    /// A next secret of ours.
    rotate: Option<bool>,
    /// The id of a secret.
    remove_secret: Option<SecretId>,
    reveal: Option<bool>,
}

/// A checked [`NewHook`].
pub(crate) struct CheckedHook {
    pub(crate) service: String,
    pub(crate) scheme: Scheme,
    /// Given settings of an organization's own hook.
    pub(crate) own: Option<OwnHook>,
    pub(crate) label: String,
    pub(crate) tenant_key: Option<String>,
    pub(crate) secret: Secret,
}

/// A secret, and the part to show if we generated it.
#[derive(Default)]
pub(crate) struct Secret {
    pub(crate) content: Option<HookSecret>,
    pub(crate) shown: Option<SecretString>,
}

/// A checked [`HookChange`]: at most one of them beside the label.
pub(crate) struct Change {
    pub(crate) label: Option<String>,
    pub(crate) secret: Option<Secret>,
    pub(crate) remove_secret: Option<SecretId>,
    pub(crate) reveal: bool,
}

/// The prefix of a tenant's key, and its parts.
const fn tenant_of(scheme: Scheme) -> Option<(&'static str, &'static [&'static str])> {
    match scheme {
        Scheme::Slack => Some(("slack", &["id of the app", "id of the workspace, or of the enterprise"])),
        Scheme::Github => Some(("github", &["id of the installation"])),
        Scheme::Stripe => Some(("stripe", &["id of the connected account"])),
        Scheme::Notion => Some(("notion", &["id of the integration", "id of the workspace"])),
        Scheme::GoogleCalendar => Some(("google_calendar", &["id of the channel"])),
        Scheme::Hubspot => Some(("hubspot", &["id of the portal"])),
        Scheme::MicrosoftGraph => Some(("microsoft_graph", &["id of the subscription"])),
        Scheme::Linear => Some(("linear", &["id of the workspace"])),
        // Any owner of a service account could claim anybody's mailbox.
        Scheme::GooglePubsub
        | Scheme::StandardWebhooks
        | Scheme::Twilio
        | Scheme::Telegram
        | Scheme::Pipedream
        | Scheme::Hmac
        | Scheme::Bearer
        | Scheme::Basic
        | Scheme::Unsigned => None,
    }
}

pub(crate) fn new_hook(body: &Value) -> Result<CheckedHook> {
    let (mut is_own, mut tenant_key) = (false, None);
    let scheme_of = |is_own: bool, given: Option<Word<Scheme>>, service: &str| {
        if is_own { own::scheme(given) } else { Scheme::of_service(service) }
    };
    let new: NewHook = read(body, |new: &mut NewHookDraft, fields| {
        is_own = own::check(new, fields);
        let Some(ServiceName(service)) = &new.service else { return };
        let scheme = scheme_of(is_own, new.scheme, service);
        if check_members(fields, scheme, new) {
            tenant_key = tenant_key_of(fields, scheme, new.tenant.as_deref());
            if let Some(given) = &new.secret {
                check_secret(fields, scheme, given);
            }
        }
    })?;
    let NewHook { service: ServiceName(service), secret: given, tenant, .. } = new;
    let scheme = scheme_of(is_own, new.scheme, &service);
    let account = new.service_account.map(String::from);
    let (secret, shown) = match given {
        Some(given) => (Some(given.0), None),
        None if scheme.has_generated_secret() => {
            let made = generate(scheme)?;
            (Some(made.clone()), Some(SecretString::from(made)))
        }
        None => (None, None),
    };
    let known = |of: Scheme| tenant.as_deref().filter(|_| scheme == of).map(str::to_owned);
    let content = (secret.is_some() || account.is_some()).then(|| HookSecret {
        channel_id: known(Scheme::GoogleCalendar),
        subscription_id: known(Scheme::MicrosoftGraph),
        audience: new.audience.map(String::from),
        email: account,
        ..HookSecret::of(secret.unwrap_or_default())
    });
    let own = is_own.then(|| OwnHook {
        header: new.header.map(|name| name.to_lowercase()),
        algorithm: new.algorithm.map(|word| word.0).unwrap_or_default(),
        encoding: new.encoding.map(|word| word.0).unwrap_or_default(),
        prefix: new.prefix.map(String::from),
        user: new.user.map(String::from),
        allowed_addresses: new.allowed_addresses.map(|addresses| addresses.0).unwrap_or_default(),
        event_field: new.event_field.map(String::from),
    });
    let label = new.label.map(String::from).unwrap_or_default();
    Ok(CheckedHook { service, scheme, own, label, tenant_key, secret: Secret { content, shown } })
}

pub(crate) fn change(body: &Value, hook: &Hook) -> Result<Change> {
    let scheme = Scheme::of_hook(hook);
    let new: HookChange = read(body, |new: &mut HookChangeDraft, fields| {
        if let Some(given) = &new.secret {
            check_secret(fields, scheme, given);
        } else if fields.get("secret").is_some_and(|secret| secret.as_str().is_some_and(|text| text.trim().is_empty()))
        {
            fields.problem("secret", "must not be empty; leave it out to keep the present ones");
        }
        let (rotate, reveal) = (new.rotate.unwrap_or_default(), new.reveal.unwrap_or_default());
        if rotate && !scheme.has_generated_secret() {
            fields.problem(
                "rotate",
                "is for services that are told a secret of ours; give this one's new secret as secret",
            );
        }
        if new.remove_secret.is_some_and(|id| hook.secrets.iter().all(|secret| secret.id != id)) {
            fields.problem("remove_secret", "is not one of the hook's secrets");
        }
        let asked = [new.secret.is_some(), rotate, new.remove_secret.is_some(), reveal];
        if asked.into_iter().filter(|asked| *asked).count() > 1 {
            fields.problem("secret", "only one of secret, rotate, remove_secret and reveal can be asked for at once");
        }
    })?;
    let secret = match new.secret {
        Some(given) => Some(Secret { content: Some(HookSecret::of(given.0)), shown: None }),
        None if new.rotate.unwrap_or_default() => {
            let made = generate(scheme)?;
            Some(Secret { content: Some(HookSecret::of(made.clone())), shown: Some(SecretString::from(made)) })
        }
        None => None,
    };
    let label = match new.label {
        Setting::Kept => None,
        Setting::Cleared => Some(String::new()),
        Setting::Set(label) => Some(label.into()),
    };
    Ok(Change { label, secret, remove_secret: new.remove_secret, reveal: new.reveal.unwrap_or_default() })
}

/// Checks the members against the service's scheme.
fn check_members(fields: &mut Fields<'_>, scheme: Scheme, new: &NewHookDraft) -> bool {
    if scheme == Scheme::Pipedream {
        fields.problem("service", "gets its hooks when an automation is activated that needs one");
        return false;
    }
    let by_token = scheme == Scheme::GooglePubsub;
    // Members of other services are not named as possible here.
    for name in if by_token { ["secret"].as_slice() } else { &["service_account", "audience"] } {
        fields.misplaced(name);
    }
    if tenant_of(scheme).is_none() {
        fields.misplaced("tenant");
    }
    if by_token && new.service_account.is_none() {
        fields.problem(
            "service_account",
            "is required: the address of the service account that the subscription pushes with",
        );
    }
    if by_token && new.secret.is_some() {
        fields.problem("secret", "is for services that sign with one; this one shows tokens of Google's");
    }
    if !by_token && new.service_account.is_some() {
        fields.problem("service_account", "is for Gmail only");
    }
    if !by_token && new.audience.is_some() {
        fields.problem("audience", "is for Gmail only");
    }
    true
}

fn tenant_key_of(fields: &mut Fields<'_>, scheme: Scheme, tenant: Option<&str>) -> Option<String> {
    let tenant = tenant?;
    let Some((prefix, parts)) = tenant_of(scheme) else {
        fields.problem("tenant", "is not needed: the hook's address is its own");
        return None;
    };
    let given: Vec<&str> = tenant.split('#').collect();
    if given.len() != parts.len() || given.iter().any(|part| part.trim().is_empty()) {
        fields.problem("tenant", format!("must be {}", parts.join("#")));
        return None;
    }
    Some(format!("{prefix}#{tenant}"))
}

fn check_secret(fields: &mut Fields<'_>, scheme: Scheme, secret: &str) {
    if scheme == Scheme::GooglePubsub {
        fields.problem("secret", "is for services that sign with one; this one shows tokens of Google's");
    }
    if scheme == Scheme::Unsigned {
        fields.problem("secret", "is for hooks whose scheme proves requests with one");
    }
    if matches!(scheme, Scheme::Bearer | Scheme::Basic | Scheme::Hmac) && secret.len() < SHORTEST_OWN_SECRET {
        fields.problem(
            "secret",
            format!("must have at least {SHORTEST_OWN_SECRET} characters; leave it out to get one of ours"),
        );
    }
    if scheme == Scheme::Telegram {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if secret.len() > LONGEST_TELEGRAM_TOKEN || !secret.bytes().all(allowed) {
            let problem = format!("must be at most {LONGEST_TELEGRAM_TOKEN} letters, digits, _ and -");
            fields.problem("secret", problem);
        }
    }
    if scheme != Scheme::StandardWebhooks {
        return;
    }
    let key = secret.strip_prefix("whsec_").unwrap_or(secret);
    let bytes = BASE64_STANDARD.decode(key).map(|key| key.len());
    if !bytes.is_ok_and(|bytes| (24..=64).contains(&bytes)) {
        fields.problem("secret", "must be whsec_ and 24 to 64 bytes in base64");
    }
}

/// A new secret, in the form of the service's scheme.
fn generate(scheme: Scheme) -> Result<String> {
    let mut bytes = [0; SECRET_BYTES];
    let random = |_unspecified| Error::internal("the system gives no random numbers");
    SystemRandom::new().fill(&mut bytes).map_err(random)?;
    if scheme == Scheme::StandardWebhooks {
        return Ok(format!("whsec_{}", BASE64_STANDARD.encode(bytes)));
    }
    Ok(bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}")))
}
