//! Which tools a turn is offered: of the one catalogue, as this person may use them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures_util::join;

use crate::{
    Deadline, Error, Result,
    catalogue::{Catalogue, Found, Resolved},
    discovery::{Discovery, Source, ToolSearch},
    error,
    execution::Executor,
    models::{ChatRules, OfferedTool, OrganizationId, Role, ToolRef},
    tool::{Tool, Toolbox},
};

/// How many tools of an organization and of services are described at most: those that fit the question best.
const MOST_OWN: usize = 40;
const MOST_OF_SERVICES: usize = 12;
/// How many are looked for; the search takes no more.
const SEARCHED: u32 = 60;

/// What finds them.
pub struct Offer<'a> {
    pub catalogue: &'a Catalogue,
    pub discovery: &'a Discovery,
    pub executor: &'a Executor,
}

/// Tools that a turn may call.
#[derive(Default)]
pub struct OfferedTools {
    pub toolbox: Toolbox,
    /// Each with the version that was found, by name.
    pub references: BTreeMap<String, OfferedTool>,
    pub rules: BTreeMap<String, ChatRules>,
    /// Those that this person may not use, with the least role.
    pub withheld: BTreeMap<String, Role>,
    /// Those that the front end carries out.
    pub front_end: BTreeSet<String>,
}

impl OfferedTools {
    /// Offers a tool to somebody of this role under its name, or withholds it.
    pub fn add(&mut self, found: Found, role: Role, executor: &Executor) {
        let (name, rules) = (found.spec().name.clone(), found.chat_rules());
        if self.front_end.contains(&name) {
            return;
        }
        if let Some(least) = rules.least_role.filter(|_| !rules.allow(role)) {
            let sentence =
                format!("it needs the role {} in this organization, which the person has not.", least.as_str());
            self.toolbox.gone(&name, sentence);
            self.withheld.insert(name, least);
            return;
        }
        self.references.insert(name.clone(), found.offered());
        self.rules.insert(name, rules);
        self.toolbox.offer(found.callable(executor));
    }

    /// Offers a tool that the front end carries out. Its name is the front end's; another tool of this name gets another one, and a
    /// built-in one stands back.
    pub fn add_of_front_end(&mut self, tool: Arc<dyn Tool>) {
        self.front_end.insert(tool.spec().name.clone());
        self.toolbox.offer(tool);
    }

    fn has(&self, name: &str) -> bool {
        self.references.contains_key(name) || self.withheld.contains_key(name) || self.front_end.contains(name)
    }
}

impl Offer<'_> {
    /// Adds the built-in tools, the organization's and those of connected services that fit the words of the conversation to what a
    /// person of this role is offered.
    pub async fn add_tools(
        &self,
        organization: OrganizationId,
        role: Role,
        words: &str,
        offered: &mut OfferedTools,
        deadline: Deadline,
    ) -> Result<()> {
        let search = ToolSearch {
            q: words.chars().take(400).collect(),
            connected: Some(true),
            limit: Some(SEARCHED),
            ..ToolSearch::default()
        };
        let (own, found) = join!(
            self.catalogue.tools.all(organization),
            Box::pin(self.discovery.search(organization, &search, deadline)),
        );
        let found = match found {
            Ok(found) => found.items,
            // What is found by words alone is no reason to leave a person without an answer.
            Err(error) => {
                tracing::warn!("tools for a turn could not be searched: {}", error::chain(&error));
                Vec::new()
            }
        };
        let own = own?;
        let mut references: Vec<ToolRef> =
            self.catalogue.built_in.names().map(|name| ToolRef::BuiltIn(name.to_owned())).collect();
        if own.len() <= MOST_OWN {
            references.extend(own.iter().map(|tool| ToolRef::Organization { id: tool.id, version: None }));
        } else {
            let ids = found.iter().filter_map(|found| found.tool.id).take(MOST_OWN);
            references.extend(ids.map(|id| ToolRef::Organization { id, version: None }));
        }
        let of_services = found.iter().filter(|found| found.tool.source == Source::Service).take(MOST_OF_SERVICES);
        references
            .extend(of_services.map(|found| ToolRef::Service { name: found.tool.name.clone(), fingerprint: None }));
        for resolved in Box::pin(self.catalogue.resolve(organization, &references, deadline)).await? {
            // What cannot be called outside of a phone call, or not just now, is not offered.
            if let Resolved::Here(found) = resolved {
                let found = found.with_free_name(|name| offered.has(name));
                offered.add(found, role, self.executor);
            }
        }
        Ok(())
    }

    /// Adds the tool that a person was asked about, exactly as it was then, to what a turn may call.
    ///
    /// # Errors
    /// [`Error::Conflict`] if it was changed or deleted since, or the person may not use it any more.
    pub async fn pinned(
        &self,
        organization: OrganizationId,
        role: Role,
        pinned: &OfferedTool,
        offered: &mut OfferedTools,
        deadline: Deadline,
    ) -> Result<()> {
        let resolved =
            Box::pin(self.catalogue.resolve(organization, std::slice::from_ref(&pinned.tool), deadline)).await?;
        let changed = || {
            Error::Conflict("the tool was changed or deleted since the question was asked; ask for it once more".into())
        };
        let Some(Resolved::Here(found)) = resolved.into_iter().next() else { return Err(changed()) };
        let found = found.named(&pinned.name);
        if !found.chat_rules().allow(role) {
            return Err(Error::Forbidden("this tool needs another role in this organization by now"));
        }
        offered.front_end.remove(&pinned.name);
        offered.add(found, role, self.executor);
        Ok(())
    }
}
