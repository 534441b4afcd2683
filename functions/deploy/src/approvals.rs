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
        Approval, ApprovalId, ApprovalStatus, AutomationId, Member, NotAnApprovalStatus, Role, RunId, Timestamp, UserId,
    },
    redaction::{self, to_decide_on, to_look_at},
    store::Decided,
};

use crate::Deps;

/// What is shown of the arguments of one approval among others, in bytes, and of each of them.
const LISTED: usize = 12_288;
const LISTED_EACH: usize = 2_048;
/// Recipients of one approval among others.
const LISTED_RECIPIENTS: usize = 20;
/// Of a sentence, in bytes.
const SENTENCE: usize = 4_096;
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
    /// Whoever may decide sees whom it goes to; for others people's addresses and numbers are hidden.
    arguments: Value,
    recipients: Vec<String>,
    reason: Option<String>,
    decided_by: Option<UserId>,
    decided_at: Option<Timestamp>,
    decision_reason: Option<String>,
    used_at: Option<Timestamp>,
    created_at: Timestamp,
    expires_at: Timestamp,
}

impl ApprovalView {
    /// As somebody with this role is shown it; `among` others less of it.
    fn of(approval: Approval, role: Role, among: bool) -> Self {
        let decides = role >= Role::Admin;
        let arguments = match serde_json::from_str(&approval.arguments) {
            Ok(Value::Object(arguments)) => {
                let each = if among { LISTED_EACH.min(LISTED / arguments.len().max(1)) } else { usize::MAX };
                let shown = if decides { to_decide_on(&[], &arguments, each) } else { to_look_at(&arguments, each) };
                Value::Object(shown)
            }
            _ => Value::Null,
        };
        let text = |text: String| if decides { text } else { redaction::redacted(&text, SENTENCE) };
        let mut recipients: Vec<String> = approval.recipients.iter().cloned().map(text).collect();
        if among && recipients.len() > LISTED_RECIPIENTS {
            let more = recipients.len() - LISTED_RECIPIENTS;
            recipients.truncate(LISTED_RECIPIENTS);
            recipients.push(format!("and at least {more} more"));
        }
        Self {
            id: approval.id,
            status: approval.status_at(Timestamp::now()),
            automation_id: approval.automation_id,
            run_id: approval.run_id,
            arguments,
            recipients,
            action_id: approval.action_id,
            tool: approval.tool,
            reason: approval.reason.map(text),
            decided_by: approval.decided_by,
            decided_at: approval.decided_at,
            decision_reason: approval.decision_reason.map(text),
            used_at: approval.used_at,
            created_at: approval.created_at,
            expires_at: approval.valid_until,
        }
    }
}

/// `?status=&limit=&cursor=`; newest first.
pub(crate) async fn list(deps: &Deps, request: &Request, member: &Member) -> Result<Reply> {
    let (limit, after) = http::page(request)?;
    let query = request.query_string_parameters();
    let status = query.first("status").filter(|text| !text.is_empty()).map(str::parse::<ApprovalStatus>).transpose();
    let status = status.map_err(|error: NotAnApprovalStatus| Error::invalid("status", error.to_string()))?;
    let page = deps.approvals.page(member.organization_id, status, after.as_ref(), limit).await?;
    Reply::ok(&page.map(|approval| ApprovalView::of(approval, member.role, true)))
}

pub(crate) async fn show(deps: &Deps, member: &Member, id: ApprovalId) -> Result<Reply> {
    let approval = deps.approvals.get(member.organization_id, id).await?;
    Reply::ok(&ApprovalView::of(approval, member.role, false))
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
    Reply::ok(&ApprovalView::of(*approval, member.role, false))
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
