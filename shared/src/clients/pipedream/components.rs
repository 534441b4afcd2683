//! Complete descriptions of Pipedream's actions, for import into the catalogue.

use reqwest::Method;
use serde::Deserialize;
use serde_json::Value;

use super::{Call, MOST_PAGES, PAGE, Pipedream, Project, Retry, segment};
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
        struct Listed {
            key: String,
        }
        #[derive(Default, Deserialize)]
        struct PageInfo {
            end_cursor: Option<String>,
        }
        #[derive(Deserialize)]
        struct Answer {
            data: Vec<Listed>,
            #[serde(default)]
            page_info: PageInfo,
        }
        let (mut keys, mut after) = (Vec::new(), String::new());
        for _page in 0..MOST_PAGES {
            let path = format!("actions?app={}&limit={PAGE}{after}", segment(app));
            let call = Call { method: Method::GET, path, body: None };
            let Answer { data, page_info } = self.send(project, &call, Retry::Harmless, deadline).await?;
            let is_last = data.len() < PAGE;
            keys.extend(data.into_iter().map(|listed| listed.key));
            match page_info.end_cursor.filter(|_| !is_last) {
                Some(cursor) => after = format!("&after={}", segment(&cursor)),
                None => break,
            }
        }
        Ok(keys)
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
