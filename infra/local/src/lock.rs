//! File locks between the stacks of one machine.
//!
//! Shared files (`.venv`, packages) are made by one stack at a time; a state directory belongs to one stack.

use std::{
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
};

use crate::{Error, Result};

/// Held until dropped; the operating system frees the lock if the process dies.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits until the lock is free.
    pub(crate) async fn take(directory: &Path, name: &str) -> Result<Self> {
        let (file, path) = open(directory, name)?;
        let waiting = tokio::task::spawn_blocking(move || file.lock().map(|()| file));
        let file = match waiting.await {
            Ok(locked) => locked,
            Err(ended) => Err(std::io::Error::other(ended)),
        };
        Ok(Self { _file: file.map_err(Error::file(format!("lock {}", path.display())))? })
    }

    /// Locks a state directory; fails at once if another stack uses it.
    pub(crate) fn of_state(directory: &Path) -> Result<Self> {
        let (file, path) = open(directory, "stack")?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(Error::StateInUse(directory.to_owned())),
            Err(TryLockError::Error(source)) => Err(Error::file(format!("lock {}", path.display()))(source)),
        }
    }
}

fn open(directory: &Path, name: &str) -> Result<(File, PathBuf)> {
    let path = directory.join(format!("{name}.lock"));
    fs::create_dir_all(directory).map_err(Error::file(format!("create {}", directory.display())))?;
    let file = File::create(&path).map_err(Error::file(format!("create {}", path.display())))?;
    Ok((file, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_directory_belongs_to_one_stack() {
        let directory = std::env::temp_dir().join(format!("state-{}", uuid::Uuid::new_v4()));
        let first = Lock::of_state(&directory).unwrap();
        assert!(matches!(Lock::of_state(&directory), Err(Error::StateInUse(_))));
        drop(first);
        assert!(Lock::of_state(&directory).is_ok());
        fs::remove_dir_all(directory).unwrap();
    }
}
