"""Parses the numbers in traces, with an error sentence for each kind. It knows no trace format. Pure."""

import re
from contextlib import suppress

from simple_gpu_scheduler.base.units import parse_duration
from simple_gpu_scheduler.scheduling.estimates import MOST_SECONDS

_MOST = 10**9
_LONGEST_SHOWN = 40
_CLOCK = re.compile(r"(?:(\d{1,5})-)?(?:(\d{1,6}):)?(\d{1,2}):(\d{1,2}(?:\.\d{1,9})?)", re.ASCII)


def seconds(name: str, text: str, least: float = 0.0) -> float:
    """A time; a ValueError says what is expected."""
    try:
        value = float(text)
    except ValueError:
        value = MOST_SECONDS
    if not least <= value < MOST_SECONDS:  # NaN neither
        raise ValueError(f"{name} is {shown(text)}; expected a number of seconds{' (0 or more)' * (least == 0)}")
    return value


def length(name: str, text: str) -> float:
    """A length: seconds, `1h30m`, or `1-02:03:04` as Slurm writes it; a ValueError as above."""
    if clock := _CLOCK.fullmatch(text.strip()):
        days, hours, minutes, rest = (float(part or 0) for part in clock.groups())
        return seconds(name, str(86400 * days + 3600 * hours + 60 * minutes + rest))
    with suppress(ValueError):
        return seconds(name, str(parse_duration(text.strip())))
    return seconds(name, text)


def whole(name: str, text: str, least: int = 0) -> int:
    """A whole number, also written as 4.0; a ValueError says what is expected."""
    try:
        value = float(text)
    except ValueError:
        value = _MOST
    if not least <= value < _MOST or value != int(value):
        raise ValueError(f"{name} is {shown(text)}; expected a whole number{' (0 or more)' * (least == 0)}")
    return int(value)


def shown(text: str) -> str:
    """The text found, quoted, safe to print and not too long."""
    return repr(text[:_LONGEST_SHOWN]) + "…" * (len(text) > _LONGEST_SHOWN)
