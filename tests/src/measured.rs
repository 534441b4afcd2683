//! Measured figures: tables, and their section in a page.

use std::{fmt, fs, path::Path};

type Result<T> = std::result::Result<T, lambda_http::Error>;

/// The page's text with a new section between its two marks.
///
/// # Errors
/// If the page cannot be read or lacks a mark.
pub fn replace_section(page: &Path, begin: &str, end: &str, section: &str) -> Result<String> {
    let text = fs::read_to_string(page)?;
    let shown = page.display();
    let (before, rest) = text.split_once(begin).ok_or_else(|| format!("{shown} has no measured section"))?;
    let (_, after) = rest.split_once(end).ok_or_else(|| format!("the measured section of {shown} does not end"))?;
    Ok(format!("{before}{begin}\n{section}\n{end}{after}"))
}

/// Processor, cores and memory.
///
/// # Errors
/// If `/proc` cannot be read.
pub fn machine() -> Result<String> {
    let processors = fs::read_to_string("/proc/cpuinfo")?;
    let value = |line: &str| line.split_once(':').map(|(_, value)| value.trim().to_owned());
    let model = processors.lines().find(|line| line.starts_with("model name")).and_then(value);
    let cores = processors.lines().filter(|line| line.starts_with("processor")).count();
    let memory = fs::read_to_string("/proc/meminfo")?;
    let total = memory.lines().find(|line| line.starts_with("MemTotal")).and_then(value);
    let total: u64 = total.ok_or("/proc/meminfo has no total")?.trim_end_matches(" kB").parse()?;
    let (model, total) = (model.unwrap_or_else(|| std::env::consts::ARCH.to_owned()), total / 1024 / 1024);
    Ok(format!("{model}, {cores} cores, {total} GiB of memory"))
}

/// A table: the first column left-aligned, the others right-aligned.
pub struct Table {
    /// The first has the names of the columns, the second their units.
    rows: Vec<Vec<String>>,
}

impl Table {
    /// `header`: name and unit of each column.
    pub fn new<const N: usize>(header: [(&str, &str); N]) -> Self {
        let (names, units) = (header.map(|(name, _)| name.to_owned()), header.map(|(_, unit)| unit.to_owned()));
        Self { rows: vec![names.into(), units.into()] }
    }

    /// As a table of Markdown.
    pub fn markdown(&self) -> String {
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

    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
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
