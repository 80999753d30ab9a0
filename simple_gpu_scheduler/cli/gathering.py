"""Everything that a run reads: what was typed, and for a run that goes on what it had, each from where it was left."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from simple_gpu_scheduler.events import ReadMark
from simple_gpu_scheduler.journal import files
from simple_gpu_scheduler.sources import Source
from simple_gpu_scheduler.spooled import HandOver

from . import inputs
from .inputs import Input, is_of
from .options import Options

if TYPE_CHECKING:
    from simple_gpu_scheduler.journal.states import RunState

Typed = tuple[Input, Source]
QUEUES = ("fifo", "follow")
_TEMPORARY = "/tmp"  # noqa: S108 - a file there has no name


class Gathered(NamedTuple):
    """The inputs for the journal, how to read those that are read, what to say of them, and what went wrong."""

    inputs: Sequence[Input] = ()
    sources: Sequence[Source] = ()
    introductions: Sequence[str] = ()
    problems: Sequence[str] = ()


def open_typed(names: Sequence[str], followed: str | None, state: "RunState | None", *, waits: bool) -> list[Typed]:
    """What the command line names; stdin when it names nothing, but of a run that goes on only one that gives jobs."""
    typed = [
        (is_of(source.fd, source.name), source) for source in (inputs.open_file(name, waits=waits) for name in names)
    ]
    if followed:
        mark = inputs.mark_of(state.marks.get(os.path.realpath(followed))) if state else None
        typed.append(inputs.open_followed(followed, mark))
    if not typed:
        stdin = is_of(0)
        if not state or stdin.kind in ("file", "fifo", "pipe"):
            typed.append((stdin, Source(0)))
    for each, source in typed:
        if each.kind == "fifo" and not waits:
            inputs.check_holdable(source.fd)
    return typed


def gather(
    typed: Sequence[Typed], journal: str, hand_over: HandOver | None, state: "RunState | None", options: Options
) -> Gathered:
    """What was typed, behind what the run had; those that may never end come last."""
    gathering = _Gathering(journal, hand_over, state, b"\0" if options.null else b"\n", follows=not options.no_follow)
    had = [_input_of(each) for each in state.began["inputs"]] if state else []
    paths = {each.path for each, _ in typed if each.path}
    for each in had:
        if each.path not in paths or not each.path:
            gathering.go_on(each)
    spools = {each.path: each.spool for each in had if each.spool and each.path}
    for each, source in typed:
        gathering.add(each._replace(spool=spools.get(each.path, "")), source)
    return gathering.all()


def _input_of(record: Mapping[str, str]) -> Input:
    return Input(**{name: record[name] for name in Input._fields if name in record})


class _Gathering:
    def __init__(
        self, journal: str, hand_over: HandOver | None, state: "RunState | None", end: bytes, *, follows: bool
    ) -> None:
        self._stem = files.stem(journal) if journal else ""
        self._hand_over = hand_over
        self._state = state
        self._end = end
        self._follows = follows
        had = state.began["inputs"] if state else []
        self._taken = {each.get("spool", "") for each in had} | set(state.marks if state else ())
        self._found: list[tuple[Input, Source | None]] = []
        self._problems: list[str] = []

    def all(self) -> Gathered:
        found = sorted(self._found, key=lambda pair: pair[0].kind in QUEUES)
        sources = [source for _, source in found if source]
        introductions = [inputs.introduce(each, follows=self._follows) for each, source in found if source]
        return Gathered(
            [each for each, _ in self._found], sources, [each for each in introductions if each], self._problems
        )

    def add(self, each: Input, source: Source) -> None:
        """One that was typed."""
        is_pipe = each.kind == "fifo" or (each.kind == "pipe" and self._stem)
        if not is_pipe or (not self._stem and self._follows):
            if each.kind == "fifo":
                source = inputs.open_held(source)
            path = each.path if each.kind == "file" else ""
            self._found.append((each, source._replace(path=path)))
            return
        try:
            each, spool = (each, self._open_spool(each)) if each.spool else self._new_spool(each)
        except OSError as error:
            self._problems.append(f"what is written to the pipe cannot be kept beside the journal: {error.strerror}")
            self._found.append((each._replace(spool=""), source))
            return
        mark = self._mark(each.spool)
        attached = inputs.spooled(each, source, spool, self._hand_over, mark, follows=self._follows)
        self._found.append((each, attached))

    def go_on(self, each: Input) -> None:
        """One that the run had."""
        source: Source | None = None
        try:
            if each.kind == "file":
                if not self._state or each.path not in self._state.ended_inputs:
                    source = Source(os.open(each.path, os.O_RDONLY | os.O_CLOEXEC), each.name, path=each.path)
            elif each.kind == "follow":
                mark = self._mark(each.path) or ReadMark(each.path)
                source = inputs.open_followed(each.path, mark)[1]
            elif each.kind == "fifo" and self._follows and os.path.exists(each.path):
                source = inputs.open_file(each.path, waits=False)._replace(name=each.name)
                inputs.check_holdable(source.fd)
                self.add(each, source)
                return
            elif each.spool:
                source = inputs.rest(each, self._open_spool(each), self._mark(each.spool))
        except OSError as error:
            self._problems.append(
                f"{each.path or 'the pipe'} cannot be read again: {error.strerror}; what was not read of it is missing"
            )
        self._found.append((each, source))

    def _mark(self, name: str) -> ReadMark | None:
        return inputs.mark_of(self._state.marks.get(name)) if self._state else None

    def _new_spool(self, each: Input) -> tuple[Input, int]:
        if not self._stem:
            with suppress(OSError):
                place = os.environ.get("TMPDIR", _TEMPORARY)
                return each, os.open(place, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
            return each, os.memfd_create("input")
        name = next(name for at in count() if (name := f"input-{at}") not in self._taken)
        self._taken.add(name)
        with suppress(FileNotFoundError):  # of a journal of the same name that was deleted
            os.unlink(f"{self._stem}.{name}")
        fd = os.open(f"{self._stem}.{name}", os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        return each._replace(spool=name), fd

    def _open_spool(self, each: Input) -> int:
        path = f"{self._stem}.{each.spool}"
        fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        files.check_own(fd, path)
        self._drop_torn(each, fd)
        return fd

    def _drop_torn(self, each: Input, fd: int) -> None:
        """A line whose writer was cut off when the scheduler died must not be glued to the next one's."""
        mark = self._mark(each.spool)
        used, size = mark.offset if mark else 0, os.fstat(fd).st_size
        data = os.pread(fd, size - used, used)
        whole = data.rfind(self._end) + 1
        if whole < len(data):
            os.truncate(fd, used + whole)
            self._problems.append(
                f"a line of {each.path or 'the pipe'} was cut off when the scheduler ended, and is not run: "
                f"{data[whole:][:200].decode('utf-8', 'backslashreplace')}"
            )
