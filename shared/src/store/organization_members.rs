//! `organization_members`. Key: `user_id` (partition), `organization_id` (sort).
//!
//! Index `by_organization`: `organization_id`, `user_id`; it includes rows written by hand without times.
//!
//! An organization always keeps an owner, without a count to maintain: the transaction that demotes another owner checks that
//! the acting user is still one, and an owner who steps down has another owner's row checked.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::{
    Cursor, Page,
    audit::Change,
    database::{Database, Item, key, rows, text},
    table::{Table, wait_for_index},
    write::{Refused, Write, transact},
};
use crate::{
    Error, Result,
    models::{Act, Contact, Member, Membership, Noun, OrganizationId, OrganizationMember, Role, Timestamp, UserId},
};

/// Candidates for the remaining owner; the index may lag.
const OTHERS: usize = 5;

#[derive(Clone)]
pub struct OrganizationMembers {
    table: Table,
}

impl OrganizationMembers {
    pub fn new(database: &Database) -> Self {
        Self { table: database.table("organization_members") }
    }

    /// The user's organizations, read consistently: a removed user is locked out at the next request.
    pub async fn of_user(&self, user: &UserId) -> Result<Vec<Membership>> {
        self.table.query("#user_id = :user").with([(":user", text(user))]).now().collect().await
    }

    /// `{id, email, timezone, phone, name}` of a member, as far as known: the value of `{{user.…}}`.
    pub async fn person(&self, organization: OrganizationId, user: &UserId) -> Result<Value> {
        let row: Option<Map<String, Value>> = self.table.get(row(organization, user)).await?;
        let mut person = row.unwrap_or_default();
        person.retain(|name, _| ["email", "timezone", "phone", "name"].contains(&name.as_str()));
        person.insert("id".into(), user.to_string().into());
        Ok(Value::Object(person))
    }

    /// The current membership of a user on whose behalf work continues.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the user no longer belongs to the organization.
    pub async fn still_member(&self, organization: OrganizationId, user: &UserId) -> Result<Member> {
        let theirs = self.of_user(user).await?;
        let here = theirs.into_iter().find(|membership| membership.organization_id == organization);
        let role = here.ok_or(Error::NotFound("organization"))?.role;
        Ok(Member { organization_id: organization, user_id: user.clone(), role })
    }

    pub async fn find(&self, organization: OrganizationId, user: &UserId) -> Result<Option<OrganizationMember>> {
        self.table.get_consistent(row(organization, user)).await
    }

    pub async fn page(
        &self,
        organization: OrganizationId,
        after: Option<&Cursor<String>>,
        limit: i32,
    ) -> Result<Page<OrganizationMember>> {
        let start = after.map(|Cursor(user)| row(organization, &UserId::new(user)));
        let (items, next) = self.table.of_organization(organization).page(start, Some(limit)).await?;
        let next = next.as_ref().and_then(|key| key.get("user_id")?.as_s().ok());
        Ok(Page { items: rows(items), next_cursor: next.map(|user| Cursor(user).to_string()) })
    }

    /// Adds a member on behalf of `by`, who must still be an admin, or an owner to add an owner. False if the user is a member
    /// already.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the role of `by` has changed.
    pub async fn add(&self, organization: OrganizationId, by: &Member, new: &OrganizationMember) -> Result<bool> {
        if new.user_id == by.user_id {
            // A transaction takes no two operations on one row.
            return Ok(false);
        }
        let added = member(Act::Created, &new.user_id).with("role", new.role.as_str());
        let writes = vec![
            self.put_in_transaction(new)?.audited(added)?,
            self.is_still(organization, by, least_role_to_change(new.role)),
        ];
        match transact(writes).await {
            Ok(()) => {}
            Err(Refused::Condition(0)) => return Ok(false),
            Err(refused) => return Err(refused.or(IN_BETWEEN)),
        }
        self.wait_for_index(organization, &new.user_id, |shown| shown.is_some()).await;
        Ok(true)
    }

    /// Changes role and contact of a member read as `before`, on behalf of `by`. Returns the new row.
    ///
    /// # Errors
    /// [`Error::Conflict`] if no owner would remain, or if either member has changed.
    pub async fn change(
        &self,
        organization: OrganizationId,
        by: &Member,
        before: &OrganizationMember,
        role: Role,
        contact: &Contact,
    ) -> Result<OrganizationMember> {
        let now = Timestamp::now();
        let (old, new) = (&before.contact, contact);
        let mut change = "SET #updated_at = :now".to_owned();
        let mut values = vec![(":now".to_owned(), text(now))];
        let mut gone = Vec::new();
        // Unchanged fields are not written: a newer version may have written values unknown here.
        let (role_before, role_after) = (Some(before.role.as_str().to_owned()), Some(role.as_str().to_owned()));
        for (name, old, new) in [
            ("role", &role_before, &role_after),
            ("name", &old.name, &new.name),
            ("email", &old.email, &new.email),
            ("phone", &old.phone, &new.phone),
            ("timezone", &old.timezone, &new.timezone),
        ] {
            match new {
                _ if old == new => {}
                // Writing to a String cannot fail.
                Some(value) => {
                    let _ok = write!(change, ", #{name} = :{name}");
                    values.push((format!(":{name}"), text(value)));
                }
                None => gone.push(format!("#{name}")),
            }
        }
        if !gone.is_empty() {
            let _ok = write!(change, " REMOVE {}", gone.join(", "));
        }
        let update =
            self.table.update(row(organization, &before.user_id), change).with_all(values.into_iter().collect());
        let edited = member(Act::Edited, &before.user_id).with("role_before", before.role.as_str());
        let update = update.audited(edited.with("role", role.as_str()))?;
        let gives_up = before.role == Role::Owner && role != Role::Owner;
        let least = least_role_to_change(before.role.max(role));
        self.write(organization, by, before, update, least, gives_up).await?;
        self.wait_for_index(organization, &before.user_id, |shown| {
            shown.is_some_and(|row| row.updated_at >= Some(now))
        })
        .await;
        Ok(OrganizationMember { role, contact: contact.clone(), updated_at: Some(now), ..before.clone() })
    }

