"""Deletes the stack, and keeps its data; with DATA=delete, deletes the data too.

usage: make destroy STACK=name               or with these variables in the environment: infra/destroy

  STACK      name of the stack; it is never guessed
  DATA       delete: the tables and secrets that outlive a stack are deleted as well, also those of a stack that is gone already
  CONFIRM    the stack's name, where nobody can be asked to type it

What will be deleted and what is kept is told first; then the name has to be typed. Tables that are protected against deletion are
not deleted: the protection is taken off first, on purpose. Account, region and credentials are those of the AWS CLI.
"""

import collections
import os
import sys

import aws
import stack_state
import template

# Resource types worth naming to the operator.
NAMES = {
    "AWS::Lambda::Function": "functions",
    "AWS::Logs::LogGroup": "log groups, with all logs",
    "AWS::SQS::Queue": "queues, with what waits in them: runs of automations stop, and events and async tools are lost",
    "AWS::ApiGatewayV2::Api": "HTTP API: its address, which VAPI and Twilio know, never comes back",
    "AWS::Scheduler::ScheduleGroup": "schedule group, with all schedules of automations and the ends of runs' pauses",
    "AWS::SecretsManager::Secret": "secrets (the keys of infra/deploy.parameters), for good",
    "AWS::DynamoDB::Table": "tables",
}


def main():
    if sys.argv[1:] in (["--help"], ["-h"]):
        print(__doc__.strip())
        return
    if sys.argv[1:]:
        sys.exit(f"infra/destroy takes no argument '{sys.argv[1]}': infra/destroy --help says what it takes.")
    name, data = os.environ.get("STACK"), os.environ.get("DATA", "")
    if not name:
        sys.exit("STACK is missing: make destroy STACK=<the stack's name>, as in aws cloudformation describe-stacks.")
    if data not in ("", "delete"):
        sys.exit(f"DATA is '{data}': it can only be delete; without it the data is kept.")
    aws.stop_by_signals()
    try:
        destroy(name, data == "delete")
    except aws.Failed as error:
        sys.exit(str(error))
    except aws.Stopped as stopped:
        print(
            f"\nStopped. What CloudFormation had begun it carries to its end; make destroy STACK={name} says what is left, and goes on.",
            file=sys.stderr,
        )
        sys.exit(128 + stopped.args[0])


def destroy(name, with_data):
    account, region = aws.account()
    found = stack_state.describe(name)
    if found:
        body = aws.ask("cloudformation", "get-template", "--stack-name", name, "--template-stage", "Original")["TemplateBody"]
        deployed = template.read(body)
    else:
        deployed = template.ours()
    left_tables = stack_state.tables(template.kept(deployed, name, template.TABLE).values())
    # The functions create the secrets of organizations and numbers, so no template has them.
    of_stack = set(template.named(deployed, name, template.SECRET).values()) - set(template.kept(deployed, name, template.SECRET).values())
    left_secrets = [secret for secret, now in stack_state.secrets(name).items() if secret not in of_stack and not now["waits"]]
    if not found and not (left_tables or left_secrets):
        sys.exit(f"There is no stack {name} in account {account}, region {region}, and nothing is left of one.")
    in_the_way = problems(name, found, left_tables if with_data else [])
    if in_the_way:
        aws.refuse(in_the_way)

    aws.say(f"stack {name} in account {account}, region {region}" + ("" if found else " (which is gone already)"))
    bucket = announce(name, found, deployed, left_tables, left_secrets, with_data)
    confirm(name)

    if found:
        delete_stack(name)
    if with_data:
        delete_data(name, deployed, left_tables, left_secrets)
    else:
        tell_what_is_kept(name, bucket, left_tables, left_secrets)
    if bucket:
        aws.say(f"\nThe code is still in the bucket: aws s3 rm --recursive s3://{bucket}/{name}/")


def problems(name, found, to_delete):
    """The reasons that prevent a deletion."""
    in_the_way = []
    status = found["StackStatus"] if found else ""
    # Deletion is the way out of every other failed state.
    if status.endswith("_IN_PROGRESS"):
        in_the_way.append(stack_state.in_the_way(name, status))
    if found and found.get("EnableTerminationProtection"):
        in_the_way.append(
            f"The stack {name} is protected against deletion. To take the protection off:\n"
            f"      aws cloudformation update-termination-protection --stack-name {name} --no-enable-termination-protection"
        )
    protected = stack_state.protected(to_delete)
    if protected:
        off = (
            "      set DeletionProtection=false in infra/deploy.parameters, and make deploy\n"
            if status in stack_state.DEPLOYABLE
            else f"      for table in {' '.join(protected)}; do\n"
            '        aws dynamodb update-table --table-name "$table" --no-deletion-protection-enabled\n      done\n'
        )
        in_the_way.append(
            f"{len(protected)} tables are protected against deletion, which DynamoDB then refuses: {', '.join(protected)}. "
            f"If their data is really to go, take the protection off and do this again:\n{off.rstrip()}"
        )
    return in_the_way


