"""Reads a stack's state from CloudFormation: possible operations, failures, and remains."""

import time

import aws

# Seconds between two looks at a stack that is being changed.
PAUSE = 5

DEPLOYABLE = {
    "CREATE_COMPLETE",
    "UPDATE_COMPLETE",
    "UPDATE_ROLLBACK_COMPLETE",
    "IMPORT_COMPLETE",
}


def describe(name):
    """The stack, or None if it does not exist or never got beyond a change set."""
    found = _described(name)
    return None if found and _is_empty(found) else found


def when_ended(name):
    """The stack after the end of its operation, None if none is under way. Waiters of the AWS CLI give up after an hour, and a large
    index takes longer."""
    found = describe(name)
    if not found or not found["StackStatus"].endswith("_IN_PROGRESS"):
        return None
    aws.say(f"The AWS CLI stopped waiting. CloudFormation goes on ({found['StackStatus']}), and so does the wait for its end.")
    while found and found["StackStatus"].endswith("_IN_PROGRESS"):
        time.sleep(PAUSE)
        found = describe(name)
    return found


def delete_empty(name):
    """Deletes a stack that never got beyond a change set: it holds nothing, and would stay for ever."""
    found = _described(name)
    if found and _is_empty(found):
        aws.run("cloudformation", "delete-stack", "--stack-name", name)
        aws.run("cloudformation", "wait", "stack-delete-complete", "--stack-name", found["StackId"])


def _described(name):
    try:
        return aws.ask("cloudformation", "describe-stacks", "--stack-name", name)["Stacks"][0]
    except aws.Failed as error:
        if "does not exist" in str(error):
            return None
        raise


def _is_empty(found):
    return found["StackStatus"] == "REVIEW_IN_PROGRESS"


def parameters(found):
    """The parameters of the stack; secret ones are ****."""
    return {each["ParameterKey"]: each.get("ParameterValue", "") for each in found.get("Parameters", [])}


def obstacle(name, found):
    """As in_the_way, for a stack. An import that failed leaves a stack with resources as it was."""
    status = found["StackStatus"]
    return None if status == "IMPORT_ROLLBACK_COMPLETE" and resources(name) else in_the_way(name, status)


def in_the_way(name, status):
    """Why this state prevents a deployment, with the remedy; None if it does not."""
    if status in DEPLOYABLE:
        return None
    delete = f"aws cloudformation delete-stack --stack-name {name}"
    deleted = f"aws cloudformation wait stack-delete-complete --stack-name {name}"
    reasons = f"STACK={name} infra/deploy --failures"
    if status == "IMPORT_ROLLBACK_COMPLETE":
        return (
            f"The stack {name} is IMPORT_ROLLBACK_COMPLETE: it could not take over what an earlier one had kept, and holds nothing. "
            f"See why, mend it, delete it (what was kept stays as it is) and deploy again with ADOPT=1:\n"
            f"      {reasons}\n      {delete}\n      {deleted}"
        )
    if status in ("ROLLBACK_COMPLETE", "CREATE_FAILED"):
        return (
            f"The stack {name} is {status}: its first deployment failed, and CloudFormation takes nothing but its deletion. "
            f"See why, mend it, delete the stack (it holds no data yet) and deploy again:\n"
            f"      {reasons}\n      {delete}\n      {deleted}"
        )
    if status == "ROLLBACK_FAILED":
        return (
            f"The stack {name} is ROLLBACK_FAILED: its first deployment failed, and not all that it had made could be taken away. "
            f"See what and why, and delete it; what still cannot be deleted is named again, and deleted by hand:\n"
            f"      {reasons}\n      {delete}\n      {deleted}"
        )
    if status == "DELETE_FAILED":
        return (
            f"The stack {name} is DELETE_FAILED: it was being deleted, and something of it could not be. "
            f"See what and why, mend it and go on with deleting:\n      {reasons}\n      make destroy STACK={name}"
        )
    if status == "UPDATE_ROLLBACK_FAILED":
        return (
            f"The stack {name} is UPDATE_ROLLBACK_FAILED: an update failed, and so did going back. "
            f"See why, mend it, let CloudFormation go on with going back, then deploy again:\n      {reasons}\n"
            f"      aws cloudformation continue-update-rollback --stack-name {name}\n"
            f"      aws cloudformation wait stack-rollback-complete --stack-name {name}"
        )
    if status.endswith("_IN_PROGRESS"):
        waiter = {
            "CREATE_IN_PROGRESS": "stack-create-complete",
            "DELETE_IN_PROGRESS": "stack-delete-complete",
            "IMPORT_IN_PROGRESS": "stack-import-complete",
            "UPDATE_IN_PROGRESS": "stack-update-complete",
            "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS": "stack-update-complete",
        }.get(status, "stack-rollback-complete")
        return (
            f"The stack {name} is {status}: somebody or something is changing it right now. Wait for the end, then do this again:\n"
            f"      aws cloudformation wait {waiter} --stack-name {name}"
        )
    return (
        f"The stack {name} is {status}, and an update of it would only be half of one. See why, and bring it into a state that is "
        f"complete:\n      {reasons}\n      aws cloudformation rollback-stack --stack-name {name}\n"
        f"      aws cloudformation wait stack-rollback-complete --stack-name {name}"
    )


