//! Phone numbers of an organization, each from a Twilio account, and its do-not-call list.
//!
//! Bodies are in `body.rs`. VAPI's id of a number is accepted if VAPI confirms the number. Credentials are tried at Twilio,
//! which must confirm that the number belongs to the account, and then go to Secrets Manager: they are in no table, no answer
//! and no log. A secret is written before its row and deleted after it, and new credentials get a secret of their own, so a row
//! always names a complete secret. A secret left by a crash is on record as an intent, and settled.

mod body;
mod do_not_call;

use futures_util::join;
use serde::Serialize;
use shared::{
    Deadline, Error, Result,
    accounts::Accounts,
    clients::{
        Twilio, Vapi,
        twilio::{Account, NumberStatus},
    },
    declared::Whole,
    described::Described,
    error::Problems,
    http::{Access, Asked, Created, Deleted, Id, Paged, Sent, Shown, operation},
    lifecycle::StoredSecrets,
    models::{
        AgentId, E164, Intent, KeyService, OrganizationId, PhoneNumber, PhoneNumberId, SecretId, SecretOwner, Timestamp,
    },
    platform::Parts,
    store::{Agents, CheckedWith, DoNotCallList, NUMBER_IS_REGISTERED, Page, PhoneNumbers},
};

use uuid::Uuid;

use crate::body::{NO_VARIABLES, NewPhoneNumber, PhoneNumberChange, SAME_NUMBER};

shared::routes!(
    Deps,
    "phone numbers": register_phone_number,
    list_phone_numbers,
    get_phone_number,
    update_phone_number,
    delete_phone_number,
    do_not_call::add_do_not_call,
    do_not_call::list_do_not_call,
    do_not_call::remove_do_not_call,
);

#[derive(Parts)]
pub struct Deps {
    pub access: Access,
    pub agents: Agents,
    pub phone_numbers: PhoneNumbers,
    pub do_not_call: DoNotCallList,
    pub twilio: Twilio,
    pub vapi: Vapi,
    pub accounts: Accounts,
    pub secrets: StoredSecrets,
    /// The prefix of the secrets' names, before the phone number's id; later credentials append an id of their own.
    #[part(platform.twilio_secret_prefix()?)]
    pub secret_prefix: String,
}

