//! An organization's accounts at services, and the account that acts.
//!
//! The kind of account depends on the service ([`ConnectionKind`]): an account at Pipedream, a credential stored here, or a phone
//! number. Of several accounts the chosen one acts, else the newest that works (the oldest phone number).
//!
//! Pipedream's answers are cached per organization for a minute, and only while the organization's row stays the same. Every
//! change of accounts made here changes the row, so no process uses an outdated answer. A missing account is cached for five
//! seconds only: a person who has just connected one expects to see it.

mod credential;
mod listeners;

pub use listeners::AccountListeners;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::join;
use secrecy::SecretString;
use serde::Serialize;
use serde_json::{Map, Value};

use self::credential::credential;
use crate::{
    Deadline, Error, Result,
    accounts::credential_secret,
    clients::{
        Pipedream, Secrets,
        pipedream::{Account, Project},
    },
    described::Described,
    error::{self, Problems},
    fields::Fields,
    lifecycle::{StoredSecrets, ownership},
    models::{
        Act, ConnectionKind, Intent, OrganizationId, PhoneNumber, SecretId, SecretOwner, Service, ServiceCredential,
        ServiceCredentials, ServiceId, Timestamp, folded_name,
    },
    store::{Organizations, PhoneNumbers},
};

const REMEMBERED: Duration = Duration::from_secs(60);
const MISSING_REMEMBERED: Duration = Duration::from_secs(5);

const ASKED_WITHIN: Duration = Duration::from_secs(3);

/// The most phone numbers that are read, the oldest first. The first acts.
const MOST_NUMBERS: i32 = 100;

/// From a link's creation until its account usually acts, and less than an open intent may be old.
const AUTHORIZED_WITHIN: Duration = Duration::from_mins(8);

const OF_PIPEDREAM: &str = "apn_";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Described)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Connection {
    NotNeeded,
    Connected {
        /// The first account acts.
        accounts: Vec<ConnectedAccount>,
    },
    NotConnected,
    /// The service refuses the account that acts.
    Expired {
        /// Refused; the chosen one is the first.
        accounts: Vec<ConnectedAccount>,
        /// Beside a refused chosen account: one of these acts once it is chosen, or the refused one is disconnected.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        working: Vec<ConnectedAccount>,
    },
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Described)]
pub struct ConnectedAccount {
    /// `apn_…` for Pipedream's accounts, the id of a phone number, or the end of the name of a credential's secret.
    pub id: String,
    /// The name of the account at the service; may be empty.
    pub name: String,
}

#[derive(Debug, PartialEq, Eq, Serialize, Described)]
#[serde(tag = "state", rename_all = "snake_case")]
#[schema(name = "StartedConnection")]
pub enum Connecting {
    /// A person opens this page and authorizes the service.
    Open {
        #[schema(format = "uri")]
        url: String,
        /// ISO 8601; afterwards a new link is needed.
        expires_at: String,
    },
    Connected {
        accounts: Vec<ConnectedAccount>,
    },
}

impl Connection {
    /// Whether the service's tools can be called, as far as is known.
    pub fn can_act(&self) -> bool {
        matches!(self, Self::NotNeeded | Self::Connected { .. })
    }

    /// The same connection with the chosen account first. If that account no longer works, no other takes its place.
    fn led_by(mut self, chosen: Option<ConnectedAccount>) -> Self {
        let (Self::Connected { accounts } | Self::Expired { accounts, .. }, Some(chosen)) = (&mut self, chosen) else {
            return self;
        };
        if let Some(at) = accounts.iter().position(|account| account.id == chosen.id) {
            let chosen = accounts.remove(at);
            accounts.insert(0, chosen);
            return self;
        }
        match self {
            Self::Connected { accounts } if chosen.id.starts_with(OF_PIPEDREAM) => {
                Self::Expired { accounts: vec![chosen], working: accounts }
            }
            other => other,
        }
    }

    /// How an administrator repairs a connection whose account is refused, a clause.
    pub fn renewal(&self, service: &str) -> String {
        let path = format!("/api/{{slug}}/services/{}", folded_name(service));
        match self {
            Self::Expired { accounts, working } if !working.is_empty() => {
                let ids = |all: &[ConnectedAccount]| all.iter().map(|it| it.id.as_str()).collect::<Vec<_>>().join(", ");
                let (refused, working) = (ids(accounts), ids(working));
                format!(
                    "an administrator chooses another account ({working}) with PUT {path}/account, or disconnects this one with DELETE {path}/connection?account={refused}"
                )
            }
            _ => format!("an administrator connects it again with POST {path}/connect"),
        }
    }

