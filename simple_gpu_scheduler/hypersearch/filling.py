"""A pattern over a space: what each place of a factor writes into the line, so that a line is one `format` away.

It knows what a point writes, not which points there are.
"""

from collections.abc import Callable, Mapping, Sequence

from .pattern import Pattern, Placeholder
from .points import Point
from .space import Factor, Space

_KEPT = 2**16


class Fragments(dict[int, tuple[str, ...]]):
    """What the places of one factor write; computed when first asked for, and kept unless there are very many."""

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
        def of(names: Sequence[str]) -> list[Placeholder]:
            return [placeholder for placeholder in pattern.placeholders if placeholder.name in names]

        factors = space.factors[::-1]
        self.tables = [(factor.size, Fragments(factor, of(factor.names))) for factor in factors]
        self._draws = [of([name]) for name, _ in space.draws]
        varying = [name for factor in factors for name in factor.names] + [name for name, _ in space.draws]
        self._counted = [placeholder for placeholder in pattern.placeholders if placeholder.name not in varying]
        order = [placeholder for factor in factors for placeholder in of(factor.names)]
        order += [placeholder for of_draw in self._draws for placeholder in of_draw] + self._counted
        self._at = {name: [at for at, one in enumerate(order) if one.name == name] for name in varying}
        self._space = space
        self.counted = {placeholder.name for placeholder in self._counted}  # what is not a parameter: {i}, {n}, {seed}
        self.format: Callable[..., str] = _template(pattern, order).format

    def fragments(self, point: Point, missing: Sequence[str] = ()) -> list[str]:
        """What the parameters write; those that are missing write nothing."""
        found: list[str] = []
        for (_, table), place in zip(self.tables, reversed(point.places), strict=True):
            found += table[place]
        for placeholders, value in zip(self._draws, point.drawn, strict=True):
            found += [placeholder.fill(value) for placeholder in placeholders]
        for name in missing:
            for at in self._at[name]:
                found[at] = ""
        return found

    def check(self) -> None:
        """Meet now what a value cannot be; of those that are computed or drawn one stands for all."""
        for factor, (size, table) in zip(self._space.factors[::-1], self.tables, strict=True):
            for place in range(size if factor.is_listed else 1):
                table[place]
        for (_, draw), placeholders in zip(self._space.draws, self._draws, strict=True):
            for placeholder in placeholders:
                placeholder.fill(draw(0.5))
        for placeholder in self._counted:
            placeholder.fill("1")

    def line(self, fragments: Sequence[str], counted: Mapping[str, str]) -> str:
        """The whole line."""
        return self.format(*fragments, *(one.fill(counted[one.name]) for one in self._counted))


def _template(pattern: Pattern, order: Sequence[Placeholder]) -> str:
    """For `format`: the texts with their braces doubled, and the numbers of the fragments."""
    texts = [text.replace("{", "{{").replace("}", "}}") for text in pattern.texts]
    numbers = _numbers(pattern.placeholders, order)
    return texts[0] + "".join(f"{{{number}}}{text}" for number, text in zip(numbers, texts[1:], strict=True))


def _numbers(placeholders: Sequence[Placeholder], order: Sequence[Placeholder]) -> list[int]:
    taken: set[int] = set()
    numbers = []
    for placeholder in placeholders:
        number = next(at for at, one in enumerate(order) if one == placeholder and at not in taken)
        taken.add(number)
        numbers.append(number)
    return numbers
