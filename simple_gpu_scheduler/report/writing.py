"""Writes a file whole or not at all, for its owner alone, in the place of what was there."""

import os
import stat
from contextlib import suppress

from simple_gpu_scheduler.errors import UserError
from simple_gpu_scheduler.wording import safe

_LONGEST = 60  # of a name of 255 bytes, so that more can stand behind it


def write_file(path: str, data: bytes) -> None:
    """Through a file beside it, so that who reads it meanwhile has the old one."""
    target = os.path.realpath(path)  # a link is followed, and stays one
    try:
        with suppress(FileNotFoundError):
            mode = os.stat(path).st_mode  # not of the target: a pipe behind /dev/stdout has no name
            if stat.S_ISDIR(mode):
                raise UserError(f"cannot write {safe(path)}: it is a directory; name a file in it")
            if not stat.S_ISREG(mode):  # a device would be replaced
                raise UserError(f"cannot write {safe(path)}: it is no plain file")
        _replace(target, data)
    except OSError as error:
        raise UserError(f"cannot write {safe(path)}: {error.strerror}") from None


def _replace(target: str, data: bytes) -> None:
    directory, name = os.path.split(target)
    beside = os.path.join(directory, f"{name[:_LONGEST]}.{os.getpid()}.new")
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
        os.rename(beside, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise
