//! The page's files as they lie in `assets`, written by hand and part of the binary (`build.rs` lists them). Browsers get the modules
//! of the shell as one script and those of each page as another (`linked.rs`): a request each would cost a far-away person seconds.

use std::{borrow::Cow, collections::BTreeMap, fmt::Write, io::Write as _, sync::LazyLock};

use flate2::{Compression, write::GzEncoder};
use ring::digest::{SHA256, digest};

use crate::linked::{self, Linked};

pub(crate) const HTML: &str = "text/html; charset=utf-8";
pub(crate) const CSS: &str = "text/css; charset=utf-8";
pub(crate) const SCRIPT: &str = "text/javascript; charset=utf-8";
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";
pub(crate) const JSON: &str = "application/json";

/// A file and its content type.
pub(crate) struct Asset {
    pub(crate) kind: &'static str,
    pub(crate) bytes: Cow<'static, [u8]>,
}

/// Each file's path in `assets` and its bytes.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

const PAGE: &str = "index.html";
/// The shell, which the page begins with.
const ENTRY: &str = "app.js";
/// Served as it came.
const VENDORED: &str = "htm-preact.js";

/// The scripts by the name that browsers ask for: the shell, and each page that it imports when the page is opened.
static SCRIPTS: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    let shell = linked::linked(ENTRY, &[], &module);
    let mut scripts = BTreeMap::new();
    for page in &shell.opened {
        let Linked { text, .. } = linked::linked(page, &shell.modules, &module);
        scripts.insert(linked::served(page), text);
    }
    scripts.insert(ENTRY.to_owned(), shell.text);
    scripts
});

/// The text of a module of ours.
fn module(path: &str) -> Option<String> {
    if path.rsplit_once('.')?.1 != "js" || path == VENDORED {
        return None;
    }
    std::str::from_utf8(bytes(path)?).ok().map(str::to_owned)
}

fn bytes(path: &str) -> Option<&'static [u8]> {
    FILES.iter().find(|(known, _)| *known == path).map(|(_, bytes)| *bytes)
}

pub(crate) fn page() -> Option<Asset> {
    Some(Asset { kind: HTML, bytes: bytes(PAGE)?.into() })
}

/// The file that browsers get under `/console/{name}`.
pub(crate) fn named(name: &str) -> Option<Asset> {
    if let Some(script) = SCRIPTS.get(name) {
        return Some(Asset { kind: SCRIPT, bytes: script.as_bytes().into() });
    }
    let kind = match name.rsplit_once('.')?.1 {
        "css" => CSS,
        "json" => JSON,
        "txt" => TEXT,
        // The other modules are part of a script.
        "js" if name == VENDORED => SCRIPT,
        _ => return None,
    };
    Some(Asset { kind, bytes: bytes(name)?.into() })
}

impl Asset {
    /// A strong `ETag`: the same bytes have the same one, in every process and version.
    pub(crate) fn tag(&self) -> String {
        let digest = digest(&SHA256, &self.bytes);
        // Half of it tells files apart as well.
        let mut tag = digest.as_ref().iter().take(16).fold("\"".to_owned(), |mut tag, byte| {
            let _a_string_takes_everything = write!(tag, "{byte:02x}");
            tag
        });
        tag.push('"');
        tag
    }

    /// The file compressed with gzip.
    pub(crate) fn compressed(&self) -> std::io::Result<Vec<u8>> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&self.bytes)?;
        encoder.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn compressed(name: &str) -> usize {
        named(name).unwrap().compressed().unwrap().len()
    }

    #[test]
    fn the_page_asks_for_few_files_and_each_is_served() {
        let page = String::from_utf8_lossy(&page().unwrap().bytes).into_owned();
        let asked: BTreeSet<&str> =
            page.split("\"console/").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        let few = [ENTRY, VENDORED, "console.css", "operator.css", "htm-preact.licences.txt", "settings.json"];
        assert_eq!(asked, BTreeSet::from(few));
        assert!(asked.iter().all(|name| *name == "settings.json" || named(name).is_some()));
        for part in ["chat/chat.js", "chat-chat.js", "index.html", "shell/store.js"] {
            assert!(named(part).is_none(), "{part} is no file of its own");
        }
    }

    #[test]
    fn the_page_is_small_for_a_slow_line() {
        let sizes: BTreeMap<&str, usize> = SCRIPTS.keys().map(|name| (name.as_str(), compressed(name))).collect();
        let first = ["console.css", "operator.css", ENTRY, VENDORED].map(compressed);
        assert!(first.iter().sum::<usize>() < 48 * 1024, "{first:?} {sizes:?}");
        for (name, size) in &sizes {
            // The chat brings its drawings with it.
            let most = if *name == "chat-page.js" { 20 } else { 15 };
            assert!(*name == ENTRY || *size <= most * 1024, "{name}: {size}");
        }
        assert!(sizes.values().sum::<usize>() + compressed(VENDORED) <= 104 * 1024, "{sizes:?}");
    }

    #[test]
    fn every_module_is_in_the_shell_or_in_a_page_and_imports_what_there_is() {
        for (path, _) in FILES.iter().filter(|(path, _)| module(path).is_some()) {
            let part = format!("// {path}\n");
            let shell = SCRIPTS[ENTRY].contains(&part);
            let pages = SCRIPTS.iter().filter(|(name, text)| *name != ENTRY && text.contains(&part)).count();
            assert!(shell != (pages > 0), "{path}: in the shell {shell}, in {pages} pages");
        }
        for (name, text) in SCRIPTS.iter() {
            for line in text.lines().filter(|line| line.starts_with("import ")) {
                let known = [VENDORED, ENTRY].iter().any(|file| line.ends_with(&format!(" from './{file}';")));
                assert!(known, "{name}: {line}");
            }
            for asked in text.split("import('./").skip(1).filter_map(|rest| rest.split('\'').next()) {
                assert!(SCRIPTS.contains_key(asked), "{name} opens {asked}");
            }
        }
    }
}
