//! The files of `infra/catalogue`, in the form that the function `operator` takes.

use std::{fs, io};

use serde_json::{Map, Value};

/// The files' JSON by file name.
///
/// # Errors
/// If a file cannot be read or is not JSON; the error names it.
pub fn files() -> io::Result<Map<String, Value>> {
    let mut files = Map::new();
    for entry in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../catalogue"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let content = serde_json::from_str(&fs::read_to_string(&path)?);
            let content = content.map_err(|error| io::Error::other(format!("{name} is no JSON: {error}")))?;
            files.insert(name, content);
        }
    }
    Ok(files)
}
