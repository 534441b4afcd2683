//! A row that was read before it was known who asks.

use super::OrganizationId;

/// Something that belongs to an organization.
pub trait Owned {
    fn owner(&self) -> OrganizationId;
}

/// A row read by a key that names no organization, beside the read that tells which one asks. It shows itself to its
/// owner only; to anybody else it does not exist.
#[derive(Debug)]
pub struct Unowned<T>(T);

impl<T: Owned> Unowned<T> {
    pub fn new(row: T) -> Self {
        Self(row)
    }

    /// Whose it is. For one who is let in by what the row's own owner keeps secret, such as a signature.
    pub fn owner(&self) -> OrganizationId {
        self.0.owner()
    }

    pub fn for_owner(self, organization: OrganizationId) -> Option<T> {
        (self.0.owner() == organization).then_some(self.0)
    }
}
