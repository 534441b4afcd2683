//! The Python tools of the local stack: pinned versions in `.venv`, made by `infra/local/make-venv`.

use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::{Error, Result, command, lock::Lock, progress::Step, workspace::Workspace};

#[derive(Debug, Clone)]
pub(crate) struct Venv {
    root: PathBuf,
}

impl Venv {
    /// Creates the environment, or reuses one made for the same requirements.
    ///
    /// # Errors
    /// [`Error::Python`] with the script's message.
    pub(crate) async fn ensure(workspace: &Workspace, step: &Step<'_>) -> Result<Self> {
        let _alone = Lock::take(&workspace.cache_dir(), "venv").await?;
        let script = workspace.path("infra/local/make-venv");
        let mut script = Command::new(&script);
        let made = command::run(&mut script, "infra/local/make-venv", |_stream, line| step.detail(line));
        let ended =
            step.wait("pip installs the local AWS and the tools for deploying; this happens once", made).await?;
        if ended.success {
            return Ok(Self { root: workspace.path(".venv") });
        }
        // The last line is the script's message; pip's own output, if any, stands before it.
        for line in ended.stderr.iter().rev().skip(1).take(10).rev() {
            step.notice(line);
        }
        Err(Error::Python(ended.stderr.last().cloned().unwrap_or_else(|| "infra/local/make-venv failed".to_owned())))
    }

    pub(crate) fn python(&self) -> PathBuf {
        self.program("python")
    }

    fn program(&self, name: &str) -> PathBuf {
        Path::new(&self.root).join("bin").join(name)
    }
}
