//! Lists the files in `assets` for `src/assets.rs`, which embeds them.

use std::{
    env,
    fmt::Write,
    fs, io,
    path::{Path, PathBuf},
};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=assets");
    let folder = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("assets");
    let mut files = Vec::new();
    add(&folder, "", &mut files)?;
    files.sort();
    let mut list = String::from("&[\n");
    for name in files {
        let path = folder.join(&name);
        let _a_string_takes_everything =
            writeln!(list, "    ({name:?}, include_bytes!({:?})),", path.display().to_string());
    }
    list.push_str("]\n");
    fs::write(Path::new(&variable("OUT_DIR")?).join("files.rs"), list)
}

/// Adds the files of a folder and of those in it, each under its path from `assets`.
fn add(folder: &Path, before: &str, files: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{before}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            add(&entry.path(), &format!("{name}/"), files)?;
        } else {
            files.push(name);
        }
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "cargo tells a build script its folders in the environment")]
fn variable(name: &str) -> io::Result<String> {
    env::var(name).map_err(io::Error::other)
}
