"""Checked sweeps, and their commands one after another, without repetitions."""

from functools import cached_property
from itertools import islice, product
from math import prod

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.values import Collection, Iterator, Sequence

from .checks import check_line, check_options, check_random, check_sweep, check_use, check_values, could_repeat
from .conditions import Selection, bound, count_points, look_ahead, parse_conditions
from .generators import doubts, parse_values
from .lines import Filling, Names
from .order import fold
from .pattern import COUNTED, Pattern, parse_command, parse_text
from .points import Order, Point, indexes, points
from .shell_quotes import OPTIONS
from .space import Space, make_space
from .sweep import IN_ORDER, Sweep

# After this many points in a row with nothing new, there is nothing more, or it is too rare to find.
_TRIES_IN_GRID = 1_000_000
_TRIES_AT_RANDOM = 100_000
_ALL = 2**63
_FIRST = {"i": "1", "n": "1", "seed": "0"}


class Output:
    """What all sweeps of one output share: lines and names so far, and the count."""

    def __init__(self, total: int = 0) -> None:
        self.total = total
        self.count = 0
        self.left_out = 0
        self.gave_up = False
        self.names = Names()
        self.notes: list[str] = []
        self._lines: set[str] = set()

    def is_new(self, line: str) -> bool:
        """Whether the line is new; remembers it."""
        if line in self._lines:
            return False
        self._lines.add(line)
        return True


class Commands:
    """The commands of one sweep. Errors in it are found on construction."""

    def __init__(self, sweep: Sweep, *, is_alone: bool, lines_end: bool) -> None:
        """`is_alone`: there is no other sweep in the output. `lines_end`: a newline ends a command."""
        check_sweep(sweep)
        self._sweep = sweep
        self.space = space = _space(sweep)
        names = {*space.names, *COUNTED, *(["seed"] if sweep.repeat is not None else [])}
        self._pattern = parse_command(sweep.pattern, names)
        check_use(sweep, self._pattern)
        check_line(self._pattern, lines_end=lines_end)
        check_values(self._pattern, space.listed(), lines_end=lines_end)
        self._conditions = parse_conditions(sweep.where, sweep.when, space.kinds)
        never = look_ahead(space, self._conditions)
        self.notes = list(space.notes)
        if is_alone:  # else they may share a pattern, and one of them has no use for the parameter
            self.notes += [f"--when {name} is never true, so no command contains {name}" for name in sorted(never)]
        self._filling = Filling(self._pattern, space)
        self._filling.check()
        self._name = _name_filling(sweep.name or "", names, space)
        for point in telling_points(self._pattern, space):
            line = self._filling.line(self._filling.fragments(point), _FIRST)
            check_options(line + self._naming(point, set(), _FIRST, Names()), has_name=bool(sweep.name))
        self._is_grid = not space.draws and not sweep.sampler
        self._is_alone = is_alone
        self._remembers = not is_alone or could_repeat(sweep, self._pattern, space)
        is_shuffled = sweep.sampling_mode != IN_ORDER
        self._order = Order(is_shuffled, sweep.sampler, sweep.samples or 1, fold(sweep.seed or 0))

    @property
    def uses_total(self) -> bool:
        """Whether the lines say how many there are."""
        return "n" in self._filling.counted | self._name.counted

    def count(self) -> int | None:
        """How many there are, if that is known without making them."""
        samples, has_conditions = self._sweep.samples, bool(self._conditions.all)
        if self._remembers or (has_conditions and samples is not None):
            return None
        size = count_points(self.space, self._conditions) if has_conditions else self.space.size
        return (size if samples is None else min(size, samples)) * (self._sweep.repeat or 1)

    def lines(self, output: Output) -> Iterator[str]:
        """The commands."""
        if self._remembers or self._conditions.all or self._sweep.name or self._filling.counted:
            return self._lines(output)
        return self._grid_lines(output)

    def _grid_lines(self, output: Output) -> Iterator[str]:
        """The same as `_lines`, for the most common case and several times as fast."""
        tables, fill = self._filling.tables, self._filling.format
        most = min(self._sweep.samples or _ALL, self.space.size)
        for index in islice(indexes(self.space, self._order), most):
            fragments: list[str] = []
            rest = index
            for size, table in tables:
                rest, place = divmod(rest, size)
                fragments += table[place]
            yield fill(*fragments)
            output.count += 1
        self._note_few(most, output)

    def _lines(self, output: Output) -> Iterator[str]:
        most = self._most()
        for repeat in range(self._sweep.repeat or 1):
            counted = {"seed": str(repeat), "n": str(output.total)}
            found = 0
            for point, missing, fragments in self._different(repeat, most, output):
                found += 1
                output.count += 1
                counted["i"] = str(output.count)
                yield self._filling.line(fragments, counted) + self._naming(point, missing, counted, output.names)
            most = found if self._is_alone else most  # there are no more the next time, which may take long to see

    def _different(self, repeat: int, most: int, output: Output) -> Iterator[tuple[Point, set[str], list[str]]]:
        """The points of the sweep with new lines, each with the missing parameters and the fragments."""
        found = tries = 0
        patience = self._patience()
        choice = Selection(self.space, self._conditions, is_once=self._is_grid)
        uncounted = {"seed": str(repeat), "n": "0", "i": "0"}
        for point in points(self.space, self._order):
            if found == most or tries == patience:
                break
            tries += 1
            missing = choice.missing(point)
            if missing is None:
                continue
            fragments = self._filling.fragments(point, missing)
            if self._remembers and not output.is_new(self._filling.line(fragments, uncounted)):
                output.left_out += self._is_grid
                continue
            tries = 0
            found += 1
            yield point, missing, fragments
        output.gave_up |= tries == patience
        self._note_few(found, output)

    def _most(self) -> int:
        """The most different commands that exist or are requested."""
        samples = self._sweep.samples
        if samples is None:  # all are looked at in any case
            return _ALL
        return samples if self.space.draws else min(samples, self.space.size, bound(self.space, self._conditions))

    def _patience(self) -> int:
        """How many points in a row may bring nothing new; if all are requested, all are looked at."""
        if not self._is_grid:
            return _TRIES_AT_RANDOM
        return _TRIES_IN_GRID if self._sweep.samples is not None and self._order.is_shuffled else _ALL

    def _note_few(self, found: int, output: Output) -> None:
        samples = self._sweep.samples
        if samples is not None and found < samples:
            commands = "command" if found == 1 else "different commands"
            closed = "; a Latin hypercube has no more points" if self._sweep.sampler == "lhs" else ""
            output.notes.append(f"found only {found} {commands} of the {samples} requested{closed}")

    def _naming(self, point: Point, missing: set[str], counted: dict[str, str], names: Names) -> str:
        """The name of the job, as a scheduler option."""
        if not self._sweep.name:
            return ""
        option = f"name={names.give(self._name.line(self._name.fragments(point, missing), counted))}"
        if self._pattern.end == OPTIONS:
            return f" {option}"
        return f"\n#: {option}" if any("\n" in text for text in self._pattern.texts) else f" #: {option}"


