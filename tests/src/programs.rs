//! The functions' programs, built by cargo.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use local::TARGETS_OF_TESTS;
use serde_json::Value;

type Result<T> = std::result::Result<T, lambda_http::Error>;

/// The names of all functions.
///
/// # Errors
/// If the directory of the functions cannot be read.
pub fn every_function() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../functions"))? {
        let entry = entry?;
        if entry.path().join("Cargo.toml").exists() {
            names.push(entry.file_name().into_string().map_err(|name| format!("{} is no name", name.display()))?);
        }
    }
    names.sort();
    Ok(names)
}

/// The functions' binaries: as for a deployment, or the build that the local stack and the tests share.
///
/// # Errors
/// If one of them does not build.
pub fn build(functions: &[String], release: bool) -> Result<BTreeMap<String, PathBuf>> {
    println!("building the binaries of {} …", functions.join(", "));
    let mut built = if release {
        let packages = functions.iter().map(|name| format!("--package={name}"));
        cargo("build", "bin", ["--release".to_owned(), "--bins".to_owned()].into_iter().chain(packages))?
    } else {
        cargo("build", "bin", ["--workspace", "--bins"].into_iter().chain(TARGETS_OF_TESTS).map(str::to_owned))?
    };
    built.retain(|name, _| functions.contains(name));
    if built.len() != functions.len() {
        return Err("not every function has a binary of its name".into());
    }
    Ok(built)
}

/// Builds; returns the programs of a `kind` (`bin`, `bench`) by name: a function and a benchmark may have the same one.
///
/// # Errors
/// If it does not build.
pub fn cargo(what: &str, kind: &str, arguments: impl IntoIterator<Item = String>) -> Result<BTreeMap<String, PathBuf>> {
    let mut command = Command::new(env!("CARGO"));
    // Cargo sets these variables for programs it starts; build scripts that watch them would run again.
    for (name, _) in
        std::env::vars().filter(|(name, _)| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
    {
        command.env_remove(name);
    }
    let output = command
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .args([what, "--message-format=json-render-diagnostics"])
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err("it does not build".into());
    }
    let messages = output.stdout.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    let program = |message: Value| {
        message["target"]["kind"].as_array()?.iter().find(|found| *found == kind)?;
        Some((message["target"]["name"].as_str()?.to_owned(), PathBuf::from(message["executable"].as_str()?)))
    };
    Ok(messages.filter_map(program).collect())
}
