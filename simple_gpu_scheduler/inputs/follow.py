"""Follows a regular file as it grows, through truncation, rotation, editing and restarts.

It returns bytes, and for each piece the position after it, from which a later process can resume. It knows nothing of
lines or jobs.

It promises to return all bytes that stay in the file, or in a file that is rotated to a name beside it
(`queue.txt.1`, `queue.txt-20260131`), once and in order: those of the rotated file first, then those of files that were
rotated further meanwhile (`.2`, `.1`). It leaves a rotated file when no process has it open for writing. If the system
does not say, or a writer keeps it open, it leaves after a second without new bytes, and after ten seconds at most; it
does not read what is written to the file later.

It cannot notice everything. It takes a file that is cut and then grows beyond its old size before the next look for the
old one, and also a file that is deleted and created again with the same bytes. A file that was compressed or moved to
another directory while it was not followed is not found, nor are the files between that and the new one.
"""

import errno
import fcntl
import os
import stat
import time
import zlib
from contextlib import suppress
from typing import NamedTuple

from simple_gpu_scheduler.system.inotify import Watch

from . import rotation

_QUIET = 1.0
_PATIENCE = 10.0
_LOOK_AGAIN = 0.05


class Position(NamedTuple):
    """Where to resume: in which file, after how many bytes, and their checksum; zeros if unknown."""

    device: int = 0
    inode: int = 0
    offset: int = 0
    crc: int = 0

    def after(self, data: bytes) -> "Position":
        """The position after these bytes, which start here."""
        return self._replace(offset=self.offset + len(data), crc=zlib.crc32(data, self.crc))


_AT_START = Position()


class FilePiece(NamedTuple):
    """Bytes, and the position after them. With `is_new_file` they start new content, and the old content is complete.

    Otherwise they continue the last piece, though an editor may have given the file another inode.
    """

    data: bytes
    device: int
    inode: int
    offset: int
    crc: int
    is_new_file: bool = False

    @property
    def position(self) -> Position:
        """The position from which a later process resumes."""
        return Position(self.device, self.inode, self.offset, self.crc)


