//! `services`, `service_tools` and `service_capabilities`: the catalogue of tools, the same for every organization.
//!
//! - `services`. Key: id, made of the lower-case name. The item `load` holds the lease of a load of the catalogue.
//! - `service_tools`. Key: id, made of the name. Index `by_service`: `service_id`, `name`, with the attributes for lists and search.
//! - `service_capabilities`. Key: `service_name` in lower case.

use std::{collections::HashMap, time::Duration};

use futures_util::try_join;

use super::{
    database::{Database, Item, from_item, id, rows, text},
    lease::Lease,
    table::Table,
};
use crate::{
    Deadline, Result,
    models::{ListedServiceTool, Service, ServiceCapabilities, ServiceId, ServiceTool, folded_name, service_tool_id},
};

/// The item with the lease of a load, which outlasts the function.
const LOAD: &str = "load";
const LEASE: Duration = Duration::from_secs(70);

/// DynamoDB's limit for a partition key, in bytes.
const LONGEST_KEY: usize = 2_048;

#[derive(Clone)]
pub struct Services {
    services: Table,
    tools: Table,
    capabilities: Table,
}

impl Services {
    pub fn new(database: &Database) -> Self {
        Self {
            services: database.table("services"),
            tools: database.table("service_tools"),
            capabilities: database.table("service_capabilities"),
        }
    }

    /// All services, active or not, unordered.
    pub async fn all(&self) -> Result<Vec<Service>> {
        self.services.scan().filter("attribute_exists(#name)").collect().await
    }

    /// The whole catalogue, active or not, unordered, read consistently. Unreadable rows are reported and skipped.
    pub async fn loaded(&self) -> Result<(Vec<Service>, Vec<ServiceTool>, Vec<ServiceCapabilities>)> {
        let services = self.services.scan().filter("attribute_exists(#name)").now();
        let (tools, capabilities) = (self.tools.scan().now(), self.capabilities.scan().now());
        let (services, tools, capabilities) = try_join!(services.collect(), tools.collect(), capabilities.collect())?;
        Ok((services, tools, capabilities))
    }

    /// # Errors
    /// [`Error::Conflict`](crate::Error::Conflict) if another load holds the lease until `deadline`.
    pub async fn lease(&self, deadline: Deadline) -> Result<Lease> {
        Lease::acquire_of_all(&self.services, id(LOAD), "catalogue", LEASE, deadline).await
    }

    /// The existing services of these names, active or not, unordered.
    pub async fn named(&self, names: &[String], deadline: Deadline) -> Result<Vec<Service>> {
        let keys = names.iter().map(|name| id(ServiceId::of_name(name))).collect();
        Ok(rows(self.services.batch_get(keys, None, deadline).await?))
    }

    /// Like [`Services::named`], by their ids, with an error for each unreadable service.
    pub async fn each_named(&self, names: &[String], deadline: Deadline) -> Result<HashMap<String, Result<Service>>> {
        let keys = names.iter().map(|name| id(ServiceId::of_name(name))).collect();
        let items = self.services.batch_get(keys, None, deadline).await?;
        Ok(items.into_iter().filter_map(|item| Some((item.get("id")?.as_s().ok()?.clone(), from_item(item)))).collect())
    }

    pub async fn tools_of(&self, service: ServiceId) -> Result<Vec<ListedServiceTool>> {
        let of_service = self.tools.query_index("by_service", "#service_id = :service");
        of_service.with([(":service", text(service))]).collect().await
    }

    /// The existing tools of these names, active or not. One batched read per 100 names. Unreadable rows are reported and
    /// skipped.
    pub async fn tools_named(&self, names: &[String], deadline: Deadline) -> Result<HashMap<String, ServiceTool>> {
        let keys = names.iter().map(|name| id(service_tool_id(name))).collect();
        let found: Vec<ServiceTool> = rows(self.tools.batch_get(keys, None, deadline).await?);
        Ok(found.into_iter().map(|tool| (tool.name.clone(), tool)).collect())
    }

    /// Like [`Services::tools_named`], with an error for each unreadable tool.
    pub async fn find_each(
        &self,
        names: &[String],
        deadline: Deadline,
    ) -> Result<HashMap<String, Result<ServiceTool>>> {
        let keys = names.iter().map(|name| id(service_tool_id(name))).collect();
        let items = self.tools.batch_get(keys, None, deadline).await?;
        Ok(items
            .into_iter()
            .filter_map(|item| Some((item.get("name")?.as_s().ok()?.clone(), from_item(item))))
            .collect())
    }

    pub async fn capabilities(
        &self,
        services: &[String],
        deadline: Deadline,
    ) -> Result<HashMap<String, ServiceCapabilities>> {
        // DynamoDB refuses a whole batch with an invalid key.
        let can_be = |key: &String| (1..=LONGEST_KEY).contains(&key.len());
        let names = services.iter().map(|name| folded_name(name)).filter(can_be);
        let keys = names.map(|name| Item::from([("service_name".to_owned(), text(name))])).collect();
        let found: Vec<ServiceCapabilities> = rows(self.capabilities.batch_get(keys, None, deadline).await?);
        Ok(found.into_iter().map(|of| (of.service_name.clone(), of)).collect())
    }

    pub async fn put_tool(&self, tool: &ServiceTool) -> Result<()> {
        self.tools.put(tool)?.send().await
    }

    pub async fn put_capabilities(&self, capabilities: &ServiceCapabilities) -> Result<()> {
        self.capabilities.put(capabilities)?.send().await
    }

    /// Must be written last, so that the tools of a new edition are complete once it is visible.
    pub async fn put(&self, service: &Service) -> Result<()> {
        self.services.put(service)?.send().await
    }
}
