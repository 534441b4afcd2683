//! Complete tool details, to call a tool or to use it in a definition.

use std::{
    collections::{HashMap, HashSet},
    fmt,
};

use futures_util::future;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    Discovery, MOST_SUGGESTED, did_you_mean,
    index::{self, BUILT_IN},
    language::LanguagePart,
    listed::{ListedTool, NameProblem, ProblemKind, ShownConnection, Source, TOO_LONG, is_too_long, python_bool},
    own_tools::{OwnTool, OwnTools, category, fingerprint},
    python_json::dumps,
};
use crate::{
    Deadline, Error, Result,
    connections::Connection,
    described::Described,
    error,
    models::{OrganizationId, Service, ServiceId, ServiceTool, Tool, ToolId},
    ranking::Names,
    tool::{Parameters, ToolSpec, sample_arguments},
};

/// Per request.
const MOST_NAMES: usize = 200;
/// Unknown names compared with all existing ones.
const MOST_COMPARED: usize = 10;
/// Bytes of JSON per answer, below Lambda's limit of 6 MB, also as text.
const LONGEST_ANSWER: usize = 2_000_000;

/// The requested tools in order, without duplicates.
#[derive(Debug, Clone, PartialEq, Serialize, Described)]
pub struct ToolData {
    pub tools: Vec<ToolDetails>,
    /// Steps of definitions that are no tools, where they were asked for by name (`for_each`, `choose`, `wait`, `cron`,
    /// `expressions`, `conditions`, `catch`), and what `remember` and `recall` are for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub language: Vec<LanguagePart>,
    /// Names that cannot be used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<NameProblem>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Described)]
pub struct ToolDetails {
    /// As it is called.
    pub name: String,
    /// Of a tool of the organization's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<ToolId>,
    pub title: String,
    /// Whole.
    pub description: String,
    pub source: Source,
    pub service: Option<String>,
    /// `read`, `write`, `search` or `delete`; empty if unknown.
    pub category: String,
    /// JSON Schema.
    #[schema(r#type = "object")]
    pub parameters: Value,
    /// The result of the tool: prose, or a JSON Schema.
    pub returns: Value,
    /// The fingerprint for definitions that use the tool; it changes when the tool does.
    pub fingerprint: String,
    pub version: String,
    /// Whether calling it changes something outside.
    pub effect: bool,
    /// Whether its changes may lose data. Unknown tools count as destructive.
    pub destructive: bool,
    /// Whether the same call in one run may be answered from the record.
    pub repeatable: bool,
    /// Null for tools that need no account.
    pub connection: Option<ShownConnection>,
    /// Why it works in phone calls only, to follow "this tool".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs_call: Option<String>,
    pub example: ExampleCall,
}

#[derive(Debug, Clone, PartialEq, Serialize, Described)]
pub struct ExampleCall {
    pub tool: String,
    pub parameters: Map<String, Value>,
}

enum Candidate<'a> {
    Service(&'a ServiceTool, &'a Service),
    Own(&'a OwnTool),
    BuiltIn(&'a ToolSpec),
}

struct Known {
    /// By name in lower case.
    of_services: HashMap<String, ServiceTool>,
    services: HashMap<ServiceId, Service>,
    own: OwnTools,
    by_id: HashMap<ToolId, Result<Tool>>,
}

impl Discovery {
    /// Looks up tools in full: services' and built-in ones by name, the organization's by callable name or id.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for `tool_names` if there are no names or too many.
    pub async fn fetch_tool_data(
        &self,
        organization: OrganizationId,
        names: &[String],
        deadline: Deadline,
    ) -> Result<ToolData> {
        self.fetch_tool_data_within(organization, names, LONGEST_ANSWER, deadline).await
    }

    /// As [`Discovery::fetch_tool_data`], in about `room` bytes; tools left out are named.
    pub async fn fetch_tool_data_within(
        &self,
        organization: OrganizationId,
        names: &[String],
        mut room: usize,
        deadline: Deadline,
    ) -> Result<ToolData> {
        let names = distinct(names)?;
        let short: Vec<String> = names.iter().filter(|name| !is_too_long(name)).cloned().collect();
        let known = known(self, organization, &short, deadline).await?;
        let by_id: HashMap<ToolId, OwnTool> =
            known.by_id.iter().filter_map(|(id, row)| Some((*id, OwnTool::of_row(row.as_ref().ok()?).ok()?))).collect();
        let mut found: Vec<(&str, Result<Candidate<'_>, NameProblem>)> = Vec::new();
        for name in &names {
            let candidate = match name.parse::<ToolId>() {
                Ok(id) => of_id(name, id, &known, &by_id),
                Err(_not_an_id) => of_name(name, &known, &self.built_in),
            };
            found.push((name, candidate));
        }
        let mut services: Vec<Service> = Vec::new();
        for (_, candidate) in &found {
            if let Ok(Candidate::Service(_, service)) = candidate
                && !services.iter().any(|other| other.id == service.id)
            {
                services.push((*service).clone());
            }
        }
        let connections = async {
            if services.is_empty() {
                return HashMap::new();
            }
            self.connections.of(organization, &services, deadline).await
        };
        let is_unknown = |name: &str, found: &Result<Candidate<'_>, NameProblem>| {
            !is_too_long(name)
                && LanguagePart::named(name).is_none()
                && found.as_ref().is_err_and(|problem| problem.problem == ProblemKind::Unknown)
        };
        // The full index is needed only for unknown names.
        let index = async {
            if !found.iter().any(|(name, found)| is_unknown(name, found)) {
                return None;
            }
            let index = self.index(deadline).await;
            index.inspect_err(|error| tracing::warn!("names of tools: {}", error::chain(error))).ok()
        };
        let (connections, index) = future::join(connections, index).await;
        let listed = index.iter().flat_map(|index| &index.segments).flat_map(|segment| &segment.tools);
        let own = known.own.tools.iter().map(|own| own.tool.spec.name.as_str());
        let all = Names::of(listed.map(|tool| tool.name.as_str()).chain(own));
        let (mut compared, were_read) = (0, index.is_some());

        let mut data = ToolData { tools: Vec::new(), language: Vec::new(), problems: Vec::new() };
        let mut answered: HashSet<(Source, String)> = HashSet::new();
        for (name, found) in found {
            match found {
                Ok(candidate) => {
                    let details = candidate.details(&connections);
                    let id = details.id.map_or_else(|| details.name.clone(), |id| id.to_string());
                    if !answered.insert((details.source, id)) {
                        continue;
                    }
                    // Compare both forms: the text has the schema with white space, so it may be longer.
                    let length = details.to_string().len().max(json!(details).to_string().len());
                    if length > room && !data.tools.is_empty() {
                        let message = "this answer is full; ask for this tool in another request".to_owned();
                        data.problems.push(NameProblem::new(name, ProblemKind::LeftOut, message));
                        continue;
                    }
                    room = room.saturating_sub(length);
                    // Memory is two tools, and a part of the language, too.
                    if details.source == Source::BuiltIn {
                        data.language.extend(LanguagePart::named(name));
                    }
                    data.tools.push(details);
                }
                Err(problem) if problem.problem == ProblemKind::Unknown && LanguagePart::named(name).is_some() => {
                    data.language.extend(LanguagePart::named(name));
                }
                Err(problem) if problem.problem == ProblemKind::Unknown => {
                    compared += usize::from(!is_too_long(name));
                    let near = (compared <= MOST_COMPARED).then_some(&all);
                    data.problems.push(unknown(name, near, were_read));
                }
                Err(problem) => data.problems.push(problem),
            }
        }
        Ok(data)
    }
}

fn distinct(names: &[String]) -> Result<Vec<String>> {
    let mut seen = HashSet::new();
    let names = names.iter().map(|name| name.trim()).filter(|name| !name.is_empty());
    let distinct: Vec<String> = names.filter(|name| seen.insert(name.to_lowercase())).map(str::to_owned).collect();
    match distinct.len() {
        0 => Err(Error::invalid("tool_names", "is required: name at least one tool; the search finds tools")),
        given if given > MOST_NAMES => {
            Err(Error::invalid("tool_names", format!("at most {MOST_NAMES} can be asked for at once, not {given}")))
        }
        _ => Ok(distinct),
    }
}

async fn known(
    discovery: &Discovery,
    organization: OrganizationId,
    names: &[String],
    deadline: Deadline,
) -> Result<Known> {
    let ids: Vec<ToolId> = names.iter().filter_map(|name| name.parse().ok()).collect();
    let names: Vec<String> = names.iter().filter(|name| name.parse::<ToolId>().is_err()).cloned().collect();
    let of_services = async {
        if names.is_empty() {
            return Ok((HashMap::new(), Vec::new()));
        }
        future::try_join(discovery.services.tools_named(&names, deadline), discovery.services.all()).await
    };
    let own = async {
        if names.is_empty() { Ok(OwnTools::default()) } else { OwnTools::read(&discovery.tools, organization).await }
    };
    let by_id = async {
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        discovery.tools.find_each(organization, &ids, deadline).await
    };
    let ((of_services, services), own, by_id) = future::try_join3(of_services, own, by_id).await?;
    Ok(Known {
        of_services: of_services.into_values().map(|tool| (tool.name.to_lowercase(), tool)).collect(),
        services: services.into_iter().map(|service| (service.id, service)).collect(),
        own,
        by_id,
    })
}

fn of_id<'a>(
    name: &str,
    id: ToolId,
    known: &Known,
    by_id: &'a HashMap<ToolId, OwnTool>,
) -> Result<Candidate<'a>, NameProblem> {
    match (by_id.get(&id), known.by_id.get(&id)) {
        (Some(tool), _) => Ok(Candidate::Own(tool)),
        (None, Some(_)) => {
            let message =
                "this tool was written by a newer version of this service, or is damaged; try again in a few minutes";
            Err(NameProblem::new(name, ProblemKind::Unreadable, message.to_owned()))
        }
        (None, None) => Err(NameProblem::new(name, ProblemKind::Unknown, String::new())),
    }
}