    pub fn account(&self) -> Option<&ConnectedAccount> {
        match self {
            Self::Connected { accounts } => accounts.first(),
            _ => None,
        }
    }
}

#[derive(Clone)]
pub struct Connections {
    /// Those of `http::Access`, which has read the row.
    pub(crate) organizations: Organizations,
    pub(crate) phone_numbers: PhoneNumbers,
    pub(crate) secret_prefix: String,
    pub(crate) stored: StoredSecrets,
    pub(crate) secrets: Secrets,
    pub(crate) pipedream: Pipedream,
    pub(crate) pipedream_secret: String,
    pub(crate) listeners: AccountListeners,
    pub(crate) seen: Arc<Mutex<HashMap<OrganizationId, Seen>>>,
    /// Counts invalidations. Answers to earlier requests are not cached.
    pub(crate) forgotten: Arc<AtomicU64>,
}

/// An organization's accounts at Pipedream; none if Pipedream did not answer.
#[derive(Clone)]
pub(crate) struct Seen {
    at: Instant,
    /// The time of the organization's row at that moment.
    changed_at: Timestamp,
    accounts: Option<Arc<[Account]>>,
}

impl Seen {
    fn has(&self, apps: &[&str]) -> bool {
        let works =
            |app: &&str| self.accounts.iter().flat_map(|all| all.iter()).any(|it| it.app == **app && it.works());
        apps.iter().all(works)
    }
}

impl Connections {
    /// The organization's connection to each service. A failed lookup is [`Connection::Unknown`], and is reported.
    pub async fn of(
        &self,
        organization: OrganizationId,
        services: &[Service],
        deadline: Deadline,
    ) -> HashMap<ServiceId, Connection> {
        let (connections, chosen) = join!(
            self.accounts_of(organization, services, deadline),
            self.organizations.service_accounts(organization)
        );
        match known(chosen) {
            Some(chosen) => {
                let kept = |id: &ServiceId| self.still_there(organization, chosen.get(id)?);
                connections.into_iter().map(|(id, connection)| (id, connection.led_by(kept(&id)))).collect()
            }
            // Another account than the chosen one might act.
            None => connections
                .into_iter()
                .map(|(id, connection)| {
                    let is_certain = matches!(connection, Connection::NotNeeded | Connection::NotConnected);
                    (id, if is_certain { connection } else { Connection::Unknown })
                })
                .collect(),
        }
    }

    /// The chosen account, unless it is known not to exist any more.
    fn still_there(&self, organization: OrganizationId, id: &str) -> Option<ConnectedAccount> {
        let seen = self.seen().get(&organization).and_then(|seen| seen.accounts.clone());
        match seen.filter(|_| id.starts_with(OF_PIPEDREAM)) {
            Some(all) => all.iter().find(|known| known.id == id).map(of_account),
            None => Some(ConnectedAccount { id: id.to_owned(), name: String::new() }),
        }
    }

    /// As [`Connections::of`], regardless of the chosen account.
    async fn accounts_of(
        &self,
        organization: OrganizationId,
        services: &[Service],
        deadline: Deadline,
    ) -> HashMap<ServiceId, Connection> {
        let apps: Vec<&str> = services.iter().filter_map(app).collect();
        let is = |wanted: fn(&ConnectionKind) -> bool| services.iter().any(|service| wanted(&service.connection));
        let by_number = is(|kind| matches!(kind, ConnectionKind::PhoneNumber));
        let by_credential = is(|kind| matches!(kind, ConnectionKind::Credential { .. }));
        let at_pipedream = async {
            if apps.is_empty() { Ok(Arc::from([])) } else { self.at_pipedream(organization, &apps, deadline).await }
        };
        let numbers = async {
            if by_number { self.phone_numbers.oldest(organization, MOST_NUMBERS).await } else { Ok(Vec::new()) }
        };
        let credentials = async {
            if by_credential {
                // A consistent read: a removed account must not be used from a cache.
                Ok(self.organizations.get_consistent(organization).await?.service_credentials)
            } else {
                Ok(ServiceCredentials::default())
            }
        };
        let (at_pipedream, numbers, credentials) = join!(at_pipedream, numbers, credentials);
        let (at_pipedream, numbers, credentials) = (known(at_pipedream), known(numbers), known(credentials));
        let of = |service: &Service| match &service.connection {
            ConnectionKind::None => Connection::NotNeeded,
            ConnectionKind::Pipedream { app } => {
                at_pipedream.as_ref().map_or(Connection::Unknown, |accounts| of_accounts(accounts, app))
            }
            ConnectionKind::PhoneNumber => {
                numbers.as_ref().map_or(Connection::Unknown, |numbers| of_list(numbers.iter().map(of_number).collect()))
            }
            ConnectionKind::Credential { .. } => credentials.as_ref().map_or(Connection::Unknown, |credentials| {
                of_list(credentials.get(&service.id).map(of_credential).into_iter().collect())
            }),
        };
        services.iter().map(|service| (service.id, of(service))).collect()
    }

