"""Runs ministack, and ends it and its functions as soon as standard input is closed.

The parent process holds the other end of standard input, so ministack ends even if the parent is killed. It must lead its own
process group.
"""

import json
import os
import runpy
import signal
import sys
import threading


def end_with_parent():
    # Not through sys.stdin: its lock, held here, would break the shutdown of an interpreter that ends by itself.
    os.read(0, 1)
    # Everything is in memory and discarded, so a graceful end is unnecessary.
    os.killpg(0, signal.SIGKILL)


def name_actions_as_aws_does():
    # IAM authorizes a batch by the permission to send one message; ministack asks for a permission that IAM does not
    # have.
    from ministack.core import iam_actions

    plain = iam_actions.extract_iam_action

    def extract_iam_action(*arguments, **named):
        action = plain(*arguments, **named)
        return "sqs:SendMessage" if action == "sqs:SendMessageBatch" else action

    iam_actions.extract_iam_action = extract_iam_action


def name_schedules_as_aws_does():
    # A schedule's ARN contains its group; ministack always checks the group "default".
    from ministack.core import iam_actions

    plain = iam_actions.extract_resource_arn

    def extract_resource_arn(service, method, path, headers, body, query_params, *others):
        arn = plain(service, method, path, headers, body, query_params, *others)
        if service != "scheduler" or ":schedule/default/" not in arn:
            return arn
        try:
            group = json.loads(body or b"{}").get("GroupName")
        except (ValueError, AttributeError):
            group = None
        given = query_params.get("groupName")
        group = group or (given[0] if isinstance(given, list) else given) or "default"
        return arn.replace(":schedule/default/", f":schedule/{group}/")

    iam_actions.extract_resource_arn = extract_resource_arn


def read_the_template_as_aws_does():
    # Ministack keeps CorsConfiguration in the template's spelling, where it is never read; ignores
    # ReservedConcurrentExecutions and RecursiveLoop; and leaves numbers from parameters as text, which cannot be compared with counts.
    from ministack.services import lambda_svc
    from ministack.services.cloudformation import provisioners

    def creating(kind, create):
        handlers = provisioners._RESOURCE_HANDLERS[kind]
        plain = handlers["create"]
        handlers["create"] = lambda logical_id, props, *others: create(
            lambda props: plain(logical_id, props, *others), props
        )

    def api(create, props):
        cors = props.get("CorsConfiguration")
        if cors:
            cors = {name[:1].lower() + name[1:]: value for name, value in cors.items()}
            if "maxAge" in cors:
                cors["maxAge"] = int(cors["maxAge"])
            props = {**props, "CorsConfiguration": cors}
        return create(props)

    def function(create, props):
        created = create(props)
        reserved = props.get("ReservedConcurrentExecutions")
        if reserved is not None:
            lambda_svc._put_function_concurrency(created[0], {"ReservedConcurrentExecutions": int(reserved)})
        if "RecursiveLoop" in props:
            lambda_svc._put_function_recursion_config(created[0], {"RecursiveLoop": props["RecursiveLoop"]})
        return created

    def trigger(create, props):
        scaling = props.get("ScalingConfig")
        if scaling:
            props = {**props, "ScalingConfig": {name: int(value) for name, value in scaling.items()}}
        return create(props)

    creating("AWS::ApiGatewayV2::Api", api)
    creating("AWS::Lambda::Function", function)
    creating("AWS::Lambda::EventSourceMapping", trigger)


def state_the_limits_of_an_account():
    # Ministack's own limit follows the memory of this machine; the stack has the sizes for an account of 1,000.
    from ministack.services import lambda_svc

    def get_account_settings():
        functions = lambda_svc._functions
        reserved = sum(int(functions[name].get("concurrency") or 0) for name in functions.keys())
        limits = {"ConcurrentExecutions": 1000, "UnreservedConcurrentExecutions": 1000 - reserved}
        return lambda_svc.json_response({"AccountLimit": limits})

    lambda_svc._get_account_settings = get_account_settings


threading.Thread(target=end_with_parent, daemon=True).start()
name_actions_as_aws_does()
name_schedules_as_aws_does()
read_the_template_as_aws_does()
state_the_limits_of_an_account()
sys.argv = ["ministack"]
runpy.run_module("ministack", run_name="__main__", alter_sys=True)
