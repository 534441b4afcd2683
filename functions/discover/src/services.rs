//! Services and the organization's connections to them.
//!
//! A person connects an account at Pipedream by a link; a credential is stored.

use std::{collections::HashMap, convert::Infallible, str::FromStr};

use futures_util::future;
use serde::Serialize;
use serde_json::json;
use shared::{
    Deadline, Error, Result,
    connections::{Connecting, Connection},
    declared::{self, Body, Setting, Text},
    described::{Described, Json, Schemas},
    discovery::{ShownConnection, capabilities, nearest_services},
    error::Problems,
    http::{Asked, Found, Gone, Id, MaySend, Named, Operation, Part, Sent, Shown, operation, page, query},
    models::{ConnectionKind, Service, ServiceId, folded_name},
    ranking::words,
    store::Cursor,
};

use super::Deps;

const LONGEST_QUERY: usize = 200;

#[derive(Serialize, Described)]
struct ListedService {
    name: String,
    description: String,
    categories: Vec<String>,
    /// How many can be used.
    tools: u32,
    /// Null if it could not be read.
    supports_webhooks: Option<bool>,
    /// Null if it could not be read.
    supports_polling: Option<bool>,
    connection_kind: ConnectionKind,
    connection: ShownConnection,
}

/// The requested services.
pub(super) struct Filter {
    q: String,
    category: Option<String>,
    connected: Option<bool>,
    limit: usize,
    /// [`folded_name`] of the previous page's last service.
    after: Option<String>,
}

impl Part for Filter {
    const QUERY: &'static [&'static str] = &["q", "category", "connected", "limit", "cursor"];
    const OWN_QUERY: bool = true;

    fn of(found: &Found<'_>) -> Result<Self> {
        let request = found.request;
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

    fn describe(operation: &mut Operation, _: &mut Schemas) {
        let words = "Words of the name, the description or the categories; each may be a beginning.";
        operation.may_ask("q", words, json!({"type": "string", "maxLength": LONGEST_QUERY}));
        operation.may_ask("category", "One of the service's.", json!({"type": "string"}));
        operation.may_ask("connected", "Whether the organization's account is connected.", json!({"type": "boolean"}));
        operation.is_paged();
    }
}

impl Filter {
    fn fits(&self, service: &Service) -> bool {
        let category = self.category.as_ref();
        category.is_none_or(|wanted| service.categories.iter().any(|of| folded_name(of) == *wanted))
            && self.has_words(service)
    }

    /// Whether each word of the query begins a word of the service.
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

#[derive(Serialize, Described)]
pub(super) struct ListedServices {
    #[schema(maxItems = 200)]
    items: Vec<ListedService>,
    /// On all pages.
    total: usize,
    /// Where the next page begins; null on the last one.
    next_cursor: Option<String>,
    /// Notes on this answer.
    notes: Vec<String>,
}

shared::described!(ServiceName => {"type": "string"});

/// A service's name in a path, in any case.
pub(super) struct ServiceName(String);

impl FromStr for ServiceName {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

impl Named for ServiceName {
    const NOUN: &'static str = "service";
    const DOC: &'static str = "The service's name, in any case.";
}

/// Services, and which are connected
///
/// The active services by name, with how the organization stands to each: connected and as whom, not connected,
/// expired, or `unknown` if that could not be asked. Pipedream's answer is cached for a minute.
///
/// - 200: A page of services.
#[operation(GET "/api/{slug}/services", Viewer, resource(DiscoverServices))]
pub(super) async fn list_services(deps: &Deps, asked: &Asked<'_>, filter: Filter) -> Result<Shown<ListedServices>> {
    let (organization, deadline) = (asked.organization(), asked.deadline);
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
        notes.push("The triggers could not be read; try again in a moment.".to_owned());
    }
    let items = page.into_iter().map(|service| {
        let of_service = capabilities.as_ref().map(|all| all.get(&folded_name(&service.name)));
        let connection = connections.get(&service.id).cloned().unwrap_or(Connection::Unknown);
        ListedService {
            connection: ShownConnection::new(&service, connection),
            supports_webhooks: of_service.map(|of| of.is_some_and(|of| of.supports_webhooks)),
            supports_polling: of_service.map(|of| of.is_some_and(|of| of.supports_polling)),
            name: service.name,
            description: service.description,
            categories: service.categories,
            tools: service.tools,
            connection_kind: service.connection,
        }
    });
    Ok(Shown(ListedServices { items: items.collect(), total, next_cursor, notes }))
}

/// For most services empty; otherwise a value for each field of the credential.
pub(super) struct ConnectionBody;

impl Described for ConnectionBody {
    fn schema(schemas: &mut Schemas) -> Json {
        let redirect = json!({"type": ["string", "null"], "pattern": "^https://",
            "description": "Of `pipedream`: where the person goes then."});
        let body = json!({"type": "object", "properties": {"redirect_url": redirect},
            "additionalProperties": {"type": "string"}});
        schemas.named("ConnectionBody", |_| body)
    }
}

/// Connect an account at a service
///
/// By the service's `connection_kind`. `pipedream`: the answer is a link, on which a person lets the service in; the body may
/// be empty. `credential`: the body has a value for each of its `fields`; they go to Secrets Manager. `phone_number`: a 409
/// says that a phone number is to be registered. `none`: a 409, there is nothing to connect.
///
/// - 200: The link, or that the credential is stored and used from now on.
///
/// ```json,link: For an account at Pipedream
/// {"redirect_url": "https://app.example.com/connected"}
/// ```
/// ```json,credential: For a credential
/// {"account": "acct_1032D82eZvKYlo2C", "api_key": "sk_live_0123456789"}
/// ```
#[operation(
    POST "/api/{slug}/services/{name}/connect", Admin, also(409, 502, 504), resource(DiscoverConnect)
)]
pub(super) async fn connect_service(
    deps: &Deps,
    asked: &Asked<'_>,
    name: Id<ServiceName>,
    body: MaySend<ConnectionBody>,
) -> Result<Shown<Connecting>> {
    let body = body.json()?;
    let service = service(deps, name.0, asked.deadline).await?;
    if !service.is_active {
        return Err(Error::Conflict(format!(
            "{} is not active: its tools cannot be used at present, so it is not connected",
            service.name
        )));
    }
    let begun = deps.connections.connect(asked.organization(), &service, &body, asked.deadline).await?;
    Ok(Shown(begun))
}

