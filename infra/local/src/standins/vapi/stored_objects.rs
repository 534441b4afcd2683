//! VAPI's stored objects of one kind, and lists of them.

use jiff::Timestamp;
use serde_json::{Map, Value};

const PAGE: usize = 100;
const LARGEST_PAGE: usize = 1000;
const NO_NUMBER: &str = "limit must be a number conforming to the specified constraints";

#[derive(Debug, Default)]
pub(super) struct StoredObjects(Vec<Map<String, Value>>);

impl StoredObjects {
    pub(super) fn add(&mut self, item: Map<String, Value>) {
        self.0.push(item);
    }

    pub(super) fn get(&self, id: &str) -> Option<&Map<String, Value>> {
        self.0.iter().find(|item| has_id(item, id))
    }

    /// Whether the account has an object with this id.
    pub(super) fn is_of(&self, org_id: &str, id: &str) -> bool {
        self.get(id).is_some_and(|item| has_org(item, org_id))
    }

    pub(super) fn get_mut(&mut self, id: &str) -> Option<&mut Map<String, Value>> {
        self.0.iter_mut().find(|item| has_id(item, id))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Map<String, Value>> {
        self.0.iter_mut()
    }

    pub(super) fn remove(&mut self, id: &str) -> Option<Map<String, Value>> {
        let position = self.0.iter().position(|item| has_id(item, id))?;
        Some(self.0.remove(position))
    }

    pub(super) fn newest_first(&self) -> Vec<Value> {
        self.0.iter().rev().cloned().map(Value::Object).collect()
    }
}

fn has_id(item: &Map<String, Value>, id: &str) -> bool {
    item.get("id").and_then(Value::as_str) == Some(id)
}

fn has_org(item: &Map<String, Value>, org_id: &str) -> bool {
    item.get("orgId").and_then(Value::as_str) == Some(org_id)
}

type Holds = fn(&Timestamp, &Timestamp) -> bool;

/// The filters of a list: parameter, field, comparison.
const BOUNDS: [(&str, &str, Holds); 8] = [
    ("createdAtGt", "createdAt", Timestamp::gt),
    ("createdAtLt", "createdAt", Timestamp::lt),
    ("createdAtGe", "createdAt", Timestamp::ge),
    ("createdAtLe", "createdAt", Timestamp::le),
    ("updatedAtGt", "updatedAt", Timestamp::gt),
    ("updatedAtLt", "updatedAt", Timestamp::lt),
    ("updatedAtGe", "updatedAt", Timestamp::ge),
    ("updatedAtLe", "updatedAt", Timestamp::le),
];

/// The limit and filters of a list request.
pub(super) struct Listing {
    limit: usize,
    bounds: Vec<(&'static str, Holds, Timestamp)>,
}

impl Listing {
    pub(super) fn of(query: &[(String, String)]) -> Result<Self, Vec<String>> {
        let mut listing = Self { limit: PAGE, bounds: Vec::new() };
        let mut problems = Vec::new();
        for (name, value) in query {
            if name == "limit" {
                match value.parse::<usize>() {
                    Ok(limit) if limit <= LARGEST_PAGE => listing.limit = limit,
                    Ok(_) => problems.push(format!("limit must not be greater than {LARGEST_PAGE}")),
                    Err(_) => problems.push(NO_NUMBER.to_owned()),
                }
            } else if let Some((_, field, holds)) = BOUNDS.iter().find(|(parameter, ..)| parameter == name) {
                match value.parse() {
                    Ok(at) => listing.bounds.push((field, *holds, at)),
                    Err(_) => problems.push(format!("{name} must be a valid ISO 8601 date string")),
                }
            } else {
                problems.push(format!("property {name} should not exist"));
            }
        }
        if problems.is_empty() { Ok(listing) } else { Err(problems) }
    }

    /// A plain array of the account's objects, newest first.
    pub(super) fn page(&self, of: &StoredObjects, org_id: &str) -> Value {
        let within = |item: &Map<String, Value>| {
            self.bounds.iter().all(|(field, holds, bound)| {
                let at = item.get(*field).and_then(Value::as_str).and_then(|at| at.parse::<Timestamp>().ok());
                at.is_some_and(|at| holds(&at, bound))
            })
        };
        let items = of.0.iter().rev().filter(|item| has_org(item, org_id) && within(item)).take(self.limit);
        Value::Array(items.cloned().map(Value::Object).collect())
    }
}
