"""flock, with and without waiting. It knows descriptors only.

A lock belongs to the open file, which forked and started processes share: one unlock ends it for all of them, and the
kernel ends it when the last of them is gone.
"""

import ctypes
import errno
import fcntl
import os

# PyDLL keeps the interpreter lock: for calls that never wait, giving it up and getting it back is what costs.
_libc = ctypes.PyDLL(None, use_errno=True)


def try_lock(fd: int) -> bool:
    """Take the lock unless another has it."""
    if _libc.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB) == 0:
        return True
    error = ctypes.get_errno()
    if error in (errno.EWOULDBLOCK, errno.EINTR):
        return False
    raise OSError(error, os.strerror(error))


def lock(fd: int) -> None:
    """Take the lock, and wait for it as long as that takes."""
    fcntl.flock(fd, fcntl.LOCK_EX)


def unlock(fd: int) -> None:
    """Give it back."""
    _libc.flock(fd, fcntl.LOCK_UN)


def write_at_begin(fd: int, data: bytes) -> bool:
    """Write over the first bytes of a file; False when that failed."""
    return int(_libc.pwrite(fd, data, len(data), ctypes.c_int64(0))) == len(data)
