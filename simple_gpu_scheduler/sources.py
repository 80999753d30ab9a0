"""Bytes -> lines: files, pipes and terminals, read ahead within bounds and cut into logical lines.

It knows how lines end and go on, and what a named pipe is. It knows nothing of what a line means: that is the parser's.
"""

import os
import select
import stat
from collections.abc import Callable, Iterator
from typing import NamedTuple

from .comments import CommentScanner
from .errors import Broken
from .events import ReadMark
from .jobs import Job
from .lines import LONGEST_LINE as _LONGEST_LINE
from .lines import LineParser, Refusal

# With this many jobs at hand, no more are read; enough that a job that fits is seen behind many that do not.
READ_AHEAD = 10_000
# Small enough that cutting and parsing one chunk never keeps the other threads waiting for long.
_CHUNK = 4 * 1024
_TAIL = 64
# How much of a file is looked through for mistakes before anything starts.
_CHECKED = 1024 * 1024
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Source(NamedTuple):
    """An open input: its file descriptor, and its name where it has one that tells it from others."""

    fd: int
    name: str = ""


class Batch(NamedTuple):
    """What one read gave, for the inbox; and how far a growing input was read with it."""

    jobs: list[Job | Refusal]
    mark: ReadMark | None = None


class SourceEnded(NamedTuple):
    """No more jobs will come; `problem` says so when that is not because the input ended."""

    problem: str = ""


class Line(NamedTuple):
    """A logical line and the number of its first physical one. What is over `_LONGEST_LINE` of its bytes is dropped."""

    number: int
    text: bytes
    size: int


class LineCutter:
    """Cuts bytes, as they come, into logical lines."""

    def __init__(self, *, by_null: bool = False) -> None:
        self._end = b"\0" if by_null else b"\n"
        self._partial = bytearray()
        self._partial_size = 0
        self._joined: Joined | None = None
        self._number = 1
        self._at_start = True

    def feed(self, data: bytes) -> list[Line]:
        """The lines that this much more input completes."""
        pieces = data.split(self._end)
        if self._at_start and data:
            self._at_start = False
            pieces[0] = pieces[0].removeprefix(_BYTE_ORDER_MARK)
        if len(pieces) == 1:
            self._keep(pieces[0])
            return []
        last = pieces.pop()
        lines: list[Line] = []
        if self._partial_size:
            self._keep(pieces[0])
            lines += self._complete(bytes(self._partial), self._partial_size)
            del pieces[0]
        for piece in pieces:
            lines += self._complete(piece, len(piece))
        self._partial, self._partial_size = bytearray(last), len(last)
        return lines

    def finish(self) -> list[Line]:
        """The last line, when the input ended without ending it."""
        lines = self._complete(bytes(self._partial), self._partial_size) if self._partial_size else []
        self._partial_size = 0
        if self._joined:  # a backslash with nothing behind it to go on in
            lines.append(self._joined.line())
            self._joined = None
        return lines

    def _keep(self, piece: bytes) -> None:
        """Add to the unfinished line; of one that is too long the begin and the end, which says whether it goes on."""
        self._partial += piece
        self._partial_size += len(piece)
        if len(self._partial) > _LONGEST_LINE:
            del self._partial[_LONGEST_LINE - _TAIL : -_TAIL]

    def _complete(self, text: bytes, size: int) -> list[Line]:
        number = self._number
        if self._end == b"\0":
            self._number += text.count(b"\n")
            return [Line(number, text, size)]
        self._number += 1
        if text.endswith(b"\r"):
            text, size = text[:-1], size - 1
        if self._joined is None:
            if not text.endswith(b"\\"):
                return [Line(number, text, size)]
            self._joined = Joined(number)
        self._joined.add(text, size)
        if self._joined.goes_on(text):
            return []
        line = self._joined.line()
        self._joined = None
        return [line]