fn of_name<'a>(
    name: &str,
    known: &'a Known,
    built_in: &'a crate::catalogue::BuiltInTools,
) -> Result<Candidate<'a>, NameProblem> {
    let of_service = known.of_services.get(&name.to_lowercase());
    let active = of_service.filter(|tool| tool.is_active).and_then(|tool| {
        let service = known.services.get(&tool.service_id).filter(|service| service.is_active)?;
        Some(Candidate::Service(tool, service))
    });
    let built_in = built_in.all_specs().find(|spec| spec.name.eq_ignore_ascii_case(name)).map(Candidate::BuiltIn);
    let own = known.own.tools.iter().filter(|own| own.is_named(name)).map(Candidate::Own);
    let mut candidates: Vec<Candidate<'a>> = active.into_iter().chain(built_in).chain(own).collect();
    match (candidates.len(), of_service) {
        (0, Some(tool)) => {
            let message = format!("this tool of {} is not active: it cannot be used at present", tool.service_name);
            Err(NameProblem::new(name, ProblemKind::Inactive, message))
        }
        (0, None) => Err(NameProblem::new(name, ProblemKind::Unknown, String::new())),
        (1, _) => candidates.pop().ok_or_else(|| NameProblem::new(name, ProblemKind::Unknown, String::new())),
        (many, _) => {
            let candidates: Vec<ListedTool> = candidates.iter().map(Candidate::listed).collect();
            let message = format!(
                "{many} tools have this name: {}; name the organization's by its id, or give it another name to use the other",
                candidates.iter().map(whose).collect::<Vec<_>>().join(", ")
            );
            Err(NameProblem { candidates, ..NameProblem::new(name, ProblemKind::Ambiguous, message) })
        }
    }
}

