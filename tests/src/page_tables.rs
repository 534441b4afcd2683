//! The tables of a page of `docs`.

use std::{collections::BTreeMap, path::Path};

/// A page, by its path in the repository.
pub fn page(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The rows of the table below a heading, by their first cell.
pub fn table(page: &str, heading: &str) -> BTreeMap<String, Vec<String>> {
    let (_, section) = page.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no {heading}"));
    let rows = section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = |line: &str| line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    rows.skip(2).map(cells).map(|mut row| (row.remove(0), row)).collect()
}

pub fn number(cell: &str) -> f64 {
    cell.replace(',', "").parse().unwrap_or_else(|_| panic!("{cell} is not a number"))
}
