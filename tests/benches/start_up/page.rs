//! The measured section of `docs/performance.md`, and its pictures.

use std::{fs, path::Path, process::Command};

use shared::models::Timestamp;
use tests::measured::{machine, replace_section};

use crate::{Measured, Result, chart::chart};

const BEGIN: &str = "<!-- measured: make bench REPORT=1 writes this section -->\n";
const END: &str = "<!-- measured: end -->\n";

pub(crate) struct Page {
    pub(crate) starts: Measured,
    pub(crate) stays: Measured,
    /// Sentences.
    pub(crate) over: Vec<String>,
    /// Node's version; `None` if nothing was compared with it.
    pub(crate) node: Option<String>,
}

impl Page {
    /// Makes the section and the pictures. Without `writes` the files stay as they are.
    pub(crate) fn put(&self, writes: bool) -> Result<()> {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        let page = docs.join("performance.md");
        let text = replace_section(&page, BEGIN, END, &self.section()?)?;
        let bars = &self.starts.bars;
        let pictures = [
            (
                "start.svg",
                chart("CPU time from the start of the process to its first answer", "ms", bars, |bar| bar.cpu),
            ),
            ("memory.svg", chart("Peak memory up to the first answer", "MB", bars, |bar| bar.peak)),
        ];
        if writes {
            fs::write(&page, text)?;
            let directory = docs.join("performance");
            fs::create_dir_all(&directory)?;
            for (name, picture) in pictures {
                fs::write(directory.join(name), picture)?;
            }
            println!("docs/performance.md has these figures");
        }
        Ok(())
    }

    fn section(&self) -> Result<String> {
        let Self { starts, stays, over, node } = self;
        let (machine, date) = (machine()?, Timestamp::now().day());
        let rustc = Command::new("rustc").arg("--version").output()?;
        let rustc = String::from_utf8_lossy(&rustc.stdout).trim().to_owned();
        let node = node.as_ref().map_or_else(|| "no Node".to_owned(), |version| format!("Node {version}"));
        let list = |lines: &[String]| format!("- {}\n", lines.join("\n- "));
        let Measured { title: starts_title, table: starts_table, compared: starts_compared, .. } = starts;
        let Measured { title: stays_title, table: stays_table, compared: stays_compared, .. } = stays;
        Ok(format!(
            "Measured on {date}: {machine}; {rustc}; {node}.\n\n\
             ### Start\n\n\
             ![CPU time up to the first answer, as a bar chart of the table below](performance/start.svg)\n\n\
             ![Peak memory up to the first answer, as a bar chart of the table below](performance/memory.svg)\n\n\
             {starts_title}.\n\n{}\n{}\n\
             ### Warm requests\n\n\
             {stays_title}.\n\n{}\n{}\n\
             ### Budgets\n\n{}",
            starts_table.markdown(),
            list(starts_compared),
            stays_table.markdown(),
            list(stays_compared),
            list(over),
        ))
    }
}
