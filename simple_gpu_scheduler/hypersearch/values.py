"""What a parameter may be: some values, listed or computed, or a draw. Knows nothing of how people write them."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

Draw = Callable[[float], str]  # from a random number above 0 and below 1 to a value

MOST = 10**18  # nothing has more values, so that Python can count them
LISTED = 100_000  # so many computed values are listed where they stand among others


class Computed(Sequence[str]):
    """Values that are computed from their places as they are asked for, so that a long range costs no memory."""

    def __init__(self, size: int, at: Callable[[int], str]) -> None:
        self._size = size
        self._at = at

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, place: Any) -> Any:
        """The value at a place from 0 up."""
        if not 0 <= place < self._size:
            raise IndexError(place)
        return self._at(place)


class Values(NamedTuple):
    """The values of one parameter: one of the choices, or what is drawn. Texts, since commands are made of them."""

    choices: Sequence[str] = ()
    draw: Draw | None = None
    needs_samples: bool = False  # it must be said how many commands there shall be
