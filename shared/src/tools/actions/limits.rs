//! `limits`: how often a tool may run.
//!
//! ```json
//! {"per_call"?: 1, "per_hour"?: 100}
//! ```

use crate::{fields::Fields, models::Limits};

impl Limits {
    pub(super) fn read(fields: &mut Fields<'_>) -> Self {
        let Some(value) = fields.get("limits") else { return Self::default() };
        let path = fields.path("limits");
        let Some(mut limits) = Fields::of(value, path, fields.problems()) else { return Self::default() };
        let per_call = limits.whole("per_call", 1..=Self::HIGHEST);
        let per_hour = limits.whole("per_hour", 1..=Self::HIGHEST);
        limits.finish();
        Self { per_call, per_hour }
    }
}
