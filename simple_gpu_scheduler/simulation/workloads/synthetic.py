"""A generated workload: `jobs=1000 load=0.9 time=10-1000 gpus=1*8,2*2,4 users=5` -> jobs.

It does not know how they are simulated. Pure: the same seed gives the same jobs.
"""

import re
from collections.abc import Callable, Mapping
from math import log
from random import Random

from simple_gpu_scheduler.base.units import parse_duration
from simple_gpu_scheduler.base.values import NamedTuple
from simple_gpu_scheduler.scheduling.estimates import MOST_SECONDS

from .cells import shown
from .jobs import WorkloadJob

_COUNT = re.compile(r"\d{1,9}", re.ASCII)
_LOAD = re.compile(r"\d{1,3}(?:\.\d{1,9})?", re.ASCII)
_WIDTH = re.compile(r"(\d{1,6})(?:\*(\d{1,6}))?", re.ASCII)
_MOST_JOBS = 10_000_000


class Synthetic(NamedTuple):
    """The distribution. Without a gap, `load` sets it: the share of the GPUs' capacity that the jobs need."""

    jobs: int = 1000
    gap: float | None = None  # the mean of the time between two jobs, which is exponential
    load: float = 0.9
    time: tuple[float, float] = (10.0, 1000.0)  # its logarithm is uniform
    gpus: tuple[tuple[int, int], ...] = ((1, 1),)  # widths and their weights
    users: int = 0


def parse_synthetic(text: str) -> Synthetic:
    """Parse the words; a ValueError names the wrong one."""
    values: dict[str, object] = {}
    for word in text.split():
        key, _, value = word.partition("=")
        if key not in _KEYS:
            raise ValueError(f"{shown(word)} is unknown; the keys are {', '.join(f'{each}=' for each in _KEYS)}")
        if key in values:
            raise ValueError(f"'{key}' is given twice")
        try:
            values[key] = _KEYS[key](value)
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from None
    if "gap" in values and "load" in values:
        raise ValueError("gap= and load= exclude each other; leave one of them out")
    return Synthetic(**values)  # type: ignore[arg-type] # each key has its own parser


def generate(synthetic: Synthetic, gpus: int, seed: int) -> list[WorkloadJob]:
    """Generate the jobs, the first at 0. Arrivals and lengths do not depend on users and widths."""
    draw = Random(seed)  # noqa: S311 - a simulation keeps no secret
    low, high = synthetic.time
    gap = _gap_for(synthetic, gpus) if synthetic.gap is None else synthetic.gap
    came = 0.0
    jobs = []
    for _ in range(synthetic.jobs):
        jobs.append((came, low * (high / low) ** draw.random()))
        came -= gap * log(1 - draw.random())
    widths = draw.choices(*zip(*synthetic.gpus, strict=True), k=synthetic.jobs)
    users = [""] * synthetic.jobs
    if synthetic.users:
        users = [f"u{draw.randint(1, synthetic.users)}" for _ in jobs]
    return [
        WorkloadJob(submit, length, width, user, length)
        for (submit, length), width, user in zip(jobs, widths, users, strict=True)
    ]


def _gap_for(synthetic: Synthetic, gpus: int) -> float:
    """Jobs that are too wide to run do not count as load."""
    low, high = synthetic.time
    mean_length = (high - low) / log(high / low) if high > low else low
    weights = sum(weight for _, weight in synthetic.gpus)
    mean_width = sum(width * weight for width, weight in synthetic.gpus if width <= gpus) / weights
    return mean_length * mean_width / (synthetic.load * gpus)


def _jobs(text: str) -> int:
    if not _COUNT.fullmatch(text) or not 1 <= int(text) <= _MOST_JOBS:
        raise ValueError(f"{shown(text)} is not a whole number from 1 to {_MOST_JOBS:,}")
    return int(text)


def _users(text: str) -> int:
    if not _COUNT.fullmatch(text):
        raise ValueError(f"{shown(text)} is not a whole number (0 or more)")
    return int(text)


def _seconds(text: str) -> float:
    value = parse_duration(text)
    if value >= MOST_SECONDS:
        raise ValueError(f"{shown(text)} is too long")
    return value


def _load(text: str) -> float:
    if not _LOAD.fullmatch(text) or not float(text):
        raise ValueError(f"{shown(text)} is not a number above 0; 1 keeps the GPUs exactly busy")
    return float(text)


def _lengths(text: str) -> tuple[float, float]:
    low, dash, high = text.partition("-")
    if not dash:
        raise ValueError(f"{shown(text)} is not LOW-HIGH; write 10-1000 or 1m-2h")
    shortest, longest = _seconds(low), _seconds(high)
    if not 0 < shortest <= longest:
        raise ValueError(f"{shown(text)} is not an ascending range above 0; write 10-1000 or 1m-2h")
    return shortest, longest


def _widths(text: str) -> tuple[tuple[int, int], ...]:
    found = []
    for part in text.split(","):
        match = _WIDTH.fullmatch(part)
        if not match or not int(match[1]) or not int(match[2] or 1):
            raise ValueError(f"{shown(part)} is not a number of GPUs; write 1,2,4, or 1*8,2*2,4 for how often each")
        found.append((int(match[1]), int(match[2] or 1)))
    return tuple(found)


_KEYS: Mapping[str, Callable[[str], object]] = {
    "jobs": _jobs,
    "gap": _seconds,
    "load": _load,
    "time": _lengths,
    "gpus": _widths,
    "users": _users,
}
