//! The hooks that a request may be for, with their secrets. The body's claims only select them.

use futures_util::future::{BoxFuture, try_join_all};
use percent_encoding::percent_decode_str;
use shared::{
    Result,
    models::{Hook, HookId, HookStatus, Unowned, folded_name},
    webhooks::{HookSecret, Scheme, WebhookRequest, claimed_tenants},
};

use crate::Deps;

/// Looked up beside each other.
const BESIDE: usize = 10;
/// So many are looked up while nothing is proven.
const MOST_UNPROVEN: usize = 100;

pub(crate) type Candidate = (Hook, Vec<HookSecret>);

pub(crate) enum Claims {
    Hook(Option<HookId>),
    Tenants(Vec<String>),
}

impl Claims {
    pub(crate) fn of(scheme: Scheme, hook: Option<&str>, asked: &WebhookRequest<'_>) -> Self {
        match hook {
            Some(id) => Self::Hook(id.parse().ok()),
            None => Self::Tenants(claimed_tenants(scheme, asked)),
        }
    }

    /// The next hooks, which may be none; `None` when there are no more. Of a batch for many tenants all are found once it is
    /// proven by one; before that, as many as a service sends at once.
    pub(crate) async fn next(
        &self,
        deps: &Deps,
        service: &str,
        (turn, proven): (usize, bool),
    ) -> Result<Option<Vec<Candidate>>> {
        let found: Vec<Unowned<Hook>> = match self {
            Self::Hook(_) if turn > 0 => return Ok(None),
            Self::Hook(None) => Vec::new(),
            Self::Hook(Some(id)) => deps.registry.hooks.find(*id).await?.into_iter().collect(),
            Self::Tenants(tenants) => {
                let Some(tenants) =
                    tenants.chunks(BESIDE).nth(turn).filter(|_| proven || turn < MOST_UNPROVEN / BESIDE)
                else {
                    return Ok(None);
                };
                let mut found: Vec<BoxFuture<'_, _>> = Vec::with_capacity(tenants.len());
                for tenant in tenants {
                    found.push(Box::pin(deps.registry.hooks.of_tenant(tenant)));
                }
                try_join_all(found).await?.into_iter().flatten().collect()
            }
        };
        let service = folded_name(&percent_decode_str(service).decode_utf8_lossy());
        let taking = |hook: &Hook| hook.service == service && hook.status != HookStatus::Ended;
        let hooks = found.into_iter().map(Unowned::for_its_owner).filter(taking);
        let mut read: Vec<BoxFuture<'_, Result<Option<Candidate>>>> = Vec::new();
        for hook in hooks {
            read.push(Box::pin(with_secrets(deps, hook)));
        }
        Ok(Some(try_join_all(read).await?.into_iter().flatten().collect()))
    }
}

/// None if its secrets were deleted by hand: it does not wait for its first secret.
async fn with_secrets(deps: &Deps, hook: Hook) -> Result<Option<Candidate>> {
    let secrets = deps.registry.secrets(&hook).await?;
    Ok((secrets.len() >= hook.secrets.len().min(1)).then_some((hook, secrets)))
}
