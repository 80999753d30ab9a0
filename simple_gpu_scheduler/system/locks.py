"""flock, with and without waiting. It knows only descriptors.

A lock belongs to the open file, which child processes share: one unlock releases it for all of them, and the kernel
releases it when the last of them is gone.
"""

import ctypes
import errno
import fcntl
import os

# PyDLL keeps the interpreter lock: for calls that never block, releasing and reacquiring it is what costs.
_libc = ctypes.PyDLL(None, use_errno=True)


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


def write_at_begin(fd: int, data: bytes) -> bool:
    """Overwrite the first bytes of a file; False if that failed."""
    return int(_libc.pwrite(fd, data, len(data), ctypes.c_int64(0))) == len(data)
