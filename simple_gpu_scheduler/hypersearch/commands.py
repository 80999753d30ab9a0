"""One sweep, checked, and its commands one after another, without those that were there before."""

from collections.abc import Iterable, Iterator
from itertools import islice

from simple_gpu_scheduler.errors import UserError

from .checks import COUNTED, check_options, check_sweep, check_use, check_values, told_apart
from .choice import Choice, Chosen, check_answers, count_chosen
from .conditions import parse_conditions
from .filling import Filling
from .naming import Names
from .numbers import NUMBER, kind_of
from .pattern import parse_command, parse_text
from .points import Order, Point, indexes, points
from .quoting import OPTIONS
from .shuffle import fold
from .space import Space, make_space
from .sweep import IN_ORDER, Sweep
from .words import parse_values

# When so many points in a row bring nothing new, there is nothing more, or it is too rare to be found.
_TRIES_IN_GRID = 1_000_000
_TRIES_AT_RANDOM = 100_000

_ALL = 2**63
_LOOKED_AT = 1000


class Output:
    """What all sweeps of one output share: lines and names that were there, and the count."""

    def __init__(self, total: int = 0) -> None:
        self.total = total
        self.count = 0
        self.left_out = 0
        self.names = Names()
        self.notes: list[str] = []
        self._lines: set[str] = set()

    def is_new(self, line: str) -> bool:
        """Whether the line was not there before; now it was."""
        if line in self._lines:
            return False
        self._lines.add(line)
        return True


