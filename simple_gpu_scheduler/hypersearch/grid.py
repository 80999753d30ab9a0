"""The grid of all combinations of values, in order or shuffled, as command lines.

A point of the grid is computed from its index, so a grid of any size costs no memory in order, and a sample of it costs
as much as the sample. It knows nothing of how parameters are typed, and prints nothing.
"""

import random
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from string import Formatter

from simple_gpu_scheduler.errors import UserError

Parameters = Mapping[str, Sequence[str]]


def commands(pattern: str, parameters: Parameters, *, shuffled: bool, samples: int | None, seed: int) -> Iterator[str]:
    """The command lines of the grid; each value is quoted, so that to the shell it is one word whatever is in it."""
    _check(pattern, parameters)
    total = prod(len(values) for values in parameters.values())
    if total > sys.maxsize:
        raise UserError(f"the grid has {total:,} combinations, more than can be counted here; give fewer values")
    count = total if samples is None else min(samples, total)
    indexes = random.Random(seed).sample(range(total), count) if shuffled else range(count)  # noqa: S311 - no secret
    return (pattern.format_map(_point(parameters, index)) for index in indexes)


def _point(parameters: Parameters, index: int) -> dict[str, str]:
    """The point with this index; the last parameter changes fastest."""
    point = {}
    for name in reversed(tuple(parameters)):
        values = parameters[name]
        index, at = divmod(index, len(values))
        point[name] = shlex.quote(values[at])
    return point


def _check(pattern: str, parameters: Parameters) -> None:
    try:
        fields = [field for field in Formatter().parse(pattern) if field[1] is not None]
    except ValueError as error:
        raise UserError(f"the pattern has a brace that is no placeholder ({error}); write {{{{ and }}}}") from None
    names = {name for _, name, _, _ in fields}
    for _, name, spec, conversion in fields:
        if name and not name.isidentifier():
            raise UserError(f"{{{name}}} is no placeholder; a name has letters, digits and _, and begins with no digit")
        if name not in parameters:
            raise UserError(
                f"the pattern has {{{name}}} but there is no parameter of that name; add -p {name or 'NAME'} VALUE..., "
                f"or write {{{{{name}}}}} if these braces are the shell's"
            )
        if spec or conversion:
            raise UserError(f"{{{name}}} cannot be formatted; write it without ':' and '!'")
    for name, values in parameters.items():
        if name not in names:
            raise UserError(
                f"the pattern does not use the parameter {name}; write {{{name}}} in it, or leave out -p {name}"
            )
        if any("\n" in value for value in values):
            raise UserError(f"a value of {name} has a newline in it, which would make two commands of one")
        if not values:
            raise UserError(f"the parameter {name} has no values; write -p {name} VALUE...")
