//! Discovery of tools by agents: services ([`ServiceOverviews`]), tool details ([`ToolData`]), and search ([`FoundTools`]).
//!
//! Each answer is data (`Serialize`, the JSON body) and text for an agent's context (`to_text`). Every omission is stated:
//! unknown, inactive and ambiguous names come with the next step, and cuts are marked.
//!
//! The search index is kept in memory per service, and rebuilt when the service's `edition` changes, so new tools appear without
//! a restart and only changed services are read again.

mod arrivals;
mod index;
mod language;
mod listed;
mod overview;
mod own_tools;
mod python_json;
mod search;
mod tool_data;

use std::{collections::HashMap, sync::Arc};

use tokio::sync::Mutex;

pub use self::{
    arrivals::{Arrival, ArrivesBy, arrivals, how_to_make_a_hook},
    index::{Ranked, Segment, ToolIndex, TriggerKinds},
    listed::{ListedTool, NameProblem, ProblemKind, ShownConnection, Source},
    overview::{ServiceOverview, ServiceOverviews},
    search::{Correction, FoundTool, FoundTools, SearchBody, ToolSearch, TriggerKind},
    tool_data::{ExampleCall, ToolData, ToolDetails},
};
use crate::{
    Deadline, Error, Result,
    catalogue::BuiltInTools,
    connections::Connections,
    error,
    models::{Service, ServiceCapabilities},
    ranking::nearest,
    store::{Services, Tools},
};

const MOST_SUGGESTED: usize = 3;

/// Finds tools for agents. Clones share the index.
#[derive(Clone)]
pub struct Discovery {
    pub services: Services,
    pub tools: Tools,
    pub built_in: BuiltInTools,
    pub connections: Connections,
    shelf: Arc<Mutex<index::Shelf>>,
}

impl Discovery {
    pub fn new(services: Services, tools: Tools, built_in: BuiltInTools, connections: Connections) -> Self {
        let shelf = Arc::new(Mutex::new(index::Shelf::of_built_in(built_in.all_specs())));
        Self { services, tools, built_in, connections, shelf }
    }

    /// The current index of the tools common to all organizations.
    async fn index(&self, deadline: Deadline) -> Result<ToolIndex> {
        // Held during the refresh, so that concurrent requests share the index.
        let mut shelf = self.shelf.lock().await;
        shelf.refresh(&self.services, deadline).await
    }
}

/// Capabilities by [`crate::models::folded_name`]; `None` after a failed look-up, which is logged.
pub async fn capabilities(
    services: &Services,
    names: &[String],
    deadline: Deadline,
) -> Option<HashMap<String, ServiceCapabilities>> {
    let read = services.capabilities(names, deadline).await;
    let report =
        |error: &Error| tracing::error!("the capabilities of services could not be read: {}", error::chain(error));
    read.inspect_err(report).ok()
}

/// Active services with names similar to an unknown one.
pub fn nearest_services(written: &str, services: &[Service]) -> Vec<String> {
    let names = services.iter().filter(|service| service.is_active).map(|service| service.name.as_str());
    nearest(written, names, MOST_SUGGESTED).into_iter().map(str::to_owned).collect()
}

/// `did you mean a, b or c?`; empty without names.
pub fn did_you_mean(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => format!("did you mean {one}?"),
        [first @ .., last] => format!("did you mean {} or {last}?", first.join(", ")),
    }
}
