"""Pipes that are copied to a file, so that nothing written to them is lost; and the rest of such a pipe."""

import os
import select
import sys

from simple_gpu_scheduler.base.stdlib import Lock, suppress
from simple_gpu_scheduler.base.values import Protocol, Sequence
from simple_gpu_scheduler.events import ReadMark
from simple_gpu_scheduler.keeper.connection import Socket, pair, receive, send
from simple_gpu_scheduler.keeper.intake import Intake
from simple_gpu_scheduler.keeper.messages import TakeIn
from simple_gpu_scheduler.system.threads import start_thread

from .feeds import CHUNK, Piece

# How far a pipe is read ahead of what was used.
AHEAD = 4 * 1024 * 1024
_HALF = "a writer of the named pipe left its last line without a newline; that line is a job of its own"


class HandOver(Protocol):
    """Hands the work to the keeper."""

    def __call__(self, wanted: TakeIn, files: Sequence[int]) -> None:
        """See `Intake`."""


class Rest:
    """What an earlier scheduler read from a pipe and did not use."""

    def __init__(self, name: str, spool: int, offset: int) -> None:
        self._name = name
        self._spool = spool
        self._at = self._used = offset

    def begin(self) -> None:
        """It has no writers."""

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
        """It ends soon anyway."""
        return False


class Spooled:
    """A pipe that is copied to a file, by the keeper if there is one, so that nothing written to it is lost."""

    def __init__(
        self,
        name: str,
        pipe: int,
        spool: int,
        hand_over: HandOver | None,
        kind: TakeIn,
        *,
        offset: int = 0,
    ) -> None:
        """`offset`: where to resume. Without a keeper to `hand_over` the pipe to, a thread reads it. See `Intake`."""
        self._name = name
        self._pipe = pipe
        self._spool = spool
        self._kind = kind
        self._own: int | None = None  # keeps what is in the pipe should the keeper be killed
        self._hand_over = hand_over
        self._notify: Socket | None = None
        self._at = self._used = offset
        self._size = os.fstat(spool).st_size
        self._most_kept = sys.maxsize  # how far the file reaches, when no more can be written to it
        self._is_over = self._is_direct = False
        self._unused = b""
        self._granted = self._size + AHEAD
        self._lock = Lock()  # over the socket, which is another when the keeper was killed

    def begin(self) -> None:
        """See `Feed`. Waits until writers can write."""
        self._notify = self._give_over(self._hand_over) if self._hand_over else self._take_in_here()
        if receive(self._notify):
            self._keep_open()
        else:
            self._replace_keeper()

    def read(self) -> Piece:
        """See `Feed`."""
        if self._is_direct:
            return self._read_directly()
        while self._at >= self._size:
            if self._is_over:
                return Piece()
            received = receive(self._notify) if self._notify else None
            word, *rest = received.data.split(b"\0") if received else [b""]
            if not word:
                self._replace_keeper()
            elif word == b"open":  # again, after the keeper was killed
                self._keep_open()
            elif word == b"end":
                self._is_over = not self._kind.is_named
                return Piece(more_may_come=bool(self._kind.is_named))
            elif word == b"half":
                self._size = int(rest[0])
                return Piece(problem=_HALF, is_failure=False)
            elif word == b"failed":
                return Piece(problem=self._bypass_file(rest[0].decode(), b"\0".join(rest[1:])))
            else:
                self._is_over = word == b"closed"
                self._size = int([word, *rest][-1])
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
            if self._pipe >= 0:
                null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
                os.dup2(null, self._pipe, inheritable=False)  # not closed: stdin's number must stay taken
                os.close(null)
            if self._own is not None:
                os.close(self._own)
                self._own = None
        self._tell(b"close")
        return not self._is_direct

    def _tell(self, word: bytes) -> None:
        if self._notify:
            with suppress(OSError):  # it is gone: `read` will notice too
                send(self._notify, word)

    def _keep_open(self) -> None:
        with self._lock, suppress(OSError):
            if self._kind.is_named and self._own is None:
                self._own = os.open(f"/proc/self/fd/{self._pipe}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)

    def _give_over(self, hand_over: HandOver) -> Socket:
        ours, its_end = pair()
        try:
            files = [self._pipe, self._spool, its_end.fileno()]
            hand_over(self._wanted, files)
        except OSError:  # it was killed
            return self._take_in_here()
        its_end.close()
        return ours

    @property
    def _wanted(self) -> TakeIn:
        return self._kind._replace(granted=self._granted)

    def _take_in_here(self) -> Socket:
        ours, its_end = pair()
        pipe, spool = os.dup(self._pipe), os.dup(self._spool)
        intake = Intake(pipe, spool, its_end, self._wanted)
        start_thread(intake.run)
        return ours

    def _replace_keeper(self) -> None:
        """The keeper was killed; what it had read is in the file."""
        with self._lock:
            self._size = os.fstat(self._spool).st_size
            self._notify = self._take_in_here()

    def _bypass_file(self, why: str, unwritten: bytes) -> str:
        """The disk is full. Jobs must still run; say what may be lost now."""
        self._most_kept = os.fstat(self._spool).st_size
        self._unused = os.pread(self._spool, max(0, self._most_kept - self._at), self._at) + unwritten
        self._is_direct = True
        return f"the input cannot be saved: {why}; jobs continue, but waiting jobs are lost if the scheduler dies"

    def _read_directly(self) -> Piece:
        if self._unused:
            data, self._unused = self._unused[:CHUNK], self._unused[CHUNK:]
            return Piece(data)
        fd = self._pipe if self._own is None else self._own
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        while True:
            poll.poll()
            with suppress(BlockingIOError):
                return Piece(os.read(fd, CHUNK))
