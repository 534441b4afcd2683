//! Search for tools by their purpose.

use std::{
    collections::{HashMap, HashSet},
    fmt::{self, Display},
    str::FromStr,
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use futures_util::future;
use ring::digest::{Context, Digest, SHA256, digest};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Discovery, did_you_mean,
    index::{Ranked, Segment, ToolIndex},
    listed::{HOW_TO_READ_ALL, ListedTool, ShownConnection, python_bool},
    nearest_services,
    own_tools::OwnTools,
};
use crate::{
    Deadline, Error, Result,
    connections::Connection,
    declared::{self, Body, Given, Text, Whole},
    described::Described,
    error::Problems,
    fields::Fields,
    models::{OrganizationId, Service, ServiceId, folded_name},
    names::{Names, UnknownName},
    store::{Cursor, NotAPlace},
};

/// In characters.
const LONGEST_QUERY: usize = 500;
const MOST_SERVICES: usize = 50;
const LONGEST_SERVICE: usize = 100;
const USUAL_PAGE: u32 = 10;
const LARGEST_PAGE: u32 = 100;
/// Bytes of JSON per page: a client passes it to the agent whole, with some overhead.
const LONGEST_PAGE: usize = 45_000;

/// Without `q`, all tools that pass the filters, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolSearch {
    pub q: String,
    pub services: Vec<String>,
    pub category: Option<String>,
    pub trigger: Option<TriggerKind>,
    /// Whether the organization's account is connected, if one is needed.
    pub connected: Option<bool>,
    /// 1 to 100, default 10.
    pub limit: Option<u32>,
    pub cursor: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Described, Names)]
#[serde(rename_all = "snake_case")]
pub enum TriggerKind {
    Webhook,
    Polling,
}

/// The body of a search.
#[derive(Debug, Body)]
#[schema(name = "ToolSearch")]
pub struct SearchBody {
    /// Words that describe the tool's task.
    q: Option<Text<LONGEST_QUERY>>,
    services: Option<ServiceNames>,
    /// Of the tool or of its service.
    category: Option<Text<100>>,
    /// How an automation can begin at the service.
    trigger: Option<TriggerKind>,
    /// Whether the organization's account is connected, if one is needed.
    connected: Option<bool>,
    #[schema(default = USUAL_PAGE)]
    limit: Option<Whole<1, LARGEST_PAGE>>,
    /// The `next_cursor` of the page before.
    cursor: Option<Text<200>>,
}

#[derive(Debug)]
pub struct ServiceNames(Vec<String>);

crate::described!(ServiceNames => {
    "type": "array", "maxItems": MOST_SERVICES, "items": {"type": "string", "maxLength": LONGEST_SERVICE}
});

impl Given for TriggerKind {
    fn read(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        let kind = fields.text(name, 20)?.parse();
        kind.map_err(|unknown: UnknownName| fields.problem(name, unknown.to_string())).ok()
    }
}

impl Given for ServiceNames {
    fn read(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        let services = fields.texts(name, "names", LONGEST_SERVICE)?;
        if services.len() > MOST_SERVICES {
            fields.problem(name, format!("must have at most {MOST_SERVICES} names"));
        }
        Some(Self(services))
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Described)]
pub struct FoundTools {
    #[schema(maxItems = LARGEST_PAGE)]
    pub items: Vec<FoundTool>,
    /// On all pages.
    pub total: usize,
    /// Where the next page begins; null on the last one.
    pub next_cursor: Option<String>,
    /// Words of `q` that no tool has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub corrected: Vec<Correction>,
    /// Notes on this answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Described)]
pub struct FoundTool {
    #[serde(flatten)]
    pub tool: ListedTool,
    /// Null for tools that need no account.
    pub connection: Option<ShownConnection>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Described)]
pub struct Correction {
    pub word: String,
    pub taken_as: Vec<String>,
}

impl ToolSearch {
    /// # Errors
    /// [`Error::Invalid`] with every wrong field.
    pub fn of_json(body: &Value) -> Result<Self> {
        let SearchBody { q, services, category, trigger, connected, limit, cursor } = declared::read(body, |_, _| ())?;
        Ok(Self {
            q: q.map(String::from).unwrap_or_default(),
            services: services.map(|ServiceNames(names)| names).unwrap_or_default(),
            category: category.map(String::from),
            trigger,
            connected,
            limit: limit.map(|Whole(limit)| limit),
            cursor: cursor.map(String::from),
        })
    }

    /// The beginning of the page; `None` for the first. Rejects the cursor of another search.
    fn place(&self) -> Result<Option<Place>> {
        const WRONG: &str = "is not a next_cursor of this search; repeat the search that gave it, or leave it out";
        let Some(cursor) = &self.cursor else { return Ok(None) };
        let Cursor(place) = Cursor::<Place>::parse_or(cursor, WRONG)?;
        if place.search == self.digest() { Ok(Some(place)) } else { Err(Error::invalid("cursor", WRONG)) }
    }

    /// Identifies the search, independent of the page.
    fn digest(&self) -> String {
        let trigger = self.trigger.map(|trigger| trigger == TriggerKind::Webhook);
        let what = json!([self.q, self.services, self.category, trigger, self.connected]).to_string();
        short(digest(&SHA256, what.as_bytes()))
    }
}

struct Place {
    offset: usize,
    search: String,
    list: String,
}

impl Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.offset, self.search, self.list)
    }
}

impl FromStr for Place {
    type Err = NotAPlace;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<&str> = text.split(' ').collect();
        let [offset, search, list] = parts[..] else { return Err(NotAPlace) };
        let offset = offset.parse().map_err(|_not_a_number| NotAPlace)?;
        Ok(Self { offset, search: search.to_owned(), list: list.to_owned() })
    }
}

/// Identifies the ordered results. After a change (of the catalogue, the organization's tools or a connection) a page would no
/// longer continue the previous one.
fn digest_of(found: &[(&Segment, &ListedTool)]) -> String {
    let mut context = Context::new(&SHA256);
    for (segment, tool) in found {
        let own = tool.id.map(|id| id.to_string());
        let service = segment.service.as_ref().map(|service| service.name.as_str());
        for part in [own.as_deref(), service, Some(&tool.name)] {
            context.update(part.unwrap_or_default().as_bytes());
            context.update(&[0]);
        }
    }
    short(context.finish())
}

fn short(digest: Digest) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(digest.as_ref().get(..6).unwrap_or_default())
}

impl Discovery {
    /// Finds matching tools, best first.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for an unknown service, and for `cursor`.
    pub async fn search(
        &self,
        organization: OrganizationId,
        search: &ToolSearch,
        deadline: Deadline,
    ) -> Result<FoundTools> {
        let place = search.place()?;
        let (index, own) = future::try_join(self.index(deadline), OwnTools::read(&self.tools, organization)).await?;
        let index = index.with(Segment::of_organization(&own));
        let of_services = filtered(search, &index)?;
        let mut notes = Vec::new();
        if own.unreadable > 0 {
            notes.push(format!(
                "{} of the organization's tools cannot be read just now and are left out.",
                own.unreadable
            ));
        }
        let is_asked = |service: &&Service| of_services.is_empty() || of_services.contains(&service.id);
        let services = index.segments.iter().filter_map(|segment| segment.service.as_ref());
        let asked: Vec<Service> = services.filter(is_asked).cloned().collect();
        let connections = match search.connected {
            Some(_) => self.connections.of(organization, &asked, deadline).await,
            None => HashMap::new(),
        };
        let connected = |service: &Service| connections.get(&service.id).unwrap_or(&Connection::Unknown);
        let category = search.category.as_deref().map(folded_name);
        let passes_service = |segment: &Segment| {
            let Some(service) = &segment.service else {
                return of_services.is_empty() && search.trigger.is_none() && search.connected != Some(false);
            };
            let trigger = match (search.trigger, segment.triggers) {
                (None, _) | (Some(_), None) => true,
                (Some(TriggerKind::Webhook), Some(triggers)) => triggers.webhook,
                (Some(TriggerKind::Polling), Some(triggers)) => triggers.polling,
            };
            let connection = search.connected.is_none_or(|wanted| {
                let connection = connected(service);
                *connection == Connection::Unknown || connection.can_act() == wanted
            });
            trigger && connection && (of_services.is_empty() || of_services.contains(&service.id))
        };
        let narrowed: Vec<&Segment> =
            index.segments.iter().map(AsRef::as_ref).filter(|segment| passes_service(segment)).collect();
        let of_category = |segment: &Segment, tool: &ListedTool| {
            category.as_ref().is_none_or(|wanted| {
                let of_service = segment.service.iter().flat_map(|service| &service.categories);
                folded_name(&tool.category) == *wanted || of_service.into_iter().any(|of| folded_name(of) == *wanted)
            })
        };
        let ranked = index.rank(&search.q, &narrowed, of_category);
        notes.extend(notes_on(search, &index, &narrowed, &ranked, &connections));
        let limit = search.limit.unwrap_or(USUAL_PAGE) as usize;
        let total = ranked.found.len();
        let offset = place.as_ref().map_or(0, |place| place.offset);
        let list = if place.is_some() || total > limit { digest_of(&ranked.found) } else { String::new() };
        if place.is_some_and(|place| place.list != list) {
            return Err(Error::invalid("cursor", "the tools have changed; begin again without cursor"));
        }
        let page: Vec<(&Segment, &ListedTool)> = ranked.found.iter().skip(offset).take(limit).copied().collect();
        let mut shown: Vec<Service> = Vec::new();
        for service in page.iter().filter_map(|(segment, _)| segment.service.as_ref()) {
            if !shown.iter().any(|other| other.id == service.id) {
                shown.push(service.clone());
            }
        }
        let connections = match search.connected {
            Some(_) => connections,
            None if shown.is_empty() => connections,
            None => self.connections.of(organization, &shown, deadline).await,
        };
        let items = page.into_iter().map(|(segment, tool)| FoundTool {
            tool: tool.clone(),
            connection: segment.service.as_ref().map(|service| {
                let connection = connections.get(&service.id).cloned().unwrap_or(Connection::Unknown);
                ShownConnection::new(service, connection)
            }),
        });
        let mut room = LONGEST_PAGE;
        let has_room = |item: &FoundTool| {
            let length = json!(item).to_string().len();
            // The first entry always fits, or paging would stop.
            let fits = length <= room || room == LONGEST_PAGE;
            room = room.saturating_sub(length);
            fits
        };
        let items: Vec<FoundTool> = items.take_while(has_room).collect();
        notes.extend(ambiguous(&items, &index, &own));
        let next = offset + items.len();
        let next_cursor = (next < total && !items.is_empty()).then(|| {
            let list = if list.is_empty() { digest_of(&ranked.found) } else { list };
            Cursor(Place { offset: next, search: search.digest(), list }).to_string()
        });
        let corrected = ranked.corrected.into_iter().map(|(word, taken_as)| Correction { word, taken_as });
        Ok(FoundTools { next_cursor, items, total, corrected: corrected.collect(), notes })
    }
}

