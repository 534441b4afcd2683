//! Overviews of services: tools, triggers, and the organization's connection.

use std::{
    collections::HashMap,
    fmt::{self, Display},
    str::FromStr,
};

use futures_util::future;
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Discovery,
    arrivals::{Arrival, arrivals},
    capabilities, did_you_mean,
    listed::{
        HOW_TO_READ_ALL, ListedTool, NameProblem, ProblemKind, ShownConnection, TOO_LONG, is_too_long, python_bool,
    },
    nearest_services,
};
use crate::{
    Deadline, Error, Result,
    connections::Connection,
    cut::cut,
    described::Described,
    error,
    models::{ConnectionKind, ListedServiceTool, OrganizationId, Service, ServiceCapabilities, ServiceId, folded_name},
    store::{Cursor, NotAPlace},
};

/// Per request.
const MOST_SERVICES: usize = 20;
/// Bytes of JSON per answer, capabilities included: a client passes it to the agent whole, with some overhead. The text is
/// shorter.
const LONGEST_PAGE: usize = 35_000;
/// In place of a service, asks for the page about definitions.
const GUIDE_NAME: &str = "automations";
const GUIDE: &str = include_str!("guide.md");
/// Bytes of an example event in the text.
const LONGEST_EXAMPLE: usize = 2_000;

/// The requested services in order, without duplicates.
#[derive(Debug, Clone, PartialEq, Serialize, Described)]
pub struct ServiceOverviews {
    pub services: Vec<ServiceOverview>,
    /// The language of definitions on one page in Markdown; for the name `automations`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guide: Option<&'static str>,
    /// Names of no active service.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<NameProblem>,
    /// Where the next page begins; null on the last one.
    pub next_cursor: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Described)]
pub struct ServiceOverview {
    pub name: String,
    pub description: String,
    pub categories: Vec<String>,
    pub connection_kind: ConnectionKind,
    pub connection: ShownConnection,
    /// Active tools by name, as many as fit.
    pub tools: Vec<ListedTool>,
    /// How many tools can be used.
    pub total: usize,
    /// Triggers of the service for automations; null if they are unknown or could not be read.
    pub capabilities: Option<ServiceCapabilities>,
    /// How its events arrive; empty where that is not known.
    pub arrivals: Vec<Arrival>,
    /// That they could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities_problem: Option<String>,
}

impl Discovery {
    /// Looks up services and their tools, by any number of names in any case; `cursor`: the page at a `next_cursor`.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for `service` if there are no names or too many, and for `cursor`.
    pub async fn initial_md_fetch(
        &self,
        organization: OrganizationId,
        names: &[String],
        cursor: Option<&str>,
        deadline: Deadline,
    ) -> Result<ServiceOverviews> {
        let names = distinct(names)?;
        let start = cursor.map(|cursor| Start::of(cursor, &names)).transpose()?;
        let (first, mut start) = start.unwrap_or_default();
        let names = names.get(first..).unwrap_or_default();
        let possible: Vec<String> = names.iter().filter(|name| may_be(name) && !is_the_guide(name)).cloned().collect();
        let ids = possible.iter().map(|name| self.services.tools_of(ServiceId::of_name(name)));
        let (services, capabilities, tools) = future::join3(
            self.services.named(&possible, deadline),
            capabilities(&self.services, &possible, deadline),
            future::try_join_all(ids),
        )
        .await;
        let mut tools: HashMap<ServiceId, Vec<ListedServiceTool>> =
            possible.iter().map(|name| ServiceId::of_name(name)).zip(tools?).collect();
        let services: HashMap<ServiceId, Service> =
            services?.into_iter().map(|service| (service.id, service)).collect();
        let active: Vec<Service> = services.values().filter(|service| service.is_active).cloned().collect();
        // The full list is needed only for unknown names.
        let all = async { if services.len() == possible.len() { Ok(Vec::new()) } else { self.services.all().await } };
        let connections = async {
            if active.is_empty() { HashMap::new() } else { self.connections.of(organization, &active, deadline).await }
        };
        let (mut connections, all) = future::join(connections, all).await;
        let all =
            all.inspect_err(|error| tracing::warn!("names of services: {}", error::chain(error))).unwrap_or_default();

        let mut overviews =
            ServiceOverviews { services: Vec::new(), guide: None, problems: Vec::new(), next_cursor: None };
        let mut room = LONGEST_PAGE;
        for name in names {
            let after = start.take();
            if is_the_guide(name) {
                overviews.guide = Some(GUIDE);
                continue;
            }
            let Some(service) = services.get(&ServiceId::of_name(name)) else {
                overviews.problems.push(unknown(name, &all));
                continue;
            };
            if !service.is_active {
                let message = format!("{} is not active: its tools cannot be used at present", service.name);
                overviews.problems.push(NameProblem::new(name, ProblemKind::Inactive, message));
                continue;
            }
            let connection = connections.remove(&service.id).unwrap_or(Connection::Unknown);
            let (of_service, problem) = match &capabilities {
                Some(all) => (all.get(&folded_name(&service.name)).cloned(), None),
                None => (
                    None,
                    Some(format!("the capabilities of {} could not be read; try again in a moment", service.name)),
                ),
            };
            let mut overview = ServiceOverview {
                name: service.name.clone(),
                description: service.description.clone(),
                categories: service.categories.clone(),
                connection_kind: service.connection.clone(),
                connection: ShownConnection::new(service, connection),
                tools: Vec::new(),
                total: 0,
                arrivals: arrivals(&service.name, of_service.as_ref()),
                capabilities: of_service,
                capabilities_problem: problem,
            };
            let head = json!(overview).to_string().len();
            if head > room && !overviews.services.is_empty() {
                overviews.next_cursor = Some(Start::cursor(&service.name, ""));
                break;
            }
            room = room.saturating_sub(head);
            let tools = tools.remove(&service.id).unwrap_or_default();
            let (total, tools, last) = fitting(tools, after.as_deref(), &mut room);
            (overview.tools, overview.total) = (tools, total);
            overviews.services.push(overview);
            if let Some(last) = last {
                overviews.next_cursor = Some(Start::cursor(&service.name, &last));
                break;
            }
        }
        Ok(overviews)
    }
}