class Commands:
    """The commands of one sweep. What can be wrong with it is found when this is made."""

    def __init__(self, sweep: Sweep, *, is_alone: bool, lines_end: bool) -> None:
        """`is_alone`: no other sweep has a part in the output. `lines_end`: a newline ends a command."""
        check_sweep(sweep)
        self._sweep = sweep
        self._space = space = _space(sweep)
        names = {*_names(space), *COUNTED, *(["seed"] if sweep.repeat is not None else [])}
        self.pattern = parse_command(sweep.pattern, names)
        self._name = Filling(parse_text(sweep.name or "", names), space)
        check_use(sweep, self.pattern, lines_end=lines_end)
        check_values(self.pattern, _listed(space), lines_end=lines_end)
        self._conditions = parse_conditions(sweep.where, sweep.when, lambda: _kinds(space))
        self._order = Order(sweep.sampling_mode != IN_ORDER, sweep.sampler, sweep.samples, fold(sweep.seed or 0))
        self._filling = Filling(self.pattern, space)
        self._filling.check()
        self._name.check()
        self._is_grid = not space.draws and not sweep.sampler
        self._choice = Choice(space, self._conditions, is_once=self._is_grid)
        self._remembers = not is_alone or not self._is_grid or self._could_repeat()
        check_answers(space, self._conditions)
        self._check_options()

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out of what was given."""
        return self._space.notes

    @property
    def uses_total(self) -> bool:
        """Whether the lines say how many there are."""
        return "n" in self._filling.counted | self._name.counted

    def _could_repeat(self) -> bool:
        """Whether two points could give the same line."""
        zipped = {name for factor in self._space.factors if len(factor.names) > 1 for name in factor.names}
        when = set(self._sweep.when)
        if any(placeholder.name == "seed" and placeholder.spec for placeholder in self.pattern.placeholders):
            return True
        return len(when) > 1 or bool(when & zipped) or not told_apart(self.pattern, self._space)

    def count(self) -> int | None:
        """How many there are, where that can be said without making them."""
        samples = self._sweep.samples
        has_conditions = self._conditions.where or self._conditions.when
        if self._remembers or (has_conditions and samples is not None):
            return None
        size = count_chosen(self._space, self._conditions) if has_conditions else self._space.size
        return (size if samples is None else min(size, samples)) * (self._sweep.repeat or 1)

    def lines(self, output: Output) -> Iterator[str]:
        """The commands."""
        is_plain = not (self._conditions.where or self._conditions.when or self._sweep.name or self._remembers)
        if is_plain and not self._filling.counted:
            return self._grid_lines(output)
        return self._lines(output)

    def _grid_lines(self, output: Output) -> Iterator[str]:
        """The same as `_lines`, for the most common case and in a third of the time."""
        tables, fill = self._filling.tables, self._filling.format
        for index in islice(indexes(self._space, self._order), min(self._sweep.samples or _ALL, self._space.size)):
            fragments: list[str] = []
            rest = index
            for size, table in tables:
                rest, place = divmod(rest, size)
                fragments += table[place]
            yield fill(*fragments)
            output.count += 1
        self._note_few(self._space.size, output)

    def _lines(self, output: Output) -> Iterator[str]:
        for repeat in range(self._sweep.repeat or 1):
            counted = {"seed": str(repeat), "n": str(output.total)}
            for chosen, fragments in self._different(repeat, output):
                output.count += 1
                counted["i"] = str(output.count)
                yield self._filling.line(fragments, counted) + self._naming(
                    chosen.point, chosen.missing, counted, output
                )

    def _different(self, repeat: int, output: Output) -> Iterator[tuple[Chosen, list[str]]]:
        """The points that are part of the sweep and whose line is new."""
        found = tries = 0
        most = self._sweep.samples if self._space.draws else min(self._sweep.samples or _ALL, self._space.size)
        patience = self._patience()
        uncounted = {"seed": str(repeat), "n": "0", "i": "0"}
        for point in points(self._space, self._order):
            if found == most or tries == patience:
                break
            tries += 1
            chosen = self._choice.choose(point)
            if not chosen:
                continue
            fragments = self._filling.fragments(point, chosen.missing)
            if self._remembers and not output.is_new(self._filling.line(fragments, uncounted)):
                output.left_out += self._is_grid
                continue
            tries = 0
            found += 1
            yield chosen, fragments
        self._note_few(found, output)

    def _patience(self) -> int:
        """How many points in a row may bring nothing; where all are asked for, all are looked at."""
        if not self._is_grid:
            return _TRIES_AT_RANDOM
        is_sample = self._sweep.samples is not None and self._order.is_shuffled
        return _TRIES_IN_GRID if is_sample else _ALL

    def _note_few(self, found: int, output: Output) -> None:
        samples = self._sweep.samples
        if samples is not None and found < samples:
            output.notes.append(f"found only {found} different commands of the {samples} that were asked for")

    def _naming(self, point: Point, missing: list[str], counted: dict[str, str], output: Output) -> str:
        """The name of the job, as the scheduler's option."""
        if not self._sweep.name:
            return ""
        wish = self._name.line(self._name.fragments(point, missing), counted)
        option = f"name={output.names.give(wish)}"
        if self.pattern.end == OPTIONS:
            return f" {option}"
        return f"\n#: {option}" if any("\n" in text for text in self.pattern.texts) else f"  #: {option}"

    def _check_options(self) -> None:
        """The scheduler's options, with each of the values that stand in them."""
        if not (self._sweep.name or any("#:" in text for text in self.pattern.texts)):
            return
        inside = {placeholder.name for placeholder in self.pattern.placeholders if placeholder.place == OPTIONS}
        for number, factor in enumerate(self._space.factors):
            for place in range(min(factor.size, _LOOKED_AT) if inside.intersection(factor.names) else 1):
                places = [place if at == number else 0 for at in range(len(self._space.factors))]
                self._check_options_of(Point(places, [draw(0.5) for _, draw in self._space.draws]))

    def _check_options_of(self, point: Point) -> None:
        counted = {"i": "1", "n": "1", "seed": "0"}
        line = self._filling.line(self._filling.fragments(point), counted)
        check_options(line + self._naming(point, [], counted, Output()))


def _space(sweep: Sweep) -> Space:
    parameters = {name: parse_values(name, words) for name, words in sweep.parameters.items()}
    for name, values in parameters.items():
        if values.is_random and sweep.samples is None:
            raise UserError(
                f"the values of {name} are drawn at random; say how many commands there shall be: --n-samples N"
            )
    return make_space(parameters, sweep.zips, sweep.rows)


def _names(space: Space) -> list[str]:
    return [name for factor in space.factors for name in factor.names] + [name for name, _ in space.draws]


def _listed(space: Space) -> Iterable[tuple[str, str]]:
    rows = ((factor, factor.row(place)) for factor in space.factors if factor.is_listed for place in range(factor.size))
    return (pair for factor, row in rows for pair in zip(factor.names, row, strict=True))


def _kinds(space: Space) -> dict[str, str]:
    values: dict[str, list[str]] = {}
    for name, value in _listed(space):
        values.setdefault(name, []).append(value)
    return dict.fromkeys(_names(space), NUMBER) | {name: kind_of(found) for name, found in values.items()}
