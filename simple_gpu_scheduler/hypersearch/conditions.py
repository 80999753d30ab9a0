"""Which points are part of a sweep (`--where`), and which parameters a point has (`--when`)."""

import keyword
from itertools import islice

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.stdlib import re
from simple_gpu_scheduler.base.values import (
    TYPE_CHECKING,
    Callable,
    Collection,
    Iterator,
    Mapping,
    NamedTuple,
    Sequence,
)

from .points import Order, Point, points
from .space import Space
from .sweep import meant, shown

if TYPE_CHECKING:
    from .expressions import Condition


class Conditions(NamedTuple):
    """Conditions on parameters come in an order in which each follows those it depends on."""

    when: "Mapping[str, Condition]"
    where: "tuple[Condition, ...]"

    @property
    def all(self) -> "list[Condition]":
        """Of both kinds."""
        return [*self.when.values(), *self.where]

    @property
    def names(self) -> set[str]:
        """The parameters that they use."""
        return {*self.when, *(name for condition in self.all for name in condition.names)}

    def missing(self, values: Mapping[str, str]) -> set[str] | None:
        """The parameters that do not exist for these values, or None if the sweep has no such point.

        What depends on a missing parameter is missing too; a constraint on one does not apply.
        """
        missing: set[str] = set()
        for name, condition in self.when.items():
            if condition.names & missing or not condition.holds(values):
                missing.add(name)
        for condition in self.where:
            if not (condition.names & missing or condition.holds(values)):
                return None
        return missing


def parse_conditions(
    where: Sequence[str], when: Mapping[str, str], kinds_of_all: Callable[[], Mapping[str, str]]
) -> Conditions:
    """Parse them; `kinds_of_all` returns the kind of each parameter's values."""
    if not where and not when:
        return Conditions({}, ())
    from .expressions import parse_condition  # noqa: PLC0415 - as above

    kinds = kinds_of_all()
    for name in when:
        if name not in kinds:
            raise UserError(f"--when {name}: there is no parameter {shown(name)}{meant(name, kinds)}")
    found = {name: parse_condition(text, kinds) for name, text in when.items()}
    return Conditions(_sorted(found), tuple(parse_condition(text, kinds) for text in where))


def _sorted(conditions: "Mapping[str, Condition]") -> "dict[str, Condition]":
    rest = dict(conditions)
    found = {}
    while rest:
        ready = [name for name, condition in rest.items() if not condition.names & rest.keys()]
        if not ready:
            whom = "each other" if len(rest) > 1 else "itself"
            raise UserError(f"--when: {' and '.join(rest)} cannot depend on {whom}")
        found.update({name: rest.pop(name) for name in ready})
    return found


_OUR_KEYWORDS = {"and", "or", "not", "in", "is"}
_STAND_IN = "_parameter"
_OF_OTHER_LANGUAGES = (
    ("&&", "and for &&"),
    (r"\|\|", "or for ||"),
    (r"!(?!=)", "not for !"),
    (r"(?<![=!<>])=(?!=)", "== for ="),
    (r"\$", "names without $"),
)


def without_keywords(text: str, names: Collection[str]) -> str:
    """The same text with parameter names that are Python keywords, such as lambda, replaced by other names."""
    words = [name for name in names if keyword.iskeyword(name) and name not in _OUR_KEYWORDS]
    if not words:
        return text
    pattern = rf"\"[^\"]*\"|'[^']*'|\b({'|'.join(words)})\b"
    return re.sub(pattern, lambda match: f"{match[1]}{_STAND_IN}" if match[1] else match[0], text)


def _normal(name: str) -> str:
    """The name as Python's parser returns it."""
    if keyword.iskeyword(name):
        return f"{name}{_STAND_IN}"
    if name.isascii():
        return name
    from unicodedata import normalize  # noqa: PLC0415 - few names need it

    return normalize("NFKC", name)


def meant_by(written: str, names: Collection[str]) -> list[str]:
    """The parameters that a name may mean; `-` and `.` may be written `_` if that is not another parameter."""
    exactly = [name for name in names if _normal(name) == written]
    return exactly or [name for name in names if _normal(re.sub(r"[-.]", "_", name)) == written]


def habits(text: str) -> str:
    """Hints for syntax of other languages."""
    return "".join(f"; write {way}" for pattern, way in _OF_OTHER_LANGUAGES if re.search(pattern, text))


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
