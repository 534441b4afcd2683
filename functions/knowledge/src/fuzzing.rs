//! A reader that is private otherwise, for `tests/fuzz`.

use shared::models::KnowledgeBase;

use crate::rows;

/// The numbers of valid rows and of problems in a body; `None` if it is unusable as a whole.
pub fn rows(base: &KnowledgeBase, content_type: &str, body: &[u8]) -> Option<(usize, usize)> {
    let rows = rows::read(base, content_type, body).ok()?;
    Some((rows.entries.len(), rows.refused.len()))
}
