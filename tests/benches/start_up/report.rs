//! Formats figures as text.

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

/// A table: the first column left-aligned, the others right-aligned.
pub(crate) struct Table {
    /// The first has the names of the columns, the second their units.
    rows: Vec<Vec<String>>,
}

impl Table {
    /// `header`: name and unit of each column.
    pub(crate) fn new<const N: usize>(header: [(&str, &str); N]) -> Self {
        let (names, units) = (header.map(|(name, _)| name.to_owned()), header.map(|(_, unit)| unit.to_owned()));
        Self { rows: vec![names.into(), units.into()] }
    }

    /// As a table of Markdown.
    pub(crate) fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let Some(([names, units], rows)) = self.rows.split_first_chunk() else { return String::new() };
        let heads: Vec<String> = names
            .iter()
            .zip(units)
            .map(|(name, unit)| if unit.is_empty() { name.clone() } else { format!("{name}, {unit}") })
            .collect();
        let rule: String = (0..heads.len()).map(|column| if column == 0 { "|---|" } else { "---:|" }).collect();
        let rows: String = rows.iter().map(|row| line(row)).collect();
        format!("{}{rule}\n{rows}", line(&heads))
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.first().map_or(0, Vec::len);
        let cells = |column: usize| self.rows.iter().filter_map(move |row| row.get(column));
        let widths: Vec<usize> =
            (0..columns).map(|column| cells(column).map(|cell| cell.chars().count()).max().unwrap_or(0)).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                let padded = if column == 0 { format!("{cell:<width$}") } else { format!("  {cell:>width$}") };
                line.push_str(&padded);
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
