"""Writing a file whole or not at all, for its owner alone. It does not know what is in it."""

import os
from contextlib import suppress

_LONGEST = 60  # of a name of 255 bytes, so that more can stand behind it


def replace_file(target: str, data: bytes) -> None:
    """Through a file beside it, so that who reads it meanwhile has the old one. An OSError says why not.

    A link is replaced and not followed.
    """
    directory, name = os.path.split(target)
    beside = os.path.join(directory, f"{name[:_LONGEST]}.{os.getpid()}.new")
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
        os.replace(beside, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise
