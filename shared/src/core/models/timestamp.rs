//! Points in time.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Milliseconds; as text ISO 8601 in UTC with three decimals (`2026-11-20T16:20:52.123Z`), which sorts chronologically.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(jiff::Timestamp);

crate::described!(Timestamp => {"type": "string", "format": "date-time"});

impl Timestamp {
    /// Nothing here is older, and texts of years below 0 do not sort.
    pub const FIRST: Self = Self(jiff::Timestamp::UNIX_EPOCH);

    /// The only clock.
    #[expect(clippy::disallowed_methods, reason = "this is the place the rule points to")]
    pub fn now() -> Self {
        Self::from_millis(jiff::Timestamp::now().as_millisecond())
    }

    pub fn from_millis(milliseconds: i64) -> Self {
        Self(jiff::Timestamp::from_millisecond(milliseconds).unwrap_or(jiff::Timestamp::MAX))
    }

    /// Milliseconds since 1970.
    pub fn as_millis(self) -> i64 {
        self.0.as_millisecond()
    }

    /// Seconds since 1970, for DynamoDB's TTL.
    pub fn as_seconds(self) -> i64 {
        self.0.as_second()
    }

    /// The UTC hour: `2026-11-20T16`.
    pub fn hour(self) -> String {
        self.to_string().chars().take(13).collect()
    }

    /// The UTC minute: `2026-11-20T16:05`.
    pub fn minute(self) -> String {
        self.to_string().chars().take(16).collect()
    }

    /// The UTC day: `2026-11-20`.
    pub fn day(self) -> String {
        self.to_string().chars().take(10).collect()
    }

    /// The start of the UTC hour.
    #[must_use]
    pub fn start_of_hour(self) -> Self {
        let milliseconds = self.as_millis();
        Self::from_millis(milliseconds - milliseconds.rem_euclid(60 * 60 * 1_000))
    }

    /// The start of the next UTC hour.
    #[must_use]
    pub fn next_hour(self) -> Self {
        self.start_of_hour().plus(Duration::from_secs(60 * 60))
    }

    /// The start of the UTC month.
    #[must_use]
    pub fn start_of_month(self) -> Self {
        let month: String = self.to_string().chars().take(7).collect();
        // This text always parses.
        format!("{month}-01T00:00:00.000Z").parse().unwrap_or(self)
    }

    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        let milliseconds = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.as_millis().saturating_add(milliseconds))
    }

    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        let milliseconds = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.as_millis().saturating_sub(milliseconds).max(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.0)
    }
}

impl FromStr for Timestamp {
    type Err = jiff::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<jiff::Timestamp>().map(|moment| Self::from_millis(moment.as_millisecond()))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_sorts_as_time_does() {
        let early = Timestamp::from_millis(1_700_000_000_009);
        let late = Timestamp::from_millis(1_700_000_000_010);
        assert_eq!(early.to_string(), "2023-11-14T22:13:20.009Z");
        assert!(early.to_string() < late.to_string());
        assert_eq!(late.to_string().parse::<Timestamp>().unwrap(), late);
    }
}
