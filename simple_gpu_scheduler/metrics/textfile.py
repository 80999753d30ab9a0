"""The metrics as a file for the textfile collector of node_exporter, which reads it at each scrape of its own."""

import os
import stat

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.stdlib import suppress
from simple_gpu_scheduler.base.text import safe
from simple_gpu_scheduler.system.files import check_replaceable, replace_file

SUFFIX = ".prom"
EVERY = 15.0  # seconds
_BEGINNING = b"# HELP sgs_"
_FOR_ALL = 0o644  # node_exporter is another user


class TextFile:
    """A file that is replaced whole each time. At the end it is removed, since what it says would no longer be true."""

    def __init__(self, path: str) -> None:
        """A UserError says why it cannot be this file."""
        if not path.endswith(SUFFIX):
            raise UserError(f"{safe(path)} does not end in {SUFFIX}, so node_exporter would ignore it; rename it")
        if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
            raise UserError(f"cannot write {safe(path)}: it is not a regular file")
        check_replaceable(path, lambda beginning: beginning.startswith(_BEGINNING), "a file of such metrics")
        self._path = os.path.abspath(path)
        self._written: os.stat_result | None = None

    def write(self, text: bytes) -> None:
        """Replace it. A UserError says why that failed."""
        try:
            replace_file(self._path, text, mode=_FOR_ALL)
            self._written = os.lstat(self._path)
        except OSError as error:
            raise UserError(f"cannot write {safe(self._path)}: {error.strerror}") from None

    def close(self) -> None:
        """Remove it, if it is still the one that was written."""
        with suppress(OSError):
            if self._written and os.path.samestat(self._written, os.lstat(self._path)):
                os.unlink(self._path)
