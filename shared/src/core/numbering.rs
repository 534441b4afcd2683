//! Facts of the numbering plans: time zones of a number, and numbers that are never called.
//!
//! The tables are derived from Google's libphonenumber 9.0.43 (Apache 2.0): `zones.txt` from its time zones, `premium.txt`
//! from its premium-rate patterns, `emergency.txt` from the emergency numbers that have the form of E.164. A line has a
//! country code and the beginnings of national numbers; `:n` requires n national digits. A country without a line has no
//! known premium numbers. In `zones.txt`, numbers that libphonenumber calls not geographical, such as most mobile and all
//! toll-free numbers, have the zones of the region.

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

#[derive(Debug, Default)]
pub struct NumberZones {
    /// IANA names; empty if none is known.
    pub names: Vec<&'static str>,
    /// The number tells no area: these are all zones of its country or plan.
    pub whole_plan: bool,
}

/// The zones in which the number may be, by its longest known beginning.
pub fn zones(number: &E164) -> NumberZones {
    let digits = digits(number);
    let known = ZONES.lines().flat_map(|line| {
        let (zones, beginnings) = line.split_once(' ').unwrap_or_default();
        let known = beginnings.split(' ').filter(|beginning| digits.starts_with(beginning));
        known.map(move |beginning| (beginning.len(), zones))
    });
    let known: Vec<(usize, &'static str)> = known.collect();
    let (Some((_, plan)), Some((_, area))) = (known.iter().min(), known.iter().max()) else {
        return NumberZones::default();
    };
    NumberZones { names: area.split('&').collect(), whole_plan: plan == area }
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
        for (text, known) in [
            ("+14155550101", "America/Los_Angeles"),
            ("+18762550123", "America/Jamaica"),
            ("+4930123456", "Europe/Berlin"),
            ("+61212345678", "Australia/Sydney"),
            ("+74951234567", "Europe/Moscow"),
            ("+5511987654321", "America/Sao_Paulo"),
        ] {
            assert_eq!(zones(&number(text)).names, [known], "{text}");
        }
        // A mobile or toll-free number may be anywhere in its country or plan.
        for (text, known, among) in [
            ("+61412345678", 8, "Australia/Perth"),
            ("+611800123456", 8, "Australia/Perth"),
            ("+79131234567", 16, "Asia/Kamchatka"),
            ("+34612345678", 2, "Atlantic/Canary"),
            ("+351912345678", 2, "Atlantic/Azores"),
            ("+593991234567", 2, "Pacific/Galapagos"),
            ("+18005550100", 42, "Pacific/Honolulu"),
        ] {
            let zones = zones(&number(text));
            assert_eq!(
                (zones.names.len(), zones.names.contains(&among), zones.whole_plan),
                (known, true, true),
                "{text}"
            );
        }
        assert!(!zones(&number("+12085550101")).whole_plan, "an area with two zones");
        assert!(zones(&number("+999123456789")).names.is_empty());
    }

    #[test]
    fn every_zone_is_known() {
        for zone in ZONES.lines().flat_map(|line| line.split(' ').next().unwrap().split('&')) {
            assert!(TimeZone::get(zone).is_ok(), "{zone}");
        }
    }
}
