"""A few points that tell whether the scheduler's options behind `#:` are right for all."""

from collections.abc import Iterator
from itertools import product
from math import prod

from .pattern import Pattern
from .points import Point
from .quoting import OPTIONS
from .space import Space

_LOOKED_AT = 1000


def telling_points(pattern: Pattern, space: Space) -> Iterator[Point]:
    """One, and those with the values that stand in options, or may be some since they are raw."""
    inside = {one.name for one in pattern.placeholders if one.place == OPTIONS or one.is_raw}
    changing = [at for at, factor in enumerate(space.factors) if inside.intersection(factor.names)]
    drawn = [draw(0.5) for _, draw in space.draws]
    for places in _combinations([space.factors[at].size for at in changing]):
        chosen = dict(zip(changing, places, strict=True))
        yield Point([chosen.get(at, 0) for at in range(len(space.factors))], drawn)


def _combinations(sizes: list[int]) -> Iterator[tuple[int, ...]]:
    """All of them where they are few, else each place with the first of the others, as far as can be looked at soon."""
    if prod(sizes) <= _LOOKED_AT:
        yield from product(*map(range, sizes))
        return
    for which, size in enumerate(sizes):
        for place in range(min(size, _LOOKED_AT)):
            yield tuple(place if at == which else 0 for at in range(len(sizes)))
