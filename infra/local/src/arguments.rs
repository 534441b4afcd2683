//! The command line of `local`.

use std::path::PathBuf;

use crate::{Error, LlmService, Options, Result, ports::Ports};

pub const HELP: &str = "\
Starts Switchboard on this machine: builds the functions, starts a local AWS and stand-ins for VAPI, Twilio, Pipedream
and the LLM, deploys infra/template.yaml, plays the main job once and keeps serving until Ctrl-C.

usage: make run [ARGS=\"OPTIONS\"]   or   cargo run --bin local -- [OPTIONS]

  --port-base PORT   ports of 127.0.0.1: PORT for the API, PORT+1 to PORT+6 for the stand-ins of VAPI, Twilio, Pipedream,
                     the LLM, a CRM and a web site, PORT+7 for streamed answers, PORT+8 for Google's
                     stand-in, PORT+66 for AWS; 0 takes any free ones (default 4500)
  --api-port PORT, --vapi-port PORT, --twilio-port PORT, --pipedream-port PORT, --llm-port PORT, --crm-port PORT,
  --site-port PORT, --stream-port PORT, --google-port PORT, --aws-port PORT
                     one of them; 0 takes any free one
  --open-hosts LIST  hosts (host or host:port, comma separated) that api_request tools may reach although they are private,
                     beside the stand-ins
  --origins LIST     origins (http://localhost:5173, comma separated) whose pages may use the API and the streamed chat, to
                     see what DashboardOrigins does on AWS (default *: a front end of yours on any port)
  --state-dir DIR    where stack.json, env and the logs go (default target/local)
  --no-demo          do not play the main job
  --once             end after the demo, with exit code 0 if it worked
  --help             this text

With LLM_API_KEY in the environment the real service is asked in place of the LLM's stand-in: OpenRouter, or another that
speaks OpenAI's API (LLM_URL); LLM_MODEL names the model (default openrouter/auto).

Files in the state directory: stack.json (addresses, tokens, ids), shell (the same as variables for commands by hand), env (the
functions' environment, for cargo lambda watch --env-file), trial (variables with which docs/getting-started.md is played on
this machine), functions.log, ministack.log.
";

#[derive(Debug, Clone)]
pub enum Command {
    Help,
    Run { options: Options, demo: bool, once: bool },
}

/// Parses the arguments after the program's name; `llm` is the configured real LLM, if any.
///
/// # Errors
/// [`Error::Usage`] naming the argument.
pub fn parse(arguments: impl IntoIterator<Item = String>, llm: Option<LlmService>) -> Result<Command> {
    let mut arguments = arguments.into_iter();
    let mut base = 4500;
    let mut single: Vec<(String, u16)> = Vec::new();
    let mut state_dir = None;
    let mut open_hosts = Vec::new();
    let mut origins = vec!["*".to_owned()];
    let (mut demo, mut once) = (true, false);
    while let Some(argument) = arguments.next() {
        let (name, mut given) = match argument.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (argument, None),
        };
        let mut value =
            || given.take().or_else(|| arguments.next()).ok_or_else(|| Error::Usage(format!("{name} needs a value")));
        match name.as_str() {
            "--help" | "-h" => return Ok(Command::Help),
            "--no-demo" => demo = false,
            "--once" => once = true,
            "--port-base" => base = port(&name, &value()?)?,
            "--api-port" | "--vapi-port" | "--twilio-port" | "--pipedream-port" | "--llm-port" | "--crm-port"
            | "--site-port" | "--stream-port" | "--google-port" | "--aws-port" => {
                let number = port(&name, &value()?)?;
                single.push((name, number));
            }
            "--open-hosts" => open_hosts = list(&value()?),
            "--origins" => origins = list(&value()?),
            "--state-dir" => state_dir = Some(PathBuf::from(value()?)),
            _ => return Err(Error::Usage(format!("{name} is no option"))),
        }
    }
    let mut ports = Ports::from_base(base)
        .ok_or_else(|| Error::Usage(format!("--port-base {base} leaves no room for the ports after it")))?;
    for (name, port) in single {
        match name.as_str() {
            "--api-port" => ports.api = port,
            "--vapi-port" => ports.vapi = port,
            "--twilio-port" => ports.twilio = port,
            "--pipedream-port" => ports.pipedream = port,
            "--llm-port" => ports.llm = port,
            "--crm-port" => ports.crm = port,
            "--site-port" => ports.site = port,
            "--stream-port" => ports.stream = port,
            "--google-port" => ports.google = port,
            _ => ports.aws = port,
        }
    }
    let state_dir = match state_dir {
        Some(directory) => directory,
        None => crate::default_state_dir()?,
    };
    Ok(Command::Run {
        options: Options { state_dir, ports, open_hosts, origins, llm, beside_tests: false },
        demo,
        once,
    })
}

fn list(text: &str) -> Vec<String> {
    text.split(',').map(|item| item.trim().to_owned()).collect()
}

fn port(name: &str, value: &str) -> Result<u16> {
    value.parse().map_err(|_not_a_port| Error::Usage(format!("{name} takes a port from 0 to 65535, not `{value}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command> {
        parse(line.split_whitespace().map(str::to_owned), None)
    }

    #[test]
    fn every_option_is_understood_in_both_spellings() {
        let line = "--port-base=0 --stream-port=4998 --aws-port 4999 --state-dir=/tmp/x --no-demo --once --open-hosts a:1,b \
             --origins http://localhost:5173,https://app.example";
        let Command::Run { options, demo, once } = parsed(line).unwrap() else { panic!("not a run") };
        assert_eq!((options.ports.api, options.ports.stream, options.ports.aws), (0, 4998, 4999));
        assert_eq!(options.state_dir, PathBuf::from("/tmp/x"));
        assert_eq!(options.open_hosts, ["a:1", "b"]);
        assert_eq!(options.origins, ["http://localhost:5173", "https://app.example"]);
        assert!(!demo && once);
        assert!(matches!(parsed("--once --help"), Ok(Command::Help)));
        let Command::Run { options, .. } = parsed("").unwrap() else { panic!("not a run") };
        assert_eq!(options.origins, ["*"]);
    }

    #[test]
    fn a_wrong_argument_is_named() {
        for (line, named) in [
            ("--port", "--port"),
            ("--port-base", "--port-base"),
            ("--port-base abc", "abc"),
            ("--port-base 70000", "70000"),
            ("--port-base 65500", "65500"),
        ] {
            let error = parsed(line).unwrap_err().to_string();
            assert!(error.contains(named), "{line}: {error}");
        }
    }
}
