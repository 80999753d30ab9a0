"""One command in the foreground: it has the terminal, and its exit code is ours.

Unlike a job it stays in our process group, so that Ctrl-C and Ctrl-Z reach it as if we were not there. What it leaves
behind is ended. It knows nothing of GPUs.
"""

import os
import signal
from collections.abc import Callable, Mapping, Sequence

from . import process_tree, processes
from .errors import UserError
from .process_tree import Running

_FROM_THE_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
ENDING = (*_FROM_THE_TERMINAL, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
_NOT_FOUND, _NOT_TO_BE_RUN = 127, 126
_GRACE = 10.0


class CannotStartError(UserError):
    """The command cannot be started; the code is what a shell would end with."""


def run_in_foreground(
    argv: tuple[str, ...],
    environment: Mapping[bytes, bytes],
    inherits: Sequence[int],
    started: Callable[[int], object],
    heeded: Sequence[int],
) -> int:
    """Run a command to its end and beyond that of all it has left; its wait status.

    `heeded` are the signals of `ENDING` that nobody had us ignore: those that come to us alone are forwarded to it.
    """
    processes.adopt_orphans()
    before = process_tree.children(os.getpid())
    try:
        pid = os.posix_spawnp(
            argv[0],
            argv,
            environment,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, fd, processes.first_inherited() + at) for at, fd in enumerate(inherits)
            ],
            setsigmask=[],
            setsigdef=[*heeded, *_BY_PYTHON],
        )
    except OSError as error:
        failed = CannotStartError(f"cannot start {argv[0]}: {error.strerror}")
        failed.code = _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_TO_BE_RUN
        raise failed from None
    started(pid)
    for number in heeded:
        is_known = number in _FROM_THE_TERMINAL
        signal.signal(number, signal.SIG_IGN if is_known else lambda got, _frame: _forward(pid, got))
    processes.wait_for_end(pid)
    for number in heeded:
        signal.signal(number, signal.SIG_IGN)  # its pid may be anybody's from here on
    status = processes.reap(pid)
    if processes.has_orphans():
        process_tree.end_strays(lambda: Running((), before), lambda _pid: "ended", _GRACE, lambda: False)
        processes.has_orphans()
    return status


def _forward(pid: int, number: int) -> None:
    os.kill(pid, number)
