//! The repository's files, and the facts about Rust code that the structure tests need.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

#[derive(Debug)]
pub(crate) struct Source {
    /// Relative to the repository's root.
    pub(crate) path: String,
    pub(crate) text: String,
    /// Without comments.
    pub(crate) code: String,
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

pub(crate) fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The direct subdirectories.
pub(crate) fn directories(path: &str) -> BTreeSet<String> {
    let entries = std::fs::read_dir(root().join(path)).unwrap().map(Result::unwrap);
    let directories = entries.filter(|entry| entry.path().is_dir());
    directories.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

/// All Rust files below a directory.
pub(crate) fn rust(path: &str) -> Vec<Source> {
    let mut sources: Vec<Source> = below(path, "rs")
        .into_iter()
        .map(|path| {
            let text = read(&path);
            let code = text.lines().map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>().join("\n");
            Source { path, text, code }
        })
        .collect();
    assert!(!sources.is_empty(), "no Rust below {path}");
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    sources
}

/// The pages for people: at the root and below `docs`.
pub(crate) fn pages() -> Vec<String> {
    let entries = std::fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let at_root = entries.filter(|name| Path::new(name).extension().is_some_and(|extension| extension == "md"));
    at_root.chain(below("docs", "md")).collect()
}

pub(crate) fn below(path: &str, extension: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}")) {
        let entry = entry.unwrap();
        let inner = format!("{path}/{}", entry.file_name().into_string().unwrap());
        if entry.path().is_dir() {
            found.extend(below(&inner, extension));
        } else if entry.path().extension().is_some_and(|given| given == extension) {
            found.push(inner);
        }
    }
    found
}

/// Every text between `open` and the next `close`.
pub(crate) fn between<'a>(text: &'a str, open: &str, close: &str) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once(open) {
        let Some((inner, beyond)) = after.split_once(close) else { break };
        found.push(inner);
        rest = beyond;
    }
    found
}

/// The modules that a crate's root declares.
pub(crate) fn crate_modules(lib: &str) -> Vec<&str> {
    lib.lines()
        .filter_map(|line| line.strip_prefix("pub mod ").or(line.strip_prefix("mod "))?.strip_suffix(';'))
        .collect()
}

/// `call-start` and `call_start` become `CallStart`.
pub(crate) fn pascal(name: &str) -> String {
    let words = name.split(['-', '_']);
    words
        .map(|word| {
            word.chars().next().map_or_else(String::new, |first| format!("{}{}", first.to_uppercase(), &word[1..]))
        })
        .collect()
}

/// `CallStart` becomes `call-start`.
pub(crate) fn kebab(name: &str) -> String {
    let mut kebab = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !kebab.is_empty() {
            kebab.push('-');
        }
        kebab.extend(letter.to_lowercase());
    }
    kebab
}

impl Source {
    /// The first segments of all paths from the crate's root: `crate::models::Tool` yields `models`,
    /// `crate::{Error, store::Tools}` yields `Error` and `store`.
    pub(crate) fn uses_of_crate(&self) -> BTreeSet<String> {
        let mut used = BTreeSet::new();
        for (position, start) in self.code.match_indices("crate::") {
            let path = &self.code[position + start.len()..];
            match path.strip_prefix('{') {
                Some(group) => used.extend(members(group)),
                None => used.extend([identifier(path)]),
            }
        }
        used
    }

    /// The tables that a file names, its own first.
    pub(crate) fn tables(&self) -> Vec<String> {
        between(&self.code, "database.table(\"", "\"").into_iter().map(str::to_owned).collect()
    }
}

fn identifier(text: &str) -> String {
    text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// The first segments of a group of imports; `group` starts after its opening brace.
fn members(group: &str) -> Vec<String> {
    let mut depth = 0;
    let mut found = vec![identifier(group)];
    for (position, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => found.push(identifier(&group[position + 1..])),
            _ => {}
        }
    }
    found.retain(|name| !name.is_empty());
    found
}
