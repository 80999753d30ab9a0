"""Reads the logs of jobs: what each printed last, within a budget, and the last value of a metric.

It knows files, and their form by `log_file`; the caller passes the most important jobs first.
"""

import os
import re
from collections.abc import Iterable

from simple_gpu_scheduler.output.log_file import TAIL, last_lines, open_to_read, output_of, part_of, read_tail

_LINES, _CHARACTERS = 20, 2_000
_IN_ALL = 4_000_000
# The least that a short tail counts, which limits how many logs are opened.
_LEAST = 200
# More, since blank lines and progress bars drop out.
_LOOKED_AT = 3 * _LINES
_END = re.compile(rb"[\r\n]")
_BLOCKS = (TAIL, 1 << 18, 1 << 22)


def read_tails(logs: Iterable[tuple[int, str]], run: str = "") -> dict[int, str]:
    """What each job printed last, by job, until the budget is used up."""
    tails: dict[int, str] = {}
    left = _IN_ALL
    for job, log in logs:
        if left <= 0:
            break
        tails[job] = tail = _tail(log, run)
        left -= max(_LEAST, len(tail))
    return tails


def _tail(log: str, run: str) -> str:
    if "\0" in log:  # the name of no file
        return ""
    ending = read_tail(log, run=run).rsplit("\n", _LOOKED_AT)[-_LOOKED_AT:]
    return "\n".join(last_lines("\n".join(ending), _LINES))[-_CHARACTERS:]


def read_result(log: str, name: str, run: str = "") -> float | None:
    """The last number that the newest attempt printed for a metric, in the last few MB of its log."""
    try:
        fd = open_to_read(log)
    except (OSError, ValueError):  # NUL in a name
        return None
    try:
        return _search(fd, *part_of(fd, run), name)
    finally:
        os.close(fd)


def _search(fd: int, start: int, end: int, name: str) -> float | None:
    wanted = name.encode("utf-8", "surrogateescape")
    for most in _BLOCKS:
        at = max(start, end - most)
        data = os.pread(fd, end - at, at)
        if at > start:  # of a line that is cut, a name may be too
            cut = _END.search(data)
            data = data[cut.end() :] if cut else b""
        if wanted in data:
            found = last_number(output_of(data.decode("utf-8", "surrogateescape")), name)
            if found is not None:
                return found
        if at == start:
            break
    return None


_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_BETWEEN = r"""["']?(?:[ \t]*(?::=|=>|->|[:=|])[ \t]*|[ \t]+)["']?"""
_AROUND = r"(?:[A-Za-z_][A-Za-z0-9_.]{0,30}\()?"  # tensor(0.5), np.float64(0.5)
_NUMBER = r"[-+]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|[nN][aA][nN]|[iI]nf(?:inity)?)(?![\w]|\.\d)"
_VALUE = re.compile(f"{_BETWEEN}{_AROUND}({_NUMBER})")
_OF_A_NAME = re.compile(r"[\w./\-]")


def last_number(text: str, name: str) -> float | None:
    """The number, which may be nan or inf; None if there is none."""
    if "\x1b" in text:
        text = _COLOURS.sub("", text)
    at = text.rfind(name)
    while at >= 0:
        if not (at and _OF_A_NAME.match(text, at - 1)):
            match = _VALUE.match(text, at + len(name))
            if match:
                return float(match[1])
        # A name may overlap itself, so skip only its last letter.
        at = text.rfind(name, 0, at + len(name) - 1)
    return None
