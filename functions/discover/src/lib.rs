//! Which tools there are, for agents that look for some, and which services an organization has connected.
//!
//! - `GET …/discover/initial_md_fetch?service=Slack&service=Gmail`: what services offer. Long lists go on with `cursor=`.
//! - `GET …/discover/fetch_tool_data?name=slack_post_message&name=…`, or `POST` with `{"tool_names": […]}`: tools in full.
//! - `GET …/discover/search?q=post a message`, or `POST` with [`ToolSearch`]: tools by what they can do.
//! - `GET …/services`, `POST …/services/{name}/connect`, `PUT …/services/{name}/account`, `DELETE
//!   …/services/{name}/connection`: `services.rs`.
//!
//! The first three answer JSON, or with `Accept: text/plain` or `text/markdown` the text for an agent's context.

mod services;

use serde::Serialize;
use serde_json::{Map, Value, json};
use shared::{
    Error, Platform, Result,
    connections::Connections,
    discovery::{Discovery, FoundTools, ServiceOverviews, ToolData, ToolSearch},
    error::Problems,
    fields::{Fields, kind},
    http::{self, Access, Reply, Request, query},
    platform,
    store::Services,
};

pub struct Deps {
    pub access: Access,
    pub discovery: Discovery,
    pub services: Services,
    pub connections: Connections,
}

impl Deps {
    pub fn new(platform: &Platform) -> platform::Result<Self> {
        let discovery = platform.discovery()?.clone();
        let (services, connections) = (discovery.services.clone(), discovery.connections.clone());
        Ok(Self { access: platform.access()?, discovery, services, connections })
    }
}

pub async fn handle(deps: &Deps, request: Request) -> Result<Reply> {
    let organization = deps.access.member(&request).await?.organization_id;
    let (discovery, deadline) = (&deps.discovery, http::deadline(&request));
    match http::route(&request)[..] {
        ["GET", "api", _, "discover", "initial_md_fetch"] => {
            let (names, cursor) = overview_query(&request)?;
            let found =
                Box::pin(discovery.initial_md_fetch_after(organization, &names, cursor.as_deref(), deadline)).await?;
            answer(&request, &found, ServiceOverviews::to_text)
        }
        ["GET", "api", _, "discover", "fetch_tool_data"] => {
            let names = names_of_query(&request)?;
            let found = Box::pin(discovery.fetch_tool_data(organization, &names, deadline)).await?;
            answer(&request, &found, ToolData::to_text)
        }
        ["POST", "api", _, "discover", "fetch_tool_data"] => {
            let names = names_of_body(&http::json_body(&request)?)?;
            let found = Box::pin(discovery.fetch_tool_data(organization, &names, deadline)).await?;
            answer(&request, &found, ToolData::to_text)
        }
        ["GET", "api", _, "discover", "search"] => {
            let search = ToolSearch::of_json(&search_of_query(&request))?;
            let found = Box::pin(discovery.search(organization, &search, deadline)).await?;
            answer(&request, &found, FoundTools::to_text)
        }
        ["POST", "api", _, "discover", "search"] => {
            let search = ToolSearch::of_json(&http::json_body(&request)?)?;
            let found = Box::pin(discovery.search(organization, &search, deadline)).await?;
            answer(&request, &found, FoundTools::to_text)
        }
        ["GET", "api", _, "services"] => Box::pin(services::list(deps, organization, &request)).await,
        ["POST", "api", _, "services", name, "connect"] => {
            Box::pin(services::connect(deps, organization, name, &request)).await
        }
        ["PUT", "api", _, "services", name, "account"] => {
            Box::pin(services::choose(deps, organization, name, &request)).await
        }
        ["DELETE", "api", _, "services", name, "connection"] => {
            Box::pin(services::disconnect(deps, organization, name, &request)).await
        }
        _ => Err(Error::NotFound("route")),
    }
}

fn answer<T: Serialize>(request: &Request, found: &T, to_text: fn(&T) -> String) -> Result<Reply> {
    match http::accepted_text(request) {
        Some(content_type) => Ok(Reply::text(content_type, to_text(found))),
        None => Reply::ok(found),
    }
}

/// `service` any number of times, `cursor`.
fn overview_query(request: &Request) -> Result<(Vec<String>, Option<String>)> {
    let (mut names, mut cursor, mut problems) = (Vec::new(), None, Problems::default());
    for (name, value) in query(request) {
        match name.as_str() {
            "service" => names.push(value),
            "cursor" => cursor = Some(value).filter(|cursor| !cursor.is_empty()),
            other => problems.add(other, "is not known here; known are service, cursor"),
        }
    }
    problems.into_result(Some((names, cursor)))
}

/// `name` any number of times.
fn names_of_query(request: &Request) -> Result<Vec<String>> {
    let (mut names, mut problems) = (Vec::new(), Problems::default());
    for (name, value) in query(request) {
        match name.as_str() {
            "name" => names.push(value),
            other => problems.add(other, "is not known here; known is name, any number of times"),
        }
    }
    problems.into_result(Some(names))
}

/// `{"tool_names": ["…"]}`
fn names_of_body(body: &Value) -> Result<Vec<String>> {
    let mut problems = Problems::default();
    let names = Fields::of(body, "", &mut problems).map(|mut fields| {
        let given = match fields.required("tool_names") {
            Some(Value::Array(given)) => given.as_slice(),
            Some(other) => {
                fields.problem("tool_names", format!("must be a list of names, not {}", kind(other)));
                &[]
            }
            None => &[],
        };
        let mut names = Vec::new();
        for (index, name) in given.iter().enumerate() {
            match name.as_str() {
                Some(name) => names.push(name.to_owned()),
                None => fields.problem(&format!("tool_names[{index}]"), format!("must be text, not {}", kind(name))),
            }
        }
        fields.finish();
        names
    });
    problems.into_result(names)
}

/// The query as the body that says the same: `service` is one of `services`.
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
