"""When a GPU that is not leased counts as free, and the message if it does not. Pure."""

from simple_gpu_scheduler.base.jobs import Key
from simple_gpu_scheduler.base.units import show_duration, show_size
from simple_gpu_scheduler.base.values import Iterable, Literal, NamedTuple

from . import USED_MEMORY, Look, Neighbour, Reason, Tolerance
from .nvml import Reading

_MOST_SHOWN = 2

# `unseen`: NVML reports a pid that does not exist here.
Whose = Literal["ours", "others", "tolerated", "unseen"]


class User(NamedTuple):
    """A compute process on a GPU, and whose it is; `is_mine` if it is this user's, but not of this run."""

    pid: int
    memory: int | None
    whose: Whose
    attempt: Key | None = None
    name: str = ""
    program: str = ""
    age: float | None = 0
    is_mine: bool = False

    @property
    def who(self) -> str:
        """The user and the program; what /proc hides is known by its pid alone."""
        return f"{self.name} {self.program}" if self.program else f"{self.name or 'another user'} (pid {self.pid})"

    def __str__(self) -> str:
        memory = "" if self.memory is None else f" {show_size(self.memory)}"
        age = "" if self.age is None else f" for {show_duration(self.age)}"
        return f"{self.who}{memory}{age}"


def judge(reading: Reading, users: Iterable[User], tolerance: Tolerance, *, shared: bool) -> Look:
    """Judge one reading. `shared`: attempts of ours are on the GPU."""
    if reading.problem:
        return Look(Reason(reading.problem, reading.problem))
    users = tuple(users)
    reason = (
        _by_process(users)
        or _by_used_memory(reading, users, tolerance, shared=shared)
        or _by_free_memory(reading, tolerance)
        or _by_utilization(reading, tolerance, shared=shared)
    )
    return Look(reason, reading.free, _held(users), _neighbours(users))


def _by_process(users: Iterable[User]) -> Reason | None:
    others = [user for user in users if user.whose == "others"]
    if not others:
        return None
    shown = [str(user) for user in others[:_MOST_SHOWN]]
    if len(others) > _MOST_SHOWN:
        shown.append(f"{len(others) - _MOST_SHOWN} more")
    cause = f"used by {sorted({user.name for user in others})}"
    return Reason(", ".join(shown), cause, by_occupancy=True, is_mine=all(user.is_mine for user in others))


def _by_used_memory(reading: Reading, users: tuple[User, ...], tolerance: Tolerance, *, shared: bool) -> Reason | None:
    known = [user for user in users if user.whose in ("ours", "tolerated")]
    is_told = all(user.memory is not None for user in known) and not any(user.whose == "unseen" for user in users)
    # The memory may be used by our own jobs, which cannot be told: it was free when the first of them came.
    if shared and not (is_told and reading.processes is not None):
        return None
    used = reading.used - sum(user.memory or 0 for user in known)
    if used <= tolerance.max_used_memory:
        return None
    by = "by processes that are not visible from here" if any(user.whose == "unseen" for user in users) else "by others"
    return Reason(f"{show_size(used)} used {by}", USED_MEMORY, by_occupancy=True)


def _by_free_memory(reading: Reading, tolerance: Tolerance) -> Reason | None:
    if reading.free >= tolerance.free_memory:
        return None
    sentence = f"{show_size(reading.free)} free, less than the required {show_size(tolerance.free_memory)}"
    return Reason(sentence, "free memory", by_occupancy=True)


def _by_utilization(reading: Reading, tolerance: Tolerance, *, shared: bool) -> Reason | None:
    most, now = tolerance.max_utilization, reading.utilization
    if most is None or now is None or now <= most or shared:
        return None
    return Reason(f"{now} % busy, more than the {most} % allowed", "utilisation", by_occupancy=True)


def _neighbours(users: Iterable[User]) -> tuple[Neighbour, ...]:
    others = [user for user in users if user.whose == "others"]
    return tuple([Neighbour(user.pid, user.name or "another user", user.who) for user in others])


def _held(users: Iterable[User]) -> dict[Key, int]:
    held: dict[Key, int] = {}
    for user in users:
        if user.attempt is not None:
            held[user.attempt] = held.get(user.attempt, 0) + (user.memory or 0)
    return held
