"""Distributions: from a random number above 0 and below 1 to a value.

Values are rounded to what five or six digits can tell apart: nobody wants to read more, and the last bits of a
logarithm differ from one C library to another.
"""

from math import exp, log, log10

from .numbers import Fixed, parse_fixed, show_fixed
from .values import Draw

_PARTS = 10**5  # so many values, or more, can be told apart
_DIGITS = 6


def uniform(low: Fixed, high: Fixed) -> Draw:
    """Each number between the two as likely as any other."""
    _check_order(low, high)
    decimals = max(low.decimals, high.decimals, 1)
    while high.scaled(decimals) - low.scaled(decimals) < _PARTS:
        decimals += 1
    start, parts = low.scaled(decimals), high.scaled(decimals) - low.scaled(decimals)
    return lambda number: _bare(show_fixed(start + int(number * (parts + 1)), decimals))


def loguniform(low: Fixed, high: Fixed) -> Draw:
    """Each order of magnitude as likely as any other."""
    _check_order(low, high)
    if low.units <= 0:
        raise ValueError("both ends must be above 0")
    first, last = low.as_float(), high.as_float()
    digits = min(17, _DIGITS + max(0, -int(log10(max(last / first - 1, 1e-17)))))
    start, width = log(first), log(last) - log(first)
    return lambda number: repr(min(max(float(f"{exp(start + width * number):.{digits}g}"), first), last))


def normal(mean: Fixed, deviation: Fixed) -> Draw:
    """The bell curve."""
    from statistics import NormalDist  # noqa: PLC0415 - few need it

    if deviation.units <= 0:
        raise ValueError("the second number, the standard deviation, must be above 0")
    decimals = max(1, _DIGITS - 1 - int(log10(deviation.as_float())))
    distribution = NormalDist(mean.as_float(), deviation.as_float())
    return lambda number: _bare(show_fixed(*_rounded(distribution.inv_cdf(number), decimals)))


def _rounded(value: float, decimals: int) -> Fixed:
    found = parse_fixed(f"{value:.{decimals}f}")
    return found if found.units else Fixed(0, found.decimals)


def _bare(text: str) -> str:
    """Without zeros at the end, but with a decimal left: it is no whole number."""
    bare = text.rstrip("0")
    return f"{bare}0" if bare.endswith(".") else bare


def _check_order(low: Fixed, high: Fixed) -> None:
    scale = max(low.decimals, high.decimals)
    if low.scaled(scale) >= high.scaled(scale):
        raise ValueError("the second number must be above the first")