/// `?account=`
pub(super) struct OneOf(Option<String>);

impl Part for OneOf {
    const QUERY: &'static [&'static str] = &["account"];
    const OWN_QUERY: bool = true;

    fn of(found: &Found<'_>) -> Result<Self> {
        let (mut problems, mut account) = (Problems::default(), None);
        for (name, value) in query(found.request) {
            match name.as_str() {
                "account" if value.is_empty() => {
                    problems.add("account", "must be the id of an account, or be left out");
                }
                "account" => account = Some(value),
                other => problems.add(other, "is not known here; known is account"),
            }
        }
        problems.into_result(Some(Self(account)))
    }

    fn describe(operation: &mut Operation, _: &mut Schemas) {
        let doc = "The `id` of one of several accounts.";
        operation.may_ask("account", doc, json!({"type": "string", "minLength": 1}));
    }
}

/// Disconnect a service
///
/// The organization's account at the service is taken away from its tools. Of several the one must be named.
///
/// - 204: It is gone.
#[operation(
    DELETE "/api/{slug}/services/{name}/connection", Admin, also(409, 502, 504), resource(DiscoverDisconnect)
)]
pub(super) async fn disconnect_service(
    deps: &Deps,
    asked: &Asked<'_>,
    name: Id<ServiceName>,
    account: OneOf,
) -> Result<Gone> {
    let (organization, deadline, account) = (asked.organization(), asked.deadline, account.0);
    let service = service(deps, name.0, deadline).await?;
    deps.connections.disconnect(organization, &service, account.as_deref(), deadline).await?;
    Ok(Gone)
}

#[derive(Body)]
#[schema(required = vec!["account_id"])]
pub(super) struct ChosenAccount {
    /// The `id` of one of the service's accounts; null lets the newest one act that works.
    account_id: Setting<Text<100>>,
}

/// Choose which of several accounts acts
///
/// - 200: How the organization stands to the service now; the account that acts comes first.
#[operation(PUT "/api/{slug}/services/{name}/account", Admin, also(409), resource(DiscoverChooseAccount))]
pub(super) async fn choose_service_account(
    deps: &Deps,
    asked: &Asked<'_>,
    name: Id<ServiceName>,
    body: Sent<ChosenAccount>,
) -> Result<Shown<ShownConnection>> {
    let body = body.json()?;
    let chosen: ChosenAccount = declared::read(&body, |_, fields| {
        if body.get("account_id").is_none() {
            fields.problem("account_id", "is required; null lets the newest account act that works");
        }
    })?;
    let account = chosen.account_id.after(None);
    let service = service(deps, name.0, asked.deadline).await?;
    let chosen = deps.connections.choose(asked.organization(), &service, account, asked.deadline).await?;
    Ok(Shown(ShownConnection::new(&service, chosen)))
}

async fn service(deps: &Deps, name: ServiceName, deadline: Deadline) -> Result<Service> {
    let found = deps.services.named(&[name.0], deadline).await?;
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
    fn a_service_is_found_by_words_of_its_description() {
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
