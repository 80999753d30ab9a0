"""The inputs of a run: what each is, opening them, looking through them for mistakes, and what to say of them."""

import errno
import os
import stat
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from simple_gpu_scheduler.errors import UserError
from simple_gpu_scheduler.events import ReadMark
from simple_gpu_scheduler.feeds import Followed
from simple_gpu_scheduler.lines import LineParser
from simple_gpu_scheduler.sources import Source, check
from simple_gpu_scheduler.spooled import HandOver, Rest, Spooled

_STDIN = 0
_MOST_MISTAKES_SHOWN = 10


class Input(NamedTuple):
    """One, as the journal has it: a `file`, a named `fifo`, a `pipe`, a `terminal`, one to `follow`, or `other`.

    `name` tells it from other inputs in what is said of its lines; `spool` ends the name of the file that a pipe is
    emptied into.
    """

    kind: str
    path: str = ""
    name: str = ""
    spool: str = ""


def is_of(fd: int, name: str = "") -> Input:
    """What is behind a descriptor."""
    mode = os.fstat(fd).st_mode
    path = os.readlink(f"/proc/self/fd/{fd}")
    if os.isatty(fd):
        return Input("terminal", path, name)
    if stat.S_ISFIFO(mode):  # an anonymous pipe reads `pipe:[1234]` there
        return Input("fifo", path, name) if path.startswith("/") else Input("pipe", "", name)
    return Input("file", path, name) if stat.S_ISREG(mode) else Input("other", path, name)


def open_file(path: str, *, waits: bool) -> Source:
    """One of FILES. With `waits` a named pipe's first writer is waited for."""
    if path == "-":
        return Source(_STDIN)
    try:
        if not waits and _is_named_pipe(path):
            return _place_of(path)
        # The first writer of a named pipe that ends with its writers is waited for, or it would seem empty.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | (0 if waits else os.O_NONBLOCK))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; FILES hold commands, one a line") from None
    if stat.S_ISDIR(os.fstat(fd).st_mode):
        raise UserError(f"cannot read {path}: it is a directory")
    os.set_blocking(fd, True)
    return Source(fd, path)


def _is_named_pipe(path: str) -> bool:
    """And not one without a name, such as /dev/stdin or what a shell makes of <(...), which has its writer already."""
    if not stat.S_ISFIFO(os.stat(path).st_mode):
        return False
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        return is_of(fd).kind == "fifo"
    finally:
        os.close(fd)


def _place_of(path: str) -> Source:
    """A named pipe, not opened: from then on writers write, and what they wrote would be lost with us."""
    if not os.access(path, os.R_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return Source(os.open(path, os.O_PATH | os.O_CLOEXEC), path)


def open_followed(path: str, mark: ReadMark | None) -> tuple[Input, Source]:
    """What `--follow` names: a pipe, which is made when nothing is there, or a file that grows."""
    try:
        if not os.path.lexists(path):
            if mark:  # a file that was followed before is between two rotations, or will come again
                return Input("follow", path), Source(-1, "", Followed(path, mark), mark)
            os.mkfifo(path, 0o600)
        mode = os.stat(path).st_mode
        if stat.S_ISFIFO(mode):
            source = open_file(path, waits=False)._replace(name="")
            return is_of(source.fd), source
        if not stat.S_ISREG(mode):
            raise UserError(f"--follow {path}: it is neither a pipe nor a plain file")
        os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        return Input("follow", os.path.realpath(path)), Source(-1, "", Followed(os.path.realpath(path), mark), mark)
    except OSError as error:
        raise UserError(f"--follow {path}: {error.strerror}") from None


def open_held(source: Source) -> Source:
    """A named pipe that is read as it is, and with its other end held does not end when its last writer leaves."""
    place = f"/proc/self/fd/{source.fd}"
    fd = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    os.open(place, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    os.set_blocking(fd, True)
    return source._replace(fd=fd)


def check_holdable(fd: int) -> None:
    """A UserError says that the other end of a named pipe may not be opened."""
    if not os.access(f"/proc/self/fd/{fd}", os.W_OK):
        raise UserError(
            f"cannot hold the named pipe open for its writers: {os.strerror(errno.EACCES)}; let yourself write to it, "
            "or use --no-follow"
        )


def spooled(
    kind: Input, source: Source, spool: int, hand_over: HandOver | None, mark: ReadMark | None, *, follows: bool
) -> Source:
    """A pipe that is emptied into the open file `spool`."""
    is_named = kind.kind == "fifo"
    offset = mark.offset if mark else 0
    feed = Spooled(
        kind.spool, source.fd, spool, hand_over, is_named=is_named, holds=is_named and follows, offset=offset
    )
    return source._replace(feed=feed, mark=mark)


def rest(kind: Input, spool: int, mark: ReadMark | None) -> Source:
    """What was taken of a pipe that is no more."""
    return Source(spool, kind.name, Rest(kind.spool, spool, mark.offset if mark else 0), mark)


def mark_of(record: Mapping[str, object] | None) -> ReadMark | None:
    """How far an input was read, as the journal has it."""
    if not record:
        return None
    return ReadMark(**{name: record[name] for name in ReadMark._fields if name in record})  # type: ignore[arg-type]


def refuse_mistakes(sources: Sequence[Source], parser: LineParser, *, by_null: bool) -> None:
    """Wrong options in the first part of plain files stop everything before it starts."""
    mistakes = check([source for source in sources if source.feed is None], parser, by_null=by_null)
    if not mistakes:
        return
    lines = [f"  {refusal.place}: {refusal.problem}" for refusal in mistakes[:_MOST_MISTAKES_SHOWN]]
    if len(mistakes) > len(lines):
        lines.append(f"  and {len(mistakes) - len(lines)} more")
    raise UserError("\n".join(["nothing was started, since the input has mistakes:", *lines]))


def keep_input(sources: Sequence[Source], joblog: str | None) -> None:
    """Refuse a job log that is the input: it would be emptied before it was read."""
    try:
        log = os.stat(joblog) if joblog else None
    except OSError:  # there is none yet
        return
    fds = [source.fd for source in sources if source.fd >= 0]
    if log and any(os.path.samestat(log, os.fstat(fd)) for fd in fds) and stat.S_ISREG(log.st_mode):
        raise UserError(f"--joblog {joblog}: that is the file that the commands are read from")


def introduce(kind: Input, *, follows: bool) -> str:
    """What to say of what may surprise: that a terminal is read, or that an input does not end."""
    if kind.kind == "terminal":
        return "reading commands from the terminal, one a line; Ctrl-D ends the input"
    if kind.kind == "fifo" and follows:
        return "the named pipe is held open for more commands until the run is stopped"
    return "the file is followed for more commands until the run is stopped" if kind.kind == "follow" else ""