    /// Chooses the account that acts from now on; `None` chooses the newest.
    ///
    /// # Errors
    /// [`Error::Invalid`] (`account_id`) unless it is a working account of the organization at the service.
    pub async fn choose(
        &self,
        organization: OrganizationId,
        service: &Service,
        account: Option<String>,
        deadline: Deadline,
    ) -> Result<Connection> {
        if let ConnectionKind::Credential { .. } | ConnectionKind::None = service.connection {
            return Err(Error::Conflict(format!("{} never has more than one account", service.name)));
        }
        let before = self.organizations.get_consistent(organization).await?;
        self.forget(organization);
        let connections = self.accounts_of(organization, std::slice::from_ref(service), deadline).await;
        let connection = connections.into_values().next().unwrap_or(Connection::Unknown);
        let accounts = match &connection {
            Connection::Connected { accounts } => accounts.as_slice(),
            Connection::Unknown => {
                let cause = "the accounts could not be looked up".into();
                return Err(Error::Unavailable("the service", cause));
            }
            _ => &[],
        };
        if let Some(id) = &account
            && !accounts.iter().any(|known| known.id == *id)
        {
            let known: Vec<&str> = accounts.iter().map(|known| known.id.as_str()).collect();
            let known =
                if known.is_empty() { "there are none".to_owned() } else { format!("there are {}", known.join(", ")) };
            return Err(Error::invalid("account_id", format!("is not a working account at {}; {known}", service.name)));
        }
        self.listeners.compare_after(organization, service, ownership(deadline)).await?;
        self.organizations.set_service_account(&before, service, Act::Edited, account.clone()).await?;
        let shows = |row: &crate::models::Organization| row.service_accounts.get(&service.id) == account.as_ref();
        self.organizations.wait_for_index(&before, shows).await;
        let chosen = accounts.iter().find(|known| Some(&known.id) == account.as_ref()).cloned();
        Ok(connection.led_by(chosen))
    }

    /// Connects the service, or returns the page where a person does: at Pipedream by a link, with a credential by the
    /// fields of `body`.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an incomplete credential, [`Error::Conflict`] for a service that is not connected here.
    pub async fn connect(
        &self,
        organization: OrganizationId,
        service: &Service,
        body: &Value,
        deadline: Deadline,
    ) -> Result<Connecting> {
        match &service.connection {
            ConnectionKind::None => {
                Err(Error::Conflict(format!("{} needs no account; its tools can be called", service.name)))
            }
            ConnectionKind::PhoneNumber => Err(Error::Conflict(format!(
                "{} acts with the organization's phone numbers; register one (POST /api/{{slug}}/phone-numbers)",
                service.name
            ))),
            ConnectionKind::Pipedream { app } => {
                let mut problems = Problems::default();
                let link = Fields::of(body, "", &mut problems).map(|mut fields| {
                    let back = fields.text("redirect_url", 2_000);
                    if back.as_deref().is_some_and(|url| !url.starts_with("https://")) {
                        fields.problem("redirect_url", "must be an https address");
                    }
                    fields.finish();
                    back
                });
                let back = problems.into_result(link)?;
                self.listeners.compare_after(organization, service, AUTHORIZED_WITHIN).await?;
                let project: Project = self.secrets.of_deployment(&self.pipedream_secret).await?;
                let link = self.pipedream.connect_link(&project, organization, app, back.as_deref(), deadline).await?;
                self.forget(organization);
                Ok(Connecting::Open { url: link.url, expires_at: link.expires_at })
            }
            ConnectionKind::Credential { fields } => {
                let (content, name) = credential(fields, body)?;
                let account = self.store(organization, service, &content, name, deadline).await?;
                Ok(Connecting::Connected { accounts: vec![account] })
            }
        }
    }

