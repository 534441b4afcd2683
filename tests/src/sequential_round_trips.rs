//! Counts the sequential round trips of an operation log.

use crate::aws::Operation;

/// Groups operations into waves: an operation that began before the first of its wave had ended ran in parallel with
/// it; a later one had to wait. If every operation is equally slow, the number of waves is the number of round trips
/// that a caller waits for.
pub fn waves(operations: &[Operation]) -> Vec<Vec<Operation>> {
    let mut sorted = operations.to_vec();
    sorted.sort_by_key(|operation| operation.started);
    let mut waves: Vec<Vec<Operation>> = Vec::new();
    for operation in sorted {
        let beside = waves.last().is_some_and(|wave| wave.iter().all(|earlier| operation.started < earlier.ended));
        match waves.last_mut() {
            Some(wave) if beside => wave.push(operation),
            _ => waves.push(vec![operation]),
        }
    }
    waves
}

/// The sorted operations of each wave: `["GetItem tools", "PutItem idempotency"]`.
pub fn summary(operations: &[Operation]) -> Vec<Vec<String>> {
    waves(operations)
        .iter()
        .map(|wave| {
            let mut asked: Vec<String> =
                wave.iter().map(|operation| format!("{} {}", operation.action, operation.on.join("+"))).collect();
            asked.sort();
            asked
        })
        .collect()
}
