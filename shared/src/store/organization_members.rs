//! `organization_members`. Key: `user_id` (partition), `organization_id` (sort). Index `by_organization`: `organization_id`,
//! `user_id`; it holds every row, also those that were put by hand without times.
//!
//! An organization never loses its last owner. Only owners change owners, so the transaction that takes the role from another
//! one checks that whoever asks for it is one still; who gives it up themselves needs another owner, whose row it checks. In
//! whatever order such transactions happen, each leaves an owner behind: no count has to agree with the rows.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::{
    Cursor, Page,
    database::{Database, Item, key, rows, text},
    table::{Table, index_follows},
    write::{Refused, Write, transact},
};
use crate::{
    Error, Result,
    models::{Contact, Member, Membership, OrganizationId, OrganizationMember, Role, Timestamp, UserId},
};

/// Owners who are tried, of those that the index names beside somebody who gives the role up: it may be behind.
const OTHERS: usize = 5;

#[derive(Clone)]
pub struct OrganizationMembers {
    table: Table,
}

impl OrganizationMembers {
    pub fn new(database: &Database) -> Self {
        Self { table: database.table("organization_members") }
    }

    /// The organizations a user belongs to as of now, so that membership can be read beside the slug, not after it, and who
    /// was removed is out with the next request.
    pub async fn of_user(&self, user: &UserId) -> Result<Vec<Membership>> {
        self.table.query("#user_id = :user").with([(":user", text(user))]).now().collect().await
    }

    /// `{id, email, timezone, phone, name}` of a member, as far as the row says them: what `{{user.…}}` leads into.
    pub async fn person(&self, organization: OrganizationId, user: &UserId) -> Result<Value> {
        let row: Option<Map<String, Value>> = self.table.get(row(organization, user)).await?;
        let mut person = row.unwrap_or_default();
        person.retain(|name, _| ["email", "timezone", "phone", "name"].contains(&name.as_str()));
        person.insert("id".into(), user.to_string().into());
        Ok(Value::Object(person))
    }

    /// A user who was let in once and whose work goes on without them, as the member they are now.
    ///
    /// # Errors
    /// [`Error::NotFound`] for somebody who does not belong to the organization any more.
    pub async fn still_member(&self, organization: OrganizationId, user: &UserId) -> Result<Member> {
        let theirs = self.of_user(user).await?;
        let here = theirs.into_iter().find(|membership| membership.organization_id == organization);
        let role = here.ok_or(Error::NotFound("organization"))?.role;
        Ok(Member { organization_id: organization, user_id: user.clone(), role })
    }

    /// The member as of now; `None` for who is not.
    pub async fn find(&self, organization: OrganizationId, user: &UserId) -> Result<Option<OrganizationMember>> {
        self.table.get_consistent(row(organization, user)).await
    }

    /// A page of the organization's members, in the order of their ids.
    pub async fn page(
        &self,
        organization: OrganizationId,
        after: Option<&Cursor<String>>,
        limit: i32,
    ) -> Result<Page<OrganizationMember>> {
        let start = after.map(|Cursor(user)| row(organization, &UserId::new(user)));
        let members = self.table.query_index("by_organization", "#organization_id = :organization");
        let (items, next) = members.with([(":organization", text(organization))]).page(start, Some(limit)).await?;
        let next = next.as_ref().and_then(|key| key.get("user_id")?.as_s().ok());
        Ok(Page { items: rows(items), next_cursor: next.map(|user| Cursor(user).to_string()) })
    }

    /// Adds a member, for `by`, who must be an admin still, and an owner for a new owner. False if they are a member already.
    ///
    /// # Errors
    /// [`Error::Conflict`] if `by` has another role by now.
    pub async fn add(&self, organization: OrganizationId, by: &Member, new: &OrganizationMember) -> Result<bool> {
        if new.user_id == by.user_id {
            // A transaction takes no two operations on one row.
            return Ok(false);
        }
        let writes = vec![self.put_in_transaction(new)?, self.is_still(organization, by, least_to_change(new.role))];
        match transact(writes).await {
            Ok(()) => {}
            Err(Refused::Condition(0)) => return Ok(false),
            Err(refused) => return Err(refused.or(IN_BETWEEN)),
        }
        self.index_follows(organization, &new.user_id, |shown| shown.is_some()).await;
        Ok(true)
    }

