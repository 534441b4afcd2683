//! Who may ask: a user of the JWT authorizer, or of a token that the function has verified ([`VerifiedToken`]), who is a member of
//! the organization in the URL, with the role that the route needs (`operation.rs`, `roles.rs`).
//!
//! The token's signature, issuer, audience and expiry have been checked; nobody knows yet who owns what. Slug and membership are
//! read beside each other. An organization that does not exist and one the user does not belong to are
//! answered alike.

use futures_util::{future::join_all, join};
use lambda_http::{Request, RequestExt, request::RequestContext};

use super::{
    page::query,
    roles::{known_in_query, least_role},
    route::{id, route},
    token::VerifiedToken,
};
use crate::{
    Error, Result,
    error::Problems,
    models::{Member, Membership, Role, Slug, UserId},
    store::{Database, OrganizationMembers, Organizations},
};

/// Names the organization by its slug, where the path does not.
const ORGANIZATION: &str = "x-organization";

#[derive(Clone)]
pub struct Access {
    organizations: Organizations,
    members: OrganizationMembers,
}

impl Access {
    pub fn new(database: &Database, organizations: Organizations) -> Self {
        Self { organizations, members: OrganizationMembers::new(database) }
    }

    /// The member who asks something of `/api/{slug}/…`, in one round trip. A handler asks this first, and once.
    ///
    /// # Errors
    /// [`Error::Unauthenticated`] without a user, [`Error::NotFound`] for an organization that is not theirs,
    /// [`Error::Forbidden`] for a member whose role does not do.
    pub async fn member(&self, request: &Request) -> Result<Member> {
        self.let_in(request, || user(request)).await
    }

    /// As [`Access::member`], where no authorizer stands in front of the function.
    ///
    /// # Errors
    /// As [`Access::member`].
    pub async fn member_by_token(&self, request: &Request, token: &VerifiedToken) -> Result<Member> {
        self.let_in(request, || Ok(token.user().clone())).await
    }

    /// The member who asks something of a route that names no organization: the one whose slug is in the header `X-Organization`, or
    /// the only one they belong to.
    ///
    /// # Errors
    /// As [`Access::member`]; [`Error::Malformed`] with the slugs to choose from for somebody who belongs to several and names
    /// none.
    pub async fn person(&self, request: &Request) -> Result<Person> {
        let user_id = user(request)?;
        self.person_of(request, user_id, email(request)).await
    }

    /// As [`Access::person`], where no authorizer stands in front of the function.
    ///
    /// # Errors
    /// As [`Access::person`].
    pub async fn person_by_token(&self, request: &Request, token: &VerifiedToken) -> Result<Person> {
        self.person_of(request, token.user().clone(), token.email().map(str::to_owned)).await
    }

    async fn person_of(&self, request: &Request, user_id: UserId, email: Option<String>) -> Result<Person> {
        let least = least_role(&route(request)).ok_or(Error::NotFound("route"))?;
        let named = request.headers().get(ORGANIZATION).map(|value| value.to_str().unwrap_or_default().trim());
        let known = match named.filter(|named| !named.is_empty()) {
            Some(slug) => {
                let slug: Slug = id(slug, "organization")?;
                // As where the slug is in the path.
                let (organization, theirs) = join!(self.organizations.by_slug(&slug), self.members.of_user(&user_id));
                let (organization, theirs) = (organization?, theirs?);
                let membership = theirs.into_iter().find(|membership| membership.organization_id == organization.id);
                membership.map(|membership| (membership, slug))
            }
            None => match self.members.of_user(&user_id).await?.as_slice() {
                [] => None,
                [one] => {
                    // It is remembered for whatever else this request asks of it.
                    let organization = self.organizations.get_consistent(one.organization_id).await?;
                    Some((one.clone(), organization.slug.clone()))
                }
                several => return Err(self.which(several).await),
            },
        };
        let (Membership { organization_id, role }, slug) = known.ok_or(Error::NotFound("organization"))?;
        let member = Member { organization_id, user_id, role };
        member.must_be(least)?;
        Ok(Person { member, slug, email })
    }