fn whose(tool: &ListedTool) -> String {
    match (&tool.id, &tool.service) {
        (Some(id), _) => format!("the organization's \"{}\" (id {id})", tool.title),
        (None, Some(service)) => format!("{service}'s"),
        (None, None) => "the built-in one".to_owned(),
    }
}

/// `all` is `None` for a name that is not compared.
fn unknown(name: &str, all: Option<&Names<'_>>, were_read: bool) -> NameProblem {
    if is_too_long(name) {
        return NameProblem::new(name, ProblemKind::Unknown, format!("there is no tool of this name; {TOO_LONG}"));
    }
    let near = all.map(|all| all.nearest(name, MOST_SUGGESTED)).unwrap_or_default();
    let near: Vec<String> = near.into_iter().map(str::to_owned).collect();
    let next_step = match near.as_slice() {
        [] if all.is_none() => {
            format!("near names are given for the first {MOST_COMPARED} unknown names; ask for this one by itself")
        }
        [] if were_read => "search for one by its purpose".to_owned(),
        [] => "which names are near could not be read".to_owned(),
        near => did_you_mean(near),
    };
    let message = format!("there is no tool of this name; {next_step}");
    NameProblem { did_you_mean: near, ..NameProblem::new(name, ProblemKind::Unknown, message) }
}

