//! The targets of `tests/fuzz`, without a fuzzer: each takes every file of its corpus, and bytes that mean nothing.
#![allow(
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test says what is wrong and stops"
)]

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

/// Mutations of the corpus, the same in every run: `MUTATIONS=100000` tries more of them.
#[test]
fn inputs_near_the_corpus_are_taken() {
    let wanted = std::env::var_os("MUTATIONS").and_then(|count| count.to_str()?.parse().ok()).unwrap_or(200);
    for (name, target) in TARGETS {
        let files = names(&format!("corpus/{name}"));
        let corpus: Vec<Vec<u8>> =
            files.iter().map(|file| fs::read(folder(&format!("corpus/{name}/{file}"))).unwrap()).collect();
        let mut random = Random(20_261_124);
        println!("{name}");
        for number in 0..wanted {
            let mut input = corpus[random.below(corpus.len())].clone();
            for _ in 0..=random.below(4) {
                mutate(&mut input, &corpus, &mut random);
            }
            input.truncate(4096);
            let taken = std::panic::catch_unwind(|| target(&input));
            assert!(taken.is_ok(), "{name}, mutation {number}: {:?}", String::from_utf8_lossy(&input));
        }
    }
}

fn mutate(input: &mut Vec<u8>, corpus: &[Vec<u8>], random: &mut Random) {
    const TOKENS: [&str; 24] = [
        "\"",
        "\\",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "null",
        "true",
        "1e999",
        "-0",
        "\\u0000",
        "\u{feff}",
        "\u{301}",
        "\u{1F600}",
        "\n",
        "\r\n",
        "%00",
        "{{",
        "}}",
        "..",
        "9223372036854775808",
        "\u{130}",
    ];
    let at = random.below(input.len() + 1);
    match random.below(6) {
        0 if at < input.len() => input[at] ^= 1 << random.below(8),
        1 if at < input.len() => {
            let end = (at + 1 + random.below(8)).min(input.len());
            input.drain(at..end);
        }
        2 => {
            let token = TOKENS[random.below(TOKENS.len())];
            input.splice(at..at, token.bytes());
        }
        3 => {
            let other = &corpus[random.below(corpus.len())];
            let from = random.below(other.len() + 1);
            let to = (from + random.below(40)).min(other.len());
            input.splice(at..at, other[from..to].to_vec());
        }
        4 => {
            // Deep, or long.
            let part: Vec<u8> = input[at..(at + 1 + random.below(6)).min(input.len())].to_vec();
            let times = 1 + random.below(200);
            input.splice(at..at, part.repeat(times));
        }
        _ => input.insert(at, u8::try_from(random.below(256)).unwrap_or_default()),
    }
}

/// `SplitMix64`.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % bound as u64).unwrap_or_default()
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
