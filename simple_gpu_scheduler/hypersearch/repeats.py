"""Whether two points of a sweep could give the same line, so that lines must be remembered to leave out the second."""

from .numbers import NUMBER
from .pattern import Pattern
from .placeholder import Placeholder
from .space import Factor, Space
from .sweep import Sweep

_FEW = 4096


def could_repeat(sweep: Sweep, pattern: Pattern, space: Space) -> bool:
    """Whether it is not sure that all lines differ."""
    zipped = {name for factor in space.factors if len(factor.names) > 1 for name in factor.names}
    when = set(sweep.when)
    if space.draws or sweep.sampler or len(when) > 1 or when & zipped:
        return True
    if any(placeholder.name == "seed" and placeholder.spec for placeholder in pattern.placeholders):
        return True
    return not _told_apart(pattern, space)


def _told_apart(pattern: Pattern, space: Space) -> bool:
    """Whether each parameter stands somewhere where each of its values makes a difference."""
    if _are_separate(space, pattern.separate(are_numbers=False)):
        return True
    if any(one.spec for one in pattern.placeholders) or not set(space.kinds().values()) <= {NUMBER}:
        return False
    return _are_separate(space, pattern.separate(are_numbers=True))


def _are_separate(space: Space, separate: list[Placeholder]) -> bool:
    return all(
        any(one.name == name and _keeps_apart(one, factor, column) for one in separate)
        for factor in space.factors
        for column, name in enumerate(factor.names)
    )


def _keeps_apart(placeholder: Placeholder, factor: Factor, column: int) -> bool:
    """A format may write two values alike."""
    if not placeholder.spec:
        return True
    if factor.size > _FEW:
        return False
    values = {factor.row(place)[column] for place in range(factor.size)}
    return len({placeholder.fill(value) for value in values}) == len(values)
