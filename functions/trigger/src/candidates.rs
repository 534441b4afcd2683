//! The hooks that a request may be for, with their secrets. What the body says only finds them.

use futures_util::future::{BoxFuture, try_join_all};
use percent_encoding::percent_decode_str;
use shared::{
    Result,
    models::{Hook, HookId, HookStatus, Unowned, folded_name},
    webhooks::{HookSecret, Scheme, WebhookRequest, claimed_tenants},
};

use crate::Deps;

/// Of a request no more are tried.
const MOST: usize = 10;

type Candidate = (Hook, Vec<HookSecret>);

pub(crate) async fn find(
    deps: &Deps,
    scheme: Scheme,
    service: &str,
    hook: Option<&str>,
    asked: &WebhookRequest<'_>,
) -> Result<Vec<Candidate>> {
    let service = folded_name(&percent_decode_str(service).decode_utf8_lossy());
    let found: Vec<Unowned<Hook>> = if let Some(id) = hook {
        match id.parse::<HookId>() {
            Ok(id) => deps.registry.hooks.find(id).await?.into_iter().collect(),
            Err(_no_id) => Vec::new(),
        }
    } else {
        let tenants = claimed_tenants(scheme, asked, MOST);
        let limit = i32::try_from(MOST).unwrap_or(i32::MAX);
        let mut found: Vec<BoxFuture<'_, _>> = Vec::with_capacity(tenants.len());
        for tenant in &tenants {
            found.push(Box::pin(deps.registry.hooks.of_tenant(tenant, limit)));
        }
        try_join_all(found).await?.into_iter().flatten().collect()
    };
    let taking = |hook: &Hook| hook.service == service && hook.status != HookStatus::Ended;
    let hooks = found.into_iter().map(Unowned::for_its_owner).filter(taking).take(MOST);
    let mut read: Vec<BoxFuture<'_, Result<Option<Candidate>>>> = Vec::new();
    for hook in hooks {
        read.push(Box::pin(with_secrets(deps, hook)));
    }
    Ok(try_join_all(read).await?.into_iter().flatten().collect())
}

/// None if its secrets were deleted by hand: it is not one that waits for its first.
async fn with_secrets(deps: &Deps, hook: Hook) -> Result<Option<Candidate>> {
    let secrets = deps.registry.secrets(&hook).await?;
    Ok((secrets.len() >= hook.secrets.len().min(1)).then_some((hook, secrets)))
}
