"""Lengths of jobs in this user's earlier runs, from the newest journals, as many as can be read in a moment."""

import os
from io import BytesIO
from itertools import islice

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.stdlib import deque, suppress
from simple_gpu_scheduler.base.values import Any, Iterable, Iterator, Mapping
from simple_gpu_scheduler.scheduling.estimates import MOST_SECONDS, RUNS_KEPT, PastLengths
from simple_gpu_scheduler.scheduling.templates import template_of

from . import files
from .read import Record, read_records

# About a third of a second.
_MOST_BYTES = 32 * 2**20
_AT_ONCE = 2_000
_ENDED = b'{"event":"job ended"'
_READ = b'{"event":"job read"'
_SUCCEEDED = b'"succeeded"'


def past_lengths(environment: Mapping[str, str]) -> PastLengths:
    """Read the journals; unreadable ones are skipped."""
    newest: list[tuple[str, int]] = []
    left = _MOST_BYTES
    for path in files.find_runs(files.runs_directory(environment)):
        with suppress(OSError):  # it was just deleted, or is a link to one that is gone
            newest.append((path, left))
            left -= os.stat(path).st_size
        if left <= 0:
            break
    return PastLengths(history_of(_read(newest[::-1])))


def _read(parts: list[tuple[str, int]]) -> Iterator[bytes]:
    """One at a time, so that only one is in memory."""
    for path, most in parts:
        with suppress(OSError, UserError):
            yield files.read(path, most)


def history_of(journals: Iterable[bytes]) -> dict[str, list[float]]:
    """How long the newest successes of each template took, oldest first; journals must come oldest first.

    A journal may lack its beginning. Unreadable lines are skipped, and jobs whose reading is missing. It is used when a
    run starts, so only relevant lines are parsed, and only used fields are checked.
    """
    found: dict[str, deque[float]] = {}
    for journal in journals:
        for template, length in _successes(journal):
            found.setdefault(template, deque(maxlen=RUNS_KEPT)).append(length)
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
            length: Any = record.get("runtime")
            if type(length) in (float, int) and 0 <= length < MOST_SECONDS:
                yield template_of(commands[number]), length


def _telling(journal: bytes) -> Iterator[Record]:
    lines = (
        line
        for line in BytesIO(journal)  # which makes no copy
        if line.startswith(_READ) or (line.startswith(_ENDED) and _SUCCEEDED in line)
    )
    while some := [*islice(lines, _AT_ONCE)]:  # all of them at once would take a hundred megabytes
        yield from read_records(b"".join(some)).records
