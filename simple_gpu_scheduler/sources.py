"""Bytes -> lines: files, pipes and terminals, read ahead within bounds and cut into logical lines.

It knows how lines end and go on, and what a named pipe is. It knows nothing of what a line means: that is the parser's.
"""

import os
import select
import stat
from collections.abc import Callable, Iterator
from typing import NamedTuple

from .comments import find_comments
from .jobs import Job
from .lines import LONGEST_COMMAND, LineParser, Refusal

# Small enough that cutting and parsing one chunk never keeps the other threads waiting for long.
_CHUNK = 4 * 1024
# A line may be longer than its command by its options, but not endless: what is over this is dropped, and since it is
# longer than any command the line is refused.
_LONGEST_LINE = LONGEST_COMMAND + 64 * 1024
# How much of a file is looked through for mistakes before anything starts.
_CHECKED = 1024 * 1024
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Source(NamedTuple):
    """An open input: its file descriptor, and its name where it has one that tells it from others."""

    fd: int
    name: str = ""


class Batch(NamedTuple):
    """What one read gave, for the inbox."""

    jobs: list[Job | Refusal]


class SourceEnded(NamedTuple):
    """No more jobs will come; `problem` says so when that is not because the input ended."""

    problem: str = ""


class LineCutter:
    """Cuts bytes, as they come, into (number of the first line, logical line)."""

    def __init__(self, *, by_null: bool = False) -> None:
        self._end = b"\0" if by_null else b"\n"
        self._partial = bytearray()
        self._joined: list[bytes] = []
        self._joined_size = 0
        self._line = 1
        self._began = 1
        self._at_start = True

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """The lines that this much more input completes."""
        pieces = data.split(self._end)
        if self._at_start and (pieces[0] or len(pieces) > 1):
            self._at_start = False
            pieces[0] = pieces[0].removeprefix(_BYTE_ORDER_MARK)
        if len(pieces) == 1:
            self._keep(pieces[0])
            return []
        self._keep(pieces[0])
        pieces[0] = bytes(self._partial)
        self._partial = bytearray(pieces.pop())
        return [line for piece in pieces for line in self._complete(piece)]

    def finish(self) -> list[tuple[int, bytes]]:
        """The last line, when the input ended without ending it."""
        last = bytes(self._partial)
        self._partial.clear()
        if not last and not self._joined:
            return []
        lines = list(self._complete(last))
        if self._joined:  # a backslash with nothing behind it to go on in
            lines.append((self._began, self._take_joined()))
        return lines

    def _keep(self, piece: bytes) -> None:
        self._partial += piece[: max(0, _LONGEST_LINE - len(self._partial))]

    def _complete(self, line: bytes) -> Iterator[tuple[int, bytes]]:
        number = self._line
        if self._end == b"\0":
            self._line += line.count(b"\n")
            yield number, line
            return
        self._line += 1
        line = line.removesuffix(b"\r")
        if not self._joined:
            if not line.endswith(b"\\"):
                yield number, line
                return
            self._began = number
        self._joined.append(line)
        self._joined_size += len(line)
        if not _goes_on(line) or self._joined_size > _LONGEST_LINE:
            yield self._began, self._take_joined()

    def _take_joined(self) -> bytes:
        joined = b"\n".join(self._joined)
        self._joined.clear()
        self._joined_size = 0
        return joined


def _goes_on(line: bytes) -> bool:
    """Whether a shell reads on in the next line: it ends in a backslash that none escapes, outside a comment."""
    backslashes = len(line) - len(line.rstrip(b"\\"))
    return backslashes % 2 == 1 and not find_comments(line)


def read_jobs(
    sources: list[Source],
    parser: LineParser,
    put: Callable[[Batch | SourceEnded], None],
    wait_for_room: Callable[[], object],
    *,
    by_null: bool = False,
) -> None:
    """The reader thread: put every job of the sources, in order, and then the end. It never raises."""
    problem = ""
    for source in sources:
        parser.begin(source.name)
        cutter = LineCutter(by_null=by_null)
        try:
            while data := _read(source.fd):
                _put(parser, cutter.feed(data), put, wait_for_room)
        except OSError as error:
            problem = f"reading {source.name or 'stdin'} failed: {error.strerror}; what follows there was not read"
        _put(parser, cutter.finish(), put, wait_for_room)
    put(SourceEnded(problem))


def _read(fd: int) -> bytes:
    while True:
        try:
            return os.read(fd, _CHUNK)
        except BlockingIOError:  # somebody who shares the pipe or terminal has made it non-blocking
            select.select([fd], [], [])


def _put(
    parser: LineParser,
    lines: list[tuple[int, bytes]],
    put: Callable[[Batch | SourceEnded], None],
    wait_for_room: Callable[[], object],
) -> None:
    jobs = [job for number, text in lines if (job := parser.parse(text, number)) is not None]
    if jobs:
        put(Batch(jobs))
        wait_for_room()


def check(sources: list[Source], parser: LineParser, *, by_null: bool = False) -> list[Refusal]:
    """Wrong options in the first part of each plain file, found without taking anything from it."""
    found: list[Refusal] = []
    for source in sources:
        if not stat.S_ISREG(os.fstat(source.fd).st_mode):
            return found  # what comes behind a pipe may lean on names that are still in it
        data = os.pread(source.fd, _CHECKED, os.lseek(source.fd, 0, os.SEEK_CUR))
        parser.begin(source.name)
        cutter = LineCutter(by_null=by_null)
        lines = cutter.feed(data) + ([] if len(data) == _CHECKED else cutter.finish())
        jobs = [parser.parse(text, number) for number, text in lines]
        found += [job for job in jobs if isinstance(job, Refusal) and job.is_bad_option]
        if len(data) == _CHECKED:
            return found
    return found


def hold_open(fd: int) -> bool:
    """Keep a named pipe from ending when its last writer leaves; False for everything that is no named pipe."""
    if not stat.S_ISFIFO(os.fstat(fd).st_mode) or not os.readlink(f"/proc/self/fd/{fd}").startswith("/"):
        return False  # an anonymous pipe reads `pipe:[1234]` there
    os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    return True
