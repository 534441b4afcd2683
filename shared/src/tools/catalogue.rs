//! Resolves names and references to tools.
//!
//! A run, a chat or an agent asks here, never a phone call. A tool that needs a call is refused with the reason.

mod counted;
mod not_sent;
mod service_tools;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use futures_util::{future::FutureExt, try_join};
use serde_json::{Map, Value};
use tool_calls::{Entry, parse};

pub(crate) use self::service_tools::{coerce_to_schema, may_become};
use self::{counted::Counted, not_sent::NotSent};
use crate::{
    Deadline, Error, Result,
    actions::{ActionCall, ActionTool, preview},
    connections::{Connection, Connections},
    error,
    execution::{ExecutionRequest, Executor},
    models::{AllowedHosts, ChatRules, ExecutionId, OfferedTool, OrganizationId, Role, ToolId, ToolRef},
    store::{Services, Tools},
    tool::{
        CallContext, CallableTool, Conversation, Origin, ToolFuture, ToolSpec, Toolbox, Unavailable, arguments::Checked,
    },
};

const LONGEST_NAME: usize = 64;

/// Finds built-in tools by name, the organization's by id, services' by name.
#[derive(Clone)]
pub struct Catalogue {
    pub built_in: BuiltInTools,
    pub tools: Tools,
    pub services: Services,
    pub connections: Connections,
}

#[derive(Clone, Default)]
pub struct BuiltInTools {
    usual: BTreeMap<String, Arc<dyn CallableTool>>,
    by_name: BTreeMap<String, Arc<dyn CallableTool>>,
}

pub struct CatalogueTool {
    pub reference: ToolRef,
    body: Body,
    /// The only hosts that the tool may call, for a tool whose addresses a model chooses.
    allowed_hosts: AllowedHosts,
}

#[derive(Clone)]
struct FoundOfService {
    tool: ActionTool,
    fingerprint: String,
}

enum Body {
    BuiltIn(Arc<dyn CallableTool>),
    Action(Box<ActionTool>),
}

impl FromIterator<Arc<dyn CallableTool>> for BuiltInTools {
    fn from_iter<T: IntoIterator<Item = Arc<dyn CallableTool>>>(tools: T) -> Self {
        let usual = tools.into_iter().map(|tool| (tool.spec().name.clone(), tool)).collect();
        Self { usual, by_name: BTreeMap::new() }
    }
}

impl BuiltInTools {
    #[must_use]
    pub fn and_by_name(self, others: Self) -> Self {
        Self { by_name: others.usual, ..self }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<dyn CallableTool>> {
        self.usual.get(name).or_else(|| self.by_name.get(name))
    }

    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.usual.keys().map(String::as_str)
    }

    /// The specs of all tools, including those offered on request.
    pub fn all_specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.usual.values().chain(self.by_name.values()).map(|tool| tool.spec())
    }

    /// The reference for the name of a built-in tool, the id of an organization's, or the name of a service's.
    ///
    /// # Errors
    /// The problem, for the author.
    pub fn reference(&self, name: &str) -> Result<ToolRef, String> {
        if self.has(name) {
            return Ok(ToolRef::BuiltIn(name.to_owned()));
        }
        if let Ok(id) = name.parse() {
            return Ok(ToolRef::Organization { id, version: None });
        }
        let may_be_of_service = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if !name.is_empty() && name.len() <= LONGEST_NAME && name.bytes().all(may_be_of_service) {
            return Ok(ToolRef::Service { name: name.to_owned(), fingerprint: None });
        }
        Err(self.unknown())
    }

    pub fn unknown(&self) -> String {
        let known = self.usual.keys().chain(self.by_name.keys()).map(String::as_str).collect::<Vec<_>>();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        format!(
            "is not a tool: built-in ones are {known}; a tool of the organization is named by its id, a service's by its name \
             (GET /api/{{slug}}/discover/search?q=… finds both)"
        )
    }
}

