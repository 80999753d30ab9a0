"""Where and when a run takes place: on this machine and now, or nowhere and in no time."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import NamedTuple

from simple_gpu_scheduler.base.clock import Clock, SystemClock
from simple_gpu_scheduler.engines import ENGINES, Engine, EngineOptions
from simple_gpu_scheduler.inputs.gather import QUEUES, Gathered
from simple_gpu_scheduler.run.messages import Inbox, Message
from simple_gpu_scheduler.run.options import Options
from simple_gpu_scheduler.scheduling.estimates import Estimates, Recalled
from simple_gpu_scheduler.scheduling.policies import Policy
from simple_gpu_scheduler.system.threads import start_thread


class World(NamedTuple):
    """What the loop acts on, and by which time."""

    engine: Engine
    inbox: Inbox
    clock: Clock
    read_more: Callable[[], object]


def find_world(
    options: Options,
    engine_options: EngineOptions,
    inbox: "SimpleQueue[Message]",
    read_more: Callable[[], object],
    gathered: Gathered,
) -> World:
    """The one that is asked for."""
    if options.execution.engine == "simulated" and not options.execution.dry_run:
        from simple_gpu_scheduler.engines.simulated import Simulated  # noqa: PLC0415 - few want it

        ends = options.input.no_follow or not any(each.kind in QUEUES for each in gathered.inputs)
        simulated = Simulated(inbox, time.time(), read_more, ends=ends)
        return World(simulated, simulated, simulated, simulated.read_more)
    return World(
        ENGINES["dry-run" if options.execution.dry_run else "local"](engine_options), inbox, SystemClock(), read_more
    )


def find_estimates(
    options: Options, policy: Policy, inbox: "SimpleQueue[Message]"
) -> tuple[Estimates, Callable[[], object] | None]:
    """What earlier runs tell of how long jobs take: at once where the order depends on it, else how to ask for it."""

    def read() -> Recalled:
        from simple_gpu_scheduler.journal.lengths import recall  # noqa: PLC0415 - most runs need none of it

        return recall(os.environ)

    def tell() -> None:
        inbox.put(read())

    def ask() -> None:
        with suppress(RuntimeError):  # there can be no more threads: then it stays unknown
            start_thread(tell)

    learns = not options.execution.dry_run  # whose jobs take no time
    if policy.by_time:
        return Estimates(read().history, learns=learns), None
    # When it would come by simulated time, nobody could tell.
    return Estimates(learns=learns), tell if options.execution.runs_nothing else ask
