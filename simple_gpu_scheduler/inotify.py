"""What the system tells of a file: that it may have changed, what lies beside it, whether somebody may write to it.

`Watch` sleeps by inotify, or where there is none looks again after a while. It does not read what the kernel tells:
whoever is woken looks for himself. Nothing here knows what is in a file.
"""

import ctypes
import errno
import os
import select
import stat
from contextlib import suppress
from fcntl import F_RDLCK, F_SETLEASE, F_SETSIG, F_UNLCK, fcntl
from signal import SIGURG
from typing import NamedTuple

from .journal.appender import is_remote

_MODIFY, _ATTRIB, _MOVED_FROM, _MOVED_TO, _CREATE = 0x2, 0x4, 0x40, 0x80, 0x100
_DELETE, _DELETE_SELF, _MOVE_SELF = 0x200, 0x400, 0x800
_OF_FILE = _MODIFY | _ATTRIB | _DELETE_SELF | _MOVE_SELF
_OF_DIRECTORY = _CREATE | _DELETE | _MOVED_FROM | _MOVED_TO | _DELETE_SELF | _MOVE_SELF
_ONLY_DIRECTORY = 0x1000000
_IGNORED = 64 * 1024
_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 2.0
_MOST_LINKS = 40
_BACKUPS = ("~", ".bak", ".orig")
# Fewer digits behind a rotated file's name are its age, more are a date.
_DATE_DIGITS = 6