    /// Disconnects the organization's account; of several, working or not, the named one.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such account, [`Error::Invalid`] (`account`) if there are several and none is named.
    pub async fn disconnect(
        &self,
        organization: OrganizationId,
        service: &Service,
        account: Option<&str>,
        deadline: Deadline,
    ) -> Result<()> {
        const WHAT: &str = "connection";
        match &service.connection {
            ConnectionKind::None => Err(Error::NotFound(WHAT)),
            ConnectionKind::PhoneNumber => Err(Error::Conflict(format!(
                "{} acts with the organization's phone numbers; remove them there (DELETE /api/{{slug}}/phone-numbers/{{id}})",
                service.name
            ))),
            ConnectionKind::Pipedream { app } => {
                self.forget(organization);
                let project: Project = self.secrets.of_deployment(&self.pipedream_secret).await?;
                let all = self.pipedream.accounts(&project, organization, deadline).await?;
                let meant = |found: &&Account| found.app == *app && account.is_none_or(|id| found.id == id);
                let meant: Vec<&Account> = all.iter().filter(meant).collect();
                let gone = match meant.as_slice() {
                    [] => return Err(Error::NotFound(WHAT)),
                    [one] => *one,
                    // The user may not know of the others, and a deleted account does not come back.
                    several => {
                        let ids: Vec<&str> = several.iter().map(|account| account.id.as_str()).collect();
                        return Err(Error::invalid("account", format!("must say which: there are {}", ids.join(", "))));
                    }
                };
                self.listeners.compare_after(organization, service, ownership(deadline)).await?;
                self.pipedream.delete_account(&project, &gone.id, deadline).await?;
                self.forget(organization);
                let before = self.organizations.get_consistent(organization).await?;
                let chosen = before.service_accounts.get(&service.id).cloned();
                let chosen = chosen.filter(|chosen| *chosen != gone.id);
                // Written even without a choice: the changed row invalidates other processes' caches.
                let act = Act::Disconnected;
                match self.organizations.set_service_account(&before, service, act, chosen.clone()).await {
                    // Another request changed the row, which invalidates the caches too.
                    Err(Error::Conflict(_)) if chosen.as_ref() == before.service_accounts.get(&service.id) => {
                        self.organizations.note_disconnected(service).await?;
                    }
                    written => written?,
                }
                self.organizations.wait_for_index(&before, |row| row.updated_at != before.updated_at).await;
                Ok(())
            }
            ConnectionKind::Credential { .. } => {
                let before = self.organizations.get_consistent(organization).await?;
                let stored = before.service_credentials.get(&service.id).cloned();
                let stored = stored.filter(|stored| account.is_none_or(|id| stored.id.to_string() == id));
                let stored = stored.ok_or(Error::NotFound(WHAT))?;
                let left = self.intent(organization, service.id, stored.id, deadline);
                let set = self.organizations.set_service_credential(&before, service, None, None, Some(&left));
                if let Err(error) = set.await {
                    let now = self.organizations.get_consistent(organization).await;
                    if !now.is_ok_and(|row| !row.service_credentials.contains_key(&service.id)) {
                        return Err(error);
                    }
                }
                self.organizations
                    .wait_for_index(&before, |row| !row.service_credentials.contains_key(&service.id))
                    .await;
                self.stored.discard(&left).await;
                Ok(())
            }
        }
    }

    pub(crate) fn credential_secret(
        &self,
        organization: OrganizationId,
        service: ServiceId,
        account: &ConnectedAccount,
    ) -> Result<String> {
        let id: SecretId = account.id.parse().map_err(Error::internal)?;
        Ok(credential_secret(&self.secret_prefix, organization, service, id))
    }

