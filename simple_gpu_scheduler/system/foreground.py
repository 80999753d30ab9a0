"""One command in the foreground: it has the terminal, and its exit code is ours.

Unlike a job it stays in our process group, so that Ctrl-C and Ctrl-Z reach it as if we were not there. Processes that
it leaves behind are ended. It knows nothing of GPUs.
"""

import os

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.stdlib import signal
from simple_gpu_scheduler.base.values import Callable, Mapping, Sequence

from . import leftovers, processes

# What may end it; SIGTTOU is here because we ignore it ourselves.
FOR_THE_COMMAND = (
    *(signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2),
    signal.SIGTTOU,
)
_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
_NOT_FOUND, _NOT_TO_BE_RUN = 127, 126
_GRACE = 10.0
_BY_A_PROCESS = 0  # as si_code; the kernel's own, on behalf of the terminal, are above


class CannotStartError(UserError):
    """The command cannot be started; the code is what a shell would exit with."""


def cannot_start(program: str, error: OSError, way_out: str = "") -> CannotStartError:
    """Why, with the exit code, and what to do instead."""
    failed = CannotStartError(f"cannot start {program}: {error.strerror}{way_out and f'; {way_out}'}")
    failed.code = _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_TO_BE_RUN
    return failed


def run_in_foreground(
    argv: tuple[str, ...],
    environment: Mapping[bytes, bytes],
    inherits: Sequence[int],
    started: Callable[[int], object],
    not_ignored: Sequence[int],
) -> int:
    """Run a command until it and everything it left behind has ended; its wait status.

    `not_ignored` are the signals of `FOR_THE_COMMAND` that this program does not ignore. From here on they end only the
    command: a signal sent to us alone is forwarded; one from the terminal has reached the command too.
    """
    processes.adopt_orphans()
    me = os.getpid()
    before = leftovers.children(me)
    awaited = {*not_ignored, signal.SIGCHLD} - {signal.SIGTTOU}
    signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    try:
        pid = os.posix_spawnp(
            argv[0],
            argv,
            environment,
            file_actions=[(os.POSIX_SPAWN_DUP2, *pair) for pair in processes.inherited_as(inherits)],
            setsigmask=[],
            setsigdef=[*not_ignored, *_BY_PYTHON],
        )
    except OSError as error:
        raise cannot_start(argv[0], error) from None
    started(pid)
    while not processes.has_ended(pid):
        came = signal.sigwaitinfo(awaited)
        if came.si_signo != signal.SIGCHLD and came.si_code <= _BY_A_PROCESS:
            os.kill(pid, came.si_signo)
    status = processes.reap(pid)
    if processes.are_alive(leftovers.children(me) - before):
        leftovers.end_all(lambda: leftovers.strays(leftovers.read_table(), me, before, lambda _pid: "ended"), _GRACE)
        processes.are_alive(leftovers.children(me) - before)  # which also reaps those that were ended
    return status
