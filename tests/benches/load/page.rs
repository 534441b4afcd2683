//! The measured section of `docs/load.md`.

use std::{fs, path::Path};

use shared::models::Timestamp;
use tests::measured::{machine, replace_section};

use crate::{Report, Result};

const BEGIN: &str = "<!-- measured: make load REPORT=1 writes this section -->\n";
const END: &str = "<!-- measured: end -->\n";

/// Makes the section. Without `writes` the file stays as it is.
pub(crate) fn put(report: &Report, writes: bool) -> Result<()> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/load.md");
    let (machine, date) = (machine()?, Timestamp::now().day());
    let (table, sentences) = (report.table.markdown(), report.sentences.join("\n- "));
    let section = format!("Measured on {date}: {machine}.\n\n{table}\n- {sentences}\n");
    let text = replace_section(&page, BEGIN, END, &section)?;
    if writes {
        fs::write(&page, text)?;
        println!("docs/load.md has these figures");
    }
    Ok(())
}
