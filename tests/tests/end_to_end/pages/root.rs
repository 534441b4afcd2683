//! A directory that imitates the repository's root for the pages' commands.

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

pub(super) struct Root {
    original: PathBuf,
    path: PathBuf,
}

impl Root {
    /// Consists of links, except `target` and `.venv`; `target/local` is the state directory of the running stack.
    pub(super) fn like_this_repository(state_dir: &Path) -> Self {
        let original = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned();
        let path = state_dir.join("root");
        let root = Self { original, path };
        let apart = [".git", ".venv", "target"];
        link_all(&root.original, &root.path, &apart);
        fs::create_dir_all(root.path.join("target")).unwrap();
        symlink(state_dir, root.path.join("target/local")).unwrap();
        let programs = std::env::current_exe().unwrap();
        let programs = programs.ancestors().find(|path| path.ends_with("debug")).unwrap();
        symlink(programs, root.path.join("target/debug")).unwrap();
        root.tools();
        root
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The path in the repository.
    pub(super) fn original(&self, name: &str) -> PathBuf {
        self.original.join(name)
    }

    /// A new, empty directory below `target`.
    pub(super) fn folder(&self, name: &str) -> PathBuf {
        let folder = self.path.join("target").join(format!("{name}-{}", uuid::Uuid::now_v7()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Creates a `.venv` in which `cargo lambda` uses a free port instead of 9000, which may be taken, and
    /// `cargo run --bin` starts the existing program.
    fn tools(&self) {
        let (real, ours) = (self.original.join(".venv"), self.path.join(".venv"));
        link_all(&real, &ours, &["bin"]);
        link_all(&real.join("bin"), &ours.join("bin"), &["cargo-lambda"]);
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let bin = ours.join("bin");
        let program = |name: &str, lines: &str| {
            let path = bin.join(name);
            fs::write(&path, format!("#!/bin/sh\nelsewhere=${{PATH#*/.venv/bin:}}\n{lines}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        };
        let cargo = "case $1 in
lambda) exec cargo-lambda \"$@\" ;;
run) while [ \"$1\" != --bin ]; do shift; done; exec \"target/debug/$2\" ;;
*) PATH=$elsewhere exec cargo \"$@\" ;;
esac";
        program("cargo", cargo);
        let (own, theirs) = (bin.join("cargo"), real.join("bin/cargo-lambda"));
        let cargo_lambda = format!(
            "what=$2; shift 2\nCARGO='{}' exec '{}' lambda \"$what\" --invoke-port {port} \"$@\"",
            own.display(),
            theirs.display()
        );
        program("cargo-lambda", &cargo_lambda);
        // Rotates through all arguments and replaces the port; the dot preserves line ends at an argument's end.
        let curl = format!(
            "for argument; do
shift
argument=$(printf %s. \"$argument\" | sed s/127.0.0.1:9000/127.0.0.1:{port}/)
set -- \"$@\" \"${{argument%.}}\"
done
PATH=$elsewhere exec curl \"$@\""
        );
        program("curl", &curl);
    }
}

/// Links to all entries of a directory except these.
fn link_all(from: &Path, to: &Path, apart: &[&str]) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if !apart.iter().any(|name| entry.file_name() == *name) {
            symlink(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}
