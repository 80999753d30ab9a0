"""`run`: waits for free GPUs, runs one command with the terminal, and exits with its exit code."""

import errno
import os
import sys
import time

from simple_gpu_scheduler.base.clock import SystemClock
from simple_gpu_scheduler.base.errors import BY_SIGNAL, UserError
from simple_gpu_scheduler.base.gpu_waits import Wait
from simple_gpu_scheduler.base.jobs import Attempt, Job, Place, outcome_of
from simple_gpu_scheduler.base.stdlib import signal
from simple_gpu_scheduler.base.text import show_waits
from simple_gpu_scheduler.base.units import parse_duration
from simple_gpu_scheduler.base.values import Any, Callable, Mapping, NamedTuple, Sequence
from simple_gpu_scheduler.cli.declarations import Argument, Command, Option, Parsed, Section, UsageError, Whole
from simple_gpu_scheduler.cli.options.gpus import gpu_sections, take_wants
from simple_gpu_scheduler.gpus.acquire import Acquired, acquire
from simple_gpu_scheduler.gpus.discover import Wants, find_machine, open_pool
from simple_gpu_scheduler.gpus.pool import Demand
from simple_gpu_scheduler.system.foreground import FOR_THE_COMMAND, cannot_start, run_in_foreground
from simple_gpu_scheduler.system.inbox import SystemInbox
from simple_gpu_scheduler.system.job_environment import inherited, own, unbuffered
from simple_gpu_scheduler.system.marks import TREE, Family, mark
from simple_gpu_scheduler.system.signals import signals_to

_EXAMPLES = r"""
simple_gpu_scheduler run -- python train.py --lr 0.1
simple_gpu_scheduler run -n 2 -- torchrun --nproc-per-node 2 train.py
simple_gpu_scheduler run --no-wait -- python quick_look.py || echo 'no GPU is free'
simple_gpu_scheduler run --wait 30m -- bash
"""
_HELP = """Wait for a free GPU, run COMMAND on it in this terminal, and exit with its exit code.

The exit code is 128 + N if signal N ended the command, 75 if --no-wait found no free GPU, 124 if the time limit
of --wait expired, and 126 or 127 if the command cannot be started. Processes that the command leaves behind are ended.
"""
_SECTIONS = (
    *gpu_sections(
        "simple_gpu_scheduler run --gpus 0 1 -- python train.py",
        [
            Option(
                ["-n", "--number"],
                kind=Whole(1),
                metavar="N",
                default=1,
                help="How many GPUs to use.  [default: 1]",
            )
        ],
    ),
    Section(
        "How long to wait",
        (
            Option(["--wait"], kind=Parsed("duration", parse_duration), help="Give up after this time: 30m."),
            Option(["--no-wait"], is_flag=True, help="Give up at once if no GPU is free."),
        ),
    ),
)


def _callback(number: int, wait: float | None, no_wait: bool, command: tuple[str, ...], **typed: Any) -> int:
    if no_wait and wait is not None:
        raise UsageError("--wait and --no-wait exclude each other.")
    if len(command) == 1:
        _refuse_shell_line(command[0])
    errand = Errand(command, number, 0 if no_wait else wait, take_wants(typed))
    return run_errand(errand, os.environb, lambda text: print(text, file=sys.stderr, flush=True))


def _refuse_shell_line(word: str) -> None:
    """Before any waiting for a GPU, since it would not start."""
    from simple_gpu_scheduler.cli.hints import hint_at_shell_line  # noqa: PLC0415 - most commands have several words

    if hint := hint_at_shell_line(word):
        raise cannot_start(word, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)), hint)


run_command = Command(
    "run",
    callback=_callback,
    has_machine_defaults=True,
    is_for_program=True,
    argument=Argument("command", is_required=True),
    help=_HELP,
    sections=_SECTIONS,
    examples=_EXAMPLES,
)


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
        raise UserError(f"-n {errand.gpus}: only {_gpus(len(machine.gpus))} available")
    for remark in machine.remarks:
        say(remark)
    run_id = f"run-{os.getpid()}-{time.time_ns()}"
    attempt = Attempt(Job(1, b"", Place(1), errand.gpus), 1, (), (0,))
    its_mark = mark(attempt, run_id.encode())
    inbox = SystemInbox()
    tree = environment.get(TREE, b"")
    pool = open_pool(machine, errand.wants, inbox.put, Family(run_id, tree), tree)
    clock = SystemClock()
    not_ignored = [number for number in FOR_THE_COMMAND if signal.getsignal(number) != signal.SIG_IGN]
    with signals_to(inbox.put):
        until = _NEVER if errand.wait is None else clock.now() + errand.wait
        got = acquire(
            errand.gpus,
            pool,
            its_mark,
            inbox,
            clock,
            until,
            lambda waits: say(f"waiting: {show_waits(waits)}"),
            say,
        )
    if isinstance(got, Acquired):  # outside, or the thread would take signals meant for the command
        return _run(errand, attempt._replace(gpus=got.gpus), got, environment, run_id, not_ignored)
    if got is None:
        say(_sorry(errand, pool.waits(Demand(errand.gpus))))
        return WAITED_TOO_LONG if errand.wait else NONE_FREE
    return BY_SIGNAL + got.number


def _run(
    errand: Errand,
    attempt: Attempt,
    got: Acquired,
    environment: Mapping[bytes, bytes],
    run_id: str,
    not_ignored: Sequence[int],
) -> int:
    pairs = [
        *inherited(environment),
        *unbuffered(environment),
        *own(attempt, run_id.encode(), environment.get(TREE, b"")),
    ]
    its_environment = dict(pair.split(b"=", 1) for pair in pairs)
    hold = got.hold
    try:
        outcome = outcome_of(
            run_in_foreground(errand.command, its_environment, hold.descriptors, hold.sign, not_ignored)
        )
    finally:
        for lease, _ in hold.leases:
            lease.release()
    return BY_SIGNAL + outcome.code if outcome.kind == "killed" else outcome.code


def _sorry(errand: Errand, waits: Sequence[Wait]) -> str:
    how_many = "no GPU is" if errand.gpus == 1 else f"fewer than {errand.gpus} GPUs are"
    return f"{how_many} free: {show_waits(waits)}"


def _gpus(count: int) -> str:
    return "1 GPU is" if count == 1 else f"{count} GPUs are"
