"""Who owns a process: the mark that attempts give to all their processes, and the family of one scheduler.

The mark is in the environment, where a process keeps it unless it clears it. This only reads marks; it does not act on
them.
"""

import os

from simple_gpu_scheduler.base.jobs import Attempt, Key

from .leftovers import read_process, read_variable
from .users import owner

# All attempts that a process is part of, the outermost first, as `/RUN.JOB.ATTEMPT`: a job may run a scheduler.
TREE = b"SGS_TREE"
_INIT = 1


def mark(attempt: Attempt, run_id: bytes) -> bytes:
    """The unique mark of this attempt, for `TREE`."""
    return b"/%s.%d.%d" % (run_id, attempt.job.number, attempt.number)


def attempts_in(tree: bytes, run_id: bytes) -> list[Key]:
    """The attempts of this run that a process with this `TREE` is part of, the outermost first."""
    found = []
    for each in tree.split(b"/"):
        run, *key = each.rsplit(b".", 2)
        if run == run_id and len(key) == 2 and all(number.isdigit() for number in key):  # noqa: PLR2004 - job, attempt
            found.append((int(key[0]), int(key[1])))
    return found


def _pids_of_leases(tree: bytes) -> list[int]:
    """The processes in a `TREE` that hold a lease(), as in `/lease-4711-1`."""
    names = [each.split(b"-") for each in tree.split(b"/")]
    return [int(name[1]) for name in names if len(name) > 2 and name[0] == b"lease" and name[1].isdigit()]  # noqa: PLR2004


class Family:
    """The processes of a scheduler: those below it, of its attempts, and of the attempt it is part of."""

    def __init__(self, run_id: str = "", outer_tree: bytes = b"") -> None:
        self._run_id = run_id.encode()
        self._outer_tree = outer_tree
        # A process that holds a lease() around us is family too. /proc shows its initial environment, without the mark.
        self._roots = {os.getpid(), *_pids_of_leases(outer_tree)}

    def attempt_of(self, pid: int) -> Key | None:
        """The attempt that a process belongs to."""
        return next(iter(attempts_in(self._tree_of(pid), self._run_id)), None)

    def includes(self, pid: int) -> bool:
        """Whether a process belongs to the family, even if it cleared its environment."""
        if self._outer_tree and (self._tree_of(pid) + b"/").startswith(self._outer_tree + b"/"):
            return True
        while pid > _INIT:
            if pid in self._roots:
                return True
            process = read_process(pid)
            pid = process.parent if process else 0
        return False

    def _tree_of(self, pid: int) -> bytes:
        """Only for processes of this user: others could fake it."""
        return read_variable(pid, TREE) if owner(pid) == os.getuid() else b""
