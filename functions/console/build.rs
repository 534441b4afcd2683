//! Links the modules in `assets` and compresses every file once, for `src/assets.rs`, which embeds them.

use std::{
    collections::BTreeMap,
    env,
    fmt::Write as _,
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};

#[path = "src/linked.rs"]
mod linked;

/// The shell, which the page begins with.
const ENTRY: &str = "app.js";
/// Of what pages with forms share, a script of its own.
const SHARED: &str = "shell/forms.js";
/// Served as it came.
const VENDORED: &str = "htm-preact.js";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=assets");
    println!("cargo::rerun-if-changed=src/linked.rs");
    let mut files = BTreeMap::new();
    add(&PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("assets"), "", &mut files)?;
    let is_module = |path: &str| path != VENDORED && Path::new(path).extension().is_some_and(|kind| kind == "js");
    let module = |path: &str| {
        let bytes = files.get(path).filter(|_| is_module(path))?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    };
    let mut served: BTreeMap<String, Vec<u8>> =
        linked::scripts(ENTRY, SHARED, &module).into_iter().map(|(name, text)| (name, text.into_bytes())).collect();
    served.extend(files.iter().filter(|(path, _)| !is_module(path)).map(|(path, bytes)| (path.clone(), bytes.clone())));
    let folder = PathBuf::from(variable("OUT_DIR")?);
    let mut list = String::from("&[\n");
    for (name, bytes) in &served {
        let embed = |kind: &str, bytes: &[u8]| {
            let path = folder.join(format!("{}{kind}", name.replace('/', "-")));
            fs::write(&path, bytes).map(|()| format!("include_bytes!({:?})", path.display().to_string()))
        };
        let (plain, gzip, brotli) = (embed("", bytes)?, embed(".gz", &gzip(bytes)?)?, embed(".br", &brotli(bytes)?)?);
        let _a_string_takes_everything =
            writeln!(list, "    File {{ name: {name:?}, plain: {plain}, gzip: {gzip}, brotli: {brotli} }},");
    }
    list.push_str("]\n");
    fs::write(folder.join("files.rs"), list)
}

fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn brotli(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut compressed = Vec::new();
    let best = brotli::enc::BrotliEncoderParams { quality: 11, size_hint: bytes.len(), ..Default::default() };
    brotli::BrotliCompress(&mut &*bytes, &mut compressed, &best)?;
    Ok(compressed)
}

/// Adds the files of a folder and of those in it, each under its path from `assets`.
fn add(folder: &Path, before: &str, files: &mut BTreeMap<String, Vec<u8>>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{before}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            add(&entry.path(), &format!("{name}/"), files)?;
        } else {
            files.insert(name, fs::read(entry.path())?);
        }
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "cargo tells a build script its folders in the environment")]
fn variable(name: &str) -> io::Result<String> {
    env::var(name).map_err(io::Error::other)
}
