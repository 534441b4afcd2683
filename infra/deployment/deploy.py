"""Builds the functions, uploads them and deploys infra/template.yaml with CloudFormation.

usage: make deploy CODE_BUCKET=name          or with these variables in the environment: infra/deploy

  CODE_BUCKET    S3 bucket for the zip files, in the region of the stack (default: that of the last deployment)
  STACK          name of the stack (default switchboard)
  ARCHITECTURE   arm64 or x86_64 (default: that of the last deployment, at first arm64)
  PARAMETERS     file with the template's other parameters, one Key=Value a line, # begins a comment
                 (default infra/deploy.parameters; see infra/deploy.parameters.example)
  ADOPT          1: takes over the tables and the key that are there and not the stack's: kept by `make destroy` of an earlier stack of the
                 same release, or left behind when an older template was deployed. Then queues each unfinished run of an automation again
  PROGRAMS       programs that are built already, for a local AWS: see infra/build

Account, region and credentials are those of the AWS CLI (AWS_PROFILE, AWS_REGION, ...). Everything that can be checked is checked
before anything is built or made, and all that is wrong is told at once. A later deployment may leave parameters out, or the file:
CloudFormation then keeps their values.

  infra/deploy --failures    only prints what failed in the last deployment, and why
"""

import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import account_settings
import aws
import issuer
import parameters
import stack_state
import template
import unfinished_runs

