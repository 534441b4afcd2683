//! Who may ask: a user of the JWT authorizer who is a member of the organization in the URL.
//!
//! API Gateway has checked the token's signature, issuer, audience and expiry; it knows nothing of who owns what. Slug and
//! membership are read beside each other. An organization that does not exist and one the user does not belong to are
//! answered alike.

use futures_util::join;
use lambda_http::{Request, RequestExt, request::RequestContext};

use super::route::{id, route};
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
    /// [`Error::Unauthenticated`] without a user, [`Error::NotFound`] for an organization that is not theirs.
    pub async fn member(&self, request: &Request) -> Result<Member> {
        let [_, "api", slug, ..] = route(request)[..] else { return Err(Error::NotFound("route")) };
        let user_id = user(request)?;
        let slug: Slug = id(slug, "organization")?;
        // Both are awaited, whatever the first says: the time taken must not tell which organizations exist.
        let (organization, theirs) = join!(self.organizations.by_slug(&slug), self.members.of_user(&user_id));
        let (organization, theirs) = (organization?, theirs?);
        let membership = theirs.into_iter().find(|membership| membership.organization_id == organization.id);
        let role = membership.ok_or(Error::NotFound("organization"))?.role;
        Ok(Member { organization_id: organization.id, user_id, role })
    }
}

impl Member {
    /// For what not every member may do.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for a member who is neither owner nor admin.
    pub fn must_be_administrator(&self) -> Result<()> {
        match self.role {
            Role::Owner | Role::Admin => Ok(()),
            Role::Member => Err(Error::Forbidden("only an owner or an admin of the organization may do this")),
        }
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
