"""A job's log: the file that it prints to, with a header before and a footer behind what each attempt has printed.

It knows the form of the file and reads it; when an attempt starts and ends, and where its log is, others know.
"""

import errno
import os
import re
import stat
import time
from collections.abc import Iterator

from simple_gpu_scheduler.base.jobs import Attempt, Outcome
from simple_gpu_scheduler.base.text import show_command, show_gpus, show_job, show_outcome
from simple_gpu_scheduler.base.units import show_duration

# No more than this is read to show what a job printed last.
TAIL = 8192
UNKNOWN = -1
_LONGEST_HEADER = 64 * 1024
_HEADER_LINES = 2
_BLOCK = 1 << 20
_MARK = "[simple_gpu_scheduler] "
_COMMAND, _ENDED = f"{_MARK}command: ", f"{_MARK}ended "
_HEADER = f"{_MARK}job ".encode()
_OWN = re.compile(rf"^{re.escape(_MARK)}(?:job \d|command: |ended ).*\n?", re.MULTILINE)
# Colours and the like: what a terminal takes as orders.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


def header(attempt: Attempt, run: str, at: float) -> bytes:
    """What stands before the output of an attempt that starts now."""
    what = f"{show_job(attempt.job)} of run {run}, attempt {attempt.number}"
    first = f"{what}, on {show_gpus(attempt)}, started {_moment(at)}"
    return f"{_MARK}{first}\n{_COMMAND}{show_command(attempt.job.command)}\n".encode("utf-8", "backslashreplace")


def footer(outcome: Outcome, runtime: float, at: float) -> bytes:
    """What stands behind the output of one that has ended."""
    how = "succeeded with exit code 0" if outcome.kind == "succeeded" else show_outcome(outcome)
    return f"{_ENDED}{_moment(at)} after {show_duration(runtime)}: {how}\n".encode()


def create(path: str, its_header: bytes) -> int:
    """The log, open for appending; for its owner alone, since it shows what was typed. An OSError says why not."""
    fd = _open_plain(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    try:
        size = os.fstat(fd).st_size
        is_torn = size and os.pread(fd, 1, size - 1) != b"\n"  # nobody saw the end of the last attempt
        os.write(fd, (b"\n" if is_torn else b"") + its_header)
    except OSError:
        os.close(fd)
        raise
    return fd


def open_to_read(path: str) -> int:
    """A log, open for reading; an OSError says why not."""
    return _open_plain(path, os.O_RDONLY)


def open_to_finish(path: str) -> int:
    """A log that is there, open for reading and appending; an OSError says why not."""
    return _open_plain(path, os.O_RDWR | os.O_APPEND)


def _open_plain(path: str, flags: int) -> int:
    """What is no plain file could be waited for without an end, and a link could be somebody else's."""
    fd = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "it is not a regular file")
    return fd


def behind_header(fd: int, begin: int) -> int:
    """Where the output begins whose header is at `begin`; UNKNOWN while the header is not there.

    A job that opens /dev/stderr anew empties its log: then the output begins at the begin.
    """
    begin = max(0, begin)
    start = os.pread(fd, _LONGEST_HEADER, begin)
    if not start and os.fstat(fd).st_size >= begin:
        return UNKNOWN
    at = int(start.startswith(b"\n"))
    if not start.startswith(_MARK.encode(), at):
        return 0
    for _ in range(_HEADER_LINES):
        at = start.find(b"\n", at) + 1
        if not at:
            return UNKNOWN
    return begin + at


def newest_header(fd: int) -> int:
    """Where the header of the newest attempt begins."""
    return max((at for at, _ in _headers(fd)), default=0)


def part_of(fd: int, run: str) -> tuple[int, int]:
    """From where to where a log is of this run, or all of it if none is named; all too of one that has no header.

    One directory may hold what several runs have written, one after the other.
    """
    size = os.fstat(fd).st_size
    begin, has_others = -1, False
    its_own = f" of run {run}, attempt ".encode()
    for at, line in _headers(fd) if run else ():
        if its_own in line:
            begin = at if begin < 0 else begin
        elif begin >= 0:
            return begin, at
        else:
            has_others = True
    return (begin if begin >= 0 else size if has_others else 0), size


def _headers(fd: int) -> Iterator[tuple[int, bytes]]:
    """Where each begins, and its first line."""
    # Not by mmap: a job may empty its log meanwhile, and SIGBUS would end us.
    at, kept = 0, b"\n"
    while block := os.pread(fd, _BLOCK, at):
        data = kept + block
        found = data.find(b"\n" + _HEADER)
        while found >= 0:
            begin = at - len(kept) + found + 1
            yield begin, os.pread(fd, _LONGEST_HEADER, begin).partition(b"\n")[0]
            found = data.find(b"\n" + _HEADER, found + 1)
        at += len(block)
        kept = data[-len(_HEADER) :]


def read_tail(path: str, most: int = TAIL, run: str = "") -> str:
    """The last that the newest attempt has printed, of this run if one is named; nothing when that cannot be read."""
    try:
        fd = open_to_read(path)
    except OSError:
        return ""
    try:
        begin, end = part_of(fd, run)
        start = max(begin, end - most)
        return output_of(os.pread(fd, end - start, start).decode("utf-8", "backslashreplace"))
    finally:
        os.close(fd)


def output_of(text: str) -> str:
    """What the newest attempt has printed, from a log or the end of one, without header and footer."""
    _, found, newest = text.rpartition(_COMMAND)
    return _OWN.sub("", newest.partition("\n")[2] if found else text)


def last_line(path: str) -> str:
    """The last line that a job has printed, as far as a terminal would still show it."""
    return last_shown(read_tail(path))


def last_lines(text: str, count: int) -> list[str]:
    """The last lines with something in them, each as a terminal would show it, indented as they are.

    The marks that Python puts below a line of code say nothing where that is cut off.
    """
    lines = [shown for line in text.split("\n") if (shown := _last_segment(line).rstrip()).strip(" ^~")]
    return lines[-count:]


def last_shown(text: str) -> str:
    """What stands in the last line with something in it: a progress bar writes over its line with `\\r`.

    It may still hold control characters, but for those that make colours and the like.
    """
    return _last_segment(text).strip()


def _last_segment(text: str) -> str:
    lines = re.split(r"[\r\n]", _ESCAPES.sub("", text))
    return next((line for line in reversed(lines) if line.strip()), "")


def _moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(at))
