//! Reads the tools, services and connections that a definition names.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, hash_map::Entry},
    sync::Arc,
    time::Duration,
};

use futures_util::{join, try_join};
use serde_json::{Value, json};

use super::awaited_events::warn_of_hooks;
use crate::{
    Deadline, Error, Result,
    automation::{
        Deployment,
        definition::{Definition, diagnostics::Diagnostics, trigger::Trigger},
        expressions::{
            data::{Data, Lowered},
            templates::{Template, texts_of},
        },
        nearest,
        triggers::{
            event_hooks::hook_warning,
            source::{AnsweredSource, SourceCall},
        },
        validation::{
            known::{BUILT_IN_FINGERPRINT, Known, KnownService, KnownTool, Preflight, Purpose, UsableTool},
            validate,
        },
    },
    catalogue::{CatalogueTool, callable_name},
    connections::Connection,
    error,
    json_schema::JsonSchema,
    models::{
        AutomationId, CheckedTool, ExecutionOrigin, KeyService, Member, OrganizationId, Service, ServiceId,
        ServiceTool, Timestamp, Tool, ToolRef, folded_name,
    },
    tool::Unavailable,
    webhooks::own_name,
};

/// Time for the answer of the polled tool.
const PREFLIGHT_WITHIN: Duration = Duration::from_secs(8);
/// Compiled schemas cached per process.
const MOST_SCHEMAS: usize = 1_000;
/// Services searched for similar tool names, and unknown tools to search for.
const MOST_SERVICES: usize = 3;
const MOST_LOOKED_FOR: usize = 5;

const NOT_LOOKED_FOR: &str =
    "Near names were looked for among the services' tools for the first five unknown tools only.";

struct Rows {
    tools: HashMap<String, ServiceTool>,
    services: Vec<Service>,
    connections: HashMap<ServiceId, Connection>,
}

/// Data for near-name search, read once for all unknown tools.
#[derive(Default)]
struct Near {
    services: Option<Vec<Service>>,
    tools: HashMap<ServiceId, Vec<String>>,
    looked_for: usize,
}

impl Deployment {
    /// Validates a definition against the current tools and services. Calls the polled tool once, if there are no errors.
    pub(super) async fn check(
        &self,
        member: &Member,
        (automation, definition): (AutomationId, &Definition),
        earlier: BTreeMap<String, CheckedTool>,
        purpose: Purpose,
        deadline: Deadline,
    ) -> Result<(Known, Diagnostics)> {
        let looked_up = Box::pin(self.look_up(member.organization_id, definition, earlier, purpose, deadline));
        let awaited = Box::pin(self.awaited_events(member.organization_id, definition, deadline));
        let called = Box::pin(self.called_automations(member.organization_id, automation, definition));
        let (known, hook, awaited, called) =
            join!(looked_up, self.event_hooks.of_trigger(member.organization_id, definition), awaited, called);
        let (mut known, (awaited, hooks)) = (known?, awaited?);
        known.awaited = awaited;
        known.called = called?;
        known.events = self.sample_events(member.organization_id, definition, &known).await;
        let mut diagnostics = Diagnostics::default();
        validate(definition, &known, &mut diagnostics);
        if purpose == Purpose::Saving && !diagnostics.has_errors_at("/trigger_config") {
            known.preflight = Box::pin(self.preflight(member, definition, &known, deadline)).await?;
            if known.preflight != Preflight::NotAsked {
                diagnostics = Diagnostics::default();
                validate(definition, &known, &mut diagnostics);
            }
        }
        if !diagnostics.has_errors() {
            if let Some(Trigger::Webhook { event_type, .. }) = &definition.trigger {
                let warning = hook_warning(event_type, &known.trigger_service, hook, "/trigger_config", false);
                if let Some(warning) = warning {
                    diagnostics.push(warning);
                }
            }
            warn_of_hooks(definition, &known.awaited, &hooks, &mut diagnostics);
        }
        Ok((known, diagnostics))
    }

    /// Events that came, of a type whose fields no description has. A failed look-up gives none.
    async fn sample_events(&self, organization: OrganizationId, definition: &Definition, known: &Known) -> Vec<Value> {
        let Some(Trigger::Webhook { service, event_type, .. }) = &definition.trigger else { return Vec::new() };
        self.samples_of(organization, service, event_type, &known.trigger_service).await
    }

