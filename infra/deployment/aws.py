"""The AWS CLI, which has the operator's account, region and credentials.

What is secret goes to it by a file: every user of a machine can read command lines.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile


class Failed(Exception):
    """The AWS CLI ended with an error; the text is what it said."""


def environment():
    """As the CLI is run: it asks nothing and pages nothing, and reads our files whatever the terminal's language is."""
    given = {**os.environ, "AWS_PAGER": "", "AWS_CLI_AUTO_PROMPT": "off", "AWS_CLI_FILE_ENCODING": "UTF-8", "PYTHONUTF8": "1"}
    # Version 1 of the CLI knows only the second name, version 2 both.
    region = given.get("AWS_REGION") or given.get("AWS_DEFAULT_REGION")
    return {**given, "AWS_REGION": region, "AWS_DEFAULT_REGION": region} if region else given


def run(*arguments):
    """Runs it before the operator's eyes."""
    if subprocess.run(["aws", *arguments], env=environment()).returncode:
        raise Failed("The AWS CLI's own message is above.")


def ask(*arguments):
    """What it answers, read from JSON; None where it answers nothing."""
    command = ["aws", *arguments, "--output", "json"]
    ended = subprocess.run(command, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, encoding="utf-8")
    if ended.returncode:
        raise Failed(" ".join(ended.stderr.split()) or f"aws {arguments[0]} {arguments[1]} ended with {ended.returncode}")
    return json.loads(ended.stdout) if ended.stdout.strip() else None


def region():
    """The region everything goes to; None where none is set up."""
    given = environment().get("AWS_REGION")
    if given:
        return given
    configured = subprocess.run(["aws", "configure", "get", "region"], env=environment(), capture_output=True, text=True)
    return configured.stdout.strip() or None


def account():
    """Account and region, told to the operator; or Failed with what is missing."""
    try:
        identity = ask("sts", "get-caller-identity")
    except FileNotFoundError:
        raise Failed("The AWS CLI is needed and not on the PATH: https://aws.amazon.com/cli/.") from None
    except Failed as error:
        raise Failed(
            f"The AWS CLI cannot use an account: {error}\n"
            "    Sign in (aws sso login, aws configure), or name a profile: AWS_PROFILE=name make …"
        ) from None
    where = region()
    if not where:
        raise Failed("No region is set: AWS_REGION=eu-central-1 make …, or aws configure set region eu-central-1.")
    return identity["Account"], where


class PrivateFolder:
    """A folder that only this user can read; it is gone when the program ends, also by a signal."""

    def __enter__(self):
        os.umask(0o077)
        self._folder = tempfile.TemporaryDirectory(prefix="switchboard-")
        self.path = self._folder.name
        return self

    def __exit__(self, *_ended):
        self._folder.cleanup()

    def write(self, name, content):
        """Writes JSON in ASCII; gives the file as the AWS CLI wants it."""
        path = pathlib.Path(self.path, name)
        path.write_text(json.dumps(content), encoding="ascii")
        return f"file://{path}"


class Stopped(BaseException):
    """A signal asked the program to end."""


def stop_by_signals():
    """Makes signals that end a program leave through every `with` and `finally` first."""

    def stop(number, _frame):
        # A second signal must not interrupt the clean-up.
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, signal.SIG_IGN)
        raise Stopped(number)

    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, stop)


def say(text=""):
    print(text, flush=True)


def refuse(problems):
    """Ends the program with everything that is wrong."""
    count = "This is" if len(problems) == 1 else f"These {len(problems)} things are"
    say_wrong = "".join(f"\n  - {problem}" for problem in problems)
    sys.exit(f"{count} in the way, and nothing was changed:{say_wrong}")
