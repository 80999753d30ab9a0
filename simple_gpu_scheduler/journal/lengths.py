"""Lengths of jobs in this user's earlier runs, and their peaks of memory if asked for.

They come from the newest journals, as many as can be read in a moment.
"""

import os
from io import BytesIO
from itertools import islice

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.stdlib import deque, suppress
from simple_gpu_scheduler.base.values import Any, Iterable, Iterator, Mapping, NamedTuple
from simple_gpu_scheduler.scheduling.estimates import MOST_SECONDS, RUNS_KEPT, PastLengths
from simple_gpu_scheduler.scheduling.peaks import recorded_peak
from simple_gpu_scheduler.scheduling.templates import template_of

from . import files
from .read import Record, read_records

# About a third of a second.
_MOST_BYTES = 32 * 2**20
_AT_ONCE = 2_000
_ENDED = b'{"event":"job ended"'
_READ = b'{"event":"job read"'
_MEASURED = b'{"event":"attempt measured"'
_SUCCEEDED = b'"succeeded"'


class _Success(NamedTuple):
    template: str
    length: float
    peak: int | None


def past_lengths(environment: Mapping[str, str], *, with_peaks: bool = False) -> PastLengths:
    """Read the journals; unreadable ones are skipped."""
    newest: list[tuple[str, int]] = []
    left = _MOST_BYTES
    for path in files.find_runs(files.runs_directory(environment)):
        with suppress(OSError):  # it was just deleted, or is a link to one that is gone
            newest.append((path, left))
            left -= os.stat(path).st_size
        if left <= 0:
            break
    return history_of(_read(newest[::-1]), with_peaks=with_peaks)


def _read(parts: list[tuple[str, int]]) -> Iterator[bytes]:
    """One at a time, so that only one is in memory."""
    for path, most in parts:
        with suppress(OSError, UserError):
            yield files.read(path, most)


def history_of(journals: Iterable[bytes], *, with_peaks: bool = False) -> PastLengths:
    """How long the newest successes of each template took, oldest first; journals must come oldest first.

    A journal may lack its beginning. Unreadable lines are skipped, and jobs whose reading is missing. It is used when a
    run starts, so only relevant lines are parsed, and only used fields are checked.
    """
    lengths: dict[str, deque[float]] = {}
    peaks: dict[str, deque[float]] = {}
    for journal in journals:
        for template, length, peak in _successes(journal, with_peaks=with_peaks):
            lengths.setdefault(template, deque(maxlen=RUNS_KEPT)).append(length)
            if peak is not None:
                peaks.setdefault(template, deque(maxlen=RUNS_KEPT)).append(peak)
    return PastLengths(_listed(lengths), _listed(peaks) if with_peaks else None)


def _listed(found: Mapping[str, Iterable[float]]) -> dict[str, list[float]]:
    return {template: list(values) for template, values in found.items()}


def _successes(journal: bytes, *, with_peaks: bool) -> Iterator[_Success]:
    commands: dict[int, str] = {}
    gpus: dict[int, Any] = {}
    measured: dict[int, Record] = {}  # of attempts whose end comes next
    for record in _telling(journal, with_peaks=with_peaks):
        number = record.get("job")
        if type(number) is not int:
            continue
        if record["event"] == "job read":
            command = record.get("command")
            if type(command) is str:
                commands[number], gpus[number] = command, record.get("gpus", 1)
        elif record["event"] == "attempt measured":
            measured[number] = record
        elif number in commands and record.get("outcome") == "succeeded":
            length: Any = record.get("runtime")
            what = measured.pop(number, {})
            is_its = what and what.get("attempt") == record.get("attempt")
            peak = recorded_peak(what.get("gpus"), gpus[number]) if is_its else None
            if type(length) in (float, int) and 0 <= length < MOST_SECONDS:
                yield _Success(template_of(commands[number]), length, peak)


def _telling(journal: bytes, *, with_peaks: bool) -> Iterator[Record]:
    kinds = (_READ, _MEASURED) if with_peaks else _READ
    lines = (
        line
        for line in BytesIO(journal)  # which makes no copy
        if line.startswith(kinds) or (line.startswith(_ENDED) and _SUCCEEDED in line)
    )
    while some := [*islice(lines, _AT_ONCE)]:  # all of them at once would take a hundred megabytes
        yield from read_records(b"".join(some)).records
