//! The labelled transcripts of `docs/examples/claims`, and how well a model finds the claims that no tool proves.

use std::{fs, path::Path};

use serde::Deserialize;
use shared::{
    Deadline,
    clients::llm::{Account, Llm},
    receipts::Evidence,
    spoken_claims::{Spoken, SpokenClaim},
};

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transcript {
    #[serde(skip)]
    pub name: String,
    pub title: String,
    pub language: String,
    pub tools: Vec<String>,
    pub receipt: Vec<Evidence>,
    pub agent_said: Vec<String>,
    /// The labels.
    pub claims: Vec<SpokenClaim>,
}

/// Unproven claims by sentence: found and labelled, found only, labelled only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Score {
    pub right: usize,
    pub wrong: usize,
    pub missed: usize,
    /// Transcripts without a usable answer; their unproven claims count as missed.
    pub unanswered: usize,
}

impl Score {
    /// The share of the flagged sentences that are unproven claims; 1 if none was flagged.
    pub fn precision(&self) -> f64 {
        share(self.right, self.wrong)
    }

    /// The share of the unproven claims that were flagged; 1 if there are none.
    pub fn recall(&self) -> f64 {
        share(self.right, self.missed)
    }
}

fn share(part: usize, rest: usize) -> f64 {
    let count = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    if part + rest == 0 { 1.0 } else { count(part) / count(part + rest) }
}

/// The transcripts, in the order of their names.
pub fn transcripts() -> Vec<Transcript> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples/claims");
    let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    paths.sort();
    let read = |path: &Path| {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let read: Transcript =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Transcript { name, ..read }
    };
    paths.iter().map(|path| read(path)).collect()
}

/// The sentences with an unproven claim.
fn unproven(claims: &[SpokenClaim]) -> Vec<usize> {
    let mut sentences: Vec<usize> =
        claims.iter().filter(|claim| claim.line.is_none()).map(|claim| claim.sentence).collect();
    sentences.sort_unstable();
    sentences.dedup();
    sentences
}

/// Asks the model about one transcript, and adds the outcome to the score.
///
/// # Errors
/// If the model could not be asked.
pub async fn measure(
    transcript: &Transcript,
    llm: &Llm,
    account: &Account,
    score: &mut Score,
) -> Result<(), shared::clients::Error> {
    let Transcript { tools, receipt, agent_said, claims, .. } = transcript;
    let spoken = Spoken { agent_said, receipt, tools };
    let (found, _) = spoken.ask(llm, account, Deadline::after(std::time::Duration::from_secs(60))).await?;
    let labelled = unproven(claims);
    let found = match found {
        Ok(found) => unproven(&found),
        Err(_no_report) => {
            score.unanswered += 1;
            Vec::new()
        }
    };
    score.right += found.iter().filter(|sentence| labelled.contains(sentence)).count();
    score.wrong += found.iter().filter(|sentence| !labelled.contains(sentence)).count();
    score.missed += labelled.iter().filter(|sentence| !found.contains(sentence)).count();
    Ok(())
}
