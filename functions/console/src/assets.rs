//! The page's files: written by hand in `assets`, linked and compressed while the function is built (`build.rs`). The sign-in's script
//! and style sheet stand in the page. Browsers get the modules of the shell as one script and those of each place as another
//! (`linked.rs`): a request each would cost a far-away person seconds.

use std::fmt::Write;

use ring::digest::{SHA256, digest};

use crate::policy::Coding;

pub(crate) const HTML: &str = "text/html; charset=utf-8";
pub(crate) const CSS: &str = "text/css; charset=utf-8";
pub(crate) const SCRIPT: &str = "text/javascript; charset=utf-8";
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";
pub(crate) const JSON: &str = "application/json";

/// A file by the name that browsers ask for, plain and compressed.
struct File {
    name: &'static str,
    plain: &'static [u8],
    gzip: &'static [u8],
    brotli: &'static [u8],
}

const FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

const PAGE: &str = "index.html";

/// Stands before the names of files in the page, and changes with any of them.
const VERSION: &str = env!("CONSOLE_VERSION");

/// The script and the style sheet in the page.
pub(crate) const IN_PAGE: [&str; 2] = [SCRIPT_IN_PAGE, SHEET_IN_PAGE];
const SCRIPT_IN_PAGE: &str = include_str!(concat!(env!("OUT_DIR"), "/sign_in.js"));
const SHEET_IN_PAGE: &str = include_str!(concat!(env!("OUT_DIR"), "/base.css"));

/// An answer's content: a file of these, or what is made for the deployment.
pub(crate) struct Asset {
    pub(crate) kind: &'static str,
    pub(crate) cached: Cached,
    content: Content,
}

/// For how long browsers may use a file without asking again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cached {
    /// Asked for again each time, which a 304 answers.
    Checked,
    /// Used at once, and asked for in the background once it is a minute old.
    Renewed,
    /// The address names the version, so the files of two versions never meet in one page.
    Forever,
}

impl Cached {
    pub(crate) fn directives(self) -> &'static str {
        match self {
            Self::Checked => "no-cache",
            Self::Renewed => "max-age=60, stale-while-revalidate=86400",
            Self::Forever => "public, max-age=31536000, immutable",
        }
    }
}

enum Content {
    Embedded(&'static File),
    Made(Vec<u8>),
}

pub(crate) fn page() -> Option<Asset> {
    embedded(PAGE, HTML)
}

/// The file that browsers get under `/console/{name}`, with or without the version before the name.
pub(crate) fn named(name: &str) -> Option<Asset> {
    let (cached, name) = match name.strip_prefix(VERSION).and_then(|name| name.strip_prefix('.')) {
        Some(name) => (Cached::Forever, name),
        None => (Cached::Checked, name),
    };
    let kind = match name.rsplit_once('.')?.1 {
        "css" => CSS,
        "js" => SCRIPT,
        "json" => JSON,
        "txt" => TEXT,
        _ => return None,
    };
    Some(Asset { cached, ..embedded(name, kind)? })
}

fn embedded(name: &str, kind: &'static str) -> Option<Asset> {
    let file = FILES.iter().find(|file| file.name == name)?;
    Some(Asset { kind, cached: Cached::Checked, content: Content::Embedded(file) })
}

impl Asset {
    pub(crate) fn made(kind: &'static str, bytes: Vec<u8>) -> Self {
        Self { kind, cached: Cached::Renewed, content: Content::Made(bytes) }
    }

    fn plain(&self) -> &[u8] {
        match &self.content {
            Content::Embedded(file) => file.plain,
            Content::Made(bytes) => bytes,
        }
    }

    /// A strong `ETag`: the same bytes have the same one, in every process and version; other bytes of a coding have another.
    pub(crate) fn tag(&self, coding: Option<Coding>) -> String {
        let digest = digest(&SHA256, self.plain());
        // Half of it tells files apart as well.
        let mut tag = digest.as_ref().iter().take(16).fold("\"".to_owned(), |mut tag, byte| {
            let _a_string_takes_everything = write!(tag, "{byte:02x}");
            tag
        });
        if let Some(coding) = coding {
            tag.push('-');
            tag.push_str(coding.name());
        }
        tag.push('"');
        tag
    }

    /// The best coding that the browser takes; a made one is too small for any.
    pub(crate) fn coding(&self, taken: &[Coding]) -> Option<Coding> {
        if matches!(self.content, Content::Made(_)) {
            return None;
        }
        [Coding::Brotli, Coding::Gzip].into_iter().find(|coding| taken.contains(coding))
    }

    pub(crate) fn bytes(self, coding: Option<Coding>) -> Vec<u8> {
        match (self.content, coding) {
            (Content::Made(bytes), _) => bytes,
            (Content::Embedded(file), None) => file.plain.to_vec(),
            (Content::Embedded(file), Some(Coding::Gzip)) => file.gzip.to_vec(),
            (Content::Embedded(file), Some(Coding::Brotli)) => file.brotli.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::{BTreeMap, BTreeSet},
        fs,
        path::Path,
    };

    use super::*;

    const ENTRY: &str = "app.js";
    const VENDORED: &str = "htm-preact.js";

    fn text(name: &str) -> &'static str {
        std::str::from_utf8(FILES.iter().find(|file| file.name == name).unwrap().plain).unwrap()
    }

