//! The page's files, as they stand in `assets`: written by hand, built by nothing, and part of the binary.

use std::{borrow::Cow, fmt::Write};

use ring::digest::{SHA256, digest};

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";
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

/// By the name in `/console/{file}`.
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
    ("notice.js", asset!(SCRIPT, "notice.js")),
    ("page.js", asset!(SCRIPT, "page.js")),
    ("pkce.js", asset!(SCRIPT, "pkce.js")),
    ("problems.js", asset!(SCRIPT, "problems.js")),
    ("session.js", asset!(SCRIPT, "session.js")),
    ("sse.js", asset!(SCRIPT, "sse.js")),
    ("store.js", asset!(SCRIPT, "store.js")),
    ("text.js", asset!(SCRIPT, "text.js")),
    ("thread_list.js", asset!(SCRIPT, "thread_list.js")),
    ("values.js", asset!(SCRIPT, "values.js")),
    ("widget.js", asset!(SCRIPT, "widget.js")),
];

/// The file of this name.
pub(crate) fn named(name: &str) -> Option<Asset> {
    let (_, Asset { kind, bytes }) = FILES.iter().find(|(known, _)| *known == name)?;
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
    fn every_file_is_served_and_the_page_asks_for_all_of_them_at_once() {
        let served: BTreeSet<String> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(served.len(), FILES.len(), "a name stands here twice");
        let mut on_disk = on_disk();
        assert!(on_disk.remove("index.html"));
        assert_eq!(served, on_disk);
        let page = String::from_utf8_lossy(&PAGE.bytes).into_owned();
        let named = page.split("\"console/").skip(1).filter_map(|rest| rest.split('"').next());
        assert_eq!(named.map(str::to_owned).collect::<BTreeSet<_>>(), served);
    }

    #[test]
    fn modules_import_modules_that_are_there() {
        for (name, asset) in FILES.iter().filter(|(_, asset)| asset.kind == SCRIPT) {
            let text = String::from_utf8_lossy(&asset.bytes).into_owned();
            for rest in text.split(" from '").skip(1) {
                let target = rest.split('\'').next().unwrap();
                let target = target.strip_prefix("./").unwrap_or_else(|| panic!("{name} imports {target}"));
                assert!(named(target).is_some(), "{name} imports {target}");
            }
        }
    }
}