impl Catalogue {
    /// Resolves references, in their order. It reads the organization's tools beside the services', then the services
    /// and their accounts; nothing for built-in tools alone.
    pub async fn resolve(
        &self,
        organization: OrganizationId,
        references: &[ToolRef],
        deadline: Deadline,
    ) -> Result<Vec<Result<CatalogueTool, Unavailable>>> {
        let ids: Vec<ToolId> = references
            .iter()
            .filter_map(|reference| match reference {
                ToolRef::Organization { id, .. } => Some(*id),
                ToolRef::BuiltIn(_) | ToolRef::Service { .. } => None,
            })
            .collect();
        let own = async {
            if ids.is_empty() { Ok(HashMap::new()) } else { self.tools.find_each(organization, &ids, deadline).await }
        };
        // On the heap: callers have many layers of futures of their own.
        let of_services = Box::pin(self.service_tools(organization, references, deadline));
        let (rows, of_services) = try_join!(own, of_services)?;
        let resolve = |reference: &ToolRef| match reference {
            ToolRef::BuiltIn(name) => match self.built_in.get(name) {
                Some(tool) => Ok(CatalogueTool::of(reference.clone(), Body::BuiltIn(tool.clone()))),
                // A stored reference: a newer program has the tool.
                None => Err(Unavailable::Unreadable),
            },
            ToolRef::Service { name, fingerprint } => {
                let tool = of_services.get(name).cloned().unwrap_or(Err(Unavailable::NotFound))?;
                if fingerprint.as_ref().is_some_and(|fingerprint| *fingerprint != tool.fingerprint) {
                    return Err(Unavailable::Changed);
                }
                let reference = ToolRef::Service { name: name.clone(), fingerprint: Some(tool.fingerprint) };
                Ok(CatalogueTool::of(reference, Body::Action(Box::new(tool.tool))))
            }
            ToolRef::Organization { id, version } => {
                let row = rows.get(id).ok_or(Unavailable::NotFound)?.as_ref().map_err(unreadable)?;
                if version.is_some_and(|version| !row.behaves_as_in_version(version)) {
                    return Err(Unavailable::Changed);
                }
                let mut tool = ActionTool::of_row(row).map_err(|error| unreadable(&error))?;
                if let Some(reason) = tool.needs_call() {
                    return Err(Unavailable::NeedsCall(reason));
                }
                tool.spec = ToolSpec { name: callable_name(&tool.spec.name), ..tool.spec_in(&Conversation::default()) };
                let reference = ToolRef::Organization { id: *id, version: Some(row.bound_version()) };
                Ok(CatalogueTool::of(reference, Body::Action(Box::new(tool))))
            }
        };
        Ok(references.iter().map(resolve).collect())
    }

    /// A service's tool whose account is gone, to find an earlier effect of it.
    pub async fn without_account(
        &self,
        organization: OrganizationId,
        reference: &ToolRef,
        deadline: Deadline,
    ) -> Result<Option<ActionTool>> {
        let ToolRef::Service { name, .. } = reference else { return Ok(None) };
        let mut tools = self.services.tools_named(std::slice::from_ref(name), deadline).await?;
        let Some(tool) = tools.remove(name) else { return Ok(None) };
        let services = self.services.named(std::slice::from_ref(&tool.service_name), deadline).await?;
        let service = services.iter().find(|service| service.id == tool.service_id);
        let made =
            service.map(|service| service_tools::without_account(&self.connections, organization, &tool, service));
        Ok(made.transpose()?.flatten())
    }

    async fn service_tools(
        &self,
        organization: OrganizationId,
        references: &[ToolRef],
        deadline: Deadline,
    ) -> Result<HashMap<String, Result<FoundOfService, Unavailable>>> {
        let names: Vec<String> = references
            .iter()
            .filter_map(|reference| match reference {
                ToolRef::Service { name, .. } => Some(name.clone()),
                ToolRef::BuiltIn(_) | ToolRef::Organization { .. } => None,
            })
            .collect();
        if names.is_empty() {
            return Ok(HashMap::new());
        }
        let mut found = HashMap::new();
        let mut tools = Vec::new();
        for (name, tool) in self.services.find_each(&names, deadline).await? {
            match tool {
                Ok(tool) if tool.is_active => tools.push((name, tool)),
                Ok(_) => {}
                Err(error) => {
                    found.insert(name, Err(unreadable(&error)));
                }
            }
        }
        let of: Vec<String> = tools.iter().map(|(_, tool)| tool.service_name.clone()).collect();
        let (mut services, mut withheld) = (Vec::new(), HashMap::new());
        for (id, service) in self.services.each_named(&of, deadline).await? {
            match service {
                Ok(service) if service.is_active => services.push(service),
                Ok(_) => {
                    withheld.insert(id, Unavailable::NotFound);
                }
                Err(error) => {
                    withheld.insert(id, unreadable(&error));
                }
            }
        }
        let connections = Box::pin(self.connections.of(organization, &services, deadline)).await;
        for (name, tool) in tools {
            let Some(service) = services.iter().find(|service| service.id == tool.service_id) else {
                // A load writes a service's tools before its row.
                let why = withheld.get(&tool.service_id.to_string()).cloned().unwrap_or(Unavailable::Unreadable);
                found.insert(name, Err(why));
                continue;
            };
            let connection = connections.get(&service.id).unwrap_or(&Connection::Unknown);
            let made = service_tools::service_tool(&self.connections, organization, &tool, service, connection)?;
            let fingerprint = tool.fingerprint;
            found.insert(name, made.map(|tool| FoundOfService { tool, fingerprint }));
        }
        Ok(found)
    }

    /// The offered tools as they are now. A tool that was deleted or changed since is withheld, because the model was
    /// shown another one. In a dry run an acting tool only shows the request that it would have sent.
    pub async fn toolbox(
        &self,
        organization: OrganizationId,
        offered: &[OfferedTool],
        executor: &Executor,
        dry_run: bool,
        deadline: Deadline,
    ) -> Result<Toolbox> {
        let references: Vec<ToolRef> = offered.iter().map(|offered| offered.tool.clone()).collect();
        let resolved = self.resolve(organization, &references, deadline).await?;
        let mut toolbox = Toolbox::default();
        for (OfferedTool { name, allowed_hosts, .. }, resolved) in offered.iter().zip(resolved) {
            match resolved.and_then(|tool| tool.restricted_to_hosts(allowed_hosts).ok_or(Unavailable::Changed)) {
                Ok(tool) => tool.named(name).offer_in(&mut toolbox, executor, dry_run),
                Err(why) => toolbox.withhold(name, why),
            }
        }
        Ok(toolbox)
    }
}

fn unreadable(error: &Error) -> Unavailable {
    tracing::error!("a tool cannot be offered: {}", error::chain(error));
    Unavailable::Unreadable
}

impl CatalogueTool {
    fn of(reference: ToolRef, body: Body) -> Self {
        Self { reference, body, allowed_hosts: AllowedHosts::default() }
    }

    /// The same tool restricted to these hosts, if any; `None` for a tool that cannot be restricted.
    #[must_use]
    pub fn restricted_to_hosts(self, hosts: &AllowedHosts) -> Option<Self> {
        if hosts.is_empty() {
            return Some(self);
        }
        let Body::BuiltIn(tool) = &self.body else { return None };
        Some(Self { body: Body::BuiltIn(tool.restricted_to_hosts(hosts)?), allowed_hosts: hosts.clone(), ..self })
    }

    pub fn spec(&self) -> &ToolSpec {
        match &self.body {
            Body::BuiltIn(tool) => tool.spec(),
            Body::Action(tool) => &tool.spec,
        }
    }

    /// The same tool under a free name, such as `send_sms_2`. Built-in tools keep their names.
    #[must_use]
    pub fn with_free_name(self, is_taken: impl Fn(&str) -> bool) -> Self {
        let name = self.spec().name.clone();
        let numbered = (2_u32..).map(|number| format!("{name}_{number}"));
        match std::iter::once(name.clone()).chain(numbered).find(|name| !is_taken(name)) {
            Some(free) => self.named(&free),
            None => self,
        }
    }

