"""Follows a regular file as it grows, and says when it was changed in another way: edited, truncated, replaced.

It returns bytes, and for each piece the position after it, from which a later process can resume. It knows nothing of
lines or jobs: after a change it returns the file from its start, and `held_lines` knows which lines are new.

A file is known by its device, its inode and what was read of it, never by its name. If another file takes its place at
the path, the old one is first read to its end, as long as a process has it open for writing. If the system does not
say, or a writer keeps it open, it is left after a second without new bytes, and after ten seconds at most.

It cannot notice everything: a file that came to the path and was gone before the next look, and in a file of more than
16 MiB a change that leaves all of the last 4 KiB that were read in their place.
"""

import errno
import fcntl
import os
import stat
import time
import zlib

from simple_gpu_scheduler.base.stdlib import signal, suppress
from simple_gpu_scheduler.base.values import Literal, NamedTuple
from simple_gpu_scheduler.system.inotify import Watch

_QUIET = 1.0
_PATIENCE = 10.0
_LOOK_AGAIN = 0.05
_CHUNK = 256 * 1024
# Compared before each further read; more is compared only when nothing has come for a while.
_TAIL = 4 * 1024
_COMPARED_WHOLE = 16 * 1024 * 1024
# Each needs a descriptor.
_MOST_COMING = 50

# How the file changed other than by growth: other content from the start, or a file in its place that starts with all
# that was read.
Change = Literal["", "rewritten", "replaced", "continued"]


class Position(NamedTuple):
    """Where to resume: in which file, after how many bytes, and their checksum; zeros if unknown."""

    device: int = 0
    inode: int = 0
    offset: int = 0
    crc: int = 0

    def after(self, data: bytes) -> "Position":
        """The position after these bytes, which start here."""
        return self._replace(offset=self.offset + len(data), crc=zlib.crc32(data, self.crc))


class FilePiece(NamedTuple):
    """Bytes, and the position after them; `change` says what happened to the file before them.

    Without bytes, a change is over if it `is_settled`: nothing more has come for a second. Otherwise reading has ended.
    """

    data: bytes
    position: Position
    change: Change = ""
    is_settled: bool = False


