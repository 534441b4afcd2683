//! Builds the functions with cargo and packs each for Lambda (a zip with the program as `bootstrap`).

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Write},
    num::NonZeroUsize,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use futures_util::stream::{self, StreamExt, TryStreamExt};
use serde_json::Value;
use tokio::process::Command;
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

use crate::{
    Error, Result,
    command::{self, Stream},
    lock::Lock,
    progress::Step,
    workspace::Workspace,
};

#[derive(Debug, Clone)]
pub(crate) struct Package {
    pub(crate) function: String,
    pub(crate) zip: PathBuf,
}

/// Cargo unites the features of dependencies over all targets that it builds: with those of the tests nothing is compiled twice.
pub const TARGETS_OF_TESTS: [&str; 4] = ["--test", "*", "--bench", "*"];

/// Builds all functions with the development profile.
///
/// # Errors
/// [`Error::Build`], after the compiler's messages were printed.
pub(crate) async fn build(
    workspace: &Workspace,
    beside_tests: bool,
    step: &Step<'_>,
) -> Result<BTreeMap<String, PathBuf>> {
    // All members in one build: cargo then unites features in the same way at every start and builds each crate once.
    let mut cargo = Command::new("cargo");
    // Variables that `cargo run` and `cargo test` set must not reach this cargo: build scripts that watch them would
    // run again and again.
    for (name, _value) in std::env::vars_os() {
        if name.to_str().is_some_and(set_by_cargo) {
            cargo.env_remove(name);
        }
    }
    cargo
        .args(["build", "--workspace", "--bins", "--message-format", "json-render-diagnostics"])
        .args(TARGETS_OF_TESTS.into_iter().filter(|_| beside_tests))
        .current_dir(workspace.root());
    let built = command::run(&mut cargo, "cargo", |stream, line| {
        if stream == Stream::Stderr {
            step.detail(line);
        }
    });
    let ended = step.wait("cargo compiles the functions", built).await.map_err(|error| match error {
        Error::File { source, .. } if source.kind() == io::ErrorKind::NotFound => Error::NoCargo,
        other => other,
    })?;
    if !ended.success {
        for line in ended.stderr.iter().filter(|line| !line.trim_start().starts_with("Compiling ")) {
            step.notice(line);
        }
        return Err(Error::Build);
    }
    let mut built: BTreeMap<String, PathBuf> = ended
        .stdout
        .iter()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter_map(|message| program(&message))
        .collect();
    workspace
        .functions()?
        .into_iter()
        .map(|function| match built.remove(&function) {
            Some(program) => Ok((function, program)),
            None => Err(Error::NoProgram(function)),
        })
        .collect()
}

fn set_by_cargo(variable: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_", "CARGO_PRIMARY_", "OUT_DIR"]
        .iter()
        .any(|prefix| variable.starts_with(prefix))
}

/// Name and path of the program, if cargo's message reports one.
fn program(message: &Value) -> Option<(String, PathBuf)> {
    message.pointer("/target/kind")?.as_array()?.iter().find(|kind| *kind == "bin")?;
    let name = message.pointer("/target/name")?.as_str()?;
    let path = message.pointer("/executable")?.as_str()?;
    Some((name.to_owned(), PathBuf::from(path)))
}

/// Packs the programs, one at a time per processor; programs that did not change are skipped.
pub(crate) async fn pack(
    workspace: &Workspace,
    programs: BTreeMap<String, PathBuf>,
    step: &Step<'_>,
) -> Result<Vec<Package>> {
    let directory = workspace.cache_dir().join("packages");
    let _alone = Lock::take(&directory, "packages").await?;
    let at_once = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let packages = programs.into_iter().map(|(function, program)| pack_one(&directory, function, program, step));
    stream::iter(packages).buffered(at_once).try_collect().await
}

async fn pack_one(directory: &Path, function: String, program: PathBuf, step: &Step<'_>) -> Result<Package> {
    let zip = directory.join(format!("{function}.zip"));
    let mark = directory.join(format!("{function}.packed-from"));
    let identity = identity(&program)?;
    if !zip.is_file() || fs::read_to_string(&mark).ok().as_deref() != Some(&identity) {
        step.detail(&format!("packing {function}"));
        let lean = directory.join(&function);
        strip(&program, &lean).await?;
        let target = zip.clone();
        let packed = tokio::task::spawn_blocking(move || {
            let packed = write_zip(&lean, &target);
            fs::remove_file(&lean).and(packed)
        });
        packed
            .await
            .unwrap_or_else(|ended| Err(io::Error::other(ended)))
            .map_err(Error::file(format!("pack {}", program.display())))?;
        fs::write(&mark, identity).map_err(Error::file(format!("write {}", mark.display())))?;
    }
    Ok(Package { function, zip })
}

/// Path, size and modification time of a program; they change with each build.
fn identity(program: &Path) -> Result<String> {
    let read = || -> io::Result<String> {
        let file = fs::metadata(program)?;
        let changed = file.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(format!("{} {} {}", program.display(), file.len(), changed.as_nanos()))
    };
    read().map_err(Error::file(format!("read {}", program.display())))
}

/// Copies a program without its debug information, for a tenth of the size to pack, upload and unpack. Without
/// `strip` on this machine, copies it as it is.
async fn strip(program: &Path, lean: &Path) -> Result<()> {
    let stripped =
        command::run(Command::new("strip").arg("-o").arg(lean).arg(program), "strip", |_stream, _line| {}).await;
    if stripped.is_ok_and(|ended| ended.success) {
        return Ok(());
    }
    fs::copy(program, lean).map(drop).map_err(Error::file(format!("copy {}", program.display())))
}

fn write_zip(program: &Path, zip: &Path) -> io::Result<()> {
    let unfinished = zip.with_extension("unfinished");
    let mut archive = ZipWriter::new(File::create(&unfinished)?);
    // More compression gains little: the zip travels over loopback and is unpacked once.
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .compression_level(Some(1))
        .unix_permissions(0o755);
    archive.start_file("bootstrap", options)?;
    archive.write_all(&fs::read(program)?)?;
    archive.finish()?.flush()?;
    fs::rename(unfinished, zip)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use serde_json::json;

    use super::*;

    #[test]
    fn only_messages_about_programs_name_one() {
        let built = |kind: &str| json!({"reason": "compiler-artifact", "target": {"name": "attach", "kind": [kind]}, "executable": "/x/attach"});
        assert_eq!(program(&built("bin")), Some(("attach".to_owned(), PathBuf::from("/x/attach"))));
        assert_eq!(program(&built("test")), None);
        assert_eq!(program(&json!({"target": {"name": "shared", "kind": ["lib"]}, "executable": null})), None);
        assert_eq!(program(&json!({"reason": "build-finished", "success": true})), None);
    }

    #[test]
    fn a_zip_holds_the_program_as_an_executable_bootstrap() {
        let directory = std::env::temp_dir().join(format!("packages-{}", uuid::Uuid::new_v4()));
        fs::create_dir_all(&directory).unwrap();
        let (source, target) = (directory.join("attach"), directory.join("attach.zip"));
        fs::write(&source, b"a program").unwrap();
        write_zip(&source, &target).unwrap();

        let mut archive = zip::ZipArchive::new(File::open(&target).unwrap()).unwrap();
        assert_eq!(archive.len(), 1);
        let mut file = archive.by_name("bootstrap").unwrap();
        assert_eq!(file.unix_mode().map(|mode| mode & 0o777), Some(0o755));
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "a program");
        fs::remove_dir_all(directory).unwrap();
    }
}
