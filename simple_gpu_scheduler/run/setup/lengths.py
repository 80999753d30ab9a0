"""What earlier runs tell of how long jobs take."""

import os
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue

from simple_gpu_scheduler.run.messages import Message
from simple_gpu_scheduler.run.options import ExecutionOptions
from simple_gpu_scheduler.scheduling.estimates import Estimates, Recalled
from simple_gpu_scheduler.scheduling.policies import Policy
from simple_gpu_scheduler.system.threads import start_thread


def find_estimates(
    execution: ExecutionOptions, policy: Policy, inbox: "SimpleQueue[Message]"
) -> tuple[Estimates, Callable[[], object] | None]:
    """What is known: at once where the order depends on it, else how to ask for it."""

    def read() -> Recalled:
        from simple_gpu_scheduler.journal.lengths import recall  # noqa: PLC0415 - with json 3 ms

        return recall(os.environ)

    def tell() -> None:
        inbox.put(read())

    def ask() -> None:
        with suppress(RuntimeError):  # there can be no more threads: then it stays unknown
            start_thread(tell)

    learns = not execution.dry_run  # whose jobs take no time
    if policy.by_time:
        return Estimates(read().history, learns=learns), None
    # When it would come by simulated time, nobody could tell.
    return Estimates(learns=learns), tell if execution.runs_nothing else ask
