"""What the loop itself must know of the command line: values, and nothing of how they were typed."""

from typing import NamedTuple

from .halting import Halt


class RunRules(NamedTuple):
    """Of one run."""

    timeout: float | None = None
    grace: float = 10.0
    halt: Halt | None = None
    reads_all: bool = False
    quarantine: int = 0
    run_id: bytes = b""
