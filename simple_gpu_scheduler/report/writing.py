"""Where a report may be written, and a sentence for where it may not."""

import os
import stat
from contextlib import suppress

from simple_gpu_scheduler.errors import UserError
from simple_gpu_scheduler.whole_files import replace_file
from simple_gpu_scheduler.wording import safe


def write_file(path: str, data: bytes) -> None:
    """Write it whole or not at all, in the place of what was there."""
    target = os.path.realpath(path)  # a link is followed, and stays one
    try:
        with suppress(FileNotFoundError):
            mode = os.stat(path).st_mode  # not of the target: a pipe behind /dev/stdout has no name
            if stat.S_ISDIR(mode):
                raise UserError(f"cannot write {safe(path)}: it is a directory; name a file in it")
            if not stat.S_ISREG(mode):  # a device would be replaced
                raise UserError(f"cannot write {safe(path)}: it is no plain file")
        replace_file(target, data)
    except OSError as error:
        raise UserError(f"cannot write {safe(path)}: {error.strerror}") from None
