//! The tools there are: the one place where names and references become tools.
//!
//! Nobody who asks here is in a phone call: a run, a chat, an agent that looks for tools. A tool that needs a call is
//! therefore refused, with the reason.

mod not_sent;
mod service_tools;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use futures_util::{
    future::{BoxFuture, FutureExt},
    try_join,
};
use serde_json::{Map, Value};
use tool_calls::{Entry, parse};

use self::not_sent::NotSent;
pub(crate) use self::service_tools::{as_meant, may_become};
use crate::{
    Deadline, Error, Result,
    actions::{ActionTool, preview},
    connections::{Connection, Connections},
    error,
    execution::{ExecutionRequest, Executor},
    models::{AllowedHosts, ChatRules, ExecutionId, OfferedTool, OrganizationId, ToolId, ToolRef, folded_name},
    store::{Services, Tools},
    tool::{CallContext, Tool, ToolOutcome, ToolSpec, Toolbox, arguments::Checked},
};

/// Of the name of a service's tool, in bytes.
const LONGEST_NAME: usize = 64;

/// Finds tools: built-in ones by name, the organizations' by id, services' by name.
#[derive(Clone)]
pub struct Catalogue {
    pub built_in: BuiltInTools,
    pub tools: Tools,
    pub services: Services,
    pub connections: Connections,
}

/// The tools that come with the program.
#[derive(Clone, Default)]
pub struct BuiltInTools {
    /// Offered unless others are named.
    usual: BTreeMap<String, Arc<dyn Tool>>,
    /// Offered to whoever names them.
    by_name: BTreeMap<String, Arc<dyn Tool>>,
}

/// What a reference leads to now.
pub enum Resolved {
    Here(Found),
    Gone(Gone),
}

/// A tool that can be offered.
pub struct Found {
    /// With the version that was found.
    pub reference: ToolRef,
    body: Body,
    /// What it is held to, for one that fetches addresses of a model's choice.
    allowed_hosts: AllowedHosts,
}

/// A service's tool that can be called.
#[derive(Clone)]
struct FoundOfService {
    tool: ActionTool,
    fingerprint: String,
}

enum Body {
    BuiltIn(Arc<dyn Tool>),
    Action(Box<ActionTool>),
}

/// Why a tool cannot be offered, or not be called any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gone {
    NotFound,
    /// It is not the version that was meant.
    Changed,
    /// The reason, to follow "this tool".
    NeedsCall(String),
    /// The organization has no account at its service, or the service does not take it any more.
    NotConnected {
        service: String,
        expired: bool,
    },
    /// Whether there is an account cannot be known just now.
    Unreachable {
        service: String,
    },
    /// Its row cannot be read by this program.
    Unreadable,
}

impl FromIterator<Arc<dyn Tool>> for BuiltInTools {
    fn from_iter<T: IntoIterator<Item = Arc<dyn Tool>>>(tools: T) -> Self {
        let usual = tools.into_iter().map(|tool| (tool.spec().name.clone(), tool)).collect();
        Self { usual, by_name: BTreeMap::new() }
    }
}

impl BuiltInTools {
    /// These, and others for whoever names them.
    #[must_use]
    pub fn and_by_name(self, others: Self) -> Self {
        Self { by_name: others.usual, ..self }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.usual.get(name).or_else(|| self.by_name.get(name))
    }

    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Of those that are offered unless others are named.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.usual.keys().map(String::as_str)
    }

    /// Of all, those for whoever names them, too.
    pub fn all_specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.usual.values().chain(self.by_name.values()).map(|tool| tool.spec())
    }

    /// The tool that is meant by the name of one of these, by the id of an organization's, or by the name of a service's.
    ///
    /// # Errors
    /// A sentence for whoever wrote it.
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

    /// What is said of a name that leads to no tool.
    pub fn unknown(&self) -> String {
        let known = self.usual.keys().chain(self.by_name.keys()).map(String::as_str).collect::<Vec<_>>();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        format!(
            "is no tool: built-in ones are {known}; a tool of the organization is named by its id, a service's by its name \
             (GET /api/{{slug}}/discover/search?q=… finds both)"
        )
    }
}

