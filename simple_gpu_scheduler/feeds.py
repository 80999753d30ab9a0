"""Where the bytes of an input come from: a file read to its end, a pipe that is emptied into a file, a file that grows.

A feed gives bytes; those that can go on where they were remember how far their bytes were used. It knows nothing of
lines.
"""

import os
import select
import sys
import threading
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from .events import ReadMark
from .keeper.intake import Intake
from .keeper.messages import Socket, pair, receive, send
from .threads import start_thread

# Small enough that cutting and parsing one chunk never keeps the other threads waiting for long.
CHUNK = 4 * 1024
# How far a pipe is emptied ahead of what was used of it.
AHEAD = 4 * 1024 * 1024


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


class HandOver(Protocol):
    """Gives the work to the keeper."""

    def __call__(self, granted: int, files: Sequence[int], *, is_named: bool) -> None:
        """How much may be taken, and the files; see `Intake`."""


class Rest:
    """What an earlier scheduler had taken of a pipe and not used."""

    def __init__(self, name: str, spool: int, offset: int) -> None:
        self._name = name
        self._spool = spool
        self._at = self._used = offset

    def read(self) -> Piece:
        """See `Feed`."""
        data = os.pread(self._spool, CHUNK, self._at)
        self._at += len(data)
        return Piece(data)

    def used(self, size: int) -> ReadMark | None:
        """See `Feed`."""
        self._used += size
        return ReadMark(self._name, offset=self._used)

    def stop(self) -> bool:
        """It ends soon anyhow."""
        return False


class Spooled:
    """A pipe that is emptied into a file, by the keeper where there is one, so that what was written to it is kept."""

    def __init__(
        self,
        name: str,
        source: int,
        spool: int,
        hand_over: HandOver | None,
        *,
        is_named: bool,
        held: int | None = None,
        offset: int = 0,
    ) -> None:
        """`offset`: where to go on. Without a keeper to `hand_over` the pipe to, a thread empties it."""
        self._name = name
        self._source = source
        self._spool = spool
        self._is_named = is_named
        self._held = held
        self._at = self._used = offset
        self._size = os.fstat(spool).st_size
        self._most_kept = sys.maxsize  # how far the file reaches, when no more can be written to it
        self._is_over = False
        self._granted = self._size + AHEAD
        self._lock = threading.Lock()  # over the socket, which is another when the keeper was killed
        self._notify = self._give_over(hand_over) if hand_over else self._take_in_here()

    def read(self) -> Piece:
        """See `Feed`."""
        while self._at >= self._size:
            if self._is_over:
                return Piece()
            message = receive(self._notify)
            if message is None:
                self._take_over()
            elif message.fields[0] == b"end":
                self._is_over = not self._is_named
                return Piece(more_may_come=self._is_named)
            elif message.fields[0] == b"failed":
                return Piece(problem=self._keep_in_memory(message.fields[1].decode(), b"\0".join(message.fields[2:])))
            else:
                self._is_over = message.fields[0] == b"closed"
                self._size = int(message.fields[-1])
        data = os.pread(self._spool, min(CHUNK, self._size - self._at), self._at)
        self._at += len(data)
        if self._granted - self._at < AHEAD // 2:
            self._granted = self._at + AHEAD
            self._tell(b"%d" % self._granted)
        return Piece(data)

    def used(self, size: int) -> ReadMark | None:
        """See `Feed`."""
        self._used += size
        return ReadMark(self._name, offset=min(self._used, self._most_kept))

    def stop(self) -> bool:
        """See `Feed`. Our own end is closed, so that the other reader's is the last."""
        with self._lock:
            if self._source >= 0:
                null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
                os.dup2(null, self._source, inheritable=False)  # not closed: stdin's number must stay taken
                os.close(null)
        self._tell(b"close")
        return True

    def _tell(self, word: bytes) -> None:
        try:
            send(self._notify, word)
        except OSError:  # it is gone: `read` meets that too
            return

    def _files(self, its_end: Socket) -> list[int]:
        return [self._source, self._spool, its_end.fileno(), *([] if self._held is None else [self._held])]

    def _give_over(self, hand_over: HandOver) -> Socket:
        ours, its_end = pair()
        try:
            hand_over(self._granted, self._files(its_end), is_named=self._is_named)
        except OSError:  # it was killed
            return self._take_in_here()
        its_end.close()
        return ours

    def _take_in_here(self) -> Socket:
        ours, its_end = pair()
        source, spool = os.dup(self._source), os.dup(self._spool)
        held = None if self._held is None else os.dup(self._held)
        intake = Intake(source, spool, its_end, self._granted, is_named=self._is_named, held=held)
        start_thread(intake.run)
        return ours

    def _take_over(self) -> None:
        """The keeper was killed; what it had taken is in the file."""
        with self._lock:
            self._size = os.fstat(self._spool).st_size
            self._notify = self._take_in_here()

    def _keep_in_memory(self, why: str, unwritten: bytes) -> str:
        """The disk is full. That is no reason to run nothing; what may be lost now is to be said."""
        self._most_kept = os.fstat(self._spool).st_size
        memory = os.memfd_create("input")
        os.ftruncate(memory, self._at)
        os.pwrite(memory, os.pread(self._spool, self._most_kept - self._at, self._at) + unwritten, self._at)
        self._spool = memory
        self._take_over()
        return f"what is written to the pipe cannot be kept: {why}; the jobs run, and what has not is lost with us"


class Followed:
    """A file that grows."""

    def __init__(self, path: str, mark: ReadMark | None) -> None:
        self._name = path
        from .following import FollowedFile, Position  # noqa: PLC0415 - most runs follow no file

        begin = Position(mark.device, mark.inode, mark.offset, mark.crc) if mark else Position()
        self._file = FollowedFile(path, begin)
        self._used = begin
        self._unused = bytearray()

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
