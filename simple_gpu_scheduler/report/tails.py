"""Reads the jobs' logs: what each printed last, within a budget, and the last number that it gave for a name.

It knows files, and by `job_logs` their form; it does not know which jobs matter: they come in the order in which they
do.
"""

import os
import re
from collections.abc import Iterable
from stat import S_ISREG

from simple_gpu_scheduler.job_logs import TAIL, last_lines, output_of, read_tail

from .results import last_number

_LINES, _CHARACTERS = 20, 2_000
_IN_ALL = 4_000_000
# What a short tail counts at least, so that of no more than so many jobs the log is opened.
_LEAST = 200
# Blank lines, and bars that take several, leave fewer.
_LOOKED_AT = 3 * _LINES
_END = re.compile(rb"[\r\n]")
_BLOCKS = (TAIL, 1 << 18, 1 << 22)


def read_tails(logs: Iterable[tuple[int, str]]) -> dict[int, str]:
    """By job what it printed last, of the first so many."""
    tails: dict[int, str] = {}
    left = _IN_ALL
    for job, log in logs:
        if left <= 0:
            break
        tails[job] = tail = _tail(log)
        left -= max(_LEAST, len(tail))
    return tails


def _tail(log: str) -> str:
    if "\0" in log:  # the name of no file
        return ""
    ending = read_tail(log).rsplit("\n", _LOOKED_AT)[-_LOOKED_AT:]
    return "\n".join(last_lines("\n".join(ending), _LINES))[-_CHARACTERS:]


def read_result(log: str, name: str) -> float | None:
    """The last number that the newest attempt gave for a name, in the last few MB of its log."""
    try:
        fd = os.open(log, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):  # NUL in a name
        return None
    try:
        state = os.fstat(fd)
        return _search(fd, state.st_size, name) if S_ISREG(state.st_mode) else None
    finally:
        os.close(fd)


def _search(fd: int, size: int, name: str) -> float | None:
    wanted = name.encode("utf-8", "surrogateescape")
    for most in _BLOCKS:
        data = os.pread(fd, most, max(0, size - most))
        if most < size:  # of a line that is cut, a name may be too
            end = _END.search(data)
            data = data[end.end() :] if end else b""
        if wanted in data:
            found = last_number(output_of(data.decode("utf-8", "surrogateescape")), name)
            if found is not None:
                return found
        if most >= size:
            break
    return None
