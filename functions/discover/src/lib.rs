//! Tools and services for agents, and the organization's connections.
//!
//! The routes below `/discover` answer JSON, or with `Accept: text/plain` or `text/markdown` the text for an agent's context.

mod services;

use serde::Serialize;
use serde_json::{Map, Value, json};
use shared::{
    Result,
    connections::Connections,
    declared::{Body, Given},
    described::{Described, Json, Schemas},
    discovery::{Discovery, FoundTools, SearchBody, ServiceOverviews, ToolData, ToolSearch},
    error::Problems,
    fields::Fields,
    http::{Access, Answers, Asked, Found, Operation, Part, Reply, Request, Sent, accepted_text, operation, query},
    platform::Parts,
    store::Services,
};

shared::routes!(
    Deps,
    "discovery": initial_md_fetch,
    fetch_tool_data,
    fetch_tool_data_of_many,
    search_tools,
    search_tools_by_body,
    services::list_services,
    services::connect_service,
    services::choose_service_account,
    services::disconnect_service,
);

#[derive(Parts)]
pub struct Deps {
    pub access: Access,
    pub discovery: Discovery,
    pub services: Services,
    pub connections: Connections,
}

/// List services' tools and triggers
///
/// For up to 20 services, named in any case: their tools in one line each, their triggers, and the organization's
/// connected account. Descriptions of more than about 300 characters end with `…`; `fetch_tool_data` gives them whole.
/// Tools that have no place in the answer follow at `next_cursor`. Unknown and inactive services are listed under
/// `problems`. With `Accept: text/plain` or `text/markdown`, the text for an agent's context.
///
/// - 200: The services, in the order in which they were asked for, each once.
#[operation(GET "/api/{slug}/discover/initial_md_fetch", Viewer, resource(DiscoverOverview))]
async fn initial_md_fetch(deps: &Deps, asked: &Asked<'_>, query: Overview) -> Result<Told<ServiceOverviews>> {
    let Overview { names, cursor } = query;
    let (organization, deadline) = (asked.organization(), asked.deadline);
    let found = deps.discovery.initial_md_fetch(organization, &names, cursor.as_deref(), deadline).await?;
    Ok(Told::of(asked, found))
}

/// Tools in full
///
/// As the POST of the same path, with the names in the query.
#[operation(GET "/api/{slug}/discover/fetch_tool_data", Viewer, resource(DiscoverToolData))]
async fn fetch_tool_data(deps: &Deps, asked: &Asked<'_>, names: Names) -> Result<Told<ToolData>> {
    let found = deps.discovery.fetch_tool_data(asked.organization(), &names.0, asked.deadline).await?;
    Ok(Told::of(asked, found))
}

/// Tools in full, by a body
///
/// Up to 200 tools: services' and built-in ones by name, in any case, the organization's by the name under which they
/// are called, or by id. Each with its parameters, its fingerprint, whether its service is connected, and an example
/// call. Unknown and unusable tools are listed under `problems`, with the next step. With `Accept: text/plain` or
/// `text/markdown`, the text for an agent's context.
///
/// ```json,two
/// {"tool_names": ["slack_post_message", "wget"]}
/// ```
#[operation(POST "/api/{slug}/discover/fetch_tool_data", Viewer, resource(DiscoverToolDataOfBody))]
async fn fetch_tool_data_of_many(deps: &Deps, asked: &Asked<'_>, body: Sent<ToolNames>) -> Result<Told<ToolData>> {
    let Names(names) = body.read()?.tool_names;
    let found = deps.discovery.fetch_tool_data(asked.organization(), &names, asked.deadline).await?;
    Ok(Told::of(asked, found))
}

/// Search tools
///
/// As the POST of the same path; `service`, any number of times, is one of `services`.
#[operation(GET "/api/{slug}/discover/search", Viewer, resource(DiscoverSearch))]
async fn search_tools(deps: &Deps, asked: &Asked<'_>, search: Search) -> Result<Told<FoundTools>> {
    let found = deps.discovery.search(asked.organization(), &search.0, asked.deadline).await?;
    Ok(Told::of(asked, found))
}

/// Search tools (body)
///
/// Services' tools, the organization's own and built-in ones, ranked by the words of `q` in names, titles,
/// descriptions, parameters' names and services; without `q` all matching tools by name. An unknown word is replaced
/// by words of similar spelling, see `corrected`. Only usable tools are found; an organization's tool that works in
/// phone calls only has `needs_call`. With `Accept: text/plain` or `text/markdown`, the text for an agent's context.
///
/// ```json,words
/// {"q": "post a message"}
/// ```
/// ```json,filters
/// {"services": ["Slack"], "connected": true, "limit": 50}
/// ```
#[operation(POST "/api/{slug}/discover/search", Viewer, resource(DiscoverSearchOfBody))]
async fn search_tools_by_body(deps: &Deps, asked: &Asked<'_>, body: Sent<Search>) -> Result<Told<FoundTools>> {
    let search = ToolSearch::of_json(&body.json()?)?;
    let found = deps.discovery.search(asked.organization(), &search, asked.deadline).await?;
    Ok(Told::of(asked, found))
}

/// A result, as JSON or as text.
struct Told<T> {
    found: T,
    /// The content type of a text answer.
    text: Option<&'static str>,
}

impl<T> Told<T> {
    fn of(asked: &Asked<'_>, found: T) -> Self {
        Self { found, text: accepted_text(asked.request) }
    }
}

