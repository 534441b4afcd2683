//! `call_tool`: calls any discoverable tool of the organization once.

use serde_json::{Map, Value, json};

use super::AgentToolAnswer;
use crate::{
    Result,
    catalogue::Catalogue,
    discovery::{Discovery, Source, ToolData, ToolDetails},
    execution::Executor,
    models::{Role, ToolRef},
    tool::{CallContext, NotBound, Toolbox},
};

#[derive(Clone)]
pub struct ToolCaller {
    pub catalogue: Catalogue,
    pub executor: Executor,
}

impl ToolCaller {
    pub(super) async fn call(
        &self,
        discovery: &Discovery,
        role: Role,
        mut arguments: Map<String, Value>,
        context: &CallContext<'_>,
    ) -> Result<AgentToolAnswer> {
        let mut text = |name: &str| match arguments.remove(name) {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        let (name, fingerprint) = (text("name"), text("fingerprint"));
        let Some(Value::Object(arguments)) = arguments.remove("arguments") else {
            return Ok(AgentToolAnswer::failed("The argument \"arguments\" must be an object."));
        };
        let (organization, deadline) = (context.organization, context.deadline);

        let ToolData { tools, problems, .. } = discovery.fetch_tool_data(organization, &[name], deadline).await?;
        let Some(tool) = tools.into_iter().next() else {
            let message = problems.first().map_or("There is no such tool.", |problem| problem.message.as_str());
            return Ok(AgentToolAnswer { data: json!({"problems": problems}), ..AgentToolAnswer::failed(message) });
        };
        let name = &tool.name;
        if tool.fingerprint != fingerprint {
            return Ok(AgentToolAnswer::failed(format!(
                "The tool {name} is not the one that was read: its fingerprint is {}, and not {fingerprint}. Read it again with \
                 fetch_tool_data, look at what has changed, and call it with the fingerprint that you find there.",
                tool.fingerprint
            )));
        }
        let resolved = self.catalogue.resolve(organization, &[reference(&tool)], deadline).await?;
        let found = match resolved.into_iter().next().map(|found| found.and_then(|found| found.for_role(role))) {
            Some(Ok(found)) => found,
            Some(Err(why)) => return Ok(AgentToolAnswer::failed(format!("The tool {name} {}.", why.for_author()))),
            None => return Ok(AgentToolAnswer::failed(format!("There is no tool {name}."))),
        };
        // Refreshes the count of the hour's budget.
        self.executor.budgets.usage(organization, deadline).await?;
        let called = found.spec().name.clone();
        let mut toolbox = Toolbox::default();
        toolbox.offer(found.callable(&self.executor));
        let bound = match toolbox.check(&called, &arguments) {
            Ok(bound) => bound,
            Err(NotBound::Unknown(sentence) | NotBound::Invalid(sentence)) => {
                return Ok(AgentToolAnswer::failed(sentence));
            }
        };
        Ok(AgentToolAnswer::of_called(bound.call(context).await?))
    }
}

/// Pins the version of the details.
fn reference(tool: &ToolDetails) -> ToolRef {
    match (tool.source, tool.id) {
        (Source::Organization, Some(id)) => {
            ToolRef::Organization { id, version: tool.fingerprint.trim_start_matches('v').parse().ok() }
        }
        (Source::BuiltIn, _) => ToolRef::BuiltIn(tool.name.clone()),
        _ => ToolRef::Service { name: tool.name.clone(), fingerprint: Some(tool.fingerprint.clone()) },
    }
}