class FollowedFile:
    """A regular file that grows, or does not exist yet; read by one thread. ValueError: it is another kind of file."""

    def __init__(self, path: str, position: Position | None = None, *, uses_inotify: bool | None = None) -> None:
        """`position` is that of an earlier process, if there was one; it does not know whether a change was over."""
        self._path = os.path.abspath(path)
        with suppress(OSError):  # `read` will report it too
            if not stat.S_ISREG(os.stat(path).st_mode):
                raise ValueError(f"{path} is not a regular file")
        self._may_be_remote = uses_inotify is None
        self._watch = Watch(uses_inotify=uses_inotify is not False)
        self._fd = -1
        self._coming: list[int] = []  # what took its place, oldest first
        self._at = position or Position()
        self._tail = b""
        self._change: Change = ""
        self._changed_at = time.monotonic() if position else None  # since when it is not settled
        self._replaced_at = self._moved_at = self._locked_at = 0.0
        self._compared = 0  # when the file had been changed last as all that was read of it was compared
        self._pause: float | None = None
        self._check_remote()

    @property
    def uses_inotify(self) -> bool:
        """Whether the kernel reports changes; otherwise the file is polled every 0.2 to 2 seconds."""
        return self._watch.uses_inotify

    def read(self, size: int) -> FilePiece:
        """Wait for the next bytes; empty when stopped. OSError: it cannot be read."""
        is_watched = False
        while not self._watch.is_stopped:
            if piece := self._look(size):
                self._watch.expect_more()
                return piece
            # One more look finds what came before the watch was set.
            is_watched = not is_watched
            self._watch.look_at(self._fd, self._path) if is_watched else self._watch.wait(self._pause)
        return FilePiece(b"", self._at)

    def put_off_settling(self) -> None:
        """A change that has been going on for long is surely not over yet."""
        if self._changed_at is not None:
            self._changed_at = time.monotonic()

    def stop(self) -> None:
        """Make this and all later reads return empty; from any thread or a signal handler."""
        self._watch.stop()

    def close(self) -> None:
        """Close the descriptors, once no thread reads or stops it any more."""
        for fd in (self._fd, *self._coming):
            _close(fd)
        self._fd, self._coming = -1, []
        self._watch.close()

    def _look(self, size: int) -> FilePiece | None:
        """What is available now."""
        self._pause = None
        while self._fd >= 0 or self._open_first():
            self._notice_next()
            try:
                data = self._read_on(size)
            except BlockingIOError:
                self._pause = _LOOK_AGAIN
                return None
            if data:
                return self._piece(data)
            if not (self._fd < 0 or self._move_on()):
                break
        return self._settled() if self._fd >= 0 else None

    def _piece(self, data: bytes, *, is_settled: bool = False) -> FilePiece:
        change, self._change = self._change, ""
        return FilePiece(data, self._at, change, is_settled)

    def _read_on(self, size: int) -> bytes:
        """The next bytes. BlockingIOError: it is locked by a writer, which may take back a partial write."""
        try:
            if os.fstat(self._fd).st_size == self._at.offset:
                self._locked_at = 0.0  # nothing is kept from us; a later lock gets its own patience
                return b""
            self._lock()
            if not self._ends_as_read():
                self._restart("rewritten")
            data = os.pread(self._fd, size, self._at.offset)
            with suppress(OSError):
                fcntl.flock(self._fd, fcntl.LOCK_UN)
        except BlockingIOError:
            raise
        except OSError as error:
            if error.errno != errno.ESTALE:
                raise
            self._close_first()  # another machine deleted it: start as after a restart
            return b""
        if data:
            self._at = self._at.after(data)
            self._tail = (self._tail + data)[-_TAIL:]
            self._moved_at = time.monotonic()
        return data

    def _ends_as_read(self) -> bool:
        """Whether the last bytes that were read are still where they were."""
        tail = self._tail
        return os.pread(self._fd, len(tail), self._at.offset - len(tail)) == tail

    def _restart(self, change: Change) -> None:
        """Read the open file from its start."""
        self._at, self._tail = Position(*_identity_of(os.fstat(self._fd))), b""
        self._note(change)

    def _note(self, change: Change) -> None:
        self._change = change
        self._compared = os.fstat(self._fd).st_mtime_ns
        self._changed_at = self._moved_at = time.monotonic()

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

    def _open_first(self) -> bool:
        """Open the file of the position, wherever it is now, else the file at the path; False if there is none."""
        self._fd = _open_moved(self._path, self._at) if self._at.inode else -1
        if self._fd < 0:
            self._fd = _open_plain(self._path)
        if self._fd < 0:
            return False
        if self._at.inode:
            self._take_over(is_same=_identity_of(os.fstat(self._fd)) == self._at[:2])
        else:
            is_settled = self._changed_at is None
            self._restart("")
            self._changed_at = None if is_settled else self._changed_at
        return True

    def _take_over(self, *, is_same: bool) -> None:
        """Continue in the open file if it starts with all that was read; otherwise read it from its start."""
        self._check_remote()
        at = self._at
        if at.offset and _checksum_of(self._fd, at.offset) == at.crc:
            self._at = Position(*_identity_of(os.fstat(self._fd)), at.offset, at.crc)
            size = min(_TAIL, at.offset)
            self._tail = os.pread(self._fd, size, at.offset - size)
            self._note("" if is_same else "continued")
        else:
            self._restart("rewritten" if is_same else "replaced")

    def _notice_next(self) -> None:
        """Open what is at the path now, if it is another file: it may be gone at the next look."""
        state = _state_of(self._path)
        last = self._coming[-1] if self._coming else self._fd
        if state and _identity_of(state) != _identity_of(os.fstat(last)):
            fd = _open_plain(self._path)
            if fd >= 0:
                self._replaced_at = self._replaced_at if self._coming else time.monotonic()
                self._coming.append(fd)

    def _move_on(self) -> bool:
        """At the end of a file: whether it was rewritten, or another is to be read now."""
        if not self._coming:
            return self._was_rewritten()
        if not self._may_leave():
            self._pause = _LOOK_AGAIN
            return False
        if os.fstat(self._fd).st_size > self._at.offset and self._ends_as_read():
            return True  # it came before its last writer was gone
        _close(self._fd)
        self._fd = self._coming.pop(0)
        self._replaced_at = time.monotonic()
        self._take_over(is_same=False)
        return True

    def _may_leave(self) -> bool:
        now, since = time.monotonic(), self._replaced_at
        if len(self._coming) > _MOST_COMING or now >= min(max(since, self._moved_at) + _QUIET, since + _PATIENCE):
            return True
        # A writer that was just opening it is seen only then.
        return now >= since + _LOOK_AGAIN and not _may_have_writer(self._fd)

    def _was_rewritten(self) -> bool:
        """At the end: whether what was read is no longer there, though nothing was cut or added."""
        state = os.fstat(self._fd)
        if state.st_mtime_ns == self._compared or state.st_size != self._at.offset:
            return False
        quiet_in = self._moved_at + _QUIET - time.monotonic()
        if quiet_in > 0:  # comparing takes time, and more may be coming
            self._pause = quiet_in
            return False
        self._compared = state.st_mtime_ns
        if self._at.offset > _COMPARED_WHOLE or _checksum_of(self._fd, self._at.offset) == self._at.crc:
            return False
        self._restart("rewritten")
        return True

    def _settled(self) -> FilePiece | None:
        """Say once that a change is over, when nothing has come for a while."""
        if self._changed_at is None or self._coming:
            return None
        now = time.monotonic()
        over_at = min(max(self._changed_at, self._moved_at) + _QUIET, self._changed_at + _PATIENCE)
        if now < over_at:
            self._pause = min(over_at - now, _QUIET if self._pause is None else self._pause)
            return None
        self._changed_at = None
        return self._piece(b"", is_settled=True)

    def _close_first(self) -> None:
        _close(self._fd)
        self._fd = -1

    def _check_remote(self) -> None:
        if self._may_be_remote:
            self._watch.check_remote(f"/proc/self/fd/{self._fd}" if self._fd >= 0 else self._path)


