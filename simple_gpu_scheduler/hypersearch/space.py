"""The space of a sweep: its factors, which vary independently, and its draws. A point is a place in each factor.

It knows how parameters are combined, not in which order points are visited or which are left out.
"""

from math import prod

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.values import Callable, Iterator, Mapping, NamedTuple, Sequence

from .sweep import Rows, meant, shown
from .values import LISTED, MOST, NUMBER, Draw, Values, kind_of


class Factor(NamedTuple):
    """Parameters that vary together: at each place, one value for each."""

    names: tuple[str, ...]
    size: int
    row: Callable[[int], tuple[str, ...]]
    is_listed: bool  # so the values may be of any kind; computed values are all of one kind


class Space(NamedTuple):
    """All factors and draws. `notes` say what was left out."""

    factors: tuple[Factor, ...]
    draws: tuple[tuple[str, Draw], ...]
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """The number of points, ignoring draws."""
        return prod(factor.size for factor in self.factors)

    @property
    def names(self) -> list[str]:
        """The names of all parameters."""
        return [name for factor in self.factors for name in factor.names] + [name for name, _ in self.draws]

    def listed(self) -> Iterator[tuple[str, str]]:
        """The names and values of listed parameters."""
        for factor in self.factors:
            for place in range(factor.size if factor.is_listed else 0):
                yield from zip(factor.names, factor.row(place), strict=True)

    def kinds(self) -> dict[str, str]:
        """The kind of each parameter's values: numbers, text or either."""
        values: dict[str, list[str]] = {}
        for name, value in self.listed():
            values.setdefault(name, []).append(value)
        return dict.fromkeys(self.names, NUMBER) | {name: kind_of(found) for name, found in values.items()}


def make_space(parameters: Mapping[str, Values], zips: Sequence[Sequence[str]], rows: Rows) -> Space:
    """Build the space of these parameters."""
    notes: list[str] = []
    zipped = _check_zips(parameters, zips)
    factors = [_listed(rows.columns, list(rows.rows), notes)] if rows.columns else []
    for name, values in parameters.items():
        if values.draw:
            continue
        if name not in zipped:
            factors.append(_factor(name, values.choices, notes))
        elif zipped[name][0] == name:
            factors.append(_zip(zipped[name], parameters, notes))
    draws = tuple((name, values.draw) for name, values in parameters.items() if values.draw)
    space = Space(tuple(factors), draws, tuple(notes))
    if space.size > MOST:
        raise UserError(f"the sweep has more than {MOST:.0e} combinations, too many to count; give fewer values")
    return space


def _check_zips(parameters: Mapping[str, Values], zips: Sequence[Sequence[str]]) -> dict[str, Sequence[str]]:
    zipped: dict[str, Sequence[str]] = {}
    for names in zips:
        written = f"--zip {','.join(names)}"
        if not all(names):
            raise UserError("--zip lacks a name; write it as --zip lr,wd")
        if len(names) < 2:  # noqa: PLR2004 - a pair
            raise UserError(f"{written} names only one parameter; name all that vary together, as in --zip lr,wd")
        for name in names:
            if name not in parameters:
                raise UserError(f"{written}: there is no parameter {shown(name)}{meant(name, parameters)}")
            if name in zipped or names.count(name) > 1:
                raise UserError(f"{written}: {name} is already in a zip; name all that vary together in one --zip")
            if parameters[name].needs_samples:
                raise UserError(f"{written}: {name} is drawn at random; only listed values can be zipped")
        zipped.update(dict.fromkeys(names, sorted(names, key=list(parameters).index)))
    return zipped


def _zip(names: Sequence[str], parameters: Mapping[str, Values], notes: list[str]) -> Factor:
    written = f"--zip {','.join(names)}"
    sizes = {name: len(parameters[name].choices) for name in names}
    if len(set(sizes.values())) > 1:
        counts = ", ".join(f"{name} has {size}" for name, size in sizes.items())
        raise UserError(f"{written}: they need the same number of values, but {counts}")
    if max(sizes.values()) > LISTED:
        raise UserError(f"{written}: more than {LISTED:,} values cannot be zipped")
    rows = list(zip(*(parameters[name].choices for name in names), strict=True))
    return _listed(tuple(names), rows, notes)


def _listed(names: tuple[str, ...], rows: list[tuple[str, ...]], notes: list[str]) -> Factor:
    different = list(dict.fromkeys(rows))
    if len(different) < len(rows):
        repeated = next(row for at, row in enumerate(rows) if different[at : at + 1] != [row])
        more = len(rows) - len(different) - 1
        others = f" (and {more} more)" if more else ""
        notes.append(f"{','.join(names)}: {shown(','.join(repeated))} is repeated and left out{others}")
    return Factor(names, len(different), different.__getitem__, is_listed=True)


def _factor(name: str, choices: Sequence[str], notes: list[str]) -> Factor:
    if isinstance(choices, tuple):
        return _listed((name,), [(value,) for value in choices], notes)
    return Factor((name,), len(choices), lambda place: (choices[place],), is_listed=False)
