//! The page's files as they stand in `assets`, written by hand and part of the binary. Browsers get the modules as one (`linked.rs`):
//! a request each would cost a far-away person seconds.

use std::{borrow::Cow, fmt::Write, io::Write as _, sync::LazyLock};

use flate2::{Compression, write::GzEncoder};
use ring::digest::{SHA256, digest};

use crate::linked;

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

macro_rules! asset {
    ($kind:expr, $file:literal) => {
        Asset { kind: $kind, bytes: Cow::Borrowed(include_bytes!(concat!("../assets/", $file))) }
    };
}

pub(crate) const PAGE: Asset = asset!(HTML, "index.html");

/// The module that the page begins with, and with it all others but this one, which is served as it came.
const ENTRY: &str = "app.js";
const VENDORED: &str = "htm-preact.js";

const FILES: &[(&str, Asset)] = &[
    ("ag_ui.js", asset!(SCRIPT, "ag_ui.js")),
    ("api.js", asset!(SCRIPT, "api.js")),
    ("app.js", asset!(SCRIPT, "app.js")),
    ("chart.js", asset!(SCRIPT, "chart.js")),
    ("chart_shapes.js", asset!(SCRIPT, "chart_shapes.js")),
    ("chat.js", asset!(SCRIPT, "chat.js")),
    ("chat_view.js", asset!(SCRIPT, "chat_view.js")),
    ("composer.js", asset!(SCRIPT, "composer.js")),
    ("consent.js", asset!(SCRIPT, "consent.js")),
    ("console.css", asset!(CSS, "console.css")),
    ("conversation.js", asset!(SCRIPT, "conversation.js")),
    ("htm-preact.js", asset!(SCRIPT, "htm-preact.js")),
    ("htm-preact.licences.txt", asset!(TEXT, "htm-preact.licences.txt")),
    ("identity.js", asset!(SCRIPT, "identity.js")),
    ("items.js", asset!(SCRIPT, "items.js")),
    ("map.js", asset!(SCRIPT, "map.js")),
    ("markdown.js", asset!(SCRIPT, "markdown.js")),
    ("notice.js", asset!(SCRIPT, "notice.js")),
    ("page.js", asset!(SCRIPT, "page.js")),
    ("pkce.js", asset!(SCRIPT, "pkce.js")),
    ("problems.js", asset!(SCRIPT, "problems.js")),
    ("receipt.js", asset!(SCRIPT, "receipt.js")),
    ("session.js", asset!(SCRIPT, "session.js")),
    ("sse.js", asset!(SCRIPT, "sse.js")),
    ("store.js", asset!(SCRIPT, "store.js")),
    ("text.js", asset!(SCRIPT, "text.js")),
    ("thread_list.js", asset!(SCRIPT, "thread_list.js")),
    ("unanswered.js", asset!(SCRIPT, "unanswered.js")),
    ("values.js", asset!(SCRIPT, "values.js")),
    ("widget.js", asset!(SCRIPT, "widget.js")),
];

/// All modules but the vendored one as one.
static SCRIPTS: LazyLock<String> = LazyLock::new(|| {
    let module = |name: &str| {
        let (_, asset) =
            FILES.iter().find(|(known, asset)| *known == name && asset.kind == SCRIPT && name != VENDORED)?;
        std::str::from_utf8(&asset.bytes).ok().map(str::to_owned)
    };
    linked::linked(ENTRY, &module)
});

/// The file that browsers get under `/console/{name}`.
pub(crate) fn named(name: &str) -> Option<Asset> {
    if name == ENTRY {
        return Some(Asset { kind: SCRIPT, bytes: SCRIPTS.as_bytes().into() });
    }
    let (_, Asset { kind, bytes }) = FILES.iter().find(|(known, asset)| {
        // The other modules are part of the first.
        *known == name && (asset.kind != SCRIPT || name == VENDORED)
    })?;
    Some(Asset { kind, bytes: bytes.clone() })
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
    use std::{collections::BTreeSet, path::Path};

    use super::*;

    /// The page, and what lies beside it in `assets`.
    fn on_disk() -> BTreeSet<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets");
        let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
        let files = entries.filter(|entry| entry.path().is_file());
        files.map(|entry| entry.file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn every_file_is_part_of_the_binary_and_the_page_asks_for_few() {
        let known: BTreeSet<String> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(known.len(), FILES.len(), "a name stands here twice");
        let mut on_disk = on_disk();
        assert!(on_disk.remove("index.html"));
        assert_eq!(known, on_disk);
        let page = String::from_utf8_lossy(&PAGE.bytes).into_owned();
        let asked: BTreeSet<&str> =
            page.split("\"console/").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert_eq!(asked, BTreeSet::from([ENTRY, VENDORED, "console.css", "htm-preact.licences.txt", "settings.json"]));
        assert!(asked.iter().all(|name| *name == "settings.json" || named(name).is_some()));
        assert!(named("chat.js").is_none(), "it is part of {ENTRY}");
    }

    #[test]
    fn the_page_is_small_for_a_slow_line() {
        let files = ["console.css", ENTRY, VENDORED].map(|name| named(name).unwrap().compressed().unwrap().len());
        assert!(files.iter().sum::<usize>() < 48 * 1024, "{files:?}");
    }

    #[test]
    fn the_modules_as_one_have_every_module_once_and_import_the_vendored_one_alone() {
        for (name, asset) in FILES.iter().filter(|(name, asset)| asset.kind == SCRIPT && *name != VENDORED) {
            let count = SCRIPTS.matches(&format!("// {name}\n")).count();
            assert_eq!(count, 1, "{name} is used, and once");
            let text = String::from_utf8_lossy(&asset.bytes).into_owned();
            for rest in text.split(" from './").skip(1) {
                let target = rest.split('\'').next().unwrap();
                assert!(FILES.iter().any(|(known, _)| *known == target), "{name} imports {target}");
            }
        }
        let imports: Vec<&str> = SCRIPTS.lines().filter(|line| line.starts_with("import ")).collect();
        assert_eq!(imports, [format!("import * as $htm_preact from './{VENDORED}';")]);
        assert!(!SCRIPTS.lines().any(|line| line.starts_with("export ")));
    }
}
