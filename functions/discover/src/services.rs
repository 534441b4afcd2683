//! The services that there are and how the organization stands to each.
//!
//! - `GET …/services?q=&category=&connected=true|false&limit=&cursor=`: `{items, total, next_cursor, notes?}`
//! - `POST …/services/{name}/connect`: for an account at Pipedream the link on which a person connects it (body: nothing, or
//!   `{"redirect_url"}`); a credential is stored (body: a value for each of its fields)
//! - `PUT …/services/{name}/account` `{"account_id": "apn_…" | null}`: which of several accounts acts; null: the newest that
//!   works
//! - `DELETE …/services/{name}/connection?account=`: takes the account away; of several, the one that is named

use std::collections::HashMap;

use futures_util::future;
use serde::Serialize;
use serde_json::json;
use shared::{
    Error, Result,
    connections::Connection,
    discovery::{ShownConnection, capabilities, nearest_services},
    error::Problems,
    fields::Fields,
    http::{self, Reply, Request, page, query},
    models::{ConnectionKind, OrganizationId, Service, ServiceId, folded_name},
    ranking::words,
    store::Cursor,
};

use super::Deps;

const LONGEST_QUERY: usize = 200;

/// A service in the list.
#[derive(Serialize)]
struct ListedService<'a> {
    name: &'a str,
    description: &'a str,
    categories: &'a [String],
    /// Active ones.
    tools: u32,
    /// Null if it could not be read.
    supports_webhooks: Option<bool>,
    supports_polling: Option<bool>,
    connection_kind: &'a ConnectionKind,
    connection: ShownConnection,
}

/// Which services are asked for.
struct Filter {
    q: String,
    category: Option<String>,
    connected: Option<bool>,
    limit: usize,
    /// [`folded_name`] of the last one of the page before.
    after: Option<String>,
}

impl Filter {
    fn of(request: &Request) -> Result<Self> {
        let (limit, after) = page::<String>(request)?;
        let mut filter = Self {
            q: String::new(),
            category: None,
            connected: None,
            limit: usize::try_from(limit).unwrap_or(1),
            after: after.map(|Cursor(name)| name),
        };
        for (name, value) in query(request) {
            match name.as_str() {
                "q" if value.chars().count() > LONGEST_QUERY => {
                    return Err(Error::invalid("q", format!("must have at most {LONGEST_QUERY} characters")));
                }
                "q" => filter.q = value,
                "category" => filter.category = Some(folded_name(&value)).filter(|category| !category.is_empty()),
                "connected" => {
                    let connected =
                        value.parse().map_err(|_not| Error::invalid("connected", "must be true or false"))?;
                    filter.connected = Some(connected);
                }
                "limit" | "cursor" => {}
                _ => {
                    let known = "is not known here; known are q, category, connected, limit, cursor";
                    return Err(Error::invalid(name, known));
                }
            }
        }
        Ok(filter)
    }

    fn fits(&self, service: &Service) -> bool {
        let category = self.category.as_ref();
        category.is_none_or(|wanted| service.categories.iter().any(|of| folded_name(of) == *wanted))
            && self.has_words(service)
    }

    /// Whether each word of the query begins one of the service's.
    fn has_words(&self, service: &Service) -> bool {
        let mut of_service = Vec::new();
        for text in [&service.name, &service.description, &service.categories.join(" ")] {
            words(text, |word| of_service.push(word.to_owned()));
        }
        let mut all = true;
        words(&self.q, |asked| all &= of_service.iter().any(|word| word.starts_with(asked)));
        all
    }
}

pub(super) async fn list(deps: &Deps, organization: OrganizationId, request: &Request) -> Result<Reply> {
    let (filter, deadline) = (Filter::of(request)?, http::deadline(request));
    let mut active = deps.services.all().await?;
    active.retain(|service| service.is_active);
    active.sort_by_cached_key(|service| folded_name(&service.name));
    let mut notes = Vec::new();
    let mut fitting: Vec<Service> = active.iter().filter(|service| filter.fits(service)).cloned().collect();
    if fitting.is_empty() && !filter.q.is_empty() {
        let near = nearest_services(&filter.q, &active);
        if !near.is_empty() {
            notes.push(format!("No service fits q; near are {}.", near.join(", ")));
        }
    }
    let mut connections = HashMap::new();
    if let Some(wanted) = filter.connected {
        connections = deps.connections.of(organization, &fitting, deadline).await;
        let state = |service: &Service| connections.get(&service.id).unwrap_or(&Connection::Unknown);
        let unknown: Vec<&str> = fitting
            .iter()
            .filter(|service| *state(service) == Connection::Unknown)
            .map(|service| service.name.as_str())
            .collect();
        if !unknown.is_empty() {
            let unknown = unknown.join(", ");
            notes.push(format!("Whether {unknown} is connected could not be asked; it is listed all the same."));
        }
        fitting.retain(|service| *state(service) == Connection::Unknown || state(service).can_act() == wanted);
    }
    let total = fitting.len();
    let left =
        fitting.iter().filter(|service| filter.after.as_ref().is_none_or(|after| folded_name(&service.name) > *after));
    let left: Vec<&Service> = left.collect();
    let page: Vec<Service> = left.iter().take(filter.limit).map(|service| (*service).clone()).collect();
    let next_cursor =
        page.last().filter(|_| left.len() > page.len()).map(|service| Cursor(folded_name(&service.name)).to_string());

    let names: Vec<String> = page.iter().map(|service| service.name.clone()).collect();
    let of_services = async {
        if names.is_empty() { Some(HashMap::new()) } else { capabilities(&deps.services, &names, deadline).await }
    };
    let of_page = async {
        if filter.connected.is_some() || page.is_empty() {
            return connections;
        }
        deps.connections.of(organization, &page, deadline).await
    };
    let (capabilities, connections): (_, HashMap<ServiceId, Connection>) = future::join(of_services, of_page).await;
    if capabilities.is_none() {
        notes.push("What can begin an automation could not be read; ask again in a moment.".to_owned());
    }
    let items = page.iter().map(|service| {
        let of_service = capabilities.as_ref().map(|all| all.get(&folded_name(&service.name)));
        let connection = connections.get(&service.id).cloned().unwrap_or(Connection::Unknown);
        ListedService {
            name: &service.name,
            description: &service.description,
            categories: &service.categories,
            tools: service.tools,
            supports_webhooks: of_service.map(|of| of.is_some_and(|of| of.supports_webhooks)),
            supports_polling: of_service.map(|of| of.is_some_and(|of| of.supports_polling)),
            connection_kind: &service.connection,
            connection: ShownConnection::new(service, connection),
        }
    });
    let items: Vec<ListedService<'_>> = items.collect();
    Reply::ok(&json!({"items": items, "total": total, "next_cursor": next_cursor, "notes": notes}))
}