fn is_the_guide(name: &str) -> bool {
    folded_name(name) == GUIDE_NAME
}

fn distinct(names: &[String]) -> Result<Vec<String>> {
    let mut distinct: Vec<String> = Vec::new();
    for name in names.iter().filter(|name| !name.trim().is_empty()) {
        if !distinct.iter().any(|other| folded_name(other) == folded_name(name)) {
            distinct.push(name.clone());
        }
    }
    match distinct.len() {
        0 => Err(Error::invalid("service", "is required: name at least one; GET /api/{slug}/services lists them")),
        given if given > MOST_SERVICES => {
            Err(Error::invalid("service", format!("at most {MOST_SERVICES} can be asked for at once, not {given}")))
        }
        _ => Ok(distinct),
    }
}

fn may_be(name: &str) -> bool {
    !is_too_long(name) && !folded_name(name).is_empty()
}

fn unknown(name: &str, all: &[Service]) -> NameProblem {
    if is_too_long(name) {
        let message = format!("there is no service of this name; {TOO_LONG}");
        return NameProblem::new(name, ProblemKind::Unknown, message);
    }
    let near = nearest_services(name, all);
    let next_step = match near.as_slice() {
        [] => "GET /api/{slug}/services lists the services".to_owned(),
        near => did_you_mean(near),
    };
    let message = format!("there is no service of this name; {next_step}");
    NameProblem { did_you_mean: near, ..NameProblem::new(name, ProblemKind::Unknown, message) }
}

/// The number of active tools, the tools after `after` that fit (at least one), and the name of the last one if more follow.
fn fitting(
    tools: Vec<ListedServiceTool>,
    after: Option<&str>,
    room: &mut usize,
) -> (usize, Vec<ListedTool>, Option<String>) {
    let active: Vec<ListedServiceTool> = tools.into_iter().filter(|tool| tool.is_active).collect();
    let total = active.len();
    let left = active.into_iter().filter(|tool| after.is_none_or(|after| tool.name.as_str() > after));
    let mut last = after.unwrap_or_default().to_owned();
    let mut listed = Vec::new();
    for tool in left {
        let tool = ListedTool::of_service(tool);
        let length = json!(tool).to_string().len() + 1;
        if length > *room && !listed.is_empty() {
            return (total, listed, Some(last));
        }
        *room = room.saturating_sub(length);
        last.clone_from(&tool.name);
        listed.push(tool);
    }
    (total, listed, None)
}

struct Start {
    /// Folded name of the first service.
    service: String,
    /// The last tool of the previous page, if it was one of this service.
    after: String,
}

impl Start {
    fn cursor(service: &str, after: &str) -> String {
        Cursor(Self { service: folded_name(service), after: after.to_owned() }).to_string()
    }

    /// The index of the first service among `names`, and the last tool of the previous page.
    fn of(cursor: &str, names: &[String]) -> Result<(usize, Option<String>)> {
        const WRONG: &str = "is not a next_cursor of these services; repeat the names that it was given with";
        let Cursor(Self { service, after }) = Cursor::parse_or(cursor, WRONG)?;
        let service = names.iter().position(|name| folded_name(name) == service);
        let service = service.ok_or_else(|| Error::invalid("cursor", WRONG))?;
        Ok((service, Some(after).filter(|after| !after.is_empty())))
    }
}

impl Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.service, self.after)
    }
}

impl FromStr for Start {
    type Err = NotAPlace;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (service, after) = text.rsplit_once(' ').ok_or(NotAPlace)?;
        Ok(Self { service: service.to_owned(), after: after.to_owned() })
    }
}

impl ServiceOverviews {
    pub fn to_text(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for ServiceOverviews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.guide.unwrap_or_default())?;
        for (number, service) in self.services.iter().enumerate() {
            let apart = if number == 0 && self.guide.is_none() { "" } else { "\n\n" };
            write!(f, "{apart}{service}")?;
        }
        f.write_str(&NameProblem::to_text(&self.problems))?;
        if let Some(cursor) = &self.next_cursor {
            write!(f, "\nThere are more tools or services: ask again for the same services with cursor {cursor}\n")?;
        }
        if self.services.iter().flat_map(|service| &service.tools).any(ListedTool::is_shortened) {
            write!(f, "\n{HOW_TO_READ_ALL}\n")?;
        }
        Ok(())
    }
}

impl fmt::Display for ServiceOverview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Available {} tools:", self.name)?;
        for tool in &self.tools {
            writeln!(f, "- {}: {}", tool.name, tool.description)?;
        }
        if let Some(problem) = &self.capabilities_problem {
            write!(f, "\n\nService Capabilities:\n- Not known: {problem}\n")?;
        }
        if let Some(capabilities) = &self.capabilities {
            known_capabilities(f, capabilities)?;
            further_capabilities(f, capabilities)?;
        }
        if !self.arrivals.is_empty() {
            f.write_str("\nHow Events Arrive:\n")?;
        }
        for arrival in &self.arrivals {
            writeln!(f, "- {arrival}")?;
        }
        write!(f, "\nConnection:\n- Connected: {}\n", self.connection.to_text())?;
        if self.tools.len() < self.total {
            write!(f, "\nListed here are {} of {} tools.\n", self.tools.len(), self.total)?;
        }
        Ok(())
    }
}

/// Agents know this layout, so additions follow after it.
fn known_capabilities(f: &mut fmt::Formatter<'_>, capabilities: &ServiceCapabilities) -> fmt::Result {
    f.write_str("\n\nService Capabilities:\n")?;
    writeln!(f, "- Supports Webhooks: {}", python_bool(capabilities.supports_webhooks))?;
    writeln!(f, "- Supports Polling: {}", python_bool(capabilities.supports_polling))?;
    if !capabilities.notes.is_empty() {
        writeln!(f, "- Notes: {}", capabilities.notes)?;
    }
    if capabilities.supports_webhooks && !capabilities.webhook_payload_schemas.is_empty() {
        f.write_str("\nWebhook Payload Schemas:\n")?;
        for (event, schema) in &capabilities.webhook_payload_schemas {
            write!(f, "\n  {event}:\n    Description: {}\n    Available fields:\n", schema.description)?;
            for (field, description) in &schema.trigger_data_fields {
                writeln!(f, "      - {field}: {description}")?;
            }
        }
    }
    Ok(())
}

fn further_capabilities(f: &mut fmt::Formatter<'_>, capabilities: &ServiceCapabilities) -> fmt::Result {
    if capabilities.supports_webhooks {
        let events = &capabilities.webhook_payload_schemas;
        let examples: Vec<_> =
            events.iter().filter(|(_, event)| event.example_condition.is_some() || event.example.is_some()).collect();
        if !examples.is_empty() {
            f.write_str("\nWebhook Examples:\n")?;
        }
        for (name, event) in examples {
            write!(f, "\n  {name}:\n")?;
            if let Some(condition) = &event.example_condition {
                writeln!(f, "    Condition: {condition}")?;
            }
            if let Some(example) = &event.example {
                writeln!(f, "    Event: {}", cut(example.to_string(), LONGEST_EXAMPLE))?;
            }
            if let Some(trigger) = &event.deployed_trigger {
                writeln!(f, "    trigger_config.params (JSON schema): {}", trigger.parameters)?;
            }
        }
        let others: Vec<&str> = capabilities
            .webhook_events
            .iter()
            .filter(|event| !events.contains_key(*event))
            .map(String::as_str)
            .collect();
        if !others.is_empty() {
            write!(f, "\nWebhook Events whose fields are not described: {}\n", others.join(", "))?;
        }
    }
    if capabilities.supports_polling && !capabilities.polling_endpoints.is_empty() {
        f.write_str("\nPolling Events:\n")?;
        for (event, endpoint) in &capabilities.polling_endpoints {
            write!(f, "\n  {event}:\n")?;
            match endpoint {
                Value::Object(members) => {
                    for (name, value) in members {
                        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                        writeln!(f, "    {name}: {value}")?;
                    }
                }
                other => writeln!(f, "    {other}")?,
            }
        }
    }
    Ok(())
}
