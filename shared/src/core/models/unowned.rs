//! Rows read before the organization is known.

use super::{Approval, Automation, AutomationRun, Call, Event, Hook, OrganizationId, PhoneNumber, PlacingCall, Replay};

pub trait Owned {
    fn owner(&self) -> OrganizationId;
}

macro_rules! owned {
    ($($row:ident),+) => {$(
        impl Owned for $row {
            fn owner(&self) -> OrganizationId {
                self.organization_id
            }
        }
    )+};
}

owned!(Approval, Automation, AutomationRun, Call, Event, Hook, PhoneNumber, PlacingCall, Replay);

/// A row read by a key without an organization, concurrently with authentication. Only its owner can see it.
#[derive(Debug)]
pub struct Unowned<T>(T);

impl<T: Owned> Unowned<T> {
    pub fn new(row: T) -> Self {
        Self(row)
    }

    /// Only for callers that then prove a secret of the organization: a signature, a bearer.
    pub fn for_its_owner(self) -> T {
        self.0
    }

    pub fn for_owner(self, organization: OrganizationId) -> Option<T> {
        (self.0.owner() == organization).then_some(self.0)
    }
}
