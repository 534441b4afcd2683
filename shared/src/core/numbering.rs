//! Facts of the numbering plans: time zones of a number, and numbers that are never called.
//!
//! The tables are derived from Google's libphonenumber 9.0.43 (Apache 2.0): `zones.txt` from its time zones, `premium.txt`
//! from its premium-rate patterns, `emergency.txt` from the emergency numbers that have the form of E.164. A line has a
//! country code and the beginnings of national numbers; `:n` requires n national digits. A country without a line has no
//! known premium numbers. Mobile numbers keep the zone of their area, wherever the person is.

use crate::models::E164;

/// Zones, separated by `&`, then the beginnings of numbers.
const ZONES: &str = include_str!("numbering/zones.txt");
const PREMIUM: &str = include_str!("numbering/premium.txt");
const EMERGENCY: &str = include_str!("numbering/emergency.txt");
/// Satellites and international networks (ITU, list of E.164 country codes).
const NETWORKS: [&str; 6] = ["870", "878", "881", "882", "883", "888"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NeverCalled {
    #[error("is an emergency number")]
    Emergency,
    #[error("is a premium-rate number")]
    Premium,
    #[error("is a number of a satellite or international network")]
    Network,
}

pub fn never_called(number: &E164) -> Result<(), NeverCalled> {
    let digits = digits(number);
    if is_listed(EMERGENCY, digits) {
        return Err(NeverCalled::Emergency);
    }
    if is_listed(PREMIUM, digits) {
        return Err(NeverCalled::Premium);
    }
    if NETWORKS.iter().any(|code| digits.starts_with(code)) { Err(NeverCalled::Network) } else { Ok(()) }
}

/// The IANA zones in which the number may be, by its longest known beginning; empty if none is known.
pub fn zones(number: &E164) -> Vec<&'static str> {
    let digits = digits(number);
    let (mut longest, mut found) = (0, "");
    for line in ZONES.lines() {
        let mut words = line.split(' ');
        let zones = words.next().unwrap_or_default();
        let known = words.filter(|beginning| digits.starts_with(beginning)).map(str::len).max();
        if let Some(known) = known.filter(|known| *known > longest) {
            (longest, found) = (known, zones);
        }
    }
    found.split('&').filter(|zone| !zone.is_empty()).collect()
}

fn digits(number: &E164) -> &str {
    number.as_str().trim_start_matches('+')
}

fn is_listed(table: &str, digits: &str) -> bool {
    table.lines().any(|line| {
        let mut words = line.split(' ');
        let national = words.next().and_then(|code| digits.strip_prefix(code));
        national.is_some_and(|national| {
            words.any(|word| match word.split_once(':') {
                Some((beginning, length)) => national.starts_with(beginning) && length.parse() == Ok(national.len()),
                None => national.starts_with(word),
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;

    fn number(text: &str) -> E164 {
        text.parse().unwrap()
    }

    #[test]
    fn emergency_premium_and_satellite_numbers_are_never_called() {
        use NeverCalled::{Emergency, Network, Premium};
        for (text, why) in [
            ("+19115550100", Emergency),
            ("+2710111", Emergency),
            ("+19005550100", Premium),
            ("+449012345678", Premium),
            ("+4990012345678", Premium),
            ("+60160012345 6", Premium),
            ("+3531512123456", Premium),
            ("+979123456789", Premium),
            ("+870773123456", Network),
            ("+8816234567890", Network),
        ] {
            assert_eq!(never_called(&number(text)), Err(why), "{text}");
        }
        for text in [
            "+14155550101",
            "+442079460000",
            "+4930123456",
            "+35315121234",
            "+27101112345",
            "+351912345678",
            "+18005550100",
        ] {
            assert_eq!(never_called(&number(text)), Ok(()), "{text}");
        }
    }

    #[test]
    fn the_longest_beginning_names_the_zones() {
        assert_eq!(zones(&number("+14155550101")), ["America/Los_Angeles"]);
        assert_eq!(zones(&number("+4930123456")), ["Europe/Berlin"]);
        assert_eq!(zones(&number("+351912345678")).len(), 2, "the mainland and the Azores");
        assert!(zones(&number("+18005550100")).len() > 20, "a number without an area may be anywhere in the plan");
        assert!(zones(&number("+999123456789")).is_empty());
    }

    #[test]
    fn every_zone_is_known() {
        for zone in ZONES.lines().flat_map(|line| line.split(' ').next().unwrap().split('&')) {
            assert!(TimeZone::get(zone).is_ok(), "{zone}");
        }
    }
}
