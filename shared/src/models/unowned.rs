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

    /// The row itself says whose it is. Only for who must then show what that organization keeps secret: a signature, a bearer.
    pub fn for_its_owner(self) -> T {
        self.0
    }

    pub fn for_owner(self, organization: OrganizationId) -> Option<T> {
        (self.0.owner() == organization).then_some(self.0)
    }
}
