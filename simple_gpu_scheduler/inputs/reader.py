"""Inputs -> jobs, for the inbox: the reader thread, with bounded read-ahead.

It knows what a named pipe is. What a line means is up to the parser, and how bytes arrive up to the feeds.
"""

import os
import stat

from simple_gpu_scheduler.base.errors import Broken
from simple_gpu_scheduler.base.jobs import Job
from simple_gpu_scheduler.base.stdlib import Event
from simple_gpu_scheduler.base.values import TYPE_CHECKING, Callable, Iterator, NamedTuple, Protocol
from simple_gpu_scheduler.events import Noticed, ReadMark
from simple_gpu_scheduler.jobfile.parse import Refusal
from simple_gpu_scheduler.jobfile.split import Line, LineCutter

from .contents import Content
from .feeds import CHUNK, ChangedError, Feed, Piece, Plain

if TYPE_CHECKING:
    from .follow import Change
    from .held_lines import HeldLines

# With this many waiting jobs, no more are read; enough to find one that fits behind many that do not.
READ_AHEAD = 10_000
# How much of a file is checked for mistakes before anything starts.
_CHECKED = 1024 * 1024
# How much of a line is enough to recognise it.
_SHOWN = 200


class OpenInput(NamedTuple):
    """An open input: its file descriptor, its name if it needs one to be told apart, and how it is read.

    `path` is that of a file for which reaching the end must be recorded. `made` is that of a named pipe that did not
    exist before. `held` are the lines of a followed file.
    """

    fd: int
    name: str = ""
    feed: Feed | None = None
    mark: ReadMark | None = None
    path: str = ""
    made: str = ""
    held: "HeldLines | None" = None


