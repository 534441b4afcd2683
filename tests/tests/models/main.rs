//! The protocols that everything stands on, as models whose states are all searched: every order of steps, with crashes, lost
//! answers and expired leases (docs/adr/0036-models-of-the-protocols.md).
//!
//! Each model is held to the code: walks through it are carried out on the real store, and after every step both have the same
//! rows and answers. Each model can also be given a mistake, which the search and, where the code could make it, the walks find.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test says what is wrong and stops; its numbers are small"
)]

mod claim;
mod lease_with_intent;
mod run_with_journal;
mod scale;
mod walks;

use std::{collections::BTreeSet, fmt::Debug, hash::Hash, path::Path};

use stateright::{Checker, Expectation, HasDiscoveries, Model};

use walks::Walk;

/// Searches all states for broken promises, and for situations that never occur.
fn check<M>(model: M)
where
    M: Model<State: Clone + Debug + Hash + PartialEq + Send + Sync, Action: Clone + Debug + PartialEq>
        + Send
        + Sync
        + 'static,
{
    names_are_promises(&model);
    let checked = model.checker().spawn_bfs().join();
    println!("{} states, up to {} steps", checked.unique_state_count(), checked.max_depth());
    checked.assert_properties();
}

/// The shortest walk to a broken promise.
#[track_caller]
fn counterexample<M>(model: M, promise: &'static str) -> Walk<M>
where
    M: Model<State: Clone + Debug + Hash + PartialEq + Send + Sync, Action: Clone + Debug + PartialEq>
        + Send
        + Sync
        + 'static,
{
    let checked = model.checker().finish_when(HasDiscoveries::AnyOf(BTreeSet::from([promise]))).spawn_bfs().join();
    Walk::of_path(checked.assert_any_discovery(promise))
}

fn promises<M: Model>(model: &M) -> impl Iterator<Item = &'static str> {
    let always = model.properties().into_iter().filter(|property| property.expectation == Expectation::Always);
    always.map(|property| property.name)
}

#[track_caller]
fn names_are_promises<M: Model>(model: &M) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ARCHITECTURE.md");
    let page = std::fs::read_to_string(page).unwrap().replace("**", "").replace('\n', " ");
    for name in promises(model) {
        assert!(page.contains(name), "ARCHITECTURE.md has no such sentence: {name}");
    }
}
