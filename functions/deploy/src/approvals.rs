//! What runs ask people: listed, shown, approved, refused.

use lambda_http::RequestExt;
use serde::Serialize;
use serde_json::Value;
use shared::{
    Error, Result,
    error::{self, Problems},
    fields::Fields,
    http::{self, Reply, Request},
    models::{
        Approval, ApprovalId, ApprovalStatus, AutomationId, Member, NotAnApprovalStatus, OrganizationId, RunId,
        Timestamp, UserId,
    },
    store::Decided,
};

use crate::Deps;

/// Of why somebody decided so, in characters.
const LONGEST_REASON: usize = 1_000;

/// An approval as it is shown: null is what is not known, or not yet.
#[derive(Debug, Serialize)]
struct ApprovalView {
    id: ApprovalId,
    status: ApprovalStatus,
    automation_id: Option<AutomationId>,
    run_id: RunId,
    action_id: String,
    tool: String,
    /// Redacted.
    arguments: Value,
    reason: Option<String>,
    decided_by: Option<UserId>,
    decided_at: Option<Timestamp>,
    decision_reason: Option<String>,
    used_at: Option<Timestamp>,
    created_at: Timestamp,
    expires_at: Timestamp,
}

impl From<Approval> for ApprovalView {
    fn from(approval: Approval) -> Self {
        Self {
            id: approval.id,
            status: approval.status_at(Timestamp::now()),
            automation_id: approval.automation_id,
            run_id: approval.run_id,
            arguments: serde_json::from_str(&approval.arguments).unwrap_or(Value::Null),
            action_id: approval.action_id,
            tool: approval.tool,
            reason: approval.reason,
            decided_by: approval.decided_by,
            decided_at: approval.decided_at,
            decision_reason: approval.decision_reason,
            used_at: approval.used_at,
            created_at: approval.created_at,
            expires_at: approval.valid_until,
        }
    }
}

/// `?status=&limit=&cursor=`; newest first.
pub(crate) async fn list(deps: &Deps, request: &Request, organization: OrganizationId) -> Result<Reply> {
    let (limit, after) = http::page(request)?;
    let query = request.query_string_parameters();
    let status = query.first("status").filter(|text| !text.is_empty()).map(str::parse::<ApprovalStatus>).transpose();
    let status = status.map_err(|error: NotAnApprovalStatus| Error::invalid("status", error.to_string()))?;
    let page = deps.approvals.page(organization, status, after.as_ref(), limit).await?;
    Reply::ok(&page.map(ApprovalView::from))
}

pub(crate) async fn show(deps: &Deps, organization: OrganizationId, id: ApprovalId) -> Result<Reply> {
    Reply::ok(&ApprovalView::from(deps.approvals.get(organization, id).await?))
}

/// Decides, and has the run go on. Whoever decided first has decided.
pub(crate) async fn decide(
    deps: &Deps,
    request: &Request,
    member: &Member,
    id: ApprovalId,
    status: ApprovalStatus,
) -> Result<Reply> {
    let organization = member.organization_id;
    // Whose it is comes before what is wrong with the request.
    let asked = deps.approvals.get(organization, id).await?;
    match deps.starter.queue.runs.get(organization, asked.run_id).await {
        Ok(run) if !run.status.is_over() => {}
        Ok(_) | Err(Error::NotFound(_)) => {
            return Err(Error::Conflict("the run that asked is over, so there is nothing to decide".into()));
        }
        Err(error) => return Err(error),
    }
    let reason = reason_of_body(request, status == ApprovalStatus::Refused)?;
    let approval = match deps.approvals.decide(organization, id, status, &member.user_id, reason.as_deref()).await? {
        Decided::Now(approval) => approval,
        Decided::Before(approval) => {
            let status = approval.status_at(Timestamp::now()).as_str();
            let problem = format!("the approval can be decided once, and no more: its status is {status}");
            return Err(Error::Conflict(problem));
        }
    };
    tracing::info!(approval.id = %id, run.id = %approval.run_id, "an approval was decided: {}", status.as_str());
    if let Err(error) = deps.starter.queue.wake(organization, approval.run_id).await {
        // It is decided all the same; `settle` tells the run later.
        tracing::warn!(run.id = %approval.run_id, "a run that waits could not be told: {}", error::chain(&error));
    }
    Reply::ok(&ApprovalView::from(*approval))
}

/// `{"reason": "…"}`; no body at all is as good as `{}`.
fn reason_of_body(request: &Request, required: bool) -> Result<Option<String>> {
    let empty = http::body(request).iter().all(u8::is_ascii_whitespace);
    let body = if empty { Value::Object(serde_json::Map::new()) } else { http::json_body(request)? };
    let mut problems = Problems::default();
    let reason = Fields::of(&body, "", &mut problems).map(|mut fields| {
        let reason = if required {
            fields.required_text("reason", LONGEST_REASON)
        } else {
            fields.text("reason", LONGEST_REASON)
        };
        fields.finish();
        reason
    });
    problems.into_result(reason)
}
