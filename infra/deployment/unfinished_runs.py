"""Queues the unfinished runs of a stack again: an earlier stack took their messages, and the schedules that end long pauses, with it."""

import json
import time

import aws

# As SQS takes them: messages in a request, and seconds of a delay.
BATCH, LONGEST_DELAY = 10, 900
# Claims of effects are kept for five days; docs/operations.md, "Redrive".
REPEATABLE_FOR = 4 * 24 * 60 * 60
FILTER = "#part = :run AND #status IN (:queued, :running, :approval)"
VALUES = {":run": "run", ":queued": "queued", ":running": "running", ":approval": "waiting_for_approval"}


def queue(name, folder):
    """Sends a message for each unfinished run. One too many does no harm: a run knows whether it may go on, and paused ones pause again."""
    command = ["dynamodb", "scan", "--table-name", f"{name}-automation_runs", "--filter-expression", FILTER]
    command += ["--projection-expression", "id, organization_id, lease_until, resume_at"]
    command += ["--expression-attribute-names", json.dumps({"#part": "part", "#status": "status"})]
    command += ["--expression-attribute-values", json.dumps({key: {"S": value} for key, value in VALUES.items()})]
    found, now = aws.ask(*command)["Items"], time.time()
    old = [run["id"]["S"] for run in found if 0 < _seconds(run, "lease_until") < now - REPEATABLE_FOR]
    runs = [run for run in found if run["id"]["S"] not in old]
    address = aws.ask("sqs", "get-queue-url", "--queue-name", f"{name}-runs")["QueueUrl"] if runs else None
    for start in range(0, len(runs), BATCH):
        entries = [_entry(str(number), run, now) for number, run in enumerate(runs[start : start + BATCH])]
        request = folder.write("runs.json", {"QueueUrl": address, "Entries": entries})
        refused = (aws.ask("sqs", "send-message-batch", "--cli-input-json", request) or {}).get("Failed")
        if refused:
            raise aws.Failed(f"SQS refused {len(refused)} messages: {refused[0].get('Message') or refused[0]['Code']}")
    aws.say(f"{len(runs)} unfinished runs of automations are on their queue again")
    if old:
        aws.say(
            f"{len(old)} are not: they were interrupted more than four days ago, and might repeat an effect. Look at their steps, cancel "
            f"them and start them anew (POST /api/{{slug}}/runs/{{id}}/cancel): {', '.join(old)}"
        )


def _seconds(run, attribute):
    """A time in milliseconds, in seconds; 0 if the run has none."""
    return int(run.get(attribute, {}).get("N", 0)) / 1000


def _entry(number, run, now):
    organization = run["organization_id"]["S"]
    # Before these times a message is dropped as one too many.
    until = max(_seconds(run, "lease_until"), _seconds(run, "resume_at"))
    delay = min(max(0, int(until - now) + 1), LONGEST_DELAY)
    body = json.dumps({"organization_id": organization, "run_id": run["id"]["S"]})
    # The group is the organization's share of the queue, as in the functions' own messages.
    return {"Id": number, "MessageBody": body, "DelaySeconds": delay, "MessageGroupId": organization}