/// Warns of tools that share a name with one of the organization's: such a name identifies none of them.
fn ambiguous(items: &[FoundTool], index: &ToolIndex, own: &OwnTools) -> Option<String> {
    let own: HashSet<String> = own.tools.iter().map(|own| own.tool.spec.name.to_lowercase()).collect();
    let named = index.segments.iter().flat_map(|segment| &segment.tools).map(|tool| tool.name.to_lowercase());
    let mut times: HashMap<String, usize> = HashMap::new();
    for name in named.filter(|name| own.contains(name)) {
        *times.entry(name).or_default() += 1;
    }
    let several = |tool: &ListedTool| times.get(&tool.name.to_lowercase()).is_some_and(|times| *times > 1);
    let mut names: Vec<&str> =
        items.iter().map(|item| &item.tool).filter(|tool| several(tool)).map(|tool| tool.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let names = names.join(", ");
    let note = format!("Several tools are named {names}: name the organization's by its id, or give it another name.");
    (!names.is_empty()).then_some(note)
}

/// The services in the filter; empty for all.
fn filtered(search: &ToolSearch, index: &ToolIndex) -> Result<Vec<ServiceId>> {
    let (mut found, mut problems) = (Vec::new(), Problems::default());
    for (number, name) in search.services.iter().enumerate() {
        let id = ServiceId::of_name(name);
        let problem = match index.services.iter().find(|service| service.id == id) {
            Some(service) if service.is_active => {
                found.push(id);
                continue;
            }
            Some(service) => format!("{} is not active: its tools cannot be used at present", service.name),
            None => {
                let near = did_you_mean(&nearest_services(name, &index.services));
                let near =
                    if near.is_empty() { "GET /api/{slug}/services lists the services".to_owned() } else { near };
                format!("is not a service; {near}")
            }
        };
        problems.add(format!("services[{number}]"), problem);
    }
    problems.into_result(Some(found))
}

fn notes_on(
    search: &ToolSearch,
    index: &ToolIndex,
    narrowed: &[&Segment],
    ranked: &Ranked<'_>,
    connections: &HashMap<ServiceId, Connection>,
) -> Vec<String> {
    let mut notes = Vec::new();
    if !search.q.is_empty() && !ranked.has_words {
        notes.push(
            "q has no distinctive word; describe what the tool should do (post a message), or leave q out to list all tools."
                .to_owned(),
        );
    } else if ranked.found.is_empty() && !search.q.is_empty() {
        notes.push("No tool matches q and the filters; use other words, or remove a filter.".to_owned());
    }
    if ranked.not_compared > 0 {
        notes.push(format!(
            "{} unknown words of q were not compared with the known ones; use fewer words.",
            ranked.not_compared
        ));
    }
    if let Some(category) = &search.category
        && ranked.found.is_empty()
        && search.q.is_empty()
    {
        let mut known: Vec<&str> = index
            .segments
            .iter()
            .flat_map(|segment| {
                let of_tools = segment.tools.iter().map(|tool| tool.category.as_str());
                of_tools.chain(segment.service.iter().flat_map(|service| &service.categories).map(String::as_str))
            })
            .filter(|category| !category.is_empty())
            .collect();
        known.sort_unstable();
        known.dedup();
        notes.push(format!("No tool has the category {category}; there are {}.", known.join(", ")));
    }
    let of = |segment: &Segment| segment.service.as_ref().map(|service| (service.id, service.name.clone()));
    let services = || narrowed.iter().filter_map(|segment| Some((of(segment)?, *segment)));
    if search.trigger.is_some() {
        let unread: Vec<String> =
            services().filter(|(_, segment)| segment.triggers.is_none()).map(|((_, name), _)| name).collect();
        if !unread.is_empty() {
            notes.push(format!("The triggers of {} could not be read; their tools are listed.", unread.join(", ")));
        }
    }
    if search.connected.is_some() {
        let unknown = services().filter(|((id, _), _)| connections.get(id).is_none_or(|of| *of == Connection::Unknown));
        let unknown: Vec<String> = unknown.map(|((_, name), _)| name).collect();
        if !unknown.is_empty() {
            notes.push(format!(
                "Whether {} is connected could not be asked; the tools are listed all the same.",
                unknown.join(", ")
            ));
        }
    }
    notes
}

impl FoundTools {
    pub fn to_text(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for FoundTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Found tools ({} of {}):", self.items.len(), self.total)?;
        for FoundTool { tool, connection } in &self.items {
            let whose = tool.service.as_deref().unwrap_or(match tool.source {
                super::Source::BuiltIn => "built-in",
                _ => "the organization's own",
            });
            write!(f, "- {}: {} [{whose}; effect: {}", tool.name, tool.description, python_bool(tool.effect))?;
            if let Some(connection) = connection {
                write!(f, "; connected: {}", connection.to_text())?;
            }
            if let Some(reason) = &tool.needs_call {
                write!(f, "; in phone calls only: {reason}")?;
            }
            f.write_str("]\n")?;
        }
        for Correction { word, taken_as } in &self.corrected {
            match taken_as.as_slice() {
                [] => write!(f, "\nNo tool has the word {word}.\n")?,
                taken_as => {
                    write!(f, "\nNo tool has the word {word}; looked for {} instead.\n", taken_as.join(", "))?;
                }
            }
        }
        for note in &self.notes {
            write!(f, "\n{note}\n")?;
        }
        if let Some(cursor) = &self.next_cursor {
            write!(f, "\nThere are more: repeat the search with cursor {cursor}\n")?;
        }
        if self.items.iter().any(|found| found.tool.is_shortened()) {
            write!(f, "\n{HOW_TO_READ_ALL}\n")?;
        }
        Ok(())
    }
}
