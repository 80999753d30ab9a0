"""What a parameter may be: some values, listed or computed, or a draw. Knows nothing of how people write them."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, overload

Draw = Callable[[float], str]  # from a random number above 0 and below 1 to a value


class Computed(Sequence[str]):
    """Values that are computed from their places as they are asked for, so that a long range costs no memory."""

    def __init__(self, size: int, at: Callable[[int], str]) -> None:
        self._size = size
        self._at = at

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...
    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        """The value at a place from 0 up."""
        if isinstance(place, slice):
            return Computed(len(range(self._size)[place]), lambda k: self._at(range(self._size)[place][k]))
        if not 0 <= place < self._size:
            raise IndexError(place)
        return self._at(place)


class Values(NamedTuple):
    """The values of one parameter: one of the choices, or what is drawn. Texts, since commands are made of them."""

    choices: Sequence[str] = ()
    draw: Draw | None = None
    is_random: bool = False  # it must be said how many samples there shall be

    def example(self) -> str:
        """One of them; all that are computed or drawn are of the same kind."""
        return self.draw(0.5) if self.draw else self.choices[0]
