"""A job's log: the file that it prints to, with a header before and a footer after the output of each attempt.

It knows the form of the file and reads it; not when an attempt starts and ends, or where its log is.
"""

import errno
import fcntl
import os
import stat
import time

from simple_gpu_scheduler.base.jobs import Attempt, Outcome
from simple_gpu_scheduler.base.stdlib import re, suppress
from simple_gpu_scheduler.base.text import show_command, show_gpus, show_job, show_outcome
from simple_gpu_scheduler.base.units import show_duration
from simple_gpu_scheduler.base.values import Iterable, Iterator

# At most this much is read to show a job's last output.
TAIL = 8192
UNKNOWN = -1
_LONGEST_HEADER = 64 * 1024
_HEADER_LINES = 2
_BLOCK = 1 << 20
_MARK = "[simple_gpu_scheduler] "
_COMMAND, _ENDED = f"{_MARK}command: ", f"{_MARK}ended "
_HEADER = f"{_MARK}job ".encode()
REMARK = f"{_MARK}| ".encode()
# Compiled when first needed, as by `status` for a run with logs.
_RUN = rb"\[simple_gpu_scheduler\] job [^\n]* of run (\S+), attempt \d"
_OWN = r"(?m)^\[simple_gpu_scheduler\] (?:job \d|command: |ended |\| ).*\n?"
# Colours and the like: what a terminal takes as commands.
_ESCAPES = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])"


def header(attempt: Attempt, run: str, at: float) -> bytes:
    """The text before the output of an attempt that starts now."""
    what = f"{show_job(attempt.job)} of run {run}, attempt {attempt.number}"
    first = f"{what}, on {show_gpus(attempt.gpus)}, started {_moment(at)}"
    return f"{_MARK}{first}\n{_COMMAND}{show_command(attempt.job.command)}\n".encode("utf-8", "backslashreplace")


def footer(outcome: Outcome, length: float, at: float) -> bytes:
    """The text after the output of an attempt that has ended."""
    how = "succeeded with exit code 0" if outcome.kind == "succeeded" else show_outcome(outcome)
    return f"{_ENDED}{_moment(at)} after {show_duration(length)}: {how}\n".encode()


def create(path: str, its_header: bytes) -> int:
    """Create the log and open it for appending; readable only by its owner: it shows commands. May raise OSError.

    It is locked as long as a process has what this opens, as the job and its children do: see `run_that_prints`.
    """
    fd = _open_plain(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    with suppress(OSError):  # a file system without locks
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    try:
        size = os.fstat(fd).st_size
        is_torn = size and os.pread(fd, 1, size - 1) != b"\n"  # the end of the last attempt was not seen
        os.write(fd, (b"\n" if is_torn else b"") + its_header)
    except OSError:
        os.close(fd)
        raise
    return fd


def run_that_prints(path: str) -> str | None:
    """The run of which a process still prints to this log, empty if that is unknown; None if no process does."""
    try:
        fd = open_to_finish(path)
    except OSError:  # it is not ours to print to
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        found = re.search(_RUN, os.pread(fd, _LONGEST_HEADER, newest_header(fd)))
        return found[1].decode() if found else ""
    except OSError:  # as in `create`
        return None
    finally:
        os.close(fd)
    return None


def open_to_read(path: str) -> int:
    """Open a log for reading; may raise OSError."""
    return _open_plain(path, os.O_RDONLY)


def open_to_finish(path: str) -> int:
    """Open an existing log for reading and appending; may raise OSError."""
    return _open_plain(path, os.O_RDWR | os.O_APPEND)


def write_remark(path: str, lines: Iterable[str]) -> tuple[int, int]:
    """Write these in the middle of an attempt's output; from where to where. May raise OSError."""
    fd = open_to_finish(path)
    try:
        size = os.fstat(fd).st_size
        is_torn = size and os.pread(fd, 1, size - 1) != b"\n"
        texts = [REMARK + line.encode("utf-8", "backslashreplace") + b"\n" for line in lines]
        written = os.write(fd, (b"\n" if is_torn else b"") + b"".join(texts))
        end = os.lseek(fd, 0, os.SEEK_CUR)  # the job may have printed meanwhile
        return end - written, end
    finally:
        os.close(fd)


def without_remarks(lines: bytes) -> bytes:
    """Whole lines, without those of ours."""
    if REMARK not in lines:
        return lines
    return b"".join([line for line in lines.splitlines(keepends=True) if not line.startswith(REMARK)])


def state_of_file(path: str) -> tuple[int, int]:
    """What changes whenever something is printed to a log; of one that is not there, zeros."""
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0
    return found.st_size, found.st_mtime_ns


def _open_plain(path: str, flags: int) -> int:
    """Other than regular files, opening could block forever, and a link could belong to another user."""
    fd = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "it is not a regular file")
    return fd


