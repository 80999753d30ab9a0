"""Everything that a run reads: what each input is, opening it, checking it for errors; and for a resumed
run its earlier inputs, each from where it was left."""

import errno
import os
import stat
from itertools import count

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.program import PROGRAM
from simple_gpu_scheduler.base.stdlib import shlex, suppress
from simple_gpu_scheduler.base.text import safe
from simple_gpu_scheduler.base.values import TYPE_CHECKING, Mapping, NamedTuple, Sequence
from simple_gpu_scheduler.events import ReadMark
from simple_gpu_scheduler.jobfile.parse import LineParser
from simple_gpu_scheduler.journal import files
from simple_gpu_scheduler.journal.records import read_options

from . import PIPE_SUFFIX, InputOptions
from .contents import Content, content_of
from .feeds import Followed
from .reader import OpenInput, check

if TYPE_CHECKING:
    from simple_gpu_scheduler.journal.run_state import RunState

    from .pipes import HandOver


_STDIN = 0
_MOST_ERRORS_SHOWN = 10
_FIRST_LINE = 256  # of a `#!` line the kernel reads no more


class Input(NamedTuple):
    """An input, as in the journal: a `file`, a named `fifo`, a `pipe`, a `terminal`, one to `follow`, or `other`.

    `name` identifies it in messages about its lines; `spool` is the suffix of the file that a pipe is copied to.
    """

    kind: str
    path: str = ""
    name: str = ""
    spool: str = ""


def is_of(fd: int, name: str = "") -> Input:
    """The input behind a descriptor."""
    mode = os.fstat(fd).st_mode
    path = os.readlink(f"/proc/self/fd/{fd}")
    if os.isatty(fd):
        return Input("terminal", path, name)
    if stat.S_ISFIFO(mode):  # an anonymous pipe has the name `pipe:[1234]` there
        return Input("fifo", path, name) if path.startswith("/") else Input("pipe", "", name)
    return Input("file", path, name) if stat.S_ISREG(mode) else Input("other", path, name)


def open_file(path: str, *, waits: bool) -> OpenInput:
    """Open one of FILES. With `waits`, wait for the first writer of a named pipe."""
    if path == "-":
        return OpenInput(_STDIN)
    try:
        if not waits and _is_named_pipe(path):
            return _place_of(path)
        # A named pipe that ends with its writers would seem empty without waiting for the first one.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | (0 if waits else os.O_NONBLOCK))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; FILES hold commands, one per line") from None
    if stat.S_ISDIR(os.fstat(fd).st_mode):
        raise UserError(f"cannot read {path}: it is a directory")
    os.set_blocking(fd, True)
    return OpenInput(fd, path)


def _is_named_pipe(path: str) -> bool:
    """Not one without a name, such as /dev/stdin or a shell's <(...), which already has a writer."""
    if not stat.S_ISFIFO(os.stat(path).st_mode):
        return False
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        return is_of(fd).kind == "fifo"
    finally:
        os.close(fd)