impl Catalogue {
    /// What the references lead to now, in their order. One read of the organization's tools beside one of the services', then
    /// one of the services and their accounts; none for built-in tools alone.
    pub async fn resolve(
        &self,
        organization: OrganizationId,
        references: &[ToolRef],
        deadline: Deadline,
    ) -> Result<Vec<Resolved>> {
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
        // On the heap: who awaits this has enough layers of its own.
        let of_services = Box::pin(self.service_tools(organization, references, deadline));
        let (rows, of_services) = try_join!(own, of_services)?;
        let unreadable = |error: &Error| {
            tracing::error!("a tool cannot be offered: {}", error::chain(error));
            Gone::Unreadable
        };
        let resolve = |reference: &ToolRef| match reference {
            ToolRef::BuiltIn(name) => match self.built_in.get(name) {
                Some(tool) => Ok(Found::of(reference.clone(), Body::BuiltIn(tool.clone()))),
                None => Err(Gone::NotFound),
            },
            ToolRef::Service { name, fingerprint } => {
                let tool = of_services.get(name).cloned().unwrap_or(Err(Gone::NotFound))?;
                if fingerprint.as_ref().is_some_and(|fingerprint| *fingerprint != tool.fingerprint) {
                    return Err(Gone::Changed);
                }
                let reference = ToolRef::Service { name: name.clone(), fingerprint: Some(tool.fingerprint) };
                Ok(Found::of(reference, Body::Action(Box::new(tool.tool))))
            }
            ToolRef::Organization { id, version } => {
                let row = rows.get(id).ok_or(Gone::NotFound)?.as_ref().map_err(unreadable)?;
                if version.is_some_and(|version| !row.does_as_in(version)) {
                    return Err(Gone::Changed);
                }
                let mut tool = ActionTool::of_row(row).map_err(|error| unreadable(&error))?;
                if let Some(reason) = tool.needs_call() {
                    return Err(Gone::NeedsCall(reason));
                }
                tool.spec.name = callable_name(&tool.spec.name);
                let reference = ToolRef::Organization { id: *id, version: Some(row.bound_version()) };
                Ok(Found::of(reference, Body::Action(Box::new(tool))))
            }
        };
        Ok(references.iter().map(|reference| resolve(reference).map_or_else(Resolved::Gone, Resolved::Here)).collect())
    }

    /// The services' tools among the references, by name.
    async fn service_tools(
        &self,
        organization: OrganizationId,
        references: &[ToolRef],
        deadline: Deadline,
    ) -> Result<HashMap<String, Result<FoundOfService, Gone>>> {
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
        let mut tools = self.services.tools_named(&names, deadline).await?;
        tools.retain(|_, tool| tool.is_active);
        let services: Vec<String> = tools.values().map(|tool| tool.service_name.clone()).collect();
        let mut services = self.services.named(&services, deadline).await?;
        services.retain(|service| service.is_active);
        let connections = Box::pin(self.connections.of(organization, &services, deadline)).await;
        let mut found = HashMap::new();
        for (name, tool) in tools {
            let Some(service) = services.iter().find(|service| service.id == tool.service_id) else { continue };
            let connection = connections.get(&service.id).unwrap_or(&Connection::Unknown);
            let made = service_tools::service_tool(&self.connections, organization, &tool, service, connection)?;
            let fingerprint = tool.fingerprint;
            found.insert(name, made.map(|tool| FoundOfService { tool, fingerprint }));
        }
        Ok(found)
    }

    /// What was offered, as it can be called now. One that was deleted or changed since is not called: the model was told
    /// something else. In a dry run those that act only show what they would have sent.
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
            let held = match resolved {
                Resolved::Here(found) => found.held_to(allowed_hosts).ok_or(Gone::Changed),
                Resolved::Gone(gone) => Err(gone),
            };
            match held {
                Ok(found) => toolbox.offer(found.named(name).for_run(executor, dry_run)),
                Err(gone) => toolbox.gone(name, gone.for_model()),
            }
        }
        Ok(toolbox)
    }
}

impl Found {
    fn of(reference: ToolRef, body: Body) -> Self {
        Self { reference, body, allowed_hosts: AllowedHosts::default() }
    }

    /// The same, which goes to these hosts alone if there are any; none for a tool that cannot be held to hosts.
    #[must_use]
    pub fn held_to(self, hosts: &AllowedHosts) -> Option<Self> {
        if hosts.is_empty() {
            return Some(self);
        }
        let Body::BuiltIn(tool) = &self.body else { return None };
        Some(Self { body: Body::BuiltIn(tool.held_to(hosts)?), allowed_hosts: hosts.clone(), ..self })
    }

    pub fn spec(&self) -> &ToolSpec {
        match &self.body {
            Body::BuiltIn(tool) => tool.spec(),
            Body::Action(tool) => &tool.spec,
        }
    }

    /// The same under a name that `is_taken` does not know yet: `send_sms_2`. Built-in tools keep theirs.
    #[must_use]
    pub fn with_free_name(self, is_taken: impl Fn(&str) -> bool) -> Self {
        let name = self.spec().name.clone();
        let numbered = (2_u32..).map(|number| format!("{name}_{number}"));
        match std::iter::once(name.clone()).chain(numbered).find(|name| !is_taken(name)) {
            Some(free) => self.named(&free),
            None => self,
        }
    }

