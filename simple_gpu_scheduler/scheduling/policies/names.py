"""A policy as people name it: `fifo`, `aged`, `aged:0.5` with its knob, `learned:FILE`."""

import math
from collections.abc import Callable
from typing import NamedTuple

from simple_gpu_scheduler.base.jobs import Job

from . import POLICIES, Policy, aged

LEARNED = "learned"
SHARING = ("fair", "round-robin")


class Chosen(NamedTuple):
    """As it was named, and how to make it, anew for each run."""

    name: str
    make: Callable[[], Policy]


class OrderOptions(NamedTuple):
    """The section "Order" of --help; `label` tells jobs apart where GPUs are shared, `delay` is between two starts."""

    policy: Chosen
    label: Callable[[Job], str]
    delay: float = 0.0


def names() -> str:
    """All of them, as they may be written."""
    return ", ".join([*POLICIES, f"{LEARNED}:FILE"])


def parse_policy(text: str, read: Callable[[str], str]) -> Chosen:
    """The one that is meant; a ValueError says what is wrong. `read` gives the text of a file, or an OSError."""
    name, colon, knob = text.partition(":")
    if name == LEARNED:
        return Chosen(text, _learned(knob, read))
    if name not in POLICIES:
        raise ValueError(f"there is no policy '{text}'; there are {names()}")
    if not colon:
        return Chosen(text, POLICIES[name])
    if name != "aged":
        raise ValueError(f"'{text}': only aged has a number behind it, as in aged:0.5")
    ageing = parse_ageing(knob)
    return Chosen(text, lambda: aged(ageing))


def parse_ageing(text: str) -> float:
    """For how many times its own length a job is passed over by shorter ones."""
    try:
        ageing = float(text)
    except ValueError:
        ageing = -1.0
    if not (math.isfinite(ageing) and ageing >= 0):
        raise ValueError(f"'{text}' is not a number from 0 up; 1 is usual, with 0 lengths count for nothing")
    return ageing


def _learned(path: str, read: Callable[[str], str]) -> Callable[[], Policy]:
    if not path:
        raise ValueError("learned needs the file with what was learned, as in learned:weights.json")
    from .learned import Learned, parse_weights  # noqa: PLC0415 - with json 3 ms

    try:
        weights = parse_weights(read(path))
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return lambda: Learned(weights)