def failures(name, most=6):
    """The failures of the last operation with their reasons, the first (the cause of the others) first."""
    events = aws.ask("cloudformation", "describe-stack-events", "--stack-name", name, "--max-items", "1000")["StackEvents"]
    failed = []
    # Newest first, back to the start of the operation. A rollback belongs to the failed operation.
    for event in events:
        status, reason = event["ResourceStatus"], event.get("ResourceStatusReason", "")
        of_stack = event["PhysicalResourceId"] == event["StackId"]
        if of_stack and status in ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS", "IMPORT_IN_PROGRESS"):
            break
        # Resources cancelled after the first failure give no reason.
        if status.endswith("_FAILED") and not of_stack and "cancelled" not in reason.lower():
            failed.append(f"{event['LogicalResourceId']} ({event['ResourceType']}): {reason or status}")
    failed.reverse()
    more = [f"and {len(failed) - most} more"] if len(failed) > most else []
    return failed[:most] + more


def show_failures(name):
    """Prints the failures."""
    try:
        failed = failures(name)
    except aws.Failed as error:
        aws.say(f"What failed could not be read: {error}")
        return
    if failed:
        aws.say("What failed, the first first:")
        for line in failed:
            aws.say(f"  - {line}")
    else:
        aws.say("No resource failed in the last operation.")


def resources(name):
    """Physical id and type of each current resource, by logical id."""
    found = aws.ask("cloudformation", "list-stack-resources", "--stack-name", name)["StackResourceSummaries"]
    return {
        each["LogicalResourceId"]: (each.get("PhysicalResourceId", ""), each["ResourceType"])
        for each in found
        if each["ResourceStatus"] != "DELETE_COMPLETE"
    }


def tables(names):
    """The existing tables among these. Compares whole names, because another stack may share the prefix."""
    return sorted(set(aws.ask("dynamodb", "list-tables")["TableNames"]) & set(names))


def table(name):
    """DynamoDB's description of the table, and the attribute by which its rows expire, or None."""
    described = aws.ask("dynamodb", "describe-table", "--table-name", name)["Table"]
    ttl = aws.ask("dynamodb", "describe-time-to-live", "--table-name", name)["TimeToLiveDescription"]
    return described, ttl["AttributeName"] if ttl["TimeToLiveStatus"] in ("ENABLED", "ENABLING") else None


def protected(names):
    """The tables among these with deletion protection."""
    described = (aws.ask("dynamodb", "describe-table", "--table-name", name)["Table"] for name in names)
    return [table["TableName"] for table in described if table.get("DeletionProtectionEnabled")]


def secrets(name):
    """The secrets below the stack's name: each with its ARN and whether its deletion is scheduled."""
    command = ["secretsmanager", "list-secrets", "--include-planned-deletion", "--filters", f"Key=name,Values={name}/"]
    found = aws.ask(*command)["SecretList"]
    # The filter ignores case, so other names may match as well.
    return {
        secret["Name"]: {"arn": secret["ARN"], "waits": "DeletedDate" in secret}
        for secret in found
        if secret["Name"].startswith(f"{name}/")
    }