    pub(super) async fn samples_of(
        &self,
        organization: OrganizationId,
        service: &str,
        event_type: &str,
        known: &KnownService,
    ) -> Vec<Value> {
        let described = match known {
            KnownService::OwnHook { .. } => false,
            KnownService::Here { capabilities: Some(capabilities), .. } => {
                let payload = capabilities.webhook_payload_schemas.get(event_type);
                payload.is_some_and(|payload| !payload.trigger_data_fields.is_empty())
            }
            _ => return Vec::new(),
        };
        if described {
            return Vec::new();
        }
        let found = self.events.samples(organization, &folded_name(service), Some(event_type)).await;
        found.unwrap_or_else(|error| {
            tracing::warn!("events of a service could not be looked up: {}", error::chain(&error));
            Vec::new()
        })
    }

    pub(in crate::automation) async fn look_up(
        &self,
        organization: OrganizationId,
        definition: &Definition,
        earlier: BTreeMap<String, CheckedTool>,
        purpose: Purpose,
        deadline: Deadline,
    ) -> Result<Known> {
        let names: Vec<String> = definition.tools().into_keys().collect();
        let trigger_service = definition.trigger.as_ref().and_then(Trigger::service);
        let rows = self.rows(organization, &names, trigger_service, deadline);
        let capabilities = async {
            let Some(service) = trigger_service.filter(|service| own_name(service).is_none()) else { return Ok(None) };
            let found = self.catalogue.services.capabilities(&[service.to_owned()], deadline).await;
            let mut found = found.unwrap_or_else(|error| {
                tracing::warn!("a service's capabilities could not be looked up: {}", error::chain(&error));
                HashMap::new()
            });
            Ok(found.remove(&folded_name(service)))
        };
        let own = self.organizations.own_keys(organization);
        let (rows, capabilities, own) = try_join!(rows, capabilities, own)?;
        let mut tools = HashMap::new();
        let mut unknown = Vec::new();
        for name in names {
            match rows.tools.get(&name) {
                _ if self.catalogue.built_in.has(&name) => unknown.push(name),
                Some(tool) => {
                    let known = self.service_tool(tool, &rows);
                    tools.insert(name, known);
                }
                None => unknown.push(name),
            }
        }
        tools.extend(self.other_tools(organization, unknown, trigger_service, deadline).await?);
        let trigger_service = match trigger_service {
            None => KnownService::NotNamed,
            Some(service) if own_name(service).is_some() => self.own_hook(organization, service).await?,
            Some(name) => self.known_service(name, &rows.services, &rows.connections, capabilities).await,
        };
        Ok(Known {
            tools,
            trigger_service,
            preflight: Preflight::NotAsked,
            events: Vec::new(),
            awaited: HashMap::new(),
            called: HashMap::new(),
            earlier,
            built_in: self.catalogue.built_in.clone(),
            ceilings: own.get(KeyService::Llm).is_none().then(|| self.ceilings.clone()),
            now: Timestamp::now(),
            purpose,
        })
    }

    async fn rows(
        &self,
        organization: OrganizationId,
        names: &[String],
        trigger_service: Option<&str>,
        deadline: Deadline,
    ) -> Result<Rows> {
        let services = &self.catalogue.services;
        let mut asked: Vec<String> = names.to_vec();
        asked.retain(|name| !self.catalogue.built_in.has(name));
        let tools = if asked.is_empty() { HashMap::new() } else { services.tools_named(&asked, deadline).await? };
        let mut of: BTreeSet<String> = tools.values().map(|tool| tool.service_name.clone()).collect();
        // No row of the catalogue describes an own hook.
        of.extend(trigger_service.filter(|service| own_name(service).is_none()).map(str::to_owned));
        let of: Vec<String> = of.into_iter().collect();
        let services = if of.is_empty() { Vec::new() } else { services.named(&of, deadline).await? };
        let connections = self.catalogue.connections.of(organization, &services, deadline).await;
        Ok(Rows { tools, services, connections })
    }

    fn service_tool(&self, tool: &ServiceTool, rows: &Rows) -> KnownTool {
        let service = rows.services.iter().find(|service| service.id == tool.service_id);
        let Some(service) = service.filter(|service| service.is_active && tool.is_active) else {
            return KnownTool::Inactive { service: tool.service_name.clone() };
        };
        let connection = rows.connections.get(&service.id).cloned().unwrap_or(Connection::Unknown);
        let fingerprint = Some(tool.fingerprint.clone());
        KnownTool::Here(Box::new(UsableTool {
            reference: ToolRef::Service { name: tool.name.clone(), fingerprint },
            parameters: tool.parameters.clone(),
            schema: self.schema(&tool.parameters),
            returns: json!({}),
            effect: tool.effect,
            fingerprint: tool.fingerprint.clone(),
            service: Some((service.name.clone(), connection)),
            previous: tool.previous.clone().map(|previous| (previous.fingerprint, previous.parameters)),
        }))
    }

