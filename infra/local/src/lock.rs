//! What several stacks on one machine share (`.venv`, packages) is made by one of them at a time.

use std::{
    fs::{self, File},
    path::Path,
};

use crate::{Error, Result};

/// Held until it is dropped; the operating system frees it if the process dies.
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for its turn.
    pub(crate) async fn take(directory: &Path, name: &str) -> Result<Self> {
        let path = directory.join(format!("{name}.lock"));
        fs::create_dir_all(directory).map_err(Error::file(format!("create {}", directory.display())))?;
        let file = File::create(&path).map_err(Error::file(format!("create {}", path.display())))?;
        let waiting = tokio::task::spawn_blocking(move || file.lock().map(|()| file));
        let file = match waiting.await {
            Ok(locked) => locked,
            Err(ended) => Err(std::io::Error::other(ended)),
        };
        Ok(Self { _file: file.map_err(Error::file(format!("lock {}", path.display())))? })
    }
}