    /// A script before it was minified.
    fn linked(name: &str) -> String {
        fs::read_to_string(Path::new(env!("OUT_DIR")).join(format!("{name}.linked"))).unwrap()
    }

    fn scripts() -> impl Iterator<Item = &'static File> {
        FILES
            .iter()
            .filter(|file| file.name != VENDORED && Path::new(file.name).extension().is_some_and(|kind| kind == "js"))
    }

    /// The modules' paths from `assets`.
    fn modules(folder: &Path, before: &str) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let found = entries.flat_map(|path| {
            let name = format!("{before}{}", path.file_name().unwrap().to_string_lossy());
            if path.is_dir() { modules(&path, &format!("{name}/")) } else { vec![name] }
        });
        found.filter(|name| Path::new(name).extension().is_some_and(|kind| kind == "js") && name != VENDORED).collect()
    }

    #[test]
    fn the_sign_in_needs_the_page_alone_and_the_console_few_more_files() {
        let version = format!("{VERSION}.");
        let page = text(PAGE);
        let asked: BTreeSet<&str> =
            page.split("\"console/").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert_eq!(asked, BTreeSet::from([&*format!("{version}htm-preact.licences.txt")]));
        for inline in
            [format!("<script type=\"module\">{SCRIPT_IN_PAGE}</script>"), format!("<style>{SHEET_IN_PAGE}</style>")]
        {
            assert!(page.contains(&inline), "{page}");
        }
        let sign_in = linked("sign_in.js");
        let fetched: BTreeSet<&str> =
            sign_in.split("'console/").skip(1).filter_map(|rest| rest.split('\'').next()).collect();
        let few = [ENTRY, VENDORED, "operator.css"].map(|name| format!("{version}{name}"));
        assert_eq!(fetched, few.iter().map(String::as_str).chain(["settings.json"]).collect());
        assert!(
            fetched
                .iter()
                .all(|name| *name == "settings.json" || named(name).is_some_and(|file| file.cached == Cached::Forever))
        );
        let imported = |name: &str| {
            let text = linked(name);
            let lines = text.lines().filter_map(|line| line.strip_prefix("import "));
            let named = lines.filter_map(|line| line.split("'./").nth(1)?.strip_suffix("';"));
            named.map(str::to_owned).collect::<BTreeSet<_>>()
        };
        for name in [ENTRY, "home-page.js"] {
            assert!(
                imported(name).iter().all(|name| fetched.contains(&**name)),
                "{name} waits for a file that the page does not fetch"
            );
        }
        assert!(linked(ENTRY).contains(&format!("'console/{version}console.css'")), "the chat has a sheet of its own");
        for part in [
            "chat/chat.js",
            "chat-chat.js",
            "index.html",
            "base.css",
            "sign_in.js",
            "shell/store.js",
            "0123456789abcdef.app.js",
        ] {
            assert!(named(part).is_none(), "{part} is no file of its own");
        }
    }

    #[test]
    fn the_page_is_small_for_a_slow_line() {
        for (coding, page_most, first_most, all_most) in
            [(Coding::Gzip, 4_000, 34 * 1024, 122 * 1024), (Coding::Brotli, 3_600, 30 * 1024, 111 * 1024)]
        {
            let size = |name: &str| {
                let file = FILES.iter().find(|file| file.name == name).unwrap();
                if coding == Coding::Gzip { file.gzip.len() } else { file.brotli.len() }
            };
            assert!(size(PAGE) <= page_most, "{}", size(PAGE));
            let sizes: BTreeMap<&str, usize> = scripts().map(|file| (file.name, size(file.name))).collect();
            let first = [PAGE, "operator.css", ENTRY, VENDORED].map(size);
            assert!(first.iter().sum::<usize>() < first_most, "{first:?} {sizes:?}");
            for (name, size) in &sizes {
                assert!(*name == ENTRY || *size <= 15 * 1024, "{name}: {size}");
            }
            let sum = sizes.values().sum::<usize>() + size(VENDORED);
            assert!(sum <= all_most, "{sum} {sizes:?}");
        }
    }

    #[test]
    fn every_module_is_in_the_shell_or_a_page_and_its_imports_exist() {
        for path in modules(&Path::new(env!("CARGO_MANIFEST_DIR")).join("assets"), "") {
            let part = format!("// {path}\n");
            let sign_in = linked("sign_in.js").contains(&part);
            let shell = linked(ENTRY).contains(&part);
            let pages = scripts().filter(|file| file.name != ENTRY && linked(file.name).contains(&part)).count();
            assert!(!(shell && pages > 0), "{path}: in the shell and in {pages} pages");
            assert!(sign_in || shell || pages > 0, "{path} is in no script");
        }
        for name in scripts().map(|file| file.name) {
            for line in linked(name).lines().filter(|line| line.starts_with("import ")) {
                let known = [VENDORED, ENTRY, "shell-forms.js"]
                    .iter()
                    .any(|file| line.ends_with(&format!(" from './{VERSION}.{file}';")));
                assert!(known, "{name}: {line}");
            }
            for asked in linked(name).split("import('./").skip(1).filter_map(|rest| rest.split('\'').next()) {
                assert!(named(asked).is_some_and(|file| file.cached == Cached::Forever), "{name} opens {asked}");
            }
        }
    }
}