    /// Removes a member read as `before`, on behalf of `by`, possibly the same user.
    pub async fn remove(&self, organization: OrganizationId, by: &Member, before: &OrganizationMember) -> Result<()> {
        let deleted = member(Act::Deleted, &before.user_id).with("role", before.role.as_str());
        let deletion = self.table.delete(row(organization, &before.user_id)).audited(deleted)?;
        let is_owner = before.role == Role::Owner;
        self.write(organization, by, before, deletion, least_role_to_change(before.role), is_owner).await?;
        self.wait_for_index(organization, &before.user_id, |shown| shown.is_none()).await;
        Ok(())
    }

    /// Writes a member's row if their ownership is unchanged and `by` still has the role `least`.
    async fn write(
        &self,
        organization: OrganizationId,
        by: &Member,
        before: &OrganizationMember,
        write: Write,
        least: Role,
        gives_up: bool,
    ) -> Result<()> {
        let oneself = before.user_id == by.user_id;
        let owner = text(Role::Owner.as_str());
        let write = if before.role == Role::Owner {
            write.when("#role = :owner").with([(":owner", owner)])
        } else if oneself && before.role == Role::Admin {
            // A former admin cannot restore their own role.
            write.when("#role = :admin").with([(":admin", text(Role::Admin.as_str()))])
        } else {
            write.when("attribute_exists(#user_id) AND NOT #role = :owner").with([(":owner", owner)])
        };
        if !oneself {
            let sent = transact(vec![write, self.is_still(organization, by, least)]).await;
            return sent.map_err(|refused| refused.or(IN_BETWEEN));
        }
        if !gives_up {
            return if write.unless_refused().await? { Ok(()) } else { Err(Error::Conflict(IN_BETWEEN.into())) };
        }
        for other in self.other_owners(organization, &by.user_id).await? {
            let other = Member { organization_id: organization, user_id: other, role: Role::Owner };
            match transact(vec![write.clone(), self.is_still(organization, &other, Role::Owner)]).await {
                Ok(()) => return Ok(()),
                // The index was stale.
                Err(Refused::Condition(1)) => {}
                Err(refused) => return Err(refused.or(IN_BETWEEN)),
            }
        }
        Err(Error::Conflict(
            "this is the last owner of the organization; make another member an owner first (PATCH …/members/{user_id} with \
             {\"role\": \"owner\"})"
                .into(),
        ))
    }

    async fn other_owners(&self, organization: OrganizationId, one: &UserId) -> Result<Vec<UserId>> {
        let owners = self.table.of_organization(organization).filter("#role = :owner").attributes("#user_id");
        let owners = owners.with([(":owner", text(Role::Owner.as_str()))]);
        let mut others = Vec::new();
        let take = |items: Vec<Item>| {
            let users = items.iter().filter_map(|item| item.get("user_id")?.as_s().ok());
            let left = OTHERS.saturating_sub(others.len());
            // A filter cannot name a key of the index.
            others.extend(users.filter(|user| *user != one.as_str()).map(UserId::new).take(left));
            Ok(())
        };
        owners.each_page(take).await?;
        Ok(others)
    }

    fn is_still(&self, organization: OrganizationId, member: &Member, least: Role) -> Write {
        let check = self.table.check(row(organization, &member.user_id));
        let owner = (":owner", text(Role::Owner.as_str()));
        if least == Role::Owner {
            return check.when("#role = :owner").with([owner]);
        }
        check.when("#role IN (:admin, :owner)").with([(":admin", text(Role::Admin.as_str())), owner])
    }

    /// Waits until the index shows the change, so that lists agree with our answer.
    async fn wait_for_index(
        &self,
        organization: OrganizationId,
        user: &UserId,
        shows: impl Fn(Option<&OrganizationMember>) -> bool,
    ) {
        let read = async || {
            let one = self
                .table
                .query_index("by_organization", "#organization_id = :organization AND #user_id = :user")
                .with([(":organization", text(organization)), (":user", text(user))]);
            Some(shows(one.first().await.ok()?.as_ref()))
        };
        wait_for_index(read).await;
    }

    pub async fn make_owner(&self, organization: OrganizationId, user: &UserId) -> Result<()> {
        let change = "SET #role = :owner, #updated_at = :now, #created_at = if_not_exists(#created_at, :now)";
        let values = [(":owner", text(Role::Owner.as_str())), (":now", text(Timestamp::now()))];
        self.table.update(row(organization, user), change).with(values).send().await
    }

    /// Writes a new member; the transaction fails if the user is one.
    pub(super) fn put_in_transaction(&self, member: &OrganizationMember) -> Result<Write> {
        Ok(self.table.put(member)?.when("attribute_not_exists(#user_id)"))
    }
}

const IN_BETWEEN: &str = "another change of this organization's members came in between; look at them and try again";

pub const fn least_role_to_change(role: Role) -> Role {
    match role {
        Role::Owner => Role::Owner,
        Role::Viewer | Role::Member | Role::Admin => Role::Admin,
    }
}

/// Without the name: it is the person's to change.
fn member(action: Act, user: &UserId) -> Change {
    Change::of(action, Noun::Member, user)
}

fn row(organization: OrganizationId, user: &UserId) -> Item {
    key([("user_id", text(user)), ("organization_id", text(organization))])
}
