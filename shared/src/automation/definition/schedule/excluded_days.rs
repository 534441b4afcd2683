//! Days on which a schedule has no occurrence: `2026-12-24`, or every year `12-25`.

use jiff::civil::Date;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExcludedDay {
    Once(Date),
    Yearly { month: i8, day: i8 },
}

impl ExcludedDay {
    /// `YYYY-MM-DD` or `MM-DD`.
    pub(in crate::automation) fn parse(text: &str) -> Option<Self> {
        if text.len() == 10 {
            return text.parse().ok().map(Self::Once);
        }
        let digits = |text: &str| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        let (month, day) = text.split_once('-').filter(|(month, day)| digits(month) && digits(day))?;
        // A leap year, so that February 29 is a day.
        let date = Date::new(2028, month.parse().ok()?, day.parse().ok()?).ok()?;
        Some(Self::Yearly { month: date.month(), day: date.day() })
    }

    pub(super) fn is(self, day: Date) -> bool {
        match self {
            Self::Once(date) => date == day,
            Self::Yearly { month, day: of_month } => (day.month(), day.day()) == (month, of_month),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_read_strictly() {
        let date = jiff::civil::date;
        assert_eq!(ExcludedDay::parse("2026-12-24"), Some(ExcludedDay::Once(date(2026, 12, 24))));
        assert_eq!(ExcludedDay::parse("02-29"), Some(ExcludedDay::Yearly { month: 2, day: 29 }));
        assert!(ExcludedDay::parse("12-25").unwrap().is(date(2040, 12, 25)));
        for text in ["", "12-32", "2-9", "2026-02-30", "24.12.2026", "12-2\u{e9}", "+1-01", "20261224", "2026-12-24T10"]
        {
            assert_eq!(ExcludedDay::parse(text), None, "{text}");
        }
    }
}
