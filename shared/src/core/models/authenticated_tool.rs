//! Proof that a caller presented a tool's own token.

use super::ToolId;

/// A tool id with a verified token. Only `tools::token` makes one.
#[derive(Debug, Clone, Copy)]
pub struct AuthenticatedTool(ToolId);

impl AuthenticatedTool {
    pub(crate) const fn new(id: ToolId) -> Self {
        Self(id)
    }

    pub const fn id(self) -> ToolId {
        self.0
    }
}
