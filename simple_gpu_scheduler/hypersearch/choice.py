"""Which points of a space are part of a sweep."""

from collections.abc import Iterator
from itertools import islice

from simple_gpu_scheduler.base.errors import UserError

from .conditions import Conditions
from .points import Order, Point, points
from .space import Space

_COUNTABLE = 10**7
_LOOKED_THROUGH = 100_000


class Selection:
    """Tests points against conditions."""

    def __init__(self, space: Space, conditions: Conditions, *, is_once: bool) -> None:
        """`is_once`: points that differ only in parameters that do not exist there count once."""
        self._space = space
        self._conditions = conditions
        self._alone = {
            factor.names[0]: number for number, factor in enumerate(space.factors) if is_once and len(factor.names) == 1
        }

    def missing(self, point: Point) -> set[str] | None:
        """The parameters that do not exist at this point, or None if it is not part of the sweep."""
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
    """Count the points of the sweep, by looking at the factors that the conditions use."""
    part = _asked(space, conditions)
    if part.size > _COUNTABLE:
        raise UserError(
            f"counting would mean checking the conditions for {part.size:,} combinations, which takes too long; "
            "leave out --count and {n}, or give fewer values"
        )
    found = sum(missing is not None for missing in _look(part, conditions))
    return space.size // part.size * found


def bound(space: Space, conditions: Conditions) -> int:
    """The most points that the sweep can have; the exact number if that is quick to find. Only if nothing is drawn."""
    if not conditions.all or _asked(space, conditions).size > _LOOKED_THROUGH:
        return space.size
    return count_points(space, conditions)


def look_ahead(space: Space, conditions: Conditions) -> set[str]:
    """Find a division by 0 early, as far as that is quick; and the parameters that never exist."""
    if conditions.names.intersection(name for name, _ in space.draws):
        return set()
    part = _asked(space, conditions)
    may_fail = any(condition.may_fail for condition in conditions.all)
    never = set(conditions.when)
    for missing in islice(_look(part, conditions), _LOOKED_THROUGH):
        if missing is not None:
            never &= missing
        if not (never or may_fail):
            break
    return never if part.size <= _LOOKED_THROUGH else set()


def _look(part: Space, conditions: Conditions) -> Iterator[set[str] | None]:
    """What is missing at each point."""
    choice = Selection(part, conditions, is_once=True)
    return (choice.missing(point) for point in points(part, Order()))


def _asked(space: Space, conditions: Conditions) -> Space:
    """The part of a space that the conditions use."""
    names = conditions.names
    return Space(tuple(factor for factor in space.factors if names.intersection(factor.names)), ())