pub(super) async fn connect(deps: &Deps, organization: OrganizationId, name: &str, request: &Request) -> Result<Reply> {
    let deadline = http::deadline(request);
    // For most services there is nothing to say.
    let body = if http::body(request).is_empty() { json!({}) } else { http::json_body(request)? };
    let service = service(deps, name, request).await?;
    if !service.is_active {
        return Err(Error::Conflict(format!(
            "{} is not active: its tools cannot be used at present, so it is not connected",
            service.name
        )));
    }
    Reply::ok(&deps.connections.connect(organization, &service, &body, deadline).await?)
}

pub(super) async fn disconnect(
    deps: &Deps,
    organization: OrganizationId,
    name: &str,
    request: &Request,
) -> Result<Reply> {
    let mut problems = Problems::default();
    let mut account = None;
    for (name, value) in query(request) {
        match name.as_str() {
            "account" if value.is_empty() => problems.add("account", "must be the id of an account, or be left out"),
            "account" => account = Some(value),
            other => problems.add(other, "is not known here; known is account"),
        }
    }
    problems.into_result(Some(()))?;
    let (service, deadline) = (service(deps, name, request).await?, http::deadline(request));
    if account.is_none() {
        let connection = deps.connections.of(organization, std::slice::from_ref(&service), deadline).await;
        // Nobody may know of the others, and what is taken away does not come back.
        if let Some(Connection::Connected { accounts }) = connection.get(&service.id)
            && accounts.len() > 1
        {
            let ids: Vec<&str> = accounts.iter().map(|account| account.id.as_str()).collect();
            return Err(Error::invalid("account", format!("must say which: there are {}", ids.join(", "))));
        }
    }
    deps.connections.disconnect(organization, &service, account.as_deref(), deadline).await?;
    Ok(Reply::no_content())
}

pub(super) async fn choose(deps: &Deps, organization: OrganizationId, name: &str, request: &Request) -> Result<Reply> {
    let body = http::json_body(request)?;
    let mut problems = Problems::default();
    let account = Fields::of(&body, "", &mut problems).map(|mut fields| {
        let is_said = body.get("account_id").is_some();
        let account = fields.text("account_id", 100);
        if !is_said {
            fields.problem("account_id", "is required; null lets the newest account act that works");
        }
        fields.finish();
        account
    });
    let account = problems.into_result(account)?;
    let service = service(deps, name, request).await?;
    let chosen = deps.connections.choose(organization, &service, account, http::deadline(request)).await?;
    Reply::ok(&ShownConnection::new(&service, chosen))
}

/// The service that a segment of the path names, in any case.
async fn service(deps: &Deps, segment: &str, request: &Request) -> Result<Service> {
    let name: String = http::id(segment, "service")?;
    let found = deps.services.named(&[name], http::deadline(request)).await?;
    found.into_iter().next().ok_or(Error::NotFound("service"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> Service {
        let row = json!({
            "id": ServiceId::of_name("Google Calendar"), "name": "Google Calendar", "description": "Events and free times.",
            "categories": ["scheduling"], "connection": {"type": "none"}, "is_active": true,
            "created_at": "2026-01-01T00:00:00.000Z", "updated_at": "2026-01-01T00:00:00.000Z",
        });
        serde_json::from_value::<Service>(row).unwrap()
    }

    #[test]
    fn a_service_is_found_by_words_of_what_it_says_of_itself() {
        let filter = |q: &str, category: Option<&str>| Filter {
            q: q.to_owned(),
            category: category.map(str::to_owned),
            connected: None,
            limit: 50,
            after: None,
        };
        for (q, category, fits) in [
            ("", None, true),
            ("calen", None, true),
            ("EVENT google", None, true),
            ("google mail", None, false),
            ("", Some("scheduling"), true),
            ("event", Some("crm"), false),
        ] {
            assert_eq!(filter(q, category).fits(&service()), fits, "{q} {category:?}");
        }
    }
}
