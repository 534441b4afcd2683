//! Lists, shows and decides the approvals that runs of automations wait for.

use serde::Serialize;
use serde_json::Value;
use shared::{
    Error, Result,
    automation::RunQueue,
    declared::{Body, Text},
    described::Described,
    error::{self, found},
    http::{Access, Asked, Id, MaySend, Paged, Shown, Wanted, operation},
    models::{Approval, ApprovalId, ApprovalStatus, AutomationId, Member, Role, RunId, Timestamp, UserId},
    platform::Parts,
    redaction::{self, arguments_for_approver, arguments_for_reader},
    store::{Approvals, Decided, Page},
};

shared::routes!(Deps, "automations": list_approvals, get_approval, approve_approval, refuse_approval);

/// Bytes of the displayed arguments in a list: together, and each.
const LISTED: usize = 12_288;
const LISTED_EACH: usize = 2_048;
const LISTED_RECIPIENTS: usize = 20;
/// Bytes of a sentence.
const SENTENCE: usize = 4_096;
/// Characters of the reason for a decision.
const LONGEST_REASON: usize = 1_000;

#[derive(Parts)]
pub struct Deps {
    pub access: Access,
    pub approvals: Approvals,
    pub queue: RunQueue,
}

/// A request of a run to approve an action. Unknown fields are null.
#[derive(Debug, Serialize, Described)]
struct ApprovalView {
    id: ApprovalId,
    status: ApprovalStatus,
    automation_id: Option<AutomationId>,
    run_id: RunId,
    action_id: String,
    tool: String,
    /// Arguments for the tool. The approval holds for exactly this. Secrets and fields marked by the tool's author are hidden; for
    /// persons who may not decide, people's addresses and numbers, too. On a page long arguments are cut.
    arguments: Value,
    /// The addresses and phone numbers in `arguments` that it goes to; `[email]` and `[number]` for persons who may not decide.
    #[schema(maxItems = 101)]
    recipients: Vec<String>,
    /// Why somebody is asked.
    reason: Option<String>,
    /// The `sub` of who decided.
    decided_by: Option<UserId>,
    decided_at: Option<Timestamp>,
    decision_reason: Option<String>,
    /// When the run went on with it.
    used_at: Option<Timestamp>,
    created_at: Timestamp,
    /// Until when it can be decided.
    expires_at: Timestamp,
}

impl ApprovalView {
    /// The view for this role; `among` others it is shorter.
    fn of(approval: Approval, role: Role, among: bool) -> Self {
        let decides = role >= Role::Admin;
        let arguments = match serde_json::from_str(&approval.arguments) {
            Ok(Value::Object(arguments)) => {
                let each = if among { LISTED_EACH.min(LISTED / arguments.len().max(1)) } else { usize::MAX };
                let shown = if decides {
                    arguments_for_approver(&[], &arguments, each)
                } else {
                    arguments_for_reader(&arguments, each)
                };
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

/// List approvals
///
/// Newest first. With a `status`, a page has the matching ones among `limit` approvals.
///
/// - 200: A page of approvals.
#[operation(GET "/api/{slug}/approvals", Viewer)]
async fn list_approvals(
    deps: &Deps,
    asked: &Asked<'_>,
    page: Paged,
    status: Wanted<ApprovalStatus>,
) -> Result<Page<ApprovalView>> {
    let page = deps.approvals.page(asked.organization(), status.0, page.cursor.as_ref(), page.limit).await?;
    Ok(page.map(|approval| ApprovalView::of(approval, asked.member.role, true)))
}

/// Get an approval
///
/// - 200: The approval.
#[operation(GET "/api/{slug}/approvals/{id}", Viewer, resource(ShowApproval))]
async fn get_approval(deps: &Deps, asked: &Asked<'_>, id: Id<ApprovalId>) -> Result<Shown<ApprovalView>> {
    let approval = deps.approvals.get(asked.organization(), id.0).await?;
    Ok(Shown(ApprovalView::of(approval, asked.member.role, false)))
}

#[derive(Body)]
struct Approving {
    reason: Option<Text<LONGEST_REASON>>,
}

#[derive(Body)]
struct Refusing {
    reason: Text<LONGEST_REASON>,
}

/// Let an action go on
///
/// The run goes on with exactly the arguments that were approved. It can be decided once, and until it expires: after that it
/// is a 409.
///
/// - 200: The approval.
///
/// ```json,reason
/// {"reason": "Looks right."}
/// ```
#[operation(POST "/api/{slug}/approvals/{id}/approve", Admin, also(409), resource(Approve))]
async fn approve_approval(
    deps: &Deps,
    asked: &Asked<'_>,
    id: Id<ApprovalId>,
    body: MaySend<Approving>,
) -> Result<Shown<ApprovalView>> {
    let reason = || Ok(body.read()?.reason.map(String::from));
    decide(deps, &asked.member, id.0, ApprovalStatus::Approved, reason).await
}

/// Keep an action from going on
///
/// The action counts as failed, with the reason; its `on_error` says whether the run goes on. It can be decided once, and until
/// it expires: after that it is a 409.
///
/// - 200: The approval.
///
/// ```json,reason
/// {"reason": "The price is wrong."}
/// ```
#[operation(POST "/api/{slug}/approvals/{id}/refuse", Admin, also(409), resource(Refuse))]
async fn refuse_approval(
    deps: &Deps,
    asked: &Asked<'_>,
    id: Id<ApprovalId>,
    body: MaySend<Refusing>,
) -> Result<Shown<ApprovalView>> {
    let reason = || Ok(Some(body.read()?.reason.into()));
    decide(deps, &asked.member, id.0, ApprovalStatus::Refused, reason).await
}

/// Decides and wakes the run. The first decision counts.
async fn decide(
    deps: &Deps,
    member: &Member,
    id: ApprovalId,
    status: ApprovalStatus,
    reason: impl FnOnce() -> Result<Option<String>>,
) -> Result<Shown<ApprovalView>> {
    let organization = member.organization_id;
    // The owner is checked before the request.
    let asked = deps.approvals.get(organization, id).await?;
    let run = found(deps.queue.runs.get(organization, asked.run_id).await)?;
    if run.is_none_or(|run| run.status.is_over()) {
        return Err(Error::Conflict("the run that asked is over, so there is nothing to decide".into()));
    }
    let reason = reason()?;
    let approval = match deps.approvals.decide(organization, &asked, status, &member.user_id, reason.as_deref()).await?
    {
        Decided::Now(approval) => approval,
        Decided::Before(approval) => {
            let status = approval.status_at(Timestamp::now()).as_str();
            let problem = format!("the approval can be decided once, and no more: its status is {status}");
            return Err(Error::Conflict(problem));
        }
    };
    tracing::info!(approval.id = %id, run.id = %approval.run_id, "an approval was decided: {}", status.as_str());
    if let Err(error) = deps.queue.wake(organization, approval.run_id).await {
        // The decision holds; `settle` wakes the run later.
        tracing::warn!(run.id = %approval.run_id, "a waiting run could not be woken: {}", error::chain(&error));
    }
    Ok(Shown(ApprovalView::of(*approval, member.role, false)))
}
