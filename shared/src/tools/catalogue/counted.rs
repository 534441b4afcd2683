//! A built-in tool that counts against the organization's budget of executions.

use std::sync::Arc;

use futures_util::{future::FutureExt, join};
use serde_json::{Map, Value};

use crate::{
    error,
    execution::over_budget,
    store::Budgets,
    tool::{CallContext, CallableTool, ToolFuture, ToolSpec},
};

/// `ToolType` in the metrics.
const KIND: &str = "built_in";

pub(super) struct Counted {
    pub(super) tool: Arc<dyn CallableTool>,
    pub(super) budgets: Budgets,
}

impl CallableTool for Counted {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    fn inner(&self) -> Option<&dyn CallableTool> {
        Some(&*self.tool)
    }

    fn call<'a>(&'a self, arguments: Map<String, Value>, context: &'a CallContext<'a>) -> ToolFuture<'a> {
        async move {
            let organization = context.organization;
            if self.budgets.check_execution_budget(organization).is_err() {
                return Ok(over_budget(KIND));
            }
            let (outcome, counted) =
                join!(self.tool.call(arguments, context), self.budgets.count_executions(organization, 1));
            if let Err(error) = counted {
                tracing::error!("executions were not counted: {}", error::chain(&error));
            }
            outcome
        }
        .boxed()
    }
}
