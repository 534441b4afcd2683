//! A test's own AWS account behind a stand-in for the AWS CLI, and an issuer.

use std::{
    fmt, fs,
    os::unix::{
        fs::{PermissionsExt, symlink},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
    time::Duration,
};

use axum::{Json, Router, routing::get};
use serde_json::{Value, json};
use tests::http_server::Server;
use uuid::Uuid;

/// Parameters of a working deployment; `ISSUER` is replaced by the test's issuer.
const GOOD: &str = "JwtIssuer=ISSUER\nJwtAudience=a,b\nVapiApiKey=key\n";

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

pub(crate) fn functions() -> Vec<String> {
    let entries =
        fs::read_dir(root().join("functions")).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_dir());
    entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

/// The Python of `.venv`, which is created if missing.
fn python() -> PathBuf {
    static MADE: OnceLock<()> = OnceLock::new();
    MADE.get_or_init(|| Run::of(&mut Command::new(root().join("infra/local/make-venv"))).succeeded());
    root().join(".venv/bin/python")
}

/// Runs a Python program over the modules of `infra/deployment`; returns the JSON that it printed.
pub(crate) fn evaluate(program: &str, input: &Value) -> Value {
    let program = format!("import json, sys\ngiven = json.loads(sys.argv[1])\n{program}");
    let mut command = Command::new(python());
    command.args(["-B", "-c", &program, &input.to_string()]).env("PYTHONPATH", root().join("infra/deployment"));
    let run = Run::of(without_aws(&mut command));
    run.succeeded();
    serde_json::from_str(&run.output).unwrap_or_else(|error| panic!("{error}: {run}"))
}

fn without_aws(command: &mut Command) -> &mut Command {
    for (name, _value) in std::env::vars_os() {
        let text = name.to_string_lossy().to_lowercase();
        if text.starts_with("aws_") || text.ends_with("_proxy") || text.starts_with("make") || text == "mflags" {
            command.env_remove(name);
        }
    }
    for name in ["STACK", "CODE_BUCKET", "ARCHITECTURE", "PARAMETERS", "PROGRAMS", "ADOPT", "DATA", "CONFIRM"] {
        command.env_remove(name);
    }
    command
}

#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    /// Standard output and standard error.
    pub(crate) output: String,
}

impl fmt::Display for Run {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "ended with {:?} and said:\n{}", self.code, self.output)
    }
}

impl Run {
    pub(crate) fn of(command: &mut Command) -> Self {
        let ended = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let output = [ended.stdout, ended.stderr].concat();
        Self { code: ended.status.code(), output: String::from_utf8(output).unwrap() }
    }

    pub(crate) fn succeeded(&self) {
        assert_eq!(self.code, Some(0), "{self}");
    }

    pub(crate) fn says(&self, what: &str) {
        assert!(self.output.contains(what), "it does not say '{what}', but {self}");
    }

    pub(crate) fn failed_with(&self, sentences: &[&str]) {
        assert_eq!(self.code, Some(1), "{self}");
        for sentence in sentences {
            self.says(sentence);
        }
        assert!(!self.output.contains("Traceback"), "{self}");
    }
}

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) argv: Vec<String>,
    files: Value,
}

/// A file that was passed to the AWS CLI.
pub(crate) struct Handed {
    pub(crate) text: String,
    /// Whether other users of the machine could read it.
    pub(crate) open: bool,
}

impl Handed {
    pub(crate) fn list(&self) -> Vec<String> {
        serde_json::from_str(&self.text).unwrap()
    }
}

impl Call {
    pub(crate) fn file(&self, option: &str) -> Handed {
        let at = self.argv.iter().position(|argument| argument == option).unwrap();
        let file = &self.files[self.argv[at + 1].strip_prefix("file://").unwrap()];
        Handed { text: file["text"].as_str().unwrap().to_owned(), open: file["open"].as_bool().unwrap() }
    }
}

/// The account, and the operator's copy of the repository. Its stack is called shop.
pub(crate) struct Account {
    folder: PathBuf,
    issuer: Server,
}

