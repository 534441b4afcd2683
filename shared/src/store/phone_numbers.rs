//! `phone_numbers`. Key: id. Index `by_number`: number.

use aws_sdk_dynamodb::Client;

use super::database::{Database, failed, from_item, text};
use crate::{
    Error, Result,
    models::{E164, OrganizationId, PhoneNumber, PhoneNumberId, Unowned},
};

#[derive(Clone)]
pub struct PhoneNumbers {
    client: Client,
    table: String,
}

impl PhoneNumbers {
    pub fn new(database: &Database) -> Self {
        Self { client: database.client.clone(), table: database.table("phone_numbers") }
    }

    pub async fn get(&self, organization: OrganizationId, id: PhoneNumberId) -> Result<PhoneNumber> {
        let found = self.client.get_item().table_name(&self.table).key("id", text(id)).send().await.map_err(failed)?;
        let row: PhoneNumber = from_item(found.item.ok_or(Error::NotFound("phone number"))?)?;
        if row.organization_id == organization { Ok(row) } else { Err(Error::NotFound("phone number")) }
    }

    /// Whoever owns the number that was called. Read beside the tool that tells who must own it.
    pub async fn by_number(&self, number: &E164) -> Result<Option<Unowned<PhoneNumber>>> {
        let found = self
            .client
            .query()
            .table_name(&self.table)
            .index_name("by_number")
            .key_condition_expression("#number = :number")
            .expression_attribute_names("#number", "number")
            .expression_attribute_values(":number", text(number))
            .limit(1)
            .send()
            .await
            .map_err(failed)?;
        found.items.unwrap_or_default().into_iter().next().map(|item| from_item(item).map(Unowned::new)).transpose()
    }
}
