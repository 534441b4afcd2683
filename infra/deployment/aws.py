"""Runs the AWS CLI with the operator's account, region and credentials.

Secrets are passed in files, because every user of a machine can read command lines.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile


class Failed(Exception):
    """The AWS CLI failed; the text is its error message."""


def environment():
    """The CLI's environment: no prompts, no pager, and files in UTF-8 in every locale."""
    given = {**os.environ, "AWS_PAGER": "", "AWS_CLI_AUTO_PROMPT": "off", "AWS_CLI_FILE_ENCODING": "UTF-8", "PYTHONUTF8": "1"}
    # Version 1 of the CLI knows only the second name, version 2 both.
    region = given.get("AWS_REGION") or given.get("AWS_DEFAULT_REGION")
    return {**given, "AWS_REGION": region, "AWS_DEFAULT_REGION": region} if region else given


def run(*arguments):
    """Runs the CLI with its output on the terminal."""
    if subprocess.run(["aws", *arguments], env=environment()).returncode:
        raise Failed("The AWS CLI's own message is above.")


def ask(*arguments):
    """The parsed JSON output of the CLI; None if it is empty."""
    command = ["aws", *arguments, "--output", "json"]
    ended = subprocess.run(command, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, encoding="utf-8")
    if ended.returncode:
        raise Failed(" ".join(ended.stderr.split()) or f"aws {arguments[0]} {arguments[1]} ended with {ended.returncode}")
    return json.loads(ended.stdout) if ended.stdout.strip() else None


def region():
    """The configured region, or None."""
    given = environment().get("AWS_REGION")
    if given:
        return given
    configured = subprocess.run(["aws", "configure", "get", "region"], env=environment(), capture_output=True, text=True)
    return configured.stdout.strip() or None


def account():
    """Prints and returns account and region; raises Failed with the missing setting."""
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
    """A folder that only this user can read; it is deleted when the program ends, even by a signal."""

    def __enter__(self):
        os.umask(0o077)
        self._folder = tempfile.TemporaryDirectory(prefix="switchboard-")
        self.path = self._folder.name
        return self

    def __exit__(self, *_ended):
        self._folder.cleanup()

    def write(self, name, content):
        """Writes JSON in ASCII; returns the file in the AWS CLI's notation."""
        path = pathlib.Path(self.path, name)
        path.write_text(json.dumps(content), encoding="ascii")
        return f"file://{path}"


class Stopped(BaseException):
    """A signal ended the program."""


def stop_by_signals():
    """Turns terminating signals into an exception, so that every `with` and `finally` runs."""

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
    """Ends the program with a list of all problems."""
    count = "This is" if len(problems) == 1 else f"These {len(problems)} things are"
    say_wrong = "".join(f"\n  - {problem}" for problem in problems)
    sys.exit(f"{count} in the way, and nothing was changed:{say_wrong}")
