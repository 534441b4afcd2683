//! Walks through a model, each made by its seed.

use stateright::{Model, Path};
use tests::random::Random;

pub(crate) struct Walk<M: Model> {
    pub(crate) start: M::State,
    /// Each step with the state after it.
    pub(crate) steps: Vec<(M::Action, M::State)>,
}

impl<M: Model<State: Clone, Action: Clone>> Walk<M> {
    /// Every step is as likely as the others that are possible then. `most`: steps.
    pub(crate) fn new(model: &M, seed: u64, most: usize) -> Self {
        let mut random = Random(seed);
        let start = model.init_states().swap_remove(0);
        let (mut state, mut steps) = (start.clone(), Vec::new());
        while steps.len() < most {
            let mut possible = model.next_steps(&state);
            if possible.is_empty() {
                break;
            }
            let (action, next) = possible.swap_remove(random.below(possible.len()));
            state = next.clone();
            steps.push((action, next));
        }
        Self { start, steps }
    }
}

impl<M: Model> Walk<M> {
    pub(crate) fn of_path(path: Path<M::State, M::Action>) -> Self {
        let (mut states, mut actions) = (Vec::new(), Vec::new());
        for (state, action) in path.into_vec() {
            states.push(state);
            actions.extend(action);
        }
        let start = states.remove(0);
        Self { start, steps: actions.into_iter().zip(states).collect() }
    }
}