class Deployment:
    """The settings and the current state of a deployment."""

    def __init__(self, given):
        self.name = given.get("STACK") or "switchboard"
        self.bucket = given.get("CODE_BUCKET")
        self.architecture = given.get("ARCHITECTURE")
        self.file = pathlib.Path(given.get("PARAMETERS") or "infra/deploy.parameters")
        self.file_named = bool(given.get("PARAMETERS"))
        self.adopts = bool(given.get("ADOPT"))
        self.template = template.ours()
        self.values = {}
        # The stack's current state; unknown until the CLI has an account.
        self.found = None
        self.region = None
        # Remains of an earlier stack of this name: names of tables by logical id, and ARNs of secrets.
        self.left_tables, self.left_secrets = {}, {}
        # Whether these tables are protected against deletion.
        self.left_protection = set()

    # ------------------------------------------------------------------------------------------------------------ checks

    def problems(self):
        found = self._of_account()
        first = self.region is not None and self.found is None
        if not re.fullmatch("[A-Za-z][A-Za-z0-9-]{0,39}", self.name):
            found.append(f"STACK is '{self.name}': a stack's name has letters, digits and -, begins with a letter, and is at most 40 long")
        if self.architecture not in (None, "", "arm64", "x86_64"):
            found.append(f"ARCHITECTURE is '{self.architecture}': it can be arm64 or x86_64")
        found += self._of_parameters(first)
        return found + self._of_account_settings() if self.region else found

    def _of_account(self):
        try:
            account, self.region = aws.account()
            aws.say(f"stack {self.name} in account {account}, region {self.region}")
            self.found = stack_state.describe(self.name)
        except aws.Failed as error:
            return [str(error)]
        if self.found:
            in_the_way = stack_state.obstacle(self.name, self.found)
            if in_the_way:
                return [in_the_way]
            before = stack_state.parameters(self.found)
            self.bucket = self.bucket or before.get("CodeBucket")
            self.architecture = self.architecture or before.get("Architecture")
        try:
            return self._of_bucket() + self._of_what_is_left() + self._of_tables()
        except aws.Failed as error:
            return [f"What is there already cannot be read: {error}"]

    def _of_bucket(self):
        if not self.bucket:
            return ["CODE_BUCKET is missing: make deploy CODE_BUCKET=<an S3 bucket of yours>; aws s3 mb s3://<a new name> makes one"]
        try:
            where = aws.ask("s3api", "get-bucket-location", "--bucket", self.bucket) or {}
        except aws.Failed as error:
            return [f"CODE_BUCKET={self.bucket} cannot be used: {error}\n      aws s3 mb s3://{self.bucket}   would make it"]
        region = {None: "us-east-1", "EU": "eu-west-1"}.get(where.get("LocationConstraint"), where.get("LocationConstraint"))
        if region != self.region:
            return [
                f"CODE_BUCKET={self.bucket} is in {region} and the stack in {self.region}, where Lambda takes code only from its own "
                f"region: name a bucket in {self.region}, or deploy to the other with AWS_REGION={region}"
            ]
        return []

    def _of_what_is_left(self):
        """Problems with names of new resources that are already taken."""
        present = stack_state.resources(self.name) if self.found else {}
        tables = {logical: name for logical, name in template.named(self.template, self.name, template.TABLE).items() if logical not in present}
        existing = stack_state.tables(tables.values()) if tables else []
        self.left_tables = {logical: name for logical, name in tables.items() if name in existing}
        secrets = stack_state.secrets(self.name)
        for logical, name in template.named(self.template, self.name, template.SECRET).items():
            if logical not in present and name in secrets:
                self.left_secrets[logical] = {"name": name, **secrets[name]}
        keepable = template.kept(self.template, self.name, template.SECRET)
        found = [self._unusable(secret) for logical, secret in self.left_secrets.items() if secret["waits"] or logical not in keepable]
        names = list(self.left_tables.values()) + [secret["name"] for logical, secret in self.left_secrets.items() if logical in keepable]
        if names and self.found and not self.adopts:
            found.append(
                f"{_list(names)} exist and are not the stack's: an older template or a deployment that failed has left them, or another "
                "program made them\n"
                f"      make deploy STACK={self.name} CODE_BUCKET={self.bucket or '…'} ADOPT=1    takes them over, with all that is in them"
            )
        elif names and not self.adopts:
            found.append(
                f"{_list(names)} exist already: an earlier stack {self.name} has left them (or another program made them). Either\n"
                f"      make deploy STACK={self.name} CODE_BUCKET={self.bucket or '…'} ADOPT=1    takes them over, with all that is in them, or\n"
                f"      make destroy STACK={self.name} DATA=delete    deletes them and all that is in them, or\n"
                f"      make deploy STACK=<another name> CODE_BUCKET={self.bucket or '…'}    leaves them alone"
            )
        elif names:
            found += self._of_adopted_tables()
        return found

    def _of_adopted_tables(self):
        """Tables of another release: an import takes a table as it is, and no deployment after it would notice the difference."""
        found = []
        for logical, name in self.left_tables.items():
            described, expires_by = stack_state.table(name)
            differences = template.differences(self.template["Resources"][logical]["Properties"], described, expires_by)
            protected = described.get("DeletionProtectionEnabled", False)
            if differences:
                problem = f"{name} is of another release ({'; '.join(differences)}): check that release out, deploy it with ADOPT=1, then upgrade"
                found.append(problem + self._of_empty_table(name, protected) if self.found else problem)
            self.left_protection.add(protected)
            if self.found and protected != self._protected_before():
                found.append(
                    f"{name} is {'' if protected else 'not '}protected against deletion, unlike the stack's tables\n"
                    f"      aws dynamodb update-table --table-name {name} --{'no-' if protected else ''}deletion-protection-enabled"
                )
        return found

    @staticmethod
    def _of_empty_table(name, protected):
        """The commands for a table that a failed creation has left: no release has its definition."""
        unprotect = f"\n      aws dynamodb update-table --table-name {name} --no-deletion-protection-enabled" if protected else ""
        return (
            "; or, if nothing is in it, delete it:\n"
            f"      aws dynamodb scan --table-name {name} --select COUNT{unprotect}\n"
            f"      aws dynamodb delete-table --table-name {name}"
        )

    def _protected_before(self):
        before = stack_state.parameters(self.found)
        return before.get("DeletionProtection") == "true" and before.get("FirstDeployment") != "true"

    def _unusable(self, secret):
        if secret["waits"]:
            return (
                f"the secret {secret['name']} waits for its deletion, and its name is taken until then. Get it back, or delete it now:\n"
                f"      aws secretsmanager restore-secret --secret-id {secret['name']}{_deletion(secret['name'])}"
            )
        return f"the secret {secret['name']} exists and is not the stack's. If nobody needs it, delete it:{_deletion(secret['name'])}"

    def _deployed(self):
        return aws.ask("cloudformation", "get-template", "--stack-name", self.name, "--template-stage", "Original")["TemplateBody"]

    def _of_tables(self):
        if not self.found:
            return []
        impossible = template.impossible(template.tables(template.read(self._deployed())), template.tables(self.template))
        return [f"{problem}. If releases lie between, deploy them one after another" for problem in impossible]

    def _of_parameters(self, first):
        try:
            self.values, found = parameters.read(self.file)
        except OSError as error:
            if self.file_named:
                return [f"PARAMETERS={self.file} cannot be read: {error.strerror}"]
            if first:
                return [f"{self.file} is missing: cp infra/deploy.parameters.example {self.file}, and fill it in"]
            return []
        wrong = parameters.problems(self.values, self.template["Parameters"], stack_state.parameters(self.found or {}), first, self.file)
        of_issuer = ("JwtIssuer", "OidcConfigurationUrl", "JwksUrl")
        if "JwtIssuer" in self.values and not any(problem.startswith(of_issuer) for problem in wrong):
            wrong += issuer.problems(self.values)
        return found + wrong

    def _of_account_settings(self):
        known = self.template["Parameters"]
        before = stack_state.parameters(self.found) if self.found else {}
        defaults = {key: parameter["Default"] for key, parameter in known.items() if "Default" in parameter}
        sizes = known["AccountConcurrency"]["AllowedValues"]
        return account_settings.problems({**defaults, **before, **self.values}, before, self.name, sizes, self.file)

    # -------------------------------------------------------------------------------------------------------- deployment

    def upload(self, folder):
        """Uploads the packages of infra/build; returns their key prefix."""
        programs = {path.parent.name: path.resolve() for path in sorted(pathlib.Path("target/lambda").glob("*/bootstrap.zip"))}
        functions = sorted(path.name for path in pathlib.Path("functions").iterdir() if path.is_dir())
        digest = hashlib.sha256()
        links = pathlib.Path(folder.path, "code")
        links.mkdir()
        for function in functions:
            digest.update(programs[function].read_bytes())
            (links / f"{function}.zip").symlink_to(programs[function])
        # One prefix per set of programs: Lambda updates its code when the key changes.
        prefix = f"{self.name}/{digest.hexdigest()[:16]}"
        aws.say(f"uploading {len(functions)} functions to s3://{self.bucket}/{prefix}")
        aws.run("s3", "cp", "--recursive", "--only-show-errors", str(links), f"s3://{self.bucket}/{prefix}")
        return prefix

    def adopt(self, folder, values):
        """Imports the kept resources, into a stack of their own if there is none: CloudFormation does nothing else in the same operation."""
        imported = [
            {"ResourceType": template.TABLE, "LogicalResourceId": logical, "ResourceIdentifier": {"TableName": name}}
            for logical, name in self.left_tables.items()
        ] + [
            {"ResourceType": template.SECRET, "LogicalResourceId": logical, "ResourceIdentifier": {"Id": secret["arn"]}}
            for logical, secret in self.left_secrets.items()
        ]
        aws.say(f"taking over {len(imported)} resources of an earlier stack {self.name}")
        changes = f"adopt-{int(time.time())}"
        of_changes = ("--stack-name", self.name, "--change-set-name", changes)
        logicals = [*self.left_tables, *self.left_secrets]
        request = {
            "StackName": self.name,
            "ChangeSetName": changes,
            "ChangeSetType": "IMPORT",
            "ResourcesToImport": imported,
            **(self._into_stack(folder, logicals) if self.found else self._into_new_stack(logicals, values)),
        }
        aws.ask("cloudformation", "create-change-set", "--cli-input-json", folder.write("adopt.json", request))
        try:
            aws.ask("cloudformation", "wait", "change-set-create-complete", *of_changes)
        except aws.Failed:
            pass  # why, the change set says better
        changes = aws.ask("cloudformation", "describe-change-set", *of_changes)
        if changes["ExecutionStatus"] != "AVAILABLE":
            raise aws.Failed(f"They cannot be taken over: {changes.get('StatusReason', changes['Status'])}")
        aws.run("cloudformation", "execute-change-set", *of_changes)
        aws.run("cloudformation", "wait", "stack-import-complete", "--stack-name", self.name)

    def _into_new_stack(self, logicals, values):
        if self.left_protection - {self.protects()}:
            # The deployment after the import sets only properties that differ from the import's.
            values = {**values, "DeletionProtection": "true", "FirstDeployment": "true" if self.protects() else "false"}
        return {
            "TemplateBody": json.dumps(template.only(self.template, logicals), separators=(",", ":")),
            "Parameters": [{"ParameterKey": key, "ParameterValue": value} for key, value in values.items()],
        }

    def _into_stack(self, folder, logicals):
        path = pathlib.Path(folder.path, "adopt.yaml")
        path.write_text(template.with_ours(self._deployed(), logicals), encoding="utf-8")
        # The template exceeds the limit of a request.
        place = f"{self.bucket}/{self.name}/template/adopt.yaml"
        aws.run("s3", "cp", "--only-show-errors", str(path), f"s3://{place}")
        return {
            "TemplateURL": f"https://s3.{self.region}.{'amazonaws.com.cn' if self.region.startswith('cn-') else 'amazonaws.com'}/{place}",
            "Capabilities": ["CAPABILITY_IAM"],
            "Parameters": [{"ParameterKey": key, "UsePreviousValue": True} for key in stack_state.parameters(self.found)],
        }

    def deploy(self, folder, values):
        # As one list of "Key=Value" texts, which versions 1 and 2 of the CLI both read from a file.
        overrides = folder.write("parameters.json", [f"{key}={value}" for key, value in values.items()])
        # The template exceeds the limit of a request, so it goes through the bucket too.
        command = (
            *("cloudformation", "deploy", "--stack-name", self.name, "--template-file", str(template.PATH)),
            *("--s3-bucket", self.bucket, "--s3-prefix", f"{self.name}/template"),
            *("--capabilities", "CAPABILITY_IAM", "--no-fail-on-empty-changeset", "--parameter-overrides", overrides),
        )
        try:
            aws.run(*command)
        except aws.Failed:
            found = stack_state.when_ended(self.name)
            if not found or found["StackStatus"] not in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
                raise
            # Another deployment may have come first, and this one was refused.
            deployed = stack_state.parameters(found)
            if any(deployed.get(key) != values[key] for key in ("CodePrefix", "FirstDeployment")):
                raise

    def protects(self):
        default = self.template["Parameters"]["DeletionProtection"]["Default"]
        return self.values.get("DeletionProtection", default) == "true"


