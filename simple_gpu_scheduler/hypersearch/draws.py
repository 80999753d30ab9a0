"""Distributions: from a random number above 0 and below 1 to a value.

Values are rounded to five or six significant digits: more is hard to read, and the last bits of a logarithm differ
between C libraries.
"""

from math import exp, floor, log, log10

from .values import Draw, Fixed, parse_fixed, show_fixed

_PARTS = 10**5  # so many values, or more, can be told apart
_DIGITS = 6
_SMALLEST = 1e-17


def uniform(low: Fixed, high: Fixed) -> Draw:
    """Each number between the two as likely as any other."""
    _check_order(low, high)
    decimals = max(low.decimals, high.decimals, 1)
    while high.scaled(decimals) - low.scaled(decimals) < _PARTS:
        decimals += 1
    start, parts = low.scaled(decimals), high.scaled(decimals) - low.scaled(decimals)
    return lambda number: _bare(show_fixed(start + (int(number * 2**53) * (parts + 1) >> 53), decimals))


def loguniform(low: Fixed, high: Fixed) -> Draw:
    """Each order of magnitude as likely as any other."""
    _check_order(low, high)
    if low.units <= 0:
        raise ValueError("both ends must be above 0")
    first, last = low.as_float(), high.as_float()
    start, width = log(first), log(last) - log(first)
    digits = min(17, _DIGITS + max(0, -floor(log10(max(width, _SMALLEST)))))
    return lambda number: repr(min(max(float(f"{exp(start + width * number):.{digits}g}"), first), last))


def normal(mean: Fixed, deviation: Fixed) -> Draw:
    """The bell curve."""
    from statistics import NormalDist  # noqa: PLC0415 - few need it

    if deviation.units <= 0:
        raise ValueError("the second number, the standard deviation, must be above 0")
    decimals = max(1, mean.decimals, _DIGITS - 1 - floor(log10(deviation.as_float())))
    bell, middle = NormalDist(0, deviation.as_float()), mean.scaled(decimals)

    def draw(number: float) -> str:
        return _bare(show_fixed(middle + parse_fixed(f"{bell.inv_cdf(number):.{decimals}f}").units, decimals))

    return draw


def _bare(text: str) -> str:
    """Without trailing zeros, but with one decimal left: it is not a whole number."""
    bare = text.rstrip("0")
    return f"{bare}0" if bare.endswith(".") else bare


def _check_order(low: Fixed, high: Fixed) -> None:
    scale = max(low.decimals, high.decimals)
    if low.scaled(scale) >= high.scaled(scale):
        raise ValueError("the second number must be above the first")
