//! The measured programs: the functions' binaries, the reference programs, and the functions on Node.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use tests::programs::{self, cargo};

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
        let built = programs::build(functions, measures())?;
        let reference = if measures() {
            // Built separately: otherwise the tests' dependencies change the features of the functions' dependencies.
            let alone = ["--release".to_owned(), "--package=execute".to_owned(), format!("--bench={REFERENCE}")];
            cargo("build", "bench", alone)?.remove(REFERENCE)
        } else {
            // The same build as for the tests, so that nothing is compiled twice.
            let tests = ["--workspace", "--no-run", "--lib", "--test=*", "--bench=*"].map(str::to_owned);
            cargo("test", "bench", tests)?.remove(REFERENCE)
        };
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
