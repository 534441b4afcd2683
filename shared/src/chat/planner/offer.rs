//! The tools of a turn: those of the catalogue that the person's role may use.

use futures_util::join;

use crate::{
    Deadline, Error, Result,
    catalogue::{Catalogue, CatalogueTool},
    discovery::{Discovery, Source, ToolSearch},
    error,
    execution::Executor,
    models::{OfferedTool, OrganizationId, Role, ToolRef},
    tool::{Offered, Toolbox, Unavailable},
};

/// The most tools of an organization and of services that are described: the best matches for the question.
const MOST_OWN: usize = 40;
const MOST_OF_SERVICES: usize = 12;
/// One more says that there are too many.
const READ_OF_OWN: i32 = 41;
/// The most search results, which is also the search's limit.
const SEARCHED: u32 = 60;

pub struct Offer<'a> {
    pub catalogue: &'a Catalogue,
    pub discovery: &'a Discovery,
    pub executor: &'a Executor,
    pub organization: OrganizationId,
    pub role: Role,
    pub deadline: Deadline,
}

impl Offer<'_> {
    /// Adds built-in tools, the organization's, and those of connected services that fit the conversation, if the
    /// person's role may use them.
    pub async fn add_tools(&self, words: &str, toolbox: &mut Toolbox) -> Result<()> {
        let search = ToolSearch {
            q: words.chars().take(400).collect(),
            connected: Some(true),
            limit: Some(SEARCHED),
            ..ToolSearch::default()
        };
        let (own, found) = join!(
            self.catalogue.tools.page(self.organization, None, READ_OF_OWN),
            Box::pin(self.discovery.search(self.organization, &search, self.deadline)),
        );
        let found = match found {
            Ok(found) => found.items,
            // A failed search does not leave the person without an answer.
            Err(error) => {
                tracing::warn!("tools for a turn could not be searched: {}", error::chain(&error));
                Vec::new()
            }
        };
        let own = own?;
        // Unreadable rows are not in the page.
        let all = own.next_cursor.is_none();
        let mut references: Vec<ToolRef> =
            self.catalogue.built_in.names().map(|name| ToolRef::BuiltIn(name.to_owned())).collect();
        if all && own.items.len() <= MOST_OWN {
            references.extend(own.items.iter().rev().map(|tool| ToolRef::Organization { id: tool.id, version: None }));
        } else {
            let ids = found.iter().filter_map(|found| found.tool.id).take(MOST_OWN);
            references.extend(ids.map(|id| ToolRef::Organization { id, version: None }));
        }
        let of_services = found.iter().filter(|found| found.tool.source == Source::Service).take(MOST_OF_SERVICES);
        references
            .extend(of_services.map(|found| ToolRef::Service { name: found.tool.name.clone(), fingerprint: None }));
        for resolved in self.resolve(&references).await? {
            // A tool that needs a phone call, or cannot be called just now, is not offered.
            let Ok(tool) = resolved else { continue };
            let tool = tool.with_free_name(|name| toolbox.has(name));
            // A built-in tool keeps its name; a front end's tool of the same name takes precedence.
            if toolbox.get(&tool.spec().name).is_some_and(Offered::is_of_front_end) {
                continue;
            }
            self.offer(tool, toolbox);
        }
        Ok(())
    }

    async fn resolve(&self, tools: &[ToolRef]) -> Result<Vec<Result<CatalogueTool, Unavailable>>> {
        Box::pin(self.catalogue.resolve(self.organization, tools, self.deadline)).await
    }

    fn offer(&self, tool: CatalogueTool, toolbox: &mut Toolbox) {
        let name = tool.spec().name.clone();
        match tool.for_role(self.role) {
            Ok(tool) => tool.offer_in(toolbox, self.executor, false),
            Err(why) => toolbox.withhold(name, why),
        }
    }

    /// Adds the tools of calls that were planned before, each as it was then. One that was changed since does not
    /// replace another tool of its name.
    pub async fn add_planned(&self, planned: &[&OfferedTool], toolbox: &mut Toolbox) -> Result<()> {
        let references: Vec<ToolRef> = planned.iter().map(|planned| planned.tool.clone()).collect();
        let resolved = self.resolve(&references).await?;
        for (planned, resolved) in planned.iter().zip(resolved) {
            match resolved {
                Ok(tool) => self.offer(tool.named(&planned.name), toolbox),
                Err(why) if !toolbox.has(&planned.name) => toolbox.withhold(planned.name.clone(), why),
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Adds the tool of a waiting call, exactly as it was when the person was asked.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the tool was changed or deleted since; [`Error::Forbidden`] if the person may not use it
    /// any more.
    pub async fn pinned(&self, pinned: &OfferedTool, toolbox: &mut Toolbox) -> Result<()> {
        let resolved = self.resolve(std::slice::from_ref(&pinned.tool)).await?;
        let changed = || {
            Error::Conflict("the tool was changed or deleted since the question was asked; ask for it once more".into())
        };
        let Some(Ok(tool)) = resolved.into_iter().next() else { return Err(changed()) };
        let Ok(tool) = tool.named(&pinned.name).for_role(self.role) else {
            return Err(Error::Forbidden("this tool needs another role in this organization by now"));
        };
        tool.offer_in(toolbox, self.executor, false);
        Ok(())
    }
}
