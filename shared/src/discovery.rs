//! How agents find out which tools there are: what a service offers ([`ServiceOverviews`]), what a tool takes ([`ToolData`]),
//! and which tools can do something ([`FoundTools`]).
//!
//! Each answer is data (`Serialize`, the JSON body) and a text for an agent's context (`to_text`). Nothing is left out in
//! silence: what is unknown, inactive or ambiguous is named with the next step, what is shortened or cut says so.
//!
//! What is searched is kept in memory, an index for each service, and made anew when the service's `edition` changes: so
//! new tools are found without a restart, and only what changed is read again.

mod arrivals;
mod index;
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
    index::{Ranked, Segment, ToolIndex, Triggers},
    listed::{ListedTool, NameProblem, ProblemKind, ShownConnection, Source},
    overview::{ServiceOverview, ServiceOverviews},
    search::{Correction, FoundTool, FoundTools, ToolSearch, Trigger},
    tool_data::{ExampleCall, ToolData, ToolDetails},
};
use crate::{
    Deadline, Error, Result,
    catalogue::BuiltInTools,
    connections::Connections,
    error,
    models::{OrganizationId, Service, ServiceCapabilities},
    ranking::nearest,
    store::{Services, Tools},
};

/// How many names are suggested in place of an unknown one.
const MOST_SUGGESTED: usize = 3;

/// Finds tools for agents. Clones share what is kept in memory.
#[derive(Clone)]
pub struct Discovery {
    pub services: Services,
    /// The organizations' own.
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

    /// The services with these names and what they offer: any number of names, written in any case.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for `service` if there are none or too many.
    pub async fn initial_md_fetch(
        &self,
        organization: OrganizationId,
        services: &[String],
        deadline: Deadline,
    ) -> Result<ServiceOverviews> {
        self.initial_md_fetch_after(organization, services, None, deadline).await
    }

    /// As [`Discovery::initial_md_fetch`], the page that follows a `next_cursor`.
    ///
    /// # Errors
    /// Also for `cursor`.
    pub async fn initial_md_fetch_after(
        &self,
        organization: OrganizationId,
        services: &[String],
        cursor: Option<&str>,
        deadline: Deadline,
    ) -> Result<ServiceOverviews> {
        overview::read(self, organization, services, cursor, deadline).await
    }

    /// The tools with these names in full: services' and built-in ones by name, the organization's by callable name or id.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for `tool_names` if there are none or too many.
    pub async fn fetch_tool_data(
        &self,
        organization: OrganizationId,
        names: &[String],
        deadline: Deadline,
    ) -> Result<ToolData> {
        tool_data::read(self, organization, names, tool_data::LONGEST_ANSWER, deadline).await
    }

    /// As [`Discovery::fetch_tool_data`], in an answer of about so many bytes: tools that have no place in it are named.
    ///
    /// # Errors
    /// The same.
    pub async fn fetch_tool_data_within(
        &self,
        organization: OrganizationId,
        names: &[String],
        room: usize,
        deadline: Deadline,
    ) -> Result<ToolData> {
        tool_data::read(self, organization, names, room, deadline).await
    }

    /// The tools that fit, best first.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for a service that there is not, and for `cursor`.
    pub async fn search(
        &self,
        organization: OrganizationId,
        search: &ToolSearch,
        deadline: Deadline,
    ) -> Result<FoundTools> {
        search::read(self, organization, search, deadline).await
    }

    /// The index of all tools that are the same for everybody, as of now.
    async fn index(&self, deadline: Deadline) -> Result<ToolIndex> {
        // Held while services are read: whoever asks in the meantime gets the same index.
        let mut shelf = self.shelf.lock().await;
        shelf.refresh(&self.services, deadline).await
    }
}

/// What these services can do, by their [`crate::models::folded_name`]; `None` if it could not be read, which is reported.
pub async fn capabilities(
    services: &Services,
    names: &[String],
    deadline: Deadline,
) -> Option<HashMap<String, ServiceCapabilities>> {
    let read = services.capabilities(names, deadline).await;
    let report = |error: &Error| tracing::error!("what services can do could not be read: {}", error::chain(error));
    read.inspect_err(report).ok()
}

/// Names of active services near to one that there is not.
pub fn nearest_services(written: &str, services: &[Service]) -> Vec<String> {
    let names = services.iter().filter(|service| service.is_active).map(|service| service.name.as_str());
    nearest(written, names, MOST_SUGGESTED).into_iter().map(str::to_owned).collect()
}

/// `did you mean a, b or c?`; nothing without names.
pub fn did_you_mean(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => format!("did you mean {one}?"),
        [first @ .., last] => format!("did you mean {} or {last}?", first.join(", ")),
    }
}
