//! Access control: a user's membership and role in the organization of the request.
//!
//! The JWT authorizer, or the function itself ([`VerifiedToken`]), has checked the token's signature, issuer, audience and
//! expiry. Here slug and membership are read concurrently and the role is compared with the route's (`operation.rs`). Unknown
//! organizations and those of other users get the same answer.

use futures_util::{future::join_all, join};
use lambda_http::{Request, RequestExt, request::RequestContext};

use super::{
    Found,
    paging::query,
    route::{id, route},
    token::VerifiedToken,
};
use crate::{
    Error, Result,
    error::Problems,
    models::{Member, Membership, Role, Slug, UserId},
    store::{Database, OrganizationMembers, Organizations},
};

/// Names the organization by slug on routes without a slug in the path.
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

    /// The member calling `/api/{slug}/…`, in one round trip. `least`: the required role; `known`: the allowed query parameters,
    /// `None` for any.
    ///
    /// # Errors
    /// [`Error::Unauthenticated`] without a user, [`Error::NotFound`] for another user's organization, [`Error::Forbidden`] for
    /// a lesser role.
    pub async fn member(&self, request: &Request, least: Role, known: Option<&[&str]>) -> Result<Member> {
        self.let_in(request, || user(request), least, known).await
    }

    /// Like [`Access::member`], for functions without an authorizer.
    ///
    /// # Errors
    /// As [`Access::member`].
    pub async fn member_by_token(&self, found: &Found<'_>, token: &VerifiedToken) -> Result<Member> {
        let least = found.role().ok_or(Error::NotFound("route"))?;
        self.let_in(found.request, || Ok(token.user().clone()), least, None).await
    }

    /// The member calling a route without a slug: of the organization in the header `X-Organization`, or of the user's only one.
    ///
    /// # Errors
    /// As [`Access::member`]; [`Error::Malformed`], listing the user's slugs, if there are several and the header is absent.
    pub async fn person(&self, request: &Request, least: Role) -> Result<Person> {
        let user_id = user(request)?;
        self.person_of(request, user_id, email(request), least).await
    }

    /// Like [`Access::person`], for functions without an authorizer.
    ///
    /// # Errors
    /// As [`Access::person`].
    pub async fn person_by_token(&self, found: &Found<'_>, token: &VerifiedToken) -> Result<Person> {
        let least = found.role().ok_or(Error::NotFound("route"))?;
        self.person_of(found.request, token.user().clone(), token.email().map(str::to_owned), least).await
    }

    async fn person_of(
        &self,
        request: &Request,
        user_id: UserId,
        email: Option<String>,
        least: Role,
    ) -> Result<Person> {
        let named = request.headers().get(ORGANIZATION).map(|value| value.to_str().unwrap_or_default().trim());
        let (Membership { organization_id, role }, slug) = match named.filter(|named| !named.is_empty()) {
            Some(slug) => {
                let slug: Slug = id(slug, "organization")?;
                (self.membership(&slug, &user_id).await?, slug)
            }
            None => match self.members.of_user(&user_id).await?.as_slice() {
                [] => return Err(Error::NotFound("organization")),
                [one] => {
                    // Caches the row for the rest of the request.
                    let organization = self.organizations.get_consistent(one.organization_id).await?;
                    (one.clone(), organization.slug.clone())
                }
                several => return Err(self.which(several).await),
            },
        };
        let member = Member { organization_id, user_id, role };
        member.must_be(least)?;
        Ok(Person { member, slug, email })
    }

    /// Both are awaited in any case: timing must not reveal which organizations exist.
    async fn membership(&self, slug: &Slug, user: &UserId) -> Result<Membership> {
        let (organization, theirs) = join!(self.organizations.by_slug(slug), self.members.of_user(user));
        let (organization, theirs) = (organization?, theirs?);
        let membership = theirs.into_iter().find(|membership| membership.organization_id == organization.id);
        membership.ok_or(Error::NotFound("organization"))
    }

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

    async fn let_in(
        &self,
        request: &Request,
        user: impl FnOnce() -> Result<UserId>,
        least: Role,
        known: Option<&[&str]>,
    ) -> Result<Member> {
        let asked = route(request);
        let [_, "api", slug, ..] = asked[..] else { return Err(Error::NotFound("route")) };
        let user_id = user()?;
        let Membership { organization_id, role } = self.membership(&id(slug, "organization")?, &user_id).await?;
        let member = Member { organization_id, user_id, role };
        member.must_be(least)?;
        if let Some(known) = known {
            check_query(request, known)?;
        }
        Ok(member)
    }
}

/// Unknown parameters are refused: a misspelt one would otherwise be ignored and change the answer.
fn check_query(request: &Request, known: &[&str]) -> Result<()> {
    let mut problems = Problems::default();
    let mut told: Vec<String> = Vec::new();
    for (name, _) in query(request) {
        if !name.is_empty() && !known.contains(&name.as_str()) && !told.contains(&name) {
            let may = match known {
                [] => "this route takes none, leave it out".to_owned(),
                known => format!("known are {}", known.join(", ")),
            };
            problems.add(name.clone(), format!("is not a known query parameter; {may}"));
            told.push(name);
        }
    }
    problems.into_result(Some(()))
}

#[derive(Debug, Clone)]
pub struct Person {
    pub member: Member,
    /// Of the organization.
    pub slug: Slug,
    /// Absent if the token has none or an unverified one.
    pub email: Option<String>,
}

impl Member {
    /// For checks that depend on more than the route.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for a lesser role, naming the required one.
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

/// A claim that the authorizer verified.
fn claim<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    let RequestContext::ApiGatewayV2(context) = request.request_context_ref()? else { return None };
    context.authorizer.as_ref()?.jwt.as_ref()?.claims.get(name).map(String::as_str)
}
