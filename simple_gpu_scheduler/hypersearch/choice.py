"""Which points of a space are part of a sweep."""

from itertools import islice

from simple_gpu_scheduler.errors import UserError

from .conditions import Conditions
from .points import Order, Point, points
from .space import Space

_COUNTABLE = 10**7
_LOOKED_THROUGH = 100_000


class Choice:
    """Points against conditions."""

    def __init__(self, space: Space, conditions: Conditions, *, is_once: bool) -> None:
        """`is_once`: the points that mean the same, since they differ in what does not exist there, count once."""
        self._space = space
        self._conditions = conditions
        self._alone = {
            factor.names[0]: number for number, factor in enumerate(space.factors) if is_once and len(factor.names) == 1
        }

    def missing(self, point: Point) -> set[str] | None:
        """The parameters that do not exist at this point, or None where it is not part of the sweep."""
        if not (self._conditions.when or self._conditions.where):
            return set()
        values: dict[str, str] = {}
        for factor, place in zip(self._space.factors, point.places, strict=True):
            values.update(zip(factor.names, factor.row(place), strict=True))
        values.update(zip((name for name, _ in self._space.draws), point.drawn, strict=True))
        missing = self._conditions.missing(values)
        if missing and any(name in self._alone and point.places[self._alone[name]] for name in missing):
            return None
        return missing


def count_points(space: Space, conditions: Conditions) -> int:
    """How many points are part of the sweep, by looking at the factors that the conditions are about."""
    part = _asked(space, conditions)
    if part.size > _COUNTABLE:
        raise UserError(
            f"to count them, {part.size:,} combinations would have to be held against the conditions, which takes too "
            "long; leave out --count and {n}, or give fewer values"
        )
    choice = Choice(part, conditions, is_once=True)
    found = sum(choice.missing(point) is not None for point in points(part, Order()))
    return space.size // part.size * found


def meet_failures(space: Space, conditions: Conditions) -> None:
    """Meet now the values for which a condition has no answer, as a division by 0, as far as can be seen soon."""
    drawn = {name for name, _ in space.draws}
    if not any(condition.may_fail for condition in conditions.all) or conditions.names & drawn:
        return
    part = _asked(space, conditions)
    choice = Choice(part, conditions, is_once=True)
    for point in islice(points(part, Order()), _LOOKED_THROUGH):
        choice.missing(point)


def _asked(space: Space, conditions: Conditions) -> Space:
    """The part of a space that the conditions are about."""
    names = conditions.names
    return Space(tuple(factor for factor in space.factors if names.intersection(factor.names)), ())
