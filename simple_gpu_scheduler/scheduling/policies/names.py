"""A policy as people name it: `fifo`, `aged`, `aged:0.5` with its knob, `learned:FILE`."""

from simple_gpu_scheduler.base.jobs import Job
from simple_gpu_scheduler.base.stdlib import math
from simple_gpu_scheduler.base.values import Callable, NamedTuple

from . import POLICIES, Policy, aged

LEARNED = "learned"
SHARING = ("fair", "round-robin")


class Chosen(NamedTuple):
    """The name as typed, and how to make a new policy for each run."""

    name: str
    make: Callable[[], Policy]


class OrderOptions(NamedTuple):
    """The section "Order" of --help; `label` tells jobs apart where GPUs are shared, `delay` is between two starts."""

    policy: Chosen
    label: Callable[[Job], str]
    delay: float = 0.0


def names() -> str:
    """All of them, as they can be typed."""
    return ", ".join([*POLICIES, f"{LEARNED}:FILE"])


def parse_policy(text: str, read: Callable[[str], str]) -> Chosen:
    """Parse a policy; a ValueError says what is wrong. `read` returns the text of a file or raises OSError."""
    name, colon, knob = text.partition(":")
    if name == LEARNED:
        return Chosen(text, _learned(knob, read))
    if name not in POLICIES:
        raise ValueError(f"unknown policy '{text}'; the policies are {names()}")
    if not colon:
        return Chosen(text, POLICIES[name])
    if name != "aged":
        raise ValueError(f"'{text}': only aged takes a number, as in aged:0.5")
    ageing = parse_ageing(knob)
    return Chosen(text, lambda: aged(ageing))


def parse_ageing(text: str) -> float:
    """How many times its own length shorter jobs may pass a job."""
    try:
        ageing = float(text)
    except ValueError:
        ageing = -1.0
    if not (math.isfinite(ageing) and ageing >= 0):
        raise ValueError(f"'{text}' is not a number of 0 or more; 1 is usual, 0 ignores lengths")
    return ageing


def _learned(path: str, read: Callable[[str], str]) -> Callable[[], Policy]:
    if not path:
        raise ValueError("learned needs a weights file, as in learned:weights.json")
    from .learned import Learned, parse_weights  # noqa: PLC0415 - most runs need neither it nor json

    try:
        weights = parse_weights(read(path))
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return lambda: Learned(weights)
