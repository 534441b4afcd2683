//! Links and minifies the modules in `assets`, puts the sign-in's script and style sheet into the page, and compresses every file once, for
//! `src/assets.rs`, which embeds them.

use std::{
    collections::BTreeMap,
    env,
    fmt::Write as _,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};
use oxc_allocator::Allocator;
use oxc_codegen::{Codegen, CodegenOptions};
use oxc_minifier::{Minifier, MinifierOptions};
use oxc_parser::Parser;
use oxc_span::SourceType;

#[path = "src/linked.rs"]
mod linked;

/// The page, and the script and the style sheet that stand in it.
const PAGE: &str = "index.html";
const INLINE: [(&str, &str); 2] =
    [("sign_in.js", "<script type=\"module\"></script>"), ("base.css", "<style></style>")];
/// The shell of a signed-in person's console.
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
    let is_module = |path: &str| path != VENDORED && is(path, "js");
    let module = |path: &str| files.get(path).filter(|_| is_module(path)).cloned();
    let mut inline =
        [linked::sign_in(INLINE[0].0, &module), linked::sheet(files.get(INLINE[1].0).map_or("", String::as_str))];
    let mut served = linked::scripts(ENTRY, SHARED, &module);
    for (path, text) in files.iter().filter(|(path, _)| !is_module(path) && path.as_str() != INLINE[1].0) {
        served.insert(path.clone(), if is(path, "css") { linked::sheet(text) } else { text.clone() });
    }
    let mut hasher = DefaultHasher::new();
    (&inline, &served).hash(&mut hasher);
    let version = format!("{:016x}", hasher.finish());
    println!("cargo::rustc-env=CONSOLE_VERSION={version}");
    let names: Vec<String> = served.keys().filter(|name| *name != PAGE).cloned().collect();
    for text in inline.iter_mut().chain(served.values_mut()) {
        *text = linked::versioned(text, &names, &version);
    }
    let folder = PathBuf::from(variable("OUT_DIR")?);
    let scripts = served.iter_mut().filter(|(name, _)| is(name, "js") && *name != VENDORED);
    for (name, text) in scripts.map(|(name, text)| (name.as_str(), text)).chain([(INLINE[0].0, &mut inline[0])]) {
        // Tests look at the modules in it.
        fs::write(folder.join(format!("{name}.linked")), &text)?;
        *text = minified(name, text)?;
    }
    for ((name, place), text) in INLINE.iter().zip(&inline) {
        fs::write(folder.join(name), text)?;
        if let Some(page) = served.get_mut(PAGE) {
            let (before, after) = place.split_at(place.find("></").unwrap_or_default() + 1);
            *page = page.replace(place, &format!("{before}{text}{after}"));
        }
    }
    let mut list = String::from("&[\n");
    for (name, text) in &served {
        let bytes = text.as_bytes();
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

fn minified(name: &str, text: &str) -> io::Result<String> {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, text, SourceType::mjs()).parse();
    if let Some(problem) = parsed.diagnostics.first() {
        return Err(io::Error::other(format!("{name}: {problem}")));
    }
    let mut program = parsed.program;
    let names = Minifier::new(MinifierOptions::default()).minify(&allocator, &mut program).scoping;
    Ok(Codegen::new().with_options(CodegenOptions::minify()).with_scoping(names).build(&program).code)
}

fn is(path: &str, kind: &str) -> bool {
    Path::new(path).extension().is_some_and(|found| found == kind)
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
fn add(folder: &Path, before: &str, files: &mut BTreeMap<String, String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{before}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            add(&entry.path(), &format!("{name}/"), files)?;
        } else {
            files.insert(name, fs::read_to_string(entry.path())?);
        }
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "cargo tells a build script its folders in the environment")]
fn variable(name: &str) -> io::Result<String> {
    env::var(name).map_err(io::Error::other)
}
