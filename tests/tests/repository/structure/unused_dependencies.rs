//! Every line of dependencies is one that the code needs.

use std::collections::BTreeSet;

use super::source::{between, directories, read, rust};

/// Crates whose library is called otherwise.
const CALLED: [(&str, &str); 1] = [("dynoxide-rs", "dynoxide")];

/// The sections of a manifest that list dependencies, with the names that stand there.
fn dependencies(manifest: &str) -> Vec<(&str, Vec<&str>)> {
    let mut sections = Vec::new();
    for part in manifest.split("\n[").skip(1) {
        let (section, lines) = part.split_once(']').unwrap();
        if section.ends_with("dependencies") {
            let begins = |line: &&str| line.starts_with(|letter: char| letter.is_ascii_alphabetic());
            let names = lines.lines().filter(begins).map(|line| line.split([' ', '=', '.']).next().unwrap());
            sections.push((section, names.collect()));
        }
    }
    sections
}

/// The folders of the workspace's crates.
fn members(root: &str) -> Vec<String> {
    let listed = between(root, "\nmembers = [", "]")[0].split(',').map(|member| member.trim().trim_matches('"'));
    listed
        .flat_map(|member| match member.strip_suffix("/*") {
            Some(folder) => directories(folder).into_iter().map(|name| format!("{folder}/{name}")).collect(),
            None => vec![member.to_owned()],
        })
        .collect()
}

/// Whether a path in the code begins with a crate.
fn names(code: &str, of_crate: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    code.match_indices(of_crate).any(|(at, _)| {
        let (before, after) = (&code[..at], &code[at + of_crate.len()..]);
        let begins = !before.ends_with(is_part) && !before.ends_with(':');
        let imported = before.ends_with("use ") && (after.starts_with(';') || after.starts_with(" as "));
        begins && (after.starts_with("::") || imported)
    })
}

#[test]
fn every_dependency_is_used() {
    let root = read("Cargo.toml");
    let (mut used, mut idle) = (BTreeSet::new(), Vec::new());
    for folder in members(&root) {
        let manifest = read(&format!("{folder}/Cargo.toml"));
        let own = rust(&folder);
        let code: Vec<_> = own.iter().map(|file| (&file.path[folder.len() + 1..], file.code.as_str())).collect();
        for (section, listed) in dependencies(&manifest) {
            for name in listed {
                used.insert(name.to_owned());
                let library = CALLED.iter().find(|(called, _)| *called == name).map_or(name, |(_, library)| library);
                let library = library.replace('-', "_");
                // Those of tests and benchmarks may be named anywhere.
                let counts = |path: &str| section != "dependencies" || folder == "tests" || path.starts_with("src/");
                if !code.iter().any(|(path, code)| counts(path) && names(code, &library)) {
                    idle.push(format!("{folder}/Cargo.toml: {name} of [{section}]"));
                }
            }
        }
    }
    for (section, listed) in dependencies(&root) {
        let unlisted = listed.into_iter().filter(|name| !used.contains(*name));
        idle.extend(unlisted.map(|name| format!("Cargo.toml: {name} of [{section}]")));
    }
    assert!(idle.is_empty(), "nothing uses these lines: {idle:#?}");
}

#[test]
fn a_crate_is_named_where_a_path_begins_with_it() {
    for (code, named) in [
        ("use ring::digest;", true),
        ("use {\n    ring::digest,\n};", true),
        ("ring::digest()", true),
        ("use ring;", true),
        ("use ring as r;", true),
        ("crate::ring::digest()", false),
        ("string::digest()", false),
        ("let ring = 1;", false),
    ] {
        assert_eq!(names(code, "ring"), named, "{code}");
    }
    let manifest =
        "[package]\nname = \"a\"\n\n[dependencies]\nring = \"1\"\nb.workspace = true\n# c = 1\n\n[lints]\nd = 1\n";
    assert_eq!(dependencies(manifest), [("dependencies", vec!["ring", "b"])]);
}
