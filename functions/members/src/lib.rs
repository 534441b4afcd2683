//! Members of an organization and their roles.
//!
//! Everything except leaving is for owners and admins, and only owners make, change and remove owners. Anybody may leave,
//! except the last owner (`store/organization_members.rs`). A former member's runs and automations stay with the organization.

mod audit;
mod body;

use serde::Serialize;
use shared::{
    Error, Result,
    described::Described,
    http::{Access, Asked, Deleted, Id, Made, Paged, Sent, Shown, operation},
    models::{Contact, Member, OrganizationMember, Role, Timestamp, UserId},
    platform::Parts,
    store::{AuditLog, OrganizationMembers, Page, least_role_to_change},
};

use crate::body::{MemberChange, NewMember};

shared::routes!(Deps, "members": add_member, list_members, get_member, update_member, remove_member, audit::list_audit_entries);

#[derive(Parts)]
pub struct Deps {
    pub access: Access,
    pub members: OrganizationMembers,
    pub audit: AuditLog,
}

/// A row of `organization_members`. Automations that the user activates find their name, address, number and time zone as
/// `{{user.name}}`, `{{user.email}}`, `{{user.phone}}` and `{{user.timezone}}`. The times are null in a row that was written by hand
/// without.
#[derive(Serialize, Described)]
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

/// Add a member
///
/// A user by the `sub` of their tokens: with the next request they are in. Nobody is invited or told. The same once more is
/// answered 200 with the row; for a member who has another role, or is called otherwise, 409: that is for PATCH. Another
/// owner is made by an owner.
///
/// - 201: The member's row.
/// - 200: The row of who was a member just so.
///
/// ```json,member
/// {"user_id": "0192f0c1-0000-7000-8000-000000000007", "role": "member"}
/// ```
/// ```json,person
/// {"user_id": "auth0|5f7c8ec7c33c6c004bbafe82", "role": "admin", "name": "Ana Ruiz", "email": "ana@harbour-dental.example",
///  "phone": "+14155550101", "timezone": "Europe/Madrid"}
/// ```
#[operation(POST "/api/{slug}/members", Admin, also(409))]
async fn add_member(deps: &Deps, asked: &Asked<'_>, body: Sent<NewMember>) -> Result<Made<MemberView>> {
    let by = &asked.member;
    let new = body.read()?;
    must_be_owner_for(by, new.role)?;
    let (user_id, role) = (new.user_id.clone(), new.role);
    let new = OrganizationMember::new(by.organization_id, user_id, role, new.contact());
    if deps.members.add(by.organization_id, by, &new).await? {
        return Ok(Made::New(new.into()));
    }
    let there = deps.members.find(by.organization_id, &new.user_id).await?;
    let there = there.ok_or_else(|| Error::Conflict("the member has just been removed; add them again".into()))?;
    if (there.role, &there.contact) == (new.role, &new.contact) {
        return Ok(Made::There(there.into()));
    }
    let differs = if there.role == new.role {
        "with another name, e-mail address, phone number or time zone".to_owned()
    } else {
        format!("with the role {}", there.role.as_str())
    };
    Err(Error::Conflict(format!(
        "this user is a member already, {differs}; change it with PATCH /api/{{slug}}/members/{{user_id}}"
    )))
}

/// List the organization's members
///
/// In the order of their ids.
///
/// - 200: A page of members.
#[operation(GET "/api/{slug}/members", Admin)]
async fn list_members(deps: &Deps, asked: &Asked<'_>, page: Paged<String>) -> Result<Page<MemberView>> {
    let page = deps.members.page(asked.organization(), page.cursor.as_ref(), page.limit).await?;
    Ok(page.map(MemberView::from))
}

/// Show a member
///
/// - 200: The member's row.
#[operation(GET "/api/{slug}/members/{user_id}", Admin, resource(ShowMember))]
async fn get_member(deps: &Deps, asked: &Asked<'_>, user: Id<UserId>) -> Result<Shown<MemberView>> {
    Ok(Shown(find(deps, asked, &user).await?.into()))
}

/// Change a member
///
/// Absent fields stay unchanged; `null` clears. Another role holds with the member's next request. Only owners make
/// and change owners; the last one cannot give the role up, which is refused with 409.
///
/// - 200: The member's row as it is now.
///
/// ```json,role
/// {"role": "admin"}
/// ```
/// ```json,person
/// {"name": "Ana Ruiz", "phone": null}
/// ```
#[operation(PATCH "/api/{slug}/members/{user_id}", Admin, also(409))]
async fn update_member(
    deps: &Deps,
    asked: &Asked<'_>,
    user: Id<UserId>,
    body: Sent<MemberChange>,
) -> Result<Shown<MemberView>> {
    let before = find(deps, asked, &user).await?;
    let change = body.read()?;
    let (role, contact) = (change.role.0.unwrap_or(before.role), change.contact(before.contact.clone()));
    must_be_owner_for(&asked.member, before.role.max(role))?;
    if (role, &contact) == (before.role, &before.contact) {
        return Ok(Shown(before.into()));
    }
    let changed = deps.members.change(asked.organization(), &asked.member, &before, role, &contact);
    Ok(Shown(changed.await?.into()))
}

/// Remove a member, or leave
///
/// The member loses access with the next request. Oneself anybody may remove; others are for admins, and owners for
/// owners. The last owner cannot leave, which is refused with 409. Their work stays, because it belongs to the
/// organization: runs go on, automations keep their schedules, approvals wait for others. Their conversations stay
/// until they expire; nobody else reads them.
///
/// - 200: They are out.
#[operation(DELETE "/api/{slug}/members/{user_id}", Viewer, also(403, 409))]
async fn remove_member(deps: &Deps, asked: &Asked<'_>, user: Id<UserId>) -> Result<Deleted> {
    let (member, leaves) = (&asked.member, user.0 == asked.member.user_id);
    if !leaves {
        member.must_be(Role::Admin)?;
    }
    let before = find(deps, asked, &user).await?;
    if !leaves {
        must_be_owner_for(member, before.role)?;
    }
    if let Err(error) = deps.members.remove(asked.organization(), member, &before).await {
        // The row is gone, but the answer of the transaction was lost.
        if deps.members.find(asked.organization(), &user.0).await?.is_some() {
            return Err(error);
        }
    }
    Ok(Deleted)
}

async fn find(deps: &Deps, asked: &Asked<'_>, user: &Id<UserId>) -> Result<OrganizationMember> {
    deps.members.find(asked.organization(), &user.0).await?.ok_or(Error::NotFound("member"))
}

/// Only owners change owners.
fn must_be_owner_for(by: &Member, role: Role) -> Result<()> {
    match least_role_to_change(role) {
        Role::Owner if by.role < Role::Owner => {
            Err(Error::Forbidden("only owners make, change and remove owners; this needs the role owner"))
        }
        _ => Ok(()),
    }
}