impl Candidate<'_> {
    fn listed(&self) -> ListedTool {
        match self {
            Self::Own(tool) => tool.listed(),
            Self::BuiltIn(spec) => index::built_in(spec),
            Self::Service(tool, service) => ListedTool {
                name: tool.name.clone(),
                id: None,
                title: tool.title.clone(),
                description: super::listed::shortened(&tool.description),
                source: Source::Service,
                service: Some(service.name.clone()),
                category: tool.category.clone(),
                fingerprint: tool.fingerprint.clone(),
                version: tool.version.clone(),
                effect: tool.effect,
                destructive: tool.destructive,
                needs_call: None,
            },
        }
    }

    fn details(&self, connections: &HashMap<ServiceId, Connection>) -> ToolDetails {
        match self {
            Self::Own(own) => {
                let (fingerprint, version) = (fingerprint(own.bound_version), own.version.to_string());
                ToolDetails {
                    id: Some(own.tool.id),
                    title: own.label.clone(),
                    needs_call: own.needs_call.clone(),
                    ..ToolDetails::of_spec(&own.tool.spec, Source::Organization, fingerprint, version)
                }
            }
            Self::BuiltIn(spec) => {
                ToolDetails::of_spec(spec, Source::BuiltIn, BUILT_IN.to_owned(), BUILT_IN.to_owned())
            }
            Self::Service(tool, service) => {
                let connection = connections.get(&service.id).cloned().unwrap_or(Connection::Unknown);
                let sample = || sample_arguments(&Parameters::of_schema(tool.parameters.clone()));
                let example = tool.examples.first().cloned().unwrap_or_else(sample);
                ToolDetails {
                    name: tool.name.clone(),
                    id: None,
                    title: tool.title.clone(),
                    description: tool.description.clone(),
                    source: Source::Service,
                    service: Some(service.name.clone()),
                    category: tool.category.clone(),
                    parameters: tool.parameters.clone(),
                    returns: tool.returns.clone().into(),
                    fingerprint: tool.fingerprint.clone(),
                    version: tool.version.clone(),
                    effect: tool.effect,
                    destructive: tool.destructive,
                    repeatable: !tool.effect,
                    connection: Some(ShownConnection::new(service, connection)),
                    needs_call: None,
                    example: ExampleCall { tool: tool.name.clone(), parameters: example },
                }
            }
        }
    }
}

impl ToolDetails {
    fn of_spec(spec: &ToolSpec, source: Source, fingerprint: String, version: String) -> Self {
        Self {
            name: spec.name.clone(),
            id: None,
            title: String::new(),
            description: spec.description.clone(),
            source,
            service: None,
            category: category(spec).to_owned(),
            parameters: spec.parameters.schema().clone(),
            returns: spec.returns.clone(),
            fingerprint,
            version,
            effect: spec.acts(),
            destructive: spec.acts(),
            repeatable: spec.is_repeatable(),
            connection: None,
            needs_call: None,
            example: ExampleCall { tool: spec.name.clone(), parameters: sample_arguments(&spec.parameters) },
        }
    }
}

impl fmt::Display for ToolDetails {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let returns = self.returns.as_str().map_or_else(|| self.returns.to_string(), str::to_owned);
        write!(f, "\n## {}\n{}\n", self.name, self.description)?;
        write!(f, "Parameters: {}\nReturns: {returns}\n", dumps(&self.parameters))?;
        // Agents know this layout, so additions follow after it.
        let whose = self.service.as_deref().unwrap_or(match self.source {
            Source::BuiltIn => "built-in",
            _ => "the organization's own",
        });
        writeln!(f, "Service: {whose}")?;
        if let Some(connection) = &self.connection {
            writeln!(f, "Connected: {}", connection.to_text())?;
        }
        if let Some(id) = &self.id {
            writeln!(f, "Id: {id}")?;
        }
        write!(f, "Fingerprint: {}\nVersion: {}\n", self.fingerprint, self.version)?;
        for (name, value) in
            [("Effect", self.effect), ("Destructive", self.destructive), ("Repeatable", self.repeatable)]
        {
            writeln!(f, "{name}: {}", python_bool(value))?;
        }
        if let Some(reason) = &self.needs_call {
            writeln!(f, "Phone Calls Only: this tool {reason}")?;
        }
        let call = serde_json::to_string(&self.example).unwrap_or_default();
        writeln!(f, "Example: {call}")
    }
}

impl ToolData {
    pub fn to_text(&self) -> String {
        let tools: String = self.tools.iter().map(ToString::to_string).collect();
        let language: String = self.language.iter().map(ToString::to_string).collect();
        tools + &language + &NameProblem::to_text(&self.problems)
    }
}
