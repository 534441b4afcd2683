//! `limits`: how often a tool may run.
//!
//! ```json
//! {"per_call"?: 1, "per_hour"?: 100}
//! ```

use crate::{fields::Fields, models::Limits};

impl Limits {
    pub(super) fn read(fields: &mut Fields<'_>) -> Self {
        let Some(mut limits) = fields.object("limits") else { return Self::default() };
        let per_call = limits.whole("per_call", 1..=Self::HIGHEST);
        let per_hour = limits.whole("per_hour", 1..=Self::HIGHEST);
        limits.finish();
        Self { per_call, per_hour }
    }
}
