"""The last line that a job wrote to its log, as far as a terminal would still show it. It knows nothing of jobs."""

import os
import re
import stat

_TAIL = 8192
# Colours and the like: what a terminal takes as orders.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


def last_line(path: str) -> str:
    """The text, which may hold control characters; empty when there is none, or it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    with os.fdopen(fd, "rb") as file:
        state = os.fstat(fd)
        if not stat.S_ISREG(state.st_mode):
            return ""
        file.seek(max(0, state.st_size - _TAIL))
        return last_shown(file.read().decode("utf-8", "replace"))


def last_shown(text: str) -> str:
    """What stands in the last line with something in it: a progress bar writes over its line with `\\r`."""
    lines = re.split(r"[\r\n]", _ESCAPES.sub("", text))
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
