//! Formats a series of figures as text.

use std::fmt;

/// Minimum, median and maximum of a series.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) least: f64,
    pub(crate) median: f64,
    pub(crate) most: f64,
}

impl Spread {
    /// # Errors
    /// If the series is empty.
    pub(crate) fn of(figures: impl IntoIterator<Item = f64>) -> Result<Self, String> {
        let mut sorted: Vec<f64> = figures.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        match (sorted.first(), sorted.get(sorted.len() / 2), sorted.last()) {
            (Some(&least), Some(&median), Some(&most)) => Ok(Self { least, median, most }),
            _ => Err("nothing was measured".to_owned()),
        }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} / {:.2} / {:.2}", self.least, self.median, self.most)
    }
}