    /// Resolves built-in tools, and the organization's tools by id or name.
    async fn other_tools(
        &self,
        organization: OrganizationId,
        names: Vec<String>,
        trigger_service: Option<&str>,
        deadline: Deadline,
    ) -> Result<HashMap<String, KnownTool>> {
        let mut references: Vec<(String, ToolRef)> = Vec::new();
        let mut by_name: Vec<String> = Vec::new();
        let mut tools = HashMap::new();
        for name in names {
            match self.catalogue.built_in.reference(&name) {
                // Names of service tools were resolved before.
                Ok(ToolRef::Service { .. }) | Err(_) => by_name.push(name),
                Ok(reference) => references.push((name, reference)),
            }
        }
        if !by_name.is_empty() {
            let own = self.catalogue.tools.all(organization).await?;
            let mut near = Near::default();
            for name in by_name {
                let called = |tool: &&Tool| tool.name.as_str() == name || callable_name(tool.name.as_str()) == name;
                let ids: Vec<_> = own.iter().filter(called).map(|tool| tool.id).collect();
                match ids[..] {
                    [id] => references.push((name, ToolRef::Organization { id, version: None })),
                    [] => {
                        let known = self.built_in_or_own_near(&name, &own);
                        let mut others: Vec<String> = known.into_iter().collect();
                        let looked_for = near.looked_for < MOST_LOOKED_FOR;
                        if looked_for {
                            near.looked_for += 1;
                            others.extend(self.service_tools_like(&name, trigger_service, &mut near).await);
                        }
                        let not_searched = (!looked_for).then_some(NOT_LOOKED_FOR);
                        tools.insert(name, KnownTool::NotFound { others, not_searched });
                    }
                    _ => {
                        let ids = ids.iter().map(ToString::to_string).collect();
                        tools.insert(name, KnownTool::Ambiguous { ids });
                    }
                }
            }
        }
        let asked: Vec<ToolRef> = references.iter().map(|(_, reference)| reference.clone()).collect();
        let resolved = self.catalogue.resolve(organization, &asked, deadline).await?;
        for ((name, _), resolved) in references.into_iter().zip(resolved) {
            let known = match resolved {
                Ok(found) => self.found(&found),
                Err(Unavailable::NeedsCall(reason)) => KnownTool::NeedsCall(reason),
                Err(Unavailable::NotFound) => KnownTool::NotFound { others: Vec::new(), not_searched: None },
                Err(Unavailable::Unreadable) => return Err(Error::Unreadable { row: "tool", key: name }),
                Err(why) => KnownTool::Unusable(why.for_author()),
            };
            tools.insert(name, known);
        }
        Ok(tools)
    }

    fn found(&self, found: &CatalogueTool) -> KnownTool {
        let spec = found.spec();
        let fingerprint = match &found.reference {
            ToolRef::BuiltIn(_) => BUILT_IN_FINGERPRINT.to_owned(),
            ToolRef::Organization { version, .. } => format!("v{}", version.unwrap_or_default()),
            ToolRef::Service { fingerprint, .. } => fingerprint.clone().unwrap_or_default(),
        };
        let parameters = spec.parameters.schema().clone();
        KnownTool::Here(Box::new(UsableTool {
            reference: found.reference.clone(),
            schema: self.schema(&parameters),
            parameters,
            returns: spec.returns.clone(),
            effect: spec.acts(),
            fingerprint,
            service: None,
            previous: None,
        }))
    }

    fn built_in_or_own_near(&self, name: &str, own: &[Tool]) -> Option<String> {
        let own: Vec<String> = own.iter().map(|tool| callable_name(tool.name.as_str())).collect();
        let names = self.catalogue.built_in.all_specs().map(|spec| spec.name.as_str());
        let names = names.chain(own.iter().map(String::as_str));
        nearest(name, names).map(str::to_owned)
    }

