//! The environment of `make faults`.
#![allow(clippy::panic, reason = "a test says what is wrong and stops")]

#[expect(clippy::disallowed_methods, reason = "of the test, not of a function")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn number(name: &str, otherwise: u64) -> u64 {
    variable(name).map_or(otherwise, |value| value.parse().unwrap_or_else(|_| panic!("{name} is no number")))
}

/// `FAULT_WAYS=all`: every fault at every place, in place of a choice.
pub fn all() -> bool {
    variable("FAULT_WAYS").is_some_and(|ways| ways == "all")
}

/// `FAULT_SEED`, which repeats a run.
pub fn seed() -> u64 {
    number("FAULT_SEED", 1)
}

/// `FAULT_PAIRS`: plays with two faults, of each flow.
pub fn pairs() -> u64 {
    number("FAULT_PAIRS", 3)
}
