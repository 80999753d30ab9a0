"""The metrics as a file for the textfile collector of node_exporter, which reads it at each scrape of its own."""

import errno
import fcntl
import os
import stat
import zlib

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.stdlib import suppress
from simple_gpu_scheduler.base.text import safe
from simple_gpu_scheduler.journal.files import is_locked, region
from simple_gpu_scheduler.system.files import check_replaceable, replace_file

SUFFIX = ".prom"
EVERY = 15.0  # seconds
_BEGINNING = b"# HELP sgs_"
_FOR_ALL = 0o644  # node_exporter is another user


class TextFile:
    """A file that is replaced whole each time. At the end it is removed, since what it says would no longer be true.

    While others write the same file, it stays: theirs would be missing until they write it again.
    """

    def __init__(self, path: str) -> None:
        """A UserError says why it cannot be this file."""
        if not path.endswith(SUFFIX):
            raise UserError(f"{safe(path)} does not end in {SUFFIX}, so node_exporter would ignore it; rename it")
        if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
            raise UserError(f"cannot write {safe(path)}: it is not a regular file")
        check_replaceable(path, lambda beginning: beginning.startswith(_BEGINNING), "a file of such metrics")
        self._path = os.path.abspath(path)
        self._written: os.stat_result | None = None
        self._writers = _Writers(self._path)

    def write(self, text: bytes) -> None:
        """Replace it. A UserError says why that failed."""
        try:
            self._writers.join()
            replace_file(self._path, text, mode=_FOR_ALL)
            self._written = os.lstat(self._path)
        except OSError as error:
            raise UserError(f"cannot write {safe(self._path)}: {error.strerror}{_advice(error)}") from None

    def close(self) -> None:
        """Remove it, if nobody else writes it, and it is one that this program wrote."""
        with suppress(OSError):
            if self._written and not self._writers.leave() and self._is_ours(os.lstat(self._path)):
                os.unlink(self._path)

    def _is_ours(self, there: os.stat_result) -> bool:
        """Whether this program wrote it as this user; perhaps another process did, and left it to us."""
        if not stat.S_ISREG(there.st_mode) or there.st_uid != os.getuid():
            return False
        with open(self._path, "rb", buffering=0) as file:
            return file.read(len(_BEGINNING)) == _BEGINNING


def _advice(error: OSError) -> str:
    return "; create the directory first" if error.errno == errno.ENOENT else ""


class _Writers:
    """Who writes a file: each has a lock on the same byte of its directory, since the file itself is replaced."""

    def __init__(self, path: str) -> None:
        directory, name = os.path.split(path)
        self._directory = directory
        self._byte = zlib.crc32(os.fsencode(name))
        self._fd = -1

    def join(self) -> None:
        """Be one of them, from now on."""
        if self._fd < 0:
            with suppress(OSError):  # a directory that may not be read; then nobody knows of us
                self._fd = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, region(fcntl.F_RDLCK, self._byte))

    def leave(self) -> bool:
        """Be none of them; whether others still are. Of several that leave at once, the last finds nobody."""
        if self._fd < 0:
            return False
        try:
            with suppress(OSError):  # a file system without locks
                fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, region(fcntl.F_UNLCK, self._byte))
            return is_locked(self._fd, self._byte)
        finally:
            os.close(self._fd)
            self._fd = -1
