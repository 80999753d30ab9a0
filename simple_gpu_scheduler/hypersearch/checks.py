"""Checks before the first line is printed: everything about a sweep that no single part can see."""

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.values import Iterable

from .pattern import NAME, Pattern, Placeholder
from .shell_quotes import COMMENT, ENDS_ESCAPED, WORDS, left_open
from .space import Factor, Space
from .sweep import IN_ORDER, Sweep, bare, shown
from .values import NUMBER, Values


def check_sweep(sweep: Sweep) -> None:
    """Checks that need no values."""
    for name in sweep.parameters:
        if not NAME.fullmatch(name):
            raise UserError(
                f"{shown(name)} is not a parameter name; a name has letters, digits, _, - and ., and starts with a "
                "letter or _"
            )
    doubled = [name for name in sweep.parameters if name in sweep.rows.columns]
    if doubled:
        raise UserError(f"the parameter {doubled[0]} is also a column of the rows; remove one of the two")
    if sweep.repeat is not None and "seed" in (*sweep.parameters, *sweep.rows.columns):
        raise UserError("--repeat gives {seed} its values; leave out --repeat or the parameter seed")
    if sweep.sampler:
        _check_sampler(sweep)


def _check_sampler(sweep: Sweep) -> None:
    wrong = f"--sampler {sweep.sampler}"
    if sweep.samples is None:
        raise UserError(f"{wrong} needs the number of samples; add --n-samples N")
    if sweep.sampling_mode == IN_ORDER:
        raise UserError(f"{wrong} has an order of its own; leave out --sampling-mode")
    if not sweep.parameters:
        raise UserError(f"{wrong} needs a parameter to sample; add -p NAME VALUE...")


def check_random(sweep: Sweep, name: str, values: Values) -> None:
    """Check that a drawn parameter comes with a number of samples."""
    if values.needs_samples and sweep.samples is None:
        raise UserError(f"the values of {name} are drawn at random; add --n-samples N: how many commands to print")
    if values.needs_samples and not values.draw and sweep.sampling_mode == IN_ORDER:
        raise UserError(f"the values of {name} are drawn at random; use range:, or leave out --sampling-mode")


def check_use(sweep: Sweep, pattern: Pattern) -> None:
    """Check what the pattern uses."""
    for name in sweep.parameters:
        if name not in pattern.names:
            raise UserError(
                f"the pattern does not use the parameter {name}; write {{{name}}} in it, or leave out -p {name}"
            )
    if sweep.repeat is not None and "seed" not in pattern.names:
        raise UserError("--repeat would print identical commands; put {seed} in the pattern, as in --seed {seed}")
    for placeholder in pattern.placeholders:
        if placeholder.name in sweep.when and placeholder.before is None:
            raise UserError(
                f"{placeholder.name} is not always present (--when); write its flag in the same braces, as in "
                f"{{--{placeholder.name} {placeholder.name}}}, or {{?{bare(placeholder.written)}}} if it has none"
            )
    if sweep.name and pattern.end == COMMENT:
        raise UserError("the pattern ends in a comment, so no name can follow it; leave out the comment or --name")


def check_line(pattern: Pattern, *, lines_end: bool) -> None:
    """Check that the pattern is one complete line. `lines_end`: whether a newline ends a command."""
    always = pattern.always().lstrip()
    if not always or always.startswith("#"):
        raise UserError("the pattern has nothing that always runs: it is empty, a comment, or entirely optional")
    if pattern.left_open:
        raise UserError(f"the pattern opens {pattern.left_open} and does not close it")
    if ENDS_ESCAPED.search(pattern.texts[-1]):
        raise UserError("the pattern ends in a backslash, which would join each line with the next")
    if lines_end and any("\n" in text for text in pattern.texts):
        raise UserError("the pattern contains a newline, which ends a command; add --null here and for the scheduler")


def check_values(pattern: Pattern, listed: Iterable[tuple[str, str]], *, lines_end: bool) -> None:
    """Check what the values would do to a line."""
    raw = {placeholder.name: placeholder for placeholder in pattern.placeholders if placeholder.is_raw}
    for name, value in listed:
        if lines_end and "\n" in value:
            raise UserError(
                f"the value {shown(value)} of {name} contains a newline, which ends a command; add --null here and "
                "for the scheduler"
            )
        if name in raw and (problem := _problem_of_raw(raw[name], value)):
            raise UserError(f"the value {shown(value)} of {name} is raw in the pattern, and {problem}")


def _problem_of_raw(placeholder: Placeholder, value: str) -> str:
    """A raw value may be shell syntax, but not half of something that its neighbours would complete."""
    if ENDS_ESCAPED.search(value):
        return "ends in a backslash, which would escape what follows"
    opened = left_open(value) if placeholder.place in WORDS else ""
    return f"opens {opened} without closing it" if opened else ""


def check_options(line: str, *, has_name: bool) -> None:
    """Check the scheduler's options after `#:` in a line, as the scheduler will read them."""
    if "#:" not in line:
        return
    from simple_gpu_scheduler.jobfile.parse import split_options  # noqa: PLC0415 - most sweeps have none

    try:
        _, options = split_options(line.encode(errors="surrogateescape"))
    except ValueError as error:
        raise UserError(f"after #: in {shown(line)}: {error}") from None
    if has_name and "name" not in options:
        raise UserError(f"a name cannot follow {shown(line)}: a comment or an open bracket would hide it")


_FEW = 4096


def could_repeat(sweep: Sweep, pattern: Pattern, space: Space) -> bool:
    """Whether lines might repeat."""
    zipped = {name for factor in space.factors if len(factor.names) > 1 for name in factor.names}
    when = set(sweep.when)
    if space.draws or sweep.sampler or len(when) > 1 or when & zipped:
        return True
    if any(placeholder.name == "seed" and placeholder.spec for placeholder in pattern.placeholders):
        return True
    return not _told_apart(pattern, space)


def _told_apart(pattern: Pattern, space: Space) -> bool:
    """Whether every value of each parameter makes a difference somewhere."""
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