def _name_filling(name: str, names: Collection[str], space: Space) -> Filling:
    try:
        filling = Filling(parse_text(name, names), space)
        filling.check()
    except UserError as error:
        raise UserError(f"--name: {error}") from None
    return filling


def _space(sweep: Sweep) -> Space:
    parameters = {name: parse_values(name, words) for name, words in sweep.parameters.items()}
    for name, values in parameters.items():
        check_random(sweep, name, values)
    space = make_space(parameters, sweep.zips, sweep.rows)
    more = [doubt for name, words in sweep.parameters.items() for doubt in doubts(name, words)]
    return space._replace(notes=(*space.notes, *more))


class Sweeps:
    """The commands of all sweeps, each once. Errors are found on construction."""

    def __init__(self, sweeps: Sequence[Sweep], *, lines_end: bool = True) -> None:
        """`lines_end`: a newline ends a command, so that none may have one."""
        self._all = []
        for number, sweep in enumerate(sweeps, 1):
            try:
                self._all.append(Commands(sweep, is_alone=len(sweeps) == 1, lines_end=lines_end))
            except UserError as error:
                raise UserError(f"sweep {number}: {error}" if len(sweeps) > 1 else str(error)) from None
        self._output = Output(self.total if any(commands.uses_total for commands in self._all) else 0)

    @cached_property
    def total(self) -> int:
        """How many commands there are; they are generated if there is no other way."""
        known = [commands.count() for commands in self._all]
        if len(known) == 1 and known[0] is not None:
            return known[0]
        output = Output()
        return sum(1 for commands in self._all for _ in commands.lines(output))

    def lines(self) -> Iterator[str]:
        """The commands; a UserError at the end if there were none."""
        for commands in self._all:
            yield from commands.lines(self._output)
        if not self._output.count:
            tried = "none of the combinations tried" if self._output.gave_up else "no combination"
            raise UserError(f"{tried} meets the conditions, so there is nothing to print; loosen --where")

    def notes(self) -> list[str]:
        """Notes for the user, complete once the lines have ended."""
        notes = [note for commands in self._all for note in commands.notes] + self._output.notes
        left_out = self._output.left_out
        if left_out:
            notes.append(f"left out {left_out} repeated {'line' if left_out == 1 else 'lines'}")
        return list(dict.fromkeys(notes))


_LOOKED_AT = 1000


def telling_points(pattern: Pattern, space: Space) -> Iterator[Point]:
    """One point, and those whose values are in options, or might be, since they are raw."""
    inside = {one.name for one in pattern.placeholders if one.place == OPTIONS or one.is_raw}
    changing = [at for at, factor in enumerate(space.factors) if inside.intersection(factor.names)]
    drawn = [draw(0.5) for _, draw in space.draws]
    for places in _combinations([space.factors[at].size for at in changing]):
        chosen = dict(zip(changing, places, strict=True))
        yield Point([chosen.get(at, 0) for at in range(len(space.factors))], drawn)


def _combinations(sizes: list[int]) -> Iterator[tuple[int, ...]]:
    """All of them if they are few, else each place with the first of the others, up to a limit."""
    if prod(sizes) <= _LOOKED_AT:
        yield from product(*map(range, sizes))
        return
    for which, size in enumerate(sizes):
        for place in range(min(size, _LOOKED_AT)):
            yield tuple(place if at == which else 0 for at in range(len(sizes)))
