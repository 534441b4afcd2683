//! Walks through a model, each made by its seed.

use stateright::{Model, Path};

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

/// `SplitMix64`.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// At least 0, less than 1.
    #[expect(clippy::cast_precision_loss, reason = "a chance needs no more than 52 bits")]
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 12) as f64 / (1_u64 << 52) as f64
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap_or_default()
    }
}
