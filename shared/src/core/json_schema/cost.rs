//! Computes an upper bound on the cost of a validation before it begins.
//!
//! The crate bounds neither time nor memory: references may multiply (four that lead to four each make sixteen schemas), and each
//! failed alternative copies its value. So this module first counts how often each schema applies to each value, following all
//! references. Counting is fast, since a multiplicity is one number of any size.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

/// In comparisons of short values, of 20 ns each: 5 s for the slowest schemas and values.
const MOST_WORK: u64 = 250_000_000;

/// The cost of visiting a schema, also while counting.
pub(super) const LOOK: u64 = 5;

/// In copied values of about 100 bytes: a failed validation may briefly take 100 MB of a function's 256 MB.
const MOST_COPIES: u64 = 1_000_000;

/// The size of an error beside its copied value.
const ERROR_SIZE: u64 = 4;

/// Nested schemas at one time, each with up to 6 KB of stack in an unoptimized build.
const MOST_FRAMES: u64 = 256;

/// The work for one short value. A schema beyond this is rejected, because every validation would be too slow.
const MOST_UNFOLDED: u64 = 10_000_000;

#[derive(Debug, Clone, Default)]
pub(super) struct Node {
    /// Work for a short value itself, without its parts and subschemas.
    pub(super) work: u64,
    /// Whether it inspects the entire value.
    pub(super) looks_within: bool,
    pub(super) errors: u64,
    pub(super) same: Vec<usize>,
    pub(super) properties: HashMap<String, usize>,
    pub(super) other_members: Vec<usize>,
    pub(super) every_member: Vec<usize>,
    pub(super) first_items: Vec<usize>,
    pub(super) other_items: Vec<usize>,
    pub(super) every_item: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edge {
    Same,
    Property,
    /// A member without a property schema.
    OtherMember,
    EveryMember,
    FirstItems,
    OtherItem,
    EveryItem,
    /// Applies only through a reference.
    Unused,
}

impl Node {
    pub(super) fn add(&mut self, edge: Edge, name: &str, child: usize) {
        match edge {
            Edge::Same => self.same.push(child),
            Edge::Property => drop(self.properties.insert(name.to_owned(), child)),
            Edge::OtherMember => self.other_members.push(child),
            Edge::EveryMember => self.every_member.push(child),
            Edge::FirstItems => self.first_items.push(child),
            Edge::OtherItem => self.other_items.push(child),
            Edge::EveryItem => self.every_item.push(child),
            Edge::Unused => {}
        }
    }

    fn of_member(&self, name: &str) -> impl Iterator<Item = &usize> {
        let named = self.properties.get(name);
        let others = if named.is_none() { self.other_members.as_slice() } else { &[] };
        named.into_iter().chain(others).chain(&self.every_member)
    }

    fn of_item(&self, index: usize) -> impl Iterator<Item = &usize> {
        let first = self.first_items.get(index);
        let others = if first.is_none() { self.other_items.as_slice() } else { &[] };
        first.into_iter().chain(others).chain(&self.every_item)
    }
}

/// All schemas within one, each before the schemas that it applies to the same value.
#[derive(Debug, Clone)]
pub(super) struct Costs {
    nodes: Vec<Node>,
    /// Nodes in that order, and the rank of each node.
    order: Vec<usize>,
    rank: Vec<usize>,
}

/// The reason why a schema can never be checked.
#[derive(Debug)]
pub(super) enum Unbounded {
    /// Nodes that lead back to themselves for the same value, or lead to such nodes.
    Circles(Vec<usize>),
    Unfolded,
}

impl Costs {
    /// `nodes[0]` is the whole schema.
    pub(super) fn of(nodes: Vec<Node>) -> Result<Self, Unbounded> {
        let mut parents = vec![Vec::new(); nodes.len()];
        let mut waits_for: Vec<usize> = nodes.iter().map(|node| node.same.len()).collect();
        for (parent, node) in nodes.iter().enumerate() {
            for child in &node.same {
                parents.get_mut(*child).into_iter().for_each(|parents| parents.push(parent));
            }
        }
        let mut order: Vec<usize> = (0..nodes.len()).filter(|node| waits_for.get(*node) == Some(&0)).collect();
        let mut unfolded = vec![Times::default(); nodes.len()];
        let mut next = 0;
        while let Some((index, node)) = order.get(next).and_then(|index| Some((*index, nodes.get(*index)?))) {
            next += 1;
            let same = node.same.iter().filter_map(|child| unfolded.get(*child));
            let all = same.fold(Times { count: node.work, frames: 0 }, |all, one| all.and(*one)).deeper();
            if all.count > MOST_UNFOLDED || all.frames > MOST_FRAMES {
                return Err(Unbounded::Unfolded);
            }
            unfolded.get_mut(index).into_iter().for_each(|place| *place = all);
            for parent in parents.get(index).into_iter().flatten() {
                if let Some(count) = waits_for.get_mut(*parent) {
                    *count -= 1;
                    if *count == 0 {
                        order.push(*parent);
                    }
                }
            }
        }
        if order.len() < nodes.len() {
            let waiting = (0..nodes.len()).filter(|node| waits_for.get(*node).is_some_and(|count| *count > 0));
            return Err(Unbounded::Circles(waiting.collect()));
        }
        order.reverse();
        let mut rank = vec![0; nodes.len()];
        for (place, node) in order.iter().enumerate() {
            rank.get_mut(*node).into_iter().for_each(|rank| *rank = place);
        }
        Ok(Self { nodes, order, rank })
    }

