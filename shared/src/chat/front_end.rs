//! Tools of the front end: a request names them, the planner may choose them, and the next request brings their
//! results.

use std::sync::Arc;

use futures_util::future::{FutureExt, ready};
use serde_json::{Map, Value, json};

use crate::{
    Result,
    json_schema::JsonSchema,
    models::ToolEffect,
    tool::{
        CallContext, CallableTool, Origin, Parameters, ToolFuture, ToolOutcome, ToolSpec, Toolbox, arguments::Checked,
    },
};

#[derive(Debug, Clone, PartialEq)]
pub struct FrontEndTool {
    pub name: String,
    pub description: String,
    pub parameters: Value,
}

impl FrontEndTool {
    pub(super) fn offer(&self, toolbox: &mut Toolbox) {
        let tool = Described {
            schema: JsonSchema::compile(&self.parameters).ok(),
            spec: ToolSpec {
                name: self.name.clone(),
                description: self.description.clone(),
                parameters: Parameters::of_schema(self.parameters.clone()),
                returns: json!({}),
                own_examples: Vec::new(),
                effect: ToolEffect::None,
                repeatable: false,
            },
        };
        toolbox.offer_from(Arc::new(tool), Origin::FrontEnd);
    }
}

struct Described {
    spec: ToolSpec,
    /// `None` when the schema uses unsupported keywords. Then only the front end checks.
    schema: Option<JsonSchema>,
}

impl CallableTool for Described {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn check(&self, arguments: &Map<String, Value>) -> Result<Checked, String> {
        let instance = Value::Object(arguments.clone());
        let wrong = self.schema.as_ref().map(|schema| schema.validate(&instance)).unwrap_or_default();
        match wrong.first() {
            Some(violation) => Err(violation.to_string()),
            None => Ok(Checked { arguments: arguments.clone(), ignored: Vec::new() }),
        }
    }

    fn call<'a>(&'a self, _: Map<String, Value>, _: &'a CallContext<'a>) -> ToolFuture<'a> {
        ready(Ok(ToolOutcome::failed("Only the front end carries this tool out."))).boxed()
    }
}