class Joined:
    """The physical lines of a logical one that ends in a backslash so far."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._text = bytearray()
        self._size = 0
        self._scanner = CommentScanner()

    def add(self, text: bytes, size: int) -> None:
        """The next of them."""
        separator = b"\n" if self._size else b""
        self._size += size + len(separator)
        if len(self._text) < _LONGEST_LINE:
            self._text += separator + text
            self._scanner.feed(separator + text)

    def goes_on(self, text: bytes) -> bool:
        """Whether a shell reads on behind `text`, the last one: behind a backslash that none escapes, in no comment."""
        backslashes = len(text) - len(text.rstrip(b"\\"))
        return backslashes % 2 == 1 and not self._scanner.ends_in_comment

    def line(self) -> Line:
        """All of it."""
        return Line(self._number, bytes(self._text[:_LONGEST_LINE]), self._size)


def read_jobs(
    sources: list[Source],
    parser: LineParser,
    put: Callable[[Batch | SourceEnded | Broken], None],
    wait_for_room: Callable[[], object],
    *,
    by_null: bool = False,
) -> None:
    """The reader thread: put every job of the sources, in order, and then the end. It never raises."""
    try:
        put(_read_all(sources, parser, put, wait_for_room, by_null=by_null))
    except Exception as error:  # noqa: BLE001 - the loop raises it; here it would be an end that never comes
        put(Broken(error))


def _read_all(
    sources: list[Source],
    parser: LineParser,
    put: Callable[[Batch], None],
    wait_for_room: Callable[[], object],
    *,
    by_null: bool,
) -> SourceEnded:
    problems = []
    for source in sources:
        parser.begin(source.name)
        cutter = LineCutter(by_null=by_null)
        try:
            while data := _read(source.fd):
                _put(parser, cutter.feed(data), put, wait_for_room)
        except OSError as error:
            # What has come of a line is no line: half a command may mean anything.
            problems.append(
                f"reading {source.name or 'stdin'} failed: {error.strerror}; what follows there was not read"
            )
        else:
            _put(parser, cutter.finish(), put, wait_for_room)
    return SourceEnded("; ".join(problems))


def _read(fd: int) -> bytes:
    while True:
        try:
            return os.read(fd, _CHUNK)
        except BlockingIOError:  # somebody who shares the pipe or terminal has made it non-blocking
            select.select([fd], [], [])


def _put(
    parser: LineParser,
    lines: list[Line],
    put: Callable[[Batch], None],
    wait_for_room: Callable[[], object],
) -> None:
    jobs = [job for line in lines if (job := parser.parse(*line)) is not None]
    if jobs:
        put(Batch(jobs))
        wait_for_room()


def check(sources: list[Source], parser: LineParser, *, by_null: bool = False) -> list[Refusal]:
    """Wrong options in the first part of each plain file, found without taking anything from it."""
    found: list[Refusal] = []
    for source in sources:
        try:
            if not stat.S_ISREG(os.fstat(source.fd).st_mode):
                return found  # what comes behind a pipe may lean on names that are still in it
            data = os.pread(source.fd, _CHECKED, os.lseek(source.fd, 0, os.SEEK_CUR))
        except OSError:  # the reader will meet it too, and say it
            return found
        if b"#:" in data:
            parser.begin(source.name)
            jobs = (parser.parse(*line) for line in _cut(data, by_null=by_null))
            found += [job for job in jobs if isinstance(job, Refusal) and job.is_bad_option]
        if len(data) == _CHECKED:
            return found
    return found


def _cut(data: bytes, *, by_null: bool) -> Iterator[Line]:
    """The lines of some bytes, a few at a time."""
    cutter = LineCutter(by_null=by_null)
    for at in range(0, len(data), _CHUNK):
        yield from cutter.feed(data[at : at + _CHUNK])
    if len(data) < _CHECKED:
        yield from cutter.finish()


def hold_open(fd: int) -> bool:
    """Keep a named pipe from ending when its last writer leaves; False for everything that is no named pipe."""
    if not stat.S_ISFIFO(os.fstat(fd).st_mode) or not os.readlink(f"/proc/self/fd/{fd}").startswith("/"):
        return False  # an anonymous pipe reads `pipe:[1234]` there
    os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    return True
