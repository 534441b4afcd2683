"""Stands in for the AWS CLI, as `aws` on the PATH: what infra/deploy and infra/destroy use of it, and nothing else.

The account is the JSON in $AWS_STAND_IN/account.json; every call is a line of calls.jsonl there, with what was in the files that
it named and who may read them. An operation, an option or a state that the real CLI or CloudFormation would not take is refused.
"""

import json
import os
import pathlib
import stat
import sys
import time

FOLDER = pathlib.Path(os.environ["AWS_STAND_IN"])
ACCOUNT = json.loads((FOLDER / "account.json").read_text())
# The name that version 1 of the CLI knows.
REGION = os.environ.get("AWS_DEFAULT_REGION")
FLAGS = {"--recursive", "--only-show-errors", "--no-fail-on-empty-changeset", "--include-planned-deletion"}
FLAGS |= {"--force-delete-without-recovery", "--no-deletion-protection-enabled"}
UPDATABLE = {"CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE"}
TABLE, SECRET = "AWS::DynamoDB::Table", "AWS::SecretsManager::Secret"


def refuse(text, code=254):
    save()
    print(f"\n{text}", file=sys.stderr)
    sys.exit(code)


def error(kind, operation, text):
    refuse(f"An error occurred ({kind}) when calling the {operation} operation: {text}")


def save():
    (FOLDER / "account.json").write_text(json.dumps(ACCOUNT))


def contents(argument):
    """The contents of a file:// argument."""
    path = pathlib.Path(argument.removeprefix("file://"))
    return path.read_text(encoding="utf-8")


def read(text):
    """A template with CloudFormation's short forms expanded."""
    import yaml  # what most calls do without

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        pass

    def tagged(loader, suffix, node):
        kinds = {yaml.ScalarNode: loader.construct_scalar, yaml.SequenceNode: lambda n: loader.construct_sequence(n, True)}
        value = kinds.get(type(node), lambda n: loader.construct_mapping(n, True))(node)
        return {suffix if suffix == "Ref" else f"Fn::{suffix}": value}

    Loader.add_multi_constructor("!", tagged)
    return yaml.load(text, Loader)


def get_template(options):
    text = stack_of(options["--stack-name"], "GetTemplate")["template"]
    # The CLI parses a template that was deployed as JSON.
    return {"TemplateBody": read(text) if ACCOUNT.get("templates_in_json") else text}


def holds(condition, parameters, conditions):
    (kind, value), = condition.items()
    if kind == "Fn::Equals":
        left, right = (parameters[v["Ref"]] if isinstance(v, dict) else v for v in value)
        return left == right
    if kind == "Fn::Not":
        return not holds(value[0], parameters, conditions)
    return all(holds(each, parameters, conditions) for each in value)


def named(resource, stack):
    name = resource["Properties"]["TableName" if resource["Type"] == TABLE else "Name"]
    return name["Fn::Sub"].replace("${AWS::StackName}", stack)


def stack_of(name, operation):
    for stack in ACCOUNT["stacks"].values():
        if name in (stack["StackName"], stack["StackId"]) and (name == stack["StackId"] or stack["StackStatus"] != "DELETE_COMPLETE"):
            return stack
    return error("ValidationError", operation, f"Stack with id {name} does not exist")


def parameters_of(template, given, before):
    declared = template["Parameters"]
    values = {key: given.get(key, before.get(key, parameter.get("Default"))) for key, parameter in declared.items()}
    missing = [key for key, value in values.items() if value is None]
    if missing:
        error("ValidationError", "CreateChangeSet", f"Parameters: [{', '.join(missing)}] must have values")
    return {key: str(value) for key, value in values.items()}


def event(stack, logical, kind, status, reason="", physical=None):
    stack["events"].insert(0, {
        "StackId": stack["StackId"], "LogicalResourceId": logical, "ResourceType": kind, "ResourceStatus": status,
        "ResourceStatusReason": reason, "PhysicalResourceId": physical or logical,
    })


def of_stack(stack, status):
    stack["StackStatus"] = status
    event(stack, stack["StackName"], "AWS::CloudFormation::Stack", status, physical=stack["StackId"])


def ends(stack, status):
    """The end of a deployment, which a slow one reaches after the CLI has given up."""
    if ACCOUNT.get("slow"):
        stack["then"] = status
        of_stack(stack, "UPDATE_ROLLBACK_IN_PROGRESS" if "ROLLBACK" in status else "UPDATE_IN_PROGRESS")
        refuse("Waiter StackUpdateComplete failed: Max attempts exceeded", 255)
    of_stack(stack, status)