/// A result with a text form.
trait InWords: Serialize + Described {
    fn words(&self) -> String;
}

macro_rules! in_words {
    ($($type:ident),+) => {$(
        impl InWords for $type {
            fn words(&self) -> String {
                self.to_text()
            }
        }
    )+};
}

in_words!(ServiceOverviews, ToolData, FoundTools);

impl<T: InWords> Answers for Told<T> {
    fn reply(self) -> Result<Reply> {
        match self.text {
            Some(content_type) => Ok(Reply::text(content_type, self.found.words())),
            None => Reply::ok(&self.found),
        }
    }

    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.answers(200, "What was found.", T::schema(schemas));
        for content_type in ["text/plain; charset=utf-8", "text/markdown; charset=utf-8"] {
            operation.answers_with(200, "", content_type, json!({"schema": {"type": "string"}}));
        }
    }
}

/// `service` any number of times, `cursor`.
struct Overview {
    names: Vec<String>,
    cursor: Option<String>,
}

impl Part for Overview {
    const QUERY: &'static [&'static str] = &["service", "cursor"];
    const OWN_QUERY: bool = true;

    fn of(found: &Found<'_>) -> Result<Self> {
        let (mut names, mut cursor, mut problems) = (Vec::new(), None, Problems::default());
        for (name, value) in query(found.request) {
            match name.as_str() {
                "service" => names.push(value),
                "cursor" => cursor = Some(value).filter(|cursor| !cursor.is_empty()),
                other => problems.add(other, "is not known here; known are service, cursor"),
            }
        }
        problems.into_result(Some(Self { names, cursor }))
    }

    fn describe(operation: &mut Operation, _: &mut Schemas) {
        let names = json!({"type": "array", "minItems": 1, "maxItems": 20, "items": {"type": "string"}});
        operation.may_ask("service", "A service's name; any number of times.", names);
        operation.must();
        let cursor = "The `next_cursor` of the page before; with the same services.";
        operation.may_ask("cursor", cursor, json!({"type": "string"}));
    }
}

#[derive(Body)]
struct ToolNames {
    tool_names: Names,
}

/// `name` any number of times, or a body's `tool_names`.
struct Names(Vec<String>);

shared::described!(Names => {"type": "array", "minItems": 1, "maxItems": 200, "items": {"type": "string"}});

impl Given for Names {
    fn read(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        fields.texts(name, "names", usize::MAX).map(Self)
    }
}

impl Part for Names {
    const QUERY: &'static [&'static str] = &["name"];
    const OWN_QUERY: bool = true;

    fn of(found: &Found<'_>) -> Result<Self> {
        let (mut names, mut problems) = (Vec::new(), Problems::default());
        for (name, value) in query(found.request) {
            match name.as_str() {
                "name" => names.push(value),
                other => problems.add(other, "is not known here; known is name, any number of times"),
            }
        }
        problems.into_result(Some(Self(names)))
    }

    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        let doc = "A tool's name, or the id of one of the organization's; any number of times.";
        operation.may_ask("name", doc, Self::schema(schemas));
        operation.must();
    }
}

/// The parameters of a search, or an equivalent body.
struct Search(ToolSearch);

impl Described for Search {
    fn schema(schemas: &mut Schemas) -> Json {
        SearchBody::schema(schemas)
    }
}

impl Part for Search {
    const QUERY: &'static [&'static str] = &["q", "service", "category", "trigger", "connected", "limit", "cursor"];
    const OWN_QUERY: bool = true;

    fn of(found: &Found<'_>) -> Result<Self> {
        ToolSearch::of_json(&search_of_query(found.request)).map(Self)
    }

    fn describe(operation: &mut Operation, _: &mut Schemas) {
        let text = || json!({"type": "string"});
        operation.may_ask("q", "Words for the purpose of a tool.", json!({"type": "string", "maxLength": 500}));
        let services = json!({"type": "array", "items": {"type": "string"}});
        operation.may_ask("service", "Tools of this service; any number of times.", services);
        operation.may_ask("category", "Of the tool or of its service.", text());
        let trigger = json!({"enum": ["webhook", "polling"]});
        operation.may_ask("trigger", "How an automation can begin at the service.", trigger);
        let connected = "Whether the organization's account is connected, if one is needed.";
        operation.may_ask("connected", connected, json!({"type": "boolean"}));
        let limit = json!({"type": "integer", "minimum": 1, "maximum": 100, "default": 10});
        operation.may_ask("limit", "Tools on a page.", limit);
        operation.may_ask("cursor", "The `next_cursor` of the page before.", text());
    }
}

/// The query as the equivalent body: `service` is an item of `services`.
fn search_of_query(request: &Request) -> Value {
    let (mut body, mut services) = (Map::new(), Vec::new());
    for (name, value) in query(request) {
        match name.as_str() {
            "service" => services.push(Value::from(value)),
            "connected" => {
                let value = match value.as_str() {
                    "true" => true.into(),
                    "false" => false.into(),
                    _ => value.into(),
                };
                body.insert(name, value);
            }
            "limit" => {
                let value = value.parse::<u64>().map_or_else(|_not_a_number| value.into(), Value::from);
                body.insert(name, value);
            }
            _ => drop(body.insert(name, value.into())),
        }
    }
    if !services.is_empty() {
        body.insert("services".to_owned(), json!(services));
    }
    Value::Object(body)
}
