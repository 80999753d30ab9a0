"""What must be right before the first line: everything about a sweep that no single part can see."""

from collections.abc import Iterable

from simple_gpu_scheduler.comments import find_comments
from simple_gpu_scheduler.errors import UserError
from simple_gpu_scheduler.options import parse_options

from .pattern import NAME, Pattern, Placeholder
from .quoting import NOTE
from .space import Factor, Space
from .sweep import IN_ORDER, Sweep
from .wording import shown

_OPTIONS = b"#:"
_QUOTES = ("'", '"', "$'")
_FEW = 4096
COUNTED = ("i", "n")


def check_sweep(sweep: Sweep) -> None:
    """What can be seen without knowing any values."""
    for name in (*sweep.parameters, *sweep.rows.columns):
        if not NAME.fullmatch(name):
            raise UserError(
                f"{shown(name)} is no name for a parameter; a name has letters, digits, _, - and ., and begins with a "
                "letter or _"
            )
    doubled = [name for name in sweep.parameters if name in sweep.rows.columns]
    if doubled:
        raise UserError(f"the parameter {doubled[0]} is in the rows already; leave one of the two out")
    if sweep.repeat is not None and "seed" in (*sweep.parameters, *sweep.rows.columns):
        raise UserError("--repeat gives {seed} its values; leave out --repeat or the parameter seed")
    if sweep.sampler and sweep.samples is None:
        raise UserError(f"--sampler {sweep.sampler} needs a number of samples; add --n-samples N")
    if sweep.sampler and sweep.sampling_mode == IN_ORDER:
        raise UserError(f"--sampler {sweep.sampler} has an order of its own; leave out --sampling-mode")
    if sweep.sampler and not sweep.parameters:
        raise UserError(f"--sampler {sweep.sampler} needs a parameter to sample; add -p NAME VALUE...")


def check_use(sweep: Sweep, pattern: Pattern, *, lines_end: bool) -> None:
    """What is in the pattern and what is not. `lines_end`: whether a newline ends a command."""
    for name in sweep.parameters:
        if name not in pattern.names:
            raise UserError(
                f"the pattern does not use the parameter {name}; write {{{name}}} in it, or leave out -p {name}"
            )
    if sweep.repeat is not None and "seed" not in pattern.names:
        raise UserError("--repeat makes the same command again unless the pattern has {seed} in it; add it")
    for placeholder in pattern.placeholders:
        if placeholder.name in sweep.when and placeholder.before is None:
            raise UserError(
                f"{placeholder.name} is not always there (--when); write its flag in the same braces, as in "
                f"{{--{placeholder.name} {placeholder.name}}}, or {{?{placeholder.written}}} where it has none"
            )
    if pattern.end in _QUOTES:
        raise UserError(f"a {pattern.end} is opened in the pattern and not closed")
    if sweep.name and pattern.end == NOTE:
        raise UserError("the pattern ends in a note, so that no name can stand behind it; leave out the note or --name")
    end = pattern.texts[-1]
    if (len(end) - len(end.rstrip("\\"))) % 2:
        raise UserError("the pattern ends in a backslash, which would join each line with the next")
    if lines_end and any("\n" in text for text in pattern.texts):
        raise UserError("the pattern has a newline in it, which ends a command; add --null here and for the scheduler")


def check_values(pattern: Pattern, listed: Iterable[tuple[str, str]], *, lines_end: bool) -> None:
    """What the values themselves would do to a line."""
    last = pattern.placeholders[-1] if pattern.placeholders and not pattern.texts[-1] else None
    for name, value in listed:
        if lines_end and "\n" in value:
            raise UserError(
                f"the value {shown(value)} of {name} has a newline in it, which ends a command; add --null here and "
                "for the scheduler"
            )
        if last and last.name == name and last.is_raw and (len(value) - len(value.rstrip("\\"))) % 2:
            raise UserError(f"the value {shown(value)} of {name} ends the line in a backslash, which joins two lines")


def check_options(line: str) -> None:
    """The scheduler's options behind `#:` in one of the lines."""
    data = line.encode(errors="surrogateescape")
    comments = [at for at in find_comments(data) if data.startswith(_OPTIONS, at)]
    if not comments:
        return
    try:
        parse_options(data[comments[-1] + len(_OPTIONS) :])
    except ValueError as error:
        raise UserError(f"behind #: in {shown(line[-200:])}: {error}") from None


def told_apart(pattern: Pattern, space: Space) -> bool:
    """Whether two points are sure to write two different lines, so that nothing needs to be remembered."""
    alone = pattern.alone()
    return all(
        any(one.name == name and _keeps_apart(one, factor, column) for one in alone)
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
