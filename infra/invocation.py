"""Invokes the function `operator`, on AWS or in the running local stack.

On AWS it uses the AWS CLI with its account, region and credentials: permission for `lambda:InvokeFunction` of this function makes
an operator.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "deployment"))
import aws  # noqa: E402

LOCAL = pathlib.Path(__file__).resolve().parent.parent / "target/local/stack.json"
# The payload limit of an invocation, in bytes.
LARGEST = 6 * 1024 * 1024


def invoke(stack, event):
    """The function's answer; ends the program with a message if it fails. Without `stack`, the local stack."""
    payload = json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()
    if len(payload) > LARGEST:
        sys.exit(f"The event has {len(payload)} bytes, and an invocation carries {LARGEST}.")
    answer = on_aws(stack, payload) if stack else locally(payload)
    if "errorMessage" in answer:
        sys.exit(f"The function failed ({answer.get('errorType')}): {answer['errorMessage']}")
    return answer


def address(stack):
    """The API's address, or a placeholder if it is unknown."""
    unknown = "https://<the address of the API>"
    if not stack:
        return local_stack().get("api_url", unknown)
    query = "Stacks[0].Outputs[?OutputKey=='ApiUrl'].OutputValue"
    command = ["aws", "cloudformation", "describe-stacks", "--stack-name", stack, "--query", query, "--output", "text"]
    # An operator may be allowed to invoke the function but not to read the stack.
    found = subprocess.run(command, env=aws.environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return found.stdout.strip() or unknown


def on_aws(stack, payload):
    with tempfile.TemporaryDirectory() as folder:
        event, answer = pathlib.Path(folder, "event.json"), pathlib.Path(folder, "answer.json")
        event.write_bytes(payload)
        command = ["aws", "lambda", "invoke", "--function-name", f"{stack}-operator", "--payload", f"fileb://{event}"]
        command += ["--cli-read-timeout", "90", str(answer)]
        try:
            subprocess.run(command, env=aws.environment(), check=True, stdout=subprocess.DEVNULL)
        except FileNotFoundError:
            sys.exit("The AWS CLI is needed: https://aws.amazon.com/cli/.")
        except subprocess.CalledProcessError:
            sys.exit("The function could not be invoked; the AWS CLI's own message is above.")
        return json.loads(answer.read_text(encoding="utf-8"))


def local_stack():
    try:
        return json.loads(LOCAL.read_text(encoding="utf-8"))
    except OSError:
        sys.exit("No local stack is running: start one with make run, or name a stack on AWS with STACK=name.")


def locally(payload):
    stack = local_stack()
    url = f"{stack['endpoint_url']}/2015-03-31/functions/{stack['stack_name']}-operator/invocations"
    # The local AWS needs a key but does not verify signatures.
    scope = f"test/20260101/{stack['region']}/lambda/aws4_request"
    signed = f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0"
    headers = {"Content-Type": "application/json", "Authorization": signed, "X-Amz-Date": "20260101T000000Z"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, payload, headers), timeout=90) as answer:
            return json.load(answer)
    except (urllib.error.URLError, TimeoutError) as error:
        sys.exit(f"The local stack does not answer ({error}): is make run still serving?")
