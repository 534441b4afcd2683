//! Who may ask: a user of the JWT authorizer, or of a token that the function has verified ([`VerifiedToken`]), who is a member of
//! the organization in the URL, with the role that the route needs (`roles.rs`).
//!
//! The token's signature, issuer, audience and expiry have been checked; nobody knows yet who owns what. Slug and membership are
//! read beside each other. An organization that does not exist and one the user does not belong to are
//! answered alike.

use futures_util::join;
use lambda_http::{Request, RequestExt, request::RequestContext};

use super::{
    roles::least_role,
    route::{id, route},
    token::VerifiedToken,
};
use crate::{
    Error, Result,
    models::{Member, Role, Slug, UserId},
    store::{Database, OrganizationMembers, Organizations},
};

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

    async fn let_in(&self, request: &Request, user: impl FnOnce() -> Result<UserId>) -> Result<Member> {
        let asked = route(request);
        let least = least_role(&asked).ok_or(Error::NotFound("route"))?;
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
        Ok(member)
    }
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
    let context = request.request_context_ref().ok_or(Error::Unauthenticated)?;
    let RequestContext::ApiGatewayV2(context) = context else { return Err(Error::Unauthenticated) };
    let subject = context
        .authorizer
        .as_ref()
        .and_then(|authorizer| authorizer.jwt.as_ref())
        .and_then(|jwt| jwt.claims.get("sub"))
        .filter(|subject| !subject.is_empty())
        .ok_or(Error::Unauthenticated)?;
    Ok(UserId::new(subject))
}
