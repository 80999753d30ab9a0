"""Inputs -> jobs, for the inbox: the reader thread, with bounded read-ahead.

It knows what a named pipe is. What a line means is up to the parser, and how bytes arrive up to the feeds.
"""

import os
import stat
import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from simple_gpu_scheduler.base.errors import Broken, Trouble
from simple_gpu_scheduler.base.jobs import Job
from simple_gpu_scheduler.events import ReadMark
from simple_gpu_scheduler.jobfile.parse import Refusal
from simple_gpu_scheduler.jobfile.split import Line, LineCutter

from .feeds import CHUNK, Feed, Plain

# With this many waiting jobs, no more are read; enough to find one that fits behind many that do not.
READ_AHEAD = 10_000
# How much of a file is checked for mistakes before anything starts.
_CHECKED = 1024 * 1024


class OpenInput(NamedTuple):
    """An open input: its file descriptor, its name if it needs one to be told apart, and how it is read.

    `path` is that of a file for which reaching the end must be recorded.
    """

    fd: int
    name: str = ""
    feed: Feed | None = None
    mark: ReadMark | None = None
    path: str = ""


class Parser(Protocol):
    """Turns lines into jobs."""

    @property
    def defaults(self) -> dict[str, object]:
        """The defaults for the next line."""

    def begin(self, name: str, mark: ReadMark | None = None) -> None:
        """The next lines come from the input of this name, from its start or from a mark reached before."""

    def parse(self, line: int, text: bytes, size: int) -> Job | Refusal | None:
        """Parse one line."""


class Batch(NamedTuple):
    """The result of one read, for the inbox; and how far a growing input was read."""

    jobs: list[Job | Refusal]
    mark: ReadMark | None = None


class FileRead(NamedTuple):
    """A file was read to its end."""

    path: str


class EndOfInput(NamedTuple):
    """No more jobs will come; `problem` says why, unless the input simply ended.

    With `more_may_come`, only for now: a named pipe may get another writer until it is stopped.
    """

    problem: str = ""
    more_may_come: bool = False


class Reader:
    """The reader thread: puts every job of the inputs on the inbox, in order, and then the end. It never raises."""

    def __init__(
        self,
        inputs: list[OpenInput],
        parser: Parser,
        put: Callable[[Batch | FileRead | EndOfInput | Trouble | Broken], None],
        wait_for_room: Callable[[], object],
        *,
        by_null: bool = False,
    ) -> None:
        self._inputs = inputs
        self._parser = parser
        self._put = put
        self._wait_for_room = wait_for_room
        self._by_null = by_null
        self._feed: Feed | None = None
        self.has_begun = threading.Event()  # whether others can write to the inputs

    def run(self) -> None:
        """Read everything."""
        try:
            for each in self._inputs:
                if each.feed:
                    each.feed.begin()
            self.has_begun.set()
            self._put(self._read_all())
        except Exception as error:  # noqa: BLE001 - the loop raises it; raised here, the end would never come
            self._put(Broken(error))

    def stop(self) -> bool:
        """Stop reading inputs that would not end by themselves; whether the end will now come soon."""
        return self._feed is not None and self._feed.stop()

    def _read_all(self) -> EndOfInput:
        problems = []
        for each in self._inputs:
            self._feed = each.feed or Plain(each.fd)
            try:
                self._read(each, self._feed, is_last=each is self._inputs[-1])
            except OSError as error:
                # Part of a line is not a line: half a command may mean anything.
                problems.append(f"reading {each.name or 'stdin'} failed: {error.strerror}; the rest of it was not read")
            else:
                if each.path:
                    self._put(FileRead(each.path))
        return EndOfInput("; ".join(problems))

    def _read(self, each: OpenInput, feed: Feed, *, is_last: bool) -> None:
        mark = each.mark
        self._parser.begin(each.name, mark)
        cutter = LineCutter(by_null=self._by_null, line=mark.line if mark else 1, at_start=not (mark and mark.offset))
        while True:
            piece = feed.read()
            if piece.problem:
                self._put(Trouble(piece.problem))
                continue
            if piece.is_new:
                self._take(cutter.finish(), cutter, feed)
                cutter = LineCutter(by_null=self._by_null)
                self._parser.begin(each.name)
            if piece.data:
                self._take(cutter.feed(piece.data), cutter, feed)
                continue
            self._take(cutter.finish(), cutter, feed)
            if not piece.more_may_come:
                return
            if is_last:
                self._put(EndOfInput(more_may_come=True))
            else:
                feed.stop()

    def _take(self, lines: list[Line], cutter: LineCutter, feed: Feed) -> None:
        jobs = [job for line in lines if (job := self._parser.parse(*line)) is not None]
        mark = feed.used(cutter.take_whole()) if lines else None
        if jobs or mark:
            mark = mark and mark._replace(line=cutter.number, defaults=self._parser.defaults)
            self._put(Batch(jobs, mark))
            self._wait_for_room()


def check(inputs: list[OpenInput], parser: Parser, *, by_null: bool = False) -> list[Refusal]:
    """Wrong options in the first part of each regular file, found without consuming it."""
    found: list[Refusal] = []
    for each in inputs:
        try:
            if not stat.S_ISREG(os.fstat(each.fd).st_mode):
                return found  # inputs after a pipe may use names that are still in it
            data = os.pread(each.fd, _CHECKED, os.lseek(each.fd, 0, os.SEEK_CUR))
        except OSError:  # the reader will notice and report it
            return found
        if b"#:" in data:
            parser.begin(each.name)
            jobs = (parser.parse(*line) for line in _cut(data, by_null=by_null))
            found += [job for job in jobs if isinstance(job, Refusal) and job.is_bad_option]
        if len(data) == _CHECKED:
            return found
    return found


def _cut(data: bytes, *, by_null: bool) -> Iterator[Line]:
    """The lines of some bytes, a few at a time."""
    cutter = LineCutter(by_null=by_null)
    for at in range(0, len(data), CHUNK):
        yield from cutter.feed(data[at : at + CHUNK])
    if len(data) < _CHECKED:
        yield from cutter.finish()
