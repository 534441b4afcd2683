//! The local AWS: ministack, which runs the functions as its child processes.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tokio::{
    process::{Child, ChildStdin, Command},
    time::{Instant, sleep},
};

use crate::{
    Error, Result,
    aws::{ACCESS_KEY, REGION, SECRET_KEY},
    ports,
    progress::Step,
    python::Venv,
};

pub(crate) const SERVICE: &str = "AWS (ministack)";

const START_LIMIT: Duration = Duration::from_mins(1);

/// A running ministack. Dropping it ends it and the functions and waits until they are gone. They also end when this
/// process dies: see `guarded_ministack.py`.
#[derive(Debug)]
pub(crate) struct Ministack {
    child: Child,
    /// While this pipe is open, ministack runs.
    alive: Option<ChildStdin>,
    log: PathBuf,
    endpoint: String,
}

impl Ministack {
    /// Starts an empty ministack on 127.0.0.1; `port` 0 takes any free port.
    pub(crate) async fn start(
        venv: &Venv,
        state_dir: &Path,
        port: u16,
        http: &reqwest::Client,
        step: &Step<'_>,
    ) -> Result<Self> {
        // Ministack binds its port itself, so another process may take a free port first; then another port is tried.
        let attempts = if port == 0 { 3 } else { 1 };
        let mut outcome = Self::start_on(venv, state_dir, ports::free(port, SERVICE)?, http, step).await;
        for _attempt in 1..attempts {
            if !matches!(outcome, Err(Error::MinistackEnded { .. })) {
                break;
            }
            outcome = Self::start_on(venv, state_dir, ports::free(port, SERVICE)?, http, step).await;
        }
        outcome
    }

    async fn start_on(
        venv: &Venv,
        state_dir: &Path,
        port: u16,
        http: &reqwest::Client,
        step: &Step<'_>,
    ) -> Result<Self> {
        let log = state_dir.join("ministack.log");
        // Temporary files of ministack: the functions' unpacked code, a pid file.
        let scratch = state_dir.join("ministack");
        if scratch.exists() {
            fs::remove_dir_all(&scratch).map_err(Error::file(format!("empty {}", scratch.display())))?;
        }
        fs::create_dir_all(&scratch).map_err(Error::file(format!("create {}", scratch.display())))?;
        let script = scratch.join("guarded_ministack.py");
        fs::write(&script, include_str!("../guarded_ministack.py"))
            .map_err(Error::file(format!("write {}", script.display())))?;
        let output = File::create(&log).map_err(Error::file(format!("create {}", log.display())))?;
        let errors = output.try_clone().map_err(Error::file(format!("open {}", log.display())))?;

        let endpoint = format!("http://127.0.0.1:{port}");
        let mut child = Command::new(venv.python())
            .arg("-I")
            .arg("-u")
            .arg(&script)
            .current_dir(&scratch)
            // The functions inherit this environment, so the developer's shell must not leak into it.
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _value)| name == "PATH" || name == "HOME" || name == "LANG"))
            .env("TMPDIR", &scratch)
            .env("BIND_HOST", "127.0.0.1")
            .env("GATEWAY_PORT", port.to_string())
            .env("MINISTACK_REGION", REGION)
            .env("AWS_ACCESS_KEY_ID", ACCESS_KEY)
            .env("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
            .env("AWS_ENDPOINT_URL", &endpoint)
            // Enforces the permissions of each function's role.
            .env("AUTH", "true")
            // These services would listen on ports that nobody needs.
            .env("IOT_MTLS_ENABLED", "0")
            .env("SFTP_ENABLED", "0")
            .stdin(Stdio::piped())
            .stdout(output)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .map_err(Error::file("start ministack"))?;
        let alive = child.stdin.take();
        let mut ministack = Self { child, alive, log, endpoint };
        ministack.until_ready(http, step).await?;
        Ok(ministack)
    }

    async fn until_ready(&mut self, http: &reqwest::Client, step: &Step<'_>) -> Result<()> {
        let address = format!("{}/_ministack/health", self.endpoint);
        let begun = Instant::now();
        loop {
            if let Ok(Some(_status)) = self.child.try_wait() {
                return Err(Error::MinistackEnded { last_words: self.last_words(), log: self.log.clone() });
            }
            let healthy = http.get(&address).timeout(Duration::from_secs(5)).send().await;
            if healthy.is_ok_and(|answer| answer.status().is_success()) {
                return Ok(());
            }
            if begun.elapsed() > START_LIMIT {
                return Err(Error::MinistackSilent { seconds: START_LIMIT.as_secs(), log: self.log.clone() });
            }
            step.detail("waiting for its first answer");
            sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Returns when ministack has ended, which is an error while the stack runs.
    pub(crate) async fn ended(&mut self) -> Error {
        // However the wait ends, ministack is gone.
        let _status = self.child.wait().await;
        Error::MinistackEnded { last_words: self.last_words(), log: self.log.clone() }
    }

    fn last_words(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        log.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing").trim().to_owned()
    }
}

impl Drop for Ministack {
    fn drop(&mut self) {
        drop(self.alive.take());
        // Takes a few milliseconds, unless ministack hangs.
        for _attempt in 0..400 {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(5)),
                Ok(Some(_)) | Err(_) => return,
            }
        }
        let _gone_meanwhile = self.child.start_kill();
    }
}
