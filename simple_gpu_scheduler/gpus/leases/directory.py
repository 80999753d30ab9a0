"""The directory that all users share, and its files, opened so that no user can redirect them to other files.

No symbolic link is followed, nothing is truncated or deleted, and only regular files with a single link are written.
"""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress

from simple_gpu_scheduler.system.users import user_name

from . import LeaseError
from .record import Record, encode

DEFAULT_DIRECTORY = "/tmp/simple_gpu_scheduler"  # noqa: S108 - shared on purpose, and guarded as below
VARIABLE = "SGS_LEASE_DIR"

_FOR_ALL, _FILE_FOR_ALL = 0o1777, 0o666
_PAUSE, _LOOKS = 0.01, 20
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_WAY_OUT = f"or set {VARIABLE} to a directory that all users of the GPUs share (mkdir -m 1777 DIR)"


class LeaseFiles:
    """The shared directory."""

    def __init__(self, path: str) -> None:
        self._fd = -1
        if not os.path.isabs(path):
            raise LeaseError(f"{VARIABLE}={path} is not an absolute path; all users must share one directory")
        self.path = os.path.normpath(path)
        self._fd = self._open_directory()

    def open(self, name: str) -> int:
        """Open one file for reading, writing and locking, creating it if needed."""
        if not self._is_still_there():
            os.close(self._fd)
            self._fd = -1
            self._fd = self._open_directory()
        return self._open_file(name)

    def __del__(self) -> None:
        """No more files are opened: the leases that share this have no common end."""
        if self._fd >= 0:
            os.close(self._fd)

    def is_still(self, fd: int, name: str) -> bool:
        """Whether this is still the file of that name: a clean-up may have deleted it."""
        try:
            is_same = os.path.samestat(os.fstat(fd), os.stat(name, dir_fd=self._fd, follow_symlinks=False))
        except OSError:
            return False
        return is_same and self._is_still_there()

    def _is_still_there(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._fd), os.stat(self.path, follow_symlinks=False))
        except OSError:
            return False

    def _open_directory(self) -> int:
        is_new = self._make_directory()
        try:
            fd = _patiently(lambda: os.open(self.path, _DIRECTORY))
        except OSError as error:
            raise LeaseError(self._not_a_directory(error)) from None
        state = os.fstat(fd)
        if is_new or (self.path == DEFAULT_DIRECTORY and state.st_uid == os.getuid()):
            os.fchmod(fd, _FOR_ALL)
        elif state.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not state.st_mode & stat.S_ISVTX:
            os.close(fd)
            raise LeaseError(
                f"the lease directory {self.path} has mode {stat.S_IMODE(state.st_mode):o}, which lets users delete "
                f"each other's leases; its owner must run: chmod 1777 {self.path}"
            )
        with suppress(OSError):  # programs that clean up /tmp spare a locked directory
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return fd

    def _make_directory(self) -> bool:
        try:
            os.mkdir(self.path, _FOR_ALL)  # the sticky bit from the first moment; the umask takes from the rest
        except FileExistsError:
            return False
        except OSError as error:
            raise LeaseError(
                f"cannot create the lease directory {self.path}: {error.strerror}; fix that, {_WAY_OUT}"
            ) from None
        return True

    def _not_a_directory(self, error: OSError) -> str:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            what = "a symbolic link" if os.path.islink(self.path) else "not a directory"
            return f"the lease directory {self.path} is {what} (possible attack); remove it, {_WAY_OUT}"
        return f"cannot open the lease directory {self.path}: {error.strerror}; fix that, {_WAY_OUT}"

    def _open_file(self, name: str) -> int:
        try:
            fd = self._open_or_make(name)
        except OSError as error:
            raise LeaseError(self._not_a_file(name, error)) from None
        state = os.fstat(fd)
        if not stat.S_ISREG(state.st_mode) or state.st_nlink != 1:
            os.close(fd)
            what = "has a second hard link" if stat.S_ISREG(state.st_mode) else "is not a regular file"
            raise LeaseError(f"the lease file {self.path}/{name} {what} (possible attack); remove it")
        return fd

    def _open_or_make(self, name: str) -> int:
        return _patiently(lambda: self._open_made(name, _FILE))

    def _open_made(self, name: str, flags: int) -> int:
        try:
            # Without O_CREAT, which fs.protected_regular refuses for files of other users.
            return self._written(os.open(name, flags, dir_fd=self._fd))
        except FileNotFoundError:
            pass
        try:
            fd = os.open(name, flags | os.O_CREAT | os.O_EXCL, _FILE_FOR_ALL, dir_fd=self._fd)
        except FileExistsError:  # another process was faster
            return self._written(os.open(name, flags, dir_fd=self._fd))
        os.fchmod(fd, _FILE_FOR_ALL)  # the umask took from it
        return self._written(fd)

    @staticmethod
    def _written(fd: int) -> int:
        """The same, no longer empty: so a full disk is noticed before anything starts."""
        try:
            state = os.fstat(fd)
            if state.st_uid == os.getuid() and stat.S_ISREG(state.st_mode) and state.st_nlink == 1:
                os.fchmod(fd, _FILE_FOR_ALL)  # its creator was killed before this
            if stat.S_ISREG(state.st_mode) and not state.st_size:
                os.pwrite(fd, encode(Record()), 0)
        except OSError:
            os.close(fd)
            raise
        return fd

    def _not_a_file(self, name: str, error: OSError) -> str:
        path = f"{self.path}/{name}"
        if error.errno == errno.ELOOP:
            return f"the lease file {path} is a symbolic link (possible attack); remove it"
        try:
            whose = f", owned by {user_name(os.stat(name, dir_fd=self._fd, follow_symlinks=False).st_uid)}"
        except OSError:
            whose = ""
        return f"cannot use the lease file {path}{whose}: {error.strerror}; fix that, {_WAY_OUT}"


def _patiently(open_it: Callable[[], int]) -> int:
    """Open something that another process may just be creating, and has not opened to all yet."""
    for _ in range(_LOOKS):
        with suppress(PermissionError):
            return open_it()
        time.sleep(_PAUSE)
    return open_it()
