//! Complete descriptions of Pipedream's actions, for import into the catalogue.

use serde::Deserialize;
use serde_json::Value;

use super::{Pipedream, Project, segment};
use crate::{Deadline, clients::Error};

#[derive(Debug, Clone, Deserialize)]
pub struct Component {
    pub key: String,
    pub version: String,
    #[serde(default)]
    pub name: String,
    pub description: Option<String>,
    /// Each `{"name", "type", …}`.
    #[serde(default)]
    pub configurable_props: Vec<Value>,
    /// `{"readOnlyHint", "destructiveHint", …}`
    pub annotations: Option<Value>,
}

impl Pipedream {
    /// The keys of an app's actions, in Pipedream's order. Lists omit the actions' descriptions.
    pub async fn action_keys(&self, project: &Project, app: &str, deadline: Deadline) -> Result<Vec<String>, Error> {
        #[derive(Deserialize)]
        struct Action {
            key: String,
        }
        let (actions, _) = self.list::<Action>(project, &format!("actions?app={}", segment(app)), deadline).await?;
        Ok(actions.into_iter().map(|action| action.key).collect())
    }

    /// The complete action. `None`: no such action.
    pub async fn component(
        &self,
        project: &Project,
        key: &str,
        deadline: Deadline,
    ) -> Result<Option<Component>, Error> {
        self.look_up(project, key, deadline).await
    }
}