def _list(names):
    return f"{', '.join(names[:3])} and {len(names) - 3} more" if len(names) > 4 else " and ".join(names)


def _deletion(secret):
    return f"\n      aws secretsmanager delete-secret --secret-id {secret} --force-delete-without-recovery"


def run(deployment, steps):
    """Checks and deploys; reports its progress to `steps`."""
    in_the_way = deployment.problems()
    if in_the_way:
        aws.refuse(in_the_way)
    architecture = deployment.architecture or "arm64"
    if subprocess.run(["infra/build"], env={**os.environ, "ARCHITECTURE": architecture}).returncode:
        sys.exit("The functions could not be built: what is wrong is above. Nothing was deployed.")
    with aws.PrivateFolder() as folder:
        code = {"CodeBucket": deployment.bucket, "CodePrefix": deployment.upload(folder), "Architecture": architecture}
        values = {**deployment.values, **code, "FirstDeployment": "false"}
        first = deployment.found is None
        steps.append("deploying")
        try:
            if deployment.left_tables or deployment.left_secrets:
                deployment.adopt(folder, values)
                first = False
            # A protected table could not be removed if the creation fails, and would block the next attempt.
            deployment.deploy(folder, {**values, "FirstDeployment": "true"} if first and deployment.protects() else values)
        except aws.Failed as error:
            failed(deployment.name, error)
        if first and deployment.protects():
            aws.say("Everything is made; now the tables are protected against deletion.")
            try:
                deployment.deploy(folder, values)
            except aws.Failed:
                stack_state.show_failures(deployment.name)
                sys.exit("Everything is deployed, but the tables are not protected against deletion yet: make deploy does it again.")
        if deployment.adopts:
            try:
                unfinished_runs.queue(deployment.name, folder)
            except aws.Failed as error:
                sys.exit(
                    f"Everything is deployed, but not all unfinished runs of automations are on their queue again: {error}\n"
                    f"      make deploy STACK={deployment.name} ADOPT=1    does it again"
                )
    aws.run("cloudformation", "describe-stacks", "--stack-name", deployment.name, "--query", "Stacks[0].Outputs", "--output", "table")
    aws.say(
        "The services with their tools and events are no part of the stack. After the first deployment, and after each upgrade that changes\n"
        f"infra/catalogue, this loads them:\n      make catalogue STACK={deployment.name}"
    )


