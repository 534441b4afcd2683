//! Horizontal bar charts as SVG, with a light and a dark look.

use std::fmt::Write;

use crate::jobs::{CALLS, ECHO, NODE_EXECUTE, NODE_LIST_TOOLS};

/// The figures of a program's start.
#[derive(Clone, Copy)]
pub(crate) struct Bar {
    pub(crate) function: &'static str,
    /// Milliseconds.
    pub(crate) cpu: f64,
    /// MB.
    pub(crate) peak: f64,
}

const WIDTH: u32 = 720;
const MARGIN: u32 = 20;
/// Where the bars begin.
const LEFT: u32 = 170;
const LONGEST: f64 = 430.0;
const HEAD: u32 = 56;
const ROW: u32 = 28;
const THICKNESS: u32 = 18;

const STYLE: &str = "\
text{font:14px system-ui,-apple-system,'Segoe UI',sans-serif;fill:#1f2328}
.title{font-weight:600}
.page{fill:#ffffff;stroke:#d0d7de}
.runtime{fill:#8c959f}
.ours{fill:#1a7f64}
.node{fill:#bf6a1f}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}
.page{fill:#0d1117;stroke:#30363d}
.runtime{fill:#7d8590}
.ours{fill:#3fb893}
.node{fill:#e0914a}
}";

impl Bar {
    fn label(self) -> &'static str {
        match self.function {
            ECHO => "the runtime alone",
            NODE_EXECUTE => "execute on Node",
            NODE_LIST_TOOLS => "list-tools on Node",
            ours => ours,
        }
    }

    fn class(self) -> &'static str {
        match self.function {
            ECHO => "runtime",
            NODE_EXECUTE | NODE_LIST_TOOLS => "node",
            _ => "ours",
        }
    }
}

/// A chart of one figure of each bar: the runtime alone first, Node last.
pub(crate) fn chart(title: &str, unit: &str, bars: &[Bar], figure: impl Fn(&Bar) -> f64) -> String {
    let mut bars: Vec<Bar> = bars.iter().copied().filter(|bar| bar.function != CALLS).collect();
    bars.sort_by_key(|bar| ["runtime", "ours", "node"].iter().position(|class| *class == bar.class()));
    let most = bars.iter().map(&figure).fold(f64::MIN_POSITIVE, f64::max);
    let (mut rows, mut top, mut described) = (String::new(), HEAD, Vec::new());
    for bar in &bars {
        let value = figure(bar);
        let (label, class, length) = (bar.label(), bar.class(), (value / most * LONGEST).max(1.0));
        let (label_at, value_at, baseline) = (LEFT - 10, f64::from(LEFT) + length + 8.0, top + THICKNESS - 4);
        // Writing to a string cannot fail.
        let _ = write!(
            rows,
            r#"<text x="{label_at}" y="{baseline}" text-anchor="end">{label}</text>
<rect class="{class}" x="{LEFT}" y="{top}" width="{length:.1}" height="{THICKNESS}" rx="2"/>
<text x="{value_at:.1}" y="{baseline}">{value:.1} {unit}</text>
"#
        );
        described.push(format!("{label} {value:.1} {unit}"));
        top += ROW;
    }
    let height = top + MARGIN - (ROW - THICKNESS);
    let (inner_width, inner_height, described) = (WIDTH - 1, height - 1, described.join(", "));
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img">
<title>{title}: {described}</title>
<style>
{STYLE}
</style>
<rect class="page" x="0.5" y="0.5" width="{inner_width}" height="{inner_height}" rx="6"/>
<text class="title" x="{MARGIN}" y="32">{title}</text>
{rows}</svg>
"#
    )
}