    /// The question which of several organizations is meant.
    async fn which(&self, memberships: &[Membership]) -> Error {
        let read = memberships.iter().map(|membership| self.organizations.get_consistent(membership.organization_id));
        let mut slugs = Vec::new();
        for organization in join_all(read).await {
            match organization {
                Ok(organization) => slugs.push(organization.slug.to_string()),
                Err(Error::NotFound(_)) => {}
                Err(error) => return error,
            }
        }
        slugs.sort();
        Error::Malformed(format!(
            "you belong to several organizations; name one in the header X-Organization: {}",
            slugs.join(", ")
        ))
    }

    /// As [`Access::member`], for a route that says itself what it needs.
    ///
    /// # Errors
    /// As [`Access::member`].
    pub async fn member_for(&self, request: &Request, least: Role, known: Option<&[&str]>) -> Result<Member> {
        self.let_in_for(request, || user(request), least, known).await
    }

    async fn let_in(&self, request: &Request, user: impl FnOnce() -> Result<UserId>) -> Result<Member> {
        let asked = route(request);
        let least = least_role(&asked).ok_or(Error::NotFound("route"))?;
        self.let_in_for(request, user, least, known_in_query(&asked)).await
    }

    async fn let_in_for(
        &self,
        request: &Request,
        user: impl FnOnce() -> Result<UserId>,
        least: Role,
        known: Option<&[&str]>,
    ) -> Result<Member> {
        let asked = route(request);
        let [_, "api", slug, ..] = asked[..] else { return Err(Error::NotFound("route")) };
        let user_id = user()?;
        let slug: Slug = id(slug, "organization")?;
        // Both are awaited, whatever the first says: the time taken must not tell which organizations exist.
        let (organization, theirs) = join!(self.organizations.by_slug(&slug), self.members.of_user(&user_id));
        let (organization, theirs) = (organization?, theirs?);
        let membership = theirs.into_iter().find(|membership| membership.organization_id == organization.id);
        let role = membership.ok_or(Error::NotFound("organization"))?.role;
        let member = Member { organization_id: organization.id, user_id, role };
        member.must_be(least)?;
        if let Some(known) = known {
            check_query(request, known)?;
        }
        Ok(member)
    }
}

/// A misspelt parameter would be passed over, and the answer be another one than was asked for.
fn check_query(request: &Request, known: &[&str]) -> Result<()> {
    let mut problems = Problems::default();
    let mut told: Vec<String> = Vec::new();
    for (name, _) in query(request) {
        if !name.is_empty() && !known.contains(&name.as_str()) && !told.contains(&name) {
            let may = match known {
                [] => "none is known here".to_owned(),
                known => format!("known are {}", known.join(", ")),
            };
            problems.add(name.clone(), format!("is not a known query parameter; {may}"));
            told.push(name);
        }
    }
    problems.into_result(Some(()))
}

/// Somebody who was let in, with what their token says of them.
#[derive(Debug, Clone)]
pub struct Person {
    pub member: Member,
    /// Of the organization.
    pub slug: Slug,
    /// Absent where the token names none, or says that it is not verified.
    pub email: Option<String>,
}

impl Member {
    /// For what depends on more than the route.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for a member of a lesser role, which names the one needed.
    pub fn must_be(&self, least: Role) -> Result<()> {
        if self.role >= least { Ok(()) } else { Err(Error::Forbidden(refusal(least))) }
    }
}

const fn refusal(least: Role) -> &'static str {
    match least {
        Role::Viewer => "this needs at least the role viewer in this organization; ask one of its owners for it",
        Role::Member => "this needs at least the role member in this organization; ask one of its owners for it",
        Role::Admin => "this needs at least the role admin in this organization; ask one of its owners for it",
        Role::Owner => "this needs the role owner in this organization; ask one of its owners for it",
    }
}

fn user(request: &Request) -> Result<UserId> {
    let subject = claim(request, "sub").filter(|subject| !subject.is_empty());
    Ok(UserId::new(subject.ok_or(Error::Unauthenticated)?))
}

fn email(request: &Request) -> Option<String> {
    let unverified = claim(request, "email_verified").is_some_and(|verified| verified == "false");
    let email = claim(request, "email").map(str::trim).filter(|email| !email.is_empty() && !unverified);
    email.map(str::to_owned)
}

/// What the authorizer has found in the token.
fn claim<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    let RequestContext::ApiGatewayV2(context) = request.request_context_ref()? else { return None };
    context.authorizer.as_ref()?.jwt.as_ref()?.claims.get(name).map(String::as_str)
}
