//! The measured curves as a table, and the page that has it.

use std::{fs, path::Path, process::Command, time::Duration};

use crate::{
    chart,
    curve::{Cost, Curve, Expected, Exponents, figure},
    runs::LOOP,
};

const BEGIN: &str = "<!-- measured: written by make growth -->";
const END: &str = "<!-- end of the measured part -->";

/// Markdown. Figures stand in the order of the sizes.
pub(crate) fn table(curves: &[Curve]) -> String {
    let mut lines = Vec::new();
    let mut grows = "";
    for curve in curves {
        if curve.grows != grows {
            grows = curve.grows;
            let sizes = joined(curve, |size, _| thousands(size));
            lines.push(format!("\n### {grows}: {sizes}\n"));
            lines.push(
                "| operation | requests | KB | units | CPU | exponents: requests, bytes, CPU | verdict |".to_owned(),
            );
            lines.push("|---|---|---|---|---|---|---|".to_owned());
        }
        let Exponents { requests, bytes, cpu, .. } = curve.exponents();
        let smallest = curve.points.first().map_or(Duration::ZERO, |(_, cost)| cost.cpu);
        let verdict = match (curve.mistake(), curve.expected) {
            (Some(_), Expected::Flat) => "grows faster than expected".to_owned(),
            (Some(_), Expected::Linear(reason)) => format!("grows faster than expected: {reason}"),
            (None, Expected::Flat) => "flat".to_owned(),
            (None, Expected::Linear(reason)) => format!("at most 1: {reason}"),
        };
        lines.push(format!(
            "| {} | {} | {} | {} | {} | {}, {}, {} | {verdict} |",
            curve.operation,
            joined(curve, |_, cost| thousands(cost.requests)),
            joined(curve, |_, cost| tenths(figure(cost.bytes) / 1e3)),
            joined(curve, |_, cost| tenths(cost.units)),
            joined(curve, |_, cost| format!("{:.1}", ratio(cost.cpu, smallest))),
            exponent(requests),
            exponent(bytes),
            exponent(cpu),
        ));
    }
    lines.join("\n")
}

/// The share of one item in the loops that were measured.
pub(crate) fn of_items(curves: &[Curve]) -> String {
    let mut lines = vec![
        "| run | items | own CPU time an item | requests to AWS an item |".to_owned(),
        "|---|---|---|---|".to_owned(),
    ];
    for curve in curves.iter().filter(|curve| curve.grows == LOOP) {
        for (size, cost) in &curve.points {
            let each = |total: f64| total / figure(*size);
            let kinds = cost.kinds.iter().map(|(kind, count)| (kind, each(figure(*count))));
            let kinds: Vec<String> =
                kinds.filter(|(_, each)| *each >= 0.5).map(|(kind, each)| format!("{each:.2} `{kind}`")).collect();
            lines.push(format!(
                "| {} | {} | {:.2} ms | {} |",
                curve.operation,
                thousands(*size),
                each(cost.cpu.as_secs_f64() * 1e3),
                kinds.join(", "),
            ));
        }
    }
    if lines.len() > 2 { lines.join("\n") } else { String::new() }
}

/// Replaces the measured part of a page, and writes the chart into the folder of the page's name.
pub(crate) fn write(page: &Path, curves: &[Curve]) {
    let name = page.file_stem().and_then(|name| name.to_str()).expect("the page has a name");
    let folder = page.with_extension("");
    fs::create_dir_all(&folder).expect("the chart's folder");
    fs::write(folder.join("requests.svg"), chart::of_requests(curves)).expect("the chart can be written");
    let text = fs::read_to_string(page).unwrap_or_else(|_| format!("# Growth\n\n{BEGIN}\n{END}\n"));
    let (before, rest) = text.split_once(BEGIN).expect("the page has the mark of its measured part");
    let (_, after) = rest.split_once(END).expect("the page has the mark of the end of its measured part");
    let items = of_items(curves);
    let measured = format!(
        "{}\n\n![Requests by size]({name}/requests.svg)\n{}\n\n### One item of a loop\n\n{items}\n",
        machine(),
        table(curves)
    );
    fs::write(page, format!("{before}{BEGIN}\n\n{measured}\n{END}{after}")).expect("the page can be written");
}

fn machine() -> String {
    let today = Command::new("date").args(["-u", "+%Y-%m-%d"]).output().map(|output| output.stdout).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let build = if cfg!(debug_assertions) { "without optimization" } else { "with optimization" };
    format!(
        "Measured on {}, on {cores} cores of {}, in a build {build}.",
        String::from_utf8_lossy(&today).trim(),
        std::env::consts::ARCH
    )
}

fn joined(curve: &Curve, of: impl Fn(usize, &Cost) -> String) -> String {
    curve.points.iter().map(|(size, cost)| of(*size, cost)).collect::<Vec<_>>().join(" · ")
}

pub(crate) fn thousands(count: usize) -> String {
    if count < 1_000 { count.to_string() } else { format!("{},{:03}", count / 1_000, count % 1_000) }
}

fn tenths(amount: f64) -> String {
    if amount < 100.0 { format!("{amount:.1}") } else { format!("{amount:.0}") }
}

/// Without a sign where it is zero.
fn exponent(of: f64) -> String {
    format!("{:.2}", if of.abs() < 0.005 { 0.0 } else { of })
}

fn ratio(one: Duration, other: Duration) -> f64 {
    if other.is_zero() { 0.0 } else { one.as_secs_f64() / other.as_secs_f64() }
}
