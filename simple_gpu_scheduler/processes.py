"""Processes of this machine: starting one in its own session, waiting for it, signalling it, and adopting its orphans.

Linux only. It knows pids and wait statuses; not jobs, outcomes or deadlines. What a process leaves behind is the
business of `process_tree`.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Mapping

from .errors import UserError

_PR_SET_CHILD_SUBREAPER = 36
_WNOTHREAD = 0x20000000

# What Python or this program ignores, and a job must not inherit as ignored.
_TO_DEFAULT = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTTOU)
_STDIN_FROM_NOTHING = ((os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),)

# PyDLL keeps the interpreter lock during the call. For a call that never waits that is the point: giving the lock up
# and getting it back behind a thread that is just starting a process costs more than all else that a job's end costs.
_libc = ctypes.PyDLL(None, use_errno=True)


def adopt_orphans() -> None:
    """From now on a process whose parent ends becomes a child of the main thread, and not of init."""
    if sys.platform != "linux" or _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise UserError("this system cannot tell which processes a job leaves behind; Linux 3.4 or newer can")


def start(argv: tuple[bytes, ...], environment: Mapping[bytes, bytes]) -> int:
    """Start a program in a session of its own, with nothing to read; its pid. An OSError says why it did not start.

    posix_spawn and not `subprocess`: it loads in no time, and starts in half of it.
    """
    return os.posix_spawn(
        argv[0],
        argv,
        environment,
        file_actions=_STDIN_FROM_NOTHING,
        setsid=True,
        setsigmask=(),
        setsigdef=_TO_DEFAULT,
    )


def wait_for_end(pid: int) -> None:
    """Wait until the process has ended. Its pid stays its own until `reap`, so that it still may be signalled."""
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def reap(pid: int) -> int:
    """The wait status of a process that has ended; its pid may be anybody's from here on."""
    return os.waitpid(pid, os.WNOHANG)[1]


def signal_group(pid: int, number: int) -> None:
    """Signal a session leader that was not reaped, and its process group. A stopped group is made to go on."""
    os.killpg(pid, number)
    if number != signal.SIGKILL:
        os.killpg(pid, signal.SIGCONT)


def has_orphans() -> bool:
    """Reap the orphans that have ended; whether others are alive. Call it from the main thread.

    The kernel gives orphans to the main thread, and the children that worker threads started are those threads', so
    __WNOTHREAD tells the two apart in one system call.
    """
    while True:
        pid = int(_libc.waitpid(-1, None, os.WNOHANG | _WNOTHREAD))
        if pid <= 0:
            return pid == 0
