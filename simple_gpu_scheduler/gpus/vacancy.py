"""Since when others have left a GPU alone. Pure.

A GPU that is idle between two processes of somebody's loop is not free. So once others were seen on it, they must have
left it alone for a while. It knows only what was seen: a GPU that was free at the first look is used at once.
"""

from simple_gpu_scheduler.base.units import show_duration
from simple_gpu_scheduler.base.values import NamedTuple

from . import USED_MEMORY, Look, Reason

# The driver needs a while to free the memory of a process that has ended, which may have been a job of ours.
_SURELY_USED = 2.0
# The cause of a `Reason`: others have left it, but not for long enough.
AT_REST = "free for"


class Vacancy(NamedTuple):
    """Who used a GPU last, and when it was first seen without them; neither if nobody was seen, or long ago.

    `filled` is when memory that belongs to nobody visible was first seen in use, while it is.
    """

    after: str = ""
    since: float | None = None
    filled: float | None = None


NOBODY = Vacancy()


def observe(before: Vacancy, look: Look, now: float, free_for: float) -> tuple[Vacancy, Look]:
    """What a look shows of others, and the look with a reason if they may be back in a moment."""
    who = ", ".join(sorted({neighbour.who for neighbour in look.others}))
    if who:
        return Vacancy(who), look
    if look.reason:
        return _unnamed(before, look.reason, now), look
    if not before.after or now - (since := now if before.since is None else before.since) >= free_for:
        return NOBODY, look
    # Without the time so far: nobody would refresh it, and a number that stands still looks like a program that hangs.
    sentence = f"free for less than {show_duration(free_for)} after {before.after}"
    return Vacancy(before.after, since), look._replace(reason=Reason(sentence, AT_REST, by_occupancy=True))


def _unnamed(before: Vacancy, reason: Reason, now: float) -> Vacancy:
    """A reason that names nobody says little about others, unless memory is in use for some time."""
    if reason.cause != USED_MEMORY:
        return before._replace(filled=None)
    filled = now if before.filled is None else before.filled
    if now - filled < _SURELY_USED:
        return before._replace(filled=filled)
    return Vacancy("use by others", filled=filled)