class Watch:
    """What one thread sleeps on; any thread, or a signal's handler, may end that for good."""

    def __init__(self, *, uses_inotify: bool) -> None:
        self._stop = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._poll = select.poll()
        self._poll.register(self._stop, select.POLLIN)
        self._pause = _FIRST_PAUSE
        self._watched: set[int] = set()
        self._fd = -1
        self.is_stopped = False
        if uses_inotify:
            self._open()

    @property
    def uses_inotify(self) -> bool:
        """Whether the kernel tells of changes, so that nobody has to look in vain."""
        return self._fd >= 0

    def look_at(self, fd: int, path: str) -> None:
        """Watch an open file (none if below 0) and what a path leads through from now on, and nothing else.

        What changed before must be looked for after this. A directory that is missing is waited for in its parent.
        """
        if self._fd < 0:
            return
        try:
            watched = {_add(self._fd, f"/proc/self/fd/{fd}", _OF_FILE)} if fd >= 0 else set()
            for directory in _directories(path):
                watched |= self._add_directory(directory)
            for gone in self._watched - watched:
                _libc.inotify_rm_watch(self._fd, gone)
            self._watched = watched
        except OSError:  # no more watches for this user, or no permission to watch
            self._give_up_inotify()

    def wait(self, timeout: float | None = None) -> None:
        """Sleep until something may have changed, or for that long in seconds."""
        if self._fd < 0:
            timeout = self._pause if timeout is None else min(timeout, self._pause)
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        self._poll.poll(None if timeout is None else timeout * 1000)
        if self._fd >= 0:
            with suppress(BlockingIOError):
                os.read(self._fd, _IGNORED)

    def expect_more(self) -> None:
        """Something came, so more may come soon."""
        self._pause = _FIRST_PAUSE

    def stop(self) -> None:
        """Wake who sleeps, now and whenever he would."""
        self.is_stopped = True
        os.eventfd_write(self._stop, 1)

    def close(self) -> None:
        """Give the descriptors back; nobody may sleep or stop then."""
        self._give_up_inotify()
        os.close(self._stop)

    def check_remote(self, path: str) -> None:
        """Do without inotify if other machines may write to what is or will be there: it does not tell of them."""
        while self._fd >= 0:
            try:
                if is_remote(path):
                    self._give_up_inotify()
            except OSError:
                path = os.path.dirname(path)
            else:
                return

    def _give_up_inotify(self) -> None:
        if self._fd >= 0:
            self._poll.unregister(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _open(self) -> None:
        try:
            self._fd = _checked(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        except (OSError, AttributeError):  # too many of this user, or a system that has none
            return
        self._poll.register(self._fd, select.POLLIN)

    def _add_directory(self, path: str) -> set[int]:
        try:
            return {_add(self._fd, path, _OF_DIRECTORY | _ONLY_DIRECTORY)}
        except OSError as error:
            parent = os.path.dirname(path)
            if error.errno not in (errno.ENOENT, errno.ENOTDIR) or parent == path:
                raise
        watched = self._add_directory(parent)
        with suppress(FileNotFoundError, NotADirectoryError):
            # It may have come before the parent was watched, and then nobody would tell.
            watched.add(_add(self._fd, path, _OF_DIRECTORY | _ONLY_DIRECTORY))
        return watched


_libc = ctypes.CDLL(None, use_errno=True)


def _add(fd: int, path: str, mask: int) -> int:
    return _checked(_libc.inotify_add_watch(fd, os.fsencode(path), ctypes.c_uint32(mask)))


def _checked(result: int) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def _directories(path: str) -> set[str]:
    """In which directories a change of names may lead this path to another file: those of its links, and its own."""
    found, at, parts = set(), "/", path.split("/")
    links = 0
    while parts:
        name = parts.pop(0)
        at, parent = os.path.normpath(os.path.join(at, name)), at
        try:
            target = os.readlink(at)
        except OSError:
            target = ""
        if target and links < _MOST_LINKS:
            links += 1
            found.add(parent)
            at, parts = "/" if target.startswith("/") else parent, target.split("/") + parts
        elif not parts:
            found.add(os.path.dirname(at))
    return found


class Beside(NamedTuple):
    """A plain file in the directory of another; with `kind` and `age` a rotated one, the newest the greatest."""

    path: str
    identity: tuple[int, int]
    kind: str = ""
    age: int = 0

    @property
    def is_backup(self) -> bool:
        """Whether editors name so what they keep of a file, and NFS what is deleted but open."""
        return self.path.endswith(_BACKUPS) or os.path.basename(self.path).startswith(".nfs")


def identity_of(state: os.stat_result) -> tuple[int, int]:
    """Which file it is, whatever its name."""
    return state.st_dev, state.st_ino


def state_of(path: str) -> os.stat_result | None:
    """What is there; None if nothing is."""
    with suppress(FileNotFoundError):
        return os.stat(path)
    return None


def open_plain(path: str) -> int:
    """A descriptor of a plain file; below 0 if there is none."""
    state = state_of(path)  # first, since to open a named pipe would be noticed by its writers
    if not state:
        return -1
    if not stat.S_ISREG(state.st_mode):
        number = errno.EISDIR if stat.S_ISDIR(state.st_mode) else errno.EINVAL
        raise OSError(number, "it is no plain file any more", path)
    with suppress(FileNotFoundError):
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    return -1


def beside(path: str) -> list[Beside]:
    """The plain files in the directory that a path leads to.

    A directory tells names and inodes together. To ask for each name's file would tell of others during a rotation.
    """
    found: list[Beside] = []
    directory, base = os.path.split(os.path.realpath(path))
    with suppress(OSError), os.scandir(directory) as entries:
        device = os.stat(directory).st_dev
        found.extend(
            Beside(entry.path, (device, entry.inode()), *_age(entry.name, base))
            for entry in entries
            if entry.is_file(follow_symlinks=False)
        )
    return found


def rotated_after(path: str, identity: tuple[int, int]) -> Beside | None:
    """The file that was at this path after the one of this identity, and was rotated too."""
    files = beside(path)
    for this in files:
        if this.identity == identity and this.kind:
            later = [file for file in files if file.kind == this.kind and file.age > this.age]
            return min(later, key=lambda file: file.age, default=None)
    return None


def _age(name: str, base: str) -> tuple[str, int]:
    digits = name[len(base) + 1 :].replace("-", "").replace(".", "")
    if not name.startswith((base + ".", base + "-")) or not digits.isdecimal():
        return "", 0
    return ("date", int(digits)) if len(digits) >= _DATE_DIGITS else ("number", -int(digits))


def may_have_writer(fd: int) -> bool:
    """Whether somebody may have this file open for writing; True if the system does not tell."""
    try:
        fcntl(fd, F_SETSIG, SIGURG)  # should somebody open it right now; the default, SIGIO, would end this process
        fcntl(fd, F_SETLEASE, F_RDLCK)
    except OSError:
        return True
    fcntl(fd, F_SETLEASE, F_UNLCK)
    return False