    /// The same tool under another name. Built-in tools keep their names.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        if let Body::Action(tool) = &mut self.body {
            name.clone_into(&mut tool.spec.name);
        }
        self
    }

    pub fn chat_rules(&self) -> ChatRules {
        match &self.body {
            Body::BuiltIn(tool) => tool.chat_rules(),
            Body::Action(tool) => tool.chat,
        }
    }

    /// The tool, for a person of this role who names it.
    ///
    /// # Errors
    /// [`Unavailable::NeedsRole`]
    pub fn for_role(self, role: Role) -> Result<Self, Unavailable> {
        match self.chat_rules().least_role.filter(|least| role < *least) {
            Some(least) => Err(Unavailable::NeedsRole(least)),
            None => Ok(self),
        }
    }

    /// The stored reference, which finds the same tool again.
    pub fn offered(&self) -> OfferedTool {
        let redact = match &self.body {
            Body::BuiltIn(_) => Vec::new(),
            Body::Action(tool) => tool.redact.clone().into(),
        };
        let allowed_hosts = self.allowed_hosts.clone();
        OfferedTool { name: self.spec().name.clone(), tool: self.reference.clone(), redact, allowed_hosts }
    }

    /// The request that a call with these arguments would send, secrets masked, or the sentence for the model. Nothing
    /// is sent. Built-in tools have no preview.
    ///
    /// # Errors
    /// Only an outage of our own.
    pub async fn preview(
        &self,
        executor: &Executor,
        context: &CallContext<'_>,
        arguments: &Map<String, Value>,
    ) -> Result<Result<Value, String>> {
        let Body::Action(tool) = &self.body else { return Ok(Err("A built-in tool sends nothing.".to_owned())) };
        match tool.check(arguments) {
            Ok(checked) => {
                let call = ActionCall { services: &executor.services, context, arguments: &checked.arguments };
                preview(&tool.action, call).await
            }
            Err(sentence) => Ok(Err(sentence)),
        }
    }

    /// Offers the tool. In a dry run, which may be of a draft, a tool that acts or needs more than the role member only shows
    /// the request that it would have sent.
    pub fn offer_in(self, toolbox: &mut Toolbox, executor: &Executor, dry_run: bool) {
        let origin = Origin::Catalogue(self.offered());
        let is_only_shown = dry_run && (self.spec().acts() || self.chat_rules().least_role > Some(Role::Member));
        let tool: Arc<dyn CallableTool> = if is_only_shown {
            Arc::new(NotSent { found: self, executor: executor.clone() })
        } else {
            self.callable(executor)
        };
        toolbox.offer_from(tool, origin);
    }

    pub fn callable(self, executor: &Executor) -> Arc<dyn CallableTool> {
        match self.body {
            Body::BuiltIn(tool) if tool.calls_out() => Arc::new(Counted { tool, budgets: executor.budgets.clone() }),
            Body::BuiltIn(tool) => tool,
            Body::Action(tool) => Arc::new(ExecutedTool { tool: *tool, executor: executor.clone() }),
        }
    }
}

/// An action whose effect happens once per subject of the context, however often it is called.
struct ExecutedTool {
    tool: ActionTool,
    executor: Executor,
}

impl CallableTool for ExecutedTool {
    fn spec(&self) -> &ToolSpec {
        &self.tool.spec
    }

    fn label(&self) -> &str {
        &self.tool.label
    }

    fn preview<'a>(
        &'a self,
        arguments: &'a Map<String, Value>,
        context: &'a CallContext<'a>,
    ) -> ToolFuture<'a, Result<Value, String>> {
        preview(&self.tool.action, ActionCall { services: &self.executor.services, context, arguments }).boxed()
    }

    fn check(&self, arguments: &Map<String, Value>) -> Result<Checked, String> {
        self.tool.check(arguments)
    }

    fn chat_rules(&self) -> ChatRules {
        self.tool.chat
    }

    fn knows_deliveries(&self) -> bool {
        true
    }

    fn call<'a>(&'a self, arguments: Map<String, Value>, context: &'a CallContext<'a>) -> ToolFuture<'a> {
        async move {
            let id = ExecutionId::generate();
            let request = ExecutionRequest::new(id, &arguments);
            // An action may have a shorter time-out.
            let needs = request.needs.min(context.deadline.remaining() / 3);
            let request = ExecutionRequest { needs, ..request };
            let executed = self.executor.execute(&self.tool, request, context, None).await;
            if let Some(outage) = executed.outage {
                return Err(outage);
            }
            self.executor.record(&[executed.execution]).await;
            Ok(executed.outcome.recorded(id))
        }
        .boxed()
    }
}

/// A name that can be called in code: `send-sms` becomes `send_sms`; `2nd` and `return` get a leading `_`.
pub fn callable_name(name: &str) -> String {
    let name = name.replace('-', "_");
    // Some words of JavaScript do not begin a call.
    let entries = parse(&format!("```tool\n{name}()\n```")).entries;
    let can_be_called = matches!(&entries[..], [Entry::Call(call)] if call.name == name);
    if can_be_called { name } else { format!("_{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_with_any_label_can_be_called() {
        for (name, callable) in [
            ("send-sms", "send_sms"),
            ("2nd-try", "_2nd_try"),
            ("return", "_return"),
            ("await", "_await"),
            ("Switch", "Switch"),
            ("switch", "_switch"),
            ("-", "_"),
        ] {
            assert_eq!(callable_name(name), callable);
            let calls = parse(&format!("```tool\nreturn {callable}({{a: 1}});\n```")).entries;
            assert!(matches!(&calls[..], [Entry::Call(call)] if call.name == callable), "{calls:?}");
        }
    }
}
