"""Checks the sizes against Lambda's limits in the account, and the one role of API Gateway's logs."""

import aws

# AWS refuses reservations that leave fewer executions for all other functions.
UNRESERVED = 100
RESERVATIONS = ("ExecuteReservedConcurrency", "CallStartReservedConcurrency", "RunToolReservedConcurrency", "StreamReservedConcurrency")
# The maxima of the queues that run-tool reads.
OF_RUN_TOOL = ("StartToolsMaximumConcurrency", "RunToolMaximumConcurrency")
QUEUES = (*OF_RUN_TOOL, "RunLoopMaximumConcurrency", "ScheduleMaximumConcurrency")
LOG_ROLE = "ApiGatewayLogRole"
# IAM's limit, and the length of the end that CloudFormation adds; it shortens the names of stack and role to fit.
LONGEST_ROLE, ADDED = 64, 12
SHORTEST_PART = 20


def problems(values, before, stack, sizes, source):
    """Problems of the parameters in this account and region.

    `values` are all parameters of the deployment, `before` those of the present stack (none on a first deployment), `sizes` the
    values that AccountConcurrency can have, and `source` is the parameter file.
    """
    return _of_run_tool(values, source) + _of_concurrency(values, before, sizes, source) + _of_log_role(values, before, stack, source)


def _of_run_tool(values, source):
    reserved, batches = _number(values, "RunToolReservedConcurrency"), sum(_number(values, name) for name in OF_RUN_TOOL)
    if 0 < reserved < batches:
        # Lambda would refuse a batch, whose messages then come again minutes later.
        return [
            f"RunToolReservedConcurrency is {reserved}, and {' and '.join(OF_RUN_TOOL)} give run-tool {batches} batches at once: write "
            f"all three into {source} so that they fit, as in infra/concurrency/1000"
        ]
    return []


def _of_concurrency(values, before, sizes, source):
    limits = _asked("the sizes for Lambda", "lambda", "get-account-settings")
    if limits is None:
        return []
    most = limits["AccountLimit"]["ConcurrentExecutions"]
    unreserved = limits["AccountLimit"]["UnreservedConcurrentExecutions"]
    size = _number(values, "AccountConcurrency")
    if size > most:
        fitting = max((each for each in sizes if each <= most), default=min(sizes))
        return [
            f"AccountConcurrency is {size}, and Lambda runs at most {most} executions at once in this account and region: "
            f"put the lines of infra/concurrency/{fitting} into {source}, or ask AWS for more{_quota(size)}"
        ]
    batches = sum(_number(values, name) for name in QUEUES)
    if batches > most:
        # Calls would wait for queues.
        return [
            f"{', '.join(QUEUES[:-1])} and {QUEUES[-1]} give the queues {batches} batches at once, and Lambda runs at most {most} executions "
            f"at once in this account and region: write smaller ones into {source}, as in infra/concurrency/{size}"
        ]
    reserved, reserved_before = (sum(_number(each, name) for name in RESERVATIONS) for each in (values, before))
    left = unreserved + reserved_before - reserved
    if reserved > reserved_before and left < UNRESERVED:
        # The lack may exceed the account.
        return [
            f"The four …ReservedConcurrency reserve {reserved} executions together, which would leave {max(left, 0)} unreserved of the "
            f"account's {most}, and AWS wants {UNRESERVED} to stay so: reserve less in {source}, or ask AWS for more"
            f"{_quota(most + UNRESERVED - left)}"
        ]
    return []


def _of_log_role(values, before, stack, source):
    wanted = values.get(LOG_ROLE)
    if before.get(LOG_ROLE) == wanted:
        return []
    account = _asked(f"{LOG_ROLE}={wanted}", "apigateway", "get-account")
    if account is None:
        return []
    role = account.get("cloudwatchRoleArn")
    there = bool(role) and _exists(role)
    if wanted == "create" and there and not _is_of_stack(_name(role), stack):
        return [
            f"{LOG_ROLE} is create, and API Gateway writes the logs of this account and region with {role} already, which the stack's role "
            f"would replace: write {LOG_ROLE}=existing into {source}"
        ]
    if wanted == "existing" and not there:
        gone = f"the role {role}, which does not exist any more" if role else "no role for logs"
        return [f"{LOG_ROLE} is existing, and API Gateway has {gone} in this account and region: write {LOG_ROLE}=create into {source}"]
    return []


def _is_of_stack(role, stack):
    of_stack, separator, _rest = role.partition("-ApiGatewayLogs")
    is_shortened = len(f"{stack}-ApiGatewayLogsRole-") + ADDED > LONGEST_ROLE
    return bool(separator) and (of_stack == stack or (is_shortened and len(of_stack) >= SHORTEST_PART and stack.startswith(of_stack)))


def _asked(checked, *request):
    """The CLI's answer; None with a warning if it may not ask."""
    try:
        return aws.ask(*request)
    except aws.Failed as error:
        aws.say(f"warning: {checked} cannot be checked, because aws {' '.join(request)} failed: {error}")
        return None


def _exists(role):
    try:
        aws.ask("iam", "get-role", "--role-name", _name(role))
    except aws.Failed as error:
        return "NoSuchEntity" not in str(error)
    return True


def _name(role):
    return role.rsplit("/", 1)[-1]


def _number(values, name):
    """0 in place of a missing number and of a wrong one, which another check reports."""
    try:
        return int(values.get(name, 0))
    except ValueError:
        return 0


def _quota(wanted):
    return (
        f":\n      aws service-quotas request-service-quota-increase --service-code lambda --quota-code L-B99A9384 --desired-value {wanted}"
    )
