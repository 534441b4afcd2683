//! The time, in the format of the stand-ins' services.

use jiff::Timestamp;

#[expect(clippy::disallowed_methods, reason = "a stand-in has its own clock, as the service it stands for")]
pub(super) fn now() -> Timestamp {
    Timestamp::now()
}

/// ISO 8601 in UTC with milliseconds: `2026-08-20T10:00:00.000Z`.
pub(super) fn iso(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}