def _place_of(path: str) -> OpenInput:
    """A named pipe, not opened: an open one takes lines from writers, which would be lost if we are killed."""
    if not os.access(path, os.R_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return OpenInput(os.open(path, os.O_PATH | os.O_CLOEXEC), path)


def open_followed(
    path: str, mark: ReadMark | None, state: "RunState | None" = None, *, makes_pipe: bool = False
) -> tuple[Input, OpenInput]:
    """The input given by `--follow`: a pipe, which is made if that is wanted, or a growing file."""
    made, real = "", os.path.realpath(path)
    try:
        if not os.path.lexists(path):
            if mark:  # a file that was followed before is being rotated, or will be created again
                return _growing(real, mark, state)
            made = _make_pipe(path, is_wanted=makes_pipe)
        mode = os.stat(path).st_mode
        if stat.S_ISFIFO(mode):
            opened = open_file(path, waits=False)._replace(name="", made=made)
            return is_of(opened.fd), opened
        if not stat.S_ISREG(mode):
            raise UserError(f"--follow {path}: it is neither a pipe nor a regular file")
        os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        return _growing(real, mark, state)
    except OSError as error:
        raise UserError(f"--follow {path}: {error.strerror}") from None


def _make_pipe(path: str, *, is_wanted: bool) -> str:
    """The path, if it was made: of a mistyped name, a pipe would wait forever for what is in the file."""
    if not is_wanted and not path.endswith(PIPE_SUFFIX):
        raise UserError(f"--follow {path}: it does not exist; create it, or add --make-fifo for a named pipe")
    try:
        os.mkfifo(path, 0o600)
    except FileExistsError:  # another process was faster
        return ""
    return path


def _growing(path: str, mark: ReadMark | None, state: "RunState | None") -> tuple[Input, OpenInput]:
    from .held_lines import HeldLines  # noqa: PLC0415 - most runs follow no file

    held = HeldLines(path, state.lines_of(path) if state else None)
    return Input("follow", path), OpenInput(-1, "", Followed(path, mark, lambda: held.kept), mark, held=held)


def open_held(opened: OpenInput) -> OpenInput:
    """A named pipe that is read directly; its other end is held open, so it does not end with its last writer."""
    place = f"/proc/self/fd/{opened.fd}"
    fd = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    os.open(place, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    os.set_blocking(fd, True)
    return opened._replace(fd=fd)


def check_holdable(fd: int) -> None:
    """Raise a UserError if this user may not open the other end of a named pipe."""
    if not os.access(f"/proc/self/fd/{fd}", os.W_OK):
        raise UserError(
            f"cannot hold the named pipe open for its writers: {os.strerror(errno.EACCES)}; give yourself "
            "permission to write to it, or use --no-follow"
        )


def spooled(
    kind: Input,
    opened: OpenInput,
    spool: int,
    hand_over: "HandOver | None",
    mark: ReadMark | None,
    end: bytes,
    *,
    follows: bool,
) -> OpenInput:
    """A pipe that is copied to the open file `spool`."""
    from simple_gpu_scheduler.keeper.messages import TakeIn  # noqa: PLC0415 - as below

    from .pipes import Spooled  # noqa: PLC0415 - 1 ms that a file does not need

    is_named = kind.kind == "fifo"
    offset = mark.offset if mark else 0
    pipe = TakeIn(is_named=is_named, holds=is_named and follows, by_null=end == b"\0")
    feed = Spooled(kind.spool, opened.fd, spool, hand_over, pipe, offset=offset)
    return opened._replace(feed=feed, mark=mark)


def rest(kind: Input, spool: int, mark: ReadMark | None) -> OpenInput:
    """The saved content of a pipe that no longer exists."""
    from .pipes import Rest  # noqa: PLC0415 - see above

    return OpenInput(spool, kind.name, Rest(kind.spool, spool, mark.offset if mark else 0), mark)


def mark_of(record: Mapping[str, object] | None) -> ReadMark | None:
    """How far an input was read, by the journal."""
    if not record:
        return None
    mark = ReadMark(**{name: record[name] for name in ReadMark._fields if name in record})  # type: ignore[arg-type]
    return mark._replace(defaults=read_options(mark.defaults))


def refuse_programs(typed: "Sequence[Typed]", shell: str) -> None:
    """Refuse a regular file that is the program of another language, unless its lines are for a shell like that."""
    for each, opened in typed:
        start = opened.feed.first(_FIRST_LINE) if isinstance(opened.feed, Content) else b""
        if not start.startswith(b"#!"):
            continue
        from simple_gpu_scheduler.jobfile.interpreter import foreign_interpreter  # noqa: PLC0415 - few files have one

        words = foreign_interpreter(start)
        if words and not foreign_interpreter(b"#!" + os.fsencode(shell)):
            path = opened.name or (each.path if os.path.exists(each.path) else "")
            raise UserError(
                f"{safe(path) or 'stdin'} is not a list of commands: its first line says that it is a program for "
                f"{safe(words[0])}; to run it: {PROGRAM} run -- {safe(shlex.join([*words, path or 'FILE']))}"
            )


def refuse_errors(open_inputs: Sequence[OpenInput], parser: LineParser, *, by_null: bool) -> None:
    """Refuse wrong options in the first part of regular files before anything starts."""
    checked = [opened for opened in open_inputs if opened.feed is None or isinstance(opened.feed, Content)]
    refusals = check(checked, parser, by_null=by_null)
    if not refusals:
        return
    lines = [f"  {refusal.place}: {refusal.problem}" for refusal in refusals[:_MOST_ERRORS_SHOWN]]
    if len(refusals) > len(lines):
        lines.append(f"  and {len(refusals) - len(lines)} more")
    raise UserError("\n".join(["nothing was started; the input has errors:", *lines]))


def keep_input(open_inputs: Sequence[OpenInput], joblog: str | None) -> None:
    """Refuse a job log that is also the input: it would be truncated before it was read."""
    try:
        log = os.stat(joblog) if joblog else None
    except OSError:  # it does not exist yet
        return
    fds = [opened.fd for opened in open_inputs if opened.fd >= 0]
    if log and any(os.path.samestat(log, os.fstat(fd)) for fd in fds) and stat.S_ISREG(log.st_mode):
        raise UserError(f"--joblog {joblog}: that is the file that the commands are read from")


def introduce(kind: Input, *, follows: bool) -> str:
    """A message about what may surprise: that a terminal is read, or that an input does not end."""
    if kind.kind == "terminal":
        return "reading commands from the terminal, one per line; Ctrl-D ends the input"
    if kind.kind == "fifo" and follows:
        return "the named pipe is held open for more commands until the run is stopped"
    return "the file is followed for more commands until the run is stopped" if kind.kind == "follow" else ""


Typed = tuple[Input, OpenInput]
QUEUES = ("fifo", "follow")
_TEMPORARY = "/tmp"  # noqa: S108 - a file created there has no name


class Gathered(NamedTuple):
    """The inputs as in the journal, those to read, messages about them, and what went wrong."""

    inputs: Sequence[Input] = ()
    open_inputs: Sequence[OpenInput] = ()
    introductions: Sequence[str] = ()
    problems: Sequence[str] = ()

    @property
    def has_queue(self) -> bool:
        """Whether an input does not end by itself."""
        return any(each.kind in QUEUES for each in self.inputs)


def open_typed(options: InputOptions, state: "RunState | None") -> list[Typed]:
    """The inputs on the command line, otherwise stdin; for a resumed run, stdin only if it has jobs."""
    waits = options.no_follow
    open_inputs = [open_file(name, waits=waits) for name in options.files]
    typed = [(is_of(opened.fd, opened.name), opened) for opened in open_inputs]
    if options.follow:
        mark = _mark_of_followed(os.path.realpath(options.follow), state) if state else None
        typed.append(open_followed(options.follow, mark, state, makes_pipe=options.make_fifo))
    if not typed:
        stdin = is_of(0)
        if not state or stdin.kind in ("file", "fifo", "pipe"):
            typed.append((stdin, OpenInput(0)))
    for each, opened in typed:
        if each.kind == "fifo" and not waits:
            check_holdable(opened.fd)
    return [(each, _with_content(each, opened)) for each, opened in typed]


def _with_content(each: Input, opened: OpenInput) -> OpenInput:
    if each.kind != "file":
        return opened
    return opened._replace(feed=content_of(opened.fd, opened.name or each.path))


def _mark_of_followed(path: str, state: "RunState") -> ReadMark | None:
    """How far it was read; of a file that the run followed before anything was in it, its start."""
    was_followed = any(each.kind == "follow" and each.path == path for each in map(_input_of, state.began["inputs"]))
    return mark_of(state.marks.get(path)) or (ReadMark(path) if was_followed else None)


def gather(
    typed: Sequence[Typed], journal: str, hand_over: "HandOver | None", state: "RunState | None", options: InputOptions
) -> Gathered:
    """The inputs that the resumed run had, then the ones typed now; those that may never end come last."""
    gathering = _Gathering(journal, hand_over, state, b"\0" if options.null else b"\n", follows=not options.no_follow)
    had = [_input_of(each) for each in state.began["inputs"]] if state else []
    paths = {each.path for each, _ in typed if each.path}
    for each in had:
        if each.path not in paths or not each.path:
            gathering.resume(each)
    spools = {each.path: each.spool for each in had if each.spool and each.path}
    for each, opened in typed:
        gathering.add(each._replace(spool=spools.get(each.path, "")), opened)
    return gathering.all()


def _input_of(record: Mapping[str, str]) -> Input:
    return Input(**{name: record[name] for name in Input._fields if name in record})


class _Gathering:
    def __init__(
        self, journal: str, hand_over: "HandOver | None", state: "RunState | None", end: bytes, *, follows: bool
    ) -> None:
        self._stem = files.stem(journal) if journal else ""
        self._hand_over = hand_over
        self._state = state
        self._end = end
        self._follows = follows
        had = state.began["inputs"] if state else []
        self._taken = {each.get("spool", "") for each in had} | set(state.marks if state else ())
        self._found: list[tuple[Input, OpenInput | None]] = []
        self._problems: list[str] = []

    def _stays_open(self, each: Input, opened: OpenInput) -> bool:
        if each.kind != "fifo" or not self._follows:
            return each.kind == "follow"
        from .pipes import Rest  # noqa: PLC0415 - see above

        return not isinstance(opened.feed, Rest)

    def all(self) -> Gathered:
        found = sorted(self._found, key=lambda pair: pair[0].kind in QUEUES)
        queues = [safe(each.path) for each, opened in found if opened and self._stays_open(each, opened)]
        if len(queues) > 1:
            raise UserError(
                f"{queues[0]} stays open, so {queues[1]} would never be read; start a run for each queue, or use "
                "--no-follow with named pipes"
            )
        open_inputs = [opened for _, opened in found if opened]
        introductions = [f"created the named pipe {safe(opened.made)}" for opened in open_inputs if opened.made]
        introductions += [introduce(each, follows=self._follows) for each, opened in found if opened]
        return Gathered(
            [each for each, _ in self._found], open_inputs, [each for each in introductions if each], self._problems
        )

    def add(self, each: Input, opened: OpenInput) -> None:
        """Add an input that was typed."""
        is_pipe = each.kind == "fifo" or (each.kind == "pipe" and self._stem)
        if not is_pipe or (not self._stem and self._follows):
            if each.kind == "fifo":
                opened = open_held(opened)
            path = each.path if each.kind == "file" else ""
            self._found.append((each, opened._replace(path=path)))
            return
        try:
            each, spool = (each, self._open_spool(each)) if each.spool else self._new_spool(each)
        except OSError as error:
            self._problems.append(f"the input from the pipe cannot be saved beside the journal: {error.strerror}")
            self._found.append((each._replace(spool=""), opened))
            return
        mark = self._mark(each.spool)
        attached = spooled(each, opened, spool, self._hand_over, mark, self._end, follows=self._follows)
        self._found.append((each, attached))

    def resume(self, each: Input) -> None:
        """Continue an input that the run had."""
        opened: OpenInput | None = None
        try:
            if each.kind == "file":
                if not self._state or each.path not in self._state.ended_inputs:
                    fd = os.open(each.path, os.O_RDONLY | os.O_CLOEXEC)
                    opened = OpenInput(fd, each.name, content_of(fd, each.path), path=each.path)
            elif each.kind == "follow":
                mark = self._mark(each.path) or ReadMark(each.path)
                opened = open_followed(each.path, mark, self._state)[1]
            elif each.kind == "fifo" and self._follows and os.path.exists(each.path):
                opened = open_file(each.path, waits=False)._replace(name=each.name)
                check_holdable(opened.fd)
                self.add(each, opened)
                return
            elif each.spool:
                opened = rest(each, self._open_spool(each), self._mark(each.spool))
        except OSError as error:
            self._problems.append(
                f"{each.path or 'the pipe'} cannot be read again: {error.strerror}; its unread lines are missing"
            )
        self._found.append((each, opened))

    def _mark(self, name: str) -> ReadMark | None:
        return mark_of(self._state.marks.get(name)) if self._state else None

    def _new_spool(self, each: Input) -> tuple[Input, int]:
        if not self._stem:
            with suppress(OSError):
                place = os.environ.get("TMPDIR", _TEMPORARY)
                return each, os.open(place, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
            return each, os.memfd_create("input")
        name = next(name for at in count() if (name := f"input-{at}") not in self._taken)
        self._taken.add(name)
        with suppress(FileNotFoundError):  # left by a deleted journal of the same name
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
        """A line whose writer was cut off when the scheduler died must not be joined with the next one."""
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
