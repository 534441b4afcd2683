//! GET /api/{slug}/usage: what the organization has used of its budgets, for its members.
//!
//! Answer: for each of `runs_per_hour`, `executions_per_hour`, `platform_cost_per_month` and `own_cost_per_month` an object
//! `{"used", "limit", "from", "until"}`; both moments are those of the present hour or month, UTC.

use serde_json::{Map, Value, json};
use shared::{
    Error, Platform, Result,
    http::{self, Access, Reply, Request},
    platform,
    store::Budgets,
};

pub struct Deps {
    pub access: Access,
    pub budgets: Budgets,
}

impl Deps {
    pub fn new(platform: &Platform) -> platform::Result<Self> {
        Ok(Self { access: platform.access()?, budgets: platform.budgets()?.clone() })
    }
}

pub async fn handle(deps: &Deps, request: Request) -> Result<Reply> {
    let organization = deps.access.member(&request).await?.organization_id;
    let ["GET", "api", _, "usage"] = http::route(&request)[..] else {
        return Err(Error::NotFound("route"));
    };
    let usage = deps.budgets.usage(organization, http::deadline(&request)).await?;
    let shown = usage.into_iter().map(|usage| {
        let (from, until) = (usage.window.from, usage.window.until);
        let shown = json!({"used": usage.used, "limit": usage.limit, "from": from, "until": until});
        (usage.budget.as_str().to_owned(), shown)
    });
    Reply::ok(&shown.collect::<Map<String, Value>>())
}
