"""When enough jobs have failed to give up: `never`, `soon,fail=3`, `now,fail=10%`, as GNU parallel writes it.

Pure: it gets counts, and knows nothing of jobs or of how a run is stopped.
"""

from simple_gpu_scheduler.base.stdlib import math, re
from simple_gpu_scheduler.base.values import NamedTuple

# While the input is open the total is unknown: a percentage of what was read must come to at least this many.
_FEWEST_OF_OPEN_INPUT = 3


class Halt(NamedTuple):
    """After this many `failures`, or with `percent` this share of the jobs; `now` also ends running jobs."""

    now: bool
    failures: int
    percent: bool = False

    def is_reached(self, failed: int, jobs: int, *, all_read: bool) -> bool:
        """Whether `failed` of the `jobs` read so far are enough."""
        if not self.percent:
            return failed >= self.failures
        needed = max(1, math.ceil(jobs * self.failures / 100))
        return failed >= (needed if all_read else max(needed, _FEWEST_OF_OPEN_INPUT))


def parse_halt(text: str) -> Halt | None:
    """The rule in `never`, `soon,fail=N`, `now,fail=N` or with `N%`; a ValueError says how to write one."""
    if text == "never":
        return None
    match = re.fullmatch(r"(soon|now),fail=(\d{1,9})(%?)", text, re.ASCII)
    if not match or int(match[2]) == 0 or (match[3] and int(match[2]) > 100):  # noqa: PLR2004 - per cent
        raise ValueError(f"'{text}' is not a halt condition; write never, soon,fail=3 or now,fail=10%")
    return Halt(match[1] == "now", int(match[2]), bool(match[3]))
