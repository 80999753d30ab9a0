"""A pattern over a space: what each place of a factor writes into the line, so that a line takes one `format`.

It knows what a point writes, not which points there are.
"""

from simple_gpu_scheduler.base.stdlib import re
from simple_gpu_scheduler.base.values import Callable, Collection, Mapping, Sequence
from simple_gpu_scheduler.jobfile.options import NOT_IN_NAMES

from .pattern import Pattern, Placeholder
from .points import Point
from .space import Factor, Space

_KEPT = 2**16


class Fragments(dict[int, tuple[str, ...]]):
    """What the places of one factor write; computed when needed, and cached unless there are very many."""

    def __init__(self, factor: Factor, placeholders: Sequence[Placeholder]) -> None:
        super().__init__()
        self._row = factor.row
        self._columns = [(factor.names.index(placeholder.name), placeholder.fill) for placeholder in placeholders]

    def __missing__(self, place: int) -> tuple[str, ...]:
        row = self._row(place)
        found = tuple(fill(row[column]) for column, fill in self._columns)
        if len(self) < _KEPT:
            self[place] = found
        return found


class Filling:
    """The lines of one pattern.

    Fragments are in the order of the factors from the last to the first, as a number of a point is taken apart, then of
    the draws, then of what is counted.
    """

    def __init__(self, pattern: Pattern, space: Space) -> None:
        self._space = space
        self._placeholders = pattern.placeholders
        self._order: list[int] = []
        self.tables = [(factor.size, Fragments(factor, self._take(factor.names))) for factor in space.factors[::-1]]
        self._draws = [self._take([name]) for name, _ in space.draws]
        self._counted = self._take(pattern.names - set(space.names))
        self.format: Callable[..., str] = self._template(pattern.texts).format

    def _take(self, names: Collection[str]) -> list[Placeholder]:
        """The placeholders of these parameters, which are the next in the order."""
        found = [at for at, placeholder in enumerate(self._placeholders) if placeholder.name in names]
        self._order += found
        return [self._placeholders[at] for at in found]

    def _template(self, texts: Sequence[str]) -> str:
        numbers = {at: number for number, at in enumerate(self._order)}
        plain = [text.replace("{", "{{").replace("}", "}}") for text in texts]
        return plain[0] + "".join(f"{{{numbers[at]}}}{text}" for at, text in enumerate(plain[1:]))

    @property
    def counted(self) -> set[str]:
        """The placeholders that are not parameters: i, n and seed."""
        return {placeholder.name for placeholder in self._counted}

    def check(self) -> None:
        """Check now that values fit; of computed or drawn values, checking one is enough."""
        for factor, (size, table) in zip(self._space.factors[::-1], self.tables, strict=True):
            for place in range(size if factor.is_listed else 1):
                table[place]
        for (_, draw), placeholders in zip(self._space.draws, self._draws, strict=True):
            for placeholder in placeholders:
                placeholder.fill(draw(0.5))
        for placeholder in self._counted:
            placeholder.fill("1")

    def fragments(self, point: Point, missing: Collection[str] = ()) -> list[str]:
        """What the parameters write; missing ones write nothing."""
        found: list[str] = []
        for (_, table), place in zip(self.tables, reversed(point.places), strict=True):
            found += table[place]
        for placeholders, value in zip(self._draws, point.drawn, strict=True):
            found += [placeholder.fill(value) for placeholder in placeholders]
        if missing:
            at = zip(self._order, found, strict=False)
            found = ["" if self._placeholders[which].name in missing else fragment for which, fragment in at]
        return found

    def line(self, fragments: Sequence[str], counted: Mapping[str, str]) -> str:
        """The whole line."""
        return self.format(*fragments, *(one.fill(counted[one.name]) for one in self._counted))


_NOT_IN_NAMES = re.compile(f"[{NOT_IN_NAMES}]")


class Names:
    """The names given so far."""

    def __init__(self) -> None:
        self._given: set[str] = set()
        self._next: dict[str, int] = {}

    def give(self, wish: str) -> str:
        """This name, or if it was given before, the name with a number: `0.1-32-2`."""
        wish = "".join(char if char.isprintable() else "_" for char in _NOT_IN_NAMES.sub("_", wish)) or "_"
        name = wish
        while name in self._given:
            self._next[wish] = self._next.get(wish, 1) + 1
            name = f"{wish}-{self._next[wish]}"
        self._given.add(name)
        return name
