//! A shell that runs all blocks of one page.

use std::{path::PathBuf, process::Stdio, time::Duration};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

use super::root::Root;

/// Longer than the slowest block, the deployment.
const TIME_LIMIT: Duration = Duration::from_mins(10);

/// Runs code with the variables and functions of earlier code. A failing command ends the shell.
pub(super) struct Shell {
    child: Child,
    commands: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    folder: PathBuf,
    number: usize,
}

impl Shell {
    pub(super) fn start(root: &Root) -> Self {
        let mut child = Command::new("sh")
            .arg("-e")
            .current_dir(root.path())
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _value)| ["PATH", "HOME", "LANG"].iter().any(|kept| name == kept)))
            // A page's background processes end with its shell.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let (commands, answers) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let folder = root.folder("shell");
        Self { child, commands, answers: BufReader::new(answers).lines(), folder, number: 0 }
    }

    /// Runs code and returns its standard output.
    ///
    /// # Panics
    /// If a command fails, or a program panics instead of reporting an error.
    pub(super) async fn run(&mut self, code: &str, place: &str) -> String {
        self.number += 1;
        let file = |kind: &str| self.folder.join(format!("{}.{kind}", self.number));
        let (code_file, out, err) = (file("sh"), file("out"), file("err"));
        std::fs::write(&code_file, code).unwrap();
        let line =
            format!(". '{}' </dev/null >'{}' 2>'{}'; echo done\n", code_file.display(), out.display(), err.display());
        self.commands.write_all(line.as_bytes()).await.unwrap();
        let answer = timeout(TIME_LIMIT, self.answers.next_line()).await;
        let read = |path: &PathBuf| String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned();
        let (output, errors) = (read(&out), read(&err));
        let ended = matches!(&answer, Ok(Ok(Some(line))) if line == "done");
        assert!(ended, "{place} failed:\n{output}\n{errors}");
        assert!(!errors.contains("Traceback"), "{place} ends in a traceback:\n{errors}");
        output
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        if let Some(id) = self.child.id() {
            let _gone_already = std::process::Command::new("kill").args(["-TERM", "--", &format!("-{id}")]).status();
        }
    }
}
