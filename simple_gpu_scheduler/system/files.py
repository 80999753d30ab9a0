"""Files written whole or not at all, kept from being overwritten by mistake, or written without giving up
the interpreter lock. It does not know what is in them."""

import ctypes
import errno
import fcntl
import os
import stat

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.stdlib import suppress
from simple_gpu_scheduler.base.text import safe
from simple_gpu_scheduler.base.values import Callable

_LONGEST = 60  # of a name of 255 bytes, leaving room for a suffix

_REMOTE = ("nfs", "cifs", "smb", "fuse", "lustre", "beegfs", "gpfs", "afs", "ceph", "9p", "glusterfs", "pvfs")


def replace_file(target: str, data: bytes, *, mode: int = 0o600) -> None:
    """Replace a file atomically, so that readers see the old or the new one. An OSError says why that failed.

    A link is replaced and not followed. The new file has this mode, whatever the umask is.
    """
    directory, name = os.path.split(target)
    beside = os.path.join(directory, f"{name[:_LONGEST]}.{os.getpid()}.new")
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), mode)
        os.replace(beside, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise


def read_of_root(path: str) -> bytes:
    """A file that root alone can have written. A UserError says why it is not to be trusted."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        state = os.fstat(fd)
        if not stat.S_ISREG(state.st_mode):
            raise UserError("it is not a regular file; replace it")
        if not is_of_root(state):
            raise UserError(f"it does not belong to root; if it is genuine, run: chown root {path}")
        if state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            mode = stat.S_IMODE(state.st_mode)
            raise UserError(f"it has mode {mode:o}, so not only root may write to it; run: chmod go-w {path}")
        return file.read()


def is_of_root(state: os.stat_result) -> bool:
    """Whether it belongs to root; inside a container's user namespace, perhaps to the root outside."""
    return state.st_uid == 0 or (state.st_uid == _nobody() and not _is_on_the_machine_itself())


def _nobody() -> int:
    try:
        with open("/proc/sys/kernel/overflowuid", encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 65534


def _is_on_the_machine_itself() -> bool:
    """Whether all users of the machine have the same numbers here."""
    try:
        with open("/proc/self/uid_map", encoding="ascii") as file:
            return file.read().split() == ["0", "0", str(2**32 - 1)]
    except OSError:
        return True


# PyDLL keeps the interpreter lock: for calls that never block, releasing and reacquiring it is what costs.
_libc = ctypes.PyDLL(None, use_errno=True)
_libc.write.restype = ctypes.c_ssize_t


def write_at_once(fd: int, data: bytes) -> int:
    """`os.write` for files on which writing never blocks for long."""
    written = int(_libc.write(fd, data, ctypes.c_size_t(len(data))))
    if written < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return written


def write_file(path: str, data: bytes) -> None:
    """Write it completely or not at all, replacing what was there."""
    target = os.path.realpath(path)  # a link is followed, and stays one
    try:
        with suppress(FileNotFoundError):
            mode = os.stat(path).st_mode  # not of the target: a pipe behind /dev/stdout has no name
            if stat.S_ISDIR(mode):
                raise UserError(f"cannot write {safe(path)}: it is a directory; name a file in it")
            if not stat.S_ISREG(mode):  # a device would be replaced
                raise UserError(f"cannot write {safe(path)}: it is not a regular file")
        replace_file(target, data)
    except OSError as error:
        raise UserError(f"cannot write {safe(path)}: {error.strerror}") from None


_BEGINNING = 2000


def check_replaceable(path: str, is_own: Callable[[bytes], bool], kind: str) -> None:
    """A UserError if there is a file with other contents, by its first bytes; an empty one may be replaced."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return  # write_file refuses it
        with open(path, "rb", buffering=0) as file:
            beginning = file.read(_BEGINNING)
    except FileNotFoundError:
        return
    except OSError as error:
        raise UserError(f"{safe(path)} cannot be read and is not overwritten: {error.strerror}") from None
    if beginning and not is_own(beginning):
        raise UserError(f"{safe(path)} is not {kind} and is not overwritten; choose another file")


def is_remote(path: str) -> bool:
    """Whether a file is on a network file system, which may hang."""
    device = os.stat(path).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
            kinds = [line.partition(" - ")[2].split()[0] for line in mounts if line.split()[2] == number]
    except (OSError, IndexError):
        return False
    return any(kind.startswith(_REMOTE) for kind in kinds)


def can_load(library: str) -> bool:
    """Whether there is a shared library of this name."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def try_lock(fd: int) -> bool:
    """Take the lock unless another process has it."""
    if _libc.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB) == 0:
        return True
    error = ctypes.get_errno()
    if error in (errno.EWOULDBLOCK, errno.EINTR):
        return False
    raise OSError(error, os.strerror(error))


def lock(fd: int) -> None:
    """Take the lock, waiting as long as needed."""
    fcntl.flock(fd, fcntl.LOCK_EX)


def unlock(fd: int) -> None:
    """Give it back."""
    _libc.flock(fd, fcntl.LOCK_UN)


def write_at_start(fd: int, data: bytes) -> bool:
    """Overwrite the first bytes of a file; False if that failed."""
    return int(_libc.pwrite(fd, data, len(data), ctypes.c_int64(0))) == len(data)
