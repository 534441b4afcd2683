//! Paths in the repository.

use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// The repository of this program's source.
#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    root: PathBuf,
}

impl Workspace {
    pub(crate) fn find() -> Result<Self> {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
            .canonicalize()
            .map_err(Error::file("find the repository"))?;
        Ok(Self { root })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// Files that the stacks of this repository share; they may be deleted at any time.
    pub(crate) fn cache_dir(&self) -> PathBuf {
        self.path("target/local-cache")
    }

    /// The functions' names: the directories of `functions/`, in alphabetical order.
    pub(crate) fn functions(&self) -> Result<Vec<String>> {
        let directory = self.path("functions");
        let listing = || -> std::io::Result<Vec<String>> {
            let mut names = Vec::new();
            for entry in std::fs::read_dir(&directory)? {
                let entry = entry?;
                if entry.path().join("Cargo.toml").is_file() {
                    names.push(entry.file_name().to_string_lossy().into_owned());
                }
            }
            names.sort();
            Ok(names)
        };
        listing().map_err(Error::file(format!("list {}", directory.display())))
    }
}
