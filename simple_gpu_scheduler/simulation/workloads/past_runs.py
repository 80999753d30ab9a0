"""Our own journals -> rows, and how long the jobs of each template took in earlier runs.

It does not know where journals are, nor which of them count. Pure.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from io import BytesIO
from itertools import islice
from typing import Any

from simple_gpu_scheduler.journal.read import Record, read_records
from simple_gpu_scheduler.journal.run_state import RunState
from simple_gpu_scheduler.scheduling.estimates import RUNS_KEPT
from simple_gpu_scheduler.scheduling.templates import template_of

from .cells import MOST_SECONDS
from .rows import Row

_READ = b'{"event":"job read"'
_ENDED = b'{"event":"job ended"'
_SUCCEEDED = b'"succeeded"'
_AT_ONCE = 2_000
_OWN_ENDS = ("succeeded", "failed", "timed out")


def rows_of(state: RunState) -> list[Row]:
    """The jobs of a run that came to their own end or their time-out; not those that need no GPU."""
    rows = []
    for each in state.jobs.values():
        job, outcome = each.job, each.outcome
        has_ended = outcome and outcome.kind in _OWN_ENDS and each.state in ("succeeded", "failed")
        if has_ended and job.gpus > 0 and each.runtime >= 0:
            requested = job.timeout or None if job.time is None else job.time  # a time-out of 0 is none
            command = job.command.decode("utf-8", "surrogateescape")
            rows.append(Row(each.read_at, each.runtime, job.gpus, job.label, requested, command, job.priority))
    return rows


def history_of(journals: Iterable[bytes]) -> dict[str, list[float]]:
    """How long the newest successes of each template took, the oldest first; of journals that come the oldest first.

    A journal may lack its begin. What cannot be read is passed over, and so is a job whose reading is missing. It is
    asked for when a run begins, so only the lines that tell something are parsed, and only what is used is checked.
    """
    found: dict[str, deque[float]] = {}
    for journal in journals:
        for template, runtime in _successes(journal):
            found.setdefault(template, deque(maxlen=RUNS_KEPT)).append(runtime)
    return {template: list(runs) for template, runs in found.items()}


def _successes(journal: bytes) -> Iterator[tuple[str, float]]:
    commands: dict[int, str] = {}
    for record in _telling(journal):
        number = record.get("job")
        if type(number) is not int:
            continue
        if record["event"] == "job read":
            command = record.get("command")
            if type(command) is str:
                commands[number] = command
        elif number in commands and record.get("outcome") == "succeeded":
            runtime: Any = record.get("runtime")
            if type(runtime) in (float, int) and 0 <= runtime < MOST_SECONDS:
                yield template_of(commands[number]), runtime


def _telling(journal: bytes) -> Iterator[Record]:
    lines = (
        line
        for line in BytesIO(journal)  # which makes no copy
        if line.startswith(_READ) or (line.startswith(_ENDED) and _SUCCEEDED in line)
    )
    while some := [*islice(lines, _AT_ONCE)]:  # all of them at once would take a hundred megabytes
        yield from read_records(b"".join(some)).records
