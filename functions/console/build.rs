//! Links and minifies the modules in `assets`, puts the page's own scripts and style sheet into it, and compresses every file once, for
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

#[path = "src/linked.rs"]
mod linked;
#[path = "src/templates.rs"]
mod templates;

use linked::{Kind, Script, VERSION};

/// The page, and the style sheet that stands in it.
const PAGE: &str = "index.html";
const SHEET: &str = "base.css";

/// The library, and in it the reader of markup, which no view needs once the markup has become calls: the mark lets the minifier drop it.
const LIBRARY: &str = "htm-preact.js";
const MARKUP: &str = "fe=function(e)";

const fn in_page<'a>(name: &'a str, entries: &'a [&'a str]) -> Script<'a> {
    Script { name, entries, kind: Kind::InPage, shares: &[] }
}

const fn file<'a>(name: &'a str, entries: &'a [&'a str], shares: &'a [&'a str]) -> Script<'a> {
    Script { name, entries, kind: Kind::File, shares }
}

/// Parts of several places, and those of places with forms.
const PARTS: &str = "parts.js";
const FORMS: &str = "forms.js";

/// All scripts, each after those from which it takes modules.
const SCRIPTS: &[Script<'_>] = &[
    in_page("sign_in.js", &["sign_in.js"]),
    in_page("app.js", &["app.js", "home/page.js"]),
    file(PARTS, &["shell/parts.js"], &[]),
    file(FORMS, &["shell/forms.js"], &[PARTS]),
    file(
        "agents.js",
        &["agents/page.js", "numbers/page.js", "donotcall/page.js", "hooks/page.js", "keys/page.js"],
        &[PARTS, FORMS],
    ),
    file("automations.js", &["automations/page.js"], &[PARTS, FORMS]),
    file("calls.js", &["calls/page.js", "executions/page.js", "approvals/page.js"], &[PARTS]),
    file("chat.js", &["chat/page.js"], &[PARTS]),
    file("editor.js", &["automations/definition_editor.js"], &[PARTS, FORMS, "automations.js"]),
    file("members.js", &["members/page.js", "knowledge/page.js", "services/page.js"], &[PARTS, FORMS]),
    file("runs.js", &["runs/page.js", "events/page.js"], &[PARTS]),
    file("tools.js", &["tools/page.js"], &[PARTS, FORMS]),
    file("usage.js", &["usage/page.js", "audit/page.js", "erasure/page.js"], &[PARTS, FORMS]),
];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=assets");
    println!("cargo::rerun-if-changed=src/linked.rs");
    println!("cargo::rerun-if-changed=src/templates.rs");
    let mut files = BTreeMap::new();
    add(&PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("assets"), "", &mut files)?;
    let others: Vec<String> =
        files.keys().filter(|path| !is(path, "js") && ![PAGE, SHEET].contains(&path.as_str())).cloned().collect();
    for (path, text) in files.iter_mut().filter(|(path, _)| is(path, "js")) {
        *text = templates::compiled(text).map_err(|problem| io::Error::other(format!("{path}: {problem}")))?;
    }
    let library = files.get_mut(LIBRARY).filter(|text| text.contains(MARKUP));
    let library = library.ok_or_else(|| io::Error::other(format!("{LIBRARY} is another version")))?;
    *library = library.replace(MARKUP, &MARKUP.replace('=', "=/* @__PURE__ */"));
    let module = |path: &str| files.get(path).map(|text| linked::versioned(text, others.iter().map(String::as_str)));
    let text = |path: &str| module(path).ok_or_else(|| io::Error::other(format!("{path} is not there")));
    let folder = PathBuf::from(variable("OUT_DIR")?);
    let mut page = text(PAGE)?;
    let mut served = BTreeMap::new();
    let mut in_page = Vec::new();
    for (script, linked) in SCRIPTS.iter().zip(linked::linked(SCRIPTS, &module)?) {
        // Tests look at the modules in it.
        fs::write(folder.join(format!("{}.linked", script.name)), &linked)?;
        let code = minified(script.name, &linked)?;
        if script.kind == Kind::InPage {
            in_page.push((script.name, code));
        } else {
            served.insert(script.name.to_owned(), code);
        }
    }
    // The first one is run as soon as the browser has it, which only a classic script is.
    if let Some((_, first)) = in_page.first_mut() {
        *first = format!("(()=>{{\"use strict\";{first}}})()");
    }
    in_page.push((SHEET, linked::sheet(&text(SHEET)?)));
    for name in &others {
        let text = text(name)?;
        served.insert(name.clone(), if is(name, "css") { linked::sheet(&text) } else { text });
    }
    let mut hasher = DefaultHasher::new();
    (&page, &in_page, &served).hash(&mut hasher);
    let version = format!("{:016x}", hasher.finish());
    println!("cargo::rustc-env=CONSOLE_VERSION={version}");
    for text in served.values_mut().chain(in_page.iter_mut().map(|(_, text)| text)).chain([&mut page]) {
        *text = text.replace(VERSION, &version);
    }
    for (name, text) in &in_page {
        fs::write(folder.join(name), text)?;
        let place = format!("/* {name} */");
        if !page.contains(&place) || text.contains("</") && text.contains("</script") {
            return Err(io::Error::other(format!("{name} cannot stand in the page")));
        }
        page = page.replace(&place, text);
    }
    served.insert(PAGE.to_owned(), page);
    let mut list = String::from("&[\n");
    for (name, text) in &served {
        let bytes = text.as_bytes();
        let embed = |kind: &str, bytes: &[u8]| {
            let path = folder.join(format!("{name}{kind}"));
            fs::write(&path, bytes).map(|()| format!("include_bytes!({:?})", path.display().to_string()))
        };
        let (plain, gzip, brotli) = (embed("", bytes)?, embed(".gz", &gzip(bytes)?)?, embed(".br", &brotli(bytes)?)?);
        let _a_string_takes_everything =
            writeln!(list, "    File {{ name: {name:?}, plain: {plain}, gzip: {gzip}, brotli: {brotli} }},");
    }
    list.push_str("]\n");
    fs::write(folder.join("files.rs"), list)
}

/// The script with short names and without what it does not need.
fn minified(name: &str, text: &str) -> io::Result<String> {
    let allocator = Allocator::default();
    let mut program = linked::parsed(name, &allocator, text)?;
    let minified = Minifier::new(MinifierOptions::default()).minify(&allocator, &mut program);
    Ok(Codegen::new()
        .with_options(CodegenOptions::minify())
        .with_scoping(minified.scoping)
        .with_private_member_mappings(minified.class_private_mappings)
        .build(&program)
        .code)
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