    fn rank(&self, node: usize) -> usize {
        self.rank.get(node).copied().unwrap_or_default()
    }
}

/// The number of applications, and of schemas entered on the way.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    count: u64,
    frames: u64,
}

impl Times {
    fn and(self, other: Self) -> Self {
        Self { count: self.count.saturating_add(other.count), frames: self.frames.max(other.frames) }
    }

    const fn deeper(self) -> Self {
        Self { count: self.count, frames: self.frames + 1 }
    }
}

type Applied = BTreeMap<usize, Times>;

#[derive(Debug, Default)]
pub(super) struct Cost {
    work: u64,
    copies: u64,
    frames: u64,
}

impl Cost {
    /// `instance` must be shallow enough for recursion.
    pub(super) fn of(costs: &Costs, instance: &Value) -> Self {
        let mut demand = Self::default();
        demand.add(costs, instance, 0, Applied::from([(costs.rank(0), Times { count: 1, frames: 1 })]));
        demand
    }

    /// Returns the value's size: 1, plus 1 per 16 bytes of text, plus the size of its parts. `name`: the size of its member name,
    /// which may be checked too.
    fn add(&mut self, costs: &Costs, value: &Value, name: u64, mut applied: Applied) -> u64 {
        if self.exceeds_limit() || self.is_too_deep() {
            return 1;
        }
        let mut all: Vec<(&Node, Times)> = Vec::new();
        while let Some((rank, times)) = applied.pop_first() {
            let Some(node) = costs.order.get(rank).and_then(|node| costs.nodes.get(*node)) else { continue };
            join(costs, &mut applied, node.same.iter(), times);
            self.frames = self.frames.max(times.frames);
            all.push((node, times));
        }
        let text = |text: &String| text.len() as u64 / 16;
        let (mut own, mut size) = (1 + name, 0);
        match value {
            Value::String(value) => own += text(value),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    own += 1;
                    size += self.add(costs, item, 0, below(costs, &all, |node| node.of_item(index)));
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    own += 1 + text(name);
                    size += self.add(costs, member, text(name), below(costs, &all, |node| node.of_member(name)));
                }
            }
            _ => {}
        }
        size += own;
        for (node, Times { count, .. }) in all {
            let work = node.work.saturating_mul(if node.looks_within { size } else { own });
            let copies = node.errors.saturating_mul(size + ERROR_SIZE);
            self.work = self.work.saturating_add(count.saturating_mul(work));
            self.copies = self.copies.saturating_add(count.saturating_mul(copies));
        }
        size
    }

    pub(super) const fn is_too_deep(&self) -> bool {
        self.frames > MOST_FRAMES
    }

    pub(super) const fn exceeds_limit(&self) -> bool {
        self.work > MOST_WORK
    }

    /// Listing the errors validates alternatives again at each level.
    pub(super) const fn is_too_much_to_explain(&self) -> bool {
        self.copies > MOST_COPIES || self.work.saturating_mul(self.frames) > MOST_WORK
    }
}

/// The schemas that apply to a part of a value.
fn below<'n, C: Iterator<Item = &'n usize>>(
    costs: &Costs,
    all: &[(&'n Node, Times)],
    children: impl Fn(&'n Node) -> C,
) -> Applied {
    let mut applied = Applied::new();
    for (node, times) in all {
        join(costs, &mut applied, children(node), *times);
    }
    applied
}

fn join<'n>(costs: &Costs, applied: &mut Applied, children: impl Iterator<Item = &'n usize>, times: Times) {
    for child in children {
        let place = applied.entry(costs.rank(*child)).or_default();
        *place = place.and(times.deeper());
    }
}
