"""How long jobs took in earlier runs."""

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
    """The known lengths: read now if the order depends on them, otherwise a function to read them later."""

    def read() -> Recalled:
        from simple_gpu_scheduler.journal.lengths import recall  # noqa: PLC0415 - with json 3 ms

        return recall(os.environ)

    def tell() -> None:
        inbox.put(read())

    def ask() -> None:
        with suppress(RuntimeError):  # no more threads can be started: then they stay unknown
            start_thread(tell)

    learns = not execution.dry_run  # whose jobs take no time
    if policy.by_time:
        return Estimates(read().history, learns=learns), None
    # In simulated time, the moment of their arrival would be arbitrary.
    return Estimates(learns=learns), tell if execution.runs_nothing else ask
