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


threading.Thread(target=end_with_parent, daemon=True).start()
sys.argv = ["ministack"]
runpy.run_module("ministack", run_name="__main__", alter_sys=True)
