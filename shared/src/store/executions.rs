//! `executions`. Key: id. Rows leave by themselves (TTL on `expires_at`).

use aws_sdk_dynamodb::Client;

use super::database::{Database, condition_failure, failed, text, to_item};
use crate::{
    Result,
    models::{Execution, ExecutionStatus},
};

#[derive(Clone)]
pub struct Executions {
    client: Client,
    table: String,
}

impl Executions {
    pub fn new(database: &Database) -> Self {
        Self { client: database.client.clone(), table: database.table("executions") }
    }

    /// Writes a run down. A queued run is written when it is queued and again when it has run, in whichever order that
    /// arrives, and perhaps by two at once: what came of it stays, and "replayed" says less than any other outcome.
    pub async fn put(&self, execution: &Execution) -> Result<()> {
        let request = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(to_item(execution)?))
            .expression_attribute_names("#id", "id");
        let request = match execution.status {
            ExecutionStatus::Queued => request.condition_expression("attribute_not_exists(#id)"),
            status => request
                .condition_expression("attribute_not_exists(#id) OR #status IN (:queued, :less)")
                .expression_attribute_names("#status", "status")
                .expression_attribute_values(":queued", text(ExecutionStatus::Queued.as_str()))
                .expression_attribute_values(
                    ":less",
                    text(if status == ExecutionStatus::Replayed { "" } else { ExecutionStatus::Replayed.as_str() }),
                ),
        };
        match request.send().await {
            Ok(_) => Ok(()),
            Err(error) if condition_failure(&error).is_some() => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }
}
