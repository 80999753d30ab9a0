"""Waits for messages that are so short that they may be over before they begin."""

import subprocess
import sys

from tests.conftest import UNMEASURED, until

WAITS = """
import sys, time
from queue import Empty
from simple_gpu_scheduler.system.inbox import SystemInbox

until = time.monotonic() + 1
while time.monotonic() < until:
    for _ in range(1000):
        try: SystemInbox().get(timeout=1e-6)
        except Empty: pass
"""


def test_no_wait_is_for_ever_when_its_time_has_passed_before_it_began() -> None:
    """Many short waits, of several programs, so that some are interrupted at the worst moment."""
    programs = [subprocess.Popen([sys.executable, "-c", WAITS], env=UNMEASURED) for _ in range(4)]
    try:
        until(lambda: all(each.poll() == 0 for each in programs), "all waits are over")
    finally:
        for each in programs:
            each.kill()
            each.wait()
