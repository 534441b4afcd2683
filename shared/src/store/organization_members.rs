//! `organization_members`. Key: `user_id` (partition), `organization_id` (sort).

use serde_json::{Map, Value};

use super::{
    database::{Database, Item, key, text},
    table::Table,
    write::Write,
};
use crate::{
    Error, Result,
    models::{Member, Membership, OrganizationId, OrganizationMember, Role, Timestamp, UserId},
};

#[derive(Clone)]
pub struct OrganizationMembers {
    table: Table,
}

impl OrganizationMembers {
    pub fn new(database: &Database) -> Self {
        Self { table: database.table("organization_members") }
    }

    /// The organizations a user belongs to, so that membership can be read beside the slug, not after it.
    pub async fn of_user(&self, user: &UserId) -> Result<Vec<Membership>> {
        self.table.query("#user_id = :user").with([(":user", text(user))]).collect().await
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

fn row(organization: OrganizationId, user: &UserId) -> Item {
    key([("user_id", text(user)), ("organization_id", text(organization))])
}