def failed(name, error):
    """Ends the program with the failure and the next step."""
    aws.say(str(error))
    found = stack_state.describe(name)
    if not found:
        stack_state.delete_empty(name)
        sys.exit("The deployment failed, and nothing was made.")
    stack_state.show_failures(name)
    status = found["StackStatus"]
    sys.exit(
        stack_state.obstacle(name, found)
        or f"The deployment failed, and everything is again as it was before ({status}). Mend what is named above and deploy again."
    )


def main():
    if sys.argv[1:] in (["--help"], ["-h"]):
        print(__doc__.strip())
        return
    deployment = Deployment(os.environ)
    if sys.argv[1:] == ["--failures"]:
        stack_state.show_failures(deployment.name)
        return
    if sys.argv[1:]:
        sys.exit(f"infra/deploy takes no argument '{sys.argv[1]}': infra/deploy --help says what it takes.")
    aws.stop_by_signals()
    steps = []
    try:
        run(deployment, steps)
    except aws.Failed as error:
        sys.exit(str(error))
    except aws.Stopped as stopped:
        name = deployment.name
        told = (
            f"Stopped watching. CloudFormation goes on by itself if it had begun:\n"
            f"      aws cloudformation describe-stacks --stack-name {name} --query 'Stacks[0].StackStatus' --output text\n"
            "When that says no more IN_PROGRESS, make deploy says what to do next, or deploys again."
            if steps
            else "Stopped before anything was deployed: deploy again whenever you like."
        )
        print(f"\n{told}", file=sys.stderr)
        sys.exit(128 + stopped.args[0])


if __name__ == "__main__":
    main()