    /// The same under another name. Built-in tools keep theirs.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        if let Body::Action(tool) = &mut self.body {
            name.clone_into(&mut tool.spec.name);
        }
        self
    }

    /// What must be seen to before it is called for a person in a chat.
    pub fn chat_rules(&self) -> ChatRules {
        match &self.body {
            Body::BuiltIn(tool) => tool.chat_rules(),
            Body::Action(tool) => tool.chat,
        }
    }

    /// What is kept of the offer, to find the same tool again.
    pub fn offered(&self) -> OfferedTool {
        let redact = match &self.body {
            Body::BuiltIn(_) => Vec::new(),
            Body::Action(tool) => tool.redact.clone().into(),
        };
        let allowed_hosts = self.allowed_hosts.clone();
        OfferedTool { name: self.spec().name.clone(), tool: self.reference.clone(), redact, allowed_hosts }
    }

    /// The request that a call with these arguments would send, secrets masked, or the sentence a model would be told instead.
    /// Nothing is sent. Of a built-in tool there is none: what it does is not put together beforehand.
    ///
    /// # Errors
    /// Only for an outage of our own.
    pub async fn preview(
        &self,
        executor: &Executor,
        context: &CallContext<'_>,
        arguments: &Map<String, Value>,
    ) -> Result<Result<Value, String>> {
        let Body::Action(tool) = &self.body else { return Ok(Err("A built-in tool sends nothing.".to_owned())) };
        match tool.check(arguments) {
            Ok(checked) => preview(&tool.action, &executor.services, context, &checked.arguments).await,
            Err(sentence) => Ok(Err(sentence)),
        }
    }

    /// As something that can be called; in a dry run one that acts only shows what it would have sent.
    pub fn for_run(self, executor: &Executor, dry_run: bool) -> Arc<dyn Tool> {
        if dry_run && self.spec().acts() {
            return Arc::new(NotSent { found: self, executor: executor.clone() });
        }
        self.callable(executor)
    }

    /// As something that can be called.
    pub fn callable(self, executor: &Executor) -> Arc<dyn Tool> {
        match self.body {
            Body::BuiltIn(tool) => tool,
            Body::Action(tool) => Arc::new(ExecutedTool { tool: *tool, executor: executor.clone() }),
        }
    }
}

impl Gone {
    /// What is wrong with a reference, for whoever wrote it.
    pub fn for_author(&self) -> String {
        match self {
            Self::NotFound => "is no tool of this organization, of a service, or built in; search for one (GET \
                               /api/{slug}/discover/search?q=…)"
                .to_owned(),
            Self::Changed => "is not the present version of the tool".to_owned(),
            Self::NeedsCall(reason) => {
                format!("{reason}, so it works in phone calls only; leave it out, or give it to an agent")
            }
            Self::NotConnected { service, expired: false } => format!(
                "needs an account at {service}; an administrator connects one (POST /api/{{slug}}/services/{}/connect)",
                folded_name(service)
            ),
            Self::NotConnected { service, expired: true } => format!(
                "has an account at {service} that does not work any more; an administrator connects it again (POST \
                 /api/{{slug}}/services/{}/connect)",
                folded_name(service)
            ),
            Self::Unreachable { service } => {
                format!("cannot be used just now: whether {service} is connected cannot be looked up; try again soon")
            }
            Self::Unreadable => {
                "was written by a newer version of this service, or is damaged; try again in a few minutes".to_owned()
            }
        }
    }

    /// Why a tool that was offered is not called.
    pub fn for_model(&self) -> String {
        let sentence = match self {
            Self::NotFound => "this tool was deleted; do without it.",
            Self::Changed => "this tool was changed while the run was under way; do without it.",
            Self::NeedsCall(_) => "this tool works in phone calls only; do without it.",
            Self::NotConnected { service, .. } => {
                return format!("no account at {service} is connected that works; do without it, and say so.");
            }
            Self::Unreadable | Self::Unreachable { .. } => "this tool cannot be used just now; do without it.",
        };
        sentence.to_owned()
    }
}

/// An action, carried out as for anybody: its effect once for the context's subject, however often the call is made.
struct ExecutedTool {
    tool: ActionTool,
    executor: Executor,
}

impl Tool for ExecutedTool {
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
    ) -> BoxFuture<'a, Result<Result<Value, String>>> {
        preview(&self.tool.action, &self.executor.services, context, arguments).boxed()
    }

    fn check(&self, arguments: &Map<String, Value>) -> Result<Checked, String> {
        self.tool.check(arguments)
    }

    fn chat_rules(&self) -> ChatRules {
        self.tool.chat
    }

    fn call<'a>(
        &'a self,
        arguments: Map<String, Value>,
        context: &'a CallContext<'a>,
    ) -> BoxFuture<'a, Result<ToolOutcome>> {
        async move {
            let id = ExecutionId::generate();
            let request = ExecutionRequest::new(id, &arguments);
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

/// A name as it can be called in code: `send-sms` becomes `send_sms`, and `2nd` and `return` get a `_` in front.
pub fn callable_name(name: &str) -> String {
    let name = name.replace('-', "_");
    // Some words of JavaScript begin something else than a call.
    let entries = parse(&format!("```tool\n{name}()\n```")).entries;
    let can_be_called = matches!(&entries[..], [Entry::Call(call)] if call.name == name);
    if can_be_called { name } else { format!("_{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_can_be_called_whatever_its_organization_named_it() {
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
