"""`simple_hypersearch`: prints the commands of a sweep, to be piped into the scheduler."""

import io
import os
import signal
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import chain
from time import monotonic
from typing import Any

import click

from simple_gpu_scheduler import __version__
from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.cli.click_extras import Command, Parsed, SeveralValues, version_option
from simple_gpu_scheduler.hypersearch.commands import Sweeps
from simple_gpu_scheduler.hypersearch.definitions import combine, parse_whole
from simple_gpu_scheduler.hypersearch.order import SAMPLERS
from simple_gpu_scheduler.hypersearch.sweep import IN_ORDER, SHUFFLED, Sweep

from .sweep_words import EXAMPLE, is_value, typed_sweep, without_pattern

_AT_ONCE = 1000  # lines in one write
_WAIT = 0.05  # seconds

_HELP = """Print PATTERN once for each combination of the parameters' values, which replace {NAME} in it.

A VALUE is what you type, or stands for many: range:1:10, range:0:1:0.1, linspace:0:1:5, logspace:1e-5:1e-1:5, and
drawn at random, with --n-samples: uniform:0:1, loguniform:1e-5:1e-1, int:1:10, normal:0:1. With -p NAME=VALUE it is
VALUE as it stands.

In PATTERN, {NAME} is the value, quoted for the shell; {NAME:.0e} is formatted, {NAME!s} is raw, {--flag NAME} is there
together with its flag or not at all ({?NAME} without one); {i} is the number of the line, {n} how many there are,
{seed} that of --repeat. Braces of the shell are written {{ and }}.
"""

_EXAMPLES = f"""
{EXAMPLE}
simple_hypersearch "python3 train.py --lr {{lr}} --bs {{bs}}" -p lr 0.1 0.01 -p bs 32 64 | simple_gpu_scheduler --gpus 0
simple_hypersearch "train --lr {{lr}} --drop {{d}}" -p lr loguniform:1e-5:1e-1 -p d uniform:0:0.5 --n-samples 20
simple_hypersearch "train --lr {{lr}} --bs {{bs}}" -p lr 0.1 0.2 -p bs 32 64 --where "lr * bs < 10"
simple_hypersearch "train --opt {{opt}} {{--momentum m}}" -p opt sgd adam -p m 0.8 0.9 --when m 'opt == "sgd"'
simple_hypersearch "train --lr {{lr}} --seed {{seed}} --out runs/{{lr}}-{{seed}}" -p lr 0.1 0.01 --repeat 3
"""


def _sweeps(paths: Iterable[str], typed: Sweep) -> list[Sweep]:
    """What is in the files, with what was typed, each with a pattern and a seed."""
    sweeps = [] if paths else [typed]
    for path in paths:
        from simple_gpu_scheduler.hypersearch.files import read_sweep_file  # noqa: PLC0415 - few sweeps come from files

        sweeps += [combine(sweep, typed) for sweep in read_sweep_file(path)]
    if not all(sweep.pattern for sweep in sweeps):
        raise UserError(without_pattern(typed))
    random = int.from_bytes(os.urandom(4), "big")
    return [sweep if sweep.seed is not None else sweep._replace(seed=random) for sweep in sweeps]


def _prepared(sweeps: list[Sweep], paths: Sequence[str], *, lines_end: bool) -> Sweeps:
    try:
        return Sweeps(sweeps, lines_end=lines_end)
    except UserError as error:
        raise UserError(f"{paths[0]}: {error}" if len(paths) == 1 else str(error)) from None


