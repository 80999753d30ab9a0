"""Which points are part of a sweep (`--where`), and which parameters a point has (`--when`)."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from simple_gpu_scheduler.errors import UserError

from .wording import meant, shown

if TYPE_CHECKING:  # Python's parser and fractions take 5 ms to load, and only conditions need them
    from .expressions import Condition

Configuration = dict[str, str | None]  # a parameter that does not exist there is None


class Conditions(NamedTuple):
    """Those on parameters in an order in which each comes behind those that it asks for."""

    when: "tuple[tuple[str, Condition], ...]" = ()
    where: "tuple[Condition, ...]" = ()

    def settle(self, values: Configuration) -> bool:
        """Make None what does not exist there; whether the rest is part of the sweep.

        What depends on a parameter that is not there is not there either; a constraint on one does not apply.
        """
        for name, condition in self.when:
            if not (_exist(condition, values) and condition.holds(values)):  # type: ignore[arg-type] # they exist
                values[name] = None
        return all(condition.holds(values) for condition in self.where if _exist(condition, values))  # type: ignore[arg-type]


def _exist(condition: "Condition", values: Configuration) -> bool:
    return all(values[name] is not None for name in condition.names)


def parse_conditions(
    where: Sequence[str], when: Mapping[str, str], kinds_of_all: Callable[[], Mapping[str, str]]
) -> Conditions:
    """Read them; `kinds_of_all` says of each parameter what its values are."""
    if not where and not when:
        return Conditions()
    from .expressions import parse_condition  # noqa: PLC0415 - as above

    kinds = kinds_of_all()
    for name in when:
        if name not in kinds:
            raise UserError(f"--when {name}: there is no parameter {shown(name)}{meant(name, kinds)}")
    found = {name: parse_condition(text, kinds) for name, text in when.items()}
    return Conditions(_sorted(found), tuple(parse_condition(text, kinds) for text in where))


def _sorted(conditions: "Mapping[str, Condition]") -> "tuple[tuple[str, Condition], ...]":
    rest = dict(conditions)
    found = []
    while rest:
        ready = [name for name, condition in rest.items() if not condition.names & rest.keys()]
        if not ready:
            raise UserError(f"--when: {' and '.join(rest)} ask for each other, so nobody can say which exists")
        found += [(name, rest.pop(name)) for name in ready]
    return tuple(found)
