//! The page's files: written by hand in `assets`, linked and compressed while the function is built (`build.rs`). The sign-in, the
//! shell and Home stand in the page. Browsers get the modules of other places as few scripts (`linked.rs`): a request each would cost a
//! far-away person seconds.

use std::fmt::Write;

use ring::digest::{SHA256, digest};

use crate::policy::{Coding, InPage};

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

/// The scripts and the style sheet in the page itself.
pub(crate) const IN_PAGE: InPage = InPage {
    scripts: [include_str!(concat!(env!("OUT_DIR"), "/sign_in.js")), include_str!(concat!(env!("OUT_DIR"), "/app.js"))],
    sheet: include_str!(concat!(env!("OUT_DIR"), "/base.css")),
};

/// An answer's content: a file of these, or one made for the deployment.
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
            tag.push_str(coding.as_str());
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

    const IN_PAGE_NAMES: [&str; 2] = ["sign_in.js", "app.js"];

    fn text(name: &str) -> &'static str {
        std::str::from_utf8(FILES.iter().find(|file| file.name == name).unwrap().plain).unwrap()
    }

    /// A script before it was minified.
    fn linked(name: &str) -> String {
        fs::read_to_string(Path::new(env!("OUT_DIR")).join(format!("{name}.linked"))).unwrap()
    }

    fn is_script(name: &str) -> bool {
        Path::new(name).extension().is_some_and(|kind| kind == "js")
    }

    fn scripts() -> impl Iterator<Item = &'static File> {
        FILES.iter().filter(|file| is_script(file.name))
    }

    /// The modules' paths from `assets`.
    fn modules(folder: &Path, before: &str) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let found = entries.flat_map(|path| {
            let name = format!("{before}{}", path.file_name().unwrap().to_string_lossy());
            if path.is_dir() { modules(&path, &format!("{name}/")) } else { vec![name] }
        });
        found.filter(|name| is_script(name)).collect()
    }

    /// The names of files, without their version, behind each `before`.
    fn named_in(text: &str, before: &str) -> BTreeSet<String> {
        let version = format!("{VERSION}.");
        let names = text.split(before).skip(1).filter_map(|rest| rest.split(['"', '\'', '`']).next());
        names.map(|name| name.strip_prefix(&version).unwrap_or(name).to_owned()).collect()
    }

    #[test]
    fn the_page_has_the_sign_in_the_shell_and_home_and_names_its_files_with_their_version() {
        let page = text(PAGE);
        let [first, second] = IN_PAGE.scripts;
        for inline in [
            format!("<script>{first}</script>"),
            format!("<script type=\"module\">{second}</script>"),
            format!("<style>{}</style>", IN_PAGE.sheet),
        ] {
            assert!(page.contains(&inline), "{page}");
        }
        for part in ["session/begin.js", "shell/page.js", "home/page.js", "htm-preact.js"] {
            assert!(IN_PAGE_NAMES.iter().any(|name| linked(name).contains(&format!("// {part}\n"))), "{part}");
        }
        let named_there = named_in(page, "console/");
        let settings = "settings.json";
        let others = FILES.iter().map(|file| file.name).filter(|name| ![PAGE, "forms.json"].contains(name));
        assert_eq!(named_there, others.chain([settings]).map(str::to_owned).collect());
        for name in named_there.iter().filter(|name| *name != settings) {
            let address = format!("{VERSION}.{name}");
            assert!(
                page.contains(&address) && named(&address).is_some_and(|file| file.cached == Cached::Forever),
                "{name}"
            );
        }
        for part in
            ["chat/chat.js", "index.html", "base.css", "sign_in.js", "app.js", "store.js", "0123456789abcdef.calls.js"]
        {
            assert!(named(part).is_none(), "{part} is no file of its own");
        }
    }

    #[test]
    fn the_page_fetches_all_that_a_place_imports_at_once() {
        let page = linked("sign_in.js");
        let assets = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets");
        let views: Vec<String> = modules(&assets, "")
            .into_iter()
            .filter(|path| path.ends_with("/page.js") && path != "shell/page.js")
            .collect();
        assert!(views.len() > 15, "{views:?}");
        for view in views.iter().filter(|view| *view != "home/page.js") {
            let list = page.split_once(&format!("\t{}: [", view.trim_end_matches("/page.js"))).unwrap().1;
            let fetched = named_in(list.split(']').next().unwrap(), "console/0VERSION0.");
            let has = |part: &str| fetched.iter().any(|file| linked(file).contains(&format!("// {part}\n")));
            assert!(has(view), "{view} is not in {fetched:?}");
            for file in &fetched {
                let imported = named_in(&linked(file), "from './0VERSION0.");
                assert!(imported.is_subset(&fetched), "{file}: {imported:?} {fetched:?}");
            }
        }
    }

    #[test]
    fn the_page_is_small_for_a_slow_line() {
        for (coding, page_most, all_most) in [(Coding::Gzip, 26_500, 111_000), (Coding::Brotli, 23_100, 98_800)] {
            let size = |file: &File| if coding == Coding::Gzip { file.gzip.len() } else { file.brotli.len() };
            let of = |name: &str| size(FILES.iter().find(|file| file.name == name).unwrap());
            let page = of(PAGE);
            assert!(page <= page_most, "{page}");
            // Home waits for both.
            let sheet = of("operator.css");
            assert!(sheet <= 4_000, "{sheet}");
            let sizes: BTreeMap<&str, usize> = scripts().map(|file| (file.name, size(file))).collect();
            for (name, size) in &sizes {
                assert!(*size <= 15 * 1024, "{name}: {size}");
            }
            let sum = sizes.values().sum::<usize>() + page;
            assert!(sum <= all_most, "{sum} {sizes:?}");
        }
    }

    #[test]
    fn every_module_is_in_the_page_or_a_file() {
        let all: Vec<String> = IN_PAGE_NAMES.into_iter().chain(scripts().map(|file| file.name)).map(linked).collect();
        for path in modules(&Path::new(env!("CARGO_MANIFEST_DIR")).join("assets"), "") {
            let part = format!("// {path}\n");
            assert!(all.iter().any(|script| script.contains(&part)), "{path} is in no script");
        }
    }
}
