"""To wait for a condition."""

import time
from collections.abc import Callable


def until(condition: Callable[[], object], what: str = "", seconds: float = 120) -> None:
    """Wait for a condition; fail when it does not come true, even on a machine that is very busy."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"it did not come true: {what or condition}"
        time.sleep(0.01)
