//! A built-in tool that counts against the organization's budget of executions.

use std::sync::Arc;

use futures_util::{
    future::{BoxFuture, FutureExt},
    join,
};
use serde_json::{Map, Value};

use crate::{
    Result, error,
    execution::over_budget,
    models::ChatRules,
    store::Budgets,
    tool::{CallContext, CallableTool, ToolOutcome, ToolSpec, arguments::Checked},
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

    fn label(&self) -> &str {
        self.tool.label()
    }

    fn check(&self, arguments: &Map<String, Value>) -> Result<Checked, String> {
        self.tool.check(arguments)
    }

    fn preview<'a>(
        &'a self,
        arguments: &'a Map<String, Value>,
        context: &'a CallContext<'a>,
    ) -> BoxFuture<'a, Result<Result<Value, String>>> {
        self.tool.preview(arguments, context)
    }

    fn knows_deliveries(&self) -> bool {
        self.tool.knows_deliveries()
    }

    fn chat_rules(&self) -> ChatRules {
        self.tool.chat_rules()
    }

    fn call<'a>(
        &'a self,
        arguments: Map<String, Value>,
        context: &'a CallContext<'a>,
    ) -> BoxFuture<'a, Result<ToolOutcome>> {
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