    async fn at_pipedream(
        &self,
        organization: OrganizationId,
        apps: &[&str],
        deadline: Deadline,
    ) -> Result<Arc<[Account]>> {
        let changed_at = self.organizations.changed_at(organization).await?;
        let seen = self.seen().get(&organization).filter(|seen| seen.changed_at == changed_at).cloned();
        let fresh =
            seen.filter(|seen| seen.at.elapsed() < if seen.has(apps) { REMEMBERED } else { MISSING_REMEMBERED });
        if let Some(seen) = fresh {
            let cause = "it did not answer a moment ago".into();
            return seen.accounts.ok_or(Error::Unavailable("Pipedream", cause));
        }
        let began = self.forgotten.load(Ordering::Acquire);
        let asked = async {
            let project: Project = self.secrets.of_deployment(&self.pipedream_secret).await?;
            Ok::<_, Error>(
                self.pipedream.accounts(&project, organization, deadline.at_most(ASKED_WITHIN)).await?.into(),
            )
        };
        let asked: Result<Arc<[Account]>> = asked.await;
        let mut seen = self.seen();
        seen.retain(|_, seen| seen.at.elapsed() < REMEMBERED);
        if self.forgotten.load(Ordering::Acquire) == began {
            let accounts = asked.as_ref().ok().cloned();
            seen.insert(organization, Seen { at: Instant::now(), changed_at, accounts });
        }
        asked
    }

    async fn store(
        &self,
        organization: OrganizationId,
        service: &Service,
        content: &SecretString,
        name: String,
        deadline: Deadline,
    ) -> Result<ConnectedAccount> {
        let before = self.organizations.get_consistent(organization).await?;
        let credential =
            ServiceCredential { id: SecretId::generate(), name, updated_at: Timestamp::now(), newer: Map::new() };
        let account = of_credential(&credential);
        let made = self.intent(organization, service.id, credential.id, deadline);
        let old = before.service_credentials.get(&service.id);
        let left = old.map(|old| self.intent(organization, service.id, old.id, deadline));
        let (id, organizations) = (credential.id, &self.organizations);
        let write =
            organizations.set_service_credential(&before, service, Some(credential), Some(made.id), left.as_ref());
        self.stored.store(&made, content, write).await?;
        let names_it = |row: &crate::models::Organization| {
            row.service_credentials.get(&service.id).is_some_and(|stored| stored.id == id)
        };
        self.organizations.wait_for_index(&before, names_it).await;
        if let Some(left) = left {
            self.stored.discard(&left).await;
        }
        Ok(account)
    }

    fn intent(&self, organization: OrganizationId, service: ServiceId, id: SecretId, deadline: Deadline) -> Intent {
        let name = credential_secret(&self.secret_prefix, organization, service, id);
        StoredSecrets::intent(organization, name, SecretOwner::Credential { service, id }, deadline)
    }

    fn forget(&self, organization: OrganizationId) {
        self.forgotten.fetch_add(1, Ordering::AcqRel);
        self.seen().remove(&organization);
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, HashMap<OrganizationId, Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn app(service: &Service) -> Option<&str> {
    match &service.connection {
        ConnectionKind::Pipedream { app } => Some(app),
        _ => None,
    }
}

fn known<T>(read: Result<T>) -> Option<T> {
    read.inspect_err(|error| tracing::warn!("a connection could not be looked up: {}", error::chain(error))).ok()
}

fn of_accounts(accounts: &[Account], app: &str) -> Connection {
    let mut of_app: Vec<&Account> = accounts.iter().filter(|account| account.app == app).collect();
    // ISO 8601 sorts as text.
    of_app.sort_by(|one, other| other.created_at.cmp(&one.created_at));
    let shown = |accounts: &[&Account]| accounts.iter().map(|account| of_account(account)).collect::<Vec<_>>();
    let working: Vec<&Account> = of_app.iter().copied().filter(|account| account.works()).collect();
    match (working.is_empty(), of_app.is_empty()) {
        (false, _) => Connection::Connected { accounts: shown(&working) },
        (true, false) => Connection::Expired { accounts: shown(&of_app), working: Vec::new() },
        (true, true) => Connection::NotConnected,
    }
}

fn of_list(accounts: Vec<ConnectedAccount>) -> Connection {
    if accounts.is_empty() { Connection::NotConnected } else { Connection::Connected { accounts } }
}

fn of_account(account: &Account) -> ConnectedAccount {
    ConnectedAccount { id: account.id.clone(), name: account.name.clone() }
}

fn of_number(number: &PhoneNumber) -> ConnectedAccount {
    ConnectedAccount { id: number.id.to_string(), name: number.number.to_string() }
}

fn of_credential(credential: &ServiceCredential) -> ConnectedAccount {
    ConnectedAccount { id: credential.id.to_string(), name: credential.name.clone() }
}

#[cfg(test)]
mod tests;