def after_header(fd: int, start: int) -> int:
    """Where the output starts whose header is at `start`; UNKNOWN while the header is missing.

    A job that reopens /dev/stderr truncates its log: then the output starts at 0.
    """
    start = max(0, start)
    head = os.pread(fd, _LONGEST_HEADER, start)
    if not head and os.fstat(fd).st_size >= start:
        return UNKNOWN
    at = int(head.startswith(b"\n"))
    if not head.startswith(_MARK.encode(), at):
        return 0
    for _ in range(_HEADER_LINES):
        at = head.find(b"\n", at) + 1
        if not at:
            return UNKNOWN
    return start + at


def newest_header(fd: int) -> int:
    """Where the header of the newest attempt starts."""
    return max((at for at, _ in _headers(fd)), default=0)


def part_of(fd: int, run: str) -> tuple[int, int]:
    """The part of a log that belongs to this run; all of it if no run is given or there is no header.

    One directory may hold the logs of several runs, one after the other.
    """
    size = os.fstat(fd).st_size
    start, has_others = -1, False
    its_own = f" of run {run}, attempt ".encode()
    for at, line in _headers(fd) if run else ():
        if its_own in line:
            start = at if start < 0 else start
        elif start >= 0:
            return start, at
        else:
            has_others = True
    return (start if start >= 0 else size if has_others else 0), size


def _headers(fd: int) -> Iterator[tuple[int, bytes]]:
    """Where each header starts, and its first line."""
    # Not by mmap: a job may truncate its log meanwhile, and SIGBUS would end us.
    at, kept = 0, b"\n"
    while block := os.pread(fd, _BLOCK, at):
        data = kept + block
        found = data.find(b"\n" + _HEADER)
        while found >= 0:
            start = at - len(kept) + found + 1
            yield start, os.pread(fd, _LONGEST_HEADER, start).partition(b"\n")[0]
            found = data.find(b"\n" + _HEADER, found + 1)
        at += len(block)
        kept = data[-len(_HEADER) :]


def read_tail(path: str, most: int = TAIL, run: str = "") -> str:
    """The end of the newest attempt's output, of this run if given; empty if it cannot be read."""
    try:
        fd = open_to_read(path)
    except OSError:
        return ""
    try:
        start, end = part_of(fd, run)
        while True:
            at = max(start, end - most)
            data = os.pread(fd, end - at, at)
            if at > start and REMARK in data:  # the line that is cut may be ours
                data = data.partition(b"\n")[2]
            text = output_of(data.decode("utf-8", "backslashreplace"))
            if text.strip() or at == start or REMARK not in data:
                return text
            most *= 4  # all of it is ours
    finally:
        os.close(fd)


def output_of(text: str) -> str:
    """The output of the newest attempt, from a log or the end of one, without header and footer."""
    _, found, newest = text.rpartition(_COMMAND)
    return re.sub(_OWN, "", newest.partition("\n")[2] if found else text)


def last_line(path: str) -> str:
    """The last line of a job's output, as a terminal would show it."""
    return last_shown(read_tail(path))


def last_lines(text: str, count: int) -> list[str]:
    """The last non-empty lines, each as a terminal would show it, with their indentation.

    The marks that Python prints below a line of code mean nothing without it.
    """
    lines = [shown for line in text.split("\n") if (shown := _last_segment(line).rstrip()).strip(" ^~")]
    return lines[-count:]


def last_shown(text: str) -> str:
    """The text of the last non-empty line: a progress bar overwrites its line with `\\r`.

    It may still hold control characters, except colours and the like.
    """
    return _last_segment(text).strip()


def _last_segment(text: str) -> str:
    lines = re.split(r"[\r\n]", re.sub(_ESCAPES, "", text))
    return next((line for line in reversed(lines) if line.strip()), "")


def _moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(at))
