"""Runs ministack, and ends it with the functions it started as soon as standard input is closed.

Whoever starts it holds the other end of standard input, so it ends even if that process is killed. It must lead a
process group of its own.
"""

import os
import runpy
import signal
import sys
import threading


def end_with_parent():
    # Not through sys.stdin: its lock, held here, would spoil the end of an interpreter that ends by itself.
    os.read(0, 1)
    # Everything is in memory and thrown away: there is nothing to end gently.
    os.killpg(0, signal.SIGKILL)


def name_actions_as_aws_does():
    # A batch is sent under the permission to send one message; ministack asks for one of its own, which IAM does not have.
    from ministack.core import iam_actions

    plain = iam_actions.extract_iam_action

    def extract_iam_action(*arguments, **named):
        action = plain(*arguments, **named)
        return "sqs:SendMessage" if action == "sqs:SendMessageBatch" else action

    iam_actions.extract_iam_action = extract_iam_action


threading.Thread(target=end_with_parent, daemon=True).start()
name_actions_as_aws_does()
sys.argv = ["ministack"]
runpy.run_module("ministack", run_name="__main__", alter_sys=True)
