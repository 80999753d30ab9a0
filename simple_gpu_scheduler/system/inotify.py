"""Sleeps until a file may have changed: by inotify, or without it for a while.

It ignores what the kernel reports: the caller looks at the file again. It knows nothing of file contents, nor which
file is meant when names change.
"""

import ctypes
import errno
import os
import select

from simple_gpu_scheduler.base.stdlib import suppress

from .files import is_remote

_MODIFY, _ATTRIB, _MOVED_FROM, _MOVED_TO, _CREATE = 0x2, 0x4, 0x40, 0x80, 0x100
_DELETE, _DELETE_SELF, _MOVE_SELF = 0x200, 0x400, 0x800
_OF_FILE = _MODIFY | _ATTRIB | _DELETE_SELF | _MOVE_SELF
_OF_DIRECTORY = _CREATE | _DELETE | _MOVED_FROM | _MOVED_TO | _DELETE_SELF | _MOVE_SELF
_ONLY_DIRECTORY = 0x1000000
_IGNORED = 64 * 1024
_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 2.0
_MOST_LINKS = 40


class Watch:
    """What one thread sleeps on; any thread, or a signal handler, may end that for good."""

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
        """Whether the kernel reports changes, so that no polling is needed."""
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
        """Sleep until something may have changed, or for this many seconds."""
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
        """Wake the sleeping thread, and do not let it sleep again."""
        self.is_stopped = True
        os.eventfd_write(self._stop, 1)

    def close(self) -> None:
        """Close the descriptors; no thread may sleep or stop it any more."""
        self._give_up_inotify()
        os.close(self._stop)

    def check_remote(self, path: str) -> None:
        """Do without inotify if other machines may write there: it does not report their changes."""
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
            # It may have come before the parent was watched, which would not be reported.
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
    """The directories in which a renaming could make this path another file: its own, and those of its links."""
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
