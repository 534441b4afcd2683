//! The progress of the reissue of tools and triggers: the item `reissue` in the table `tools`.

use super::{
    database::{Database, id, number, to_item},
    table::Table,
    write::set_all,
};
use crate::{
    Result,
    models::{Reissue, Tool},
};

const KEY: &str = "reissue";

#[derive(Clone)]
pub struct Reissues {
    table: Table,
}

impl Reissues {
    pub fn new(database: &Database) -> Self {
        Self { table: database.table("tools") }
    }

    /// `None`: never started.
    pub async fn find(&self) -> Result<Option<Reissue>> {
        self.table.get_consistent(id(KEY)).await
    }

    /// Saves the progress at the version that was read. False: another process has saved since.
    pub async fn save(&self, reissue: &mut Reissue) -> Result<bool> {
        let seen = reissue.version;
        reissue.version += 1;
        let (change, values) = set_all(to_item(reissue)?, &["after", "triggers_after"]);
        let write = self.table.update(id(KEY), change).when("attribute_not_exists(#id) OR #version = :seen");
        let seen = i64::try_from(seen).unwrap_or(i64::MAX);
        write.with_all(values).with([(":seen", number(seen))]).unless_refused().await
    }

    /// A page of all organizations' tools at VAPI, for `settle`, and the key to continue after.
    pub async fn tools_at_vapi(&self, after: Option<&str>, limit: i32) -> Result<(Vec<Tool>, Option<String>)> {
        let tools = self.table.scan().filter("attribute_exists(#external_tool_id)");
        tools.rows_after(after, limit).await
    }
}
