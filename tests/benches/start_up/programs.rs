//! The measured programs: the functions' binaries, the reference programs, and the functions on Node.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::{
    Result,
    jobs::{Job, NODE_EXECUTE, NODE_LIST_TOOLS},
    measuring::measures,
    megabytes,
};

/// The reference program, with the modes [`ECHO`](crate::jobs::ECHO) and [`CALLS`](crate::jobs::CALLS).
const REFERENCE: &str = "reference";
/// The oldest Node that the AWS SDK supports.
const OLDEST_NODE: u32 = 20;

pub(crate) fn every_function() -> Result<Vec<String>> {
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

/// The binaries; release builds if they are measured.
pub(crate) struct Programs {
    pub(crate) functions: BTreeMap<String, PathBuf>,
    reference: PathBuf,
    pub(crate) node: Option<Node>,
}

/// Node, and the bundles of `tests/benches/node`.
pub(crate) struct Node {
    program: PathBuf,
    /// `v20.20.2`
    pub(crate) version: String,
    bundles: BTreeMap<&'static str, PathBuf>,
}

impl Node {
    /// # Errors
    /// Why there is nothing to compare with.
    fn find() -> std::result::Result<Self, String> {
        let directories = std::env::var_os("PATH").unwrap_or_default();
        let program = std::env::split_paths(&directories).map(|directory| directory.join("node"));
        let program = program.into_iter().find(|program| program.is_file()).ok_or("there is no Node (nodejs.org)")?;
        let told = Command::new(&program).arg("--version").output().map_err(|error| format!("Node: {error}"))?;
        let version = String::from_utf8_lossy(&told.stdout).trim().to_owned();
        let major: Option<u32> = version.trim_start_matches('v').split('.').next().and_then(|major| major.parse().ok());
        if major.is_none_or(|major| major < OLDEST_NODE) {
            return Err(format!("Node {version} is older than {OLDEST_NODE}"));
        }
        let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/node/built");
        let bundles = BTreeMap::from([
            (NODE_EXECUTE, built.join("execute.mjs")),
            (NODE_LIST_TOOLS, built.join("list_tools.mjs")),
        ]);
        if !bundles.values().all(|bundle| bundle.is_file()) {
            return Err("the bundles are not there; tests/benches/node/install makes them".to_owned());
        }
        Ok(Self { program, version, bundles })
    }
}

impl Programs {
    /// Builds the functions as for a deployment, and the reference program; or takes all of them from a directory.
    pub(crate) fn build(functions: &[String], given: Option<&Path>) -> Result<Self> {
        let node = Node::find().inspect_err(|why| println!("skipped: the comparison with Node: {why}")).ok();
        if let Some(directory) = given {
            let functions = functions.iter().map(|name| (name.clone(), directory.join(name))).collect();
            return Ok(Self { functions, reference: directory.join(REFERENCE), node });
        }
        println!("building the binaries of {} …", functions.join(", "));
        let (mut built, reference) = if measures() {
            let packages = functions.iter().map(|name| format!("--package={name}"));
            let built = cargo("build", ["--release".to_owned(), "--bins".to_owned()].into_iter().chain(packages))?;
            // Built separately: otherwise the tests' dependencies change the features of the functions' dependencies.
            let alone = ["--release".to_owned(), "--package=execute".to_owned(), format!("--bench={REFERENCE}")];
            (built, cargo("build", alone)?.remove(REFERENCE))
        } else {
            // The same build as for the local stack and the tests, so that nothing is compiled twice.
            let built = cargo("build", ["--workspace", "--bins"].map(str::to_owned))?;
            let tests = ["--workspace", "--no-run", "--lib", "--test=*", "--bench=*"].map(str::to_owned);
            (built, cargo("test", tests)?.remove(REFERENCE))
        };
        built.retain(|name, _| functions.contains(name));
        if built.len() != functions.len() {
            return Err("not every function has a binary of its name".into());
        }
        Ok(Self { functions: built, reference: reference.ok_or("there is no program to compare with")?, node })
    }

    pub(crate) fn command(&self, job: &Job) -> Command {
        if let Some(binary) = self.functions.get(job.function) {
            return Command::new(binary);
        }
        if let Some((node, bundle)) = self.bundle(job.function) {
            let mut command = Command::new(&node.program);
            command.arg(bundle);
            return command;
        }
        let mut command = Command::new(&self.reference);
        command.arg(job.function);
        command
    }

    fn bundle(&self, function: &str) -> Option<(&Node, &Path)> {
        let node = self.node.as_ref()?;
        Some((node, node.bundles.get(function)?))
    }

    /// In MB; of a function on Node, its bundle's. `None` for a reference program.
    pub(crate) fn size(&self, function: &str) -> Result<Option<f64>> {
        let bundle = self.bundle(function).map(|(_, bundle)| bundle);
        let Some(program) = self.functions.get(function).map(PathBuf::as_path).or(bundle) else { return Ok(None) };
        let file = fs::metadata(program).map_err(|error| format!("{}: {error}", program.display()))?;
        Ok(Some(megabytes(file.len())))
    }
}

/// Builds; returns the programs by name.
fn cargo(what: &str, arguments: impl IntoIterator<Item = String>) -> Result<BTreeMap<String, PathBuf>> {
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
        Some((message["target"]["name"].as_str()?.to_owned(), PathBuf::from(message["executable"].as_str()?)))
    };
    Ok(messages.filter_map(program).collect())
}
