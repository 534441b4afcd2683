//! `calls`. Key: id, which is VAPI's id of the call.

use aws_sdk_dynamodb::Client;

use super::database::{Database, failed, from_item, text};
use crate::{
    Result,
    models::{Call, CallId, Unowned},
};

#[derive(Clone)]
pub struct Calls {
    client: Client,
    table: String,
}

impl Calls {
    pub fn new(database: &Database) -> Self {
        Self { client: database.client.clone(), table: database.table("calls") }
    }

    /// The call, if it came in through us. Read beside the tool that tells whose call it must be.
    pub async fn find(&self, id: &CallId) -> Result<Option<Unowned<Call>>> {
        let found = self.client.get_item().table_name(&self.table).key("id", text(id)).send().await.map_err(failed)?;
        found.item.map(|item| from_item(item).map(Unowned::new)).transpose()
    }
}
