//! Asks a person for approval before an action.

use std::time::Duration;

use serde_json::{Map, Value, json};
use shared::{
    Error, Result,
    automation::{ApprovalVerdict, PlannedAction, approval_verdict, asking_rule, recipients},
    injection::Ended,
    models::{
        ActionResult, ActionStatus, Approval, ApprovalEffect, ApprovalId, ApprovalRequest, ApprovalRule,
        ApprovalStatus, AutomationRun, Timestamp, ToolEffect, arguments_hash,
    },
    redaction::arguments_for_approver,
    store::{Approvals, Waits},
};

use crate::journal::{Came, Stop};

/// Bytes of all displayed arguments, because the row must hold them.
const SHOWN: usize = 65_536;
/// Bytes of each displayed argument.
const SHOWN_EACH: usize = 8_192;
/// The least time for which a decision is kept.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// The approval rules of a run.
#[derive(Clone, Copy)]
pub(crate) struct Asking<'a> {
    pub(crate) approvals: &'a Approvals,
    pub(crate) run: &'a AutomationRun,
    /// The automation's rules.
    pub(crate) rules: &'a [ApprovalRule],
}

impl Asking<'_> {
    /// The approval request of this action, if it needs one. `effect` is the tool's effect, if any; the rules are evaluated
    /// with `arguments`.
    pub(crate) fn asks(
        &self,
        planned: &PlannedAction<'_>,
        effect: Option<ToolEffect>,
        arguments: &Map<String, Value>,
    ) -> Option<ApprovalRequest> {
        if let Some(asked) = &planned.action.approval {
            return Some(asked.clone());
        }
        let rule = asking_rule(self.rules, effect?, arguments)?;
        let what = match rule.effect {
            ApprovalEffect::Email if !rule.outside.is_empty() => "an e-mail to outside",
            ApprovalEffect::Email => "an e-mail",
            ApprovalEffect::Sms => "an SMS",
            ApprovalEffect::Message => "a message in a chat",
            ApprovalEffect::Payment => "a payment",
            ApprovalEffect::Any => "anything that is changed",
        };
        Some(ApprovalRequest {
            reason: Some(format!("The automation asks before {what}.")),
            ..ApprovalRequest::default()
        })
    }

    /// The outcome of a stopped action; `None` if the action may proceed. It is asked once, and a decision is for
    /// exactly these arguments. A dry run asks nobody. `redact`: the fields that the tool's author marked.
    pub(crate) async fn stops(
        &self,
        planned: &PlannedAction<'_>,
        asked: Option<&ApprovalRequest>,
        redact: &[String],
    ) -> Result<Option<Came>> {
        let Some(asked) = asked.filter(|_| !self.run.dry_run) else { return Ok(None) };
        let (organization, approvals) = (self.run.organization_id, self.approvals);
        let id = ApprovalId::of_action(self.run.id, &planned.id);
        let hash = arguments_hash(&planned.arguments);
        let now = Timestamp::now();
        let approval = match approvals.get(organization, id).await {
            Err(Error::NotFound(_)) => approvals.ask(&self.approval(planned, id, &hash, asked, redact, now)).await?,
            approval => approval?,
        };
        let why = match approval_verdict(&approval, &hash, now) {
            ApprovalVerdict::Waits => {
                let waits = Waits::ForApproval(id, approval.valid_until);
                return Ok(Some(Came::Break(Ended::Stopped(Stop::Waits(waits)))));
            }
            ApprovalVerdict::GoesOn if approvals.take_up(&approval).await? => return Ok(None),
            ApprovalVerdict::GoesOn => "Its approval was not for this.".to_owned(),
            ApprovalVerdict::Refused(why) => {
                match approval.status {
                    ApprovalStatus::Pending => approvals.end(organization, id, ApprovalStatus::Expired).await?,
                    _ => drop(approvals.take_up(&approval).await?),
                }
                why
            }
        };
        let refused = planned.refused(why, Timestamp::now());
        Ok(Some(Came::Continue(Box::new(ActionResult { redact: redact.to_vec(), ..refused }))))
    }

    fn approval(
        &self,
        planned: &PlannedAction<'_>,
        id: ApprovalId,
        hash: &str,
        asked: &ApprovalRequest,
        redact: &[String],
        now: Timestamp,
    ) -> Approval {
        let valid_until = now.plus(Duration::from_secs(60 * u64::from(asked.expires_in_minutes)));
        let visible = arguments_for_approver(redact, &planned.arguments, usize::MAX);
        let each = SHOWN_EACH.min(SHOWN / planned.arguments.len().max(1));
        Approval {
            id,
            organization_id: self.run.organization_id,
            automation_id: self.run.automation_id,
            run_id: self.run.id,
            action_id: planned.id.clone(),
            tool: planned.tool.to_owned(),
            arguments: Value::Object(arguments_for_approver(redact, &planned.arguments, each)).to_string(),
            recipients: recipients(&visible),
            arguments_hash: hash.to_owned(),
            reason: asked.reason.clone(),
            status: ApprovalStatus::Pending,
            valid_until,
            decided_by: None,
            decided_at: None,
            decision_reason: None,
            used_at: None,
            created_at: now,
            updated_at: now,
            expires_at: self.run.expires_at.max(valid_until.plus(KEPT).as_seconds()),
        }
    }
}

/// Adds the approval request to a dry run's output.
pub(crate) fn with_asking(result: ActionResult, asked: Option<&ApprovalRequest>) -> ActionResult {
    let Some(asked) = asked.filter(|_| result.status == ActionStatus::NotSent) else { return result };
    let mut output: Value =
        result.output.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    if let Some(output) = output.as_object_mut() {
        let reason = asked.reason.as_deref().unwrap_or("The action says so.");
        let asks = json!({"reason": reason, "expires_in_minutes": asked.expires_in_minutes});
        output.insert("would_ask_for_approval".to_owned(), asks);
    }
    ActionResult { output: Some(output.to_string()), ..result }
}