def _identity_of(state: os.stat_result) -> tuple[int, int]:
    return state.st_dev, state.st_ino


def _state_of(path: str) -> os.stat_result | None:
    with suppress(FileNotFoundError):
        return os.stat(path)
    return None


def _close(fd: int) -> None:
    if fd >= 0:
        os.close(fd)


def _open_plain(path: str) -> int:
    """A descriptor of a regular file; below 0 if there is none."""
    state = _state_of(path)  # first, since writers would notice the opening of a named pipe
    if not state:
        return -1
    if not stat.S_ISREG(state.st_mode):
        number = errno.EISDIR if stat.S_ISDIR(state.st_mode) else errno.EINVAL
        raise OSError(number, "it is no longer a regular file", path)
    with suppress(FileNotFoundError):
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    return -1


def _open_moved(path: str, at: Position) -> int:
    """The file of a position, at this path or moved to another name beside it; below 0 if it is not there."""
    directory = os.path.dirname(os.path.realpath(path))
    names = [path]
    with suppress(OSError), os.scandir(directory) as entries:
        names += [each.path for each in entries if each.inode() == at.inode and each.is_file(follow_symlinks=False)]
    for name in names:
        with suppress(OSError):  # it may be another's, or be gone; what is at the path is opened again and reported
            fd = _open_plain(name)
            if fd >= 0 and _identity_of(os.fstat(fd)) == at[:2] and _checksum_of(fd, at.offset) == at.crc:
                return fd
            _close(fd)
    return -1


def _may_have_writer(fd: int) -> bool:
    """Whether a process may have this file open for writing; True if the system does not say."""
    try:
        # In case a process opens it right now; the default, SIGIO, would end this process.
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError:
        return True
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False


def _checksum_of(fd: int, size: int) -> int | None:
    """The checksum of the first bytes; None if there are fewer."""
    crc = at = 0
    while at < size:
        data = os.pread(fd, min(_CHUNK, size - at), at)
        if not data:
            return None
        crc, at = zlib.crc32(data, crc), at + len(data)
    return crc
