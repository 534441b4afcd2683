//! Templates, paths and conditions of a definition, and the data that they are resolved against.

pub(super) mod conditions;
pub(super) mod data;
mod expression;
pub(super) mod filters;
pub(super) mod path;
pub(super) mod templates;
pub(super) mod work;
