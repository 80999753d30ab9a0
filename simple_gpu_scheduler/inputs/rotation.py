"""The files beside another, which were rotated from it, and what each is; it only looks, and never waits.

It knows nothing of what the bytes of a file mean, nor how far one was read.
"""

import errno
import os
import stat
import zlib
from contextlib import suppress
from fcntl import F_RDLCK, F_SETLEASE, F_SETSIG, F_UNLCK, fcntl
from signal import SIGURG
from typing import NamedTuple

_CHUNK = 256 * 1024
_BACKUPS = ("~", ".bak", ".orig")
# Up to this many digits after a rotated file's name are its age, more are a date.
_DATE_DIGITS = 6


class Beside(NamedTuple):
    """A regular file in the directory of another; with `kind` and `age` a rotated one, greatest for the newest."""

    path: str
    identity: tuple[int, int]
    kind: str = ""
    age: int = 0

    @property
    def is_backup(self) -> bool:
        """Whether this is the name of an editor's backup, or of a deleted but open file on NFS."""
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
    """A descriptor of a regular file; below 0 if there is none."""
    state = state_of(path)  # first, since writers would notice the opening of a named pipe
    if not state:
        return -1
    if not stat.S_ISREG(state.st_mode):
        number = errno.EISDIR if stat.S_ISDIR(state.st_mode) else errno.EINVAL
        raise OSError(number, "it is no longer a regular file", path)
    with suppress(FileNotFoundError):
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    return -1


def beside(path: str) -> list[Beside]:
    """The regular files in the directory of a path.

    A directory lists names and inodes together. Asking for the file of each name could mix them up during a rotation.
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
    """The file that was at this path after the one with this identity, and was rotated too."""
    files = beside(path)
    for this in files:
        if this.identity == identity and this.kind:
            later = [file for file in files if file.kind == this.kind and file.age > this.age]
            return min(later, key=lambda file: file.age, default=None)
    return None


def open_after(path: str, identity: tuple[int, int]) -> tuple[int, bool]:
    """Open what was at this path after a file, and whether it is there now; below 0 if nothing is."""
    while True:
        rotated = rotated_after(path, identity)
        fd = open_plain(rotated.path if rotated else path)
        again = rotated_after(path, identity)
        is_steady = (again and again.identity) == (rotated and rotated.identity)  # no rotation came in between
        if is_steady and (fd < 0 or not rotated or identity_of(os.fstat(fd)) == rotated.identity):
            return fd, not rotated
        close(fd)


def was_edited(path: str, own: os.stat_result) -> bool:
    """Whether what is at the path now may have been written from a file that was there, and not after it."""
    names = (file for file in beside(path) if file.identity == identity_of(own))
    return own.st_nlink == 0 or any(file.is_backup for file in names)


def close(fd: int) -> None:
    """Close a descriptor, if it is one."""
    if fd >= 0:
        os.close(fd)


def _age(name: str, base: str) -> tuple[str, int]:
    digits = name[len(base) + 1 :].replace("-", "").replace(".", "")
    if not name.startswith((base + ".", base + "-")) or not digits.isdecimal():
        return "", 0
    return ("date", int(digits)) if len(digits) >= _DATE_DIGITS else ("number", -int(digits))


def may_have_writer(fd: int) -> bool:
    """Whether a process may have this file open for writing; True if the system does not say."""
    try:
        fcntl(fd, F_SETSIG, SIGURG)  # in case a process opens it right now; the default, SIGIO, would end this process
        fcntl(fd, F_SETLEASE, F_RDLCK)
    except OSError:
        return True
    fcntl(fd, F_SETLEASE, F_UNLCK)
    return False


def checksum_of(fd: int, size: int) -> int | None:
    """The checksum of the first bytes; None if there are fewer."""
    crc = at = 0
    while at < size:
        data = os.pread(fd, min(_CHUNK, size - at), at)
        if not data:
            return None
        crc, at = zlib.crc32(data, crc), at + len(data)
    return crc
