"""The `run` command's work: find GPUs, wait for them, run one command, and say how it went as an exit code."""

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from queue import SimpleQueue
from typing import NamedTuple

from .acquire import Acquired, Wanted, acquire
from .clock import SystemClock
from .engines.environment import inherited, own
from .errors import BY_SIGNAL, Broken, UserError
from .foreground import FOR_THE_COMMAND, run_in_foreground
from .jobs import Attempt, Job, Place, outcome_of
from .leases import LeaseCame
from .machine import Wants, allot, find_machine
from .ownership import TREE, Family, mark
from .signals import Signalled, signals_to
from .waiting import Wait
from .wording import show_waits

NONE_FREE, WAITED_TOO_LONG = 75, 124  # as EX_TEMPFAIL of sysexits.h, and as timeout(1)
_NEVER = float("inf")


class Errand(NamedTuple):
    """The command line of `run`. `wait` is in seconds; None for as long as it takes."""

    command: tuple[str, ...]
    gpus: int
    wait: float | None
    wants: Wants


def run_errand(errand: Errand, environment: Mapping[bytes, bytes], say: Callable[[str], object]) -> int:
    """Run it; the exit code."""
    machine = find_machine(errand.wants, os.environ)
    if errand.gpus > len(machine.gpus):
        raise UserError(f"-n {errand.gpus}: there {_are(len(machine.gpus))} to use")
    for remark in machine.remarks:
        say(remark)
    run_id = f"run-{os.getpid()}-{time.time_ns()}"
    attempt = Attempt(Job(1, b"", Place(1), errand.gpus), 1, (), (0,))
    its_mark = mark(attempt, run_id.encode())
    inbox: SimpleQueue[LeaseCame | Broken | Signalled] = SimpleQueue()
    tree = environment.get(TREE, b"")
    allotment = allot(machine, errand.wants, inbox.put, Family(run_id, tree), tree)
    clock = SystemClock()
    heeded = [number for number in FOR_THE_COMMAND if signal.getsignal(number) != signal.SIG_IGN]
    with signals_to(inbox.put):
        until = _NEVER if errand.wait is None else clock.now() + errand.wait
        got = acquire(
            errand.gpus,
            allotment,
            its_mark,
            inbox,
            clock,
            until,
            lambda waits: say(f"waiting: {show_waits(waits)}"),
            say,
        )
    if isinstance(got, Acquired):  # outside, or the thread would take signals that are for the command
        return _run(errand, attempt._replace(gpus=got.gpus), got, environment, run_id, heeded)
    if got is None:
        say(_sorry(errand, allotment.waits(Wanted(errand.gpus))))
        return WAITED_TOO_LONG if errand.wait else NONE_FREE
    return BY_SIGNAL + got.number


def _run(
    errand: Errand,
    attempt: Attempt,
    got: Acquired,
    environment: Mapping[bytes, bytes],
    run_id: str,
    heeded: Sequence[int],
) -> int:
    pairs = [*inherited(environment), *own(attempt, run_id.encode(), environment.get(TREE, b""))]
    its_environment = dict(pair.split(b"=", 1) for pair in pairs)
    hold = got.hold
    try:
        outcome = outcome_of(run_in_foreground(errand.command, its_environment, hold.descriptors, hold.sign, heeded))
    finally:
        for lease, _ in hold.leases:
            lease.release()
    return BY_SIGNAL + outcome.code if outcome.kind == "killed" else outcome.code


def _sorry(errand: Errand, waits: Sequence[Wait]) -> str:
    how_many = "no GPU is" if errand.gpus == 1 else f"there are no {errand.gpus} GPUs"
    return f"{how_many} free: {show_waits(waits)}"


def _are(count: int) -> str:
    return "is one GPU" if count == 1 else f"are {count} GPUs"
