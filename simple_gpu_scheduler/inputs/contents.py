"""The content of a regular file as it was when the run began, whatever is written to the file afterwards.

A file of up to 64 MiB is read at once. A larger one is compared with what it was before each piece is used; once it has
changed, the rest is not read, since half of a line may be old and half of it new.
"""

import os
import time

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.stdlib import suppress
from simple_gpu_scheduler.events import ReadMark

from .feeds import CHUNK, ChangedError, Piece

WHOLE = 64 * 1024 * 1024
_TICK = 0.02  # longer than any


def content_of(fd: int, path: str) -> "Content | None":
    """What a regular file holds from the position of `fd` on; None if it must simply be read to its end.

    That is so for files of /proc, which seem to be empty, and where reading fails, which the reader will report.
    """
    try:
        return Content(fd) if os.fstat(fd).st_size else None
    except ChangedError as error:
        raise UserError(
            f"{path}: {error}; nothing was started. Start again when the file is complete; to add jobs to a run, use "
            "a named pipe or --follow FILE"
        ) from None
    except OSError:
        return None


class Content:
    """Gives the content of an open file, and nothing that was written to it later. Knows no lines."""

    def __init__(self, fd: int) -> None:
        """A `ChangedError` says that it is being written to just now."""
        self._fd = fd
        self._start = self._at = os.lseek(fd, 0, os.SEEK_CUR)
        self._size, self._written = _size_and_time(fd)
        self._last = b""  # the piece before `_at`: a change may leave size and time as they are
        self._whole: bytes | None = None
        if self._size - self._start <= WHOLE:
            self._whole = _read_from(fd, self._start, self._size)
            self._check()
        else:  # otherwise a write in the same tick of the kernel's clock would leave the time as it is
            time.sleep(max(0.0, min(_TICK, _TICK - (time.time() - self._written / 1e9))))

    def first(self, size: int) -> bytes:
        """The first bytes; they are still to be read."""
        return os.pread(self._fd, size, self._start) if self._whole is None else self._whole[:size]

    def begin(self) -> None:
        """Nobody can add to it."""

    def read(self) -> Piece:
        """See `Feed`. A `ChangedError` is the end."""
        at = self._at - self._start
        data = self._compared() if self._whole is None else self._whole[at : at + CHUNK]
        self._at += len(data)
        if not data:
            self._whole = b""
            with suppress(OSError):  # to where a program that has the same descriptor expects it
                os.lseek(self._fd, self._at, os.SEEK_SET)
        return Piece(data)

    def used(self, size: int) -> ReadMark | None:  # noqa: ARG002 - the protocol's name
        """It can only start over."""
        return None

    def stop(self) -> bool:
        """Its end is near, or the reader waits."""
        return False

    def _compared(self) -> bytes:
        """The next piece of a large file that is still the same."""
        known = len(self._last)
        data = os.pread(self._fd, known + CHUNK, self._at - known)
        self._check()
        if data[:known] != self._last or (len(data) == known and self._at < self._size):
            raise ChangedError(_CHANGED)
        self._last = data[known:]
        return self._last

    def _check(self) -> None:
        if _size_and_time(self._fd) != (self._size, self._written):
            raise ChangedError(_CHANGED)


_CHANGED = "another program wrote to it while it was read"


def _size_and_time(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_size, status.st_mtime_ns


def _read_from(fd: int, start: int, end: int) -> bytes:
    """What is there, whether or not that is as much as its size promises."""
    pieces = []
    while piece := os.pread(fd, end - start + 1, start) if start <= end else b"":
        pieces.append(piece)
        start += len(piece)
    return b"".join(pieces)
