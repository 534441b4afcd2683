//! `services`, `service_tools` and `service_capabilities`: the catalogue of tools, the same for every organization.
//!
//! - `services`. Key: id, made of the name without case. Read as a whole, or by name. The item `load` beside the rows has the
//!   lease of whoever loads the catalogue.
//! - `service_tools`. Key: id, made of the name. Index `by_service`: `service_id`, `name`, with what lists and the search need.
//! - `service_capabilities`. Key: `service_name`, without case.

use std::{collections::HashMap, time::Duration};

use futures_util::try_join;

use super::{
    database::{Database, Item, id, rows, text},
    lease::Lease,
    table::Table,
};
use crate::{
    Deadline, Result,
    models::{ListedServiceTool, Service, ServiceCapabilities, ServiceId, ServiceTool, folded_name, service_tool_id},
};

/// The item that has the lease of a load, for longer than the function may take.
const LOAD: &str = "load";
const LEASE: Duration = Duration::from_secs(70);

/// Of a partition key, what DynamoDB takes at most, in bytes.
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

    /// All services, active or not, in no order.
    pub async fn all(&self) -> Result<Vec<Service>> {
        self.services.scan().filter("attribute_exists(#name)").collect().await
    }

    /// Everything that was loaded, active or not, as of now and in no order. A row that cannot be read is reported and left out.
    pub async fn loaded(&self) -> Result<(Vec<Service>, Vec<ServiceTool>, Vec<ServiceCapabilities>)> {
        let services = self.services.scan().filter("attribute_exists(#name)").now();
        let (tools, capabilities) = (self.tools.scan().now(), self.capabilities.scan().now());
        let (services, tools, capabilities) = try_join!(services.collect(), tools.collect(), capabilities.collect())?;
        Ok((services, tools, capabilities))
    }

    /// Waits until nobody else loads the catalogue, and keeps others from it until the lease is released or runs out.
    ///
    /// # Errors
    /// [`Error::Conflict`](crate::Error::Conflict) if somebody still does at `deadline`.
    pub async fn lease(&self, deadline: Deadline) -> Result<Lease> {
        Lease::acquire_of_all(&self.services, id(LOAD), "catalogue", LEASE, deadline).await
    }

    /// The services of these names that there are, active or not, in no order.
    pub async fn named(&self, names: &[String], deadline: Deadline) -> Result<Vec<Service>> {
        let keys = names.iter().map(|name| id(ServiceId::of_name(name))).collect();
        Ok(rows(self.services.batch_get(keys, None, deadline).await?))
    }

    /// The tools of a service as they are listed, active or not, by name.
    pub async fn tools_of(&self, service: ServiceId) -> Result<Vec<ListedServiceTool>> {
        let of_service = self.tools.query_index("by_service", "#service_id = :service");
        of_service.with([(":service", text(service))]).collect().await
    }

    /// The tools of these names that there are, active or not, by name. One batched read for up to 100 names. A row that cannot
    /// be read is reported and left out.
    pub async fn tools_named(&self, names: &[String], deadline: Deadline) -> Result<HashMap<String, ServiceTool>> {
        let keys = names.iter().map(|name| id(service_tool_id(name))).collect();
        let found: Vec<ServiceTool> = rows(self.tools.batch_get(keys, None, deadline).await?);
        Ok(found.into_iter().map(|tool| (tool.name.clone(), tool)).collect())
    }

    /// What these services can do, by their [`folded_name`].
    pub async fn capabilities(
        &self,
        services: &[String],
        deadline: Deadline,
    ) -> Result<HashMap<String, ServiceCapabilities>> {
        // A batch with a key that cannot be is refused whole.
        let can_be = |key: &String| (1..=LONGEST_KEY).contains(&key.len());
        let names = services.iter().map(|name| folded_name(name)).filter(can_be);
        let keys = names.map(|name| Item::from([("service_name".to_owned(), text(name))])).collect();
        let found: Vec<ServiceCapabilities> = rows(self.capabilities.batch_get(keys, None, deadline).await?);
        Ok(found.into_iter().map(|of| (of.service_name.clone(), of)).collect())
    }

    /// Writes a tool.
    pub async fn put_tool(&self, tool: &ServiceTool) -> Result<()> {
        self.tools.put(tool)?.send().await
    }

    /// Writes what a service can do.
    pub async fn put_capabilities(&self, capabilities: &ServiceCapabilities) -> Result<()> {
        self.capabilities.put(capabilities)?.send().await
    }

    /// Writes a service. It is written last, so that whoever sees its new edition finds its tools as they are to be.
    pub async fn put(&self, service: &Service) -> Result<()> {
        self.services.put(service)?.send().await
    }
}
