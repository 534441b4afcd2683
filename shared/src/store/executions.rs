//! `executions`. Key: id. Rows leave by themselves (TTL on `expires_at`).

use aws_sdk_dynamodb::Client;

use super::database::{Database, failed, to_item};
use crate::{Result, models::Execution};

#[derive(Clone)]
pub struct Executions {
    client: Client,
    table: String,
}

impl Executions {
    pub fn new(database: &Database) -> Self {
        Self { client: database.client.clone(), table: database.table("executions") }
    }

    pub async fn put(&self, execution: &Execution) -> Result<()> {
        self.client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(to_item(execution)?))
            .send()
            .await
            .map_err(failed)
            .map(drop)
    }
}
