//! The targets of `tests/fuzz`, without a fuzzer: each takes every file of its corpus, and bytes that mean nothing.

#[expect(unreachable_pub, reason = "in tests/fuzz it is a library")]
#[path = "../../fuzz/src/targets.rs"]
mod targets;

use std::{collections::BTreeSet, fs, path::PathBuf};

use targets::TARGETS;

fn folder(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz")).join(path)
}

fn names(path: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(folder(path)).unwrap().map(|entry| entry.unwrap().file_name());
    entries.map(|name| name.into_string().unwrap().trim_end_matches(".rs").to_owned()).collect()
}

#[test]
fn every_file_of_the_corpus_is_taken() {
    for (name, target) in TARGETS {
        let corpus = names(&format!("corpus/{name}"));
        assert!(corpus.len() > 1, "{name} has a corpus");
        for file in corpus {
            let input = fs::read(folder(&format!("corpus/{name}/{file}"))).unwrap();
            println!("{name}/{file}");
            target(&input);
            // Inputs break off anywhere.
            for end in 0..input.len().min(400) {
                target(&input[..end]);
            }
        }
        target(b"");
        target(&[0xff; 40]);
    }
}

/// So that what compiles here is what the fuzzer is given.
#[test]
fn every_target_is_a_program_with_a_corpus() {
    let expected: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names("fuzz_targets"), expected);
    assert_eq!(names("corpus"), expected);
    let manifest = fs::read_to_string(folder("Cargo.toml")).unwrap();
    for name in &expected {
        let program = fs::read_to_string(folder(&format!("fuzz_targets/{name}.rs"))).unwrap();
        let said = format!("#![no_main]\n\nlibfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::{name}(data));\n");
        assert_eq!(program, said);
        assert!(
            manifest.contains(&format!("[[bin]]\nname = \"{name}\"\npath = \"fuzz_targets/{name}.rs\"\n")),
            "{name}"
        );
    }
}
