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
    error::Problems,
    fields::Fields,
    models::{Hook, OwnHook, SecretId, folded_name},
    webhooks::{HookSecret, Scheme},
};

const LONGEST_LABEL: usize = 100;
const LONGEST_SERVICE: usize = 100;
const LONGEST_SECRET: usize = 1_000;
/// Characters of a tenant, an audience or the address of a service account.
const LONGEST_ID: usize = 500;
/// Characters of Telegram's `secret_token`.
const LONGEST_TELEGRAM_TOKEN: usize = 256;
/// Characters of a given secret of an own hook.
const SHORTEST_OWN_SECRET: usize = 16;
/// Bytes of a generated secret.
const SECRET_BYTES: usize = 32;

pub(crate) struct NewBody {
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

/// At most one of them beside the label.
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

pub(crate) fn new_hook(body: &Value) -> Result<NewBody> {
    let mut problems = Problems::default();
    let read = Fields::of(body, "", &mut problems).and_then(|mut fields| {
        let service = service(&mut fields);
        let label = fields.name("label", LONGEST_LABEL).unwrap_or_default();
        let given = fields.text("secret", LONGEST_SECRET);
        let tenant = fields.text("tenant", LONGEST_ID);
        let account = fields.text("service_account", LONGEST_ID);
        let audience = fields.text("audience", LONGEST_ID);
        let own = own::settings(&mut fields, service.as_deref());
        let scheme_of = |service: &str| own.as_ref().map_or_else(|| Scheme::of_service(service), |(scheme, _)| *scheme);
        let service = service.filter(|service| {
            check_members(&mut fields, scheme_of(service), given.is_some(), account.is_some(), audience.is_some())
        });
        let scheme = service.as_deref().map(scheme_of);
        let tenant_key = scheme.and_then(|scheme| tenant_key(&mut fields, scheme, tenant.as_deref()));
        if let (Some(scheme), Some(given)) = (scheme, &given) {
            check_secret(&mut fields, scheme, given);
        }
        fields.finish();
        Some((service?, scheme?, own, label, given, tenant, account, audience, tenant_key))
    });
    let (service, scheme, own, label, given, tenant, account, audience, tenant_key) = problems.into_result(read)?;
    let (secret, shown) = match given {
        Some(given) => (Some(given), None),
        None if scheme.has_generated_secret() => {
            let made = generate(scheme)?;
            (Some(made.clone()), Some(SecretString::from(made)))
        }
        None => (None, None),
    };
    let known = |of: Scheme| tenant.clone().filter(|_| scheme == of);
    let content = (secret.is_some() || account.is_some()).then(|| HookSecret {
        channel_id: known(Scheme::GoogleCalendar),
        subscription_id: known(Scheme::MicrosoftGraph),
        audience,
        email: account,
        ..HookSecret::of(secret.unwrap_or_default())
    });
    let own = own.map(|(_, own)| own);
    Ok(NewBody { service, scheme, own, label, tenant_key, secret: Secret { content, shown } })
}

pub(crate) fn change(body: &Value, hook: &Hook) -> Result<Change> {
    let scheme = Scheme::of_hook(hook);
    let mut problems = Problems::default();
    let read = Fields::of(body, "", &mut problems).map(|mut fields| {
        let cleared = fields.cleared("label");
        let label = fields.name("label", LONGEST_LABEL).or_else(|| cleared.then(String::new));
        let given = fields.text("secret", LONGEST_SECRET);
        if let Some(given) = &given {
            check_secret(&mut fields, scheme, given);
        }
        let rotate = fields.boolean("rotate", false);
        if rotate && !scheme.has_generated_secret() {
            fields.problem(
                "rotate",
                "is for services that are told a secret of ours; give this one's new secret as secret",
            );
        }
        let remove_secret: Option<SecretId> = fields.parse("remove_secret");
        if remove_secret.is_some_and(|id| hook.secrets.iter().all(|secret| secret.id != id)) {
            fields.problem("remove_secret", "is not one of the hook's secrets");
        }
        let reveal = fields.boolean("reveal", false);
        let asked = [given.is_some(), rotate, remove_secret.is_some(), reveal];
        if asked.into_iter().filter(|asked| *asked).count() > 1 {
            fields.problem("secret", "only one of secret, rotate, remove_secret and reveal can be asked for at once");
        }
        fields.finish();
        (label, given, rotate, remove_secret, reveal)
    });
    let (label, given, rotate, remove_secret, reveal) = problems.into_result(read)?;
    let secret = match (given, rotate) {
        (Some(given), _) => Some(Secret { content: Some(HookSecret::of(given)), shown: None }),
        (None, true) => {
            let made = generate(scheme)?;
            Some(Secret { content: Some(HookSecret::of(made.clone())), shown: Some(SecretString::from(made)) })
        }
        (None, false) => None,
    };
    Ok(Change { label, secret, remove_secret, reveal })
}

/// A name that can stand in an address.
fn service(fields: &mut Fields<'_>) -> Option<String> {
    let service = folded_name(&fields.required_text("service", LONGEST_SERVICE)?);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
    if service.is_empty() || !service.bytes().all(plain) {
        fields.problem("service", "must be the name of a service, of ASCII letters, digits, blanks and dots");
        return None;
    }
    Some(service)
}

/// Checks the members against the service's scheme.
fn check_members(fields: &mut Fields<'_>, scheme: Scheme, secret: bool, account: bool, audience: bool) -> bool {
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
    if by_token && !account {
        fields.problem(
            "service_account",
            "is required: the address of the service account that the subscription pushes with",
        );
    }
    if by_token && secret {
        fields.problem("secret", "is for services that sign with one; this one shows tokens of Google's");
    }
    if !by_token && account {
        fields.problem("service_account", "is for Gmail only");
    }
    if !by_token && audience {
        fields.problem("audience", "is for Gmail only");
    }
    true
}

fn tenant_key(fields: &mut Fields<'_>, scheme: Scheme, tenant: Option<&str>) -> Option<String> {
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
