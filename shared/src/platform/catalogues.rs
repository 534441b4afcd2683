//! The tools that runs, chats and deployments find by name.

use std::sync::Arc;

use super::{Platform, Result};
use crate::{
    authoring_tools,
    catalogue::Catalogue,
    injection::{LlmAccess, built_in_tools, described_read_feed, read_feed, tools_of_runs},
    store::{AutomationMemory, Services, Tools},
    tool::CallableTool,
};

impl Platform {
    /// [`Platform::catalogue`] with the tools that runs may name, also those of agents that build automations.
    pub fn catalogue_for_runs(&self) -> Result<Catalogue> {
        let access =
            LlmAccess { llm: self.llm()?, accounts: self.accounts_with_llm()?, budgets: self.budgets()?.clone() };
        let mut tools = tools_of_runs(Some(&access), Some(&AutomationMemory::new(self.database()?)));
        tools.push(read_feed(self.outbound()?.clone()));
        self.catalogue_and_by_name(tools, self.agent_tools(None, None)?.for_runs())
    }

    /// The same for a function that offers these tools without calling them.
    pub fn catalogue_to_offer(&self) -> Result<Catalogue> {
        let mut tools = tools_of_runs(None, None);
        tools.push(described_read_feed());
        self.catalogue_and_by_name(tools, authoring_tools::described())
    }

    fn catalogue_and_by_name(
        &self,
        mut others: Vec<Arc<dyn CallableTool>>,
        more: Vec<Arc<dyn CallableTool>>,
    ) -> Result<Catalogue> {
        others.extend(more);
        let catalogue = self.catalogue()?;
        Ok(Catalogue { built_in: catalogue.built_in.and_by_name(others.into_iter().collect()), ..catalogue })
    }

    /// The tools offered to runs. Tools that ask a model or read feeds are described only.
    pub fn catalogue(&self) -> Result<Catalogue> {
        self.catalogue_with(described_read_feed())
    }

    pub(super) fn catalogue_with(&self, of_feeds: Arc<dyn CallableTool>) -> Result<Catalogue> {
        let mut by_name = tools_of_runs(None, None);
        by_name.push(of_feeds);
        Ok(Catalogue {
            built_in: built_in_tools(self.outbound()?).and_by_name(by_name.into_iter().collect()),
            tools: Tools::new(self.database()?),
            services: Services::new(self.database()?),
            connections: self.connections()?.clone(),
        })
    }
}
