"""A separate program: runs a command, and stays until everything that the command left running has ended, for a while.

`mail` exits once it has started the process that sends the mail. Without a guardian, that process would become a
child of the scheduler, which would take it for a leftover of a job and end it. This program is run by path, imports no
other file, and exits as the command does.
"""

import ctypes
import os
import signal
import sys
from contextlib import suppress

_PR_SET_CHILD_SUBREAPER = 36
_LONGEST_FOR_THE_REST = 5  # seconds; a daemon would stay forever
_BY_SIGNAL = 128
# Python ignores them, and a program must not inherit that.
_TO_DEFAULT = (signal.SIGPIPE, signal.SIGXFSZ)


def guard(argv: list[str]) -> None:
    """Run it, wait for it and what it leaves, and exit with its code; 128 and the signal if one has killed it."""
    code = 0
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    main = os.posix_spawn(argv[0], argv, os.environ, setsigdef=_TO_DEFAULT)
    signal.signal(signal.SIGALRM, lambda *_: os._exit(code))
    with suppress(ChildProcessError):  # nothing is left
        while True:
            pid, status = os.wait()
            if pid == main:
                code = _BY_SIGNAL + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
                signal.alarm(_LONGEST_FOR_THE_REST)
    os._exit(code)


if __name__ == "__main__":
    guard(sys.argv[1:])
