//! Lists of runs.

use super::{
    super::{CreatedFilter, Page, cursor::Filters, database::text},
    AutomationRuns, RUN,
};
use crate::{
    Result,
    models::{AutomationId, AutomationRun, OrganizationId, RunStatus},
};

#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    pub automation: Option<AutomationId>,
    pub status: Option<RunStatus>,
    /// Only runs that failed, partly failed, or ended at a limit.
    pub failed: bool,
    pub dry_run: Option<bool>,
}

impl AutomationRuns {
    pub async fn page(
        &self,
        organization: OrganizationId,
        created: &CreatedFilter,
        wanted: &RunFilter,
    ) -> Result<Page<AutomationRun>> {
        let dry_run = wanted.dry_run.map(aws_sdk_dynamodb::types::AttributeValue::Bool);
        let mut filters = Filters::default()
            .equal("status", wanted.status.map(|status| text(status.as_str())))
            .equal("dry_run", dry_run);
        if wanted.failed {
            let over = [RunStatus::Completed, RunStatus::Cancelled, RunStatus::Queued, RunStatus::Running];
            let [completed, cancelled, queued, running] = over.map(|status| text(status.as_str()));
            let waiting = text(RunStatus::WaitingForApproval.as_str());
            let values = [
                (":completed", completed),
                (":cancelled", cancelled),
                (":queued", queued),
                (":running", running),
                (":waiting", waiting),
            ];
            filters = filters.and("NOT #status IN (:completed, :cancelled, :queued, :running, :waiting)", values);
        }
        match wanted.automation {
            None => {
                let query = self.table.query_index(
                    "by_organization",
                    "#organization_id = :organization AND #created_at BETWEEN :since AND :until",
                );
                let key = [("organization_id", text(organization)), ("part", text(RUN))];
                Page::filtered(organization, query, created, filters, key).await
            }
            Some(automation) => {
                let query = self
                    .table
                    .query_index(
                        "by_automation",
                        "#automation_id = :automation AND #created_at BETWEEN :since AND :until",
                    )
                    .of(organization)
                    .with([(":automation", text(automation))]);
                let key = [("automation_id", text(automation)), ("part", text(RUN))];
                Page::filtered(organization, query, created, filters, key).await
            }
        }
    }
}