impl Account {
    pub(crate) async fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("switchboard-deploy-{}", Uuid::now_v7()));
        for each in ["bin", "programs", "tmp", "copy"] {
            fs::create_dir_all(folder.join(each)).unwrap();
        }
        python();
        for each in ["infra", "functions", ".venv"] {
            symlink(root().join(each), folder.join("copy").join(each)).unwrap();
        }
        for function in functions() {
            program(&folder.join("programs").join(&function), &function);
        }
        let stand_in = root().join("tests/tests/repository/deployment/aws.py");
        let command = format!("#!/bin/sh\nexec {} -B {} \"$@\"\n", python().display(), stand_in.display());
        program(&folder.join("bin/aws"), &command);

        let issuer = issuer_of_keys().await;
        let account = Self { folder, issuer };
        let state = json!({
            "account": "123456789012", "buckets": {"code": "eu-central-1", "far": "us-east-1"},
            "stacks": {}, "tables": {}, "secrets": {}, "roles": {}, "log_role": null,
            "executions": 1000, "reserved_by_others": 0,
        });
        fs::write(account.folder.join("account.json"), state.to_string()).unwrap();
        account.parameters(&account.good());
        account
    }

    pub(crate) fn issuer(&self) -> &str {
        &self.issuer.url
    }

    pub(crate) fn good(&self) -> String {
        GOOD.replace("ISSUER", self.issuer())
    }

    /// Writes the parameter file.
    pub(crate) fn parameters(&self, text: &str) {
        fs::write(self.folder.join("parameters"), text).unwrap();
    }

    pub(crate) fn no_parameters(&self) {
        fs::remove_file(self.folder.join("parameters")).unwrap();
    }

    pub(crate) fn state(&self) -> Value {
        serde_json::from_slice(&fs::read(self.folder.join("account.json")).unwrap()).unwrap()
    }

    pub(crate) fn set(&self, key: &str, value: Value) {
        self.set_at(&[key], value);
    }

    pub(crate) fn set_at(&self, path: &[&str], value: Value) {
        let mut state = self.state();
        *path.iter().fold(&mut state, |at, key| &mut at[*key]) = value;
        fs::write(self.folder.join("account.json"), state.to_string()).unwrap();
    }

    pub(crate) fn stack_id(&self) -> String {
        self.state()["stacks"].as_object().unwrap().keys().next_back().unwrap().clone()
    }

    /// The calls that begin with these words.
    pub(crate) fn calls(&self, words: &str) -> Vec<Call> {
        let log = fs::read_to_string(self.folder.join("calls.jsonl")).unwrap_or_default();
        // A running program may not have written its last line whole.
        let (whole, _) = log.rsplit_once('\n').unwrap_or_default();
        let calls = whole.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let calls = calls.map(|call| Call {
            argv: serde_json::from_value(call["argv"].clone()).unwrap(),
            files: call["files"].clone(),
        });
        calls.filter(|call| call.argv.join(" ").starts_with(words)).collect()
    }

    fn command(&self, program: &str, environment: &[(&str, &str)]) -> Command {
        let mut command = Command::new(program);
        let path = format!("{}:{}", self.folder.join("bin").display(), std::env::var_os("PATH").unwrap().display());
        let parameters = self.folder.join("parameters");
        without_aws(&mut command)
            .current_dir(self.folder.join("copy"))
            .envs([("AWS_REGION", "eu-central-1"), ("STACK", "shop"), ("CODE_BUCKET", "code"), ("PATH", &path)])
            .envs([("AWS_STAND_IN", &self.folder), ("PROGRAMS", &self.folder.join("programs"))])
            .env("TMPDIR", self.folder.join("tmp"));
        if parameters.exists() {
            command.env("PARAMETERS", parameters);
        }
        for (name, value) in environment {
            command.env(name, value);
        }
        command
    }

    /// Runs a program of the repository.
    pub(crate) fn run(&self, program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Run {
        let program = self.folder.join("copy").join(program);
        let run = Run::of(self.command(program.to_str().unwrap(), environment).args(arguments));
        self.left_nothing(&run);
        run
    }

    /// Runs a Python program of the repository, whose own first line may find a Python that puts other programs first on the PATH.
    pub(crate) fn run_python(&self, program: &str, arguments: &[&str]) -> Run {
        let program = self.folder.join("copy").join(program);
        Run::of(self.command(python().to_str().unwrap(), &[]).arg("-B").arg(program).args(arguments))
    }

    fn left_nothing(&self, run: &Run) {
        assert_eq!(fs::read_dir(self.folder.join("tmp")).unwrap().count(), 0, "a file was left; the program {run}");
    }

    pub(crate) fn deploy(&self, environment: &[(&str, &str)]) -> Run {
        self.run("infra/deploy", &[], environment)
    }

    pub(crate) fn destroy(&self, environment: &[(&str, &str)]) -> Run {
        self.run("infra/destroy", &[], environment)
    }

    /// Runs the AWS CLI as the operator.
    pub(crate) fn aws(&self, arguments: &[&str]) {
        Run::of(self.command("aws", &[("AWS_DEFAULT_REGION", "eu-central-1")]).args(arguments)).succeeded();
    }

    /// A deployment that receives Ctrl-C during its first call with these words.
    pub(crate) async fn interrupted(&self, words: &str) -> Run {
        let program = self.folder.join("copy/infra/deploy");
        let mut command = self.command(program.to_str().unwrap(), &[]);
        // A terminal sends the signal to the whole process group.
        let mut running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).spawn().unwrap();
        let group = format!("-{}", running.id());
        let mut called = false;
        for _ in 0..3_600 {
            called = !self.calls(words).is_empty();
            if called || running.try_wait().unwrap().is_some() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let killed = Run::of(Command::new("kill").args(["-INT", "--", &group]));
        let ended = running.wait_with_output().unwrap();
        let output = String::from_utf8([ended.stdout, ended.stderr].concat()).unwrap();
        let run = Run { code: ended.status.code(), output };
        assert!(called, "there was no call `{words}`; the deployment {run}");
        killed.succeeded();
        self.left_nothing(&run);
        run
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        // A failing test's own message matters more than a leftover folder.
        let _removed = fs::remove_dir_all(&self.folder);
    }
}

fn program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// An issuer that API Gateway accepts.
async fn issuer_of_keys() -> Server {
    let configuration = |headers: axum::http::HeaderMap| async move {
        let url = format!("http://{}", headers["host"].to_str().unwrap());
        Json(json!({"issuer": url, "jwks_uri": format!("{url}/keys")}))
    };
    let keys = || async { Json(json!({"keys": [{"kty": "RSA", "kid": "1", "n": "AQAB", "e": "AQAB"}]})) };
    Server::start(
        Router::new().route("/.well-known/openid-configuration", get(configuration)).route("/keys", get(keys)),
    )
    .await
}
