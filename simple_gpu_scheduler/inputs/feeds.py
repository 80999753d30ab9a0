"""Feeds give the bytes of an input: one that is read to its end, or a growing file. `pipes` has the pipes, and
`contents` regular files.

A feed returns bytes; feeds that can be resumed remember how far their bytes were used. It knows nothing of lines.
"""

import os
import select

from simple_gpu_scheduler.base.values import TYPE_CHECKING, Callable, NamedTuple, Protocol
from simple_gpu_scheduler.events import ReadMark

if TYPE_CHECKING:
    from .follow import Change

# Small enough that cutting and parsing one chunk never keeps the other threads waiting for long.
CHUNK = 4 * 1024


class ChangedError(Exception):
    """A file was written to while it was read, so what is left of it cannot be trusted."""


class Piece(NamedTuple):
    """Bytes. If empty, the end, or with `more_may_come` the end for now, or with `is_settled` the end of a change.

    `change` says how a followed file was changed before them, other than by growth. With a `problem` it is none of
    these: something went wrong, but the rest still comes. Unless it `is_failure`, it is only worth a message.
    """

    data: bytes = b""
    change: "Change" = ""
    is_settled: bool = False
    more_may_come: bool = False
    problem: str = ""
    is_failure: bool = True


class Feed(Protocol):
    """One input. One thread reads it, another may stop it."""

    def begin(self) -> None:
        """Writers may now write to it: the journal has recorded it."""

    def read(self) -> Piece:
        """The next bytes, waiting for them."""

    def used(self, size: int) -> ReadMark | None:
        """This many more bytes need not be read again; the position after them, if reading can resume there."""

    def stop(self) -> bool:
        """Take no more; whether the end will now come soon."""


class Plain:
    """Reads a descriptor to its end. If killed, what was read of a pipe is lost."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def begin(self) -> None:
        """Nothing to do."""

    def read(self) -> Piece:
        """See `Feed`."""
        while True:
            try:
                return Piece(os.read(self._fd, CHUNK))
            except BlockingIOError:  # a process that shares the pipe or terminal has made it non-blocking
                select.select([self._fd], [], [])

    def used(self, size: int) -> ReadMark | None:  # noqa: ARG002 - the protocol's name
        """It can only start over."""
        return None

    def stop(self) -> bool:
        """It may block for long."""
        return False


class Followed:
    """A file that grows."""

    def __init__(self, path: str, mark: ReadMark | None, kept: Callable[[], int] = lambda: 0) -> None:
        """`kept`: how many lines that the file held before a change have come again."""
        self._name = path
        self._kept, self._kept_before = kept, 0
        from .follow import FollowedFile, Position  # noqa: PLC0415 - most runs follow no file

        start = Position(mark.device, mark.inode, mark.offset, mark.crc) if mark else None
        self._file = FollowedFile(path, start)
        self._used = start or Position()
        self._unused = bytearray()

    def begin(self) -> None:
        """Nothing to do: the file exists already."""

    def read(self) -> Piece:
        """See `Feed`."""
        kept = self._kept()
        if kept > self._kept_before:  # somebody still writes what was there before
            self._file.put_off_settling()
        self._kept_before = kept
        piece = self._file.read(CHUNK)
        if piece.change in ("rewritten", "replaced"):
            self._unused.clear()
            self._used = self._used._replace(offset=0, crc=0)
        self._used = self._used._replace(device=piece.position.device, inode=piece.position.inode)
        self._unused += piece.data
        return Piece(piece.data, piece.change, piece.is_settled)

    def used(self, size: int) -> ReadMark | None:
        """See `Feed`."""
        self._used = self._used.after(bytes(self._unused[:size]))
        del self._unused[:size]
        return ReadMark(self._name, *self._used)

    def stop(self) -> bool:
        """See `Feed`."""
        self._file.stop()
        return True