class FollowedFile:
    """A regular file that grows, or does not exist yet; read by one thread. ValueError if it is another kind of file.

    If an editor has replaced the file, reading continues at the same place if all bytes before it are the same;
    otherwise the file is new. The editor gets a second to write that much.
    """

    def __init__(self, path: str, position: Position = _AT_START, *, uses_inotify: bool | None = None) -> None:
        self._path = os.path.abspath(path)
        with suppress(OSError):  # `read` will report it too
            if not stat.S_ISREG(os.stat(path).st_mode):
                raise ValueError(f"{path} is not a regular file")
        self._may_be_remote = uses_inotify is None
        self._watch = Watch(uses_inotify=uses_inotify is not False)
        self._fd = -1
        self._at = self._told = position
        self._is_new_file = False
        self._read_at = self._locked_at = 0.0
        self._pause: float | None = None
        self._open_instead(-1)

    @property
    def uses_inotify(self) -> bool:
        """Whether the kernel reports changes; otherwise the file is polled every 0.2 to 2 seconds."""
        return self._watch.uses_inotify

    def read(self, size: int) -> FilePiece:
        """Wait for the next bytes; empty when stopped. OSError: it cannot be read."""
        is_watched = False
        while not self._watch.is_stopped:
            if data := self._look(size):
                self._watch.expect_more()
                piece = FilePiece(data, *self._at, self._is_new_file)
                self._told, self._is_new_file = self._at, False
                return piece
            # One more look finds what came before the watch was set.
            is_watched = not is_watched
            self._watch.look_at(self._fd, self._path) if is_watched else self._watch.wait(self._pause)
        return FilePiece(b"", *self._told)

    def stop(self) -> None:
        """Make this and all later reads return empty; from any thread or a signal handler."""
        self._watch.stop()

    def close(self) -> None:
        """Close the descriptors, once no thread reads or stops it any more."""
        self._open_instead(-1)
        self._watch.close()

    def _look(self, size: int) -> bytes:
        """What is available now."""
        while self._fd >= 0 or self._begin():
            try:
                if data := self._read_on(size):
                    return data
            except BlockingIOError:
                self._pause = _LOOK_AGAIN
                break
            if self._fd >= 0 and not self._move_on():
                break
        return b""

    def _read_on(self, size: int) -> bytes:
        """The next bytes. BlockingIOError: it is locked by a writer, which may take back a partial write."""
        try:
            if os.fstat(self._fd).st_size == self._at.offset:
                self._locked_at = 0.0  # nothing is kept from us; a later lock gets its own patience
                return b""
            self._lock()
            if os.fstat(self._fd).st_size < self._at.offset:
                self._at, self._is_new_file = self._at._replace(offset=0, crc=0), True
            data = os.pread(self._fd, size, self._at.offset)
            with suppress(OSError):
                fcntl.flock(self._fd, fcntl.LOCK_UN)
        except BlockingIOError:
            raise
        except OSError as error:
            if error.errno != errno.ESTALE:
                raise
            self._open_instead(-1)  # another machine deleted it: start as after a restart
            return b""
        if data:
            self._at = self._at.after(data)
            self._read_at = time.monotonic()
        return data

    def _lock(self) -> None:
        """Keep out writers that lock it; but read it anyway if it stays locked."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            now = time.monotonic()
            self._locked_at = self._locked_at or now
            if now < self._locked_at + _PATIENCE:
                raise
        except OSError:  # there are no locks on this file system
            return
        else:
            self._locked_at = 0.0

    def _begin(self) -> bool:
        """Open the file of the position, wherever it is now, else the file at the path; False if there is none."""
        at = self._at
        names = [file.path for file in rotation.beside(self._path) if file.identity == at[:2]]
        for path in [self._path, *names]:
            fd = rotation.open_plain(path)
            if fd >= 0 and rotation.identity_of(os.fstat(fd)) == at[:2] and self._resume_in(fd, is_same=True):
                return True
            rotation.close(fd)
        if names != [file.path for file in rotation.beside(self._path) if file.identity == at[:2]]:
            return self._begin()  # it was rotated just now
        fd = rotation.open_plain(self._path)
        if fd >= 0 and not (at.inode and self._resume_in(fd, is_same=False)):
            self._start(fd, is_new=at.inode != 0)
        return fd >= 0

    def _resume_in(self, fd: int, *, is_same: bool) -> bool:
        """Resume in a file if it starts with all that was read; if it `is_same`, no checksum is needed."""
        known = self._at.crc != 0 or self._at.offset == 0
        crc = rotation.checksum_of(fd, self._at.offset)
        if crc is None or (crc != self._at.crc if known else not is_same):
            return False
        device, inode = rotation.identity_of(os.fstat(fd))
        self._open_instead(fd)
        self._at = Position(device, inode, self._at.offset, crc)
        return True

    def _start(self, fd: int, *, is_new: bool) -> None:
        self._open_instead(fd)
        self._at = Position(*rotation.identity_of(os.fstat(fd)))
        self._is_new_file = is_new

    def _open_instead(self, fd: int) -> None:
        rotation.close(self._fd)
        self._fd = fd
        self._stay()
        if self._may_be_remote:
            self._watch.check_remote(f"/proc/self/fd/{fd}" if fd >= 0 else self._path)

    def _stay(self, *, was_deleted: bool = False) -> None:
        self._replaced_at: float | None = None
        self._was_deleted = was_deleted
        self._is_left = False
        self._pause = None

    def _move_on(self) -> bool:
        """At the end of a file: whether there is another to read, or this one must be read to its end once more."""
        state, own = rotation.state_of(self._path), os.fstat(self._fd)
        if state and rotation.identity_of(state) == rotation.identity_of(own):
            self._stay()
            return False
        if state is None and not rotation.rotated_after(self._path, rotation.identity_of(own)):
            self._stay(was_deleted=own.st_nlink == 0)
            return False
        if self._replaced_at is None:
            self._replaced_at = time.monotonic()
        if not self._is_left:
            self._is_left = self._may_leave(self._replaced_at)
            return self._is_left  # read what came before we leave it
        return self._open_next(own, may_be_half=time.monotonic() < self._replaced_at + _QUIET)

    def _may_leave(self, replaced_at: float) -> bool:
        self._pause = _LOOK_AGAIN
        now = time.monotonic()
        is_over = now >= min(max(replaced_at, self._read_at) + _QUIET, replaced_at + _PATIENCE)
        # A writer that was just opening it is seen only then.
        return is_over or (now >= replaced_at + _LOOK_AGAIN and not rotation.may_have_writer(self._fd))

    def _open_next(self, own: os.stat_result, *, may_be_half: bool) -> bool:
        fd, is_at_path = rotation.open_after(self._path, rotation.identity_of(own))
        if fd < 0:
            return False
        if is_at_path and not self._was_deleted and rotation.was_edited(self._path, own):
            if may_be_half and os.fstat(fd).st_size < self._at.offset:
                rotation.close(fd)
                return False
            if self._resume_in(fd, is_same=False):
                return True
        self._start(fd, is_new=True)
        return True