/// A row of `phone_numbers`, without where its credentials are.
#[derive(Serialize, Described)]
struct PhoneNumberView {
    id: PhoneNumberId,
    organization_id: OrganizationId,
    number: E164,
    label: String,
    agent_id: Option<AgentId>,
    fallback_number: Option<E164>,
    fallback_sentence: Option<String>,
    language: Option<String>,
    #[schema(format = "uuid")]
    vapi_phone_number_id: Option<String>,
    wait_ms: u32,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl From<PhoneNumber> for PhoneNumberView {
    fn from(row: PhoneNumber) -> Self {
        Self {
            id: row.id,
            organization_id: row.organization_id,
            number: row.number,
            label: row.label,
            agent_id: row.agent_id,
            fallback_number: row.fallback_number,
            fallback_sentence: row.fallback_sentence,
            language: row.language,
            vapi_phone_number_id: row.vapi_phone_number_id,
            wait_ms: row.wait_ms,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

/// Register a number of a Twilio account
///
/// Twilio is asked whether the credentials are right and the number is the account's; then they are kept in Secrets
/// Manager, and no answer shows them again. A number that any organization has registered is refused with 409.
///
/// - 201: The number's row, without its credentials.
///
/// ```json,number
/// {"number": "+15005550006", "label": "Main line", "agent_id": "01930f5e-6a1b-7c2d-8e3f-4a5b6c7d8e9f",
///  "fallback_number": "+15005550007",
///  "twilio": {"account_sid": "AC0123456789abcdef0123456789abcdef", "auth_token": "your-auth-token"}}
/// ```
#[operation(POST "/api/{slug}/phone-numbers", Admin, also(409, 502, 504))]
async fn register_phone_number(
    deps: &Deps,
    asked: &Asked<'_>,
    body: Sent<NewPhoneNumber>,
) -> Result<Created<PhoneNumberView>> {
    let new = body::new_number(&body.json()?)?;
    let row = register(deps, asked.organization(), new, asked.deadline).await?;
    Ok(Created(row.into()))
}

/// List the organization's phone numbers
///
/// Newest first.
///
/// - 200: A page of phone numbers.
#[operation(GET "/api/{slug}/phone-numbers", Viewer)]
async fn list_phone_numbers(deps: &Deps, asked: &Asked<'_>, page: Paged) -> Result<Page<PhoneNumberView>> {
    let page = deps.phone_numbers.page(asked.organization(), page.cursor.as_ref(), page.limit).await?;
    Ok(page.map(PhoneNumberView::from))
}

/// Show a phone number
///
/// - 200: The number's row, without its credentials.
#[operation(GET "/api/{slug}/phone-numbers/{id}", Viewer, resource(ShowPhoneNumber))]
async fn get_phone_number(deps: &Deps, asked: &Asked<'_>, id: Id<PhoneNumberId>) -> Result<Shown<PhoneNumberView>> {
    Ok(Shown(deps.phone_numbers.get(asked.organization(), id.0).await?.into()))
}

/// Change a phone number
///
/// Absent fields stay unchanged. New credentials are tried at Twilio before they take the old ones' place; every later
/// request uses them. A change that another one came before is refused with 409.
///
/// - 200: The number's row as it is now.
///
/// ```json,agent
/// {"agent_id": "01930f5e-6a1b-7c2d-8e3f-4a5b6c7d8e9f", "label": "Nights"}
/// ```
/// ```json,nobody
/// {"agent_id": null, "fallback_number": null}
/// ```
/// ```json,account
/// {"twilio": {"account_sid": "AC0123456789abcdef0123456789abcdef", "auth_token": "your-auth-token"}}
/// ```
#[operation(PATCH "/api/{slug}/phone-numbers/{id}", Admin, also(409, 502, 504))]
async fn update_phone_number(
    deps: &Deps,
    asked: &Asked<'_>,
    id: Id<PhoneNumberId>,
    body: Sent<PhoneNumberChange>,
) -> Result<Shown<PhoneNumberView>> {
    let change = body::change(&body.json()?)?;
    Ok(Shown(update(deps, asked.organization(), id.0, change, asked.deadline).await?.into()))
}

/// Remove a phone number
///
/// The number stays at Twilio. Its credentials can be restored in Secrets Manager for 30 days. A tool that sends from it
/// tells the model that the number is no longer set up.
///
/// - 200: It is gone.
#[operation(DELETE "/api/{slug}/phone-numbers/{id}", Admin, also(409), resource(RemovePhoneNumber))]
async fn delete_phone_number(deps: &Deps, asked: &Asked<'_>, id: Id<PhoneNumberId>) -> Result<Deleted> {
    remove(deps, asked.organization(), id.0, asked.deadline).await?;
    Ok(Deleted)
}

async fn register(
    deps: &Deps,
    organization: OrganizationId,
    new: NewPhoneNumber,
    deadline: Deadline,
) -> Result<PhoneNumber> {
    let NewPhoneNumber { number, label, agent_id, vapi_phone_number_id, .. } = new;
    let account = Account::from(new.twilio);
    let (checked, present) = join!(
        check(
            deps,
            organization,
            Named { agent: agent_id, account: Some(&account), at_vapi: vapi_phone_number_id },
            &number,
            deadline
        ),
        deps.phone_numbers.by_number(&number),
    );
    // Only a caller who has proved ownership learns that the number is registered. A row written by hand has no guard item.
    let checked = checked?;
    if present?.is_some() {
        return Err(Error::Conflict(NUMBER_IS_REGISTERED.into()));
    }
    let id = PhoneNumberId::generate();
    let now = Timestamp::now();
    let row = PhoneNumber {
        id,
        organization_id: organization,
        number,
        label: label.0,
        agent_id,
        fallback_number: new.fallback_number,
        fallback_sentence: new.fallback_sentence.map(String::from),
        language: new.language.map(String::from),
        vapi_phone_number_id: vapi_phone_number_id.map(|id| id.to_string()),
        wait_ms: new.wait_ms.map_or(0, |wait| wait.0),
        credentials_secret: secret_name(deps, id),
        created_at: now,
        updated_at: now,
    };
    let secret = secret_intent(organization, id, &row.credentials_secret, deadline);
    let write = deps.phone_numbers.create(&row, secret.id, checked);
    deps.secrets.store(&secret, &account.to_secret(), write).await.map_err(no_agent)?;
    Ok(row)
}

async fn update(
    deps: &Deps,
    organization: OrganizationId,
    id: PhoneNumberId,
    change: PhoneNumberChange,
    deadline: Deadline,
) -> Result<PhoneNumber> {
    let before = deps.phone_numbers.get(organization, id).await?;
    if change.fallback_number.given() == Some(&before.number) {
        return Err(Error::invalid("fallback_number", SAME_NUMBER));
    }
    let account = change.twilio.0.map(Account::from);
    let named = Named {
        agent: change.agent_id.given().copied(),
        account: account.as_ref(),
        at_vapi: change.vapi_phone_number_id.given().copied(),
    };
    let checked = check(deps, organization, named, &before.number, deadline).await?;
    let mut after = PhoneNumber {
        label: change.label.0.map_or_else(|| before.label.clone(), |label| label.0),
        agent_id: change.agent_id.after(before.agent_id),
        fallback_number: change.fallback_number.after(before.fallback_number.clone()),
        fallback_sentence: change.fallback_sentence.after(before.fallback_sentence.clone()),
        language: change.language.after(before.language.clone()),
        vapi_phone_number_id: change.vapi_phone_number_id.after(before.vapi_phone_number_id.clone()),
        wait_ms: change.wait_ms.after(Some(Whole(before.wait_ms))).map_or(0, |wait| wait.0),
        ..before.clone()
    };
    if after.wait_ms > 0 && after.vapi_phone_number_id.is_none() {
        return Err(Error::invalid("wait_ms", NO_VARIABLES));
    }
    let Some(account) = account else {
        let write = deps.phone_numbers.update(organization, &before, &mut after, None, None, checked);
        write.await.map_err(no_agent)?;
        return Ok(after);
    };
    let name = format!("{}/{}", secret_name(deps, id), SecretId::generate());
    let made = secret_intent(organization, id, &name, deadline);
    let left = own_secret(deps, &before).map(|old| secret_intent(organization, id, old, deadline));
    after.credentials_secret.clone_from(&name);
    let write = deps.phone_numbers.update(organization, &before, &mut after, Some(made.id), left.as_ref(), checked);
    deps.secrets.store(&made, &account.to_secret(), write).await.map_err(no_agent)?;
    deps.phone_numbers.wait_for_index(&before.number, Some(&name)).await;
    if let Some(left) = left {
        deps.secrets.discard(&left).await;
    }
    Ok(after)
}

async fn remove(deps: &Deps, organization: OrganizationId, id: PhoneNumberId, deadline: Deadline) -> Result<()> {
    let row = deps.phone_numbers.get(organization, id).await?;
    let left = own_secret(deps, &row).map(|secret| secret_intent(organization, id, secret, deadline));
    if let Err(error) = deps.phone_numbers.delete(organization, &row, left.as_ref()).await {
        // The row went with its intent, but the answer was lost.
        let Err(Error::NotFound(_)) = deps.phone_numbers.get(organization, id).await else {
            return Err(error);
        };
    }
    deps.phone_numbers.wait_for_index(&row.number, None).await;
    if let Some(left) = left {
        deps.secrets.discard(&left).await;
    }
    Ok(())
}

/// References of a body.
struct Named<'a> {
    agent: Option<AgentId>,
    account: Option<&'a Account>,
    at_vapi: Option<Uuid>,
}

/// Checks that the references exist: the agent here, the number in the Twilio account and under its id at VAPI. All problems
/// are named at once. The VAPI key is that with which the number was found.
async fn check(
    deps: &Deps,
    organization: OrganizationId,
    Named { agent, account, at_vapi }: Named<'_>,
    number: &E164,
    deadline: Deadline,
) -> Result<Option<CheckedWith>> {
    let agent = async {
        match agent {
            Some(agent) => deps.agents.get(organization, agent).await.map(drop),
            None => Ok(()),
        }
    };
    let standing = async {
        match account {
            Some(account) => deps.twilio.number_status(account, number, deadline).await,
            None => Ok(NumberStatus::Owner),
        }
    };
    let found = async {
        match at_vapi {
            Some(id) => found_at_vapi(deps, organization, id, number, deadline).await,
            None => Ok(None),
        }
    };
    let (agent, standing, found) = join!(agent, standing, found);
    let mut problems = Problems::default();
    match agent.map_err(no_agent) {
        Err(Error::Invalid(agent)) => agent.iter().for_each(|wrong| problems.add(&wrong.field, &wrong.problem)),
        other => other?,
    }
    match standing? {
        NumberStatus::Owner => {}
        NumberStatus::NotOwner => problems.add("number", "is not a number of this Twilio account"),
        NumberStatus::NoAccount => problems.add("twilio.account_sid", "is not an account that Twilio lets in"),
        NumberStatus::WrongAuthToken => {
            problems.add("twilio.auth_token", "was refused by Twilio: it is not the auth token of this account");
        }
        NumberStatus::WrongApiKey => {
            problems.add("twilio.api_key_secret", "was refused by Twilio: the key is not one of this account");
        }
    }
    let found = found?;
    if at_vapi.is_some() && found.is_none() {
        problems.add(
            "vapi_phone_number_id",
            "is not VAPI's id of this number; GET /phone-number at VAPI lists the ids, with the key of the account that this \
             organization uses",
        );
    }
    problems.into_result(Some(found))
}

/// The VAPI key, if VAPI's number with this id is this number. The caller has proved ownership of the number at Twilio, which also
/// counts in the shared VAPI account. Some numbers at VAPI do not show their digits: those are accepted in an organization's
/// own account only.
async fn found_at_vapi(
    deps: &Deps,
    organization: OrganizationId,
    id: Uuid,
    number: &E164,
    deadline: Deadline,
) -> Result<Option<CheckedWith>> {
    let checked = deps.accounts.checked_with(organization).await?;
    let own = deps.accounts.own(organization, KeyService::Vapi).await?;
    let is_shared = own.is_none();
    let account = match own {
        Some(own) => own,
        None => deps.accounts.platform_vapi().await?,
    };
    let found = deps.vapi.phone_number(&account, &id.hyphenated().to_string(), deadline).await?;
    let is_it = found.is_some_and(|found| match found.number {
        Some(theirs) => theirs.parse().ok().as_ref() == Some(number),
        None => !is_shared,
    });
    Ok(is_it.then_some(checked))
}

/// Another organization's agent, and a deleted one, are not agents of the body's organization.
fn no_agent(error: Error) -> Error {
    match error {
        Error::NotFound("agent") => Error::invalid("agent_id", "is not an agent of this organization"),
        other => other,
    }
}

fn secret_name(deps: &Deps, id: PhoneNumberId) -> String {
    format!("{}{id}", deps.secret_prefix)
}

/// The name of the secret, unless it was made by hand elsewhere. A row written by hand may name it by its ARN, which ends in
/// the name, a dash and six characters of AWS's.
fn own_secret<'a>(deps: &Deps, row: &'a PhoneNumber) -> Option<&'a str> {
    let named = row.credentials_secret.as_str();
    let name = match named.split_once(":secret:") {
        Some((_, name)) => name.rsplit_once('-').map_or(name, |(name, _)| name),
        None => named,
    };
    name.starts_with(&secret_name(deps, row.id)).then_some(name)
}

fn secret_intent(organization: OrganizationId, id: PhoneNumberId, secret: &str, deadline: Deadline) -> Intent {
    StoredSecrets::intent(organization, secret, SecretOwner::PhoneNumber(id), deadline)
}