    /// Active tools of likely services. A failed look-up yields no names.
    async fn service_tools_like(&self, name: &str, trigger_service: Option<&str>, near: &mut Near) -> Vec<String> {
        let name = folded_name(name);
        if near.services.is_none() {
            near.services = Some(self.active_services().await);
        }
        let Near { services, tools: read, .. } = near;
        let meant = services.iter().flatten().filter(|service| {
            let service = folded_name(&service.name);
            let begins = service.split('_').next().is_some_and(|word| name.starts_with(word));
            begins || trigger_service.is_some_and(|named| folded_name(named) == service)
        });
        let mut names = Vec::new();
        for service in meant.take(MOST_SERVICES) {
            let active = match read.entry(service.id) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => {
                    let tools = self.catalogue.services.tools_of(service.id).await.unwrap_or_default();
                    let active = tools.into_iter().filter(|tool| tool.is_active).map(|tool| tool.name);
                    unknown.insert(active.collect())
                }
            };
            names.extend(active.iter().cloned());
        }
        names
    }

    async fn active_services(&self) -> Vec<Service> {
        let mut services = self.catalogue.services.all().await.unwrap_or_else(|error| {
            tracing::warn!("the services could not be listed: {}", error::chain(&error));
            Vec::new()
        });
        services.retain(|service| service.is_active);
        services
    }

    pub(super) async fn own_hook(&self, organization: OrganizationId, service: &str) -> Result<KnownService> {
        let all = self.event_hooks.hooks.own_services(organization).await?;
        let names = all.iter().filter_map(|service| own_name(service)).map(str::to_owned);
        let name = own_name(service).unwrap_or(service).to_owned();
        Ok(KnownService::OwnHook { name, all: names.collect() })
    }

    pub(super) async fn known_service(
        &self,
        name: &str,
        services: &[Service],
        connections: &HashMap<ServiceId, Connection>,
        capabilities: Option<crate::models::ServiceCapabilities>,
    ) -> KnownService {
        match services.iter().find(|service| service.id == ServiceId::of_name(name)) {
            None => {
                let mut others: Vec<String> =
                    self.active_services().await.into_iter().map(|service| service.name).collect();
                others.sort();
                KnownService::Unknown { others }
            }
            Some(service) if !service.is_active => KnownService::Inactive { name: service.name.clone() },
            Some(service) => KnownService::Here {
                name: service.name.clone(),
                connection: connections.get(&service.id).cloned().unwrap_or(Connection::Unknown),
                capabilities: capabilities.map(Box::new),
            },
        }
    }

    /// The tool's schema, compiled once per process; `None` if it cannot be compiled.
    fn schema(&self, parameters: &Value) -> Option<Arc<JsonSchema>> {
        let schema = parameters.to_string();
        let mut schemas = self.schemas.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(compiled) = schemas.get(&schema) {
            return compiled.clone();
        }
        if schemas.len() >= MOST_SCHEMAS {
            schemas.clear();
        }
        let compiled = JsonSchema::compile(parameters).ok().map(Arc::new);
        schemas.insert(schema, compiled.clone());
        compiled
    }

    /// Calls the polled tool once on behalf of the member. Tools with an effect are not called.
    async fn preflight(
        &self,
        member: &Member,
        definition: &Definition,
        known: &Known,
        deadline: Deadline,
    ) -> Result<Preflight> {
        let Some(Trigger::Polling(polling)) = &definition.trigger else { return Ok(Preflight::NotAsked) };
        let name = &polling.source_tool;
        let Some(KnownTool::Here(tool)) = known.tools.get(name) else { return Ok(Preflight::NotAsked) };
        let connected = tool.service.as_ref().is_none_or(|(_, connection)| connection.can_act());
        if tool.effect || !connected || definition.fingerprints.get(name) != Some(&tool.fingerprint) {
            return Ok(Preflight::NotAsked);
        }
        // The automation's owner is unknown here, and another user's answer would prove nothing.
        if texts_of(&Value::Object(polling.tool_params.clone())).iter().any(|text| asks_for_the_user(text)) {
            return Ok(Preflight::NotAsked);
        }
        let nothing = Lowered::default();
        let call = SourceCall {
            organization: member.organization_id,
            user: Some(&member.user_id),
            role: Some(member.role),
            tool: &tool.reference,
            parameters: &polling.tool_params,
            data: &Data::of_trigger(&definition.variables, &nothing, &Value::Null, known.now),
            trigger: ExecutionOrigin::Test,
            fingerprint: &tool.fingerprint,
            earlier: None,
            deadline: deadline.at_most(PREFLIGHT_WITHIN),
        };
        Ok(match Box::pin(self.call_source(call)).await? {
            None | Some(Ok(AnsweredSource::Unchanged)) => Preflight::NotAsked,
            Some(Ok(AnsweredSource::Answer(answer, _))) => Preflight::Answered(answer),
            Some(Err(sentence)) => Preflight::Failed(sentence),
        })
    }
}

fn asks_for_the_user(text: &str) -> bool {
    text.contains("{{") && Template::parse(text).0.paths().any(|path| path.first() == "user")
}