def _hypersearch(from_files: Sequence[str], save: str | None, *, count: bool, null: bool, **typed: Any) -> None:
    # Nobody may be reading any more (`| head`): that ends a filter without a word.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What was typed in another encoding comes out as it was.
        encoding = "utf-8" if sys.getfilesystemencoding() == "ascii" else sys.getfilesystemencoding()
        sys.stdout.reconfigure(encoding=encoding, errors="surrogateescape", newline="\n")
    sweeps = _sweeps(from_files, typed_sweep(**typed))
    prepared = _prepared(sweeps, from_files, lines_end=not null)
    lines = iter([str(prepared.total)]) if count else prepared.lines()
    first = next(lines)  # where there is none, nothing is saved
    if save is not None:
        from simple_gpu_scheduler.hypersearch.files import save_sweep_file  # noqa: PLC0415 - as above

        save_sweep_file(save, sweeps)
    _print(chain([first], lines), "\0" if null and not count else "\n")
    with suppress(OSError):  # nobody hears it, and all that matters has been printed
        for note in prepared.notes():
            print(f"simple_hypersearch: {note}", file=sys.stderr)


def _print(lines: Iterable[str], end: str) -> None:
    """Print in batches, but what took long to find at once: somebody's GPU may be waiting for it."""
    batch: list[str] = []
    due = 0.0
    for line in lines:
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


def _option(*names: str, **settings: Any) -> click.Option:
    return click.Option(names, **settings)


def _combined() -> list[click.Parameter]:
    return [
        click.Argument(["pattern"], nargs=-1, metavar="PATTERN -p NAME VALUE..."),
        SeveralValues(
            ["-p", "--parameter"],
            takes=is_value,
            example=EXAMPLE,
            metavar="NAME VALUE...",
            help="A parameter and its values; once for each parameter.",
        ),
        _option(
            "--from",
            "from_files",
            multiple=True,
            metavar="FILE",
            help="Read sweeps from a .yaml (needs PyYAML), .toml, .json or .csv file; the keys are these options.",
        ),
        _option(
            "--zip", "together", multiple=True, metavar="A,B", help="Parameters whose values go together, in pairs."
        ),
        _option(
            "--where", multiple=True, metavar="CONDITION", help="Only combinations for which 'lr * bs < 1' is true."
        ),
        _option(
            "--when",
            nargs=2,
            multiple=True,
            metavar="NAME CONDITION",
            help="The parameter NAME exists only where this is true; write its flag as {--flag NAME}.",
        ),
        _option("--repeat", type=click.IntRange(1), metavar="N", help="Print each N times, with {seed} from 0 up."),
    ]


def _printed() -> list[click.Parameter]:
    return [
        _option(
            "--sampling-mode",
            type=click.Choice([SHUFFLED, IN_ORDER]),
            help=f"In a random order, or in that of the grid.  [default: {SHUFFLED}]",
        ),
        _option(
            "--n-samples",
            "samples",
            type=click.IntRange(1),
            metavar="N",
            help="Print so many different combinations.  [default: all]",
        ),
        _option(
            "--sampler",
            type=click.Choice(list(SAMPLERS)),
            help="Spread the samples more evenly than at random. Needs scipy, as in simple_gpu_scheduler[search].",
        ),
        _option(
            "--seed",
            type=Parsed("number", parse_whole),
            metavar="N",
            help="The seed of the order and of what is drawn (not {seed}): the same N, the same lines.",
        ),
        _option("--name", metavar="PATTERN", help="Give each job a name, such as '{lr}-{bs}'."),
        _option("-0", "--null", is_flag=True, help="End commands with NUL bytes, so that they may hold newlines."),
        _option("--count", is_flag=True, help="Print only how many commands there would be."),
        _option("--save", metavar="FILE", help="Write the sweep and its seed to a .json file that --from reads."),
        version_option(f"simple_hypersearch {__version__}"),
    ]


hypersearch = Command(
    "simple_hypersearch",
    callback=_hypersearch,
    help=_HELP,
    params=[*_combined(), *_printed()],
    sections=(
        ("What is combined", ("parameter", "from_files", "together", "where", "when", "repeat")),
        ("How many, and in which order", ("sampling_mode", "samples", "sampler", "seed")),
        ("What is printed", ("name", "null", "count", "save")),
    ),
    examples=_EXAMPLES,
    if_unknown="What belongs to the command stands in quotes with it; a value that begins with a dash: -p NAME=VALUE.",
)
