"""`simple_hypersearch`: prints the commands of a sweep, to be piped into the scheduler."""

import io
import os
import re
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress
from time import monotonic
from typing import Any

import click

from simple_gpu_scheduler import __version__
from simple_gpu_scheduler.errors import UserError
from simple_gpu_scheduler.hypersearch.definitions import combine, parse_zip
from simple_gpu_scheduler.hypersearch.quasi import SAMPLERS
from simple_gpu_scheduler.hypersearch.sweep import IN_ORDER, SHUFFLED, Sweep, Words
from simple_gpu_scheduler.hypersearch.sweeps import Sweeps

from .params import Command, SeveralValues, version_option

_EXAMPLE = 'simple_hypersearch "python3 train.py --lr {lr}" -p lr 0.1 0.01'
_NEGATIVE_NUMBER = re.compile(r"-\.?\d")
_AT_ONCE = 1000  # lines in one write
_WAIT = 0.05  # seconds

_HELP = """Print PATTERN once for each combination of the parameters' values, which replace {NAME} in it.

A VALUE is what you type, or stands for many: range:1:10, range:0:1:0.1, linspace:0:1:5, logspace:1e-5:1e-1:5, and
drawn at random, with --n-samples: uniform:0:1, loguniform:1e-5:1e-1, int:1:10, normal:0:1. With -p NAME=VALUE it is
VALUE as it stands.

In PATTERN, {NAME} is the value, quoted for the shell; {NAME:.0e} is formatted, {NAME!s} is raw, {--flag NAME} is there
together with its flag or not at all; {i} is the number of the line, {n} how many there are, {seed} that of --repeat.
Braces of the shell are written {{ and }}.
"""

_EXAMPLES = f"""
{_EXAMPLE}
simple_hypersearch "python3 train.py --lr {{lr}} --bs {{bs}}" -p lr 0.1 0.01 -p bs 32 64 | simple_gpu_scheduler --gpus 0
simple_hypersearch "train --lr {{lr}} --drop {{d}}" -p lr loguniform:1e-5:1e-1 -p d uniform:0:0.5 --n-samples 20
simple_hypersearch "train --lr {{lr}} --bs {{bs}}" -p lr 0.1 0.2 -p bs 32 64 --where "lr * bs < 10"
simple_hypersearch "train --opt {{opt}} {{--momentum m}}" -p opt sgd adam -p m 0.8 0.9 --when m 'opt == "sgd"'
"""


def _is_value(word: str) -> bool:
    return not word.startswith("-") or word == "-" or " " in word or bool(_NEGATIVE_NUMBER.match(word))


def _parameter(words: tuple[str, ...]) -> tuple[str, Words]:
    """`lr 0.1 0.01`, or `lr=VALUE`, whose value may be anything."""
    name, equals, _ = words[0].partition("=")
    if not equals:
        return name, Words(words[1:])
    for word in words:
        if not word.startswith(f"{name}="):
            raise UserError(f"-p {name}=VALUE takes values as they stand, and so must the next: write {name}={word}")
    return name, Words(tuple(word[len(name) + 1 :] for word in words), are_literal=True)


def _parameters(given: Iterable[tuple[str, ...]]) -> dict[str, Words]:
    found: dict[str, Words] = {}
    for name, words in map(_parameter, given):
        if name in found:
            again = f"{name}=VALUE {name}=VALUE" if words.are_literal else name
            raise UserError(f"the parameter {name} is given twice; write all its values behind one -p {again}")
        found[name] = words
    return found