def announce(name, found, deployed, left_tables, left_secrets, with_data):
    """Prints the resources to be deleted and kept; returns the bucket of the code."""
    if found:
        kept = {**template.kept(deployed, name, template.TABLE), **template.kept(deployed, name, template.SECRET)}
        types = collections.Counter(kind for logical, (_, kind) in stack_state.resources(name).items() if logical not in kept)
        aws.say("\nWill be deleted, and cannot be brought back:")
        for kind, what in NAMES.items():
            if types.get(kind):
                aws.say(f"  {types.pop(kind)} {what}")
        aws.say(f"  {sum(types.values())} roles, routes, alarms and other resources")
    if with_data:
        aws.say("\nWill be deleted with all that is in it:" if left_tables or left_secrets else "\nThere is no data.")
        _list(left_tables, "table")
        _list(left_secrets, "secret")
    elif left_tables or left_secrets:
        aws.say("\nIs kept:")
        _list(left_tables, "table")
        _list(left_secrets, "secret")
    if found:
        aws.say("\nFrom then on callers of the numbers at Twilio hear an error: set their voice URLs to something else first.")
    return stack_state.parameters(found).get("CodeBucket") if found else None


def _list(names, what):
    if names:
        aws.say(f"  {len(names)} {what}{'' if len(names) == 1 else 's'}: {', '.join(names)}")


def confirm(name):
    given = os.environ.get("CONFIRM")
    if given is None and sys.stdin.isatty():
        print("\nType the stack's name to go on: ", end="", flush=True)
        given = sys.stdin.readline().strip()
    elif given is None:
        sys.exit(f"\nNobody is there to confirm this, so nothing was deleted: make destroy STACK={name} CONFIRM={name} does it unasked.")
    if given != name:
        sys.exit(f"\n'{given}' is not {name}: nothing was deleted.")


def delete_stack(name):
    aws.say(f"\ndeleting the stack {name}; this takes some minutes")
    # After the deletion the name no longer finds the stack, but its id does.
    stack_id = stack_state.describe(name)["StackId"]
    aws.run("cloudformation", "delete-stack", "--stack-name", name)
    try:
        aws.run("cloudformation", "wait", "stack-delete-complete", "--stack-name", stack_id)
    except aws.Failed:
        ended = stack_state.when_ended(stack_id)
        if not ended or ended["StackStatus"] != "DELETE_COMPLETE":
            stack_state.show_failures(stack_id)
            sys.exit(
                f"Not everything could be deleted. Mend what is named above and do this again: make destroy STACK={name} goes on where it stopped."
            )
    aws.say(f"The stack {name} is deleted.")


def delete_data(name, deployed, left_tables, left_secrets):
    own = template.kept(deployed, name, template.SECRET).values()
    for table in left_tables:
        aws.ask("dynamodb", "delete-table", "--table-name", table)
    for table in left_tables:
        # The name stays taken until then.
        aws.run("dynamodb", "wait", "table-not-exists", "--table-name", table)
        aws.say(f"deleted the table {table}")
    for secret in left_secrets:
        # The next stack of this name creates its own key again, which fails while the name is taken.
        how = ["--force-delete-without-recovery"] if secret in own else ["--recovery-window-in-days", "30"]
        aws.ask("secretsmanager", "delete-secret", "--secret-id", secret, *how)
        aws.say(f"deleted the secret {secret}" + ("" if secret in own else ": it can be restored for 30 days"))
    if left_tables:
        aws.say(
            "DynamoDB keeps a backup of each table for 35 days, because they had point-in-time recovery:\n"
            "      aws dynamodb list-backups --backup-type SYSTEM"
        )


def tell_what_is_kept(name, bucket, left_tables, left_secrets):
    if left_tables or left_secrets:
        aws.say("\nKept, at what their storage costs; their names are taken, so a new stack of this name is refused without ADOPT=1:")
        _list(left_tables, "table")
        _list(left_secrets, "secret")
        aws.say(
            f"      make deploy STACK={name} CODE_BUCKET={bucket or '…'} ADOPT=1    makes the stack again, with all that is in them;\n"
            "          unfinished runs of automations then go on\n"
            f"      make destroy STACK={name} DATA=delete    deletes them too"
        )


if __name__ == "__main__":
    main()