    /// Gives a member, who was read as `before`, another role or contact, for `by`. Gives the row as it is then.
    ///
    /// # Errors
    /// [`Error::Conflict`] if it would leave the organization without an owner, or if either of the two was changed meanwhile.
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
        // What stays is not written: a newer version may have written there what is not known here.
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
        let gives_up = before.role == Role::Owner && role != Role::Owner;
        let least = least_to_change(before.role.max(role));
        self.write(organization, by, before, update, least, gives_up).await?;
        self.index_follows(organization, &before.user_id, |shown| shown.is_some_and(|row| row.updated_at >= Some(now)))
            .await;
        Ok(OrganizationMember { role, contact: contact.clone(), updated_at: Some(now), ..before.clone() })
    }

    /// Removes a member, who was read as `before`, for `by`, who may be the same.
    ///
    /// # Errors
    /// As [`OrganizationMembers::change`].
    pub async fn remove(&self, organization: OrganizationId, by: &Member, before: &OrganizationMember) -> Result<()> {
        let deletion = self.table.delete(row(organization, &before.user_id));
        let is_owner = before.role == Role::Owner;
        self.write(organization, by, before, deletion, least_to_change(before.role), is_owner).await?;
        self.index_follows(organization, &before.user_id, |shown| shown.is_none()).await;
        Ok(())
    }

    /// Sends the write of a member's row, if that is an owner's as it was before or not, and whoever asks may still do it.
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
            // Who is none any more does not make themselves one again.
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
                // The index was behind.
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

    /// Owners beside one, some of them, as the index names them.
    async fn other_owners(&self, organization: OrganizationId, one: &UserId) -> Result<Vec<UserId>> {
        let owners = self.table.query_index("by_organization", "#organization_id = :organization");
        let owners = owners.filter("#role = :owner").attributes("#user_id");
        let owners = owners.with([(":organization", text(organization)), (":owner", text(Role::Owner.as_str()))]);
        let mut others = Vec::new();
        let take = |items: Vec<Item>| {
            let users = items.iter().filter_map(|item| item.get("user_id")?.as_s().ok());
            let left = OTHERS.saturating_sub(others.len());
            // A key of the index cannot stand in the filter.
            others.extend(users.filter(|user| *user != one.as_str()).map(UserId::new).take(left));
            Ok(())
        };
        owners.each_page(take).await?;
        Ok(others)
    }

    /// Fails a transaction unless a member has at least this role, as of then.
    fn is_still(&self, organization: OrganizationId, member: &Member, least: Role) -> Write {
        let check = self.table.check(row(organization, &member.user_id));
        let owner = (":owner", text(Role::Owner.as_str()));
        if least == Role::Owner {
            return check.when("#role = :owner").with([owner]);
        }
        check.when("#role IN (:admin, :owner)").with([(":admin", text(Role::Admin.as_str())), owner])
    }

    /// Waits until the index shows a change, so that the list agrees with the answer.
    async fn index_follows(
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
        index_follows(read).await;
    }

    /// Makes a user an owner, whatever they were before: for an operator, who asks nobody.
    pub async fn make_owner(&self, organization: OrganizationId, user: &UserId) -> Result<()> {
        let change = "SET #role = :owner, #updated_at = :now, #created_at = if_not_exists(#created_at, :now)";
        let values = [(":owner", text(Role::Owner.as_str())), (":now", text(Timestamp::now()))];
        self.table.update(row(organization, user), change).with(values).send().await
    }

    /// Writes a new member as part of a transaction, which fails if they are one.
    pub(super) fn put_in_transaction(&self, member: &OrganizationMember) -> Result<Write> {
        Ok(self.table.put(member)?.when("attribute_not_exists(#user_id)"))
    }
}

const IN_BETWEEN: &str = "another change of this organization's members came in between; look at them and try again";

/// Who may write the row of a member with this role.
pub const fn least_to_change(role: Role) -> Role {
    match role {
        Role::Owner => Role::Owner,
        Role::Viewer | Role::Member | Role::Admin => Role::Admin,
    }
}

fn row(organization: OrganizationId, user: &UserId) -> Item {
    key([("user_id", text(user)), ("organization_id", text(organization))])
}