def _conditions(given: Iterable[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, condition in given:
        if name in found:
            raise UserError(f"--when {name} is given twice; write one condition, with and or or in it")
        found[name] = condition
    return found


def _sweeps(path: str | None, typed: Sweep) -> list[Sweep]:
    """What is in the file, with what was typed, each with a pattern and a seed."""
    sweeps = [typed]
    if path is not None:
        from .sweep_files import read_sweep_file  # noqa: PLC0415 - few sweeps come from files

        sweeps = [combine(sweep, typed) for sweep in read_sweep_file(path)]
    for sweep in sweeps:
        if not sweep.pattern:
            raise UserError(_without_pattern(path, typed))
    return [
        sweep if sweep.seed is not None else sweep._replace(seed=int.from_bytes(os.urandom(4), "big"))
        for sweep in sweeps
    ]


def _without_pattern(path: str | None, typed: Sweep) -> str:
    for name, words in typed.parameters.items():
        for word in words.words:
            if "{" in word:
                return (
                    f"there is no PATTERN; was '{word}' meant, which is taken for a value of {name}? "
                    "Write the pattern before the first -p"
                )
    return f"there is no PATTERN{f' in {path} and none was given' if path else ''}. For example: {_EXAMPLE}"


def _hypersearch(from_file: str | None, save: str | None, *, count: bool, null: bool, **options: Any) -> None:
    # Nobody may be reading any more (`| head`): that ends a filter without a word.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What was typed in another encoding comes out as it was.
        encoding = "utf-8" if sys.getfilesystemencoding() == "ascii" else sys.getfilesystemencoding()
        sys.stdout.reconfigure(encoding=encoding, errors="surrogateescape", newline="\n")
    sweeps = _sweeps(from_file, _typed(**options))
    prepared = Sweeps(sweeps, lines_end=not null)
    if save is not None:
        from .sweep_files import save_sweep_file  # noqa: PLC0415 - as above

        save_sweep_file(save, sweeps)
    if count:
        print(prepared.count())
    else:
        _print(prepared, "\0" if null else "\n")
    with suppress(OSError):  # nobody hears it, and all that matters has been printed
        for note in prepared.notes():
            print(f"simple_hypersearch: {note}", file=sys.stderr)


def _typed(
    pattern: tuple[str, ...],
    parameter: tuple[tuple[str, ...], ...],
    together: tuple[str, ...],
    when: tuple[tuple[str, str], ...],
    **said: Any,
) -> Sweep:
    zips = tuple(parse_zip(names) for names in together)
    given = {field: value for field, value in said.items() if value is not None}
    if len(pattern) > 1:
        raise UserError(
            f"'{pattern[1]}' stands beside the pattern '{pattern[0]}': write a pattern, and a condition, in quotes, "
            f"and commas between the names behind --zip. For example: {_EXAMPLE}"
        )
    return Sweep("".join(pattern), _parameters(parameter), zips=zips, when=_conditions(when), **given)


def _print(prepared: Sweeps, end: str) -> None:
    """Print in batches, but what took long to find at once: somebody's GPU may be waiting for it."""
    batch: list[str] = []
    due = 0.0
    for line in prepared.lines():
        batch.append(line)
        if len(batch) == _AT_ONCE or monotonic() >= due:
            _write(batch, end)
            due = monotonic() + _WAIT
    _write(batch, end)


def _write(batch: list[str], end: str) -> None:
    if batch:
        sys.stdout.write(end.join(batch) + end)
        sys.stdout.flush()
        batch.clear()


def _options() -> list[click.Parameter]:
    def option(*names: str, **settings: Any) -> click.Option:
        return click.Option(names, **settings)

    return [
        click.Argument(["pattern"], nargs=-1),
        SeveralValues(
            ["-p", "--parameter"],
            takes=_is_value,
            example=_EXAMPLE,
            metavar="NAME VALUE...",
            with_dash="A value that begins with a dash is written -p NAME=VALUE.",
            help="A parameter and its values; once for each parameter.",
        ),
        option("--from", "from_file", metavar="FILE", help="Read sweeps from a .yaml, .toml, .json or .csv file."),
        option(
            "--zip", "together", multiple=True, metavar="A,B", help="Parameters whose values go together, in pairs."
        ),
        option(
            "--where", multiple=True, metavar="CONDITION", help="Only combinations for which 'lr * bs < 1' is true."
        ),
        option(
            "--when",
            nargs=2,
            multiple=True,
            metavar="NAME CONDITION",
            help="The parameter NAME exists only where this is true; write its flag as {--flag NAME}.",
        ),
        option("--repeat", type=click.IntRange(1), metavar="N", help="Print each N times, with {seed} from 0 up."),
        option(
            "--sampling-mode",
            type=click.Choice([SHUFFLED, IN_ORDER]),
            help=f"In a random order, or in that of the grid.  [default: {SHUFFLED}]",
        ),
        option(
            "--n-samples",
            "samples",
            type=click.IntRange(1),
            metavar="N",
            help="Print so many different combinations.  [default: all]",
        ),
        option(
            "--sampler",
            type=click.Choice(list(SAMPLERS)),
            help="Spread the samples more evenly than at random. Needs scipy, as in simple_gpu_scheduler[search].",
        ),
        option("--seed", type=int, metavar="N", help="Print the same lines, in the same order, for the same N."),
        option("--name", metavar="PATTERN", help="Give each job a name, such as '{lr}-{bs}'."),
        option("-0", "--null", is_flag=True, help="End commands with NUL bytes, so that they may hold newlines."),
        option("--count", is_flag=True, help="Print only how many commands there would be."),
        option("--save", metavar="FILE", help="Write the sweep and its seed to a .json file that --from reads."),
        version_option(f"simple_hypersearch {__version__}"),
    ]


hypersearch = Command(
    "simple_hypersearch",
    callback=_hypersearch,
    help=_HELP,
    params=_options(),
    sections=(
        ("What is combined", ("parameter", "from_file", "together", "where", "when", "repeat")),
        ("How many, and in which order", ("sampling_mode", "samples", "sampler", "seed")),
        ("What is printed", ("name", "null", "count", "save")),
    ),
    examples=_EXAMPLES,
)
