//! Who belongs to an organization, and what they may do in it.
//!
//! - `POST /api/{slug}/members` `{"user_id", "role", "name"?, "email"?, "phone"?, "timezone"?}`: adds a user by the `sub` of their
//!   tokens; 201 with the row, 200 for the same once more
//! - `GET /api/{slug}/members?limit=&cursor=`: in the order of their ids, as `{items, next_cursor}`
//! - `GET /api/{slug}/members/{user_id}`: one member
//! - `PATCH /api/{slug}/members/{user_id}`: another role, name, address, number or time zone
//! - `DELETE /api/{slug}/members/{user_id}`: `{"status": "deleted"}`; they are out with their next request
//!
//! All but leaving is for owners and admins, and only owners make, change and remove owners. Anybody may leave, and the last
//! owner cannot (`store/organization_members.rs`). What somebody began stays: it is the organization's.

mod body;

use serde::Serialize;
use serde_json::json;
use shared::{
    Error, Platform, Result,
    http::{self, Access, Reply, Request},
    models::{Contact, Member, OrganizationMember, Role, Timestamp, UserId},
    platform,
    store::{MemberCursor, OrganizationMembers, least_to_change},
};

use crate::body::NewMember;

pub struct Deps {
    pub access: Access,
    pub members: OrganizationMembers,
}

impl Deps {
    pub fn new(platform: &Platform) -> platform::Result<Self> {
        Ok(Self { access: platform.access()?, members: OrganizationMembers::new(platform.database()?) })
    }
}

/// A row as the organization's owners and admins see it.
#[derive(Serialize)]
struct MemberView {
    user_id: UserId,
    role: Role,
    name: Option<String>,
    email: Option<String>,
    phone: Option<String>,
    timezone: Option<String>,
    created_at: Option<Timestamp>,
    updated_at: Option<Timestamp>,
}

impl From<OrganizationMember> for MemberView {
    fn from(row: OrganizationMember) -> Self {
        let OrganizationMember { user_id, role, contact, created_at, updated_at, .. } = row;
        let Contact { name, email, phone, timezone } = contact;
        Self { user_id, role, name, email, phone, timezone, created_at, updated_at }
    }
}

pub async fn handle(deps: &Deps, request: Request) -> Result<Reply> {
    let member = deps.access.member(&request).await?;
    let organization = member.organization_id;
    match http::route(&request)[..] {
        ["POST", "api", _, "members"] => {
            let new = body::new_member(&http::json_body(&request)?)?;
            Box::pin(add(deps, &member, new)).await
        }
        ["GET", "api", _, "members"] => {
            let (limit, cursor) = http::page_by(&request, MemberCursor::parse)?;
            let page = deps.members.page(organization, cursor.as_ref(), limit).await?;
            Reply::ok(&page.map(MemberView::from))
        }
        ["GET", "api", _, "members", user] => Reply::ok(&MemberView::from(find(deps, &member, user).await?)),
        ["PATCH", "api", _, "members", user] => {
            let before = find(deps, &member, user).await?;
            let (role, contact) = body::change(&http::json_body(&request)?, &before)?;
            must_be_owner_for(&member, before.role.max(role))?;
            if (role, &contact) == (before.role, &before.contact) {
                return Reply::ok(&MemberView::from(before));
            }
            let after = Box::pin(deps.members.change(organization, &member, &before, role, &contact)).await?;
            Reply::ok(&MemberView::from(after))
        }
        ["DELETE", "api", _, "members", user] => {
            let user: UserId = http::id(user, "member")?;
            if user != member.user_id {
                member.must_be(Role::Admin)?;
            }
            let before = deps.members.find(organization, &user).await?.ok_or(Error::NotFound("member"))?;
            if user != member.user_id {
                must_be_owner_for(&member, before.role)?;
            }
            if let Err(error) = Box::pin(deps.members.remove(organization, &member, &before)).await {
                // The answer was lost, and the row is gone.
                if deps.members.find(organization, &user).await?.is_some() {
                    return Err(error);
                }
            }
            Reply::ok(&json!({"status": "deleted"}))
        }
        _ => Err(Error::NotFound("route")),
    }
}

/// The member that a segment of the path names, as of now.
async fn find(deps: &Deps, by: &Member, user: &str) -> Result<OrganizationMember> {
    let user = http::id(user, "member")?;
    deps.members.find(by.organization_id, &user).await?.ok_or(Error::NotFound("member"))
}

async fn add(deps: &Deps, by: &Member, new: NewMember) -> Result<Reply> {
    let NewMember { user_id, role, contact } = new;
    must_be_owner_for(by, role)?;
    let new = OrganizationMember::new(by.organization_id, user_id, role, contact);
    if deps.members.add(by.organization_id, by, &new).await? {
        return Reply::created(&MemberView::from(new));
    }
    let there = deps.members.find(by.organization_id, &new.user_id).await?;
    let there = there.ok_or_else(|| Error::Conflict("the member has just been removed; add them again".into()))?;
    if (there.role, &there.contact) == (new.role, &new.contact) {
        return Reply::ok(&MemberView::from(there));
    }
    Err(Error::Conflict(format!(
        "this user is a member already, with the role {}; change it with PATCH /members/{{user_id}}",
        there.role.as_str()
    )))
}

/// Only owners touch owners.
fn must_be_owner_for(by: &Member, role: Role) -> Result<()> {
    match least_to_change(role) {
        Role::Owner if by.role < Role::Owner => {
            Err(Error::Forbidden("only owners make, change and remove owners; this needs the role owner"))
        }
        _ => Ok(()),
    }
}
