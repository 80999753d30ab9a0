"""The inputs of a run: opening them, looking through them for mistakes, and what to say of them."""

import os
import stat
from typing import NamedTuple

from simple_gpu_scheduler.errors import UserError
from simple_gpu_scheduler.lines import LineParser
from simple_gpu_scheduler.sources import Source, check, hold_open

_STDIN = 0
_MOST_MISTAKES_SHOWN = 10


class Kind(NamedTuple):
    """What an input is: a `file`, a named `fifo`, a `pipe`, a `terminal`, or `other`; and its path where it has one."""

    name: str
    path: str = ""


def kind_of(fd: int) -> Kind:
    """What is behind a descriptor."""
    mode = os.fstat(fd).st_mode
    path = os.readlink(f"/proc/self/fd/{fd}")
    if os.isatty(fd):
        return Kind("terminal", path)
    if stat.S_ISFIFO(mode):  # an anonymous pipe reads `pipe:[1234]` there
        return Kind("fifo", path) if path.startswith("/") else Kind("pipe")
    return Kind("file", path) if stat.S_ISREG(mode) else Kind("other", path)


def open_sources(files: tuple[str, ...], *, waits: bool) -> list[Source]:
    """The files, or stdin when there are none. With `waits` a named pipe's first writer is waited for."""
    return [_open(path, waits=waits) for path in files] if files else [Source(_STDIN)]


def _open(path: str, *, waits: bool) -> Source:
    if path == "-":
        return Source(_STDIN)
    try:
        # A named pipe that is held open is opened at once; else its first writer is waited for, or it would seem empty.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | (0 if waits else os.O_NONBLOCK))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; FILES hold commands, one a line") from None
    if stat.S_ISDIR(os.fstat(fd).st_mode):
        raise UserError(f"cannot read {path}: it is a directory")
    os.set_blocking(fd, True)
    return Source(fd, path)


def refuse_mistakes(sources: list[Source], parser: LineParser, *, by_null: bool) -> None:
    """Wrong options in the first part of plain files stop everything before it starts."""
    mistakes = check(sources, parser, by_null=by_null)
    if not mistakes:
        return
    lines = [f"  {refusal.place}: {refusal.problem}" for refusal in mistakes[:_MOST_MISTAKES_SHOWN]]
    if len(mistakes) > len(lines):
        lines.append(f"  and {len(mistakes) - len(lines)} more")
    raise UserError("\n".join(["nothing was started, since the input has mistakes:", *lines]))


def keep_input(sources: list[Source], joblog: str | None) -> None:
    """Refuse a job log that is the input: it would be emptied before it was read."""
    try:
        log = os.stat(joblog) if joblog else None
    except OSError:  # there is none yet
        return
    if log and any(os.path.samestat(log, os.fstat(source.fd)) for source in sources) and stat.S_ISREG(log.st_mode):
        raise UserError(f"--joblog {joblog}: that is the file that the commands are read from")


def introduce(source: Source, *, follows: bool) -> str:
    """What to say of what may surprise: that a terminal is read, or that a named pipe does not end."""
    if os.isatty(source.fd):
        return "reading commands from the terminal, one a line; Ctrl-D ends the input"
    try:
        is_held = follows and hold_open(source.fd)
    except OSError as error:
        raise UserError(
            f"cannot hold the named pipe open for its writers: {error.strerror}; let yourself write to it, or use "
            "--no-follow"
        ) from None
    return "the named pipe is held open for more commands until the run is stopped" if is_held else ""
