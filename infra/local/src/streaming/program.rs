//! Runs the deployed program as local processes, as the local AWS runs the other functions.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use futures_util::future::BoxFuture;
use tokio::{process::Command, task::JoinHandle};
use zip::ZipArchive;

use super::function::Function;
use crate::{
    Error, Result,
    aws::{Aws, REGION, xml_texts},
    lambda::{Launch, Log, as_lambda, run},
    programs::Package,
};

/// Lifetime of the credentials in seconds: the maximum of a role's session.
const CREDENTIALS_LAST: &str = "43200";

/// The unpacked code of a function.
pub(super) struct Program {
    directory: PathBuf,
    aws: Aws,
    function: Arc<Function>,
    log: Log,
}

impl Program {
    /// Unpacks the deployed package, so that a later build does not change the running stack.
    pub(super) fn unpack(
        package: &Package,
        directory: &Path,
        aws: &Aws,
        function: Arc<Function>,
        log: Log,
    ) -> Result<Self> {
        let unpacked = || -> io::Result<()> {
            if directory.exists() {
                fs::remove_dir_all(directory)?;
            }
            fs::create_dir_all(directory)?;
            ZipArchive::new(File::open(&package.zip)?)?.extract(directory)?;
            Ok(())
        };
        unpacked().map_err(Error::file(format!("unpack {}", package.zip.display())))?;
        Ok(Self { directory: directory.to_owned(), aws: aws.clone(), function, log })
    }

    /// The program with the environment that Lambda sets.
    async fn command(&self, runtime_api: &str) -> Result<Command> {
        let function = &self.function;
        let [key, secret, token] = self.credentials().await?;
        let mut command = Command::new(self.directory.join("bootstrap"));
        command
            .current_dir(&self.directory)
            // The developer's shell must not leak into the environment.
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _value)| name == "PATH" || name == "LANG"))
            .envs(&function.variables)
            .envs([
                ("AWS_REGION", REGION),
                ("AWS_DEFAULT_REGION", REGION),
                ("AWS_ENDPOINT_URL", self.aws.endpoint()),
                // The local AWS has a single host name.
                ("AWS_DISABLE_HOST_PREFIX_INJECTION", "true"),
                ("AWS_ACCESS_KEY_ID", &key),
                ("AWS_SECRET_ACCESS_KEY", &secret),
                ("AWS_SESSION_TOKEN", &token),
                ("TZ", ":UTC"),
                ("_HANDLER", "bootstrap"),
            ])
            .env("LAMBDA_TASK_ROOT", &self.directory);
        as_lambda(&mut command, &function.configuration, runtime_api);
        Ok(command)
    }

    /// Key, secret and session token of the function's role.
    async fn credentials(&self) -> Result<[String; 3]> {
        let parameters = [
            ("RoleArn", self.function.role.as_str()),
            ("RoleSessionName", &self.function.configuration.name),
            ("DurationSeconds", CREDENTIALS_LAST),
            ("Version", "2011-06-15"),
        ];
        let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let answer = self.aws.query("sts", "AssumeRole", &parameters).await?;
        let text = |field| {
            let missing = || Error::AwsAnswer { action: "AssumeRole".to_owned(), field };
            xml_texts(&answer, field).into_iter().next().ok_or_else(missing)
        };
        Ok([text("AccessKeyId")?, text("SecretAccessKey")?, text("SessionToken")?])
    }
}

impl Launch for Program {
    fn launch(&self, runtime_api: String) -> BoxFuture<'_, std::result::Result<JoinHandle<String>, String>> {
        Box::pin(async move {
            let command = self.command(&runtime_api).await.map_err(|error| error.to_string())?;
            run(command, Arc::clone(&self.log)).map_err(|error| format!("The program did not start: {error}"))
        })
    }
}
