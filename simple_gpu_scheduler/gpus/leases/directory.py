"""The directory that all users share, and its files, opened so that no user can redirect them to other files.

No symbolic link is followed, nothing is truncated or deleted, and only regular files with a single link are written.
"""

import errno
import fcntl
import os
import stat
import time

from simple_gpu_scheduler.base.stdlib import suppress
from simple_gpu_scheduler.base.values import Callable, Mapping, NamedTuple
from simple_gpu_scheduler.system.users import user_name

from . import LeaseError, LeaseFileError
from .record import Record, encode

DEFAULT_DIRECTORY = "/tmp/simple_gpu_scheduler"  # noqa: S108 - shared on purpose, and guarded as below
VARIABLE = "SGS_LEASE_DIR"

_FOR_ALL, _FILE_FOR_ALL = 0o1777, 0o666
_PAUSE = 0.01
_JUST_MADE = 2.0  # seconds
# What is wrong with one file, and not with the file system or this process.
_OF_THE_FILE = (errno.ELOOP, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENXIO, errno.ENODEV)
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_WAY_OUT = f"or set {VARIABLE} to a directory that all users of the GPUs share (mkdir -m 1777 DIR)"


class SharedDirectory(NamedTuple):
    """Where the lease files are, and who says so: the variable, the machine file, or nobody."""

    path: str
    said_by: str = ""


def shared_directory(environment: Mapping[str, str], of_machine: str, file: str) -> SharedDirectory:
    """The directory `of_machine`, if its `file` names one; else that of the environment, else the default.

    They may not differ: schedulers with different directories would take the same GPU.
    """
    own = environment.get(VARIABLE)
    if not of_machine:
        return SharedDirectory(own, VARIABLE) if own else SharedDirectory(DEFAULT_DIRECTORY)
    if own and os.path.realpath(own) != os.path.realpath(of_machine):
        raise LeaseError(
            f"{VARIABLE}={own}, but the schedulers of this machine share {of_machine} ({file}); unset {VARIABLE}"
        )
    return SharedDirectory(of_machine, file)


class LeaseFiles:
    """The shared directory."""

    def __init__(self, path: str, said_by: str = "") -> None:
        """See `SharedDirectory`."""
        self._fd = -1
        is_of_file = said_by not in ("", VARIABLE)
        self._way_out = f"or change lease-directory in {said_by}" if is_of_file else _WAY_OUT
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
            fd = _patiently(lambda: os.open(self.path, _DIRECTORY), lambda: os.lstat(self.path))
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
                f"cannot create the lease directory {self.path}: {error.strerror}; fix that, {self._way_out}"
            ) from None
        return True

    def _not_a_directory(self, error: OSError) -> str:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            what = "a symbolic link" if os.path.islink(self.path) else "not a directory"
            return f"the lease directory {self.path} is {what} (possible attack); remove it, {self._way_out}"
        return f"cannot open the lease directory {self.path}: {error.strerror}; fix that, {self._way_out}"

    def _open_file(self, name: str) -> int:
        try:
            fd = self._open_or_make(name)
        except OSError as error:
            kind = LeaseFileError if error.errno in _OF_THE_FILE else LeaseError
            raise kind(self._not_a_file(name, error)) from None
        state = os.fstat(fd)
        if not stat.S_ISREG(state.st_mode) or state.st_nlink != 1:
            os.close(fd)
            what = "has a second hard link" if stat.S_ISREG(state.st_mode) else "is not a regular file"
            raise LeaseFileError(f"the lease file {self.path}/{name} {what} (possible attack); remove it")
        return fd

    def _open_or_make(self, name: str) -> int:
        return _patiently(lambda: self._open_made(name, _FILE), lambda: self._state_of(name))

    def _state_of(self, name: str) -> os.stat_result:
        """That of a file or, while it cannot be made yet, of the directory."""
        try:
            return os.stat(name, dir_fd=self._fd, follow_symlinks=False)
        except OSError:
            return os.fstat(self._fd)

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
        if error.errno == errno.EMFILE:
            return f"cannot open the lease file {path}: {error.strerror}; raise the limit with: ulimit -n 1024"
        try:
            whose = f", owned by {user_name(os.stat(name, dir_fd=self._fd, follow_symlinks=False).st_uid)}"
        except OSError:
            whose = ""
        return f"cannot use the lease file {path}{whose}: {error.strerror}; fix that, {self._way_out}"


def _patiently(open_it: Callable[[], int], state: Callable[[], os.stat_result]) -> int:
    """Open something that another process may just be creating, and has not opened to all yet."""
    until = time.monotonic() + _JUST_MADE
    while True:
        try:
            return open_it()
        except PermissionError:
            if time.monotonic() >= until or not _is_new(state()):
                raise
        time.sleep(_PAUSE)


def _is_new(state: os.stat_result) -> bool:
    return abs(time.time() - state.st_ctime) < _JUST_MADE
