"""Where the bytes of an input come from: a file read to its end, a file that grows; `spooled` has the pipes.

A feed gives bytes; those that can go on where they were remember how far their bytes were used. It knows nothing of
lines.
"""

import os
import select
from typing import NamedTuple, Protocol

from simple_gpu_scheduler.events import ReadMark

# Small enough that cutting and parsing one chunk never keeps the other threads waiting for long.
CHUNK = 4 * 1024


class Piece(NamedTuple):
    """Bytes. Without any it is the end, or with `more_may_come` only for now; `is_new` begins another content.

    With a `problem` it is none of these: something went wrong, and the rest comes all the same.
    """

    data: bytes = b""
    is_new: bool = False
    more_may_come: bool = False
    problem: str = ""


class Feed(Protocol):
    """One input. It is read by one thread, and told by another that it is enough."""

    def begin(self) -> None:
        """From now on others may write to it. The journal knows of it."""

    def read(self) -> Piece:
        """The next bytes, waiting for them."""

    def used(self, size: int) -> ReadMark | None:
        """So many more bytes need not be read again; the place behind them, if it can be gone on there."""

    def stop(self) -> bool:
        """Take no more; whether the end is about to come therefore."""


class Plain:
    """Reads a descriptor to its end. A kill loses what was read of a pipe; a file can be read again."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def begin(self) -> None:
        """Nothing is to be done."""

    def read(self) -> Piece:
        """See `Feed`."""
        while True:
            try:
                return Piece(os.read(self._fd, CHUNK))
            except BlockingIOError:  # somebody who shares the pipe or terminal has made it non-blocking
                select.select([self._fd], [], [])

    def used(self, size: int) -> ReadMark | None:  # noqa: ARG002 - the protocol's name
        """It begins at the begin again."""
        return None

    def stop(self) -> bool:
        """It may wait for long."""
        return False


class Followed:
    """A file that grows."""

    def __init__(self, path: str, mark: ReadMark | None) -> None:
        self._name = path
        from .follow import FollowedFile, Position  # noqa: PLC0415 - most runs follow no file

        begin = Position(mark.device, mark.inode, mark.offset, mark.crc) if mark else Position()
        self._file = FollowedFile(path, begin)
        self._used = begin
        self._unused = bytearray()

    def begin(self) -> None:
        """It is there, and grows."""

    def read(self) -> Piece:
        """See `Feed`."""
        piece = self._file.read(CHUNK)
        if piece.is_new_file:
            self._unused.clear()
            self._used = self._used._replace(offset=0, crc=0)
        self._used = self._used._replace(device=piece.device, inode=piece.inode)
        self._unused += piece.data
        return Piece(piece.data, is_new=piece.is_new_file)

    def used(self, size: int) -> ReadMark | None:
        """See `Feed`."""
        self._used = self._used.behind(bytes(self._unused[:size]))
        del self._unused[:size]
        return ReadMark(self._name, *self._used)

    def stop(self) -> bool:
        """See `Feed`."""
        self._file.stop()
        return True
