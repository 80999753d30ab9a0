"""Which points of a space are part of a sweep, and what each of them means."""

from itertools import islice
from typing import NamedTuple

from simple_gpu_scheduler.errors import UserError

from .conditions import Conditions, Configuration
from .points import Order, Point, points
from .space import Space

_COUNTABLE = 10**7
_LOOKED_THROUGH = 100_000
_IN_ORDER = Order(is_shuffled=False, sampler="", samples=None, seed=0)


class Chosen(NamedTuple):
    """A point that is part of the sweep, its values, and the parameters that do not exist there."""

    point: Point
    values: Configuration
    missing: list[str]


class Choice:
    """Points against conditions."""

    def __init__(self, space: Space, conditions: Conditions, *, is_once: bool) -> None:
        """`is_once`: the points that mean the same, since they differ in what does not exist there, count once."""
        self._space = space
        self._conditions = conditions
        self._once = [
            (factor.names[0], number)
            for number, factor in enumerate(space.factors)
            if is_once and len(factor.names) == 1 and factor.names[0] in dict(conditions.when)
        ]

    def choose(self, point: Point) -> Chosen | None:
        """What the point means, or nothing if it is not part of the sweep."""
        values: Configuration = {}
        for factor, place in zip(self._space.factors, point.places, strict=True):
            values.update(zip(factor.names, factor.row(place), strict=True))
        for (name, _), value in zip(self._space.draws, point.drawn, strict=True):
            values[name] = value
        if not self._conditions.settle(values):
            return None
        if any(values[name] is None and point.places[number] for name, number in self._once):
            return None
        return Chosen(point, values, [name for name, value in values.items() if value is None])


def count_chosen(space: Space, conditions: Conditions) -> int:
    """How many points there are, by looking at the factors that the conditions are about. Nothing is drawn in it."""
    part, rest = _asked(space, conditions)
    if part.size > _COUNTABLE:
        raise UserError(
            f"to count them, {part.size:,} combinations would have to be held against the conditions, which takes too "
            "long; leave out --count and {n}, or give fewer values"
        )
    choice = Choice(part, conditions, is_once=True)
    return rest * sum(1 for point in points(part, _IN_ORDER) if choice.choose(point))


def check_answers(space: Space, conditions: Conditions) -> None:
    """Meet now the values for which a condition has no answer, as a division by 0; as far as can be seen soon."""
    every = [*conditions.where, *(condition for _, condition in conditions.when)]
    drawn = {name for name, _ in space.draws}
    if any(condition.may_fail for condition in every) and not any(condition.names & drawn for condition in every):
        part, _ = _asked(space, conditions)
        choice = Choice(part, conditions, is_once=True)
        for point in islice(points(part, _IN_ORDER), _LOOKED_THROUGH):
            choice.choose(point)


def _asked(space: Space, conditions: Conditions) -> tuple[Space, int]:
    """The part of a space that the conditions are about, and how many points the rest has."""
    names = {name for name, _ in conditions.when}
    names.update(*(condition.names for condition in (*conditions.where, *(one for _, one in conditions.when))))
    part = space._replace(
        draws=(), factors=tuple(factor for factor in space.factors if names.intersection(factor.names))
    )
    return part, space.size // part.size
