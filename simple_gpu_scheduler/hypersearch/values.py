"""The values of a parameter: listed, computed, or drawn; and numbers, read exactly as written."""

from simple_gpu_scheduler.base.stdlib import re
from simple_gpu_scheduler.base.values import Any, Callable, Iterable, NamedTuple, Sequence

from .sweep import shown

_NUMBER = re.compile(r"([+-]?)(?=\.?\d)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,3}))?", re.ASCII)
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)

_FAR = 300

NUMBER, TEXT, EITHER = "a number", "text", "a number or text"


def _power_of_ten(exponent: int) -> int:
    return int("1" + "0" * exponent)


class Fixed(NamedTuple):
    """`units` of 10^-`decimals`: 0.10 is 10 units with 2 decimals."""

    units: int
    decimals: int

    def scaled(self, decimals: int) -> int:
        """In units with at least as many decimals."""
        return self.units * _power_of_ten(decimals - self.decimals)

    def is_common(self) -> bool:
        """Whether it is within the range of floating-point numbers."""
        return -_FAR < len(str(abs(self.units))) - self.decimals < _FAR

    def as_float(self) -> float:
        """The nearest floating-point number."""
        return self.units / _power_of_ten(self.decimals)


def is_number(text: str) -> bool:
    """Whether a text is a decimal number; `nan`, `inf` and `0x10` are not."""
    return len(text) < _FAR and bool(_NUMBER.fullmatch(text))


def is_whole(text: str) -> bool:
    """Whether a text is a number without point or exponent."""
    return len(text) < _FAR and bool(_WHOLE.fullmatch(text))


def kind_of(values: Iterable[str]) -> str:
    """The kind of all of them."""
    kinds = {is_number(value) for value in values}
    return EITHER if len(kinds) > 1 else NUMBER if True in kinds else TEXT


def parse_fixed(text: str) -> Fixed:
    """A decimal number, exactly; a ValueError says that it is not one."""
    match = _NUMBER.fullmatch(text) if is_number(text) else None
    if not match:
        raise ValueError(f"{shown(text)} is not a number")
    sign, before, after, exponent = match[1], match[2], match[3] or "", int(match[4] or 0)
    units = int(f"{sign}{before}{after}")
    decimals = len(after) - exponent
    return Fixed(units, decimals) if decimals >= 0 else Fixed(units * 10**-decimals, 0)


def show_fixed(units: int, decimals: int) -> str:
    """The number with exactly this many decimals: `0.10`."""
    if not decimals:
        return str(units)
    before, after = divmod(abs(units), 10**decimals)
    return f"{'-' if units < 0 else ''}{before}.{after:0{decimals}d}"


Draw = Callable[[float], str]  # from a random number above 0 and below 1 to a value

MOST = 10**18  # the most values, so that Python can count them
LISTED = 100_000  # up to this many computed values are listed when mixed with others


class Computed(Sequence[str]):
    """Values computed on demand from their places, so that a long range takes no memory."""

    def __init__(self, size: int, at: Callable[[int], str]) -> None:
        self._size = size
        self._at = at

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, place: Any) -> Any:
        """The value at a place, counted from 0."""
        if not 0 <= place < self._size:
            raise IndexError(place)
        return self._at(place)


class Values(NamedTuple):
    """The values of one parameter: choices or a draw. Strings, since commands are made of them."""

    choices: Sequence[str] = ()
    draw: Draw | None = None
    needs_samples: bool = False  # the number of commands must be given