class Parser(Protocol):
    """Turns lines into jobs."""

    @property
    def defaults(self) -> dict[str, object]:
        """The defaults for the next line."""

    def begin(self, name: str, mark: ReadMark | None = None, *, all_new: bool = False) -> None:
        """The next lines come from the input of this name, from its start or from a mark reached before.

        With `all_new`, they were not read before.
        """

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

    With `more_may_come`, only for now: a named pipe may get another writer until it is stopped. `changed` says which
    files were not read to their end since they changed.
    """

    problem: str = ""
    more_may_come: bool = False
    changed: str = ""


class Reader:
    """The reader thread: puts every job of the inputs on the inbox, in order, and then the end. It never raises."""

    def __init__(
        self,
        inputs: list[OpenInput],
        parser: Parser,
        put: Callable[[Batch | FileRead | EndOfInput | Noticed | Broken], None],
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
        self.has_begun = Event()  # whether others can write to the inputs

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
        problems, changed = [], []
        for each in self._inputs:
            self._feed = each.feed or Plain(each.fd)
            try:
                self._read(each, self._feed, is_last=each is self._inputs[-1])
            except OSError as error:
                # Part of a line is not a line: half a command may mean anything.
                name = each.name or (each.held.path if each.held else "stdin")
                problems.append(f"reading {name} failed: {error.strerror}; the rest of it was not read")
            except ChangedError as error:
                changed.append(f"{each.name or 'stdin'}: {error}")
            else:
                if each.path:
                    self._put(FileRead(each.path))
        return EndOfInput("; ".join(problems), changed="; ".join(changed))

    def _read(self, each: OpenInput, feed: Feed, *, is_last: bool) -> None:
        lines = _Lines(each, self._parser, by_null=self._by_null)
        while True:
            piece = _next_piece(feed, lines)
            if piece.problem:
                self._put(Noticed(piece.problem, piece.is_failure))
                continue
            if piece.change:
                self._put_jobs(lines.change(piece.change))
                if lines.cut_off:
                    self._put(Noticed(lines.cut_off))
            if piece.data:
                self._take(lines.feed(piece.data), lines, feed)
            elif piece.is_settled:
                self._settle(lines, feed)
            else:
                self._take(lines.finish(), lines, feed)
                if not piece.more_may_come:
                    return
                if is_last:
                    self._put(EndOfInput(more_may_come=True))
                else:
                    feed.stop()

    def _take(self, found: list[Line], lines: "_Lines", feed: Feed) -> None:
        jobs = lines.parse(found)
        self._put_jobs(jobs, lines.mark(feed) if found else None)

    def _put_jobs(self, jobs: list[Job | Refusal], mark: ReadMark | None = None) -> None:
        if jobs or mark:
            self._put(Batch(jobs, mark))
            self._wait_for_room()

    def _settle(self, lines: "_Lines", feed: Feed) -> None:
        """A followed file was changed, and the change is over."""
        lines.meet_unfinished()
        if lines.remark:
            self._put(Noticed(lines.remark))
        self._put_jobs([], lines.settle(feed))


class _Lines:
    """The lines of one input, and the jobs in them."""

    def __init__(self, each: OpenInput, parser: Parser, *, by_null: bool) -> None:
        self._name, self._held, self._parser, self._by_null = each.name, each.held, parser, by_null
        self._change = ""
        self.cut_off = ""
        mark = each.mark
        self._cutter = LineCutter(by_null=by_null, line=mark.line if mark else 1, at_start=not (mark and mark.offset))
        parser.begin(each.name, mark, all_new=bool(each.held))

    @property
    def number(self) -> int:
        """That of the next line."""
        return self._cutter.number

    def feed(self, data: bytes) -> list[Line]:
        """The lines that these bytes complete."""
        return self._cutter.feed(data)

    def finish(self) -> list[Line]:
        """The last line, which has no end."""
        return self._cutter.finish()

    def change(self, change: "Change") -> list[Job | Refusal]:
        """A followed file was changed; the job in the last line of its old content, which had no end.

        None in a rewritten file: whoever wrote that line was interrupted, and half a command may mean anything.
        """
        self._change, self.cut_off = change, ""
        if not self._held:
            return []
        if change == "continued":
            self._held.keep_all()
            return []
        last = self.finish()
        if change == "rewritten":
            self.cut_off = _cut_off(self._held.path, last)
            last = []
        jobs = self.parse(last)
        self._held.restart()
        self._cutter = LineCutter(by_null=self._by_null)
        self._parser.begin(self._name, all_new=True)
        return jobs

    def parse(self, lines: list[Line]) -> list[Job | Refusal]:
        """The jobs in them."""
        return [job for line in lines if (job := self._parse(line)) is not None]

    def _parse(self, line: Line) -> Job | Refusal | None:
        """The job of a line, unless the file held that line before it was changed.

        One that was refused is parsed again: the cause may have been in another line, which has been corrected.
        """
        held = self._held
        if held is None:
            return self._parser.parse(*line)
        digest = held.digest(line.text)
        number = held.take(digest)
        refused = held.problem_of(number)
        if number and not refused:
            return None
        job = self._parser.parse(*line)
        problem = job.problem if isinstance(job, Refusal) else ""
        if number and problem == refused:
            return None
        if number:
            held.forget_last()
        if job is None or (problem and line.text.lstrip().startswith(b"#")):
            return job  # a wrong default is wrong again for the lines below it
        held.add(digest, job.number, problem)
        return job._replace(place=job.place._replace(digest=digest))

    def mark(self, feed: Feed) -> ReadMark | None:
        """How far the lines were read; None while that is not certain."""
        mark = feed.used(self._cutter.take_whole())
        if mark is None or (self._held and self._held.is_pending):
            return None
        return mark._replace(line=self._cutter.number, defaults=self._parser.defaults)

    def meet_unfinished(self) -> None:
        """The change is over: the last line, if it has no end, may be one that the file held before."""
        last = self._cutter.unfinished
        if last and self._held and self._held.is_pending:
            self._held.meet_unfinished(self._held.digest(last))

    @property
    def remark(self) -> str:
        """What a change means for the jobs; empty if nothing that would surprise."""
        if not (self._held and self._held.kept and self._change):
            return ""
        kept = self._held.kept
        name = os.path.basename(self._held.path)
        what = "replaced" if self._change == "continued" else self._change
        lines = "1 line in it was read before and is" if kept == 1 else f"{kept:,} lines in it were read before and are"
        return f"{name} was {what}; {lines} not run again; to run a line again, use `submit`"

    def settle(self, feed: Feed) -> ReadMark | None:
        """The change is over; how far the lines were read, and which jobs they are."""
        if not (self._held and self._held.is_pending):
            return None
        holds = self._held.settle()
        self._change = ""
        mark = self.mark(feed)
        return mark and mark._replace(holds=holds, unfinished=self._held.unfinished)


def _cut_off(path: str, last: list[Line]) -> str:
    """Which line of a file that was rewritten is not run; empty if there is none."""
    text = last[0].text.strip()[:_SHOWN].decode("utf-8", "backslashreplace") if last else ""
    if not text or text.startswith("#"):
        return ""
    return (
        f"{os.path.basename(path)} was rewritten before its last line had a newline; that line is not run unless the "
        f"file still holds it: {text}"
    )


def _next_piece(feed: Feed, lines: _Lines) -> Piece:
    try:
        return feed.read()
    except ChangedError as error:
        raise ChangedError(
            f"{error}; line {lines.number} and the lines after it were not read. When the file is complete, run the "
            "rest with --resume"
        ) from None


def check(inputs: list[OpenInput], parser: Parser, *, by_null: bool = False) -> list[Refusal]:
    """Wrong options in the first part of each regular file, found without consuming it."""
    found: list[Refusal] = []
    for each in inputs:
        try:
            if not stat.S_ISREG(os.fstat(each.fd).st_mode):
                return found  # inputs after a pipe may use names that are still in it
            if isinstance(each.feed, Content):
                data = each.feed.first(_CHECKED)
            else:
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