def new_stack(name):
    stack = {
        "StackName": name, "StackId": f"arn:aws:cloudformation:{REGION}:{ACCOUNT['account']}:stack/{name}/{len(ACCOUNT['stacks'])}",
        "StackStatus": "REVIEW_IN_PROGRESS", "Parameters": [], "Outputs": [], "events": [], "resources": {}, "template": "",
        "secret": [],
    }
    ACCOUNT["stacks"][stack["StackId"]] = stack
    return stack


def updatable(stack):
    """The states of this stack that take an update. An import that failed leaves a stack with resources as it was."""
    return UPDATABLE | ({"IMPORT_ROLLBACK_COMPLETE"} if stack["resources"] else set())


def existing(name):
    found = [s for s in ACCOUNT["stacks"].values() if s["StackName"] == name and s["StackStatus"] != "DELETE_COMPLETE"]
    return found[0] if found else None


def as_made(resource):
    """A table with these properties. A later update of the stack leaves key, indexes and TTL alone, which no test changes."""
    properties = resource["Properties"]
    parts = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "LocalSecondaryIndexes")
    return {
        "shape": {part: properties[part] for part in parts if part in properties},
        "expires": properties.get("TimeToLiveSpecification", {}).get("AttributeName"),
    }


def deploy(options):
    text = pathlib.Path(options["--template-file"]).read_text(encoding="utf-8")
    template = read(text)
    if len(text) > 51200 and options.get("--s3-bucket") not in ACCOUNT["buckets"]:
        refuse("Templates with a size greater than 51,200 bytes must be deployed via an S3 Bucket.", 252)
    given = dict(each.split("=", 1) for each in json.loads(contents(options["--parameter-overrides"])))
    name = options["--stack-name"]
    stack = existing(name)
    if ACCOUNT.pop("refused", None):
        error("AccessDenied", "CreateChangeSet", "User is not authorized to perform: cloudformation:CreateChangeSet")
    if ACCOUNT.pop("forestalled", None):
        of_stack(stack, "UPDATE_IN_PROGRESS")
        stack["then"] = "UPDATE_COMPLETE"
        stack["Parameters"] = [{**p, **({"ParameterValue": "x/y"} if p["ParameterKey"] == "CodePrefix" else {})} for p in stack["Parameters"]]
    if stack and stack["StackStatus"] not in updatable(stack) | {"REVIEW_IN_PROGRESS"}:
        error("ValidationError", "CreateChangeSet", f"Stack:{stack['StackId']} is in {stack['StackStatus']} state and can not be updated.")
    stack = stack or new_stack(name)
    creates = stack["StackStatus"] == "REVIEW_IN_PROGRESS"
    parameters = parameters_of(template, given, {p["ParameterKey"]: p["ParameterValue"] for p in stack["Parameters"]})
    protects = holds(template["Conditions"]["ProtectsTables"], parameters, template["Conditions"])
    if ACCOUNT.get("sleeps"):
        save()
        time.sleep(ACCOUNT["sleeps"])
    of_stack(stack, "CREATE_IN_PROGRESS" if creates else "UPDATE_IN_PROGRESS")
    made, failed = [], None
    for logical, resource in template["Resources"].items():
        # The type after the transform.
        kind = resource["Type"].replace("AWS::Serverless::", "AWS::Lambda::")
        if resource.get("Condition") == "CreatesApiGatewayLogRole" and parameters["ApiGatewayLogRole"] != "create":
            continue
        if logical not in stack["resources"]:
            physical = logical
            if kind == "AWS::IAM::Role":
                physical = f"{name}-{logical}-1A2B3C4D5E6F"
                ACCOUNT["roles"][physical] = {}
            if kind == "AWS::ApiGateway::Account":
                ACCOUNT["log_role"] = role_arn(stack["resources"]["ApiGatewayLogsRole"][0])
            if kind in (TABLE, SECRET):
                physical = named(resource, name)
                taken = ACCOUNT["tables" if kind == TABLE else "secrets"]
                if physical in taken:
                    failed = (logical, kind, f"{physical} already exists")
                    break
                taken[physical] = as_made(resource) if kind == TABLE else {}
            made.append(logical)
            stack["resources"][logical] = [physical, kind]
        # An update sets the properties that differ from the template before.
        if kind == TABLE and (logical in made or stack.get("protects") != protects):
            ACCOUNT["tables"][stack["resources"][logical][0]]["protected"] = protects
        if logical == (ACCOUNT.get("fails") or [None])[0]:
            failed = (logical, kind, ACCOUNT["fails"][1])
            break
    if failed:
        event(stack, *failed[:2], "CREATE_FAILED" if creates else "UPDATE_FAILED", failed[2])
        event(stack, "Other", "AWS::IAM::Role", "CREATE_FAILED", "Resource creation cancelled")
        roll_back(stack, template, made, creates)
        if ACCOUNT.get("slow"):
            ends(stack, stack["StackStatus"])
        refuse("Failed to create/update the stack.", 255)
    stack["Parameters"] = [{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()]
    stack["template"] = text
    stack["protects"] = protects
    stack["secret"] = [key for key, parameter in template["Parameters"].items() if parameter.get("NoEcho")]
    ends(stack, "CREATE_COMPLETE" if creates else "UPDATE_COMPLETE")
    print(f"Successfully created/updated stack - {name}")


def roll_back(stack, template, made, creates):
    of_stack(stack, "ROLLBACK_IN_PROGRESS" if creates else "UPDATE_ROLLBACK_IN_PROGRESS")
    clean = True
    for logical in made:
        if template["Resources"][logical].get("DeletionPolicy") == "Retain":
            continue
        clean &= delete(stack, logical)
    of_stack(stack, ("ROLLBACK_COMPLETE" if clean else "ROLLBACK_FAILED") if creates else "UPDATE_ROLLBACK_COMPLETE")


def delete(stack, logical):
    physical, kind = stack["resources"][logical]
    if kind == TABLE and ACCOUNT["tables"][physical]["protected"] or logical == ACCOUNT.get("undeletable"):
        event(stack, logical, kind, "DELETE_FAILED", "it is protected against deletion")
        return False
    ACCOUNT["tables"].pop(physical, None)
    ACCOUNT["secrets"].pop(physical, None)
    # API Gateway goes on naming a role that is gone.
    ACCOUNT["roles"].pop(physical, None)
    del stack["resources"][logical]
    return True


def delete_stack(options):
    stack = stack_of(options["--stack-name"], "DeleteStack")
    if stack.get("EnableTerminationProtection"):
        error("ValidationError", "DeleteStack", "cannot be deleted while TerminationProtection is enabled")
    template = read(stack["template"] or "{Resources: {}}")["Resources"]
    of_stack(stack, "DELETE_IN_PROGRESS")
    kept = {logical for logical, resource in template.items() if resource.get("DeletionPolicy", "").startswith("Retain")}
    clean = all([delete(stack, logical) for logical in list(stack["resources"]) if logical not in kept])
    if ACCOUNT.get("slow"):
        stack["then"] = "DELETE_COMPLETE" if clean else "DELETE_FAILED"
        return
    of_stack(stack, "DELETE_COMPLETE" if clean else "DELETE_FAILED")


def create_change_set(options):
    request = json.loads(contents(options["--cli-input-json"]))
    stack = existing(request["StackName"])
    if request["ChangeSetType"] != "IMPORT" or len(request.get("TemplateBody", "")) > 51200:
        error("ValidationError", "CreateChangeSet", "not an import, or too large")
    if stack and stack["StackStatus"] not in updatable(stack):
        error("ValidationError", "CreateChangeSet", f"Stack:{stack['StackId']} is in {stack['StackStatus']} state and can not be updated.")
    text = request.get("TemplateBody") or uploaded(request["TemplateURL"])
    template = read(text)
    if "Transform" in template and "CAPABILITY_IAM" not in request.get("Capabilities", []):
        error("InsufficientCapabilitiesException", "CreateChangeSet", "Requires capabilities : [CAPABILITY_IAM]")
    before = {p["ParameterKey"]: p["ParameterValue"] for p in stack["Parameters"]} if stack else {}
    given = {p["ParameterKey"]: before[p["ParameterKey"]] if p.get("UsePreviousValue") else p["ParameterValue"] for p in request["Parameters"]}
    if set(given) - set(template["Parameters"]):
        error("ValidationError", "CreateChangeSet", f"Parameters: {sorted(set(given) - set(template['Parameters']))} do not exist in the template")
    # Omitted parameters get their defaults.
    parameters = parameters_of(template, given, {})
    imported = {each["LogicalResourceId"]: each for each in request["ResourcesToImport"]}
    deployed = read(stack["template"])["Resources"] if stack else {}
    if {**deployed, **{logical: template["Resources"].get(logical) for logical in imported}} != template["Resources"] or set(imported) & set(deployed):
        error("ValidationError", "CreateChangeSet", "an import adds what it imports, and nothing else")
    stack = stack or new_stack(request["StackName"])
    stack["Parameters"] = [{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()]
    protects = holds(template["Conditions"]["ProtectsTables"], parameters, template["Conditions"])
    stack["change_set"] = {"name": request["ChangeSetName"], "status": "AVAILABLE", "imported": {}, "protects": protects, "template": text}
    if ACCOUNT.get("unimportable"):
        stack["change_set"].update(status="UNAVAILABLE", reason=ACCOUNT["unimportable"])
    for logical, each in imported.items():
        resource = template["Resources"][logical]
        taken, key = (ACCOUNT["tables"], "TableName") if resource["Type"] == TABLE else (ACCOUNT["secrets"], "Id")
        physical = each["ResourceIdentifier"][key].removeprefix("arn:secret:")
        if physical not in taken or "DeletionPolicy" not in resource:
            stack["change_set"].update(status="UNAVAILABLE", reason=f"{physical} was not found")
        stack["change_set"]["imported"][logical] = [physical, resource["Type"]]
    return {"Id": request["ChangeSetName"]}


def wait(operation, options):
    if operation.startswith("stack"):
        if not stack_of(options["--stack-name"], "DescribeStacks")["StackStatus"].endswith("_COMPLETE"):
            refuse("Waiter failed: terminal failure state", 255)
    elif operation == "change-set-create-complete":
        if existing(options["--stack-name"])["change_set"]["status"] != "AVAILABLE":
            refuse("Waiter ChangeSetCreateComplete failed", 255)


def execute_change_set(options):
    stack = existing(options["--stack-name"])
    # The tables stay as they are, and count as what the template says.
    stack["resources"].update(stack["change_set"]["imported"])
    stack["protects"], stack["template"] = stack["change_set"]["protects"], stack["change_set"]["template"]
    of_stack(stack, "IMPORT_COMPLETE")


def describe_change_set(options):
    changes = existing(options["--stack-name"])["change_set"]
    return {"Status": "CREATE_COMPLETE", "ExecutionStatus": changes["status"], "StatusReason": changes.get("reason", "")}


def described(options):
    stack = stack_of(options["--stack-name"], "DescribeStacks")
    # A slow operation is over at the second look at it.
    stack["looks"] = stack.get("looks", 0) + 1 if "then" in stack else 0
    if stack["looks"] > 1:
        of_stack(stack, stack.pop("then"))
    if "--query" in options:
        return stack["Outputs"]
    shown = [{**p, "ParameterValue": "****"} if p["ParameterKey"] in stack["secret"] else p for p in stack["Parameters"]]
    return {"Stacks": [{**{k: v for k, v in stack.items() if k[0].isupper()}, "Parameters": shown}]}


def bucket_location(options):
    region = ACCOUNT["buckets"].get(options["--bucket"])
    if not region:
        error("NoSuchBucket", "GetBucketLocation", "The specified bucket does not exist")
    return {"LocationConstraint": None if region == "us-east-1" else region}


def uploaded(url):
    place = url.removeprefix(f"https://s3.{REGION}.amazonaws.com{'.cn' if REGION.startswith('cn-') else ''}/")
    return ACCOUNT.get("objects", {}).get(place) or error("ValidationError", "CreateChangeSet", "S3 error: Access Denied")


def copy(source, target):
    bucket, key = target.removeprefix("s3://").split("/", 1)
    if pathlib.Path(source).is_file():
        ACCOUNT.setdefault("objects", {})[f"{bucket}/{key}"] = pathlib.Path(source).read_text(encoding="utf-8")
        return
    ACCOUNT["uploaded"] = sorted(f"{bucket}/{key}/{path.name}" for path in pathlib.Path(source).iterdir() if path.read_bytes())


def role_arn(name):
    return f"arn:aws:iam::{ACCOUNT['account']}:role/{name}"


def get_role(options):
    name = options["--role-name"]
    if name not in ACCOUNT["roles"]:
        error("NoSuchEntity", "GetRole", f"The role with name {name} cannot be found.")
    return {"Role": {"RoleName": name, "Arn": role_arn(name)}}


def account_of_api_gateway(options):
    role = {"cloudwatchRoleArn": ACCOUNT["log_role"]} if ACCOUNT["log_role"] else {}
    return {"throttleSettings": {"burstLimit": 5000, "rateLimit": 10000.0}, "features": ["UsagePlans"], **role}


def account_of_lambda(options):
    stacks = [stack for stack in ACCOUNT["stacks"].values() if stack["StackStatus"] != "DELETE_COMPLETE"]
    parameters = [parameter for stack in stacks for parameter in stack["Parameters"]]
    reserved = sum(int(p["ParameterValue"]) for p in parameters if p["ParameterKey"].endswith("ReservedConcurrency"))
    most = ACCOUNT["executions"]
    unreserved = most - ACCOUNT["reserved_by_others"] - reserved
    return {"AccountLimit": {"ConcurrentExecutions": most, "UnreservedConcurrentExecutions": unreserved}}


def describe_table(options):
    name = options["--table-name"]
    table = ACCOUNT["tables"][name]
    return {"Table": {"TableName": name, "DeletionProtectionEnabled": table.get("protected", False), **table.get("shape", {})}}


def scan(options):
    """The unfinished runs; only the one filter that is used is understood."""
    wanted = {value["S"] for value in json.loads(options["--expression-attribute-values"]).values()}
    items = ACCOUNT["tables"][options["--table-name"]].get("items", [])
    return {"Items": [item for item in items if {item["part"]["S"], item["status"]["S"]} <= wanted]}


def send_message_batch(options):
    request = json.loads(contents(options["--cli-input-json"]))
    if len(request["Entries"]) > 10:
        error("AWS.SimpleQueueService.TooManyEntriesInBatchRequest", "SendMessageBatch", "Maximum number of entries per request are 10.")
    if ACCOUNT.get("unsent"):
        return {"Successful": [], "Failed": [{"Id": "0", "Code": "InternalError", "Message": ACCOUNT["unsent"]}]}
    ACCOUNT.setdefault("messages", []).extend({"queue": request["QueueUrl"], **entry} for entry in request["Entries"])
    return {"Successful": [{"Id": entry["Id"]} for entry in request["Entries"]]}


def describe_time_to_live(options):
    expires = ACCOUNT["tables"][options["--table-name"]].get("expires")
    described = {"TimeToLiveStatus": "ENABLED", "AttributeName": expires} if expires else {"TimeToLiveStatus": "DISABLED"}
    return {"TimeToLiveDescription": described}


def delete_table(options):
    name = options["--table-name"]
    if ACCOUNT["tables"][name].get("protected"):
        error("ValidationException", "DeleteTable", "Resource cannot be deleted as it is currently protected against deletion.")
    del ACCOUNT["tables"][name]
    return {}


def delete_secret(options):
    if "--force-delete-without-recovery" in options:
        del ACCOUNT["secrets"][options["--secret-id"]]
    else:
        ACCOUNT["secrets"][options["--secret-id"]]["deleted"] = options["--recovery-window-in-days"]
    return {}


def invoke(options, answer):
    """An invocation of the function `operator`, which makes an organization."""
    if options["--function-name"].removesuffix("-operator") not in [stack["StackName"] for stack in ACCOUNT["stacks"].values()]:
        error("ResourceNotFoundException", "Invoke", f"Function not found: {options['--function-name']}")
    pathlib.Path(answer).write_text(json.dumps({"result": "made", "organization": {}}))
    return {"StatusCode": 200}


def list_secrets(options):
    prefix = options["--filters"].removeprefix("Key=name,Values=")
    found = [(name, secret) for name, secret in ACCOUNT["secrets"].items() if name.lower().startswith(prefix.lower())]
    return {"SecretList": [{"Name": n, "ARN": f"arn:secret:{n}", **({"DeletedDate": 1} if s.get("deleted") else {})} for n, s in found]}


NAME, CHANGES = {"--stack-name"}, {"--stack-name", "--change-set-name"}
OPERATIONS = {
    "sts get-caller-identity": (set(), lambda o: {"Account": ACCOUNT["account"]}),
    "s3api get-bucket-location": ({"--bucket"}, bucket_location),
    "cloudformation describe-stacks": (NAME | {"--query"}, described),
    "cloudformation describe-stack-events": (NAME | {"--max-items"}, lambda o: {"StackEvents": stack_of(o["--stack-name"], "")["events"]}),
    "cloudformation list-stack-resources": (NAME, lambda o: {"StackResourceSummaries": [
        {"LogicalResourceId": logical, "PhysicalResourceId": physical, "ResourceType": kind, "ResourceStatus": "CREATE_COMPLETE"}
        for logical, (physical, kind) in stack_of(o["--stack-name"], "")["resources"].items()]}),
    "cloudformation get-template": (NAME | {"--template-stage"}, get_template),
    "cloudformation deploy": (
        NAME | {"--template-file", "--s3-bucket", "--s3-prefix", "--capabilities", "--no-fail-on-empty-changeset", "--parameter-overrides"},
        deploy,
    ),
    "cloudformation delete-stack": (NAME, delete_stack),
    "cloudformation create-change-set": ({"--cli-input-json"}, create_change_set),
    "cloudformation describe-change-set": (CHANGES, describe_change_set),
    "cloudformation execute-change-set": (CHANGES, execute_change_set),
    "apigateway get-account": (set(), account_of_api_gateway),
    "iam get-role": ({"--role-name"}, get_role),
    "lambda get-account-settings": (set(), account_of_lambda),
    "dynamodb list-tables": (set(), lambda o: {"TableNames": sorted(ACCOUNT["tables"])}),
    "dynamodb describe-table": ({"--table-name"}, describe_table),
    "dynamodb describe-time-to-live": ({"--table-name"}, describe_time_to_live),
    "dynamodb delete-table": ({"--table-name"}, delete_table),
    "dynamodb scan": (
        {"--table-name", "--filter-expression", "--projection-expression", "--expression-attribute-names", "--expression-attribute-values"},
        scan,
    ),
    "sqs get-queue-url": ({"--queue-name"}, lambda o: {"QueueUrl": f"https://sqs/{o['--queue-name']}"}),
    "sqs send-message-batch": ({"--cli-input-json"}, send_message_batch),
    "secretsmanager list-secrets": ({"--include-planned-deletion", "--filters"}, list_secrets),
    "secretsmanager delete-secret": (
        {"--secret-id", "--force-delete-without-recovery", "--recovery-window-in-days"}, delete_secret,
    ),
}


def main():
    arguments = sys.argv[1:]
    files = [pathlib.Path(each.removeprefix("file://")) for each in arguments if each.startswith("file://")]
    call = {"argv": arguments, "files": {
        str(path): {"text": path.read_text(), "open": bool((path.stat().st_mode | path.parent.stat().st_mode) & (stat.S_IRWXG | stat.S_IRWXO))}
        for path in files
    }}
    with (FOLDER / "calls.jsonl").open("a") as log:
        log.write(json.dumps(call) + "\n")

    if arguments[:3] == ["configure", "get", "region"]:
        sys.exit(1)
    if not ACCOUNT.get("account"):
        refuse("Unable to locate credentials. You can configure credentials by running \"aws configure\".", 253)
    plain, options, rest = [], {}, arguments[2:]
    while rest:
        first = rest.pop(0)
        if first in FLAGS:
            options[first] = True
        elif first.startswith("--"):
            options[first] = rest.pop(0)
        else:
            plain.append(first)
    options.pop("--output", None)
    service, operation = arguments[:2]
    if not REGION and service != "sts":
        refuse("You must specify a region. You can also configure your region by running \"aws configure\".", 253)
    if f"{service} {operation}" in ACCOUNT.get("denied", []):
        error("AccessDeniedException", operation, f"User is not authorized to perform: {service} {operation}")
    if operation == "wait":
        answer = wait(plain[0], options)
    elif (service, operation) == ("s3", "cp"):
        answer = copy(*plain)
    elif (service, operation) == ("lambda", "invoke"):
        answer = invoke(options, *plain)
    else:
        known, run = OPERATIONS.get(f"{service} {operation}") or refuse(f"Found invalid choice '{operation}'", 252)
        if plain or set(options) - known:
            refuse(f"Unknown options: {' '.join(plain + sorted(set(options) - known))}", 252)
        answer = run(options)
    save()
    if answer is not None:
        print(json.dumps(answer))


main()
