"""A workload as rows, and as arrivals for the simulator, with what the scheduler may know of lengths.

It does not know where rows come from or how arrivals are used. Pure.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from simple_gpu_scheduler.base.jobs import Job, Place
from simple_gpu_scheduler.simulation.simulate import Arrival


class TraceJob(NamedTuple):
    """One job as recorded: when it arrived, its length, and the time its user requested. All in seconds."""

    submit: float
    length: float
    gpus: int = 1
    user: str = ""
    requested: float | None = None
    command: str = ""
    priority: int = 0


_LENGTHS: Mapping[str, Callable[[TraceJob], float | None]] = {
    "exact": lambda row: row.length,
    "requested": lambda row: row.requested,
    "past": lambda _row: None,
    "none": lambda _row: None,
}
# What the scheduler may know of the length of a job; with `none`, its `Estimates` must not learn.
ESTIMATES = tuple(_LENGTHS)


def arrivals(rows: Iterable[TraceJob], most_gpus: int, estimates: str) -> tuple[list[Arrival], list[str]]:
    """In order of submission, the first at 0, without jobs that could never fit; and remarks on those.

    `estimates` is one of ESTIMATES.
    """
    estimate_of = _LENGTHS[estimates]
    everybody = sorted(rows, key=lambda row: row.submit)
    fitting = [row for row in everybody if row.gpus <= most_gpus]
    begin = fitting[0].submit if fitting else 0.0
    commands = _Commands()
    found = [
        Arrival(row.submit - begin, _job(number, row, commands.of(row), estimate_of(row)), row.length)
        for number, row in enumerate(fitting, 1)
    ]
    too_wide = len(everybody) - len(fitting)
    if not too_wide:
        return found, []
    width = f"{most_gpus:,} GPU{'' if most_gpus == 1 else 's'}"
    widest = max(row.gpus for row in everybody)
    return found, [left_out(too_wide, "job", f"wider than {width}") + f"; the widest needs {widest:,}"]


def left_out(count: int, noun: str, which: str) -> str:
    """A remark: `3 rows without a duration are left out`."""
    return f"{count:,} {noun}{'s' * (count != 1)} {which} {'is' if count == 1 else 'are'} left out"


class _Commands:
    """The command of each row; without one, one per user and width, so that lengths can be learned for them.

    Letters number them, since a template would leave open a number, or a quote in a user's name.
    """

    _LETTERS = str.maketrans("0123456789", "abcdefghij")

    def __init__(self) -> None:
        self._made: dict[tuple[str, int], bytes] = {}

    def of(self, row: TraceJob) -> bytes:
        """As a job has it."""
        if row.command:
            return row.command.encode("utf-8", "surrogateescape")
        kind = (row.user, row.gpus)
        if kind not in self._made:
            self._made[kind] = f"kind {str(len(self._made)).translate(self._LETTERS)}".encode()
        return self._made[kind]


def _job(number: int, row: TraceJob, command: bytes, estimate: float | None) -> Job:
    return Job(number, command, Place(number), gpus=row.gpus, time=estimate, priority=row.priority, label=row.user)
